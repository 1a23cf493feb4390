//! The one TLS implementation of the process.

/// Chooses it, for us and for every library that asks. Calling this again is harmless.
pub fn install_tls() {
    // Someone else may have chosen one for the whole process already, which is just as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
