//! Publishing packages.

use crate::commands::simple::Simple;
use crate::commands::{Finding, finding};

pub(super) fn rule(command: &Simple) -> Option<Finding> {
    let first = || command.operand(0);
    let says = |words: &[&str]| command.operands().take(4).any(|word| words.contains(&word));
    let tries = command.has('\0', "dry-run") && !command.says("--dry-run=false") || command.has('\0', "help");
    let publishes = match command.name() {
        "npm" | "pnpm" | "yarn" | "bun" | "lerna" | "jsr" | "changeset" | "vsce" | "ovsx" | "deno"
        | "flit" | "hatch" | "uv" | "poetry" | "pdm" | "shards" => {
            let shares = matches!(first(), "owner" | "dist-tag" | "access" | "team")
                && !matches!(command.operand(1), "ls" | "list" | "get");
            shares
                || says(&["publish", "unpublish", "deprecate"]) && !says(&["run", "test", "install", "add"])
        }
        "cargo" => {
            matches!(first(), "publish" | "yank") && !command.has('n', "dry-run")
                || first() == "release" && command.has('x', "execute")
                || first() == "owner" && (command.has('a', "add") || command.has('r', "remove"))
        }
        "twine" => says(&["upload"]),
        "python" | "python3" => {
            command.says("twine") && command.says("upload") || says(&["setup.py"]) && command.says("upload")
        }
        "gem" => says(&["push", "yank"]),
        "mvn" | "mvnw" => command.operands().any(|goal| {
            goal == "deploy"
                || goal.starts_with("deploy:")
                || goal.ends_with(":release")
                || goal == "release:perform"
        }),
        "gradle" | "gradlew" => {
            command.operands().any(|task| {
                let task = task.rsplit(':').next().unwrap_or(task);
                task == "publish" || task.starts_with("publishTo") || task.starts_with("publishAll")
            }) && !command.says("publishToMavenLocal")
        }
        "dotnet" | "nuget" => says(&["push"]),
        "docker" | "podman" | "nerdctl" | "buildah" | "docker-compose" => {
            matches!(first(), "push")
                || command.has('\0', "push")
                || (matches!(first(), "compose" | "image" | "manifest") && command.operand(1) == "push")
        }
        "skopeo" | "crane" => says(&["copy", "push"]),
        "helm" | "oras" => says(&["push"]),
        "gh" | "glab" | "hub" => {
            first() == "release" && says(&["create", "upload", "edit", "delete"])
                || first() == "repo" && !command.values('\0', "visibility").is_empty()
        }
        "goreleaser" => says(&["release"]) && !command.has('\0', "snapshot"),
        "semantic-release" | "release-it" | "np" => true,
        "pod" => says(&["trunk"]) && says(&["push"]),
        "conda" | "anaconda" => says(&["upload"]),
        "dart" | "flutter" => says(&["pub"]) && says(&["publish"]),
        "mix" => says(&["hex.publish"]),
        "stack" | "cabal" | "conan" => says(&["upload"]),
        "sbt" => command.operands().any(|task| {
            let task = task.rsplit('/').next().unwrap_or(task).trim_start_matches(['+', ' ']);
            task.starts_with("publish") && task != "publishLocal" && task != "publishM2"
        }),
        "ko" => matches!(first(), "publish" | "build" | "apply") && !command.has('L', "local"),
        "fastlane" => says(&["deliver", "supply", "pilot", "release"]),
        "eas" => matches!(first(), "submit" | "update"),
        _ => false,
    };
    (publishes && !tries).then_some(finding("publish_package", "publishes to others"))
}
