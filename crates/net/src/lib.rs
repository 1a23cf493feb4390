//! The only way out of Petasos: the HTTP client, SSE decoding and retries.
//!
//! Every other crate that talks to the outside does it through [`Client`], so that time limits, bounded
//! bodies and the egress guard sit in one place. No type of the HTTP library underneath is visible
//! here, and nothing in this crate reads the environment, the proxy variables included.

pub mod backoff;
mod bounded;
mod client;
mod error;
mod guard;
pub mod sse;
mod tls;

pub use bounded::{Answer, Bounds};
pub use client::{Client, Method, Options, Response};
pub use error::Error;
pub use guard::{Allowed, Egress, Guard, HostPattern};
pub use tls::install_tls;
