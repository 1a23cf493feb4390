//! Lines from a pipe or a file.

use std::io::BufRead;

use tokio::sync::mpsc;

/// Lines of standard input, read on a thread of their own.
pub(super) struct Lines {
    lines: mpsc::Receiver<String>,
}

impl Lines {
    /// Starts reading. The thread ends with the input or with the process.
    pub(super) fn read() -> Lines {
        let (sender, lines) = mpsc::channel(1);
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned();
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        Lines { lines }
    }

    /// The next line; none at the end.
    pub(super) async fn next(&mut self) -> Option<String> {
        self.lines.recv().await
    }
}
