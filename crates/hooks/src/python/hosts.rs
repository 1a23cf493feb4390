//! All user code in Python, and the hosts that it runs in.
//!
//! Guests share a host. One whose code does not come back, or was running when the host died, gets a host of its own,
//! so that it delays and breaks nobody but itself from then on.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use petasos_sandbox::{Backend, Limits, Sandbox, Supervisor};
use tokio_util::sync::CancellationToken;

use super::callback::PythonCallback;
use super::gateway_hook::GatewayHook;
use super::guest::{Code, Guest};
use super::keeper::Keeper;
use super::plugin::Plugin;
use super::settings::Settings;
use super::wishes::{Gateway, Sessions, Wishes};
use crate::complaints::Complaints;
use crate::event::{EventSet, HookEvent};
use crate::source::{Callback, Source};

/// All user code in Python. Cheap to clone.
#[derive(Clone)]
pub struct PythonHosts {
    pub(super) shared: Arc<Shared>,
}

/// What hosts, keepers and calls share.
pub(super) struct Shared {
    pub(super) settings: Settings,
    pub(super) sandbox: Sandbox,
    pub(super) wishes: Arc<Wishes>,
    /// In the order in which their callbacks run. Set once, when their first keeper is there.
    pub(super) guests: OnceLock<Vec<Arc<Guest>>>,
    keepers: Mutex<Vec<Arc<Keeper>>>,
    events: RwLock<EventSet>,
    /// What went wrong with gateway hooks; what goes wrong with plugins the bus knows.
    pub(super) complaints: Complaints,
    pub(super) stop: CancellationToken,
}

impl PythonHosts {
    /// Starts a host for plugins and gateway hooks, if there are any. Must be called within a Tokio runtime.
    pub fn start(
        settings: Settings,
        supervisor: Supervisor,
        plugins: &[Plugin],
        hooks: &[GatewayHook],
    ) -> PythonHosts {
        let unconfined = petasos_sandbox::Settings {
            backend: Backend::Unconfined,
            limits: Limits::OF_OPERATOR,
            ..petasos_sandbox::Settings::default()
        };
        let shared = Arc::new(Shared {
            settings,
            sandbox: Sandbox::new(unconfined, supervisor),
            wishes: Arc::default(),
            guests: OnceLock::new(),
            keepers: Mutex::default(),
            events: RwLock::default(),
            complaints: Complaints::default(),
            stop: CancellationToken::new(),
        });
        let (keeper, replacements) = Keeper::new();
        let plugins = plugins.iter().map(|plugin| {
            let code = Code::Plugin { manifest: plugin.manifest.clone() };
            Guest::new(&plugin.key, code, Arc::clone(&keeper))
        });
        let hooks = hooks.iter().map(|hook| {
            let GatewayHook { name, handler, events, .. } = hook.clone();
            let key = format!("hooks/{name}");
            Guest::new(&key, Code::Handler { name, path: handler, events }, Arc::clone(&keeper))
        });
        let guests: Vec<Arc<Guest>> = plugins.chain(hooks).map(Arc::new).collect();
        let is_empty = guests.is_empty();
        // Nobody else has set them.
        let _ = shared.guests.set(guests);
        if !is_empty {
            shared.keep(keeper, replacements, 0);
        }
        PythonHosts { shared }
    }

    /// Waits until all guests are loaded or are known not to be, as long as the settings allow.
    pub async fn loaded(&self) {
        let guests = self.shared.guests();
        let settled = async {
            for guest in guests {
                guest.settled().await;
            }
        };
        if tokio::time::timeout(self.shared.settings.start_time, settled).await.is_err() {
            tracing::warn!("plugins are still being loaded; they join when they are, without their tools");
        }
    }

    /// Lets plugins have things done to sessions. An agent of theirs has `default_model` unless they name another.
    pub fn serve_sessions(&self, sessions: Arc<dyn Sessions>, default_model: &str) {
        // Whoever comes second serves the same sessions.
        let _ = self.shared.wishes.default_model.set(default_model.to_owned());
        let _ = self.shared.wishes.sessions.set(sessions);
    }

    /// Lets plugins have things done by the messaging gateway.
    pub fn serve_gateway(&self, gateway: Arc<dyn Gateway>) {
        let _ = self.shared.wishes.gateway.set(gateway);
    }

    /// Why plugins and gateway hooks are not loaded, by their name.
    pub fn unloaded(&self) -> Vec<(String, String)> {
        let guests = self.shared.guests().iter();
        guests.filter_map(|guest| guest.problem().map(|problem| (guest.key.to_string(), problem))).collect()
    }

    /// Ends all hosts.
    pub fn stop(&self) {
        self.shared.stop.cancel();
    }
}

impl Source for PythonHosts {
    fn events(&self) -> EventSet {
        *self.shared.events.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn callbacks(&self, event: HookEvent) -> Vec<Arc<dyn Callback>> {
        let mut callbacks: Vec<Arc<dyn Callback>> = Vec::new();
        for guest in self.shared.guests() {
            let registered = guest.registered();
            let hooks = registered.hooks.iter().filter(|hook| hook.event == event);
            for (nth, hook) in hooks.enumerate() {
                let name = format!("{}.{}", guest.key, hook.callback);
                let (shared, guest) = (Arc::clone(&self.shared), Arc::clone(guest));
                callbacks.push(Arc::new(PythonCallback { shared, guest, nth, name }));
            }
        }
        callbacks
    }

    fn problems(&self) -> Vec<String> {
        let keepers = self.shared.keepers.lock().unwrap_or_else(PoisonError::into_inner);
        keepers.iter().filter_map(|keeper| keeper.problem()).collect()
    }
}

impl Shared {
    /// All guests, in the order in which their callbacks run.
    pub(super) fn guests(&self) -> &[Arc<Guest>] {
        self.guests.get().map(Vec::as_slice).unwrap_or_default()
    }

    pub(super) fn guest(&self, key: &str) -> Option<&Arc<Guest>> {
        self.guests().iter().find(|guest| *guest.key == *key)
    }

    /// The guests of a keeper's host.
    pub(super) fn guests_of(&self, keeper: &Arc<Keeper>) -> Vec<Arc<Guest>> {
        self.guests().iter().filter(|guest| Arc::ptr_eq(&guest.keeper(), keeper)).cloned().collect()
    }

    /// Gives a guest a host of its own, unless it has one. Returns whether it had none. It has been the death of a
    /// host `deaths` times.
    pub(super) fn set_apart(self: &Arc<Self>, guest: &Arc<Guest>, deaths: u32) -> bool {
        let (keeper, replacements) = Keeper::new();
        let is_moved = guest.set_apart(|| Arc::clone(&keeper));
        if is_moved {
            self.keep(keeper, replacements, deaths);
        }
        is_moved
    }

    /// Takes note that guests have registered something.
    pub(super) fn registrations_changed(&self) {
        let mut events = EventSet::default();
        for guest in self.guests() {
            events = guest.registered().hooks.iter().fold(events, |events, hook| events.with(hook.event));
        }
        *self.events.write().unwrap_or_else(PoisonError::into_inner) = events;
    }

    fn keep(
        self: &Arc<Self>,
        keeper: Arc<Keeper>,
        replacements: tokio::sync::mpsc::UnboundedReceiver<std::sync::Weak<super::host::Host>>,
        deaths: u32,
    ) {
        self.keepers.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&keeper));
        tokio::spawn(keeper.keep(Arc::clone(self), replacements, deaths));
    }

    /// The time limit of a callback, if it has one.
    pub(super) fn callback_time(&self) -> Option<Duration> {
        self.settings.callback_time
    }
}
