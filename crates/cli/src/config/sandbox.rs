//! How the commands of agents are run and judged.

use std::num::NonZero;

use anyhow::{Result, bail};
use petasos_sandbox::{Backend, Fallback, Network, Settings, find};
use petasos_tools::WorkspaceLimits;

use super::file::{self, SandboxBackend, SandboxFallback, SandboxNetwork};
use super::set;

/// What the file says about the sandbox. What is hidden from commands is added by whoever knows where it is.
pub(super) fn settings(file: file::Sandbox, workspaces: &WorkspaceLimits) -> Result<Settings> {
    let mut settings = Settings {
        backend: match (file.backend, file.image) {
            (SandboxBackend::Docker, Some(image)) => Backend::Docker { image },
            (SandboxBackend::Docker, None) => {
                bail!("sandbox.backend is docker, which needs sandbox.image, for example debian:stable-slim")
            }
            (_, Some(_)) => bail!("sandbox.image is only used by sandbox.backend: docker; take it out"),
            (SandboxBackend::Landlock, None) => Backend::Landlock,
            (SandboxBackend::Bubblewrap, None) => Backend::Bubblewrap,
            (SandboxBackend::None, None) => Backend::Unconfined,
        },
        fallback: match file.fallback {
            SandboxFallback::Refuse => Fallback::Refuse,
            SandboxFallback::Unconfined => Fallback::Unconfined,
        },
        network: match file.network {
            SandboxNetwork::None => Network::None,
            SandboxNetwork::All => Network::All,
        },
        unix_sockets: file.unix_sockets,
        read: file.read,
        write: file.write,
        env: file.env,
        // Where it is not installed a call says so.
        sudo: file.sudo.then(|| find("sudo").unwrap_or_else(|| "/usr/bin/sudo".into())),
        ..Settings::default()
    };
    if let Some(path) = settings.read.iter().chain(&settings.write).find(|path| !path.is_absolute()) {
        bail!("sandbox: {} must be an absolute path", path.display());
    }
    let limits = &mut settings.limits;
    set(&mut limits.memory_bytes, file.memory_bytes.map(NonZero::get));
    set(&mut limits.processes, file.processes.map(NonZero::get));
    set(&mut limits.file_bytes, file.file_bytes.map(NonZero::get));
    set(&mut limits.cpu_seconds, file.cpu_seconds.map(NonZero::get));
    // A file that has no name is in no workspace, and takes room like one that is.
    limits.unnamed_bytes = workspaces.max_bytes;
    Ok(settings)
}

/// What the file says about commands.
pub(super) fn approvals(file: file::Approvals, allow: Vec<String>) -> petasos_tools::Approvals {
    let mode = match file.mode {
        file::ApprovalMode::Manual => petasos_tools::ApprovalMode::Manual,
        file::ApprovalMode::Off => petasos_tools::ApprovalMode::Off,
    };
    petasos_tools::Approvals { mode, deny: file.deny, allow }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Settings> {
        settings(serde_saphyr::from_str(text).unwrap(), &WorkspaceLimits::default())
    }

    #[test]
    fn nothing_said_is_the_default() {
        assert_eq!(read("{}").unwrap(), Settings::default());
    }

    #[test]
    fn everything_can_be_set() {
        let text = "{ backend: docker, image: 'debian:12', fallback: unconfined, network: all, unix_sockets: true, \
                    read: [/data], sudo: true, env: { A: b }, memory_bytes: 1, processes: 2, file_bytes: 3, cpu_seconds: 4 }";
        let read = read(text).unwrap();
        assert_eq!(read.backend, Backend::Docker { image: "debian:12".to_owned() });
        assert_eq!((read.fallback, read.network), (Fallback::Unconfined, Network::All));
        assert_eq!(read.limits.processes, 2);
        assert_eq!(read.env["A"], "b");
        assert!(read.sudo.unwrap().ends_with("sudo"));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        for (text, words) in [
            ("{ backend: docker }", "sandbox.image"),
            ("{ image: x }", "take it out"),
            ("{ read: [data] }", "absolute"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
