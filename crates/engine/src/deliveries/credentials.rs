//! Proof of where a delivery comes from: a bearer token and a signing secret for each tenant.
//!
//! Everything follows from one root secret. It is the signing secret of the tenant `default`; the secret and the token
//! of any other tenant are HMAC-SHA256 values under it, of a label and the tenant's name. A receiver of one tenant
//! therefore cannot make deliveries that a receiver of another tenant accepts, and no key of the API is ever sent.

use petasos_core::ids::TenantId;
use petasos_net::webhook::{self, InvalidSecret, Signer};
use secrecy::SecretString;

/// The labels are part of the documented format: changing one changes every derived credential.
const SECRET_LABEL: &str = "petasos delivery secret v1\n";
const TOKEN_LABEL: &str = "petasos delivery token v1\n";
/// What a derived token begins with.
const TOKEN_PREFIX: &str = "pdt_";

/// The credentials of all tenants.
#[derive(Debug, Clone)]
pub struct DeliveryCredentials {
    secret: SecretString,
    root: Signer,
    token: Option<SecretString>,
}

/// The credentials of one tenant, as its receivers are told.
#[derive(Debug, Clone)]
pub struct TenantCredentials {
    /// What its deliveries carry as `authorization: Bearer`.
    pub token: SecretString,
    /// What its deliveries are signed with.
    pub secret: SecretString,
}

impl DeliveryCredentials {
    /// Credentials that follow from a root secret (`whsec_…`). `token` is used for the tenant `default` alone.
    pub fn new(secret: SecretString, token: Option<SecretString>) -> Result<Self, InvalidSecret> {
        let root = Signer::try_from(&secret)?;
        Ok(DeliveryCredentials { secret, root, token })
    }

    /// The credentials of a tenant.
    pub fn of(&self, tenant: &TenantId) -> TenantCredentials {
        let is_default = *tenant == TenantId::default_tenant();
        let secret = match is_default {
            true => self.secret.clone(),
            false => webhook::secret(&self.root.derive(&format!("{SECRET_LABEL}{tenant}"))),
        };
        let token = self.token.clone().filter(|_| is_default).unwrap_or_else(|| self.derived_token(tenant));
        TenantCredentials { token, secret }
    }

    /// What signs the deliveries of a tenant.
    pub(super) fn signer(&self, tenant: &TenantId) -> Signer {
        if *tenant == TenantId::default_tenant() {
            return self.root.clone();
        }
        Signer::from_key(&self.root.derive(&format!("{SECRET_LABEL}{tenant}")))
    }

    fn derived_token(&self, tenant: &TenantId) -> SecretString {
        let key = self.root.derive(&format!("{TOKEN_LABEL}{tenant}"));
        let digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        SecretString::from(format!("{TOKEN_PREFIX}{digits}"))
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    const ROOT: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    fn of(tenant: &str, token: Option<&str>) -> (String, String) {
        let credentials = DeliveryCredentials::new(ROOT.into(), token.map(SecretString::from)).unwrap();
        let tenant: TenantId = tenant.parse().unwrap();
        let TenantCredentials { token, secret } = credentials.of(&tenant);
        let signed = Signer::try_from(&secret).unwrap().sign("id", 1, b"{}");
        assert_eq!(signed, credentials.signer(&tenant).sign("id", 1, b"{}"), "the secret is what signs");
        (token.expose_secret().to_owned(), secret.expose_secret().to_owned())
    }

    #[test]
    fn every_tenant_has_credentials_of_its_own() {
        let default = of("default", None);
        let (acme, other) = (of("acme", None), of("other", None));
        assert_eq!(default.1, ROOT);
        for (one, two) in [(&default, &acme), (&default, &other), (&acme, &other)] {
            assert_ne!(one.0, two.0);
            assert_ne!(one.1, two.1);
        }
        assert_eq!(of("acme", None), acme, "they stay the same");
    }

    #[test]
    fn a_token_that_is_set_is_that_of_the_default_tenant_alone() {
        assert_eq!(of("default", Some("out")), ("out".to_owned(), ROOT.to_owned()));
        assert_eq!(of("acme", Some("out")), of("acme", None));
    }

    /// Receivers keep what they were told, so the format must not change.
    #[test]
    fn the_format_stays() {
        let (token, secret) = of("acme", None);
        assert_eq!(secret, "whsec_z1cSZ7+0AxF6wPuJWFPacSAzblk0nrTzfRiwVqIiHa0=");
        assert_eq!(token, "pdt_7c2751f78e5537bef09804e6a845d9fbe9a77389a7613a0727ac81cefbdd7c5a");
    }
}
