//! What every request passes on its way in, and its answer on the way out.
//!
//! Two layers do all of it, since each costs memory for as long as a request waits, and thousands may wait.

use std::future::Future;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use petasos_engine::Caller;
use tracing::Instrument;

use crate::problem::Problem;
use crate::request_id::RequestId;
use crate::server::App;
use crate::surfaces::Shape;
use crate::visit::Visit;
use crate::{auth, body, listen, path, unread};

/// Names the request, counts and logs it, and gives an error the shape of its surface.
pub(crate) fn enter(
    State(app): State<App>,
    request: Request,
    next: Next,
) -> impl Future<Output = Response> + Send {
    let id = RequestId::of(&request);
    let span = id.span(&request);
    let visit = Visit::of(&request);
    let shape = Shape::of(request.uri().path());
    let oversized = listen::refuse_large_head(&request).err().map(Box::new);
    let mut request = unread::read_to_the_end(request, app.settings.body_time);
    let ignored = app.settings.field_rule.note_in(&mut request);
    let answering = next.run(request).instrument(span);
    async move {
        let answer = match oversized {
            Some(problem) => problem.into_response(),
            None => answering.await,
        };
        let mut response = shape.give(answer);
        visit.answered(response.status(), &id, &app.settings.metrics);
        id.put_on(&mut response);
        if let Some(ignored) = ignored {
            ignored.put_on(&mut response);
        }
        response
    }
}

/// Lets only requests of a bearable size with a valid key and a readable path through, and remembers whose it is.
pub(crate) async fn admit(State(app): State<App>, mut request: Request, next: Next) -> Response {
    match admitted(&app, &mut request).await {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            if request.method().is_safe() {
                next.run(request).await
            } else {
                carry_out(next.run(request)).await
            }
        }
        Err(problem) => problem.into_response(),
    }
}

async fn admitted(app: &App, request: &mut Request) -> Result<Caller, Problem> {
    let caller = auth::caller(app, request.headers()).await?;
    body::refuse_too_large(request.headers(), app.settings.max_body_bytes)?;
    path::refuse_unreadable(request).await?;
    body::refuse_unread_fields(app, &caller, request).await?;
    Ok(caller)
}

/// Carries a request out to its end, even if its client goes away: what is committed must also be followed up.
async fn carry_out(answering: impl Future<Output = Response> + Send + 'static) -> Response {
    let answered = tokio::spawn(answering.in_current_span()).await;
    answered.unwrap_or_else(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(_) => Problem::internal("a request was cut off").into_response(),
    })
}
