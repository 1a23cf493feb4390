//! Webhooks and callbacks.

use std::num::NonZero;

use anyhow::{Context, Result, ensure};
use petasos_engine::{DeliverySettings, Retries};
use petasos_net::webhook::Signer;
use petasos_net::{Guard, Targets};
use secrecy::{ExposeSecret, SecretString};

use super::{file, set, time};

/// How deliveries are made, as far as the file says.
pub(crate) struct DeliveryConfig {
    /// Where they may go.
    pub(crate) targets: Targets,
    /// Where events go if neither the session nor the agent says so.
    pub(crate) event_webhook_url: Option<String>,
    /// What those of the tenant `default` are sent with; none for a derived one.
    pub(crate) token: Option<SecretString>,
    /// What the credentials of all tenants follow from; none for the secret in the home.
    pub(crate) secret: Option<SecretString>,
    /// Time and attempts.
    pub(crate) settings: DeliverySettings,
}

/// What the file says about deliveries.
pub(super) fn deliveries(file: file::Deliveries, guard: &Guard) -> Result<DeliveryConfig> {
    if let Some(url) = &file.event_webhook_url {
        check_url(url).context("deliveries.event_webhook_url")?;
    }
    if let Some(token) = &file.token {
        check_token(token).context("deliveries.token")?;
    }
    file.secret.as_ref().map(Signer::try_from).transpose().context("deliveries.secret")?;
    let mut settings = DeliverySettings::default();
    set(&mut settings.timeout, time(file.timeout_seconds));
    set(&mut settings.in_flight, file.in_flight.map(NonZero::get));
    set(&mut settings.keep, time(file.keep_seconds));
    retries(&mut settings.events, &file.events);
    retries(&mut settings.callbacks, &file.callbacks);
    Ok(DeliveryConfig {
        targets: Targets::new(guard.clone()),
        event_webhook_url: file.event_webhook_url,
        token: file.token,
        secret: file.secret,
        settings,
    })
}

/// The operator may name any address, but it must be one.
fn check_url(url: &str) -> Result<()> {
    Ok(petasos_net::check_web_url(url)?)
}

/// Says why a token could not be sent in a header, without repeating it.
fn check_token(token: &SecretString) -> Result<()> {
    let token = token.expose_secret();
    ensure!(
        !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()),
        "it is empty, or has characters other than letters, digits and signs, which cannot be sent in a header"
    );
    Ok(())
}

fn retries(retries: &mut Retries, file: &file::Retries) {
    set(&mut retries.first_delay, time(file.first_retry_seconds));
    set(&mut retries.max_delay, time(file.max_retry_seconds));
    set(&mut retries.max_attempts, file.max_attempts.map(NonZero::get));
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn read(text: &str) -> Result<DeliveryConfig> {
        deliveries(serde_saphyr::from_str(text).unwrap(), &Guard::default())
    }

    #[test]
    fn everything_can_be_set() {
        let config = read(
            "{event_webhook_url: 'http://127.0.0.1:9/x', token: t, timeout_seconds: 0.5, in_flight: 3,
            secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw, keep_seconds: 60,
            events: {first_retry_seconds: 0.1, max_retry_seconds: 2, max_attempts: 4}}",
        )
        .unwrap();
        assert_eq!(config.settings.timeout, Duration::from_millis(500));
        assert_eq!((config.settings.in_flight, config.settings.keep), (3, Duration::from_secs(60)));
        assert_eq!(config.settings.events.first_delay, Duration::from_millis(100));
        assert_eq!(config.settings.events.max_attempts, 4);
        assert_eq!(config.settings.callbacks, DeliverySettings::default().callbacks);
        assert!(config.secret.is_some() && config.targets.check("https://example.com/").is_ok());
    }

    #[test]
    fn public_targets_need_no_token() {
        assert!(read("{}").unwrap().targets.check("https://example.com/").is_ok());
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        for (text, setting) in [
            ("{secret: whsec_x}", "deliveries.secret"),
            ("{token: 'a b'}", "deliveries.token"),
            ("{event_webhook_url: hook}", "deliveries.event_webhook_url"),
        ] {
            assert!(format!("{:#}", read(text).err().unwrap()).starts_with(setting), "{text}");
        }
    }
}
