//! `petasos approvals`: what would happen to a command.

use anyhow::Result;
use petasos_tools::{Approvals, Explanation, Verdict, explain};
use serde_json::json;

use super::Format;
use crate::args::{ApprovalsArgs, ApprovalsCommand};
use crate::config;
use crate::env::Environment;
use crate::home::Home;
use crate::output;

/// Does what the command says.
pub(crate) fn run(args: &ApprovalsArgs, environment: &Environment) -> Result<()> {
    let ApprovalsCommand::Explain { command } = &args.command;
    let approvals = match (Home::find(args.home.data_dir.as_deref(), environment), &args.home.config) {
        (Ok(home), named) => config::approvals(named.as_deref(), &home)?,
        (Err(error), Some(_)) => return Err(error),
        (Err(_), None) => Approvals::default(),
    };
    let explanation = explain(command, &approvals);
    match Format::from_flag(args.format.json) {
        Format::Json => output::json(&json!({
            "verdict": explanation.verdict.as_str(),
            "reasons": explanation.reasons.iter().map(|reason| json!({ "key": reason.key, "text": reason.text }))
                .collect::<Vec<_>>(),
            "programs": explanation.programs,
        })),
        Format::Text => output::line(&text(&explanation)),
    }
}

/// The explanation for people: the verdict, then the reasons, then the programs.
fn text(explanation: &Explanation) -> String {
    let verdict = match explanation.verdict {
        Verdict::Run => "run: the command runs without asking",
        Verdict::Ask => "ask: a person is asked before the command runs",
        Verdict::Never => "never: the command does not run, whoever allows it",
    };
    let mut lines = vec![verdict.to_owned()];
    lines.extend(explanation.reasons.iter().map(|reason| format!("  {}: {}", reason.key, reason.text)));
    if !explanation.programs.is_empty() {
        lines.push(format!("programs: {}", crate::table::plain(&explanation.programs.join(", "))));
    }
    lines.join("\n")
}
