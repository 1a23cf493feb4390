//! For random turns the three modes tell the same story, and the history equals what was streamed.

use std::collections::BTreeMap;

use petasos_testkit::Reply;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use super::{App, call_ids, get_weather, named};

/// What the model does in one step.
#[derive(Debug, Clone)]
struct Step {
    thinking: Option<String>,
    text: Option<String>,
    calls: Vec<&'static str>,
    /// The first attempt breaks off.
    cut: bool,
}

/// How the application answers a pause.
#[derive(Debug, Clone, Copy)]
enum Answer {
    Grant,
    Deny,
    Result,
}

#[derive(Debug, Clone)]
struct Script {
    steps: Vec<Step>,
    answers: Vec<Answer>,
    also_says: bool,
}

fn scripts() -> impl Strategy<Value = Script> {
    let tool = prop_oneof![Just("web_search"), Just("todo"), Just("get_weather"), Just("nothing")];
    let words = "[a-zé°]{1,6}( [a-zé°]{1,6}){0,5}";
    let step = (prop::option::of(words), prop::option::of(words), vec(tool, 0..4), any::<bool>()).prop_map(
        |(thinking, text, calls, cut)| {
            // An answer without text and without calls is no answer, and is tried again.
            let text = text.or_else(|| calls.is_empty().then(|| "well".to_owned()));
            Step { thinking, text, calls, cut }
        },
    );
    let answer = prop_oneof![Just(Answer::Grant), Just(Answer::Deny), Just(Answer::Result)];
    (vec(step, 1..4), vec(answer, 12), any::<bool>()).prop_map(|(steps, answers, also_says)| Script {
        steps,
        answers,
        also_says,
    })
}

#[test]
fn all_modes_tell_the_same_story_and_so_does_the_history() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let app = runtime.block_on(App::start());
    let mut runner = TestRunner::new(Config { cases: 24, failure_persistence: None, ..Config::default() });
    let checked = runner.run(&scripts(), |script| {
        let told = ["none", "message", "delta"].map(|mode| runtime.block_on(play(&app, &script, mode)));
        for (mode, told) in ["none", "message", "delta"].into_iter().zip(&told) {
            prop_assert_eq!(&told.story, &told.history, "{} and its history", mode);
            prop_assert_eq!(&told.stops, &told.stops);
        }
        prop_assert_eq!(&told[0].story, &told[1].story);
        prop_assert_eq!(&told[0].story, &told[2].story);
        prop_assert_eq!(&told[0].stops, &told[1].stops);
        prop_assert_eq!(&told[0].stops, &told[2].stops);
        Ok(())
    });
    checked.unwrap();
}

/// What one mode told, and what the history says.
struct Told {
    story: Value,
    stops: Vec<Value>,
    history: Value,
}

async fn play(app: &App, script: &Script, mode: &str) -> Told {
    let tools = json!({ "tools": [{ "name": "web_search", "trust": true }, { "name": "todo" }] });
    let session = app.session_with(tools, json!({ "tools": [get_weather()] })).await;
    app.server.model.script(replies(script));
    let (mut story, mut stops) = (Vec::new(), Vec::new());
    let mut messages = vec![json!({ "role": "user", "content": "go" })];
    let mut answers = script.answers.iter();
    loop {
        let (stop, told) = turn(app, &session, mode, &messages).await;
        tell_sent(&messages, &told, &mut story);
        story.extend(told);
        stops.push(stop.clone());
        if stop != "tool_use" {
            break;
        }
        let pending = pending(&story);
        messages = pending
            .iter()
            .map(|(id, name)| answer(id, name, *answers.next().unwrap_or(&Answer::Deny)))
            .collect();
        if script.also_says {
            messages.push(json!({ "role": "user", "content": "hurry" }));
        }
    }
    let history = app.history(&session, "full").await;
    // The order in which results come in is the log's; each mode ran in a session of its own.
    Told { story: settled(json!(story)), stops, history: settled(history) }
}

fn replies(script: &Script) -> Vec<Reply> {
    let last = Step { thinking: None, text: Some("the end".to_owned()), calls: Vec::new(), cut: false };
    let mut replies = Vec::new();
    for step in script.steps.iter().chain([&last]) {
        let mut reply = Reply::empty();
        if let Some(thinking) = &step.thinking {
            reply = reply.and_thinking(thinking);
        }
        if let Some(text) = &step.text {
            reply = reply.and_text(text);
        }
        if !step.calls.is_empty() {
            reply = reply.and_tool_calls(step.calls.iter().map(|name| (*name, json!({ "todos": ["x"] }))));
        }
        if step.cut && (step.thinking.is_some() || step.text.is_some()) {
            replies.push(reply.clone().cut_after_chunks(2));
        }
        replies.push(reply);
        if step.calls.is_empty() {
            break;
        }
    }
    replies
}

