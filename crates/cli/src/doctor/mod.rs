//! `petasos doctor`: looks at everything that an installation needs, and says how to mend what is broken.
//!
//! It changes nothing: a home or a database that is not there is not made.

mod checks;
mod local_models;
mod mcp;
mod plugins;
mod providers;
mod running;
mod sandbox;

use anyhow::Result;
use serde::Serialize;
use serde_json::json;

use crate::args::DoctorArgs;
use crate::env::Environment;
use crate::home::Home;
use crate::table::plain;
use crate::{hooks, output};

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    Ok,
    Warn,
    Fail,
}

/// What was checked, and what came of it.
#[derive(Debug, Serialize)]
pub(crate) struct Check {
    pub(crate) status: Status,
    what: String,
    detail: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    cure: Option<String>,
}

impl Check {
    pub(crate) fn ok(what: impl Into<String>, detail: impl Into<String>) -> Check {
        Check { status: Status::Ok, what: what.into(), detail: detail.into(), cure: None }
    }

    pub(crate) fn warn(what: impl Into<String>, detail: impl Into<String>, cure: impl Into<String>) -> Check {
        Check { status: Status::Warn, cure: Some(cure.into()), ..Check::ok(what, detail) }
    }

    pub(crate) fn fail(what: impl Into<String>, detail: impl Into<String>, cure: impl Into<String>) -> Check {
        Check { status: Status::Fail, cure: Some(cure.into()), ..Check::ok(what, detail) }
    }

    /// Nothing is wrong, and something could be done all the same.
    pub(crate) fn hint(
        what: impl Into<String>,
        detail: impl Into<String>,
        advice: impl Into<String>,
    ) -> Check {
        Check { cure: Some(advice.into()), ..Check::ok(what, detail) }
    }

    /// A failure whose text says what to do.
    pub(crate) fn failed(what: impl Into<String>, error: &anyhow::Error) -> Check {
        Check { status: Status::Fail, ..Check::ok(what, format!("{error:#}")) }
    }

    /// The same, as part of what is said about something.
    pub(crate) fn about(self, what: &str) -> Check {
        Check { what: format!("{what}: {}", self.what), ..self }
    }

    pub(crate) fn line(&self) -> String {
        let status = match self.status {
            Status::Ok => "ok  ",
            Status::Warn => "warn",
            Status::Fail => "fail",
        };
        let cure = self.cure.as_ref().map(|cure| format!("\n        → {cure}")).unwrap_or_default();
        plain(&format!("{status}  {}: {}{cure}", self.what, self.detail))
    }
}

/// Checks everything. Returns the exit code: 1 if anything fails.
pub(crate) async fn run(args: &DoctorArgs, environment: &Environment) -> Result<u8> {
    let home = Home::find(args.home.data_dir.as_deref(), environment)?;
    let mut checks = vec![checks::home(&home)];
    checks.extend(checks::disk(&home));
    checks.extend(checks::admin_key(&home, environment));
    let config = checks::config(args, &home, environment, &mut checks);
    checks.extend(checks::store(args, &home, environment).await);
    checks.extend(checks::named_server(environment).await);
    checks.extend(checks::agent_files(&home));
    checks.extend(checks::routine_files(&home));
    checks.extend(running::check(&home, config.as_ref(), environment).await);
    if let Some(config) = config {
        checks.extend(checks::listen(&config).await);
        checks.extend(providers::proxies(&config));
        checks.extend(providers::check(&config).await);
        checks.push(checks::web_search(&config));
        checks.extend(mcp::check(&config).await);
        checks.extend(hooks::checks(&config, &home, environment));
        checks.extend(plugins::check(&config, &home).await);
        checks.extend(sandbox::writable(args, &config, &home));
        checks.extend(sandbox::check(config).await);
    }
    checks.push(checks::python());
    let failed = checks.iter().any(|check| check.status == Status::Fail);
    if args.format.json {
        output::json(&json!({ "ok": !failed, "checks": checks }))?;
    } else {
        let lines: Vec<String> = checks.iter().map(Check::line).collect();
        output::line(&lines.join("\n"))?;
    }
    Ok(u8::from(failed))
}
