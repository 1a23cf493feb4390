//! Tries a model: a small call, a tool call, and a picture where it takes any.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use petasos_core::event::Block;
use petasos_core::model::{Answer, AnswerPart, Message, Request, Stop, ToolSpec};
use petasos_core::model_settings::ModelSettings;
use petasos_models::{Delta, Model, Models, Settings};
use serde_json::{Value, json};

use crate::table::short;

/// How long one of the calls may take. A local server may have to read its model from the disk first.
const CALL_TIME: Duration = Duration::from_secs(180);
/// The most of what a model says that is shown.
const MAX_SHOWN: usize = 80;
const TOOL: &str = "report_result";
/// A red square of 64 by 64.
const PICTURE: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAIAAAAlC+aJAAAAS0lEQVR42u3PQQkAAAgAsetfWiP4FgYrsKZeS0BAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEDgsqnc8OJg6Ln3AAAAAElFTkSuQmCC";

/// What came of a call.
pub(super) enum Outcome {
    Ok(String),
    Failed(String),
    Skipped(String),
}

impl Outcome {
    pub(super) fn status(&self) -> &'static str {
        match self {
            Outcome::Ok(_) => "ok",
            Outcome::Failed(_) => "failed",
            Outcome::Skipped(_) => "skipped",
        }
    }

    pub(super) fn detail(&self) -> &str {
        match self {
            Outcome::Ok(text) | Outcome::Failed(text) | Outcome::Skipped(text) => text,
        }
    }
}

/// The bounds of these calls: whoever looks at the answer wants the first error, not the last.
pub(super) fn settings(mut settings: Settings) -> Settings {
    settings.retry.max_attempts = 1;
    settings.time_limit = settings.time_limit.min(CALL_TIME);
    settings
}

/// Makes the calls, each named by what it tries. After a first call that failed, the others would only fail too.
pub(super) async fn run(models: &Models, name: &str) -> Vec<(&'static str, Outcome)> {
    let (model, own_name) = match models.resolve(name) {
        Ok(found) => found,
        Err(error) => return vec![("text", Outcome::Failed(error.to_string()))],
    };
    let text = text(model.as_ref(), &own_name).await;
    if matches!(text, Outcome::Failed(_)) {
        return vec![("text", text)];
    }
    let tool = tool(model.as_ref(), &own_name).await;
    let picture = match models.takes_images(name) {
        true => picture(model.as_ref(), &own_name).await,
        false => {
            Outcome::Skipped("it takes no pictures; say `images: true` in the catalog if it does".to_owned())
        }
    };
    vec![("text", text), ("tool call", tool), ("picture", picture)]
}

async fn text(model: &dyn Model, name: &str) -> Outcome {
    let said = ask(model, request(name, vec![Block::text("Say hello in one short sentence.")])).await;
    outcome(said, "it said nothing")
}

async fn picture(model: &dyn Model, name: &str) -> Outcome {
    let question = Block::text("Which colour has this picture? Answer with one word.");
    let picture = Block::Image { url: PICTURE.to_owned() };
    outcome(ask(model, request(name, vec![question, picture])).await, "it said nothing")
}

async fn tool(model: &dyn Model, name: &str) -> Outcome {
    let arguments = json!({ "ok": true });
    // The demo model reads this line as an instruction, and so does any other.
    let line = format!("call {TOOL} {arguments}");
    let schema =
        json!({ "type": "object", "properties": { "ok": { "type": "boolean" } }, "required": ["ok"] });
    let tool = ToolSpec {
        name: TOOL.to_owned(),
        description: "Reports the result of a test. Call it when you are asked to.".to_owned(),
        input_schema: schema.into(),
    };
    let mut request = request(name, vec![Block::text(line)]);
    request.tools.push(Arc::new(tool));
    let answer = match ask(model, request).await {
        Ok(answer) => answer,
        Err(problem) => return Outcome::Failed(problem),
    };
    let called = answer.parts.iter().find_map(|part| match part {
        AnswerPart::ToolCall { name, arguments, .. } => Some((name, arguments)),
        _ => None,
    });
    match called {
        None => Outcome::Failed(format!(
            "it answered without calling the tool ({}); agents need a model that calls tools",
            shown(&answer)
        )),
        Some((name, _)) if name != TOOL => {
            Outcome::Failed(format!("it called {}, which is not there", short(name, MAX_SHOWN)))
        }
        Some((_, arguments))
            if !serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object()) =>
        {
            Outcome::Failed(format!("its arguments are no JSON object: {}", short(arguments, MAX_SHOWN)))
        }
        Some((_, arguments)) => Outcome::Ok(format!("called {TOOL} with {}", short(arguments, MAX_SHOWN))),
    }
}

fn request(name: &str, content: Vec<Block>) -> Request {
    Request {
        model: name.to_owned(),
        system: "You are being tried out. Do exactly what you are asked to, and nothing else.".to_owned(),
        messages: vec![Message::User(content)],
        tools: Vec::new(),
        settings: ModelSettings::default(),
    }
}

async fn ask(model: &dyn Model, request: Request) -> Result<Answer, String> {
    let mut deltas = model.stream(request);
    let mut failed = None;
    while let Some(delta) = deltas.next().await {
        match delta {
            Ok(Delta::Finished(answer)) => return Ok(answer),
            Ok(_) => {}
            Err(error) => failed = Some(format!("{error} ({})", error.code)),
        }
    }
    Err(failed.unwrap_or_else(|| "the answer did not end".to_owned()))
}

fn outcome(answer: Result<Answer, String>, silent: &str) -> Outcome {
    match answer {
        Err(problem) => Outcome::Failed(problem),
        Ok(answer) if answer.stop == Stop::Refusal => Outcome::Failed("it declined".to_owned()),
        Ok(answer) => match shown(&answer) {
            said if said.is_empty() => Outcome::Failed(silent.to_owned()),
            said => Outcome::Ok(said),
        },
    }
}

/// The text of an answer, on one short line.
fn shown(answer: &Answer) -> String {
    let texts = answer.parts.iter().filter_map(|part| match part {
        AnswerPart::Text(text) => Some(text.as_str()),
        _ => None,
    });
    short(&texts.collect::<String>(), MAX_SHOWN)
}
