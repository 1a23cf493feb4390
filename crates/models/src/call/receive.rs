//! Reads an answer over HTTP, in whatever form it comes.

use std::sync::atomic::Ordering;
use std::time::Duration;

use petasos_core::model::Answer;
use petasos_net::{Response, sse};
use serde_json::Value;
use tokio::time::Instant;

use super::Call;
use crate::framing::{End, Flaw, Framing};
use crate::generate::Emitter;
use crate::silence::Silence;
use crate::wire::{Problem, Reader, Step};
use crate::{Delta, Error};

/// How long the end marker may come after the model has stopped. Some proxies never send it, and keep the connection
/// alive.
const END_MARKER_TIME: Duration = Duration::from_secs(10);

impl Call {
    /// Reads the answer while it arrives, and hands on what it says. Sets `ended` if the body ended in good order.
    pub(super) async fn receive(
        &self,
        mut response: Response,
        reader: &mut dyn Reader,
        emitter: &Emitter<Result<Delta, Error>>,
        streamed: &mut bool,
        ended: &mut bool,
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
                end => {
                    let lost = match end {
                        Some(Ok(_)) => {
                            *ended = true;
                            None
                        }
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
}
