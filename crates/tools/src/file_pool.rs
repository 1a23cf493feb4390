//! Threads for work on files, apart from those of the rest of the server.
//!
//! An open or a read can block for as long as a disk, a network file system or a FUSE program likes, and no thread can
//! be taken back from it. So file work has threads of its own, a tenant and a workspace have a share of them, and a
//! caller waits for a bounded time. Work that blocks keeps its share until it returns; nobody else notices.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// How many shares may be known before those that nobody uses are forgotten.
const MAX_IDLE_SHARES: usize = 256;
/// How long a thread without work waits for more.
const IDLE_TIME: Duration = Duration::from_secs(10);

/// For whom a file operation runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileOwner {
    /// The tenant.
    pub tenant: String,
    /// The workspace, or another name for what the tenant does at once.
    pub workspace: String,
}

/// How many file operations run at once, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilePoolLimits {
    /// Operations of everybody.
    pub all: usize,
    /// Operations of one tenant.
    pub tenant: usize,
    /// Operations of one workspace.
    pub workspace: usize,
    /// How long an operation waits for its turn.
    pub queue_time: Duration,
    /// How long its caller waits for its end.
    pub run_time: Duration,
}

impl Default for FilePoolLimits {
    fn default() -> Self {
        FilePoolLimits {
            all: 128,
            tenant: 8,
            workspace: 4,
            queue_time: Duration::from_secs(30),
            run_time: Duration::from_secs(60),
        }
    }
}

/// Why a file operation has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FilePoolError {
    /// Too many others of the same workspace, tenant or server did not end in time.
    #[error("The file operation did not start within {} s: too many others are still waiting for the disk. Try again later.", .0.as_secs())]
    Busy(Duration),
    /// It runs still.
    #[error("The disk did not answer within {} s; whether the operation was carried out is unknown.", .0.as_secs())]
    TimedOut(Duration),
    /// It panicked.
    #[error("The tool ended in a bug.")]
    Panicked,
    /// The system has no thread for it.
    #[error("The system has no more threads for file operations. Try again later.")]
    NoThread,
}

/// The threads. Cheap to clone.
#[derive(Clone)]
pub struct FilePool {
    shared: Arc<Shared>,
}

struct Shared {
    limits: FilePoolLimits,
    all: Arc<Semaphore>,
    /// What each tenant and each workspace has left of its share.
    shares: Mutex<HashMap<Share, Arc<Semaphore>>>,
    workers: Mutex<Workers>,
    work_came: Condvar,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Share {
    Tenant(String),
    Workspace(FileOwner),
}

#[derive(Default)]
struct Workers {
    /// Never longer than the operations that may run at once.
    waiting: VecDeque<Job>,
    idle: usize,
}

type Job = Box<dyn FnOnce() + Send>;

impl Default for FilePool {
    fn default() -> Self {
        FilePool::new(FilePoolLimits::default())
    }
}

impl FilePool {
    /// Threads with these limits. They start when there is work.
    pub fn new(limits: FilePoolLimits) -> Self {
        FilePool {
            shared: Arc::new(Shared {
                limits,
                all: Arc::new(Semaphore::new(limits.all)),
                shares: Mutex::default(),
                workers: Mutex::default(),
                work_came: Condvar::new(),
            }),
        }
    }

    /// Runs `work` on one of the threads. Dropping the future does not stop work that has begun.
    pub async fn run<T: Send + 'static>(
        &self,
        owner: &FileOwner,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, FilePoolError> {
        let limits = self.shared.limits;
        let permits = tokio::time::timeout(limits.queue_time, self.permits(owner)).await;
        let permits = permits.ok().flatten().ok_or(FilePoolError::Busy(limits.queue_time))?;
        let (done, result) = oneshot::channel();
        self.start(Box::new(move || {
            // Sent before the permits go, so that a caller is never told of a place that is not free.
            let _ = done.send(catch_unwind(AssertUnwindSafe(work)));
            drop(permits);
        }))?;
        match tokio::time::timeout(limits.run_time, result).await {
            Ok(Ok(Ok(value))) => Ok(value),
            Ok(_) => Err(FilePoolError::Panicked),
            Err(_) => Err(FilePoolError::TimedOut(limits.run_time)),
        }
    }

    /// The narrowest share is waited for first: who waits for it holds up nobody else.
    async fn permits(&self, owner: &FileOwner) -> Option<[OwnedSemaphorePermit; 3]> {
        let limits = self.shared.limits;
        let workspace = self.share(Share::Workspace(owner.clone()), limits.workspace);
        let tenant = self.share(Share::Tenant(owner.tenant.clone()), limits.tenant);
        let workspace = workspace.acquire_owned().await.ok()?;
        let tenant = tenant.acquire_owned().await.ok()?;
        Some([workspace, tenant, Arc::clone(&self.shared.all).acquire_owned().await.ok()?])
    }

