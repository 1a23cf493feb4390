//! One configured provider, and how its failures are told.
//!
//! All error texts of this crate that speak of a provider are written here, so that none of them repeats a key.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use petasos_net::{Response, backoff};
use secrecy::ExposeSecret;
use serde_json::Value;

use crate::error::Retry;
use crate::refusals::Refusals;
use crate::wire::Problem;
use crate::{Error, ProviderConfig, presets};

/// The most of an error body that is read, and the most characters of it that are repeated.
const MAX_ERROR_BODY: usize = 64 * 1024;
const MAX_REPEATED: usize = 400;

/// A provider under its configured name.
#[derive(Debug, Clone)]
pub(crate) struct Provider {
    pub(crate) name: String,
    pub(crate) config: Arc<ProviderConfig>,
    /// Fields that it has refused since the server started.
    pub(crate) refusals: Refusals,
}

/// An answer with a status other than 200.
pub(crate) struct Failed {
    pub(crate) status: u16,
    /// The beginning of its body.
    pub(crate) body: String,
    location: Option<String>,
    retry_after: Option<Duration>,
    /// The provider asks for no other attempt.
    never: bool,
    /// The proxy that it came through, if proxies answer so when they cannot reach the provider.
    proxy: Option<String>,
}

impl Failed {
    pub(crate) async fn read(response: Response) -> Self {
        let status = response.status();
        let retry_after = wish(&response);
        let never = response.header("x-should-retry") == Some("false");
        let location = response.header("location").map(str::to_owned);
        let proxy = response.proxy().filter(|_| matches!(status, 502..=504)).map(str::to_owned);
        let body = response.text_bounded(MAX_ERROR_BODY).await.unwrap_or_default();
        Failed { status, body, location, retry_after, never, proxy }
    }
}

impl Provider {
    pub(crate) fn new(name: &str, config: Arc<ProviderConfig>) -> Self {
        Provider { name: name.to_owned(), config, refusals: Refusals::default() }
    }

    /// Where requests go.
    pub(crate) fn url(&self) -> String {
        self.config.url(self.config.kind.format().path())
    }

    /// The vendors themselves never answer without a key, so that asking them is a waste of time.
    pub(crate) fn check_key(&self, model: &str) -> Result<(), Error> {
        let config = &self.config;
        let at_vendor = presets::at(&config.base_url).is_some();
        if config.api_key.is_some() || !config.headers.is_empty() || !at_vendor {
            return Ok(());
        }
        let message = format!("{}/{model}: no key is set. {}", self.name, self.set_key());
        Err(Error::new(Error::MISSING_KEY, message))
    }

    fn set_key(&self) -> String {
        // A provider of another name at a vendor's address has no variable unless its preset is named.
        let preset = presets::at(&self.config.base_url).or_else(|| presets::named(&self.name));
        match preset.and_then(|preset| preset.keys.first()) {
            Some(variable) => {
                format!("Set {variable}, or api_key under providers.{} in config.yaml", self.name)
            }
            None => {
                let name = &self.name;
                let variable = name.to_uppercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
                format!(
                    "Write api_key_env: {variable}_API_KEY under providers.{name} in config.yaml and set that variable, \
                     or write api_key there"
                )
            }
        }
    }

    /// What a failed connection means.
    pub(crate) fn network_error(&self, model: &str, error: &petasos_net::Error) -> Error {
        let name = &self.name;
        let cure = match error {
            petasos_net::Error::Invalid { .. } => {
                format!("Check base_url, api_key and headers of provider {name}")
            }
            petasos_net::Error::Proxy { .. } => {
                "Check proxy in config.yaml, HTTPS_PROXY and HTTP_PROXY".to_owned()
            }
            _ => format!("Check the network and base_url of provider {name}"),
        };
        let message = format!("{name}/{model}: {error}. {cure}");
        match error {
            petasos_net::Error::Invalid { .. } | petasos_net::Error::Refused { .. } => {
                Error::new(Error::BAD_REQUEST, message)
            }
            petasos_net::Error::Timeout { .. } | petasos_net::Error::Slow { .. } => {
                Error::passing(Error::TIMEOUT, message)
            }
            petasos_net::Error::TooLarge { .. } | petasos_net::Error::Encoded { .. } => {
                Error::new(Error::BAD_RESPONSE, message)
            }
            // Another password, or another rule of the proxy, does not come by itself.
            petasos_net::Error::Proxy { status: Some(400..=499), .. } => {
                Error::new(Error::UNREACHABLE, message)
            }
            petasos_net::Error::Connect { .. }
            | petasos_net::Error::Proxy { .. }
            | petasos_net::Error::Lost { .. }
            | petasos_net::Error::Setup { .. } => Error::passing(Error::UNREACHABLE, message),
        }
    }

