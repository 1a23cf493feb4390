//! Gateway hooks: directories with `HOOK.yaml` and `handler.py`, told of what the messaging gateway does.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::call::{Repeat, call};
use super::guest::{Code, Guest};
use super::hosts::PythonHosts;
use super::message::Order;
use super::wishes::Caller;
use super::yaml;

/// One gateway hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayHook {
    /// What it is called.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What it is told of: events, or `<kind>:*` for all of a kind.
    pub events: Vec<String>,
    /// The file with its `handle(event_type, context)`.
    pub handler: PathBuf,
}

impl GatewayHook {
    /// The gateway hooks in a directory, in the order of their directories' names. Whatever is none is skipped, and
    /// the log says why if it looks like one.
    pub fn discover(directory: &Path) -> Vec<GatewayHook> {
        let hooks = yaml::directories(directory).into_iter().filter_map(|path| {
            let (manifest, handler) = (path.join("HOOK.yaml"), path.join("handler.py"));
            if !manifest.is_file() || !handler.is_file() {
                return None;
            }
            match read(&manifest, handler, &yaml::name(&path)) {
                Ok(hook) => hook,
                Err(problem) => {
                    tracing::warn!(path = %manifest.display(), "a gateway hook is skipped: {problem}");
                    None
                }
            }
        });
        hooks.collect()
    }
}

/// Reads a manifest; none for a hook that is switched off.
fn read(manifest: &Path, handler: PathBuf, directory: &str) -> Result<Option<GatewayHook>, String> {
    let manifest = yaml::object(manifest)?;
    if manifest.get("enabled") == Some(&Value::Bool(false)) {
        return Ok(None);
    }
    let text = |name: &str| manifest.get(name).and_then(Value::as_str).map(str::to_owned);
    let events = match manifest.get("events") {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    if events.is_empty() {
        return Err("it lists no events".to_owned());
    }
    let name = text("name").unwrap_or_else(|| directory.to_owned());
    Ok(Some(GatewayHook { name, description: text("description").unwrap_or_default(), events, handler }))
}

impl PythonHosts {
    /// Tells gateway hooks of an event, one after another: those that listed it, then those that listed all of its
    /// kind. Returns what they answered, without those that answered nothing.
    pub async fn emit(&self, event: &str, context: Map<String, Value>) -> Vec<Value> {
        let mut answers = Vec::new();
        for guest in self.listeners(event) {
            let limit = self.shared.callback_time();
            let answer = call(&self.shared, &guest, Caller::default(), limit, Repeat::IfLost, |registered| {
                registered.handler.map(|function| Order::Emit { function, event, context: &context })
            });
            match answer.await {
                Ok(answer) if answer.result.is_null() => {}
                Ok(answer) => answers.push(answer.result),
                Err(problem) => self.shared.complaints.say(event, &guest.key, &problem),
            }
        }
        answers
    }

    fn listeners(&self, event: &str) -> Vec<Arc<Guest>> {
        let of_kind = event.split_once(':').map(|(kind, _)| format!("{kind}:*"));
        let lists = |wanted: &str| {
            let guests = self.shared.guests().iter().filter(move |guest| match &guest.code {
                Code::Handler { events, .. } => {
                    guest.problem().is_none() && events.iter().any(|event| event == wanted)
                }
                Code::Plugin { .. } => false,
            });
            guests.cloned().collect::<Vec<_>>()
        };
        let mut all = lists(event);
        all.extend(of_kind.map(|kind| lists(&kind)).unwrap_or_default());
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_gateway_hook_is_skipped_and_the_others_are_found_in_order() {
        let home = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = home.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        for (name, manifest) in [
            ("z-last", "name: named\ndescription: It is.\nevents: ['agent:*', 'gateway:startup']\n"),
            ("a-first", "events: agent:start\n"),
            ("broken", "events: [\n"),
            ("a-list", "- agent:start\n"),
            ("nothing", ""),
            ("silent", "name: silent\nevents: []\n"),
            ("odd", "events: { agent: start }\n"),
            ("off", "events: ['agent:start']\nenabled: false\n"),
        ] {
            write(&format!("{name}/HOOK.yaml"), manifest);
            write(&format!("{name}/handler.py"), "");
        }
        write("no-handler/HOOK.yaml", "events: ['agent:start']\n");
        write("no-manifest/handler.py", "");
        write("file", "");
        let found = GatewayHook::discover(home.path());
        let brief: Vec<_> = found.iter().map(|hook| (hook.name.as_str(), hook.events.join(" "))).collect();
        let expected =
            [("a-first", "agent:start".to_owned()), ("named", "agent:* gateway:startup".to_owned())];
        assert_eq!(brief, expected);
        assert_eq!(GatewayHook::discover(&home.path().join("nowhere")), []);
    }
}