    fn share(&self, share: Share, size: usize) -> Arc<Semaphore> {
        let mut shares = lock(&self.shared.shares);
        if shares.len() > MAX_IDLE_SHARES {
            shares.retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
        }
        Arc::clone(shares.entry(share).or_insert_with(|| Arc::new(Semaphore::new(size))))
    }

    fn start(&self, job: Job) -> Result<(), FilePoolError> {
        let mut workers = lock(&self.shared.workers);
        workers.waiting.push_back(job);
        if workers.idle >= workers.waiting.len() {
            self.shared.work_came.notify_one();
            return Ok(());
        }
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new().name("files".to_owned());
        if thread.spawn(move || shared.work()).is_err() {
            workers.waiting.pop_back();
            return Err(FilePoolError::NoThread);
        }
        Ok(())
    }
}

impl Shared {
    /// Works until there is nothing to do for a while.
    fn work(&self) {
        let mut workers = lock(&self.workers);
        loop {
            if let Some(job) = workers.waiting.pop_front() {
                drop(workers);
                job();
                workers = lock(&self.workers);
                continue;
            }
            workers.idle += 1;
            let waited = self.work_came.wait_timeout(workers, IDLE_TIME);
            let (guard, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            workers = guard;
            workers.idle -= 1;
            if timeout.timed_out() && workers.waiting.is_empty() {
                return;
            }
        }
    }
}

impl std::fmt::Debug for FilePool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FilePool").field("limits", &self.shared.limits).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn owner(tenant: &str, workspace: &str) -> FileOwner {
        FileOwner { tenant: tenant.to_owned(), workspace: workspace.to_owned() }
    }

    /// Who finds no place is told so at once.
    fn pool() -> FilePool {
        let limits = FilePoolLimits { all: 6, tenant: 4, workspace: 2, ..FilePoolLimits::default() };
        FilePool::new(FilePoolLimits { queue_time: Duration::ZERO, ..limits })
    }

    /// Starts operations that block until the sender is dropped.
    async fn block(pool: &FilePool, owner: &FileOwner, count: usize) -> Vec<mpsc::Sender<()>> {
        let mut senders = Vec::new();
        for _ in 0..count {
            let (sender, receiver) = mpsc::channel::<()>();
            let (begin, begun) = oneshot::channel();
            let (pool, owner) = (pool.clone(), owner.clone());
            let work = move || {
                begin.send(()).unwrap();
                receiver.recv().is_ok()
            };
            tokio::spawn(async move { pool.run(&owner, work).await });
            begun.await.unwrap();
            senders.push(sender);
        }
        senders
    }

    #[tokio::test]
    async fn blocked_operations_use_up_only_their_owners_share() {
        let pool = pool();
        let (one, two, three) = (owner("acme", "one"), owner("acme", "two"), owner("acme", "three"));
        let busy = Err(FilePoolError::Busy(Duration::ZERO));
        let first = block(&pool, &one, 2).await;
        assert_eq!(pool.run(&one, || 1).await, busy, "the workspace has no place left");
        let second = block(&pool, &two, 2).await;
        assert_eq!(pool.run(&three, || 1).await, busy, "the tenant has no place left");
        assert_eq!(pool.run(&owner("other", "one"), || 1).await, Ok(1));
        drop((first, second));
        // Their places are free as soon as those that blocked have returned.
        while pool.run(&one, || 1).await == busy {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_caller_waits_for_a_bounded_time() {
        let pool = FilePool::new(FilePoolLimits { run_time: Duration::ZERO, ..FilePoolLimits::default() });
        let (sender, receiver) = mpsc::channel::<()>();
        let ran = pool.run(&owner("acme", "one"), move || receiver.recv().is_ok()).await;
        assert_eq!(ran, Err(FilePoolError::TimedOut(Duration::ZERO)));
        drop(sender);
    }

    #[tokio::test]
    async fn a_panic_is_reported_and_the_thread_goes_on() {
        let pool = pool();
        let one = owner("acme", "one");
        let ran = pool.run(&one, || -> usize { panic!("as the test wants") }).await;
        assert_eq!(ran, Err(FilePoolError::Panicked));
        while pool.run(&one, || 2).await != Ok(2) {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn many_operations_run_one_after_another_and_none_is_lost() {
        let limits = FilePoolLimits { all: 2, tenant: 2, workspace: 2, ..FilePoolLimits::default() };
        let pool = FilePool::new(limits);
        let one = owner("acme", "one");
        let runs = (0..500).map(|number| pool.run(&one, move || number));
        let results = futures_util::future::join_all(runs).await;
        assert!(results.into_iter().map(|result| result.unwrap()).eq(0..500));
    }
}