    /// Nothing came for `waited`.
    pub(crate) fn silence(&self, model: &str, waited: Duration, doing: &str) -> Error {
        let message = format!("{}/{model}: the provider {doing} for {waited:?}", self.name);
        Error::passing(Error::TIMEOUT, message)
    }

    /// The stream ended before the answer did.
    pub(crate) fn closed_early(&self, model: &str) -> Error {
        let message =
            format!("{}/{model}: the provider closed the stream before the answer was complete", self.name);
        Error::passing(Error::UNREACHABLE, message)
    }

    /// What came back is not the protocol at all. Another attempt is pointless, unless it is the page of a proxy that
    /// says so.
    pub(crate) fn not_a_stream(&self, model: &str, content_type: Option<&str>, body: &str) -> Error {
        let message = format!(
            "{name}/{model}: expected a stream of events, got {kind}: {body}. Check base_url and kind of provider {name}",
            name = self.name,
            kind = content_type.unwrap_or("unknown content"),
            body = self.readable(body),
        );
        match page_status(body).map(|status| sort(Some(status), "", "")) {
            Some((code, retry @ Retry::After(_), _)) => Error { retry, ..Error::new(code, message) },
            _ => Error::new(Error::BAD_RESPONSE, message),
        }
    }

    /// The error that came with status 200 in place of an answer, if its code says of which sort it is.
    pub(crate) fn error_in(&self, model: &str, answer: &Value) -> Option<Error> {
        let answer = answer.get(0).unwrap_or(answer);
        let error = answer.get("error").filter(|error| error.is_object())?;
        let kind = code_of(error);
        (!kind.is_empty()).then(|| self.reported(model, kind.parse().ok(), &kind, &answer.to_string()))
    }

    /// What an HTTP status other than 200 means.
    pub(crate) fn status_error(&self, model: &str, failed: &Failed) -> Error {
        let status = failed.status;
        let kind = error_object(&failed.body).map(|error| text_of(&error, &["code", "type"]));
        let said = match &failed.location {
            Some(location) if (300..400).contains(&status) => format!("it redirects to {location}"),
            _ => failed.body.clone(),
        };
        let mut error = self.reported(model, Some(status), &kind.unwrap_or_default(), &said);
        if let Some(proxy) = &failed.proxy {
            error.message = format!(
                "{}. The request went through the proxy {proxy}",
                error.message.trim_end_matches('.')
            );
        }
        match &mut error.retry {
            retry if failed.never => *retry = Retry::Never,
            Retry::After(wait) => *wait = failed.retry_after,
            Retry::Never => {}
        }
        error
    }

    /// What a problem inside the stream means.
    pub(crate) fn stream_problem(&self, model: &str, problem: &Problem) -> Error {
        match problem {
            Problem::Malformed(what) => {
                let message = format!(
                    "{name}/{model}: the answer is not in the expected format: {what}. Check base_url and kind of \
                     provider {name}",
                    name = self.name,
                    what = self.readable(what),
                );
                Error::passing(Error::BAD_RESPONSE, message)
            }
            Problem::Empty => {
                let message = format!("{}/{model}: the answer is empty. Try again later", self.name);
                Error::passing(Error::BAD_RESPONSE, message)
            }
            // Gateways send the status that they got as the code.
            Problem::Reported { kind, message } => self.reported(model, kind.parse().ok(), kind, message),
        }
    }

    /// An error in the provider's own words, sorted by status and by what the provider calls it.
    fn reported(&self, model: &str, status: Option<u16>, kind: &str, said: &str) -> Error {
        let name = &self.name;
        let said = self.readable(said);
        let (code, retry, cure) = sort(status, kind, &said);
        let cure = match code {
            Error::UNAUTHORIZED => self.set_key(),
            Error::NOT_FOUND => format!("Check the model's name and base_url of provider {name}"),
            _ => cure.to_owned(),
        };
        let label = match (status, kind) {
            (Some(status), _) => format!("status {status}"),
            (None, "") => "an error in the stream".to_owned(),
            (None, kind) => self.readable(kind),
        };
        let message = format!("{name}/{model}: {label}: {said}. {cure}");
        Error { code, message, began: false, retry }
    }

