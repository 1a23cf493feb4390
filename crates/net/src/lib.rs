//! The only way out of Petasos: the HTTP client, SSE decoding, retries and signatures of webhooks.
//!
//! Every other crate that talks to the outside does it through [`Client`], so that time limits, bounded
//! bodies and the egress guard sit in one place. No type of the HTTP library underneath is visible
//! here, and nothing in this crate reads the environment, the proxy variables included.

pub mod backoff;
mod bounded;
mod client;
mod error;
mod guard;
mod plain;
mod random;
pub mod sse;
mod tls;
pub mod webhook;

pub use bounded::{Answer, Bounds};
pub use client::{Client, Method, Options, Response, check_web_url};
pub use error::Error;
pub use guard::{Allowed, Egress, Guard, HostPattern, Targets};
pub use random::random;
pub use tls::install_tls;
