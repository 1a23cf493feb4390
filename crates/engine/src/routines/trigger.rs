//! Accepts runs.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use petasos_core::customer::Customer;
use petasos_core::ids::{RoutineId, RunId, SessionId, TenantId};
use petasos_core::routine::{RoutineDefinition, RoutineRecord};
use petasos_core::run::{RunGiven, RunJob, RunRecord, RunSession, RunStatus};
use petasos_core::session::{RUN_PLATFORM, SessionHeader, SessionRecord, SessionView};
use petasos_net::HostPattern;
use petasos_store::{NewRun, RunAdded};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::check::invalid;
use super::own_agent;
use super::schedules::KEY_PREFIX;
use super::schema::{self, CheckError};
use crate::engine::{Engine, now, wake};
use crate::error::{Error, Result};

/// What a run is asked for with.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trigger {
    /// What it works on.
    pub input: Map<String, Value>,
    /// Where it reports; none for nowhere.
    pub callback_url: Option<String>,
    /// The session that it is to be a turn of; one is made for it otherwise.
    pub session_id: Option<SessionId>,
    /// Under the same key the same run is meant; one is made otherwise.
    pub idempotency_key: Option<String>,
    /// What the caller wants to hear again.
    pub metadata: Map<String, Value>,
    /// A digest of the whole request: another one under the same key is a mistake.
    pub fingerprint: String,
}

/// What a trigger came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Triggered {
    /// A run.
    Accepted(RunRecord),
    /// The run that was accepted under the same key before, as it is now.
    Known(RunRecord),
}

impl Engine {
    /// Accepts a run of a routine. It is durable when this returns, and goes on whatever happens.
    pub async fn trigger(
        &self,
        tenant: &TenantId,
        routine_id: &RoutineId,
        trigger: Trigger,
    ) -> Result<Triggered> {
        let routine = self.routine(tenant, routine_id).await?;
        if trigger.idempotency_key.as_ref().is_some_and(|key| key.starts_with(KEY_PREFIX)) {
            let problem = format!("keys that begin with {KEY_PREFIX} are those of scheduled runs");
            return Err(invalid("idempotency_key", problem));
        }
        if let Some(key) = &trigger.idempotency_key
            && let Some(known) = self.shared.store.run_by_key(tenant, routine_id, key).await?
        {
            return same_request(known, &trigger.fingerprint);
        }
        let input = Value::Object(trigger.input.clone());
        schema::check(&routine.definition.input_schema, &input).await.map_err(|error| match error {
            CheckError::Schema(problem) => invalid("input_schema", problem),
            CheckError::Value(mismatch) => Error::InputMismatch(mismatch),
        })?;
        if let Some(url) = &trigger.callback_url {
            self.check_callback(&routine.definition, "callback_url", url)?;
        }
        let new = self.new_run(&routine, trigger, now()).await?;
        self.accept(new).await
    }

    /// Refuses a callback that may not go where it is to go.
    pub(super) fn check_callback(&self, routine: &RoutineDefinition, field: &str, url: &str) -> Result<()> {
        self.shared.deliveries.check_url(field, url)?;
        let hosts = &routine.callback_url_allowlist;
        let mut patterns = hosts.iter().filter_map(|host| host.parse::<HostPattern>().ok());
        if hosts.is_empty() || patterns.any(|pattern| pattern.matches_url(url)) {
            return Ok(());
        }
        let problem = "its host is not on the callback_url_allowlist of the routine".to_owned();
        Err(Error::EgressDenied { field: field.to_owned(), problem })
    }

    /// Keeps a run, unless there is one under its key, and gets it going.
    pub(super) async fn accept(&self, new: NewRun) -> Result<Triggered> {
        let run = new.run.clone();
        match self.shared.store.add_run(new).await? {
            RunAdded::Known(known) => same_request(*known, &run.given.fingerprint),
            RunAdded::Added => {
                if run.status.is_settled() {
                    self.shared.deliveries.wake();
                } else {
                    self.shared.runs.waiting.add(&run.session_id);
                    wake(&self.shared, &run.tenant, &run.session_id);
                }
                self.shared.runs.changed.notify_one();
                Ok(Triggered::Accepted(run))
            }
        }
    }

    /// A run of a routine, and a session for it unless it has one.
    pub(super) async fn new_run(
        &self,
        routine: &RoutineRecord,
        trigger: Trigger,
        at: Timestamp,
    ) -> Result<NewRun> {
        let id = RunId::from_parts_of(Uuid::now_v7());
        if let Some(session_id) = trigger.session_id.clone() {
            self.usable(&routine.tenant, &session_id).await?;
            let run = record(id, session_id, routine, trigger, at);
            return Ok(NewRun { run, session: None, customer: None, callback: None });
        }
        let session = self.session_for(routine, &id, at).await?;
        let customer = customer_for(routine, &id, at);
        let run = record(id, session.header.id.clone(), routine, trigger, at);
        Ok(NewRun { run, session: Some(session), customer: Some(customer), callback: None })
    }