/// One turn: why it stopped, and the messages that it told.
async fn turn(app: &App, session: &str, mode: &str, messages: &[Value]) -> (Value, Vec<Value>) {
    if mode == "none" {
        let body = app.turn(session, json!(messages)).await;
        return (body["stopReason"].clone(), body["messages"].as_array().unwrap().clone());
    }
    let mut frames = app.stream(session, mode, json!(messages)).await;
    assert_eq!(frames.remove(0).0, "turn_start");
    let (name, stop) = frames.pop().unwrap();
    assert_eq!(name, "turn_stop");
    (stop["stopReason"].clone(), rebuilt(frames))
}

/// What an application makes of a stream.
fn rebuilt(frames: Vec<(String, Value)>) -> Vec<Value> {
    let mut messages: Vec<Value> = Vec::new();
    for (name, data) in frames {
        let block = match name.as_str() {
            "text" | "text_delta" => {
                json!({ "type": "text", "text": data.get("text").unwrap_or(&data["delta"]) })
            }
            "thinking" | "thinking_delta" => {
                json!({ "type": "thinking", "thinking": data.get("thinking").unwrap_or(&data["delta"]) })
            }
            "tool_call" => {
                json!({ "type": "tool_use", "toolCallId": data["toolCallId"], "name": data["name"], "input": data["input"] })
            }
            "tool_result" => {
                messages.push(
                    json!({ "role": "tool", "toolCallId": data["toolCallId"], "content": data["content"] }),
                );
                continue;
            }
            other => panic!("{other}"),
        };
        let last = messages.last_mut().filter(|message| message["role"] == "assistant");
        let Some(blocks) = last.map(|message| message["content"].as_array_mut().unwrap()) else {
            messages.push(json!({ "role": "assistant", "content": [block] }));
            continue;
        };
        let field = match block["type"].as_str() {
            Some("text") => "text",
            Some("thinking") => "thinking",
            _ => "",
        };
        match blocks.last_mut().filter(|last| !field.is_empty() && last["type"] == block["type"]) {
            Some(last) => {
                let joined = format!("{}{}", last[field].as_str().unwrap(), block[field].as_str().unwrap());
                last[field] = json!(joined);
            }
            None => blocks.push(block),
        }
    }
    messages
}

/// Puts what the application sent where it belongs: results first, then what came of the others, then the user's words.
fn tell_sent(messages: &[Value], told: &[Value], story: &mut Vec<Value>) {
    let results = messages.iter().filter(|message| message["role"] == "tool").cloned();
    story.extend(results);
    let said = messages.iter().filter(|message| message["role"] == "user").cloned();
    let results = told.iter().take_while(|message| message["role"] == "tool").count();
    // Whether results of the step were told before the user is heard shows when both are put in order.
    let marker = said.map(|message| json!({ "after": results, "message": message }));
    story.extend(marker);
}

/// The calls that have no result yet.
fn pending(story: &[Value]) -> Vec<(String, String)> {
    let story = json!(story);
    let mut names = BTreeMap::new();
    for message in story.as_array().unwrap().iter().filter(|message| message["role"] == "assistant") {
        for block in
            message["content"].as_array().into_iter().flatten().filter(|block| block["type"] == "tool_use")
        {
            names.insert(
                block["toolCallId"].as_str().unwrap().to_owned(),
                block["name"].as_str().unwrap().to_owned(),
            );
        }
    }
    for message in story.as_array().unwrap().iter().filter(|message| message["role"] == "tool") {
        names.remove(message["toolCallId"].as_str().unwrap());
    }
    let order = call_ids(&story);
    order.into_iter().filter_map(|id| names.remove(&id).map(|name| (id, name))).collect()
}

fn answer(id: &str, name: &str, answer: Answer) -> Value {
    match answer {
        Answer::Grant if name != "get_weather" => {
            json!({ "role": "tool_permission", "toolCallId": id, "granted": true })
        }
        Answer::Deny => {
            json!({ "role": "tool_permission", "toolCallId": id, "granted": false, "reason": "no" })
        }
        Answer::Grant | Answer::Result => json!({ "role": "tool", "toolCallId": id, "content": "Rain" }),
    }
}

/// One form for what can be written in two: content as blocks, the results of a step by call, users after them.
fn settled(story: Value) -> Value {
    let mut messages: Vec<Value> = Vec::new();
    let mut waiting: Vec<(u64, Value)> = Vec::new();
    for message in story.as_array().unwrap() {
        if let Some(after) = message["after"].as_u64() {
            waiting.push((after, message["message"].clone()));
        } else {
            messages.push(message.clone());
            waiting.iter_mut().for_each(|(after, _)| *after = after.saturating_sub(1));
        }
        // A user's word stands right after the results that it waited for.
        while waiting.first().is_some_and(|(after, _)| *after == 0) {
            messages.push(waiting.remove(0).1);
        }
    }
    let mut seen = BTreeMap::new();
    let mut messages: Vec<Value> = messages.into_iter().map(|message| named(message, &mut seen)).collect();
    for message in &mut messages {
        if let Some(text) = message["content"].as_str().map(str::to_owned) {
            message["content"] = json!([{ "type": "text", "text": text }]);
        }
    }
    for run in messages.chunk_by_mut(|one, next| one["role"] == "tool" && next["role"] == "tool") {
        run.sort_by_key(|message| message["toolCallId"].as_str().unwrap_or_default().to_owned());
    }
    Value::Array(messages)
}
