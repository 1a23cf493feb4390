//! Checks of MCP servers.

use petasos_tools::mcp::McpServers;

use super::Check;
use crate::config::Config;

/// Connects to every server of the configuration and asks for its tools.
pub(super) async fn check(config: &Config) -> Vec<Check> {
    let servers = McpServers::new(
        config.mcp_servers.clone(),
        config.mcp.clone(),
        config.net.clone(),
        config.guard.clone(),
        crate::instance::supervisor(),
    );
    let checks = servers.check().await.into_iter().map(|(name, listed)| {
        let what = format!("mcp server {name}");
        match listed {
            Ok(0) => {
                Check::warn(what, "answers, but has no tools that can be used", "look at the server's log")
            }
            Ok(tools) => Check::ok(what, format!("has {tools} tools")),
            Err(problem) => Check::fail(
                what,
                format!("cannot be used: {problem}"),
                format!("check mcp_servers.{name} in config.yaml; until then agents do without its tools"),
            ),
        }
    });
    checks.collect()
}
