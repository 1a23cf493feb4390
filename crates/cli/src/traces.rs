//! Traces for an OpenTelemetry collector, if the configuration names one.
//!
//! The exporter brings its own HTTP client: it runs on a thread of its own, beside the runtime, so that a collector
//! that is slow or gone costs the server nothing.

use std::collections::HashMap;

use anyhow::{Context, Result};
use opentelemetry::KeyValue;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;

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
    pub(crate) fn start(settings: &TraceSettings) -> Result<Traces> {
        petasos_net::install_tls();
        let exporter = SpanExporter::builder()
            .with_http()
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
