//! Runs a command under `bwrap`: its own view of the files, its own process and network namespaces.

use crate::backend::visible;
use crate::sandbox::Command;
use crate::settings::{Network, Settings};

pub(super) fn arguments(settings: &Settings, command: Command) -> Vec<String> {
    // Not `--die-with-parent`: the parent would be the thread that starts it, which ends at once. The supervisor ends it.
    let mut arguments: Vec<String> = [
        "bwrap",
        "--unshare-all",
        // A server that runs as root must not hand on what lets root change mounts.
        "--cap-drop",
        "ALL",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--tmpfs",
        "/tmp",
    ]
    .map(str::to_owned)
    .into();
    if settings.network == Network::All {
        arguments.push("--share-net".to_owned());
    }
    for (link, target) in visible::links() {
        arguments.extend(["--symlink".to_owned(), target.display().to_string(), link.to_owned()]);
    }
    let mut bind = |how: &str, path: &std::path::Path| {
        let path = path.display().to_string();
        arguments.extend([how.to_owned(), path.clone(), path]);
    };
    visible::programs(settings).iter().for_each(|path| bind("--ro-bind-try", path));
    settings.write.iter().for_each(|path| bind("--bind", path));
    bind("--bind", &command.workspace);
    arguments.extend(["--chdir".to_owned(), command.directory.display().to_string(), "--".to_owned()]);
    arguments.extend(command.arguments);
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::Confine;
    use crate::streams::Streams;

    #[test]
    fn the_workspace_is_writable_and_the_network_is_a_setting() {
        let command = Command {
            arguments: vec!["true".to_owned()],
            env: Default::default(),
            workspace: "/work/space".into(),
            directory: "/work/space/below".into(),
            streams: Streams::Merged,
            confine: Confine::AsSet,
        };
        let line = arguments(&Settings::default(), command.clone()).join(" ");
        assert!(line.contains("--ro-bind-try /usr /usr"), "{line}");
        assert!(line.ends_with("--bind /work/space /work/space --chdir /work/space/below -- true"), "{line}");
        assert!(line.contains("--unshare-all") && !line.contains("--share-net"), "{line}");
        let open = Settings { network: Network::All, ..Settings::default() };
        assert!(arguments(&open, command).join(" ").contains("--share-net"));
    }
}
