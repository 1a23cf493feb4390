//! Guards: hooks with `fail_closed`. A guard that is not available blocks every call that it is about.

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;

use super::matcher::Matcher;
use super::spec::HookSpec;
use crate::source::{Answer, Callback, Firing, OnFailure};

/// A guard that cannot be asked at all: without consent, or written wrongly.
#[derive(Debug, Clone)]
pub struct MissingGuard {
    /// The command or address, or the place in the configuration if it has neither.
    pub name: String,
    /// The tools that it is about. None stands for all, which is also what is taken if nobody can tell.
    pub matcher: Option<Matcher>,
    /// Why it cannot be asked.
    pub why: String,
}

impl MissingGuard {
    /// The guard that a hook was to be.
    pub fn new(hook: &HookSpec, why: String) -> Self {
        MissingGuard { name: hook.target.name(), matcher: valid(hook.matcher.as_ref()), why }
    }

    /// Its name, what it blocks and why.
    pub fn problem(&self) -> String {
        problem(&self.name, self.matcher.as_ref(), &self.why)
    }
}

/// A matcher that says which tools are meant; none if it is no valid expression.
pub(super) fn valid(matcher: Option<&Matcher>) -> Option<Matcher> {
    matcher.filter(|matcher| !matcher.is_literal()).cloned()
}

/// The sentence that people read about a guard that is not available.
pub(super) fn problem(name: &str, matcher: Option<&Matcher>, why: &str) -> String {
    let calls = matcher.map_or("every tool call".to_owned(), |matcher| {
        format!("every call of a tool that matches {}", matcher.as_str())
    });
    format!("the hook {name} is not available and blocks {calls}: {why}")
}

/// The answer of a guard that is not available. The log is told why.
pub(super) fn block(name: &str, why: String) -> Answer {
    let message = format!("blocked: {name} is not available");
    Answer { value: json!({ "action": "block", "message": message }), input: None, complaint: Some(why) }
}

impl Callback for MissingGuard {
    fn name(&self) -> &str {
        &self.name
    }

    fn concerns(&self, firing: &Firing) -> bool {
        self.matcher.as_ref().is_none_or(|matcher| firing.tool().is_some_and(|tool| matcher.matches(tool)))
    }

    fn time_limit(&self) -> Option<Duration> {
        None
    }

    fn on_failure(&self) -> OnFailure {
        OnFailure::Block
    }

    fn runs_beside(&self) -> bool {
        false
    }

    fn call<'a>(&'a self, _: &'a Firing) -> BoxFuture<'a, Result<Answer, String>> {
        std::future::ready(Ok(block(&self.name, self.why.clone()))).boxed()
    }
}
