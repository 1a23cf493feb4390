//! Speaks to a server for the first time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam, ProtocolVersion,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, NotificationContext, RoleClient, RunningService,
    serve_client_with_lifecycle,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;

use super::call::Progress;
use super::http::Http;
use super::program::Running;

/// A connection that is open.
pub(super) type Client = RunningService<RoleClient, Listener>;

/// Hears what a server says unasked.
pub(super) struct Listener {
    pub(super) tools_changed: AtomicBool,
    pub(super) progress: Progress,
}

impl ClientHandler for Listener {
    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.tools_changed.store(true, Ordering::Release);
    }

    async fn on_progress(&self, told: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.progress.made(&told.progress_token);
    }

    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(
            ClientCapabilities::default(),
            Implementation::new("petasos", env!("CARGO_PKG_VERSION")),
        )
        .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}

impl Listener {
    fn new() -> Self {
        Listener { tools_changed: AtomicBool::new(false), progress: Progress::default() }
    }
}

/// Over the streams of a program that runs.
pub(super) async fn connect_program(
    mut running: Running,
    message_bytes: usize,
) -> Result<(Client, Running), String> {
    let (Some(stdout), Some(stdin)) = (running.stdout.take(), running.stdin.take()) else {
        return Err("its streams are not there".to_owned());
    };
    let transport = AsyncRwTransport::new_client(stdout, stdin).with_max_line_length(message_bytes);
    let lifecycle = ClientLifecycleMode::Initialize;
    match serve_client_with_lifecycle(Listener::new(), transport, lifecycle).await {
        Ok(client) => Ok((client, running)),
        Err(error) => Err(format!("{}{}", with_causes(&error), running.last_words().await)),
    }
}

/// Over streamable HTTP.
pub(super) async fn connect_http(http: &Http, url: &str) -> Result<Client, String> {
    let serve = |lifecycle| {
        let mut retries = ExponentialBackoff::default();
        retries.max_times = Some(3);
        let mut config = StreamableHttpClientTransportConfig::with_uri(url);
        config.retry_config = Arc::new(retries);
        let transport = StreamableHttpClientTransport::with_client(http.clone(), config);
        serve_client_with_lifecycle(Listener::new(), transport, lifecycle)
    };
    match serve(ClientLifecycleMode::Initialize).await {
        // Servers of the newest protocol need not know the handshake of the older ones.
        Err(ClientInitializeError::JsonRpcError(error)) => {
            let newest = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] };
            serve(newest).await.map_err(|_| error.message.to_string())
        }
        served => served.map_err(|error| with_causes(&error)),
    }
}

/// An error and what it comes from, in one line.
pub(super) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}
