//! One attempt at one call over HTTP.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use petasos_core::model::{Answer, Request, ToolSpec};
use petasos_net::{Client, Response, sse};
use tokio::time::timeout;

use crate::generate::{Emitter, generate};
use crate::provider::Provider;
use crate::silence::Silence;
use crate::wire::{self, Problem, Reader, Step, Target};
use crate::{Delta, Error, Model, Settings, images, opaques, retry};

/// A model behind HTTP, whichever format its provider speaks.
pub(crate) struct HttpModel {
    pub(crate) provider: Provider,
    pub(crate) settings: Settings,
    pub(crate) client: Client,
}

impl Model for HttpModel {
    fn stream(&self, mut request: Request) -> BoxStream<'static, Result<Delta, Error>> {
        if !self.provider.config.images {
            images::leave_out(&mut request);
        }
        opaques::keep_own(&mut request, &self.provider.name);
        let call = Call::new(self, &request);
        generate(|emitter| retry::run(call, emitter))
    }
}

/// A call that is ready to be sent, as often as needed.
pub(crate) struct Call {
    pub(crate) provider: Provider,
    pub(crate) settings: Settings,
    pub(crate) model: String,
    client: Client,
    headers: Vec<(String, String)>,
    body: Bytes,
    left_out: Vec<&'static str>,
    thinks_in_text: bool,
    tools: Vec<Arc<ToolSpec>>,
}

impl Call {
    fn new(http: &HttpModel, request: &Request) -> Self {
        let config = &http.provider.config;
        let format = config.kind.format();
        let mut headers = vec![("accept".to_owned(), "text/event-stream".to_owned())];
        headers.extend(format.headers(config.api_key.as_ref()));
        // Of headers with the same name the last one is sent.
        headers.extend(config.headers.clone());
        let target = Target {
            provider: &http.provider.name,
            base_url: &config.base_url,
            max_output_tokens: None,
            drops: &[],
            thinks_in_text: false,
        };
        let wire::Body { json, left_out } = format.body(request, &target);
        Call {
            provider: http.provider.clone(),
            settings: http.settings.clone(),
            model: request.model.clone(),
            client: http.client.clone(),
            headers,
            body: json.into(),
            left_out,
            thinks_in_text: target.thinks_in_text,
            tools: request.tools.clone(),
        }
    }

    /// Sends the request and reads the answer, once. Sets `streamed` as soon as something was emitted, and `unfinished`
    /// if the stream ended in order, with an answer, but did not say that this was the end.
    pub(crate) async fn attempt(
        &self,
        emitter: &Emitter<Result<Delta, Error>>,
        streamed: &mut bool,
        unfinished: &mut Option<Answer>,
    ) -> Result<Answer, Error> {
        let mut response = self.send().await?;
        let target = Target { thinks_in_text: self.thinks_in_text, ..Target::default() };
        let mut reader = wire::reader(self.provider.config.kind, &target);
        let mut decoder = sse::Decoder::default();
        let (mut silence, mut steps) = (Silence::default(), Vec::new());
        loop {
            // Until something was said, the model may be thinking in silence.
            let has_begun = reader.size() > 0;
            let patience =
                if has_begun { self.settings.stall_timeout } else { self.settings.first_byte_timeout };
            let chunk = match silence.bound(patience, response.chunk()).await {
                Some(chunk) => chunk.map_err(|error| self.provider.network_error(&self.model, &error))?,
                None => return Err(self.provider.silence(&self.model, patience, "sent nothing")),
            };
            let Some(chunk) = chunk else {
                if let Some(answer) = reader.closed() {
                    return Ok(self.finished(answer));
                }
                *unfinished = reader.unfinished().map(|answer| self.finished(answer));
                return Err(self.provider.closed_early(&self.model));
            };
            for event in decoder.feed(&chunk) {
                let event = event.map_err(|error| self.problem(&Problem::Malformed(error.to_string())))?;
                self.read(reader.as_mut(), &event, &mut steps)?;
                for step in steps.drain(..) {
                    let delta = match step {
                        Step::Finished(answer) => {
                            response.finish();
                            return Ok(self.finished(answer));
                        }
                        Step::Thinking(text) => Delta::Thinking(text),
                        Step::Text(text) => Delta::Text(text),
                    };
                    *streamed = true;
                    emitter.emit(Ok(delta)).await;
                }
            }
        }
    }

    /// The answer with everything that its reader does not know.
    fn finished(&self, mut answer: Answer) -> Answer {
        answer.left_out.clone_from(&self.left_out);
        opaques::mark(&mut answer, &self.provider.name);
        wire::settle_calls(&mut answer, &self.tools);
        answer
    }

    async fn send(&self) -> Result<Response, Error> {
        let headers: Vec<(&str, &str)> = self.headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        let url = self.provider.url();
        let patience = self.settings.first_byte_timeout;
        let response = match timeout(patience, self.client.post_json(&url, &headers, self.body.clone())).await
        {
            Ok(response) => response.map_err(|error| self.provider.network_error(&self.model, &error))?,
            Err(_) => return Err(self.provider.silence(&self.model, patience, "did not answer")),
        };
        if response.status() != 200 {
            return Err(self.bounded(self.provider.status_error(&self.model, response)).await);
        }
        let content_type = response.header("content-type").unwrap_or("text/event-stream");
        if !content_type.trim_start().to_lowercase().starts_with("text/event-stream") {
            return Err(self.bounded(self.provider.not_a_stream(&self.model, response)).await);
        }
        Ok(response)
    }

    /// An error's text must not wait for a body that never comes.
    async fn bounded(&self, reading: impl Future<Output = Error>) -> Error {
        let patience = self.settings.stall_timeout;
        match timeout(patience, reading).await {
            Ok(error) => error,
            Err(_) => self.provider.silence(&self.model, patience, "did not finish its error message"),
        }
    }

    fn read(&self, reader: &mut dyn Reader, event: &sse::Event, steps: &mut Vec<Step>) -> Result<(), Error> {
        reader.read(event, steps).map_err(|problem| self.problem(&problem))?;
        let max = self.settings.max_output_chars;
        if reader.size() > max {
            let message = format!(
                "{}/{}: the answer has more than {max} characters. Ask for less, or limit max_output_tokens",
                self.provider.name, self.model
            );
            return Err(Error::new(Error::OUTPUT_TOO_LARGE, message));
        }
        Ok(())
    }

    fn problem(&self, problem: &Problem) -> Error {
        self.provider.stream_problem(&self.model, problem)
    }
}
