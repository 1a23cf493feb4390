//! What ignore files say about the files of a search.
//!
//! `.ignore`, `.gitignore` and `.git/info/exclude` come from whoever wrote the workspace. They are read through the
//! handle of their directory, as regular files and through no link, and only up to limits: a link to a device or to a
//! file elsewhere says nothing, and no number of patterns takes the memory of the server.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::notes::Notes;
use crate::beneath::open_regular_file;

/// The largest ignore file that is applied.
const MAX_BYTES: u64 = 1024 * 1024;
/// The longest pattern. No path is longer.
const MAX_PATTERN_BYTES: usize = 4096;
/// The most patterns of one file.
pub(super) const MAX_PATTERNS: usize = 2000;
/// The most patterns of a directory and those above it.
const MAX_PATTERNS_HELD: usize = 10_000;
/// The most bytes of these patterns: what is made of one is many times larger.
const MAX_BYTES_HELD: usize = 512 * 1024;
/// The most ignore files of a directory and those above it: each has a matcher of its own, which can take 10 MB.
const MAX_FILES_HELD: usize = 16;
/// The most wildcards of one pattern: each can double the states of its matcher.
const MAX_WILDCARDS: usize = 8;

/// What the ignore files of a directory, and of those above it, say.
pub(super) struct IgnoreRules {
    above: Option<Arc<IgnoreRules>>,
    /// How many bytes of a path are the directory, with its last slash.
    prefix: usize,
    ignore: Option<Gitignore>,
    gitignore: Option<Gitignore>,
    exclude: Option<Gitignore>,
    /// Whether a repository begins here. Files of git above it say nothing about what is in it.
    is_repository: bool,
    held: Held,
}

/// What the patterns of a directory and of those above it come to.
#[derive(Clone, Copy, Default)]
struct Held {
    files: usize,
    patterns: usize,
    bytes: usize,
}

/// Which ignore files a directory has.
#[derive(Clone, Copy, Default)]
pub(super) struct Present {
    pub(super) ignore: bool,
    pub(super) gitignore: bool,
    pub(super) git: bool,
}

impl Present {
    /// Notes a name that is in the directory.
    pub(super) fn see(&mut self, name: &[u8]) {
        match name {
            b".ignore" => self.ignore = true,
            b".gitignore" => self.gitignore = true,
            b".git" => self.git = true,
            _ => {}
        }
    }
}

impl IgnoreRules {
    /// Reads the ignore files of the directory `path`, whose handle is given.
    pub(super) fn read(
        above: Option<&Arc<IgnoreRules>>,
        path: &Path,
        handle: impl AsFd,
        present: Present,
        notes: &mut Notes,
    ) -> Arc<IgnoreRules> {
        if let Some(above) = above
            && !(present.ignore || present.gitignore || present.git)
        {
            return Arc::clone(above);
        }
        let held = above.map(|above| above.held).unwrap_or_default();
        let mut reading = Reading { path, handle: handle.as_fd(), held, notes };
        let ignore = reading.rules(present.ignore, ".ignore");
        let gitignore = reading.rules(present.gitignore, ".gitignore");
        let exclude = reading.rules(present.git, ".git/info/exclude");
        let held = reading.held;
        let prefix = match path.as_os_str().len() {
            0 => 0,
            length => length + 1,
        };
        let above = above.cloned();
        Arc::new(IgnoreRules { above, prefix, ignore, gitignore, exclude, is_repository: present.git, held })
    }

    /// Whether a file or directory is left out. `.ignore` counts for more than `.gitignore`, and the nearest file of a
    /// name for more than those above it.
    pub(super) fn leaves_out(&self, path: &Path, is_directory: bool) -> bool {
        let bytes = path.as_os_str().as_encoded_bytes();
        let mut said: [Match<()>; 3] = [Match::None, Match::None, Match::None];
        let (mut rules, mut in_repository) = (Some(self), true);
        while let Some(here) = rules {
            let below = bytes.get(here.prefix..).unwrap_or_default();
            let below = Path::new(OsStr::from_bytes(below));
            let files = [
                here.ignore.as_ref(),
                here.gitignore.as_ref().filter(|_| in_repository),
                here.exclude.as_ref().filter(|_| in_repository),
            ];
            for (said, file) in said.iter_mut().zip(files) {
                if said.is_none()
                    && let Some(file) = file
                {
                    *said = file.matched(below, is_directory).map(|_| ());
                }
            }
            in_repository &= !here.is_repository;
            rules = here.above.as_deref();
        }
        said.into_iter().find(|said| !said.is_none()).is_some_and(|said| said.is_ignore())
    }
}

/// How many wildcards a pattern has. Several stars in a row count once.
fn wildcards(pattern: &str) -> usize {
    let stars = pattern.split(|letter| letter != '*').filter(|run| !run.is_empty()).count();
    stars + pattern.matches(['?', '[']).count()
}

/// Reads the ignore files of one directory.
struct Reading<'a> {
    path: &'a Path,
    handle: std::os::fd::BorrowedFd<'a>,
    held: Held,
    notes: &'a mut Notes,
}

impl Reading<'_> {
    fn rules(&mut self, is_present: bool, name: &str) -> Option<Gitignore> {
        if !is_present {
            return None;
        }
        match self.read(name) {
            Ok(_) if self.held.files >= MAX_FILES_HELD => {
                self.not_applied(name, "there are too many ignore files above it");
                None
            }
            Ok(text) => {
                self.held.files += 1;
                self.parse(name, &text)
            }
            // A repository need not have one, and that of a worktree is elsewhere.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                None
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                self.not_applied(name, "it is no regular file");
                None
            }
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                self.not_applied(name, "it has more than 1 MB");
                None
            }
            Err(_) => {
                self.not_applied(name, "it cannot be read");
                None
            }
        }
    }

    fn read(&self, name: &str) -> io::Result<String> {
        let file = open_regular_file(self.handle, Path::new(name))?;
        if file.metadata()?.len() > MAX_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut bytes = Vec::new();
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
        if u64::try_from(bytes.len()).is_ok_and(|length| length > MAX_BYTES) {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn parse(&mut self, name: &str, text: &str) -> Option<Gitignore> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut builder = GitignoreBuilder::new(".");
        let (mut count, mut left_out) = (0, 0usize);
        for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
            let held = Held {
                patterns: self.held.patterns + 1,
                bytes: self.held.bytes.saturating_add(line.len()),
                ..self.held
            };
            let fits = count < MAX_PATTERNS
                && wildcards(line) <= MAX_WILDCARDS
                && line.len() <= MAX_PATTERN_BYTES
                && held.patterns <= MAX_PATTERNS_HELD
                && held.bytes <= MAX_BYTES_HELD;
            // A pattern that cannot be understood says nothing, as in git.
            if fits && builder.add_line(None, line).is_ok() {
                self.held = held;
                count += 1;
            } else if !fits {
                left_out += 1;
            }
        }
        if left_out > 0 {
            self.not_applied(name, &format!("{left_out} of its patterns are over the limits"));
        }
        let built = builder.build();
        if built.is_err() {
            self.not_applied(name, "its patterns are too complex");
        }
        built.ok().filter(|rules| !rules.is_empty())
    }

    fn not_applied(&mut self, name: &str, reason: &str) {
        let path = self.path.join(name);
        self.notes.ignore_file_not_applied(format!("{} ({reason})", path.display()));
    }
}
