//! Runs a command in a container of its own. Only the workspace is in it, at the same path.
//!
//! A container is not in the process tree of the client that started it, so ending it is a command of its own.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::job::Job;
use crate::sandbox::Command;
use crate::settings::{Network, Settings};

static STARTED: AtomicU64 = AtomicU64::new(0);

pub(super) fn fill(job: &mut Job, image: &str, settings: &Settings, command: Command) {
    let number = STARTED.fetch_add(1, Ordering::Relaxed);
    let name = format!("petasos-{}-{number}", std::process::id());
    let mut arguments: Vec<String> =
        ["docker", "run", "--rm", "--interactive", "--init", "--name", &name].map(str::to_owned).into();
    if job.terminal {
        arguments.push("--tty".to_owned());
    }
    if settings.network == Network::None {
        arguments.push("--network=none".to_owned());
    }
    arguments.push("--security-opt=no-new-privileges".to_owned());
    arguments.push("--cap-drop=ALL".to_owned());
    arguments.push(format!("--memory={}", settings.limits.memory_bytes));
    arguments.push(format!("--pids-limit={}", settings.limits.processes));
    arguments.push(format!("--ulimit=fsize={}", job.limits.file_bytes));
    arguments.push(format!("--ulimit=cpu={}", settings.limits.cpu_seconds));
    for path in settings.write.iter().chain([&command.workspace]) {
        arguments.push(format!("--volume={0}:{0}", path.display()));
    }
    arguments.push(format!("--workdir={}", command.directory.display()));
    // The values come from the client's environment: they must not be on its command line.
    arguments.extend(job.env.keys().filter(|name| *name != "PATH").map(|name| format!("--env={name}")));
    arguments.push(image.to_owned());
    arguments.extend(command.arguments);
    job.arguments = arguments;
    // Not `kill`: the container may be there and not have started.
    job.clean_up = Some(["docker", "rm", "--force", &name].map(str::to_owned).into());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend;
    use crate::sandbox::{Confine, FileWrites};
    use crate::settings::Backend;
    use crate::streams::Streams;

    #[test]
    fn values_are_not_on_the_command_line_and_the_container_can_be_ended() {
        let command = Command {
            arguments: vec!["true".to_owned()],
            env: [("TOKEN".to_owned(), "s3cret".to_owned())].into(),
            workspace: "/work/space".into(),
            directory: "/work/space".into(),
            streams: Streams::Merged,
            confine: Confine::AsSet,
            files: FileWrites::Limited,
        };
        let backend = Backend::Docker { image: "debian:12".to_owned() };
        let job = backend::job(&backend, &Settings::default(), None, command);
        let line = job.arguments.join(" ");
        assert!(
            line.contains("--network=none") && line.contains("--volume=/work/space:/work/space"),
            "{line}"
        );
        assert!(line.contains("--env=TOKEN") && !line.contains("s3cret"), "{line}");
        assert!(line.ends_with("debian:12 true"), "{line}");
        assert_eq!(job.env["TOKEN"], "s3cret");
        let remove = job.clean_up.unwrap();
        assert_eq!(remove[..3], ["docker", "rm", "--force"]);
        assert!(line.contains(&format!("--name {}", remove[3])), "{line}");
    }
}
