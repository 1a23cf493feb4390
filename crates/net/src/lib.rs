//! The only way out of Petasos: the HTTP client, SSE decoding, retries and signatures of webhooks.
//!
//! Every other crate that talks to the outside does it through [`Client`], so that time limits, bounded
//! bodies and the egress guard sit in one place. No type of the HTTP library underneath is visible
//! here, and nothing in this crate reads the environment: proxies and certificates come as [`Options`].

pub mod backoff;
mod bounded;
mod client;
mod dial;
mod encoding;
mod error;
mod guard;
mod plain;
mod proxy;
mod random;
mod response;
pub mod sse;
mod stream;
mod tls;
mod web_url;
pub mod webhook;

pub use bounded::{Answer, Bounds};
pub use client::{Client, Method, Options};
pub use error::Error;
pub use guard::{Allowed, Egress, Guard, HostPattern, Targets};
pub use proxy::{NoProxy, Proxies, Proxy};
pub use random::random;
pub use response::Response;
pub use tls::{Certificates, install_tls};
pub use web_url::check_web_url;
