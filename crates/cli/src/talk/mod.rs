//! Talking to an agent: one turn with `run`, many with `chat`.
//!
//! Both are clients of the HTTP surface like any other; nothing here knows the engine.

pub(crate) mod chat;
mod conversation;
mod happening;
mod input;
mod partner;
mod questions;
pub(crate) mod run;
mod screen;
mod stream;
mod transcript;

use std::time::Duration;

use anyhow::Result;

use self::conversation::Conversation;
use self::partner::Partner;
use crate::api::Api;
use crate::args::{ConnectArgs, PartnerArgs};
use crate::config::Config;
use crate::connect::Connection;
use crate::env::Environment;
use crate::home::Home;
use crate::output;
use crate::signals::Interrupts;

/// The model that needs no key and no network.
pub(crate) const DEFAULT_MODEL: &str = "demo/echo";
/// How long the end of an embedded server may take without a word.
const SILENT_END: Duration = Duration::from_secs(1);

/// Starts a conversation with the one that the arguments name.
async fn begin<'a>(
    api: &'a Api,
    partner: &PartnerArgs,
    connect: &ConnectArgs,
    environment: &Environment,
) -> Result<Conversation<'a>> {
    let partner = match (&partner.agent, &partner.model) {
        (Some(agent_id), _) => Partner::named(api, agent_id).await?,
        (None, Some(model)) => Partner::for_model(api, model).await?,
        (None, None) => {
            let home = Home::find(connect.home.data_dir.as_deref(), environment)?;
            let config = Config::read(connect.home.config.as_deref(), &home, environment)?;
            let model = config.default_model.as_deref().unwrap_or(DEFAULT_MODEL);
            Partner::for_model(api, model).await?
        }
    };
    Ok(Conversation::new(api, partner, environment.user_name()))
}

/// Ends the connection. An embedded server lets turns end for a while, and says so if that takes long; Ctrl-C does
/// not wait for that.
async fn close(connection: Connection, interrupts: &mut Interrupts) -> Result<()> {
    let mut closing = std::pin::pin!(connection.close());
    tokio::select! {
        closed = &mut closing => return closed,
        () = interrupts.next() => return Ok(()),
        () = tokio::time::sleep(SILENT_END) => {}
    }
    output::note(
        "Waiting for turns and hooks that still run. Ctrl-C leaves at once; turns go on at the next start.",
    );
    tokio::select! {
        closed = closing => closed,
        () = interrupts.next() => Ok(()),
    }
}
