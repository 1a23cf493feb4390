//! One attempt at one call over HTTP: what is sent, and to whom. How an answer is read is its child's.

mod receive;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures_util::stream::BoxStream;
use petasos_core::model::{Answer, Request, ToolSpec};
use petasos_net::{Client, Response};
use tokio::time::timeout;

use crate::generate::{Emitter, generate};
use crate::provider::{Failed, Provider};
use crate::refusals::{Refused, refused};
use crate::wire::{self, Body, Target};
use crate::{Delta, Error, Model, Settings, images, opaques, retry};

/// A model behind HTTP, whichever format its provider speaks.
pub(crate) struct HttpModel {
    pub(crate) provider: Provider,
    pub(crate) settings: Settings,
    pub(crate) client: Client,
    /// Whether it takes pictures.
    pub(crate) takes_images: bool,
    /// The most tokens that it can write, if the catalog knows.
    pub(crate) max_output_tokens: Option<u64>,
}

impl Model for HttpModel {
    fn stream(&self, mut request: Request) -> BoxStream<'static, Result<Delta, Error>> {
        if !self.takes_images {
            images::leave_out(&mut request);
        }
        opaques::keep_own(&mut request, &self.provider.name);
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
    tools: Vec<Arc<ToolSpec>>,
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
            tools: request.tools.clone(),
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
        let Body { json, left_out } = self.provider.config.kind.format().body(request, &self.target());
        self.body = json.into();
        self.left_out = left_out;
    }

    fn target(&self) -> Target<'_> {
        Target {
            base_url: &self.provider.config.base_url,
            max_output_tokens: self.max_output_tokens,
            drops: &self.drops,
            thinks_in_text: self.provider.config.thinks_in_text,
        }
    }

    /// Sends the request and reads the answer, once. Sets `streamed` as soon as something was emitted, and `unfinished`
    /// if the stream ended in order, with an answer, but did not say that this was the end.
    pub(crate) async fn attempt(
        &mut self,
        emitter: &Emitter<Result<Delta, Error>>,
        streamed: &mut bool,
        unfinished: &mut Option<Answer>,
    ) -> Result<Answer, Error> {
        self.has_begun.store(false, Ordering::Relaxed);
        let response = self.send().await?;
        let mut reader = wire::reader(self.provider.config.kind, &self.target());
        let mut ended = false;
        match self.receive(response, reader.as_mut(), emitter, streamed, &mut ended).await {
            Ok(answer) => Ok(self.finished(answer)),
            Err(error) => {
                let began = reader.size() > 0;
                let answer = if ended { reader.unfinished() } else { None };
                *unfinished = answer.map(|answer| self.finished(answer));
                Err(Error { began, ..error })
            }
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
            Err(_) => {
                let mut error = self.provider.silence(&self.model, patience, "did not answer");
                if let Some(proxy) = self.client.proxy_for(&url) {
                    error.message = format!("{}, asked through the proxy {proxy}", error.message);
                }
                Err(error)
            }
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

    /// Notes whose the answer is and what it was not asked with.
    fn finished(&self, mut answer: Answer) -> Answer {
        opaques::mark(&mut answer, &self.provider.name);
        wire::settle_calls(&mut answer, &self.tools);
        answer.left_out.clone_from(&self.left_out);
        answer
    }
}
