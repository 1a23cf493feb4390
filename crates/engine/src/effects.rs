//! What an awake session has under way: model calls, tools, the turn's deadline.
//!
//! A tool starts after its start is in the log. A model call may start while the events that call for it are still on
//! their way to the disk, because asking a model twice does no harm; but nobody hears of it before they are there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use petasos_core::State;
use petasos_core::agent_option;
use petasos_core::budget::Allowances;
use petasos_core::context::Context;
use petasos_core::event::{Event, Payload};
use petasos_core::ids::SessionId;
use petasos_core::state::Call;
use petasos_core::step::{self, Effect, Input};
use secrecy::{ExposeSecret, SecretString};
use tokio::task::AbortHandle;

use crate::actor::Report;
use crate::awake::Actor;
use crate::engine::now;
use crate::error::Result;
use crate::feed::ends_a_call;
use crate::recovery::Hold;
use crate::surroundings::Surroundings;
use crate::{compact, load, model_call, tool_run};

/// An effect that is being carried out. Dropping it stops it.
pub(crate) struct UnderWay {
    pub(crate) number: u64,
    pub(crate) effect: Effect,
    task: AbortHandle,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A model call that asks already, and of which nobody hears yet.
pub(crate) struct Early {
    under_way: UnderWay,
    live_call: u64,
}

impl Actor {
    /// Starts what the state wants and is not under way, and stops what it no longer wants.
    pub(crate) async fn reconcile(&mut self) -> Result<()> {
        if self.shared.recovery.set_aside.hold_of(&self.header.tenant, &self.header.id) == Hold::Wait {
            return Ok(());
        }
        let wanted = step::effects(&self.state, &self.limits);
        self.under_way.retain(|under_way| wanted.contains(&under_way.effect));
        for effect in wanted {
            if !self.under_way.iter().any(|under_way| under_way.effect == effect) {
                self.start(effect).await?;
            }
        }
        Ok(())
    }

    /// Gets ready for `events`, which lead to `state` and are being written: brings what the model reads up to date,
    /// and asks the model if they say so. With hooks the call waits, because they may change what it asks.
    pub(crate) async fn prepare(
        &self,
        number: u64,
        context: Option<Context>,
        events: &[Event],
        state: &State,
    ) -> (Option<Context>, Option<Early>) {
        let calls = events.iter().any(|event| matches!(event.payload, Payload::ModelStarted(_)));
        // What a deletion leaves is read from the log.
        let deletes = events.iter().any(|event| matches!(event.payload, Payload::EventsDeleted(_)));
        let context = context.filter(|_| !deletes);
        let context = match context {
            // If it cannot be read, the call that needs it tries again and says why.
            None if calls => {
                let through = self.state.view.last_sequence;
                load::context(self.shared.store.as_ref(), &self.header.id, through).await.ok()
            }
            context => context,
        };
        let Some(mut context) = context else { return (None, None) };
        events.iter().for_each(|event| context.apply(event));
        // While another call ends with these events, the feed still has that one to show.
        let may_call = calls && self.shared.hooks.is_empty() && !events.iter().any(ends_a_call);
        let effect = step::effects(state, &self.limits)
            .into_iter()
            .find(|effect| may_call && matches!(effect, Effect::CallModel { .. }));
        let early = effect.map(|effect| {
            let live_call = self.feed.begin_call(self.resumed);
            self.feed.hold();
            let under_way = self.call_model(number, effect, live_call, state, &context);
            Early { under_way, live_call }
        });
        (Some(context), early)
    }

    /// Counts a model call among what is under way. The events that called for it have been shown, and it with them.
    pub(crate) fn begin(&mut self, call: Early) {
        self.under_way.push(call.under_way);
    }

    /// Stops a model call. The events that called for it could not be written.
    pub(crate) fn call_off(&self, call: &Early) {
        self.feed.take_back(call.live_call);
    }

    /// A number that no other effect of this actor has or had.
    pub(crate) fn next_number(&mut self) -> u64 {
        self.started += 1;
        self.started
    }

    async fn start(&mut self, effect: Effect) -> Result<()> {
        let number = self.next_number();
        let task = match &effect {
            Effect::CallModel { call, .. } => {
                if *call == 1 {
                    self.injected = None;
                }
                let context = self.take_context().await?;
                let live_call = self.feed.begin_call(self.resumed);
                let under_way = self.call_model(number, effect, live_call, &self.state, &context);
                self.context = Some(context);
                self.under_way.push(under_way);
                return Ok(());
            }
            Effect::Compact { call, refused, .. } => {
                let context = self.take_context().await?;
                self.context = Some(context.clone());
                self.shared.tasks.spawn(compact::run(compact::Compaction {
                    around: self.surroundings(&self.state),
                    context,
                    size: self.state.context.clone(),
                    call: *call,
                    refused: *refused,
                    effect: number,
                    reports: self.reports.clone(),
                }))
            }
            Effect::RunTool(call) => self.shared.tasks.spawn(Box::pin(tool_run::run(tool_run::ToolRun {
                around: self.surroundings(&self.state),
                secrets: self.secrets(),
                sudo_password: self.sudo_password(call),
                call: call.clone(),
                effect: number,
                reports: self.reports.clone(),
            }))),
            Effect::Deadline(at) => {
                let reports = self.reports.clone();
                let wait = Duration::try_from(at.duration_since(now())).unwrap_or_default();
                self.shared.tasks.spawn(async move {
                    tokio::time::sleep(wait).await;
                    // The actor may be gone, and then nobody needs the news.
                    drop(reports.send(Report::Ended {
                        effect: number,
                        input: Input::DeadlinePassed,
                        injected: None,
                    }));
                })
            }
        };
        self.under_way.push(UnderWay { number, effect, task: task.abort_handle() });
        Ok(())
    }

