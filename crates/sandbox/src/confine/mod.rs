//! Confines the calling thread, and with it whatever it starts from then on.
//!
//! Landlock, seccomp, capabilities and `no_new_privs` belong to a thread and are inherited by its children. So a
//! thread that confines itself and then starts a process confines that process without any code between fork and
//! exec.

#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod seccomp;
#[cfg(target_os = "linux")]
pub(crate) mod view;

use crate::job::Confinement;

/// What a kernel can do.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) has: Vec<String>,
    pub(crate) landlock_abi: i32,
}

/// Confines this thread for good. If any part of it fails the thread must not go on.
#[cfg(target_os = "linux")]
pub(crate) fn this_thread(confinement: &Confinement) -> Result<Found, String> {
    let failed = |what: &str, error: &dyn std::fmt::Display| format!("{what}: {error}");
    rustix::thread::set_no_new_privs(true).map_err(|error| failed("no_new_privs", &error))?;
    drop_capabilities().map_err(|error| failed("capabilities", &error))?;
    let mut found = landlock::apply(confinement)?;
    seccomp::apply(confinement, found.landlock_abi).map_err(|error| failed("seccomp", &error))?;
    found.has.push("seccomp".to_owned());
    found.has.push("no new privileges".to_owned());
    Ok(found)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn this_thread(_: &Confinement) -> Result<Found, String> {
    Err("only Linux has Landlock and seccomp".to_owned())
}

/// A server that runs as root must not hand that on. With `no_new_privs`, what is dropped here never comes back.
#[cfg(target_os = "linux")]
fn drop_capabilities() -> rustix::io::Result<()> {
    use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
}

/// Keeps this thread, and what it starts, from Unix sockets and from nothing else.
#[cfg(target_os = "linux")]
pub(crate) fn refuse_unix_sockets() -> Result<(), String> {
    rustix::thread::set_no_new_privs(true).map_err(|error| format!("no_new_privs: {error}"))?;
    seccomp::refuse_unix_sockets().map_err(|error| format!("seccomp: {error}"))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn refuse_unix_sockets() -> Result<(), String> {
    Err("only Linux has seccomp".to_owned())
}

/// Finds out what works by doing it, on a thread that ends right after.
pub(crate) fn probe(landlock_abi: i32) -> Result<Found, String> {
    let confinement = Confinement { landlock_abi, ..Confinement::default() };
    let probing = std::thread::Builder::new().name("sandbox-probe".to_owned());
    let probing = probing.spawn(move || this_thread(&confinement)).map_err(|error| error.to_string())?;
    probing.join().unwrap_or_else(|_| Err("the probe ended in a bug".to_owned()))
}
