//! The one TLS implementation of the process, and whom it believes.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::error::{Error, innermost};

/// Where systems keep the certificates that they trust. The first that is there counts.
const SYSTEM_BUNDLES: [&str; 6] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/usr/local/share/certs/ca-root-nss.crt",
];

/// Chooses it, for us and for every library that asks. Calling this again is harmless.
pub fn install_tls() {
    // Someone else may have chosen one for the whole process already, which is just as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Certificates that are trusted besides those of the system. Cheap to clone.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Certificates {
    roots: Arc<[CertificateDer<'static>]>,
}

impl Certificates {
    /// Reads certificates in PEM form. Of several, those that nothing can be checked with are left out; if none is
    /// left, that is an error.
    pub fn from_pem(pem: &[u8]) -> Result<Self, String> {
        let mut roots = Vec::new();
        let mut problem = None;
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| format!("it is not valid PEM: {error}"))?;
            match RootCertStore::empty().add(certificate.clone()) {
                Ok(()) => roots.push(certificate),
                Err(error) => problem = Some(innermost(&error)),
            }
        }
        match problem {
            _ if !roots.is_empty() => Ok(Certificates { roots: roots.into() }),
            Some(problem) => Err(format!("it holds no certificate that can be used: {problem}")),
            None => Err("it holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)".to_owned()),
        }
    }

    /// Those of the file in which this system keeps what it trusts; none where there is no such file.
    pub fn of_system() -> Self {
        let pem = SYSTEM_BUNDLES.iter().find_map(|path| std::fs::read(path).ok());
        pem.and_then(|pem| Certificates::from_pem(&pem).ok()).unwrap_or_default()
    }

    /// Adds others.
    #[must_use]
    pub fn and(&self, others: &Certificates) -> Self {
        Certificates { roots: self.roots.iter().chain(others.roots.iter()).cloned().collect() }
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Certificates({})", self.roots.len())
    }
}

/// How connections over TLS are made: the system's certificates are trusted, and these. Reads files, so that it takes
/// a while.
pub(crate) fn client_config(certificates: &Certificates) -> Result<ClientConfig, Error> {
    install_tls();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let setup = |error: rustls::Error| Error::Setup { problem: innermost(&error) };
    let roots = certificates.roots.iter().cloned();
    let verifier = rustls_platform_verifier::Verifier::new_with_extra_roots(roots, Arc::clone(&provider));
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(setup)?;
    Ok(match verifier {
        Ok(verifier) => {
            let verifier: Arc<dyn ServerCertVerifier> = Arc::new(verifier);
            builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
        }
        Err(error) => {
            // Bare containers have no certificates. Plain HTTP to a local model must work there all the same, and an
            // https request will say that the certificate's issuer is unknown.
            tracing::warn!(problem = innermost(&error), "no system certificates: https requests will fail");
            builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_no_certificate_is_refused() {
        for (pem, word) in [
            ("", "no certificate"),
            ("plain text", "no certificate"),
            ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "no certificate"),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "can be used"),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n", "PEM"),
        ] {
            let problem = Certificates::from_pem(pem.as_bytes()).unwrap_err();
            assert!(problem.contains(word), "{pem}: {problem}");
        }
    }
}