    /// The session whose workspace and secrets this one works with: its own, or that which it is a subagent of.
    pub(crate) fn root(&self) -> &SessionId {
        let thread = self.state.settings.as_ref().and_then(|settings| settings.thread.as_ref());
        thread.map_or(&self.header.id, |thread| &thread.parent)
    }

    fn sudo_password(&self, call: &Call) -> Option<SecretString> {
        let sudo = call.sudo.as_ref()?;
        self.shared.secrets.take_password(&self.header.id, &sudo.request_id)
    }

    /// What tools find in their environment: secrets that were given to this session, and defaults for the others. The
    /// default is no value for an option that was given one, even if that is here no more.
    fn secrets(&self) -> BTreeMap<String, SecretString> {
        let given = self.state.settings.as_ref().map(|settings| &settings.secret_options);
        let is_given = |name: &String| given.is_some_and(|given| given.contains(name));
        let options =
            self.agent.options.iter().filter(|option| option.is_secret() && !is_given(&option.name));
        let defaults =
            options.map(|option| (option.name.clone(), SecretString::from(option.default.as_str())));
        let mut secrets: BTreeMap<_, _> = defaults.collect();
        secrets.extend(self.shared.secrets.of(self.root()));
        secrets.retain(|_, value| !value.expose_secret().is_empty());
        secrets
    }

    /// The names of secrets that the user has given and that are here no more.
    fn lost_secrets(&self, state: &State) -> Vec<String> {
        if state.secrets.is_empty() {
            return Vec::new();
        }
        let kept = self.shared.secrets.of(&self.header.id);
        // What comes with events that are still being written is kept as soon as they are.
        let given = state.secrets.iter().filter(|(_, at)| **at <= self.state.view.last_sequence);
        given.map(|(name, _)| name.clone()).filter(|name| !kept.contains_key(name)).collect()
    }

    /// What whoever works in this state has at hand.
    fn surroundings(&self, state: &State) -> Surroundings {
        Surroundings {
            shared: Arc::clone(&self.shared),
            header: Arc::clone(&self.header),
            agent: Arc::clone(&self.agent),
            settings: Arc::new(state.settings.clone().unwrap_or_default()),
            allowances: allowances(state),
            allowed: Arc::new(state.allowed_tools.clone()),
            run: state.turn.as_ref().and_then(|turn| turn.run.clone()).map(Arc::from),
            mcp: self.mcp.clone(),
            told: self.told.clone(),
            turn: self.turn_of(state),
        }
    }

    /// What the model reads, from memory or from the log.
    async fn take_context(&mut self) -> Result<Context> {
        match self.context.take() {
            Some(context) => Ok(context),
            None => {
                let through = self.state.view.last_sequence;
                Ok(load::context(self.shared.store.as_ref(), &self.header.id, through).await?)
            }
        }
    }

    /// Starts a model call.
    fn call_model(
        &self,
        number: u64,
        effect: Effect,
        live_call: u64,
        state: &State,
        context: &Context,
    ) -> UnderWay {
        let call = match effect {
            Effect::CallModel { call, .. } => call,
            Effect::Compact { .. } | Effect::RunTool(_) | Effect::Deadline(_) => 0,
        };
        let around = self.surroundings(state);
        let (instructions, options) = (&self.agent.instructions, &self.agent.options);
        let instructions = agent_option::fill_in(instructions, options, &around.settings.options);
        let task = self.shared.tasks.spawn(Box::pin(model_call::run(model_call::ModelCall {
            model: around.model().to_owned(),
            around,
            feed: Arc::clone(&self.feed),
            live_call,
            system: context.system(&instructions),
            messages: context.messages(),
            outside_results: context.results_from_outside().to_vec(),
            turn_message: context.turn_message(),
            user_message: context.task().to_owned(),
            call,
            // A turn that ended or paused has left a stop reason.
            is_first_turn: state.view.stop_reason.is_none(),
            ended_calls: self.ended_calls.clone(),
            injected: self.injected.clone().filter(|_| call > 1),
            lost_secrets: self.lost_secrets(state),
            effect: number,
            reports: self.reports.clone(),
        })));
        UnderWay { number, effect, task: task.abort_handle() }
    }
}

/// How often somebody let the turn under way go on over a budget.
fn allowances(state: &State) -> Allowances {
    state.turn.as_ref().map(|turn| turn.allowances.clone()).unwrap_or_default()
}
