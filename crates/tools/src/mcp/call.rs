//! One call of a tool on an open connection, for as long as its server shows that it works on it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::ServiceError;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotification,
    CancelledNotificationParam, ClientRequest, InputRequiredResult, ProgressToken, RequestId, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RoleClient};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::connect::Client;

/// How often the time of a call may pass in all, whatever progress its server tells of.
const MAX_EXTENSIONS: u32 = 10;
/// How often a server may answer that the call is to be made again.
const MAX_ROUNDS: usize = 10;
/// By how much the pause before each of them grows.
const PAUSE: Duration = Duration::from_millis(100);

/// Why a call has no result.
pub(super) enum Failure {
    /// The server did not answer, and told of no progress, for this long.
    Silent,
    /// The server told of progress until the bound of a call.
    Endless(Duration),
    /// The server wants to ask back what nobody here can answer.
    AsksBack,
    Service(ServiceError),
}

/// The calls under way, by the token under which their server tells of progress.
#[derive(Clone, Default)]
pub(super) struct Progress(Arc<Mutex<HashMap<ProgressToken, Arc<Notify>>>>);

impl Progress {
    /// Notes that a server works on a call. Tokens that nobody waits for are ignored.
    pub(super) fn made(&self, token: &ProgressToken) {
        if let Some(call) = self.lock().get(token) {
            call.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ProgressToken, Arc<Notify>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls a tool. The call has `time` to begin with, and again after each message of progress. Dropping the future tells
/// the server that nobody waits any more.
pub(super) async fn call(
    client: &Client,
    mut params: CallToolRequestParams,
    time: Duration,
) -> Result<CallToolResult, Failure> {
    let last = Instant::now() + time.saturating_mul(MAX_EXTENSIONS);
    for round in 0..MAX_ROUNDS {
        tokio::time::sleep(PAUSE * u32::try_from(round).unwrap_or(u32::MAX)).await;
        match once(client, params.clone(), time, last).await? {
            ServerResult::CallToolResult(result) => return Ok(result),
            // The server wants the call again with what it says here, which takes nobody's answer.
            ServerResult::InputRequiredResult(InputRequiredResult {
                input_requests: None,
                request_state: Some(state),
                ..
            }) => params.request_state = Some(state),
            ServerResult::InputRequiredResult(_) => return Err(Failure::AsksBack),
            _ => return Err(Failure::Service(ServiceError::UnexpectedResponse)),
        }
    }
    Err(Failure::AsksBack)
}

async fn once(
    client: &Client,
    params: CallToolRequestParams,
    time: Duration,
    last: Instant,
) -> Result<ServerResult, Failure> {
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    // Even the sending may wait for a server that takes nothing.
    let sent = tokio::time::timeout(
        time,
        client.peer().send_request_with_option(request, PeerRequestOptions::default()),
    );
    let mut handle = sent.await.map_err(|_| Failure::Silent)?.map_err(Failure::Service)?;
    let mut under_way = UnderWay::new(client, handle.progress_token.clone(), handle.id.clone());
    loop {
        let until = (Instant::now() + time).min(last);
        tokio::select! {
            biased;
            answer = &mut handle.rx => {
                under_way.request = None;
                let answer = answer.map_err(|_| ServiceError::TransportClosed).and_then(|answer| answer);
                return answer.map_err(Failure::Service);
            }
            () = under_way.progress.notified() => {}
            () = tokio::time::sleep_until(until) => {
                let is_last = until == last;
                return Err(if is_last { Failure::Endless(time * MAX_EXTENSIONS) } else { Failure::Silent });
            }
        }
    }
}

/// A request that is not answered yet. The server is told when nobody waits for the answer any more.
struct UnderWay {
    peer: Peer<RoleClient>,
    /// None when it is answered.
    request: Option<RequestId>,
    token: ProgressToken,
    progress: Arc<Notify>,
    all: Progress,
}

impl UnderWay {
    fn new(client: &Client, token: ProgressToken, request: RequestId) -> Self {
        let (all, progress) = (client.service().progress.clone(), Arc::new(Notify::new()));
        all.lock().insert(token.clone(), Arc::clone(&progress));
        UnderWay { peer: client.peer().clone(), request: Some(request), token, progress, all }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.all.lock().remove(&self.token);
        let (Some(request), Ok(runtime)) = (self.request.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let params =
                CancelledNotificationParam::new(Some(request), Some("nobody waits any more".to_owned()));
            let cancelled = CancelledNotification::new(params);
            // A server that is gone needs not be told.
            drop(peer.send_notification(cancelled.into()).await);
        });
    }
}
