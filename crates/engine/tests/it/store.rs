//! A real store that a test can stop at any append, and whose failures it can wait for.

mod recovery;

use std::sync::Arc;

use futures_util::future::{BoxFuture, pending};
use jiff::Timestamp;
use jiff::civil::Date;
use petasos_core::agent::AgentVersion;
use petasos_core::customer::{ContextVariable, Customer, Tag, VariableValue};
use petasos_core::delivery::{Delivery, NewDelivery};
use petasos_core::event::Event;
use petasos_core::ids::{AgentId, DeliveryId, KeyId, RoutineId, RunId, SessionId, TenantId};
use petasos_core::key::KeyRecord;
use petasos_core::memory::{LearnedSkill, Memories, MemoryEntry, SkillSummary, UserScope};
use petasos_core::routine::RoutineRecord;
use petasos_core::run::RunRecord;
use petasos_core::session::SessionRecord;
use petasos_core::spending::DailyUsage;
use petasos_store::sqlite::SqliteStore;
use petasos_store::{
    AgentStore, Append, Asleep, Attempted, Bearer, Checkpoint, CustomerChange, CustomerStore, DeliveryFilter,
    DeliveryStore, Due, DueRequest, Error, EventBatch, EventLog, EventQuery, Expiring, GrantStore, KeyStore,
    KnownValue, MemoryStore, MessageHit, MessageQuery, MessageSearch, NewRun, Observe, Order, Overdue, Page,
    PageRequest, Result, RoutineStore, RunAdded, RunEnd, RunStore, SessionFilter, SessionStore, SkillStore,
    SkillWrite, Stats, TagStore, UsageStore, VariableStore,
};
use petasos_testkit::within;
use serde_json::{Map, Value};
use tokio::sync::watch;

/// Where an append stops for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Before anything is written.
    Before,
    /// When it is written, and before anybody is told.
    After,
}

#[derive(Debug, Default)]
struct Progress {
    appends: usize,
    to_fail: usize,
    to_panic: usize,
    failed: usize,
    stop_at: Option<(usize, Moment)>,
    stopped: bool,
    damaged: Vec<SessionId>,
    loses_the_end: bool,
    holds_runs: bool,
    held_runs: usize,
}

/// A store whose appends a test watches.
#[derive(Debug, Clone)]
pub(crate) struct WatchedStore {
    inner: SqliteStore,
    progress: Arc<watch::Sender<Progress>>,
}

impl WatchedStore {
    pub(crate) fn new(inner: SqliteStore) -> Self {
        WatchedStore { inner, progress: Arc::default() }
    }

    /// Stops at the append of this number, from here on and counted from 1.
    pub(crate) fn stop_at(&self, number: usize, moment: Moment) {
        self.progress.send_modify(|progress| progress.stop_at = Some((progress.appends + number, moment)));
    }

    /// Fails the next appends.
    pub(crate) fn fail_next(&self, count: usize) {
        self.progress.send_modify(|progress| progress.to_fail = count);
    }

    /// Panics in the next append.
    pub(crate) fn panic_next(&self) {
        self.progress.send_modify(|progress| progress.to_panic = 1);
    }

    /// Waits until this many appends have begun.
    pub(crate) async fn wait_for_appends(&self, count: usize) {
        let _ = self.progress.subscribe().wait_for(|progress| progress.appends >= count).await;
    }

    /// Waits until an append was stopped.
    pub(crate) async fn stopped(&self) {
        let _ = self.progress.subscribe().wait_for(|progress| progress.stopped).await;
    }

    /// Waits until this many appends have failed.
    pub(crate) async fn wait_for_failures(&self, count: usize) {
        let failed = async {
            let _ = self.progress.subscribe().wait_for(|progress| progress.failed >= count).await;
        };
        within("appends to fail", failed).await;
    }

    /// From now on, the log of this session cannot be read.
    pub(crate) fn damage(&self, id: &SessionId) {
        self.progress.send_modify(|progress| progress.damaged.push(id.clone()));
    }

    fn check(&self, id: &SessionId) -> Result<()> {
        if self.progress.borrow().damaged.contains(id) {
            let (what, problem) = (format!("session {id}"), "the test says so".to_owned());
            return Err(Error::Damaged { what, path: "petasos.db".into(), problem });
        }
        Ok(())
    }

