//! Runs what computes for long where it holds nobody up. Work on files has threads of its own (`file_pool`).

use crate::tool::ToolOutput;

/// Runs `work` on a thread for such work. A panic there is a failed call like any other.
pub(crate) async fn blocking(
    work: impl FnOnce() -> Result<ToolOutput, String> + Send + 'static,
) -> ToolOutput {
    let worked = tokio::task::spawn_blocking(work).await;
    worked.unwrap_or_else(|_| Err("The tool ended in a bug.".to_owned())).unwrap_or_else(ToolOutput::error)
}
