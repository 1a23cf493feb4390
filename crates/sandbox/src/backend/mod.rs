//! Turns a command into a job: what confines it, and what it sees.

mod bubblewrap;
mod docker;
mod of_root;
mod visible;

use std::collections::BTreeMap;

use crate::job::{Confinement, Job};
use crate::namespaces::Namespaces;
use crate::sandbox::{Command, FileWrites};
use crate::settings::{Backend, Network, Settings};

/// Where commands find programs, unless the settings say otherwise.
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The job that runs `command` in `backend`.
pub(crate) fn job(
    backend: &Backend,
    settings: &Settings,
    namespaces: Option<Namespaces>,
    command: Command,
) -> Job {
    let env = environment(settings, &command);
    let mut limits = settings.limits;
    if command.files == FileWrites::None {
        limits.file_bytes = 0;
    }
    let mut job = Job {
        arguments: Vec::new(),
        env,
        directory: command.directory.clone(),
        terminal: matches!(command.streams, crate::Streams::Terminal(_)),
        confinement: None,
        limits,
        group: None,
        clean_up: None,
        refuse_unix_sockets: false,
        sudo_password: None,
    };
    match backend {
        Backend::Landlock => {
            job.confinement = Some(confinement(settings, namespaces, &command));
            job.arguments = command.arguments;
        }
        Backend::Bubblewrap => {
            // Without a network namespace of its own a command would reach sockets that have no file.
            job.refuse_unix_sockets = settings.network == Network::All && !settings.unix_sockets;
            job.arguments = bubblewrap::arguments(settings, command);
        }
        Backend::Docker { image } => docker::fill(&mut job, image, settings, command),
        Backend::Unconfined => job.arguments = command.arguments,
    }
    job
}

fn environment(settings: &Settings, command: &Command) -> BTreeMap<String, String> {
    let home = command.workspace.display().to_string();
    let base = [("PATH", PATH), ("LANG", "C.UTF-8"), ("HOME", &home)];
    let base = base.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
    base.chain(settings.env.clone()).chain(command.env.clone()).collect()
}

fn confinement(settings: &Settings, namespaces: Option<Namespaces>, command: &Command) -> Confinement {
    let mut write = settings.write.clone();
    write.push(command.workspace.clone());
    let files = visible::Files::of(settings, &of_root::find());
    // With a view of its own all devices that are in it are the command's.
    let devices: &[&str] = if namespaces.is_some() { &["/dev"] } else { visible::DEVICES };
    Confinement {
        execute: files.programs,
        list: files.listed,
        links: files.links,
        read: visible::READ.iter().map(Into::into).collect(),
        devices: devices.iter().map(Into::into).collect(),
        write,
        network: settings.network == Network::All,
        unix_sockets: settings.unix_sockets,
        namespaces,
        landlock_abi: settings.kernel.landlock_abi,
    }
}
