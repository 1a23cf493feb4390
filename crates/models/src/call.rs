//! One attempt at one call over HTTP.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use petasos_core::model::{Answer, AnswerPart, AssistantPart, Message, Opaque, Request};
use petasos_net::{Client, Response, sse};
use serde_json::Value;
use tokio::time::{Instant, timeout};

use crate::framing::{End, Flaw, Framing};
use crate::generate::{Emitter, generate};
use crate::provider::{Failed, Provider};
use crate::refusals::{Refused, refused};
use crate::silence::Silence;
use crate::wire::{Body, Problem, Reader, Step, Target};
use crate::{Delta, Error, Model, Settings, images, retry};

/// How long the end marker may come after the model has stopped. Some proxies never send it, and keep the connection
/// alive.
const END_MARKER_TIME: Duration = Duration::from_secs(10);

/// A model behind HTTP, whichever format its provider speaks.
pub(crate) struct HttpModel {
    pub(crate) provider: Provider,
    pub(crate) settings: Settings,
    pub(crate) client: Client,
    /// The most tokens that it can write, if the catalog knows.
    pub(crate) max_output_tokens: Option<u64>,
}

impl Model for HttpModel {
    fn stream(&self, mut request: Request) -> BoxStream<'static, Result<Delta, Error>> {
        if !self.provider.config.images {
            images::leave_out(&mut request);
        }
        keep_from_others(&mut request, &self.provider.name);
        let call = Call::new(self, request);
        generate(|emitter| retry::run(call, emitter))
    }
}

/// A call that is ready to be sent, as often as needed.
pub(crate) struct Call {
    pub(crate) provider: Provider,
    pub(crate) settings: Settings,
    pub(crate) model: String,
    /// Whether the answer of this attempt has begun.
    pub(crate) has_begun: AtomicBool,
    client: Client,
    max_output_tokens: Option<u64>,
    headers: Vec<(String, String)>,
    body: Bytes,
    left_out: Vec<&'static str>,
    /// Fields that are not sent, and those among them that the provider has refused just now.
    drops: Vec<&'static str>,
    refused: Vec<Refused>,
    /// Until the provider has taken it.
    request: Option<Request>,
}

impl Call {
    fn new(http: &HttpModel, request: Request) -> Self {
        let config = &http.provider.config;
        let mut headers = vec![("accept".to_owned(), "text/event-stream".to_owned())];
        headers.extend(config.kind.format().headers(config.api_key.as_ref()));
        // Of headers with the same name the last one is sent.
        headers.extend(config.headers.clone());
        let mut call = Call {
            provider: http.provider.clone(),
            settings: http.settings.clone(),
            model: request.model.clone(),
            has_begun: AtomicBool::new(false),
            client: http.client.clone(),
            max_output_tokens: http.max_output_tokens,
            headers,
            body: Bytes::new(),
            left_out: Vec::new(),
            drops: http.provider.refusals.of(&request.model),
            refused: Vec::new(),
            request: None,
        };
        call.write(&request);
        call.request = Some(request);
        call
    }

    /// Puts the request into the words of the format.
    fn write(&mut self, request: &Request) {
        let target = Target {
            provider: &self.provider.name,
            base_url: &self.provider.config.base_url,
            max_output_tokens: self.max_output_tokens,
            drops: &self.drops,
            thinks_in_text: false,
        };
        let Body { json, left_out } = self.provider.config.kind.format().body(request, &target);
        self.body = json.into();
        self.left_out = left_out;
    }

    /// Sends the request and reads the answer, once. Sets `streamed` as soon as something was emitted.
    pub(crate) async fn attempt(
        &mut self,
        emitter: &Emitter<Result<Delta, Error>>,
        streamed: &mut bool,
    ) -> Result<Answer, Error> {
        self.has_begun.store(false, Ordering::Relaxed);
        let response = self.send().await?;
        let mut reader = self.provider.config.kind.format().reader();
        match self.receive(response, reader.as_mut(), emitter, streamed).await {
            Ok(answer) => Ok(self.finished(answer)),
            Err(error) => Err(Error { began: reader.size() > 0, ..error }),
        }
    }

