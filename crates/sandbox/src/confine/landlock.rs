//! Which files a command may touch.

use landlock::{
    ABI, Access, AccessFs, BitFlags, LandlockStatus, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
    RulesetStatus, Scope, path_beneath_rules,
};

use super::Found;
use crate::job::Confinement;

/// The newest rules that we know how to use. Older kernels enforce those of them that they know.
const RULES: ABI = ABI::V7;

/// What each version of the rules adds, beyond the first.
const ADDED: [(ABI, &str); 4] = [
    (ABI::V2, "moving files between directories"),
    (ABI::V3, "truncating files"),
    (ABI::V5, "ioctl on devices"),
    (ABI::V6, "signals to processes outside"),
];

pub(super) fn apply(confinement: &Confinement) -> Result<Found, String> {
    let status = restrict(confinement).map_err(|error| format!("Landlock: {error}"))?;
    match status.landlock {
        LandlockStatus::Available { effective_abi, .. } if status.ruleset != RulesetStatus::NotEnforced => {
            let newer = ADDED.iter().filter(|(abi, _)| *abi > effective_abi);
            let lacks = newer.map(|(_, what)| format!("this kernel's Landlock does not control {what}"));
            Ok(Found { has: vec![format!("Landlock {effective_abi}")], lacks: lacks.collect() })
        }
        LandlockStatus::NotEnabled => Err("Landlock is not enabled at boot (lsm=landlock,…)".to_owned()),
        _ => Err("the kernel has no Landlock (Linux 5.13 or newer)".to_owned()),
    }
}

fn restrict(confinement: &Confinement) -> Result<landlock::RestrictionStatus, RulesetError> {
    let read: BitFlags<AccessFs> = AccessFs::ReadFile | AccessFs::ReadDir;
    let device = read | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
    Ruleset::default()
        .handle_access(AccessFs::from_all(RULES))?
        .scope(Scope::from_all(RULES))?
        .create()?
        .add_rules(path_beneath_rules(&confinement.execute, read | AccessFs::Execute))?
        .add_rules(path_beneath_rules(&confinement.list, AccessFs::ReadDir))?
        .add_rules(path_beneath_rules(&confinement.read, read))?
        .add_rules(path_beneath_rules(&confinement.devices, device))?
        .add_rules(path_beneath_rules(&confinement.write, AccessFs::from_all(RULES)))?
        .restrict_self()
}
