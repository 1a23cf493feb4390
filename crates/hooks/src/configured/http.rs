//! An address that gets a request at each firing.

use petasos_net::Client;
use petasos_net::webhook::Signer;
use secrecy::SecretString;
use uuid::Uuid;

use super::failure::HookFailure;
use super::judge::{Exchange, MAX_ANSWER_BYTES};

/// An address that is asked.
pub(crate) struct Http {
    url: String,
    signer: Option<Signer>,
}

impl Http {
    /// An address, and what signs the requests to it.
    pub(crate) fn new(url: String, secret: Option<&SecretString>) -> Result<Self, String> {
        let scheme = url.split("://").next().unwrap_or_default().to_ascii_lowercase();
        if !["http", "https"].contains(&scheme.as_str()) {
            return Err(format!("the url {url} must begin with http:// or https://"));
        }
        let signer = secret.map(Signer::try_from).transpose();
        let signer = signer.map_err(|error| format!("the secret of {url} {error}"))?;
        Ok(Http { url, signer })
    }

    /// Posts a payload and takes the answer.
    pub(crate) async fn ask(&self, client: &Client, payload: &[u8]) -> Result<Exchange, HookFailure> {
        let id = format!("hook_{}", Uuid::now_v7().simple());
        let now = jiff::Timestamp::now().as_second();
        let timestamp = now.to_string();
        let signature = self.signer.as_ref().map(|signer| signer.sign(&id, now, payload));
        let mut headers = vec![("webhook-id", id.as_str()), ("webhook-timestamp", timestamp.as_str())];
        headers.extend(signature.as_deref().map(|signature| ("webhook-signature", signature)));
        let answered = client.post_json(&self.url, &headers, payload.to_vec()).await;
        let response = answered.map_err(|error| HookFailure::Unavailable(error.to_string()))?;
        let status = response.status();
        if !(200..300).contains(&status) {
            return Err(HookFailure::Failed(format!("it answered with the status {status}")));
        }
        let body = response.text_bounded(MAX_ANSWER_BYTES).await;
        let stdout = body.map_err(|error| HookFailure::Failed(error.to_string()))?;
        Ok(Exchange { stdout, ..Exchange::default() })
    }
}
