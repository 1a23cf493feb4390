//! MCP servers of the file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use petasos_core::ids::TenantId;
use petasos_tools::mcp::{Program, Reach, ServerDefinition, Settings, Tenants};
use secrecy::{ExposeSecret, SecretString};

use super::file::{Mcp, McpServer};
use super::{set, time};
use crate::env::Environment;

/// Variables that programs have like any program of the user who started the server.
const INHERITED: [&str; 6] = ["PATH", "HOME", "USER", "LANG", "TMPDIR", "TZ"];

/// The servers, by name, and what is odd about them but no reason not to start.
pub(super) fn servers(
    file: BTreeMap<String, McpServer>,
    environment: &Environment,
    warnings: &mut Vec<String>,
) -> Result<BTreeMap<String, ServerDefinition>> {
    let mut servers = BTreeMap::new();
    for (name, server) in file {
        let setting = format!("mcp_servers.{name}");
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || name.len() > 40 || !name.chars().all(is_name) {
            bail!(
                "{setting}: a name is 1 to 40 letters, digits, '-' or '_'; tools are called mcp_<name>_<tool>"
            );
        }
        let tenants = tenants(&server.tenants).map_err(|problem| anyhow!("{setting}.tenants: {problem}"))?;
        let mut values = Values { setting: &setting, environment, warnings };
        let reach = match (server.url, server.command) {
            (Some(url), None) if server.args.is_empty() && server.env.is_empty() => {
                if !url.starts_with("http://") && !url.starts_with("https://") {
                    bail!("{setting}.url must start with http:// or https://");
                }
                Reach::Http { url, headers: values.expanded(server.headers)? }
            }
            (None, Some(command)) if server.headers.is_empty() => {
                let mut env = values.inherited()?;
                env.extend(values.expanded(server.env)?);
                let directory = environment.user_home().unwrap_or_else(|| PathBuf::from("/"));
                Reach::Program(Program { command, args: server.args, env, directory })
            }
            _ => bail!("{setting}: write url (with headers), or command (with args and env), not both"),
        };
        servers.insert(name, ServerDefinition { reach, tenants });
    }
    Ok(servers)
}

/// How they are used.
pub(super) fn settings(file: &Mcp) -> Settings {
    let mut settings = Settings::default();
    set(&mut settings.wait_time, time(file.wait_seconds));
    set(&mut settings.connect_time, time(file.connect_seconds));
    set(&mut settings.call_time, time(file.call_seconds));
    set(&mut settings.idle_time, time(file.idle_seconds));
    set(&mut settings.message_bytes, file.message_bytes.map(std::num::NonZero::get));
    settings
}

fn tenants(names: &[String]) -> Result<Tenants, String> {
    if names.iter().any(|name| name == "*") {
        return Ok(Tenants::All);
    }
    if names.is_empty() {
        return Ok(Tenants::Only(vec![TenantId::default_tenant()]));
    }
    let parsed = names.iter().map(|name| name.parse().map_err(|error| format!("{name:?}: {error}")));
    Ok(Tenants::Only(parsed.collect::<Result<_, String>>()?))
}

/// Values of headers and variables, in which `${NAME}` stands for a variable of the environment.
struct Values<'a> {
    setting: &'a str,
    environment: &'a Environment,
    warnings: &'a mut Vec<String>,
}

impl Values<'_> {
    fn inherited(&self) -> Result<BTreeMap<String, SecretString>> {
        let mut env = BTreeMap::new();
        for name in INHERITED {
            if let Some(value) = self.environment.text(name)? {
                env.insert(name.to_owned(), SecretString::from(value));
            }
        }
        Ok(env)
    }

    fn expanded(&mut self, values: BTreeMap<String, SecretString>) -> Result<BTreeMap<String, SecretString>> {
        values.into_iter().map(|(name, value)| Ok((name, self.expand(value.expose_secret())?))).collect()
    }

    fn expand(&mut self, text: &str) -> Result<SecretString> {
        let mut expanded = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let Some((variable, after)) = after.split_once('}') else { break };
            expanded.push_str(before);
            match self.environment.secret(variable)? {
                Some(value) => expanded.push_str(value.expose_secret()),
                None => self
                    .warnings
                    .push(format!("{}: the environment variable {variable} is not set", self.setting)),
            }
            rest = after;
        }
        expanded.push_str(rest);
        Ok(SecretString::from(expanded))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved<const N: usize>(
        file: &str,
        variables: [(&str, &str); N],
    ) -> Result<(BTreeMap<String, ServerDefinition>, Vec<String>)> {
        let file: super::super::file::File = serde_saphyr::from_str(file).unwrap();
        let mut warnings = Vec::new();
        let servers = servers(file.mcp_servers, &Environment::from(variables), &mut warnings)?;
        Ok((servers, warnings))
    }

    #[test]
    fn variables_are_filled_in_and_missing_ones_named() {
        let file =
            "mcp_servers: { hub: { url: 'https://h/mcp', headers: { Authorization: 'Bearer ${TOKEN}' } } }";
        let (servers, warnings) = resolved(file, [("TOKEN", "t0ken")]).unwrap();
        let Reach::Http { headers, .. } = &servers["hub"].reach else { panic!() };
        assert_eq!(headers["Authorization"].expose_secret(), "Bearer t0ken");
        assert_eq!(servers["hub"].tenants, Tenants::Only(vec![TenantId::default_tenant()]));
        assert!(warnings.is_empty());
        let (_, warnings) = resolved(file, []).unwrap();
        assert!(warnings[0].contains("mcp_servers.hub") && warnings[0].contains("TOKEN"), "{warnings:?}");
    }

    #[test]
    fn programs_have_an_environment_of_their_own() {
        let file = "mcp_servers: { time: { command: t, args: [a], env: { A: 'x${B}y' }, tenants: ['*'] } }";
        let variables = [("PATH", "/bin"), ("PETASOS_API_KEY", "k"), ("B", "b")];
        let (servers, _) = resolved(file, variables).unwrap();
        let Reach::Program(program) = &servers["time"].reach else { panic!() };
        let env: Vec<_> =
            program.env.iter().map(|(name, value)| (name.as_str(), value.expose_secret())).collect();
        assert_eq!(env, [("A", "xby"), ("PATH", "/bin")]);
        assert_eq!(servers["time"].tenants, Tenants::All);
    }

    #[test]
    fn mistakes_are_named() {
        for (file, words) in [
            ("mcp_servers: { 'a b': { url: 'https://h' } }", "mcp_servers.a b"),
            ("mcp_servers: { a: {} }", "write url"),
            ("mcp_servers: { a: { url: 'https://h', command: c } }", "not both"),
            ("mcp_servers: { a: { url: 'https://h', env: { A: b } } }", "not both"),
            ("mcp_servers: { a: { url: 'ftp://h' } }", "http://"),
        ] {
            let problem = resolved(file, []).err().unwrap().to_string();
            assert!(problem.contains(words), "{problem}");
        }
    }
}
