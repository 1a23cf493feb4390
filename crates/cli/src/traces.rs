//! Traces for an OpenTelemetry collector, if the configuration names one.
//!
//! The exporter runs on a thread of its own, beside the runtime of the server, so that a collector that is slow or gone
//! costs the server nothing. It reaches the collector like everything else that the configuration names: through `net`,
//! and through a proxy if there is one.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context, Result};
use async_trait::async_trait;
use opentelemetry::KeyValue;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use petasos_net::{Bounds, Client, Method, Options};
use tokio::runtime::{self, Runtime};

/// What an answer of a collector may cost. Its body says at most which spans it refused.
const BOUNDS: Bounds = Bounds { time: Duration::from_secs(10), body_bytes: 1 << 20, redirects: 0 };

/// Where traces go.
pub(crate) struct TraceSettings {
    /// The collector's address for traces, such as `http://127.0.0.1:4318/v1/traces`.
    pub(crate) endpoint: String,
    /// Sent with every request.
    pub(crate) headers: HashMap<String, String>,
}

/// Spans on their way out.
pub(crate) struct Traces(SdkTracerProvider);

impl Traces {
    /// Sets up the exporter. Nothing is sent until there is something to send.
    pub(crate) fn start(settings: &TraceSettings, net: &Options) -> Result<Traces> {
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Sender { client: Client::new(net), runtime: OnceLock::new() })
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(&settings.endpoint)
            .with_headers(settings.headers.clone())
            .build()
            .with_context(|| format!("traces.endpoint: {} cannot be used", settings.endpoint))?;
        let resource = Resource::builder()
            .with_service_name("petasos")
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(Traces(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build()))
    }

    /// What turns our spans into theirs.
    pub(crate) fn provider(&self) -> &SdkTracerProvider {
        &self.0
    }

    /// Sends what is left. A collector that does not answer is a warning, no more.
    pub(crate) async fn finish(self) {
        // The exporter waits for its own thread, which must not hold up the runtime.
        let finished = tokio::task::spawn_blocking(move || self.0.shutdown()).await;
        if let Ok(Err(error)) = finished {
            tracing::warn!(%error, "the last traces could not be sent");
        }
    }
}

/// Sends what the exporter's thread hands over, on that thread.
#[derive(Debug)]
struct Sender {
    client: Client,
    /// Made by the first request, so that it begins and ends on the thread that uses it.
    runtime: OnceLock<Runtime>,
}

impl Sender {
    fn runtime(&self) -> std::io::Result<&Runtime> {
        if self.runtime.get().is_none() {
            drop(self.runtime.set(runtime::Builder::new_current_thread().enable_all().build()?));
        }
        self.runtime.get().ok_or_else(|| std::io::Error::other("there is no runtime"))
    }
}

#[async_trait]
impl HttpClient for Sender {
    /// Blocks: the exporter waits for each of its futures on a thread without a runtime.
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (head, body) = request.into_parts();
        let headers: Vec<(&str, &str)> = head
            .headers
            .iter()
            .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
            .collect();
        let url = head.uri.to_string();
        let sent = self.client.send(Method::Post, &url, &headers, Some(body), BOUNDS);
        let answer = self.runtime()?.block_on(sent)?;
        Ok(Response::builder().status(answer.status).body(answer.body)?)
    }
}
