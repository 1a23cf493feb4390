//! Which files a command may touch.

use landlock::{
    ABI, Access, AccessFs, BitFlags, LandlockStatus, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
    RulesetStatus, Scope, path_beneath_rules,
};

use super::Found;
use crate::job::Confinement;

/// The newest rules that we know how to use. Older kernels enforce those of them that they know.
const NEWEST: ABI = ABI::V7;
const KNOWN: [ABI; 7] = [ABI::V1, ABI::V2, ABI::V3, ABI::V4, ABI::V5, ABI::V6, NEWEST];

pub(super) fn apply(confinement: &Confinement) -> Result<Found, String> {
    let status = restrict(confinement).map_err(|error| format!("Landlock: {error}"))?;
    match status.landlock {
        LandlockStatus::Available { effective_abi, .. } if status.ruleset != RulesetStatus::NotEnforced => {
            let abi = version(effective_abi).min(confinement.landlock_abi);
            Ok(Found { has: vec![format!("Landlock {effective_abi}")], landlock_abi: abi })
        }
        LandlockStatus::NotEnabled => Err("Landlock is not enabled at boot (lsm=landlock,…)".to_owned()),
        _ => Err("the kernel has no Landlock (Linux 5.13 or newer)".to_owned()),
    }
}

fn restrict(confinement: &Confinement) -> Result<landlock::RestrictionStatus, RulesetError> {
    let rules =
        KNOWN.iter().rfind(|abi| version(**abi) <= confinement.landlock_abi).copied().unwrap_or(ABI::V1);
    let (files, scopes) = (AccessFs::from_all(rules), Scope::from_all(rules));
    let read: BitFlags<AccessFs> = AccessFs::ReadFile | AccessFs::ReadDir;
    let device = (read | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev) & files;
    let ruleset = Ruleset::default().handle_access(files)?;
    let ruleset = if scopes.is_empty() { ruleset } else { ruleset.scope(scopes)? };
    ruleset
        .create()?
        .add_rules(path_beneath_rules(&confinement.execute, read | AccessFs::Execute))?
        .add_rules(path_beneath_rules(&confinement.list, AccessFs::ReadDir))?
        .add_rules(path_beneath_rules(&confinement.read, read))?
        .add_rules(path_beneath_rules(&confinement.devices, device))?
        .add_rules(path_beneath_rules(&confinement.write, files))?
        .restrict_self()
}

/// The number of a version.
fn version(abi: ABI) -> i32 {
    i32::try_from(KNOWN.iter().filter(|known| **known <= abi).count()).unwrap_or_default()
}
