//! Name resolution that hands out only addresses that may be dialled.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::{fmt, io};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::{Guard, Refusal};

/// Finds the addresses of a name.
pub(crate) type Lookup = Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// Asks the system.
pub(crate) fn system() -> Lookup {
    Arc::new(|name| {
        async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        }
        .boxed()
    })
}

/// Looks names up and checks every address. Of several, those that may not be dialled are left out.
pub(crate) struct GuardedResolver {
    pub(crate) guard: Guard,
    pub(crate) lookup: Lookup,
}

impl fmt::Debug for GuardedResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedResolver").field("guard", &self.guard).finish_non_exhaustive()
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (guard, lookup) = (self.guard.clone(), Arc::clone(&self.lookup));
        async move {
            let found = lookup(name.as_str().to_owned()).await?;
            let mut good = Vec::with_capacity(found.len());
            let mut refusal: Option<Refusal> = None;
            for address in found {
                match guard.check_address(name.as_str(), address) {
                    Ok(()) => good.push(SocketAddr::new(address, 0)),
                    Err(why) => refusal = refusal.or(Some(why)),
                }
            }
            match refusal {
                Some(refusal) if good.is_empty() => {
                    // The address tells about the operator's network, so it is for the log alone.
                    tracing::info!(host = name.as_str(), %refusal, "a host may not be reached");
                    Err(refusal.of_looked_up_host().into())
                }
                _ => Ok(Box::new(good.into_iter()) as Addrs),
            }
        }
        .boxed()
    }
}
