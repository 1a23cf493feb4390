//! The backend docker, with a stand-in for its client: it says which containers are to be removed, after a while.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use petasos_sandbox::{Backend, Limit, Limits, Settings};

use crate::world::{World, line, within};

/// `run` runs the command where it is, and is killed with it; `rm` takes its time.
const CLIENT: &str = r#"#!/bin/bash
if [ "$1" = run ]; then
    while [ "$1" != image ]; do
        [ "$1" = --name ] && echo "$2"
        shift
    done
    shift
    exec "$@"
fi
sleep 0.2
echo "$DOCKER_HOST $*" >> "$(dirname "$0")/done"
"#;

struct Docker {
    world: World,
    directory: tempfile::TempDir,
}

impl Docker {
    fn new(limits: Limits) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let client = directory.path().join("docker");
        std::fs::write(&client, CLIENT).unwrap();
        std::fs::set_permissions(&client, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", directory.path().display());
        let env = [("PATH".to_owned(), path), ("DOCKER_HOST".to_owned(), "tcp://there".to_owned())].into();
        let backend = Backend::Docker { image: "image".to_owned() };
        let world = World::with(Settings { backend, env, limits, ..Settings::default() });
        Docker { world, directory }
    }

    fn done(&self) -> PathBuf {
        self.directory.path().join("done")
    }

    /// Waits until the client was told to remove that container, and nothing else.
    async fn removes(&self, name: &str) {
        let wanted = format!("tcp://there rm --force {name}\n");
        within("the end of a container", async {
            while std::fs::read_to_string(self.done()).unwrap_or_default() != wanted {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

#[tokio::test]
async fn a_container_ends_with_its_command() {
    let docker = Docker::new(Limits::default());
    let mut process = docker.world.start("echo ready; sleep 600");
    let name = line(&mut process).await;
    assert_eq!(line(&mut process).await, "ready");
    drop(process);
    docker.removes(&name).await;
}

#[tokio::test]
async fn a_container_ends_with_a_client_that_was_killed() {
    let docker = Docker::new(Limits { processes: 20, ..Limits::default() });
    let finished = docker.world.run("for i in {1..40}; do sleep 600 & done; sleep 600").await;
    assert_eq!(finished.ended.over, Some(Limit::Processes));
    docker.removes(finished.output.trim()).await;
}

#[tokio::test]
async fn a_container_that_ended_by_itself_is_left_alone() {
    let docker = Docker::new(Limits::default());
    let finished = docker.world.run("exit 3").await;
    assert_eq!(finished.ended.code, Some(3));
    assert!(!docker.done().exists());
}