    /// Counts an append. It is to fail or to panic if the test said so.
    fn begin(&self) -> (usize, bool) {
        let (mut number, mut fails, mut panics) = (0, false, false);
        self.progress.send_modify(|progress| {
            progress.appends += 1;
            number = progress.appends;
            (fails, panics) = (progress.to_fail > 0, progress.to_panic > 0);
            progress.to_fail = progress.to_fail.saturating_sub(1);
            progress.to_panic = progress.to_panic.saturating_sub(1);
        });
        assert!(!panics, "the store of the test panics");
        (number, fails)
    }

    async fn reach(&self, number: usize, moment: Moment) {
        if self.progress.borrow().stop_at == Some((number, moment)) {
            self.progress.send_modify(|progress| progress.stopped = true);
            pending::<()>().await;
        }
    }
}

impl EventLog for WatchedStore {
    fn append(&self, append: Append) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let (number, fails) = self.begin();
            self.reach(number, Moment::Before).await;
            let result = if fails {
                Err(Error::Failed { context: "append".to_owned(), source: "the test says so".into() })
            } else {
                self.inner.append(append).await
            };
            self.reach(number, Moment::After).await;
            if result.is_err() {
                self.progress.send_modify(|progress| progress.failed += 1);
            }
            result
        })
    }

    fn events<'a>(&'a self, id: &'a SessionId, query: EventQuery) -> BoxFuture<'a, Result<EventBatch>> {
        self.inner.events(id, query)
    }

    fn amendments<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<Vec<Event>>> {
        self.inner.amendments(id)
    }

    fn checkpoint<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<Option<Checkpoint>>> {
        self.inner.checkpoint(id)
    }
}

impl SessionStore for WatchedStore {
    fn create_session(&self, session: SessionRecord) -> BoxFuture<'_, Result<()>> {
        self.inner.create_session(session)
    }

    fn import_session(&self, session: SessionRecord, log: Append) -> BoxFuture<'_, Result<()>> {
        self.inner.import_session(session, log)
    }

    fn session<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<SessionRecord>>> {
        self.inner.session(tenant, id)
    }

    fn asleep<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: &'a SessionId,
        limit: usize,
    ) -> BoxFuture<'a, Result<Option<Asleep>>> {
        Box::pin(async move {
            self.check(id)?;
            self.inner.asleep(tenant, id, limit).await
        })
    }

    fn sessions<'a>(
        &'a self,
        tenant: &'a TenantId,
        filter: SessionFilter,
        page: PageRequest,
    ) -> BoxFuture<'a, Result<Page<SessionRecord>>> {
        self.inner.sessions(tenant, filter, page)
    }

    fn count_sessions<'a>(
        &'a self,
        tenant: &'a TenantId,
        filter: SessionFilter,
    ) -> BoxFuture<'a, Result<u64>> {
        self.inner.count_sessions(tenant, filter)
    }

    fn delete_session<'a>(&'a self, tenant: &'a TenantId, id: &'a SessionId) -> BoxFuture<'a, Result<bool>> {
        self.inner.delete_session(tenant, id)
    }

    fn running_sessions(&self) -> BoxFuture<'_, Result<Vec<(TenantId, SessionId)>>> {
        self.inner.running_sessions()
    }

    fn expiring_sessions(&self, limit: usize) -> BoxFuture<'_, Result<Vec<Expiring>>> {
        self.inner.expiring_sessions(limit)
    }
}

impl AgentStore for WatchedStore {
    fn create_agent(&self, agent: AgentVersion) -> BoxFuture<'_, Result<()>> {
        self.inner.create_agent(agent)
    }

    fn add_agent_version(&self, agent: AgentVersion) -> BoxFuture<'_, Result<()>> {
        self.inner.add_agent_version(agent)
    }

    fn agent<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: &'a AgentId,
        version: Option<u32>,
    ) -> BoxFuture<'a, Result<Option<AgentVersion>>> {
        self.inner.agent(tenant, id, version)
    }

    fn agents<'a>(
        &'a self,
        tenant: &'a TenantId,
        page: PageRequest,
    ) -> BoxFuture<'a, Result<Page<AgentVersion>>> {
        self.inner.agents(tenant, page)
    }

    fn agent_versions<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: &'a AgentId,
        page: PageRequest,
    ) -> BoxFuture<'a, Result<Page<AgentVersion>>> {
        self.inner.agent_versions(tenant, id, page)
    }

    fn archive_agent<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: &'a AgentId,
        at: Option<Timestamp>,
    ) -> BoxFuture<'a, Result<()>> {
        self.inner.archive_agent(tenant, id, at)
    }
}

