//! Deliveries: webhooks for the events of sessions, and callbacks of runs.
//!
//! What is to be delivered is committed together with what it tells about (`outbox`), and waits in the store. One task
//! (`sender`) sends what is due, as many at a time as it may, and writes down what came of each attempt. So a delivery
//! is made at least once, whatever happens in between, with the same bytes each time.
//!
//! Turns never wait for deliveries. What an event looks like outside is not known here: a surface says it ([`view`]).

mod attempt;
mod credentials;
mod judge;
mod outbox;
mod records;
mod sender;
mod settings;
mod view;

use petasos_core::agent::AgentDefinition;
use petasos_net::{Client, Targets};
use serde_json::{Map, Value};
use tokio::sync::Notify;

pub use self::credentials::{DeliveryCredentials, TenantCredentials};
pub(crate) use self::outbox::SessionOutbox;
pub(crate) use self::sender::run;
pub use self::settings::{DeliverySettings, Retries};
pub use self::view::{DeliveryView, NewView, Rendered};
use crate::error::{Error, Result};

/// The key of a session's or an agent's metadata that says where events go.
const EVENT_WEBHOOK_URL: &str = "event_webhook_url";

/// What deliveries need.
pub struct DeliveryOptions {
    /// What sends them where callers say. It must be guarded by the guard of the targets.
    pub guarded: Client,
    /// What sends them where the configuration says.
    pub trusted: Client,
    /// Where they may go.
    pub targets: Targets,
    /// What receivers know them by.
    pub credentials: DeliveryCredentials,
    /// Where events go if neither the session nor the agent says so.
    pub event_webhook_url: Option<String>,
    /// Time and attempts.
    pub settings: DeliverySettings,
    /// What events look like.
    pub new_view: NewView,
}

/// What all sessions and the sender share.
pub(crate) struct Deliveries {
    options: DeliveryOptions,
    /// There may be something to send.
    due: Notify,
}

impl Deliveries {
    pub(crate) fn new(options: DeliveryOptions) -> Self {
        Deliveries { options, due: Notify::new() }
    }

    /// Says that something was committed that may be sent.
    pub(crate) fn wake(&self) {
        self.due.notify_one();
    }

    /// Where events go: as the session says, else as its agent says, else as the server says.
    fn event_url<'a>(
        &'a self,
        metadata: &'a Map<String, Value>,
        agent: &'a AgentDefinition,
    ) -> Option<&'a str> {
        let named =
            |metadata: &'a Map<String, Value>| metadata.get(EVENT_WEBHOOK_URL).and_then(Value::as_str);
        named(metadata).or_else(|| named(&agent.metadata)).or(self.options.event_webhook_url.as_deref())
    }

    /// Refuses metadata that sends events where they may not go.
    pub(crate) fn check_metadata(&self, metadata: &Map<String, Value>) -> Result<()> {
        let field = format!("metadata.{EVENT_WEBHOOK_URL}");
        match metadata.get(EVENT_WEBHOOK_URL) {
            None | Some(Value::Null) => Ok(()),
            Some(Value::String(url)) => self.check_url(&field, url),
            Some(_) => Err(Error::EgressDenied { field, problem: "must be a URL".to_owned() }),
        }
    }

    /// Refuses a URL that a caller names and that may not be reached.
    pub(crate) fn check_url(&self, field: &str, url: &str) -> Result<()> {
        self.client_for(url).map(drop).map_err(|error| {
            let problem = match error {
                petasos_net::Error::Invalid { problem, .. } => {
                    format!("is not an absolute https URL: {problem}")
                }
                error => error.to_string(),
            };
            Error::EgressDenied { field: field.to_owned(), problem }
        })
    }

    /// What may send to a URL, if it may be sent to at all. The URL that the configuration names may be anywhere, which
    /// opens neither another path nor another port beside it.
    fn client_for(&self, url: &str) -> std::result::Result<&Client, petasos_net::Error> {
        if self.options.event_webhook_url.as_deref() == Some(url) {
            return Ok(&self.options.trusted);
        }
        self.options.targets.check(url)?;
        Ok(&self.options.guarded)
    }
}
