//! Carries out one model call: hooks, request, stream, and what is to be done about the answer.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{FutureExt, StreamExt};
use petasos_core::context;
use petasos_core::event::{Block, Failure};
use petasos_core::model::{Answer, AnswerPart, Message, Request, Stop};
use petasos_core::model_settings::ModelSettings;
use petasos_core::step::{Input, PlannedAnswer};
use petasos_hooks::{HookEvent, Observation, TurnStart};
use petasos_models::Delta;
use tokio::sync::mpsc;
use tracing::Instrument;

use crate::actor::Report;
use crate::ended_calls::EndedCalls;
use crate::feed::Feed;
use crate::plan;
use crate::reader::LiveKind;
use crate::surroundings::Surroundings;
use crate::{observers, outside_results, secrets, spending};

/// Pieces of an answer that are taken at once.
const MAX_READY: usize = 256;

/// One model call.
pub(crate) struct ModelCall {
    pub(crate) around: Surroundings,
    pub(crate) feed: Arc<Feed>,
    /// The number under which the feed knows it.
    pub(crate) live_call: u64,
    /// The system prompt.
    pub(crate) system: String,
    pub(crate) messages: Vec<Message>,
    /// Calls whose results came from outside and were not read by the model yet.
    pub(crate) outside_results: Vec<String>,
    /// The place of the message that opened the turn.
    pub(crate) turn_message: Option<usize>,
    /// What the user said to open the turn.
    pub(crate) user_message: String,
    /// Which call of the turn it is.
    pub(crate) call: u32,
    /// Whether the turn is the first of its session.
    pub(crate) is_first_turn: bool,
    /// Ends of tool calls that hooks are told first.
    pub(crate) ended_calls: EndedCalls,
    /// What `pre_llm_call` said in this turn; none if it has yet to be asked.
    pub(crate) injected: Option<String>,
    /// Secrets that the user has given and that are here no more.
    pub(crate) lost_secrets: Vec<String>,
    /// The model that is asked, or that was asked last.
    pub(crate) model: String,
    pub(crate) effect: u64,
    pub(crate) reports: mpsc::UnboundedSender<Report>,
}

/// Carries out a model call and reports what came of it, whatever happens on the way.
pub(crate) async fn run(mut job: ModelCall) {
    let (session_id, model, call) = (&job.around.header.id, job.around.model(), job.call);
    let span = tracing::info_span!("model_call", %session_id, model, call);
    let executed = AssertUnwindSafe(job.execute()).catch_unwind().instrument(span).await;
    let outcome = executed.unwrap_or_else(|_| {
        let message = "The model call ended in a bug of petasos; please report it.".to_owned();
        Err(Failure { code: "internal".to_owned(), message })
    });
    let input = Input::ModelFinished { call: job.call, model: job.model, outcome };
    // Nobody listens if the session was stopped in the meantime.
    drop(job.reports.send(Report::Ended { effect: job.effect, input, injected: job.injected }));
}

impl ModelCall {
    async fn execute(&mut self) -> Result<PlannedAnswer, Failure> {
        let hooks = Arc::clone(&self.around.shared.hooks);
        if self.is_first_turn && self.call == 1 {
            self.observe(Observation::SessionStart);
            if hooks.wants(HookEvent::PreLlmCall) {
                let told = observers::told(&self.around.shared, &self.around.header.id);
                // What takes longer does not delay the turn.
                let _ = tokio::time::timeout(self.around.shared.hook_head_start, told).await;
            }
        }
        let mut durations = HashMap::new();
        while let Some(ended) = self.ended_calls.next(&self.around.turn.turn_id) {
            if let Observation::PostToolCall { tool_use_id, duration_ms, .. } = &ended {
                durations.insert(tool_use_id.clone(), *duration_ms);
            }
            observers::tell_and_wait(&self.around.shared, &self.around.turn, ended).await;
        }
        let (around, ids) = (&self.around, &self.outside_results);
        for transformed in
            outside_results::transform(around, &self.reports, ids, &self.messages, &durations).await
        {
            context::replace_result(&mut self.messages, &transformed);
        }
        if self.injected.is_none() {
            let start = TurnStart {
                user_message: &self.user_message,
                history: &self.messages,
                is_first_turn: self.is_first_turn,
            };
            self.injected = Some(hooks.pre_llm_call(&self.around.turn, start).await.unwrap_or_default());
        }
        let mut answer = self.ask().await?;
        if answer.stop == Stop::Refusal {
            // They are not made, so no hook hears of them.
            answer.parts.retain(|part| !matches!(part, AnswerPart::ToolCall { .. }));
        }
        let has_calls = answer.parts.iter().any(|part| matches!(part, AnswerPart::ToolCall { .. }));
        if !has_calls {
            for part in &mut answer.parts {
                if let AnswerPart::Text(text) = part
                    && let Some(instead) = hooks.transform_llm_output(&self.around.turn, text).await
                {
                    *text = instead;
                }
            }
        }
        Ok(plan::plan(&self.around.planner().await, answer).await)
    }

