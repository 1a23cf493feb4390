//! Deliveries as surfaces show them, and how one is made again.

use petasos_core::delivery::{Delivery, DeliveryStatus, NewDelivery, Subject};
use petasos_core::ids::{DeliveryId, TenantId};
use petasos_store::{DeliveryFilter, Page, PageRequest};
use uuid::Uuid;

use super::TenantCredentials;
use crate::engine::{Engine, now};
use crate::error::{Error, Result};

impl Engine {
    /// A tenant's deliveries, newest first.
    pub async fn deliveries(
        &self,
        tenant: &TenantId,
        filter: DeliveryFilter,
        page: PageRequest,
    ) -> Result<Page<Delivery>> {
        Ok(self.shared.store.deliveries(tenant, filter, page).await?)
    }

    /// One delivery.
    pub async fn delivery(&self, tenant: &TenantId, id: &DeliveryId) -> Result<Delivery> {
        let found = self.shared.store.delivery(tenant, id).await?;
        found.ok_or_else(|| Error::NotFound { kind: "delivery", id: id.to_string() })
    }

    /// What a tenant's receivers know its deliveries by.
    pub fn delivery_credentials(&self, tenant: &TenantId) -> TenantCredentials {
        self.shared.deliveries.options.credentials.of(tenant)
    }

    /// How many deliveries are on their way.
    pub async fn pending_deliveries(&self) -> Result<u64> {
        Ok(self.shared.store.pending_deliveries().await?)
    }

    /// Delivers the same once more, to where the session's events go now. The old record stays as it is.
    pub async fn replay_delivery(&self, tenant: &TenantId, id: &DeliveryId) -> Result<Delivery> {
        let old = self.delivery(tenant, id).await?;
        let body = self.shared.store.delivery_body(tenant, id).await?;
        let body = body.ok_or_else(|| Error::NotFound { kind: "delivery", id: id.to_string() })?;
        let url = match &old.subject {
            Subject::Event { .. } => self.url_now(&old).await?,
            Subject::Callback { .. } => None,
        };
        let new = NewDelivery {
            id: DeliveryId::from_uuid(Uuid::now_v7()),
            tenant: tenant.clone(),
            subject: old.subject,
            url: url.unwrap_or(old.url),
            webhook_id: old.webhook_id,
            body,
            created_at: now(),
            replay_of: Some(old.id),
        };
        self.shared.store.add_delivery(new.clone()).await?;
        self.shared.deliveries.wake();
        Ok(Delivery {
            id: new.id,
            tenant: new.tenant,
            subject: new.subject,
            url: new.url,
            webhook_id: new.webhook_id,
            status: DeliveryStatus::Pending,
            attempts: Vec::new(),
            tries: 0,
            next_attempt_at: Some(new.created_at),
            created_at: new.created_at,
            replay_of: new.replay_of,
        })
    }

    /// Where the events of a delivery's session go now; none if the session is gone or wants none.
    async fn url_now(&self, delivery: &Delivery) -> Result<Option<String>> {
        let store = &self.shared.store;
        let Some(session) = store.session(&delivery.tenant, delivery.subject.session_id()).await? else {
            return Ok(None);
        };
        let (id, version) = (&session.header.agent_id, session.header.agent_version);
        let agent = store.agent(&delivery.tenant, id, Some(version)).await?;
        Ok(agent.and_then(|agent| {
            let url = self.shared.deliveries.event_url(&session.view.metadata, &agent.definition);
            url.map(str::to_owned)
        }))
    }
}
