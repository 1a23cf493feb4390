//! What the demo model says: a pure function of the request.

use std::time::Duration;

use petasos_core::event::joined_text;
use petasos_core::model::{Message, Request, Stop, ToolOutcome, ToolSpec};
use petasos_core::run::EMIT_OUTPUT;
use serde_json::{Value, json};

use super::sample::sample;

/// The longest text of a tool or of the user that is repeated.
const MAX_REPEATED: usize = 500;
const MAX_COUNT: u32 = 10_000;
const BETWEEN_NUMBERS: Duration = Duration::from_millis(100);

const INTRODUCTION: &str = "I am the Petasos demo model: scripted, no AI, no network.";

const HELP: &str = "I am the Petasos demo model: scripted, no AI, no network. I follow these lines:
- help: this list
- count to N: numbers, slowly
- think TOPIC: reasoning first, then an answer
- call TOOL {\"argument\": \"value\"}: calls a tool; several lines call several tools at once
- run COMMAND: calls terminal
- ask me QUESTION? A | B: calls clarify
- remember FACT: calls memory
- delegate GOAL: calls delegate_task
- todo A, B: calls todo
- secret NAME: calls request_secret
- refuse: declines to answer
- ramble: runs into the output limit
Anything else is echoed. A routine gets the simplest output that fits its schema. The model demo/fast does the same without pauses.";

/// What is played, in order.
#[derive(Debug, PartialEq)]
pub(crate) struct Script {
    pub(crate) beats: Vec<Beat>,
    pub(crate) stop: Stop,
}

/// One step of a script.
#[derive(Debug, PartialEq)]
pub(crate) enum Beat {
    Thinking(String),
    Text(String),
    Pause(Duration),
    Call { name: String, arguments: String },
}

/// Decides what to say.
pub(crate) fn script(request: &Request) -> Script {
    let mut script = reply(request);
    let is_done = !script.beats.iter().any(|beat| matches!(beat, Beat::Call { .. }));
    // Where output is asked for, nothing else counts; the routine ends with the simplest that fits.
    if let Some(emit) = request.tools.iter().find(|tool| tool.name == EMIT_OUTPUT).filter(|_| is_done) {
        let arguments = json!({ "output": sample(&output_schema(emit)) }).to_string();
        script.beats.push(Beat::Call { name: EMIT_OUTPUT.to_owned(), arguments });
        script.stop = Stop::ToolUse;
    }
    script
}

/// The schema of a run's output: that of the argument, or the one in the description where it cannot stand there.
fn output_schema(emit: &ToolSpec) -> Value {
    let described = emit.description.split_once("JSON Schema: ").map(|(_, schema)| schema);
    let described = described.and_then(|schema| serde_json::from_str(schema).ok());
    described.unwrap_or_else(|| emit.input_schema["properties"]["output"].clone())
}

fn reply(request: &Request) -> Script {
    match request.messages.last() {
        Some(Message::ToolResults(outcomes)) => {
            let lines: Vec<String> = outcomes.iter().map(report).collect();
            Script { beats: vec![Beat::Text(lines.join("\n"))], stop: Stop::EndTurn }
        }
        Some(Message::User(content)) => answer(&joined_text(content), request),
        Some(Message::Assistant(_)) | None => answer("", request),
    }
}

fn report(outcome: &ToolOutcome) -> String {
    let verb = if outcome.is_error { "failed" } else { "answered" };
    format!("{} {verb}: {}", outcome.name, bounded(&outcome.text))
}

fn bounded(text: &str) -> String {
    let mut short: String = text.chars().take(MAX_REPEATED).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

fn answer(message: &str, request: &Request) -> Script {
    let mut script = Script { beats: Vec::new(), stop: Stop::EndTurn };
    for line in message.lines() {
        follow(line.trim(), request, &mut script);
    }
    if script.beats.is_empty() {
        let said = bounded(message.trim());
        script
            .beats
            .push(Beat::Text(format!("{INTRODUCTION} You said: {said}\nSay help to see what I can do.")));
    }
    if script.beats.iter().any(|beat| matches!(beat, Beat::Call { .. })) {
        script.stop = Stop::ToolUse;
    }
    script
}

/// Follows one line; a line that is no instruction adds nothing.
fn follow(line: &str, request: &Request, script: &mut Script) {
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let word = word.to_lowercase();
    match (word.as_str(), rest.is_empty()) {
        ("help", true) => script.beats.push(Beat::Text(HELP.to_owned())),
        ("refuse", true) => end(script, "I am scripted to decline this.", Stop::Refusal),
        ("ramble", true) => end(script, &"and so on, ".repeat(40), Stop::MaxTokens),
        ("count", false) => count(rest, script),
        ("think", false) => {
            script.beats.push(Beat::Thinking(format!("The script says to think about: {}. ", bounded(rest))));
            script
                .beats
                .push(Beat::Text(format!("{INTRODUCTION} I pretended to think about: {}", bounded(rest))));
        }
        ("call", false) => {
            let (tool, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            call(tool, arguments.trim(), request, script);
        }
        ("run", false) => call("terminal", &json!({ "command": rest }).to_string(), request, script),
        ("ask", false) => ask(rest, request, script),
        ("remember", false) => {
            let arguments = json!({ "action": "add", "target": "memory", "content": rest });
            call("memory", &arguments.to_string(), request, script);
        }
        ("delegate", false) => call("delegate_task", &json!({ "goal": rest }).to_string(), request, script),
        ("todo", false) => call("todo", &todo(rest).to_string(), request, script),
        ("secret", false) => {
            let arguments = json!({ "name": rest, "prompt": format!("The demo asks for {rest}.") });
            call("request_secret", &arguments.to_string(), request, script);
        }
        _ => {}
    }
}

fn end(script: &mut Script, text: &str, stop: Stop) {
    script.beats.push(Beat::Text(text.to_owned()));
    script.stop = stop;
}

fn count(rest: &str, script: &mut Script) {
    let rest = rest.to_lowercase();
    let digits = rest.strip_prefix("to ").unwrap_or_default().trim().trim_end_matches(['.', '!']);
    let last = digits.parse::<u32>().unwrap_or(0).min(MAX_COUNT);
    for number in 1..=last {
        if number > 1 {
            script.beats.push(Beat::Pause(BETWEEN_NUMBERS));
        }
        script.beats.push(Beat::Text(format!("{number} ")));
    }
}

fn ask(rest: &str, request: &Request, script: &mut Script) {
    let (first, question) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if !first.eq_ignore_ascii_case("me") || question.trim().is_empty() {
        return;
    }
    let (question, choices) = match question.split_once('?') {
        Some((question, choices)) => (format!("{}?", question.trim()), choices),
        None => (question.trim().to_owned(), ""),
    };
    let choices: Vec<&str> = choices.split('|').map(str::trim).filter(|choice| !choice.is_empty()).collect();
    let mut arguments = json!({ "question": question });
    if !choices.is_empty() {
        arguments["choices"] = json!(choices);
    }
    call("clarify", &arguments.to_string(), request, script);
}

fn todo(rest: &str) -> Value {
    let items = rest.split(',').map(str::trim).filter(|item| !item.is_empty()).enumerate();
    let todos: Vec<Value> = items
        .map(|(index, item)| json!({ "id": (index + 1).to_string(), "content": item, "status": "pending" }))
        .collect();
    json!({ "todos": todos })
}

fn call(tool: &str, arguments: &str, request: &Request, script: &mut Script) {
    if request.tools.iter().any(|offered| offered.name == tool) {
        script.beats.push(Beat::Call { name: tool.to_owned(), arguments: arguments.to_owned() });
        return;
    }
    let offered: Vec<&str> = request.tools.iter().map(|offered| offered.name.as_str()).collect();
    let offered = if offered.is_empty() { "none".to_owned() } else { offered.join(", ") };
    script.beats.push(Beat::Text(format!("The tool {tool} is not offered to me. On offer: {offered}.\n")));
}

#[cfg(test)]
mod tests {
    use super::*;
    use petasos_core::event::Block;

    fn request(message: &str, tools: &[&str]) -> Request {
        let tools = tools.iter().map(|name| ToolSpec {
            name: (*name).to_owned(),
            description: String::new(),
            input_schema: json!({ "type": "object" }).into(),
        });
        Request {
            model: "fast".to_owned(),
            system: String::new(),
            messages: vec![Message::User(vec![Block::text(message)])],
            tools: tools.map(Into::into).collect(),
            settings: petasos_core::model_settings::ModelSettings::default(),
        }
    }

    fn calls(message: &str, tools: &[&str]) -> Vec<(String, Value)> {
        let script = script(&request(message, tools));
        assert_eq!(script.stop, Stop::ToolUse, "{script:?}");
        let calls = script.beats.into_iter().filter_map(|beat| match beat {
            Beat::Call { name, arguments } => Some((name, serde_json::from_str(&arguments).unwrap())),
            _ => None,
        });
        calls.collect()
    }

    fn text(message: &str) -> String {
        let beats = script(&request(message, &["todo"])).beats.into_iter();
        beats.filter_map(|beat| if let Beat::Text(text) = beat { Some(text) } else { None }).collect()
    }

    #[test]
    fn it_says_that_it_is_scripted() {
        for message in ["Hello", "help", "HELP", "think about hats", ""] {
            assert!(text(message).contains("scripted, no AI, no network"), "{message}");
        }
        assert!(text("Hello there").contains("You said: Hello there"));
    }

    #[test]
    fn each_line_can_call_a_tool() {
        let called = calls("call a {\"x\": 1}\nCall b {}\nrun ls -l", &["a", "b", "terminal"]);
        let expected = [("a", json!({"x": 1})), ("b", json!({})), ("terminal", json!({"command": "ls -l"}))];
        assert_eq!(called, expected.map(|(name, arguments)| (name.to_owned(), arguments)));
    }

    #[test]
    fn the_shortcuts_fill_in_arguments() {
        let first = |message, tool: &str| calls(message, &[tool]).remove(0).1;
        assert_eq!(
            first("ask me Which colour? red | blue", "clarify"),
            json!({"question": "Which colour?", "choices": ["red", "blue"]})
        );
        assert_eq!(first("ask me why", "clarify"), json!({"question": "why"}));
        assert_eq!(first("delegate read it", "delegate_task"), json!({"goal": "read it"}));
        assert_eq!(first("remember I like tea", "memory")["content"], "I like tea");
        assert_eq!(first("todo wash, dry", "todo")["todos"][1]["content"], "dry");
    }

    #[test]
    fn a_tool_that_is_not_offered_is_named_with_those_that_are() {
        assert_eq!(text("run ls"), "The tool terminal is not offered to me. On offer: todo.\n");
    }

    #[test]
    fn a_routine_gets_output_that_fits() {
        let mut request = request(r#"{"applicant":"Ada"}"#, &[]);
        let output = json!({ "type": "object", "required": ["n"], "properties": { "n": { "minimum": 3, "type": "integer" } } });
        let spec = |description: &str, output: Value| ToolSpec {
            name: EMIT_OUTPUT.to_owned(),
            description: description.to_owned(),
            input_schema: json!({ "type": "object", "properties": { "output": output } }).into(),
        };
        let described = format!("The output must fit this JSON Schema: {output}");
        for spec in [spec("Hands in.", output), spec(&described, json!({ "type": "object" }))] {
            request.tools = std::iter::once(spec).map(Into::into).collect();
            let script = script(&request);
            assert_eq!(script.stop, Stop::ToolUse);
            let Some(Beat::Call { name, arguments }) = script.beats.last() else { panic!("{script:?}") };
            assert_eq!((name.as_str(), arguments.as_str()), (EMIT_OUTPUT, r#"{"output":{"n":3}}"#));
        }
    }

    #[test]
    fn counting_refusing_and_rambling() {
        assert_eq!(text("count to 3"), "1 2 3 ");
        assert_eq!(script(&request("refuse", &[])).stop, Stop::Refusal);
        assert_eq!(script(&request("Ramble", &[])).stop, Stop::MaxTokens);
    }

    #[test]
    fn tool_results_are_reported_in_bounds() {
        let mut request = request("run ls", &["terminal"]);
        let outcome = ToolOutcome {
            id: "tu_1".to_owned(),
            name: "terminal".to_owned(),
            text: "x".repeat(9_000),
            images: Vec::new(),
            is_error: true,
        };
        request.messages.push(Message::ToolResults(vec![outcome]));
        let script = script(&request);
        assert_eq!(script.stop, Stop::EndTurn);
        let Some(Beat::Text(text)) = script.beats.first() else { panic!("{script:?}") };
        assert!(text.starts_with("terminal failed: xxx") && text.chars().count() < 600);
    }
}