impl KeyStore for WatchedStore {
    fn create_key(&self, key: KeyRecord) -> BoxFuture<'_, Result<()>> {
        self.inner.create_key(key)
    }

    fn key_by_hash<'a>(&'a self, hash: &'a str) -> BoxFuture<'a, Result<Option<KeyRecord>>> {
        self.inner.key_by_hash(hash)
    }

    fn keys<'a>(&'a self, tenant: Option<&'a TenantId>) -> BoxFuture<'a, Result<Vec<KeyRecord>>> {
        self.inner.keys(tenant)
    }

    fn revoke_key<'a>(&'a self, id: &'a KeyId, at: Timestamp) -> BoxFuture<'a, Result<()>> {
        self.inner.revoke_key(id, at)
    }
}

impl GrantStore for WatchedStore {
    fn agent_grants<'a>(
        &'a self,
        tenant: &'a TenantId,
        agent_id: &'a AgentId,
    ) -> BoxFuture<'a, Result<Vec<(String, String)>>> {
        self.inner.agent_grants(tenant, agent_id)
    }

    fn grants<'a>(
        &'a self,
        tenant: &'a TenantId,
        agent_id: &'a AgentId,
        user_id: &'a str,
    ) -> BoxFuture<'a, Result<Vec<String>>> {
        self.inner.grants(tenant, agent_id, user_id)
    }

    fn revoke_grant<'a>(
        &'a self,
        tenant: &'a TenantId,
        agent_id: &'a AgentId,
        user_id: &'a str,
        tool: &'a str,
    ) -> BoxFuture<'a, Result<bool>> {
        self.inner.revoke_grant(tenant, agent_id, user_id, tool)
    }
}

impl MemoryStore for WatchedStore {
    fn memories<'a>(&'a self, scope: &'a UserScope) -> BoxFuture<'a, Result<Memories>> {
        self.inner.memories(scope)
    }

    fn replace_memories<'a>(
        &'a self,
        scope: &'a UserScope,
        expected_revision: u64,
        entries: Vec<MemoryEntry>,
    ) -> BoxFuture<'a, Result<()>> {
        self.inner.replace_memories(scope, expected_revision, entries)
    }
}

impl SkillStore for WatchedStore {
    fn skills<'a>(&'a self, scope: &'a UserScope) -> BoxFuture<'a, Result<Vec<SkillSummary>>> {
        self.inner.skills(scope)
    }

    fn skill<'a>(
        &'a self,
        scope: &'a UserScope,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<LearnedSkill>>> {
        self.inner.skill(scope, name)
    }

    fn skill_file<'a>(
        &'a self,
        scope: &'a UserScope,
        name: &'a str,
        path: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>>> {
        self.inner.skill_file(scope, name, path)
    }

    fn write_skill<'a>(&'a self, scope: &'a UserScope, write: SkillWrite) -> BoxFuture<'a, Result<()>> {
        self.inner.write_skill(scope, write)
    }

    fn delete_skill<'a>(&'a self, scope: &'a UserScope, name: &'a str) -> BoxFuture<'a, Result<bool>> {
        self.inner.delete_skill(scope, name)
    }
}

impl MessageSearch for WatchedStore {
    fn search_messages<'a>(
        &'a self,
        scope: &'a UserScope,
        query: MessageQuery,
    ) -> BoxFuture<'a, Result<Vec<MessageHit>>> {
        self.inner.search_messages(scope, query)
    }
}

impl UsageStore for WatchedStore {
    fn agent_usage<'a>(
        &'a self,
        tenant: &'a TenantId,
        agent_id: &'a AgentId,
        from: Date,
        to: Date,
    ) -> BoxFuture<'a, Result<Vec<DailyUsage>>> {
        self.inner.agent_usage(tenant, agent_id, from, to)
    }
}

impl RoutineStore for WatchedStore {
    fn put_routine(&self, routine: RoutineRecord) -> BoxFuture<'_, Result<()>> {
        self.inner.put_routine(routine)
    }

    fn routine<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: &'a RoutineId,
    ) -> BoxFuture<'a, Result<Option<RoutineRecord>>> {
        self.inner.routine(tenant, id)
    }

    fn routines<'a>(&'a self, tenant: Option<&'a TenantId>) -> BoxFuture<'a, Result<Vec<RoutineRecord>>> {
        self.inner.routines(tenant)
    }

    fn delete_routine<'a>(&'a self, tenant: &'a TenantId, id: &'a RoutineId) -> BoxFuture<'a, Result<bool>> {
        self.inner.delete_routine(tenant, id)
    }

    fn scheduled_through<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: &'a RoutineId,
        through: Timestamp,
    ) -> BoxFuture<'a, Result<()>> {
        self.inner.scheduled_through(tenant, id, through)
    }
}