    /// A provider's text as far as it may be shown: its message if it is JSON, short, and without keys.
    fn readable(&self, text: &str) -> String {
        let text = text.trim();
        let message =
            error_object(text).map(|error| text_of(&error, &["message"])).filter(|text| !text.is_empty());
        let text = message.as_deref().unwrap_or(text);
        if text.starts_with('<') {
            return "an HTML page".to_owned();
        }
        let mut shown: String = self.redacted(text).chars().take(MAX_REPEATED).collect();
        if shown.is_empty() {
            "no further details".clone_into(&mut shown);
        }
        shown.trim_end_matches('.').to_owned()
    }

    fn redacted(&self, text: &str) -> String {
        let key = self.config.api_key.as_ref().map(|key| key.expose_secret());
        let secrets = key.into_iter().chain(self.config.headers.values().map(String::as_str));
        let mut text = text.to_owned();
        for secret in secrets.filter(|secret| secret.len() >= 4) {
            text = text.replace(secret, "[redacted]");
        }
        // Providers repeat a wrong key in part.
        let words =
            text.split_whitespace().map(|word| if word.contains("sk-") { "[redacted]" } else { word });
        words.collect::<Vec<_>>().join(" ")
    }
}

/// The time that a provider asks us to wait.
fn wish(response: &Response) -> Option<Duration> {
    let milliseconds = response.header("retry-after-ms").and_then(|value| value.parse().ok());
    milliseconds.map(Duration::from_millis).or_else(|| {
        response.header("retry-after").and_then(|value| backoff::retry_after(value, SystemTime::now()))
    })
}

/// Code, whether to try again, and the cure.
fn sort(status: Option<u16>, kind: &str, said: &str) -> (&'static str, Retry, &'static str) {
    let again = Retry::After(None);
    let said = said.to_lowercase();
    let too_long = ["context length", "context window", "prompt is too long", "too many tokens"];
    if kind == "context_length_exceeded"
        || (matches!(status, None | Some(400 | 413)) && too_long.iter().any(|phrase| said.contains(phrase)))
    {
        let cure =
            "The conversation is longer than the model can read: start a new session or use another model";
        return (Error::CONTEXT_TOO_LONG, Retry::Never, cure);
    }
    match (status, kind) {
        (_, "insufficient_quota" | "billing_error") | (Some(402), _) => {
            (Error::RATE_LIMITED, Retry::Never, "Check the plan and billing of the provider's account")
        }
        (Some(401 | 403), _) | (None, "authentication_error" | "permission_error" | "invalid_api_key") => {
            (Error::UNAUTHORIZED, Retry::Never, "")
        }
        (Some(404), _) | (None, "not_found_error" | "model_not_found") => {
            (Error::NOT_FOUND, Retry::Never, "")
        }
        (Some(429), _) | (None, "rate_limit_error" | "rate_limit_exceeded") => {
            (Error::RATE_LIMITED, again, "Wait, or ask the provider for a higher limit")
        }
        (Some(408), _) | (None, "timeout_error") => (Error::TIMEOUT, again, "Try again later"),
        // 409 is a lock that was held for too long at the provider.
        (Some(409 | 500..), _) => (Error::OVERLOADED, again, "Try again later"),
        (Some(300..400), _) => (
            Error::BAD_RESPONSE,
            Retry::Never,
            "Redirects are not followed: set base_url to the final address",
        ),
        (Some(400..), _) | (None, "invalid_request_error" | "invalid_prompt") => {
            (Error::BAD_REQUEST, Retry::Never, "The provider did not accept the request")
        }
        (Some(_), _) => (Error::BAD_RESPONSE, Retry::Never, "This status is not part of the protocol"),
        (None, _) => (Error::OVERLOADED, again, "Try again later"),
    }
}