    async fn receive(
        &self,
        mut response: Response,
        reader: &mut dyn Reader,
        emitter: &Emitter<Result<Delta, Error>>,
        streamed: &mut bool,
    ) -> Result<Answer, Error> {
        let content_type = response.header("content-type").map(str::to_owned);
        let mut framing = Framing::new(content_type.as_deref());
        let (mut silence, mut steps) = (Silence::default(), Vec::new());
        let mut stopped = None;
        loop {
            // Until something was said, the model may be thinking in silence.
            let has_begun = reader.size() > 0;
            self.has_begun.store(has_begun, Ordering::Relaxed);
            let mut patience =
                if has_begun { self.settings.stall_timeout } else { self.settings.first_byte_timeout };
            if reader.has_stopped() {
                let stopped = *stopped.get_or_insert_with(Instant::now);
                patience = patience.min(END_MARKER_TIME.saturating_sub(stopped.elapsed()));
            }
            let (read, is_end) = match silence.bound(patience, response.chunk()).await {
                Some(Ok(Some(chunk))) => (self.read(&mut framing, &chunk, reader, &mut steps), false),
                ended => {
                    let lost = match ended {
                        Some(Ok(_)) => None,
                        Some(Err(error)) => Some(self.provider.network_error(&self.model, &error)),
                        None => Some(self.provider.silence(&self.model, patience, "sent nothing")),
                    };
                    (self.end(&mut framing, reader, &mut steps, lost), true)
                }
            };
            let read = read.map_err(|flaw| self.flaw(flaw, content_type.as_deref()));
            for step in steps.drain(..) {
                let delta = match step {
                    Step::Finished(answer) => {
                        if !is_end {
                            response.finish();
                        }
                        return Ok(answer);
                    }
                    Step::Thinking(text) => Delta::Thinking(text),
                    Step::Text(text) => Delta::Text(text),
                };
                *streamed = true;
                emitter.emit(Ok(delta)).await;
            }
            read?;
        }
    }

    /// Reads what the next bytes bring. Nothing counts after the end of an answer.
    fn read(
        &self,
        framing: &mut Framing,
        chunk: &[u8],
        reader: &mut dyn Reader,
        steps: &mut Vec<Step>,
    ) -> Result<(), Flaw<Error>> {
        framing.feed(chunk, |event| self.read_event(reader, &event, steps))
    }

    fn read_event(
        &self,
        reader: &mut dyn Reader,
        event: &sse::Event,
        steps: &mut Vec<Step>,
    ) -> Result<(), Error> {
        if matches!(steps.last(), Some(Step::Finished(_))) {
            return Ok(());
        }
        reader.read(event, steps).map_err(|problem| self.problem(&problem))?;
        self.bounded_size(reader)
    }

    /// Reads what the end of the body means: an answer if it is complete all the same, and otherwise why it was lost.
    fn end(
        &self,
        framing: &mut Framing,
        reader: &mut dyn Reader,
        steps: &mut Vec<Step>,
        lost: Option<Error>,
    ) -> Result<(), Flaw<Error>> {
        let end = framing.end(|event| self.read_event(reader, &event, steps));
        match (end, lost) {
            // A broken connection may have brought all of it.
            (Ok(End::Whole(answer)), _) => self.whole(&answer, reader, steps),
            (Ok(End::Stream), lost) => {
                if matches!(steps.last(), Some(Step::Finished(_))) {
                    return Ok(());
                }
                let may_close = lost.is_none() || reader.has_stopped();
                match may_close.then(|| reader.closed()).flatten() {
                    Some(answer) => steps.push(Step::Finished(answer)),
                    None => {
                        let lost = lost.unwrap_or_else(|| self.provider.closed_early(&self.model));
                        return Err(Flaw::Taken(lost));
                    }
                }
                Ok(())
            }
            (_, Some(lost)) => Err(Flaw::Taken(lost)),
            (Ok(End::Foreign(text)), None) => Err(Flaw::Foreign(text)),
            (Err(flaw), None) => Err(flaw),
        }
    }

    /// Reads an answer that came as a whole, or the error in its place.
    fn whole(
        &self,
        answer: &Value,
        reader: &mut dyn Reader,
        steps: &mut Vec<Step>,
    ) -> Result<(), Flaw<Error>> {
        if let Some(error) = self.provider.error_in(&self.model, answer) {
            return Err(Flaw::Taken(error));
        }
        let read = match reader.whole(answer, steps) {
            Ok(()) => self.bounded_size(reader).map_err(Flaw::Taken),
            Err(Problem::Reported { kind, .. }) if kind.is_empty() => Err(Flaw::Foreign(answer.to_string())),
            Err(Problem::Malformed(_)) => Err(Flaw::Foreign(answer.to_string())),
            Err(problem) => Err(Flaw::Taken(self.problem(&problem))),
        };
        if read.is_err() {
            steps.clear();
        }
        read
    }