    /// Asks the model, and those that stand in for it in their order while one fails before it has said anything.
    async fn ask(&mut self) -> Result<Answer, Failure> {
        let Surroundings { shared, header, allowances, .. } = &self.around;
        spending::check(shared, header, allowances).await?;
        let settings = self.around.model_settings();
        let mut request = Request {
            model: String::new(),
            system: self.around.planner().await.with_instructions(std::mem::take(&mut self.system)),
            messages: self.messages_with_injected().await,
            tools: self.around.planner().await.offered(),
            settings,
        };
        let mut others = request.settings.fallback_models.take().unwrap_or_default().into_iter();
        let mut failed: Vec<String> = Vec::new();
        loop {
            let other = others.next();
            // The last one to be asked takes the request as it is.
            let asked =
                if other.is_some() { request.clone() } else { std::mem::replace(&mut request, nothing()) };
            let Unanswered { mut failure, falls_back } = match self.ask_one(asked).await {
                Ok(answer) => return Ok(answer),
                Err(unanswered) => unanswered,
            };
            failed.push(std::mem::take(&mut self.model));
            match other.filter(|_| falls_back) {
                Some(other) => {
                    tracing::warn!(
                        session_id = %self.around.header.id, failed = failed.last(), instead = other,
                        error = failure.message, "another model is asked"
                    );
                    self.model = other;
                }
                None => {
                    self.model = failed.last().cloned().unwrap_or_default();
                    if failed.len() > 1 {
                        failure.message.push_str(&format!(" (models tried: {})", failed.join(", ")));
                    }
                    return Err(failure);
                }
            }
        }
    }

    /// Asks one model, as often as the provider's settings allow.
    async fn ask_one(&self, request: Request) -> Result<Answer, Unanswered> {
        let resolved = self.around.shared.models.resolve(&self.model);
        let (model, name) = resolved.map_err(|error| Unanswered::by(error, true))?;
        let request = Request { model: name, ..request };
        let (messages, tools) = (request.messages.len(), request.tools.len());
        self.observe(Observation::PreApiRequest { call: self.call, messages, tools });
        let started = Instant::now();
        let mut stream = model.stream(request).ready_chunks(MAX_READY);
        let live_call = self.live_call;
        let (mut silent, mut said) = (true, false);
        let mut announces_text = self.around.shows_typing();
        while let Some(ready) = stream.next().await {
            let is_complete = ready.iter().any(|delta| matches!(delta, Ok(Delta::Finished(_)) | Err(_)));
            for delta in joined(ready) {
                if announces_text
                    && !is_complete
                    && matches!(&delta, Ok(Delta::Text(text)) if !text.is_empty())
                {
                    announces_text = false;
                    // Nobody listens if the session was stopped in the meantime.
                    drop(self.reports.send(Report::TextBegan { call: self.call }));
                }
                said |= matches!(delta, Ok(Delta::Thinking(_) | Delta::Text(_)));
                if silent && said {
                    silent = false;
                    self.around.shared.metrics.first_token(&self.model, started.elapsed());
                }
                match delta {
                    Ok(Delta::Thinking(text)) => self.feed.say(live_call, LiveKind::Thinking, &text),
                    Ok(Delta::Text(text)) => self.feed.say(live_call, LiveKind::Text, &text),
                    Ok(Delta::Retrying { error, reset, attempt }) => {
                        tracing::warn!(session_id = %self.around.header.id, attempt, error, "the model call is tried again");
                        if reset {
                            said = false;
                            self.feed.take_back(live_call);
                        }
                        let (call, message) = (self.call, error);
                        self.observe(Observation::ApiRequestError { call, message, retrying: true });
                    }
                    Ok(Delta::Finished(mut answer)) => {
                        let catalog = self.around.shared.models.catalog();
                        answer.usage.cost_nanos = catalog.cost_nanos(&self.model, &answer.usage);
                        self.finished(&answer, started.elapsed());
                        return Ok(answer);
                    }
                    Err(error) => {
                        let (call, message) = (self.call, error.to_string());
                        self.observe(Observation::ApiRequestError { call, message, retrying: false });
                        // It will be in no message.
                        self.feed.take_back(live_call);
                        let is_too_long = error.code == petasos_models::Error::CONTEXT_TOO_LONG;
                        let falls_back = !said && !error.began && !is_too_long;
                        return Err(Unanswered::by(error, falls_back));
                    }
                }
            }
            // Whoever shows it comes first.
            tokio::task::yield_now().await;
        }
        let message = format!("{} ended its answer without finishing it.", self.model);
        let failure = Failure { code: petasos_models::Error::BAD_RESPONSE.to_owned(), message };
        Err(Unanswered { failure, falls_back: !said })
    }

