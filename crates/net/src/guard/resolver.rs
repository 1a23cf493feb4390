//! Name resolution that hands out only addresses that may be dialled.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::{fmt, io};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::Host;

use super::{Guard, Refusal};
use crate::error::Error;

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
#[derive(Clone)]
pub(crate) struct GuardedResolver {
    pub(crate) guard: Guard,
    pub(crate) lookup: Lookup,
}

impl fmt::Debug for GuardedResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedResolver").field("guard", &self.guard).finish_non_exhaustive()
    }
}

/// Why a name has no address that may be dialled.
enum Unresolved {
    Unknown(io::Error),
    Refused(Refusal),
}

impl GuardedResolver {
    async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, Unresolved> {
        let found = (self.lookup)(name.to_owned()).await.map_err(Unresolved::Unknown)?;
        let mut good = Vec::with_capacity(found.len());
        let mut refusal: Option<Refusal> = None;
        for address in found {
            match self.guard.check_address(name, address) {
                Ok(()) => good.push(address),
                Err(why) => refusal = refusal.or(Some(why)),
            }
        }
        match refusal {
            Some(refusal) if good.is_empty() => {
                // The address tells about the operator's network, so it is for the log alone.
                tracing::info!(host = name, %refusal, "a host may not be reached");
                Err(Unresolved::Refused(refusal.of_looked_up_host()))
            }
            _ => Ok(good),
        }
    }

    /// The addresses of a URL's host that may be dialled.
    pub(crate) async fn judged_addresses(&self, url: &Url) -> Result<Vec<IpAddr>, Error> {
        let name = match url.host() {
            // The guard has looked at those in the URL itself.
            Some(Host::Ipv4(address)) => return Ok(vec![address.into()]),
            Some(Host::Ipv6(address)) => return Ok(vec![address.into()]),
            Some(Host::Domain(name)) => name,
            None => return Ok(Vec::new()),
        };
        self.addresses(name).await.map_err(|error| match error {
            Unresolved::Refused(refusal) => refusal.into_error(name),
            Unresolved::Unknown(error) => Error::Connect {
                host: name.to_owned(),
                problem: format!(
                    "its name cannot be looked up here ({error}), which has to be done before a proxy is asked for it"
                ),
            },
        })
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = self.clone();
        async move {
            match resolver.addresses(name.as_str()).await {
                Ok(good) => {
                    let good: Vec<_> = good.into_iter().map(|address| SocketAddr::new(address, 0)).collect();
                    Ok(Box::new(good.into_iter()) as Addrs)
                }
                Err(Unresolved::Unknown(error)) => Err(error.into()),
                Err(Unresolved::Refused(refusal)) => Err(refusal.into()),
            }
        }
        .boxed()
    }
}
