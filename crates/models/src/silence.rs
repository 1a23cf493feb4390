//! How long a model may be silent.

use std::pin::{Pin, pin};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// Bounds one wait after another with a single timer. Setting one for each token would cost as much as reading it.
#[derive(Default)]
pub(crate) struct Silence {
    /// Goes off too early if something came in the meantime, and is then set anew.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Silence {
    /// Waits for `future`, at most for so long.
    pub(crate) async fn bound<T>(
        &mut self,
        patience: Duration,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        let until = Instant::now() + patience;
        let mut future = pin!(future);
        loop {
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(until)));
            if timer.deadline() > until {
                timer.as_mut().reset(until);
            }
            tokio::select! {
                biased;
                output = &mut future => return Some(output),
                () = timer => {
                    if Instant::now() >= until {
                        return None;
                    }
                    self.timer = None;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::time::sleep;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_secs(5);

    #[tokio::test(start_paused = true)]
    async fn each_wait_has_its_own_end() {
        let mut silence = Silence::default();
        for _ in 0..3 {
            // All together they last longer than one may.
            assert_eq!(silence.bound(LONG, sleep(Duration::from_secs(40))).await, Some(()));
        }
        let begun = Instant::now();
        assert_eq!(silence.bound(LONG, pending::<()>()).await, None);
        assert_eq!(begun.elapsed().as_secs(), LONG.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn a_shorter_wait_after_a_longer_one_is_short() {
        let mut silence = Silence::default();
        assert_eq!(silence.bound(LONG, async { 7 }).await, Some(7));
        let begun = Instant::now();
        assert_eq!(silence.bound(SHORT, pending::<()>()).await, None);
        assert_eq!(begun.elapsed().as_secs(), SHORT.as_secs());
    }
}