    async fn usable(&self, tenant: &TenantId, id: &SessionId) -> Result<()> {
        match self.session(tenant, id).await {
            Ok(session) if session.view.archived_at.is_none() => Ok(()),
            Ok(_) => Err(Error::SessionUnusable { problem: format!("session {id} is archived") }),
            Err(Error::NotFound { .. }) => {
                Err(Error::SessionUnusable { problem: format!("there is no session {id}") })
            }
            Err(error) => Err(error),
        }
    }

    /// A session that lives as long as a run and its report.
    async fn session_for(
        &self,
        routine: &RoutineRecord,
        run_id: &RunId,
        at: Timestamp,
    ) -> Result<SessionRecord> {
        let agent_id = own_agent::agent_id(routine)?;
        let agent = match self.agent(&routine.tenant, &agent_id, None).await {
            Err(Error::NotFound { .. }) => Err(format!("there is no agent {agent_id}")),
            Ok(agent) if agent.archived_at.is_some() => Err(format!("agent {agent_id} is archived")),
            other => Ok(other?),
        };
        let agent = agent.map_err(|problem| Error::SessionUnusable { problem })?;
        let header = SessionHeader {
            id: SessionId::from_uuid(Uuid::now_v7()),
            tenant: routine.tenant.clone(),
            agent_id,
            agent_version: agent.version,
            user_id: Some(run_id.to_string()),
            platform: RUN_PLATFORM.to_owned(),
            created_at: at,
        };
        let title = title(routine);
        let metadata = [("routine_id", routine.id.as_str()), ("run_id", run_id.as_str())];
        let metadata = metadata.map(|(name, value)| (name.to_owned(), Value::from(value)));
        Ok(SessionRecord { header, view: SessionView::new(at, Some(title), Map::from_iter(metadata)) })
    }
}

/// A customer that lives as long as a run and its report, and has the run's id.
fn customer_for(routine: &RoutineRecord, run_id: &RunId, at: Timestamp) -> Customer {
    Customer {
        tenant: routine.tenant.clone(),
        id: run_id.to_string(),
        name: title(routine),
        metadata: Map::new(),
        created_at: at,
    }
}

fn title(routine: &RoutineRecord) -> String {
    routine.definition.title.clone().unwrap_or_else(|| routine.id.to_string())
}

/// A digest of a request as JSON. The order of keys makes no difference.
pub fn fingerprint(body: &Value) -> String {
    let digest = Sha256::digest(sorted(body).to_string().as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields: BTreeMap<&String, Value> =
                fields.iter().map(|(name, value)| (name, sorted(value))).collect();
            fields.into_iter().map(|(name, value)| (name.clone(), value)).collect()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// The run under a known key, if it was asked for in the same way.
fn same_request(known: RunRecord, fingerprint: &str) -> Result<Triggered> {
    if known.given.fingerprint == fingerprint {
        Ok(Triggered::Known(known))
    } else {
        Err(Error::KeyReused { run_id: known.id.to_string() })
    }
}

pub(super) fn record(
    id: RunId,
    session_id: SessionId,
    routine: &RoutineRecord,
    trigger: Trigger,
    at: Timestamp,
) -> RunRecord {
    let definition = &routine.definition;
    let timeout = i64::try_from(definition.timeout_millis().unwrap_or_default()).unwrap_or(i64::MAX);
    let deadline = at.saturating_add(SignedDuration::from_millis(timeout)).unwrap_or(Timestamp::MAX);
    let session = if trigger.session_id.is_some() { RunSession::Given } else { RunSession::Ephemeral };
    let simple_uuid = || Uuid::new_v4().simple().to_string();
    RunRecord {
        id,
        tenant: routine.tenant.clone(),
        routine_id: routine.id.clone(),
        session_id,
        idempotency_key: trigger.idempotency_key.unwrap_or_else(simple_uuid),
        given: RunGiven {
            fingerprint: trigger.fingerprint,
            input: trigger.input,
            metadata: trigger.metadata,
            job: RunJob {
                title: definition.title.clone(),
                description: definition.description.clone(),
                output_schema: definition.closed_output_schema(),
                timeout_seconds: definition.timeout_seconds.clone(),
                max_model_calls: definition.max_engine_iterations,
                on_tool_error: definition.on_tool_error,
            },
            trace_id: simple_uuid(),
            callback_url: trigger.callback_url,
            session,
        },
        status: RunStatus::Accepted,
        outcome: None,
        created_at: at,
        deadline,
        started_at: None,
        completed_at: None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::fingerprint;

    #[test]
    fn the_order_of_keys_makes_no_difference() {
        let one = fingerprint(&json!({ "a": { "x": 1, "y": [1, 2] }, "b": null }));
        assert_eq!(one, fingerprint(&json!({ "b": null, "a": { "y": [1, 2], "x": 1 } })));
        for other in
            [json!({ "a": { "x": 1, "y": [2, 1] }, "b": null }), json!({ "a": { "x": 1, "y": [1, 2] } })]
        {
            assert_ne!(one, fingerprint(&other));
        }
    }
}
