//! Keeps one host running with its guests: starts it, lets it load them, and starts it anew when it dies.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};

use super::guest::{Code, Guest, Registered};
use super::host::Host;
use super::hosts::Shared;
use super::orders::Lost;
use super::wishes::Caller;

/// Keeps one host running.
pub(super) struct Keeper {
    state: watch::Sender<State>,
    replacements: mpsc::UnboundedSender<Weak<Host>>,
    /// Said as long as its host dies over and over.
    problem: Mutex<Option<String>>,
}

/// How the host is doing.
#[derive(Clone)]
pub(super) enum State {
    /// It is being started, for the first time or anew.
    Starting,
    /// All guests were loaded, or could not be.
    Ready(Arc<Running>),
    /// It died too often, or cannot be started, and is left alone for a while.
    Resting(Arc<str>),
    /// It has no guests.
    Empty,
}

/// A host with the functions that its guests registered.
pub(super) struct Running {
    pub(super) host: Arc<Host>,
    functions: RwLock<HashMap<Arc<str>, Arc<Registered>>>,
}

impl Running {
    /// What a guest has registered here.
    pub(super) fn registered(&self, guest: &str) -> Option<Arc<Registered>> {
        self.functions.read().unwrap_or_else(PoisonError::into_inner).get(guest).cloned()
    }

    fn set_registered(&self, guest: &Guest, registered: Registered) {
        let registered = Arc::new(registered);
        guest.set_registered(Arc::clone(&registered));
        let mut functions = self.functions.write().unwrap_or_else(PoisonError::into_inner);
        functions.insert(Arc::clone(&guest.key), registered);
    }
}

/// Why a host is not there any more.
enum Gone {
    /// It died, or could not be started.
    Died { why: String },
    /// A guest of it stalled, and was moved away.
    Replaced,
    /// The server stops.
    Stopped,
}

/// How often the host has died in a row.
struct Deaths {
    count: u32,
    was_said: bool,
}

impl Keeper {
    pub(super) fn new() -> (Arc<Keeper>, mpsc::UnboundedReceiver<Weak<Host>>) {
        let (replacements, receiver) = mpsc::unbounded_channel();
        let keeper =
            Keeper { state: watch::Sender::new(State::Starting), replacements, problem: Mutex::default() };
        (Arc::new(keeper), receiver)
    }

    /// Waits until the host is there or is known not to be.
    pub(super) async fn settled(&self) -> State {
        let mut state = self.state.subscribe();
        let is_settled = |state: &State| match state {
            State::Starting => false,
            State::Ready(running) => !running.host.is_ending(),
            State::Resting(_) | State::Empty => true,
        };
        match state.wait_for(is_settled).await {
            Ok(state) => state.clone(),
            Err(_) => State::Empty,
        }
    }

    /// Puts a new host in place of one with a guest that does not come back.
    pub(super) fn replace(&self, host: &Arc<Host>) {
        let _ = self.replacements.send(Arc::downgrade(host));
    }

    /// What is wrong, for people who look after the server.
    pub(super) fn problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_problem(&self, problem: Option<String>) {
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = problem;
    }

    /// Keeps the host running until the server stops. It has died `deaths` times in a row already.
    pub(super) async fn keep(
        self: Arc<Self>,
        shared: Arc<Shared>,
        mut replacements: mpsc::UnboundedReceiver<Weak<Host>>,
        deaths: u32,
    ) {
        let mut deaths = Deaths { count: deaths, was_said: deaths > 0 };
        loop {
            self.state.send_replace(State::Starting);
            let guests = shared.guests_of(&self);
            if guests.is_empty() {
                self.state.send_replace(State::Empty);
                return;
            }
            let started = Instant::now();
            match self.run(&shared, &guests, &mut replacements).await {
                Gone::Stopped => return,
                Gone::Replaced => {}
                Gone::Died { why } => {
                    if started.elapsed() >= shared.settings.pauses.sound_life {
                        deaths = Deaths { count: 0, was_said: false };
                    }
                    deaths.count += 1;
                    if let Some(pause) = self.mourn(&shared, &guests, &mut deaths, &why) {
                        tokio::select! {
                            () = tokio::time::sleep(pause) => {}
                            () = shared.stop.cancelled() => return,
                        }
                    }
                }
            }
        }
    }

    /// Says that the host died, once for a row of deaths and once more when they are too many. Returns how long to
    /// wait before the next.
    fn mourn(
        &self,
        shared: &Shared,
        guests: &[Arc<Guest>],
        deaths: &mut Deaths,
        why: &str,
    ) -> Option<Duration> {
        let names = names(guests);
        let pause = shared.settings.pauses.pause(deaths.count);
        if deaths.count == shared.settings.pauses.after {
            tracing::error!(
                guests = names,
                "a Python host died {} times in a row; it is tried again now and then: {why}",
                deaths.count
            );
        } else if deaths.was_said {
            tracing::debug!(guests = names, deaths = deaths.count, "a Python host died again: {why}");
        } else {
            tracing::warn!(guests = names, "a Python host died and is started anew: {why}");
        }
        deaths.was_said = true;
        if pause.is_some() {
            let problem = format!("the Python host of {names} died {} times in a row: {why}", deaths.count);
            self.set_problem(Some(problem));
            self.state.send_replace(State::Resting(
                "its Python host died too often and is left alone for a while".into(),
            ));
        }
        pause
    }

