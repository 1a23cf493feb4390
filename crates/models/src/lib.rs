//! One trait, a stream of model deltas, and the model providers behind it.
//!
//! [`Models`] turns `provider/model` into a [`Model`]. There is one file for each wire format, with nothing in
//! it but the translation; connections, time limits and retries are the same for all of them. This crate
//! keeps no conversation, runs no tools and must not know what a session is. To add a provider, write its
//! wire format in `wire/` and name it in [`ProviderKind`].

mod call;
mod catalog;
mod demo;
mod error;
mod framing;
mod generate;
mod images;
mod opaques;
pub mod presets;
mod provider;
mod refusals;
mod registry;
mod retry;
mod settings;
mod silence;
mod wire;

use futures_util::stream::BoxStream;
use petasos_core::model::{Answer, Request};

pub use catalog::{Catalog, Family, ModelFacts, Prices, families_of};
pub use error::Error;
pub use registry::Models;
pub use settings::{ProviderConfig, ProviderKind, Settings};

/// Something that answers requests.
pub trait Model: Send + Sync {
    /// Starts a call. Nothing happens until the stream is polled, and dropping the stream ends the call.
    ///
    /// The stream ends with [`Delta::Finished`] or with an error, never with both and never without.
    fn stream(&self, request: Request) -> BoxStream<'static, Result<Delta, Error>>;
}

/// A piece of an answer on its way.
#[derive(Debug, Clone, PartialEq)]
pub enum Delta {
    /// More reasoning.
    Thinking(String),
    /// More text.
    Text(String),
    /// An attempt failed and another one follows.
    Retrying {
        /// The attempt that failed, from 1.
        attempt: u32,
        /// Why it failed.
        error: String,
        /// Whether text or thinking was streamed already, which must be dropped now.
        reset: bool,
    },
    /// The whole answer. Nothing follows it.
    Finished(Answer),
}
