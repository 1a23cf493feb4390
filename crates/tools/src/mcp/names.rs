//! The names under which models know the tools of MCP servers.

use sha2::{Digest, Sha256};

/// The longest name that every provider takes.
const MAX_NAME: usize = 64;
const DIGEST: usize = 8;

/// `mcp_<server>_<tool>`, in characters that every provider takes. A name that would be too long ends in a digest of
/// the whole, so that it stays the same and stays apart from others.
pub(super) fn tool_name(server: &str, tool: &str) -> String {
    let whole = format!("mcp_{server}_{tool}");
    let mut name: String =
        whole.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
    if name.len() > MAX_NAME {
        name.truncate(MAX_NAME - DIGEST - 1);
        name.push('_');
        let digest = Sha256::digest(whole.as_bytes());
        name.extend(digest.iter().take(DIGEST / 2).map(|byte| format!("{byte:02x}")));
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_every_provider() {
        assert_eq!(tool_name("github", "create_issue"), "mcp_github_create_issue");
        assert_eq!(tool_name("my server", "a.b/ü"), "mcp_my_server_a_b__");
        let (one, two) = (tool_name("s", &"a".repeat(80)), tool_name("s", &"a".repeat(81)));
        assert_eq!((one.len(), two.len()), (64, 64));
        assert_ne!(one, two);
        assert_eq!(one, tool_name("s", &"a".repeat(80)));
    }
}
