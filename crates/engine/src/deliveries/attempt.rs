//! One attempt to deliver.

use std::time::{Instant, SystemTime};

use petasos_core::delivery::{Attempt, Delivery, Subject};
use petasos_net::Method;
use petasos_net::backoff::retry_after;
use petasos_store::{AfterAttempt, Attempted, DueDelivery};
use secrecy::ExposeSecret;

use super::judge::{Answer, Next, judge};
use super::{Deliveries, Retries};
use crate::engine::now;

impl Deliveries {
    /// Sends a delivery once, and says what came of it and what is next.
    pub(super) async fn attempt(&self, due: DueDelivery) -> Attempted {
        let DueDelivery { delivery, body } = due;
        let (at, started) = (now(), Instant::now());
        let outcome = self.send(&delivery, body).await;
        let policy = self.retries(&delivery.subject).policy();
        let tries = delivery.tries.saturating_add(1);
        let judgement = judge(&outcome, tries, &policy, petasos_net::random());
        let now = now();
        let then = match judgement.next {
            Next::Delivered => AfterAttempt::Delivered,
            Next::Dead => AfterAttempt::Dead,
            Next::After(wait) => now.checked_add(wait).map_or(AfterAttempt::Dead, AfterAttempt::Again),
        };
        let attempt = Attempt {
            at,
            status_code: outcome.as_ref().ok().map(|answer| answer.status),
            error: judgement.error,
            duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        };
        Attempted { id: delivery.id, url: delivery.url, attempt, then, now }
    }

    fn retries(&self, subject: &Subject) -> Retries {
        match subject {
            Subject::Event { .. } => self.options.settings.events,
            Subject::Callback { .. } => self.options.settings.callbacks,
        }
    }

    /// Posts a delivery. The head of the answer is enough: its body is neither needed nor waited for.
    async fn send(&self, delivery: &Delivery, body: Vec<u8>) -> Result<Answer, String> {
        // What was fine when the URL was given may not be any more.
        let client = self.client_for(&delivery.url).map_err(|error| error.to_string())?;
        let time = now().as_second();
        let credentials = &self.options.credentials;
        let signature = credentials.signer(&delivery.tenant).sign(&delivery.webhook_id, time, &body);
        let time = time.to_string();
        let number = (delivery.attempts.len() + 1).to_string();
        let bearer = format!("Bearer {}", credentials.of(&delivery.tenant).token.expose_secret());
        let mut headers = vec![
            ("content-type", "application/json"),
            ("authorization", bearer.as_str()),
            ("webhook-id", delivery.webhook_id.as_str()),
            ("webhook-timestamp", time.as_str()),
            ("webhook-signature", signature.as_str()),
            ("webhook-attempt", number.as_str()),
        ];
        if let Subject::Event { session_id, .. } = &delivery.subject {
            headers.push(("x-session-id", session_id.as_str()));
        }
        let request = client.request(Method::Post, &delivery.url, &headers, Some(body.into()));
        let limit = self.options.settings.timeout;
        let answered = tokio::time::timeout(limit, request).await;
        let response = answered
            .map_err(|_| format!("the receiver did not answer within {} s", limit.as_secs_f32()))?
            .map_err(|error| error.to_string())?;
        let wish = response.header("retry-after").and_then(|value| retry_after(value, SystemTime::now()));
        let answer = Answer { status: response.status(), retry_after: wish };
        response.finish();
        Ok(answer)
    }
}
