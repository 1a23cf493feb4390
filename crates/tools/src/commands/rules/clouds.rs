//! Deleting in a cloud.

use super::sending;
use crate::commands::simple::Simple;
use crate::commands::{Finding, finding};

pub(super) fn rule(command: &Simple) -> Option<Finding> {
    let says = |words: &[&str]| command.operands().any(|word| words.contains(&word));
    let deletes = |word: &str| {
        const STARTS: [&str; 7] =
            ["delete", "destroy", "terminate", "remove", "purge", "deregister-", "drop"];
        let verb = word.rsplit(':').next().unwrap_or(word);
        STARTS.iter().any(|start| {
            verb == *start
                || verb.starts_with(&format!("{start}-"))
                || start.ends_with('-') && verb.starts_with(start)
                || verb.ends_with(&format!("-{start}"))
        })
    };
    let verbs = || command.operands().take(5);
    let found = match command.name() {
        "terraform" | "tofu" if says(&["plan"]) => false,
        "terraform" | "tofu" | "terragrunt" => {
            says(&["destroy"])
                || command.arguments().iter().any(|word| word.trim_start_matches('-') == "auto-approve")
                || command.operand(0) == "workspace" && command.operand(1) == "delete"
                || command.arguments().iter().any(|word| word.trim_start_matches('-') == "destroy")
                || command.operand(0) == "state" && command.operand(1) == "rm"
        }
        "pulumi" if command.operand(0) == "down" => true,
        "pulumi" if command.operand(0) == "stack" && command.operand(1) == "rm" => true,
        "nomad" if says(&["stop"]) => true,
        "pulumi" | "cdk" | "cdktf" | "nomad" | "copilot" | "amplify" => verbs().any(deletes),
        "serverless" | "sls" | "sst" => says(&["remove"]),
        "aws" => {
            verbs().any(|verb| deletes(verb) || verb.contains("-delete-") || verb.ends_with("-deletion"))
                || command.says("s3") && says(&["rm", "rb"])
                || command.says("s3") && command.has('\0', "delete")
        }
        "istioctl" | "linkerd" if says(&["uninstall"]) => true,
        "gcloud" | "az" | "doctl" | "eksctl" | "hcloud" | "linode-cli" | "openstack" | "ibmcloud" | "scw"
        | "oci" | "fly" | "flyctl" | "heroku" | "firebase" | "vercel" | "netlify" | "wrangler"
        | "supabase" | "neonctl" | "pscale" | "civo" | "vultr-cli" | "exo" | "cf" | "railway" | "kops"
        | "atlas" | "upctl" | "argocd" | "velero" | "istioctl" | "tkn" | "okteto" | "render" => {
            verbs().any(deletes)
                || command.name() == "gcloud" && command.says("storage") && says(&["rm"])
                || command.name() == "vercel" && says(&["rm"])
                || command.name() == "railway" && command.operand(0) == "down"
        }
        "sam" | "helmfile" | "multipass" | "incus" | "lxc" | "flux" | "copilot-cli" | "juju" => {
            verbs().any(deletes) || command.name() == "flux" && says(&["uninstall"])
        }
        "virsh" => matches!(command.operand(0), "destroy" | "undefine" | "vol-delete" | "pool-delete"),
        "curl" | "http" | "https" | "xh" => {
            let is_delete = |method: &str| method.eq_ignore_ascii_case("delete");
            let asks = command.values('X', "request").into_iter().any(is_delete)
                || command.name() != "curl" && is_delete(command.operand(0));
            asks && !sending::is_local(command)
        }
        "gsutil" => says(&["rm", "rb"]),
        "s3cmd" | "s5cmd" => says(&["del", "rb", "rm"]),
        "mc" => matches!(command.operand(0), "rb" | "rm"),
        "rclone" => matches!(command.operand(0), "delete" | "purge" | "deletefile" | "rmdirs"),
        "gh" | "glab" => {
            matches!(command.operand(1), "delete" | "archive")
                || command.operand(0) == "api"
                    && (command
                        .values('X', "method")
                        .iter()
                        .any(|method| method.eq_ignore_ascii_case("delete")))
        }
        _ => false,
    };
    found.then_some(finding("cloud_delete", "deletes in a cloud"))
}