    fn finished(&self, answer: &Answer, took: Duration) {
        self.around.shared.metrics.model_call(&self.model, took);
        let duration_ms = took.as_millis().try_into().unwrap_or(u64::MAX);
        self.observe(Observation::PostApiRequest { call: self.call, usage: answer.usage, duration_ms });
    }

    fn observe(&self, observation: Observation) {
        observers::tell(&self.around.shared, self.around.turn.clone(), observation);
    }

    /// The conversation, with what stays out of the log: to the message of this turn belongs what hooks said, and which
    /// tools are missing; to its end, which secrets are.
    async fn messages_with_injected(&mut self) -> Vec<Message> {
        let mut messages = std::mem::take(&mut self.messages);
        let missing = plan::missing_text(self.around.planner().await.mcp).map(|text| format!("[{text}]"));
        let injected = self.injected.iter().filter(|text| !text.is_empty()).chain(&missing);
        if let Some(Message::User(content)) = self.turn_message.and_then(|index| messages.get_mut(index)) {
            content.extend(injected.map(|text| Block::text(format!("\n\n{text}"))));
        }
        // Last, because the turn itself may hold the words that it was given.
        if let Some(lost) = secrets::lost_text(&self.lost_secrets) {
            add_to_last(&mut messages, &format!("\n\n[{lost}]"));
        }
        messages
    }
}

/// Adds a text to what the model reads last.
fn add_to_last(messages: &mut [Message], text: &str) {
    match messages.last_mut() {
        Some(Message::User(content)) => content.push(Block::text(text)),
        Some(Message::ToolResults(outcomes)) => {
            outcomes.last_mut().into_iter().for_each(|outcome| outcome.text.push_str(text));
        }
        Some(Message::Assistant(_)) | None => {}
    }
}

/// Puts pieces that came together into one.
fn joined(ready: Vec<Result<Delta, petasos_models::Error>>) -> Vec<Result<Delta, petasos_models::Error>> {
    let mut joined: Vec<Result<Delta, petasos_models::Error>> = Vec::with_capacity(1);
    for delta in ready {
        match (joined.last_mut(), delta) {
            (Some(Ok(Delta::Text(text))), Ok(Delta::Text(more))) => text.push_str(&more),
            (Some(Ok(Delta::Thinking(text))), Ok(Delta::Thinking(more))) => text.push_str(&more),
            (_, delta) => joined.push(delta),
        }
    }
    joined
}

/// Why a model did not answer.
struct Unanswered {
    failure: Failure,
    /// Whether another model may be asked in its place.
    falls_back: bool,
}

impl Unanswered {
    fn by(error: petasos_models::Error, falls_back: bool) -> Self {
        let failure = Failure { code: error.code.to_owned(), message: error.message };
        Unanswered { failure, falls_back }
    }
}

/// Stands in for a request that was given away.
fn nothing() -> Request {
    Request {
        model: String::new(),
        system: String::new(),
        messages: Vec::new(),
        tools: Vec::new(),
        settings: ModelSettings::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_that_came_together_are_one() {
        let text = |text: &str| Ok(Delta::Text(text.to_owned()));
        let ready =
            vec![Ok(Delta::Thinking("h".into())), Ok(Delta::Thinking("m".into())), text("a"), text("b")];
        let texts: Vec<String> = joined(ready)
            .into_iter()
            .map(|delta| match delta {
                Ok(Delta::Thinking(text)) => format!("thinking {text}"),
                Ok(Delta::Text(text)) => text,
                other => format!("{other:?}"),
            })
            .collect();
        assert_eq!(texts, ["thinking hm", "ab"]);
    }
}
