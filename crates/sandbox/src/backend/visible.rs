//! What of the system a command sees.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::settings::Settings;

/// Programs and what they need.
const PROGRAMS: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/run/current-system",
];

/// What of `/etc` programs need: who and what there is, how names are found, certificates, and settings of tools that
/// hold no secrets. All else there is the operator's own, such as the environment of this server.
pub(super) const SYSTEM_SETTINGS: &[&str] = &[
    "alsa",
    "alternatives",
    "ant.conf",
    "apache2/mime.types",
    "apt/sources.list",
    "apt/sources.list.d",
    "bash.bash_logout",
    "bash.bashrc",
    "bash_completion.d",
    "bashrc",
    "bindresvport.blacklist",
    "ca-certificates",
    "ca-certificates.conf",
    "chromium",
    "chromium.d",
    "crypto-policies",
    "dconf",
    "debian_version",
    "default/locale",
    "dpkg",
    "emacs",
    "ethertypes",
    "fedora-release",
    "firefox",
    "fonts",
    "gai.conf",
    "gdb",
    "ghostscript",
    "gitattributes",
    "gitconfig",
    "gnutls",
    "groff",
    "group",
    "gtk-3.0",
    "host.conf",
    "hostname",
    "hosts",
    "ImageMagick-6",
    "ImageMagick-7",
    "inputrc",
    "issue",
    "java",
    "java-11-openjdk",
    "java-17-openjdk",
    "java-21-openjdk",
    "java-25-openjdk",
    "krb5.conf",
    "krb5.conf.d",
    "ld-musl-aarch64.path",
    "ld-musl-x86_64.path",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "libnl-3",
    "libreoffice",
    "locale.alias",
    "locale.conf",
    "locale.gen",
    "localtime",
    "login.defs",
    "lsb-release",
    "machine-id",
    "magic",
    "magic.mime",
    "mailcap",
    "manpath.config",
    "maven",
    "mime.types",
    "mke2fs.conf",
    "mono",
    "mtab",
    "nanorc",
    "netconfig",
    "networks",
    "nix",
    "nsswitch.conf",
    "ocl-icd",
    "OpenCL",
    "openssl",
    "os-release",
    "papersize",
    "paperspecs",
    "passwd",
    "perl",
    "php",
    "pki",
    "postgresql-common",
    "profile",
    "profile.d",
    "protocols",
    "python2.7",
    "python3",
    "python3.10",
    "python3.11",
    "python3.12",
    "python3.13",
    "python3.14",
    "R",
    "redhat-release",
    "resolv.conf",
    "rpc",
    "sane.d",
    "sensors.d",
    "sensors3.conf",
    "services",
    "sgml",
    "shells",
    "skel",
    "ssh/ssh_config",
    "ssh/ssh_config.d",
    "ssh/ssh_known_hosts",
    "ssl",
    "static",
    "subgid",
    "subuid",
    "terminfo",
    "texmf",
    "timezone",
    "tmux.conf",
    "vdpau_wrapper.cfg",
    "vim",
    "vimrc",
    "vulkan",
    "X11",
    "xattr.conf",
    "xdg",
    "xml",
    "zsh",
    "zshenv",
];

/// What the system says about itself. Landlock keeps what `/proc` tells about processes outside to itself.
pub(super) const READ: &[&str] = &["/proc", "/sys/devices/system", "/sys/fs/cgroup", "/run/systemd/resolve"];

/// Devices that do no harm. Terminals are not among them: they are all of the same user. A command gets its own open.
pub(super) const DEVICES: &[&str] =
    &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// What of the files a command sees.
#[derive(Default)]
pub(super) struct Files {
    /// What it may read and execute: programs and what the settings add, without what is hidden.
    pub(super) programs: Vec<PathBuf>,
    /// Directories that hold something of root's: their names may be read, but not what is in them.
    pub(super) listed: Vec<PathBuf>,
    /// Links in directories that hold something hidden, and where they lead.
    pub(super) links: BTreeMap<PathBuf, PathBuf>,
}

impl Files {
    /// `of_root` is what besides is left out.
    pub(super) fn of(settings: &Settings, of_root: &[PathBuf]) -> Files {
        let system = SYSTEM_SETTINGS.iter().map(|name| Path::new("/etc").join(name));
        let roots = PROGRAMS.iter().map(PathBuf::from).chain(system).chain(settings.read.iter().cloned());
        let ours: Vec<PathBuf> = settings.hidden.iter().map(|path| real(path)).collect();
        // Which settings there are is no secret.
        let mut files = Files { listed: vec![PathBuf::from("/etc")], ..Files::default() };
        for root in roots {
            if let Ok(target) = std::fs::read_link(&root) {
                files.links.insert(root.clone(), target);
            }
            // A root may be a link: what matters is where it leads. What the kernel says about this process is not it.
            if let Some(root) = root.canonicalize().ok().filter(|root| !root.starts_with("/proc")) {
                files.add(root, &ours, of_root);
            }
        }
        files
    }

    /// Adds `path`, or if something hidden lies below it, everything else below it.
    fn add(&mut self, path: PathBuf, ours: &[PathBuf], of_root: &[PathBuf]) {
        let mut hidden = ours.iter().chain(of_root);
        let is_below = |hidden: &PathBuf| hidden.starts_with(&path);
        if hidden.clone().any(|hidden| path.starts_with(hidden)) {
            return;
        }
        if !hidden.any(is_below) {
            self.programs.push(path);
            return;
        }
        let Ok(entries) = std::fs::read_dir(&path) else { return };
        let mut children: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        children.sort();
        for child in children {
            // A link's target must not be seen because of it.
            match std::fs::read_link(&child) {
                Ok(target) => drop(self.links.insert(child, target)),
                Err(_) => self.add(child, ours, of_root),
            }
        }
        if !ours.iter().any(is_below) {
            self.listed.push(path);
        }
    }
}

/// Where a path leads, if what it names is there or not.
fn real(path: &Path) -> PathBuf {
    let beside = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(beside).unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_is_cut_out_of_what_surrounds_it() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().to_owned();
        for path in ["programs", "data/ours", "data/theirs"] {
            std::fs::create_dir_all(root.join(path)).unwrap();
        }
        std::os::unix::fs::symlink("programs", root.join("link")).unwrap();
        let files = |path: &str, ours: &[PathBuf], of_root: &[PathBuf]| {
            let mut files = Files::default();
            files.add(root.join(path), ours, of_root);
            files
        };
        let hidden = [root.join("data/ours")];
        let found = files("", &hidden, &[]);
        assert_eq!(found.programs, [root.join("data/theirs"), root.join("programs")]);
        assert_eq!(found.links, [(root.join("link"), "programs".into())].into());
        assert!(found.listed.is_empty());
        assert_eq!(files("programs", &hidden, &[]).programs, [root.join("programs")]);
        assert!(files("data/ours/deep", &hidden, &[]).programs.is_empty());
        // What is root's may be listed, unless something of ours is beside it.
        let of_root = [root.join("programs/private")];
        assert_eq!(files("", &[], &of_root).listed, [root.join("programs"), root.clone()]);
        assert_eq!(files("", &hidden, &of_root).listed, [root.join("programs")]);
    }
}
