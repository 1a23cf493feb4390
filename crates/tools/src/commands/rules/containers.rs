//! Containers that are stopped or removed.

use crate::commands::simple::Simple;
use crate::commands::{Finding, finding};

pub(super) fn rule(command: &Simple) -> Option<Finding> {
    const VERBS: [&str; 10] =
        ["stop", "kill", "rm", "rmi", "down", "prune", "delete", "drain", "uninstall", "restart"];
    let tools = [
        "docker",
        "podman",
        "nerdctl",
        "docker-compose",
        "kubectl",
        "oc",
        "helm",
        "k3s",
        "crictl",
        "minikube",
        "kind",
        "vagrant",
    ];
    if !tools.contains(&command.name()) {
        return None;
    }
    // The words behind `run` and `exec` are those of another program.
    let own = command.operands().take_while(|word| {
        !matches!(*word, "run" | "exec" | "build" | "logs" | "get" | "describe" | "auth" | "explain")
    });
    let mut own = own.take(4);
    let stops = matches!(command.name(), "kubectl" | "oc")
        && (command.says("scale") && command.values('\0', "replicas").contains(&"0")
            || command.says("replace") && command.has('\0', "force"));
    let resets =
        command.says("system") && command.says("reset") || command.says("swarm") && command.says("leave");
    let destroys = stops || resets || command.name() == "vagrant" && command.says("destroy");
    let found = destroys
        || own.any(|verb| VERBS.contains(&verb) && !(verb == "restart" && command.name() == "kubectl"));
    found.then_some(finding("container_stop", "stops or removes containers"))
}
