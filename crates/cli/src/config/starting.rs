//! Settings that a server needs to start, checked when they are read: `doctor` then finds what `serve` would refuse.

use anyhow::{Context, Result, bail};

/// Checks an address to listen on. `name` is where it was set.
pub(super) fn listen(name: &str, address: &str) -> Result<()> {
    let parts = address.rsplit_once(':');
    if !parts.is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok()) {
        bail!(
            "{name}: {address:?} is no address to listen on; write it as HOST:PORT, for example 127.0.0.1:7380, with a \
             port up to 65535"
        );
    }
    Ok(())
}

/// Checks the name of the default model.
pub(super) fn default_model(model: &str) -> Result<()> {
    let parts = model.split_once('/');
    if !parts.is_some_and(|(provider, model)| !provider.is_empty() && !model.is_empty()) {
        bail!("default_model: {model:?} is no model; write it as provider/model, for example demo/echo");
    }
    Ok(())
}

/// Checks where traces go.
pub(super) fn traces(endpoint: &str) -> Result<()> {
    petasos_net::check_web_url(endpoint).with_context(|| {
        format!(
            "traces.endpoint: {endpoint:?} is no web address; write it as http://127.0.0.1:4318/v1/traces"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_cannot_start_with_is_named() {
        for address in ["127.0.0.1", "nohost:99999", ":80", "127.0.0.1:", "127.0.0.1:http"] {
            let problem = listen("listen", address).unwrap_err().to_string();
            assert!(problem.starts_with("listen: ") && problem.contains("HOST:PORT"), "{problem}");
        }
        for address in ["127.0.0.1:0", "localhost:80", "[::1]:7380", "0.0.0.0:65535"] {
            assert!(listen("listen", address).is_ok(), "{address}");
        }
        assert!(default_model("nope").is_err() && default_model("/x").is_err());
        assert!(default_model("openrouter/a/b").is_ok());
        assert!(traces("not a url").is_err() && traces("ftp://a/b").is_err());
        assert!(traces("http://127.0.0.1:4318/v1/traces").is_ok());
    }
}
