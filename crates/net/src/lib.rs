//! The only way out of Petasos: the HTTP client, SSE decoding and retries.
//!
//! Every other crate that talks to the outside does it through [`Client`], so that time limits, bounded
//! bodies and later the egress guard sit in one place. No type of the HTTP library underneath is visible
//! here, and nothing in this crate reads the environment, the proxy variables included.

pub mod backoff;
mod client;
mod error;
pub mod sse;
mod tls;

pub use client::{Client, Method, Options, Response};
pub use error::Error;
pub use tls::install_tls;
