//! Asks the person for what a turn waits for, and makes the events that answer it.

use anyhow::Result;
use serde_json::{Value, json};

use super::happening::arguments;
use super::input::{Input, Line, Remember};
use super::screen::Screen;
use crate::table::{field, plain, revealed, short};

const MAX_LINE: usize = 400;

/// What came of asking.
#[derive(Debug, PartialEq)]
pub(crate) enum Answers {
    /// The events to send.
    Given(Vec<Value>),
    /// The person wants the turn to end.
    Interrupted,
    /// There is nobody to ask any more.
    End,
}

/// One action in one line.
pub(crate) fn describe(action: &Value) -> String {
    let about = match field(action, "type").as_str() {
        "tool_confirmation" => {
            format!("permission to call {} {}", field(action, "tool"), arguments(&action["input"]))
        }
        "custom_tool" => format!("the result of {} {}", field(action, "tool"), arguments(&action["input"])),
        "clarify" => format!("an answer: {}{}", field(action, "question"), listed(action)),
        "sudo" => format!("a password for {} {}", field(action, "tool"), arguments(&action["input"])),
        "secret" => format!("the secret {}: {}", field(action, "name"), field(action, "question")),
        other => other.to_owned(),
    };
    format!("{} ({})", short(&about, MAX_LINE), plain(&field(action, "id")))
}

fn listed(action: &Value) -> String {
    let choices = choices(action);
    if choices.is_empty() { String::new() } else { format!(" [{}]", choices.join(" | ")) }
}

fn choices(action: &Value) -> Vec<String> {
    let choices = action["choices"].as_array().into_iter().flatten();
    choices.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The call that a person decides on, all of it: what is left out or hidden would be agreed to unseen.
fn call(action: &Value) -> String {
    revealed(format!("{} {}", field(action, "tool"), arguments(&action["input"])).trim_end())
}

/// Asks for everything that is pending.
pub(crate) async fn ask(actions: &[Value], input: &mut Input, screen: &mut Screen) -> Result<Answers> {
    let mut events = Vec::new();
    let mut denied = None;
    for action in actions {
        // A call that may not run needs no password, and the server takes none for it.
        if denied.is_some_and(|call| is_password_for(action, call)) {
            continue;
        }
        match ask_one(action, input, screen).await? {
            Answers::Given(given) => {
                denied = given.iter().any(|event| event["result"] == "deny").then_some(action);
                events.extend(given);
            }
            other => return Ok(other),
        }
    }
    Ok(Answers::Given(events))
}

/// Whether an action is the password of a call. It follows the question whether the call may run.
fn is_password_for(action: &Value, call: &Value) -> bool {
    action["type"] == "sudo" && ["tool", "input"].iter().all(|name| action[*name] == call[*name])
}

async fn ask_one(action: &Value, input: &mut Input, screen: &mut Screen) -> Result<Answers> {
    loop {
        input.forget_typed()?;
        let line = match field(action, "type").as_str() {
            "tool_confirmation" => {
                screen.line(&format!("? Allow {}", call(action)))?;
                if let Some(danger) = action["danger"].as_str() {
                    screen.line(&format!("  It is dangerous: {danger}"))?;
                }
                let prompt = "  y once, s this session, a always, n no: ";
                input.line(prompt, Remember::No).await?
            }
            "clarify" => {
                screen.line(&format!("? {}", field(action, "question")))?;
                for (index, choice) in choices(action).iter().enumerate() {
                    screen.line(&format!("  {}. {choice}", index + 1))?;
                }
                input.line("  a number or your own words, empty to skip: ", Remember::No).await?
            }
            "custom_tool" => {
                screen.line(&format!("? The result of {}", call(action)))?;
                input.line("  result: ", Remember::No).await?
            }
            "sudo" => {
                screen
                    .line(&format!("? The password for sudo: {}", revealed(&arguments(&action["input"]))))?;
                input.hidden("  password: ").await?
            }
            "secret" => {
                screen.line(&format!("? {} ({})", field(action, "question"), field(action, "name")))?;
                input.hidden("  value: ").await?
            }
            other => {
                screen.line(&format!("The turn waits for {other}, which this version cannot answer."))?;
                return Ok(Answers::End);
            }
        };
        match line {
            Line::Interrupted => return Ok(Answers::Interrupted),
            Line::End => return Ok(Answers::End),
            Line::Text(text) => match answer(action, &text) {
                Some(event) => return Ok(Answers::Given(vec![event])),
                None => screen.line("  Please answer y, s, a or n.")?,
            },
        }
    }
}

/// The event that answers an action; none if the text is no answer.
fn answer(action: &Value, text: &str) -> Option<Value> {
    let id = &action["id"];
    Some(match action["type"].as_str()? {
        "tool_confirmation" => {
            let (result, scope) = match text.trim().to_lowercase().as_str() {
                "y" | "yes" => ("allow", "once"),
                "s" | "session" => ("allow", "session"),
                "a" | "always" => ("allow", "always"),
                "n" | "no" => ("deny", "once"),
                _ => return None,
            };
            json!({ "type": "user.tool_confirmation", "tool_use_id": id, "result": result, "scope": scope })
        }
        "clarify" => {
            let choices = choices(action);
            let number = text.trim().parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            let answer = number.and_then(|index| choices.get(index)).map_or(text.trim(), String::as_str);
            json!({ "type": "user.clarify_result", "request_id": id, "answer": answer })
        }
        "custom_tool" => {
            let content = json!([{ "type": "text", "text": text }]);
            json!({ "type": "user.custom_tool_result", "tool_use_id": id, "content": content })
        }
        "sudo" => json!({ "type": "user.sudo_result", "request_id": id, "password": text }),
        "secret" => json!({ "type": "user.secret_result", "request_id": id, "value": text }),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_says_how_far_a_permission_goes() {
        let action =
            json!({ "id": "toolu_1", "type": "tool_confirmation", "tool": "todo", "input": { "a": 1 } });
        let scope =
            |text| answer(&action, text).map(|event| format!("{} {}", event["result"], event["scope"]));
        assert_eq!(scope("y").as_deref(), Some(r#""allow" "once""#));
        assert_eq!(scope("S").as_deref(), Some(r#""allow" "session""#));
        assert_eq!(scope(" always ").as_deref(), Some(r#""allow" "always""#));
        assert_eq!(scope("n").as_deref(), Some(r#""deny" "once""#));
        assert_eq!(scope("perhaps"), None);
        assert_eq!(describe(&action), r#"permission to call todo {"a":1} (toolu_1)"#);
    }

    #[test]
    fn a_number_chooses_and_words_are_words() {
        let action = json!({ "id": "req_1", "type": "clarify", "question": "Which?", "choices": ["A", "B"] });
        let said = |text| answer(&action, text).map(|event| event["answer"].clone());
        assert_eq!(said("2"), Some("B".into()));
        assert_eq!(said("3"), Some("3".into()));
        assert_eq!(said("0"), Some("0".into()));
        assert_eq!(said("neither"), Some("neither".into()));
        assert_eq!(said(""), Some("".into()));
        assert_eq!(describe(&action), "an answer: Which? [A | B] (req_1)");
    }
}