impl RunStore for WatchedStore {
    fn add_run(&self, new: NewRun) -> BoxFuture<'_, Result<RunAdded>> {
        Box::pin(async move {
            if self.progress.borrow().holds_runs {
                self.progress.send_modify(|progress| progress.held_runs += 1);
                pending::<()>().await;
            }
            self.inner.add_run(new).await
        })
    }

    fn run<'a>(&'a self, tenant: &'a TenantId, id: &'a RunId) -> BoxFuture<'a, Result<Option<RunRecord>>> {
        self.inner.run(tenant, id)
    }

    fn run_by_key<'a>(
        &'a self,
        tenant: &'a TenantId,
        routine_id: &'a RoutineId,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<RunRecord>>> {
        self.inner.run_by_key(tenant, routine_id, key)
    }

    fn runs<'a>(
        &'a self,
        tenant: &'a TenantId,
        routine_id: &'a RoutineId,
        page: PageRequest,
    ) -> BoxFuture<'a, Result<Page<RunRecord>>> {
        self.inner.runs(tenant, routine_id, page)
    }

    fn waiting_runs<'a>(&'a self, session_id: &'a SessionId) -> BoxFuture<'a, Result<Vec<RunRecord>>> {
        self.inner.waiting_runs(session_id)
    }

    fn unsettled_runs(&self) -> BoxFuture<'_, Result<Vec<RunRecord>>> {
        self.inner.unsettled_runs()
    }

    fn overdue_runs(&self, now: Timestamp, limit: usize) -> BoxFuture<'_, Result<Overdue>> {
        self.inner.overdue_runs(now, limit)
    }

    fn end_run(&self, end: RunEnd) -> BoxFuture<'_, Result<bool>> {
        self.inner.end_run(end)
    }

    fn leftover_sessions(&self, limit: usize) -> BoxFuture<'_, Result<Vec<RunRecord>>> {
        self.inner.leftover_sessions(limit)
    }

    fn session_is_gone<'a>(&'a self, id: &'a RunId) -> BoxFuture<'a, Result<()>> {
        self.inner.session_is_gone(id)
    }
}

impl Observe for WatchedStore {
    fn stats(&self) -> Stats {
        self.inner.stats()
    }

    fn problem(&self) -> Option<String> {
        self.inner.problem()
    }
}

impl DeliveryStore for WatchedStore {
    fn add_delivery(&self, delivery: NewDelivery) -> BoxFuture<'_, Result<()>> {
        self.inner.add_delivery(delivery)
    }

    fn delivery<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: &'a DeliveryId,
    ) -> BoxFuture<'a, Result<Option<Delivery>>> {
        self.inner.delivery(tenant, id)
    }

    fn delivery_body<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: &'a DeliveryId,
    ) -> BoxFuture<'a, Result<Option<Vec<u8>>>> {
        self.inner.delivery_body(tenant, id)
    }

    fn deliveries<'a>(
        &'a self,
        tenant: &'a TenantId,
        filter: DeliveryFilter,
        page: PageRequest,
    ) -> BoxFuture<'a, Result<Page<Delivery>>> {
        self.inner.deliveries(tenant, filter, page)
    }

    fn due_deliveries(&self, request: DueRequest) -> BoxFuture<'_, Result<Due>> {
        self.inner.due_deliveries(request)
    }

    fn record_attempt(&self, attempted: Attempted) -> BoxFuture<'_, Result<()>> {
        self.inner.record_attempt(attempted)
    }

    fn pending_deliveries(&self) -> BoxFuture<'_, Result<u64>> {
        self.inner.pending_deliveries()
    }

    fn forget_deliveries(&self, before: Timestamp, limit: usize) -> BoxFuture<'_, Result<usize>> {
        self.inner.forget_deliveries(before, limit)
    }
}