    /// Runs one host from its start to its end.
    async fn run(
        &self,
        shared: &Arc<Shared>,
        guests: &[Arc<Guest>],
        replacements: &mut mpsc::UnboundedReceiver<Weak<Host>>,
    ) -> Gone {
        let host = match Host::start(&shared.settings, &shared.sandbox, &shared.wishes) {
            Ok(host) => host,
            Err(why) => return Gone::Died { why },
        };
        let running = Arc::new(Running { host: Arc::clone(&host), functions: RwLock::default() });
        for guest in guests {
            if let Some(gone) = load(shared, &running, guests, guest).await {
                return gone;
            }
        }
        shared.registrations_changed();
        self.state.send_replace(State::Ready(Arc::clone(&running)));
        let sound = tokio::time::sleep(shared.settings.pauses.sound_life);
        tokio::pin!(sound);
        loop {
            tokio::select! {
                () = host.ended() => return died(shared, &host),
                () = shared.stop.cancelled() => {
                    host.end();
                    return Gone::Stopped;
                }
                () = &mut sound, if !sound.is_elapsed() => self.set_problem(None),
                () = host.has_registered() => {
                    register(&running, guests);
                    shared.registrations_changed();
                }
                replaced = replacements.recv() => {
                    if replaced.is_some_and(|replaced| replaced.as_ptr() == Arc::as_ptr(&host)) {
                        host.retire(shared.settings.callback_time.unwrap_or(Duration::from_secs(600)));
                        return Gone::Replaced;
                    }
                }
            }
        }
    }
}

/// Loads a guest. If the host is lost over it, the guest is set apart.
async fn load(
    shared: &Arc<Shared>,
    running: &Running,
    guests: &[Arc<Guest>],
    guest: &Arc<Guest>,
) -> Option<Gone> {
    let host = &running.host;
    let loading = async {
        let sent = host.order(&guest.key, Caller::default(), guest.load_order())?;
        Ok::<_, String>(sent.reply.await.unwrap_or(Err(Lost::ByThis)))
    };
    let limit = shared.settings.callback_time.unwrap_or(Duration::from_secs(3600));
    let answer = match tokio::time::timeout(limit, loading).await {
        Ok(Ok(Ok(answer))) => answer,
        Ok(Ok(Err(_))) => {
            host.ended().await;
            return Some(died(shared, host));
        }
        Ok(Err(why)) => return Some(Gone::Died { why }),
        Err(_) => {
            tracing::warn!(guest = %guest.key, "it was not loaded after {} s and is given a Python host of its own", limit.as_secs_f64());
            host.end();
            let was_apart = !shared.set_apart(guest, 1);
            let why = format!("{} does not load in time", guest.key);
            return Some(if was_apart { Gone::Died { why } } else { Gone::Replaced });
        }
    };
    let is_new_problem = guest.set_problem(answer.error.clone());
    match answer.error {
        Some(error) => {
            // Half a plugin is worse than none.
            host.take_registrations();
            running.set_registered(guest, Registered::default());
            if is_new_problem {
                let trace = answer.trace.unwrap_or_default();
                tracing::warn!(guest = %guest.key, "it could not be loaded and is left out: {error}\n{trace}");
            }
        }
        None => {
            let handler = answer.function;
            running.set_registered(guest, Registered { handler, ..Registered::default() });
            register(running, guests);
        }
    }
    None
}

/// Notes what guests have registered.
fn register(running: &Running, guests: &[Arc<Guest>]) {
    for (plugin, what) in running.host.take_registrations() {
        let Some(guest) = guests.iter().find(|guest| *guest.key == *plugin) else { continue };
        let mut registered = running.registered(&guest.key).map(Arc::unwrap_or_clone).unwrap_or_default();
        registered.add(&plugin, what);
        running.set_registered(guest, registered);
    }
}

/// Finds out what a host died of. Guests whose code was running get hosts of their own, since any of them may be
/// the cause.
fn died(shared: &Arc<Shared>, host: &Host) -> Gone {
    let casualties = host.casualties();
    let mut moved = false;
    for guest in shared.guests.get().into_iter().flatten() {
        if casualties.contains(&guest.key) {
            moved |= shared.set_apart(guest, 1);
        }
    }
    let during = match casualties.as_slice() {
        [] => String::new(),
        some => format!(" while {} ran", some.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ")),
    };
    let last_words = host.last_words();
    let words = if last_words.is_empty() { String::new() } else { format!("; it wrote: {last_words}") };
    let why = format!("it ended{during}{words}");
    if moved {
        tracing::warn!("a Python host died; what was running there gets a host of its own: {why}");
        return Gone::Replaced;
    }
    Gone::Died { why }
}

fn names(guests: &[Arc<Guest>]) -> String {
    let name = |guest: &Arc<Guest>| match &guest.code {
        Code::Plugin { .. } => format!("plugin {}", guest.key),
        Code::Handler { name, .. } => format!("gateway hook {name}"),
    };
    guests.iter().map(name).collect::<Vec<_>>().join(", ")
}
