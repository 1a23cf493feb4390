//! What an awake session does about runs: it starts those that wait for it, and ends the one under way.

use petasos_core::conversation::Mode;
use petasos_core::event::{Block, Payload, RunOpened, UserMessage};
use petasos_core::ids::{SessionId, TenantId};
use petasos_core::run::{RunError, RunErrorCode, RunRecord};
use petasos_core::step::{Input, Refusal, UserEvent};
use serde_json::Value;

use crate::awake::Actor;
use crate::engine::{Engine, Shared};
use crate::error::{Error, Result};
use crate::opening;

impl Actor {
    /// Opens the turn of the run that has waited longest, if no turn is under way.
    pub(crate) async fn start_waiting_run(&mut self) -> Result<()> {
        let closing = self.shared.closing.is_cancelled();
        // While a person answers the agent is silent; the run goes on waiting.
        let is_manual = self.state.conversation.mode == Mode::Manual;
        if closing
            || is_manual
            || self.state.turn.is_some()
            || !self.shared.runs.waiting.take(&self.header.id)
        {
            return Ok(());
        }
        let started = self.start_first().await;
        if !matches!(started, Ok(Started::All)) {
            self.shared.runs.waiting.add(&self.header.id);
        }
        started.map(drop)
    }

    async fn start_first(&mut self) -> Result<Started> {
        let mut runs = self.shared.store.waiting_runs(&self.header.id).await?.into_iter();
        while let Some(run) = runs.next() {
            match self.start_run(&run).await {
                Ok(()) if runs.next().is_some() => return Ok(Started::One),
                Ok(()) => return Ok(Started::All),
                // Somebody ended it while it waited.
                Err(Error::Store(petasos_store::Error::NotFound { .. })) => {}
                Err(Error::Refused(Refusal::Archived)) => {
                    let error =
                        RunError::new(RunErrorCode::SessionError, "The session of the run is archived.");
                    Engine { shared: self.shared.clone() }.end_run(run, error).await?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Started::All)
    }

    async fn start_run(&mut self, run: &RunRecord) -> Result<()> {
        let (run_id, routine_id, job) = (run.id.clone(), run.routine_id.clone(), run.given.job.clone());
        let input = Value::Object(run.given.input.clone()).to_string();
        let message = UserMessage::new(vec![Block::text(input)]);
        let events = [UserEvent::Message(message.clone())];
        let opening = opening::of(&self.shared, &self.header, &self.agent, &self.state, &events).await?;
        let opened = RunOpened { run_id, routine_id, job };
        self.feed_input(Input::RunStarted { opened, message, opening }).await.map(drop)
    }

    /// Ends a run, if it is the one under way. `false` if it is not.
    pub(crate) async fn end_run(
        &mut self,
        run_id: petasos_core::ids::RunId,
        error: RunError,
    ) -> Result<bool> {
        let events = self.feed_input(Input::RunEnded { run_id, error }).await?;
        Ok(events.iter().any(|event| matches!(event.payload, Payload::RunSettled(_))))
    }

    /// Ends the run under way, because the session goes.
    pub(crate) async fn end_run_with_session(&mut self) {
        let run = self.state.turn.as_ref().and_then(|turn| turn.run.as_ref());
        let Some(run_id) = run.map(|run| run.run_id.clone()) else { return };
        if let Err(error) = self.end_run(run_id.clone(), RunError::session_gone()).await {
            // Its deadline settles it.
            tracing::warn!(%run_id, %error, "a run could not be settled before its session went");
        }
    }
}

/// Whether runs are left that wait for the session.
enum Started {
    One,
    All,
}

/// Ends the runs that wait for a session that is not there any more.
pub(crate) async fn end_waiting_runs(
    shared: &std::sync::Arc<Shared>,
    tenant: &TenantId,
    session_id: &SessionId,
) {
    let engine = Engine { shared: shared.clone() };
    let runs = shared.store.waiting_runs(session_id).await.unwrap_or_default();
    for run in runs.into_iter().filter(|run| run.tenant == *tenant) {
        let run_id = run.id.clone();
        if let Err(error) = engine.end_run(run, RunError::session_gone()).await {
            tracing::warn!(%run_id, %error, "a run could not be settled after its session went");
        }
    }
}