impl CustomerStore for WatchedStore {
    fn create_customer(
        &self,
        customer: Customer,
        variables: Map<String, Value>,
    ) -> BoxFuture<'_, Result<()>> {
        self.inner.create_customer(customer, variables)
    }

    fn customer<'a>(&'a self, tenant: &'a TenantId, id: &'a str) -> BoxFuture<'a, Result<Option<Customer>>> {
        self.inner.customer(tenant, id)
    }

    fn customers<'a>(
        &'a self,
        tenant: &'a TenantId,
        order: Order,
        page: PageRequest,
    ) -> BoxFuture<'a, Result<Page<Customer>>> {
        self.inner.customers(tenant, order, page)
    }

    fn count_customers<'a>(&'a self, tenant: &'a TenantId) -> BoxFuture<'a, Result<u64>> {
        self.inner.count_customers(tenant)
    }

    fn change_customer<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: &'a str,
        change: CustomerChange,
        at: Timestamp,
    ) -> BoxFuture<'a, Result<bool>> {
        self.inner.change_customer(tenant, id, change, at)
    }

    fn delete_customer<'a>(&'a self, tenant: &'a TenantId, id: &'a str) -> BoxFuture<'a, Result<bool>> {
        self.inner.delete_customer(tenant, id)
    }
}

impl VariableStore for WatchedStore {
    fn variables<'a>(&'a self, tenant: &'a TenantId) -> BoxFuture<'a, Result<Vec<ContextVariable>>> {
        self.inner.variables(tenant)
    }

    fn create_variable<'a>(
        &'a self,
        tenant: &'a TenantId,
        name: &'a str,
        description: Option<&'a str>,
    ) -> BoxFuture<'a, Result<ContextVariable>> {
        self.inner.create_variable(tenant, name, description)
    }

    fn change_variable<'a>(
        &'a self,
        tenant: &'a TenantId,
        variable: ContextVariable,
    ) -> BoxFuture<'a, Result<bool>> {
        self.inner.change_variable(tenant, variable)
    }

    fn delete_variable<'a>(&'a self, tenant: &'a TenantId, id: &'a str) -> BoxFuture<'a, Result<bool>> {
        self.inner.delete_variable(tenant, id)
    }

    fn values_of<'a>(
        &'a self,
        tenant: &'a TenantId,
        customer: &'a str,
    ) -> BoxFuture<'a, Result<Vec<KnownValue>>> {
        self.inner.values_of(tenant, customer)
    }

    fn values_for<'a>(
        &'a self,
        tenant: &'a TenantId,
        agent_id: &'a AgentId,
        customer: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<KnownValue>>> {
        self.inner.values_for(tenant, agent_id, customer)
    }

    fn values_by_customer<'a>(
        &'a self,
        tenant: &'a TenantId,
        variable: &'a str,
    ) -> BoxFuture<'a, Result<Vec<(String, VariableValue)>>> {
        self.inner.values_by_customer(tenant, variable)
    }

    fn set_value<'a>(
        &'a self,
        tenant: &'a TenantId,
        variable: &'a str,
        customer: &'a str,
        data: Value,
        at: Timestamp,
    ) -> BoxFuture<'a, Result<Option<VariableValue>>> {
        self.inner.set_value(tenant, variable, customer, data, at)
    }

    fn delete_value<'a>(
        &'a self,
        tenant: &'a TenantId,
        variable: &'a str,
        customer: &'a str,
    ) -> BoxFuture<'a, Result<bool>> {
        self.inner.delete_value(tenant, variable, customer)
    }
}

impl TagStore for WatchedStore {
    fn tags<'a>(&'a self, tenant: &'a TenantId) -> BoxFuture<'a, Result<Vec<Tag>>> {
        self.inner.tags(tenant)
    }

    fn create_tag<'a>(&'a self, tenant: &'a TenantId, name: &'a str) -> BoxFuture<'a, Result<Tag>> {
        self.inner.create_tag(tenant, name)
    }

    fn rename_tag<'a>(&'a self, tenant: &'a TenantId, tag: Tag) -> BoxFuture<'a, Result<bool>> {
        self.inner.rename_tag(tenant, tag)
    }

    fn delete_tag<'a>(&'a self, tenant: &'a TenantId, id: &'a str) -> BoxFuture<'a, Result<bool>> {
        self.inner.delete_tag(tenant, id)
    }

    fn change_tags<'a>(
        &'a self,
        tenant: &'a TenantId,
        bearer: (Bearer, &'a str),
        add: Vec<String>,
        remove: Vec<String>,
    ) -> BoxFuture<'a, Result<()>> {
        self.inner.change_tags(tenant, bearer, add, remove)
    }

    fn tags_of<'a>(
        &'a self,
        tenant: &'a TenantId,
        kind: Bearer,
        ids: Vec<String>,
    ) -> BoxFuture<'a, Result<Vec<(String, String)>>> {
        self.inner.tags_of(tenant, kind, ids)
    }
}