    fn flaw(&self, flaw: Flaw<Error>, content_type: Option<&str>) -> Error {
        match flaw {
            Flaw::Foreign(text) => self.provider.not_a_stream(&self.model, content_type, &text),
            Flaw::Malformed(what) => self.problem(&Problem::Malformed(what)),
            Flaw::Taken(error) => error,
        }
    }

    /// Sends the request. Fields that the provider refuses by name are left out at once, as often as it names another.
    async fn send(&mut self) -> Result<Response, Error> {
        loop {
            let response = self.post().await?;
            if response.status() == 200 {
                for Refused { field, only_this_model } in self.refused.drain(..) {
                    self.provider.refusals.add(only_this_model.then_some(self.model.as_str()), field);
                }
                self.request = None;
                return Ok(response);
            }
            let failed = match timeout(self.settings.stall_timeout, Failed::read(response)).await {
                Ok(failed) => failed,
                // An error's text must not wait for a body that never comes.
                Err(_) => {
                    let patience = self.settings.stall_timeout;
                    let doing = "did not finish its error message";
                    return Err(self.provider.silence(&self.model, patience, doing));
                }
            };
            let is_refusal = matches!(failed.status, 400 | 422);
            if !is_refusal || !self.leave_out(&failed.body) {
                return Err(self.provider.status_error(&self.model, &failed));
            }
        }
    }

    async fn post(&self) -> Result<Response, Error> {
        let headers: Vec<(&str, &str)> = self.headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        let url = self.provider.url();
        let patience = self.settings.first_byte_timeout;
        match timeout(patience, self.client.post_json(&url, &headers, self.body.clone())).await {
            Ok(response) => response.map_err(|error| self.provider.network_error(&self.model, &error)),
            Err(_) => Err(self.provider.silence(&self.model, patience, "did not answer")),
        }
    }

    /// Writes the request without a field that the provider refuses; whether there is one that makes a difference.
    fn leave_out(&mut self, said: &str) -> bool {
        let Some(request) = self.request.take() else { return false };
        let before = self.body.clone();
        let mut has_changed = false;
        for refusal in refused(said) {
            if self.drops.contains(&refusal.field) {
                continue;
            }
            self.drops.push(refusal.field);
            self.write(&request);
            has_changed = self.body != before;
            if has_changed {
                self.refused.push(refusal);
                break;
            }
            self.drops.pop();
        }
        self.request = Some(request);
        has_changed
    }

    fn bounded_size(&self, reader: &dyn Reader) -> Result<(), Error> {
        let max = self.settings.max_output_chars;
        if reader.size() <= max {
            return Ok(());
        }
        let message = format!(
            "{}/{}: the answer has more than {max} characters. Ask for less, or limit max_output_tokens",
            self.provider.name, self.model
        );
        Err(Error::new(Error::OUTPUT_TOO_LARGE, message))
    }

    fn problem(&self, problem: &Problem) -> Error {
        self.provider.stream_problem(&self.model, problem)
    }

    /// Notes whose the answer is and what it was not asked with.
    fn finished(&self, mut answer: Answer) -> Answer {
        for part in &mut answer.parts {
            if let AnswerPart::Thinking { opaque: Some(opaque), .. }
            | AnswerPart::ToolCall { opaque: Some(opaque), .. } = part
            {
                opaque.provider = Some(self.provider.name.clone());
            }
        }
        answer.left_out.clone_from(&self.left_out);
        answer
    }
}

/// What one provider attached to its answers is nothing for another.
fn keep_from_others(request: &mut Request, provider: &str) {
    let is_for_another =
        |opaque: &mut Opaque| opaque.provider.as_deref().is_some_and(|owner| owner != provider);
    for message in &mut request.messages {
        let Message::Assistant(parts) = message else { continue };
        for part in parts {
            if let AssistantPart::Thinking { opaque, .. } | AssistantPart::ToolCall { opaque, .. } = part {
                opaque.take_if(is_for_another);
            }
        }
    }
}