/// The error object of a JSON body: most wrap it in `error`, some do not.
fn error_object(body: &str) -> Option<Value> {
    let body: Value = serde_json::from_str(body.trim()).ok()?;
    // Some gateways answer with a list of one error.
    let body = body.get(0).cloned().unwrap_or(body);
    let error = body.get("error").cloned().unwrap_or(body);
    match error {
        Value::String(message) => Some(serde_json::json!({ "message": message })),
        Value::Object(_) => Some(error),
        _ => None,
    }
}

/// The code or the type of an error, whether it is a text or a number.
fn code_of(error: &Value) -> String {
    let code = error.get("code").filter(|code| !code.is_null()).or_else(|| error.get("type"));
    match code {
        Some(Value::String(code)) => code.clone(),
        Some(Value::Number(code)) => code.to_string(),
        _ => String::new(),
    }
}

/// The status in the title of a page, as proxies write it: `502 Bad Gateway`.
fn page_status(page: &str) -> Option<u16> {
    let start: String = page.chars().take(4096).collect::<String>().to_lowercase();
    let (_, title) = start.split_once("<title>")?;
    let status = title.trim_start().get(..3)?.parse().ok()?;
    (400..600).contains(&status).then_some(status)
}

fn text_of(error: &Value, names: &[&str]) -> String {
    names.iter().find_map(|name| error[*name].as_str()).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ProviderKind;

    fn provider() -> Provider {
        let mut config = ProviderConfig::new(ProviderKind::Openai, Some("topsecret".into()));
        config.headers.insert("x-team".to_owned(), "hidden-team".to_owned());
        Provider::new("mine", Arc::new(config))
    }

    #[test]
    fn messages_name_the_model_and_hold_no_keys() {
        let body = r#"{"error":{"message":"Incorrect API key provided: topsecret, sk-ab***yz, hidden-team.","code":"invalid_api_key"}}"#;
        let error = provider().reported("gpt-x", Some(401), "invalid_api_key", body);
        assert_eq!(error.code, Error::UNAUTHORIZED);
        assert_eq!(
            error.message,
            "mine/gpt-x: status 401: Incorrect API key provided: [redacted], [redacted] [redacted]. Set \
             OPENAI_API_KEY, or api_key under providers.mine in config.yaml"
        );
    }

    #[test]
    fn statuses_and_kinds_are_sorted() {
        let again = Retry::After(None);
        for (status, kind, said, code, retry) in [
            (Some(400), "", "bad", Error::BAD_REQUEST, Retry::Never),
            (Some(400), "", "prompt is too long: 3 > 2", Error::CONTEXT_TOO_LONG, Retry::Never),
            (Some(403), "", "", Error::UNAUTHORIZED, Retry::Never),
            (Some(404), "", "", Error::NOT_FOUND, Retry::Never),
            (Some(408), "", "", Error::TIMEOUT, again),
            (Some(409), "", "", Error::OVERLOADED, again),
            (Some(429), "", "", Error::RATE_LIMITED, again),
            (Some(429), "insufficient_quota", "", Error::RATE_LIMITED, Retry::Never),
            (Some(500), "", "", Error::OVERLOADED, again),
            (Some(529), "overloaded_error", "", Error::OVERLOADED, again),
            (Some(302), "", "", Error::BAD_RESPONSE, Retry::Never),
            (None, "overloaded_error", "", Error::OVERLOADED, again),
            (None, "rate_limit_exceeded", "", Error::RATE_LIMITED, again),
            (None, "invalid_request_error", "", Error::BAD_REQUEST, Retry::Never),
        ] {
            let (found, found_retry, _) = sort(status, kind, said);
            assert_eq!((found, found_retry), (code, retry), "{status:?} {kind} {said}");
        }
    }

    #[test]
    fn bodies_of_any_shape_are_readable() {
        let provider = provider();
        for (body, shown) in [
            ("", "no further details"),
            ("<!DOCTYPE html><p>x", "an HTML page"),
            (r#"{"error":"model 'x' not found"}"#, "model 'x' not found"),
            (r#"[{"error":{"message":"No."}}]"#, "No"),
            (r#"{"message":"plain"}"#, "plain"),
            ("  upstream gone\n", "upstream gone"),
        ] {
            assert_eq!(provider.readable(body), shown, "{body}");
        }
        assert_eq!(provider.readable(&"ä".repeat(9_000)).chars().count(), MAX_REPEATED);
    }
}
