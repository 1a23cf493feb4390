//! What the tests share: a model behind the scripted server, and a reader of streams.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use petasos_core::event::Block;
use petasos_core::model::{Answer, AnswerPart, Message, Request, ToolSpec};
use petasos_models::{Delta, Error, Model, Models, ProviderConfig, ProviderKind, Settings};
use petasos_net::{Client, Options, backoff};
use petasos_testkit::model_server::ModelServer;
use serde_json::json;

pub(crate) const KEY: &str = "key-for-tests";

/// Retries at once, and gives up on silence soon.
pub(crate) fn quick() -> Settings {
    let retry = backoff::Policy {
        max_attempts: 3,
        base_delay: Duration::from_millis(1),
        max_delay: Duration::from_millis(5),
        max_total: Duration::from_secs(30),
    };
    Settings { retry, ..Settings::default() }
}

pub(crate) fn client() -> Client {
    Client::new(&Options::default())
}

/// A provider `test` of this kind at the scripted server.
pub(crate) fn models(kind: ProviderKind, server: &ModelServer, settings: Settings) -> Models {
    let base_url = match kind {
        ProviderKind::Anthropic => server.anthropic_base_url(),
        ProviderKind::Openai | ProviderKind::OpenaiResponses => server.openai_base_url(),
    };
    let mut config = ProviderConfig::new(kind, Some(KEY.into()));
    config.base_url = base_url;
    config.headers.insert("x-team".to_owned(), "hats".to_owned());
    Models::new(BTreeMap::from([("test".to_owned(), config)]), settings, client())
}

pub(crate) fn model(kind: ProviderKind, server: &ModelServer, settings: Settings) -> Arc<dyn Model> {
    models(kind, server, settings).resolve("test/m-1").unwrap().0
}

pub(crate) fn request(text: &str) -> Request {
    let tool = |name: &str| ToolSpec {
        name: name.to_owned(),
        description: "A tool".to_owned(),
        input_schema: json!({ "type": "object", "properties": {} }).into(),
    };
    Request {
        model: "m-1".to_owned(),
        system: "Be brief.".to_owned(),
        messages: vec![Message::User(vec![Block::text(text)])],
        tools: vec![tool("get_weather").into(), tool("get_time").into()],
        settings: petasos_core::model_settings::ModelSettings::default(),
    }
}

/// Everything that a stream brought.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) thinking: String,
    pub(crate) text: String,
    /// For each retry, whether the text before it had to be dropped.
    pub(crate) resets: Vec<bool>,
    pub(crate) answer: Option<Answer>,
    pub(crate) error: Option<Error>,
}

/// The parts of an answer without what is kept of calls for their vendor.
pub(crate) fn without_call_data(mut parts: Vec<AnswerPart>) -> Vec<AnswerPart> {
    for part in &mut parts {
        if let AnswerPart::ToolCall { opaque, .. } = part {
            *opaque = None;
        }
    }
    parts
}

/// Reads a call to its end, as a client would: a reset drops what was shown.
pub(crate) async fn run(model: &dyn Model, request: Request) -> Outcome {
    let mut outcome = Outcome::default();
    let mut stream = model.stream(request);
    while let Some(delta) = stream.next().await {
        assert!(outcome.answer.is_none() && outcome.error.is_none(), "something follows the end: {delta:?}");
        match delta {
            Ok(Delta::Thinking(more)) => outcome.thinking.push_str(&more),
            Ok(Delta::Text(more)) => outcome.text.push_str(&more),
            Ok(Delta::Retrying { attempt, reset, error }) => {
                assert_eq!(attempt as usize, outcome.resets.len() + 1);
                assert!(!error.is_empty() && !error.contains(KEY), "{error}");
                assert_eq!(reset, !(outcome.text.is_empty() && outcome.thinking.is_empty()));
                outcome.resets.push(reset);
                outcome.text.clear();
                outcome.thinking.clear();
            }
            Ok(Delta::Finished(answer)) => outcome.answer = Some(answer),
            Err(error) => {
                assert!(error.message.starts_with("test/m-1: ") && !error.message.contains(KEY), "{error}");
                outcome.error = Some(error);
            }
        }
    }
    assert!(outcome.answer.is_some() || outcome.error.is_some(), "the stream just ended");
    outcome
}

impl Outcome {
    pub(crate) fn answer(self) -> Answer {
        self.answer.unwrap_or_else(|| panic!("no answer but {:?}", self.error))
    }

    pub(crate) fn error(self) -> Error {
        self.error.unwrap_or_else(|| panic!("no error but {:?}", self.answer))
    }
}

pub(crate) fn text_part(text: &str) -> AnswerPart {
    AnswerPart::Text(text.to_owned())
}

pub(crate) fn call_part(name: &str, arguments: &str) -> AnswerPart {
    AnswerPart::ToolCall { name: name.to_owned(), arguments: arguments.to_owned(), opaque: None }
}
