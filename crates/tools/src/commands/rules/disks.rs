//! Disks and what is mounted.

use crate::commands::simple::Simple;
use crate::commands::{Finding, finding};

pub(super) fn rule(command: &Simple) -> Option<Finding> {
    let change = finding("disk_change", "changes disks or what is mounted");
    let has_operands = command.operands().next().is_some();
    let lists = command.has('l', "list")
        || command.says("print")
        || command.has('\0', "show")
        || command.has('\0', "help");
    let output = |word: &String| {
        word.strip_prefix("of=").is_some_and(|path| !matches!(path, "/dev/null" | "/dev/stdout"))
    };
    match command.name() {
        _ if command.has('\0', "help") => None,
        "dd" | "dcfldd" | "dc3dd" if command.arguments().iter().any(output) => {
            Some(finding("raw_copy", "writes raw data"))
        }
        // A kind of file systems alone only says which of them to list.
        "mount" if command.operands().eq(command.values('t', "types")) => None,
        "swapon" if command.has('s', "summary") || command.has('\0', "show") => None,
        "debugfs" if command.has('w', "") => Some(change),
        "mount" | "losetup" | "swapon" if !has_operands => None,
        "fdisk" | "sfdisk" | "parted" | "gdisk" | "cgdisk" | "cfdisk" if lists => None,
        "fdisk" | "sfdisk" | "parted" | "gdisk" | "sgdisk" | "cgdisk" | "cfdisk" | "mkswap" | "swapoff"
        | "mount" | "umount" | "losetup" | "swapon" | "cryptsetup" | "lvremove" | "vgremove" | "pvremove"
        | "pvcreate" | "lvreduce" | "tune2fs" | "resize2fs" | "e2label" | "partprobe" | "wipefs" => {
            Some(change)
        }
        "zpool" | "zfs"
            if command.operands().any(|verb| matches!(verb, "destroy" | "create" | "rollback")) =>
        {
            Some(change)
        }
        "mdadm"
            if command
                .arguments()
                .iter()
                .any(|word| word.starts_with("--zero") || word == "--stop" || word == "--create") =>
        {
            Some(change)
        }
        "btrfs" if command.says("delete") => Some(change),
        "diskutil" if !command.says("list") && !command.says("info") => Some(change),
        _ => None,
    }
}
