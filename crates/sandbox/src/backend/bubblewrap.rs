//! Runs a command under `bwrap`: its own view of the files, its own process and network namespaces.

use std::path::Path;

use crate::backend::{of_root, visible};
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
    // What is not mounted into it must not be made there either.
    arguments.extend(["--tmpfs", "/etc"].map(str::to_owned));
    let files = visible::Files::of(settings, &[]);
    for (link, target) in &files.links {
        let [target, link] = [target, link].map(|path| path.display().to_string());
        arguments.extend(["--symlink".to_owned(), target, link]);
    }
    let mut mount = |how: &str, paths: &[&Path]| {
        arguments.push(how.to_owned());
        arguments.extend(paths.iter().map(|path| path.display().to_string()));
    };
    files.programs.iter().for_each(|path| mount("--ro-bind-try", &[path, path]));
    for path in &of_root::find() {
        // Something empty lies over it.
        if path.is_dir() {
            mount("--tmpfs", &[path]);
        } else {
            mount("--ro-bind", &[Path::new("/dev/null"), path]);
        }
    }
    mount("--remount-ro", &[Path::new("/etc")]);
    settings.write.iter().for_each(|path| mount("--bind", &[path, path]));
    mount("--bind", &[&command.workspace, &command.workspace]);
    arguments.extend(["--chdir".to_owned(), command.directory.display().to_string(), "--".to_owned()]);
    arguments.extend(command.arguments);
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::{Confine, FileWrites};
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
            files: FileWrites::Limited,
        };
        let line = arguments(&Settings::default(), command.clone()).join(" ");
        assert!(line.contains("--ro-bind-try /usr /usr"), "{line}");
        assert!(line.ends_with("--bind /work/space /work/space --chdir /work/space/below -- true"), "{line}");
        assert!(line.contains("--unshare-all") && !line.contains("--share-net"), "{line}");
        let open = Settings { network: Network::All, ..Settings::default() };
        assert!(arguments(&open, command).join(" ").contains("--share-net"));
    }
}
