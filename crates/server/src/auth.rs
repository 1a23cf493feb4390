//! Who makes a request. Without a valid key nothing else is looked at.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use petasos_core::ids::TenantId;
use petasos_core::key::KeyScope;
use petasos_engine::{Caller, hash_key};

use crate::problem::Problem;
use crate::server::App;

/// Whose key a request has.
pub(crate) async fn caller(app: &App, headers: &HeaderMap) -> Result<Caller, Problem> {
    let key = bearer(headers).ok_or_else(|| unauthorized("Send a key as Authorization: Bearer <key>."))?;
    let hash = hash_key(key);
    let caller = if hash == app.settings.admin_key_hash {
        Some(Caller { tenant: TenantId::default_tenant(), scopes: vec![KeyScope::Admin] })
    } else {
        app.engine.authenticate(key).await?
    };
    let mut caller = caller.ok_or_else(revoked)?;
    if let Some(limiter) = &app.settings.limiter {
        limiter.check(&hash)?;
    }
    if let (true, Some(tenant)) = (caller.is_admin(), headers.get("x-petasos-tenant")) {
        let tenant = tenant.to_str().ok().and_then(|text| text.parse().ok());
        caller.tenant =
            tenant.ok_or_else(|| Problem::validation("x-petasos-tenant", "is not the name of a tenant"))?;
    }
    Ok(caller)
}

pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, key) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim()).filter(|key| !key.is_empty())
}

/// A key opens nothing, or nothing any more.
pub(crate) fn revoked() -> Problem {
    unauthorized("The key is wrong or was revoked.")
}

fn unauthorized(message: &str) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
}

fn forbidden(scope: KeyScope) -> Problem {
    let message = format!("This key lacks the scope {scope}.");
    Problem::new(StatusCode::FORBIDDEN, "forbidden", message).with("scope", scope.as_str())
}

macro_rules! allowed {
    ($(#[$doc:meta])* $name:ident, $scope:expr) => {
        $(#[$doc])*
        pub(crate) struct $name(pub(crate) TenantId);

        impl<S: Send + Sync> FromRequestParts<S> for $name {
            type Rejection = Problem;

            async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
                match parts.extensions.get::<Caller>() {
                    Some(caller) if caller.may($scope) => Ok($name(caller.tenant.clone())),
                    Some(_) => Err(forbidden($scope)),
                    None => Err(Problem::internal("a handler runs without authentication")),
                }
            }
        }
    };
}

allowed!(
    /// The tenant of a caller who may look at agents.
    ReadsAgents, KeyScope::AgentsRead
);
allowed!(
    /// The tenant of a caller who may change agents.
    WritesAgents, KeyScope::AgentsWrite
);
allowed!(
    /// The tenant of a caller who may look at sessions.
    ReadsSessions, KeyScope::SessionsRead
);
allowed!(
    /// The tenant of a caller who may use sessions.
    WritesSessions, KeyScope::SessionsWrite
);
allowed!(
    /// The tenant that an administrator works in.
    Administers, KeyScope::Admin
);
