//! For tests only: a scripted model server, tools that tests can watch, a client, and, with the feature `server`,
//! the real server on port 0.
//!
//! Nothing here may be used by the product. What waits, waits for the thing itself and gives up loudly.

pub mod authority;
pub mod client;
#[cfg(feature = "server")]
pub mod loopback;
pub mod mcp_server;
pub mod model_server;
pub mod proxy;
pub mod receiver;
#[cfg(feature = "server")]
pub mod server;
pub mod tools;

use std::future::Future;
use std::time::Duration;

pub use authority::Authority;
pub use client::{Answer, Client, EventStream, Frame};
#[cfg(feature = "server")]
pub use loopback::Loopback;
pub use mcp_server::{McpAnswers, McpServer};
pub use model_server::{Gate, ModelServer, Reply};
pub use proxy::{ProxyMood, ProxyServer};
#[cfg(feature = "server")]
pub use server::{Setup, TestServer};

/// How long a test waits for something that must happen, on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until no command runs whose workspace is at or below a directory. Commands have processes of their own, with
/// other numbers inside, so what tells them is their environment.
pub async fn no_command_below(directory: &std::path::Path) {
    let home = format!("HOME={}", directory.display());
    let is_below = |process: std::fs::DirEntry| {
        let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(home.as_bytes()))
    };
    let processes = || std::fs::read_dir("/proc").into_iter().flatten().flatten();
    within("the end of all commands", async {
        while processes().any(is_below) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Waits for something that must happen, and fails the test with its name if it does not.
#[expect(clippy::panic, reason = "a test that waits in vain has failed")]
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited in vain for {what}"),
    }
}
