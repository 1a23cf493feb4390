//! Directories of the home whose files define something: each file is one thing, and its name is the thing's id.
//!
//! What the files mean is not known here. Those that are new or changed are handed out, with what is wrong with them.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, anyhow, bail};
use serde::de::DeserializeOwned;

use crate::yaml;

const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];
/// The most bytes that a file may have.
const MAX_BYTES: u64 = 4 * 1024 * 1024;
/// How often the files are looked at.
pub(crate) const POLL: Duration = Duration::from_secs(2);

/// When a file was last written, and its length: another pair means another content.
type Stamp = (SystemTime, u64);

/// A directory and what was last seen of its files.
pub(crate) struct DefinitionFiles {
    pub(crate) directory: PathBuf,
    /// What one file defines, such as `an agent`.
    what: &'static str,
    seen: HashMap<PathBuf, Stamp>,
    /// The last trouble with the directory itself, so that it is told once.
    trouble: Option<String>,
}

/// A file that is new or changed.
pub(crate) struct Definition {
    /// The file.
    pub(crate) path: PathBuf,
    /// Its name without the ending.
    stem: String,
    /// What it says.
    text: Result<String>,
    what: &'static str,
}

impl DefinitionFiles {
    /// Names the directory, which need not be there.
    pub(crate) fn new(directory: PathBuf, what: &'static str) -> Self {
        DefinitionFiles { directory, what, seen: HashMap::new(), trouble: None }
    }

    /// What is new or changed since the last time, in the order of the names.
    pub(crate) fn changed(&mut self) -> Vec<Definition> {
        let files = match list(&self.directory) {
            Ok(files) => files,
            Err(error) => {
                let trouble = format!("{error:#}");
                if self.trouble.as_ref() != Some(&trouble) {
                    tracing::warn!("definitions from files cannot be read: {trouble}");
                }
                self.trouble = Some(trouble);
                return Vec::new();
            }
        };
        self.trouble = None;
        self.seen.retain(|path, _| files.contains_key(path));
        let mut owners: HashMap<String, &Path> = HashMap::new();
        let mut changed = Vec::new();
        for (path, stamp) in &files {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let owner = *owners.entry(stem.clone()).or_insert(path);
            if self.seen.insert(path.clone(), *stamp) == Some(*stamp) {
                continue;
            }
            let text = read(path, owner);
            changed.push(Definition { path: path.clone(), stem, text, what: self.what });
        }
        changed
    }

    /// Hands a file out again the next time, whether it changes or not.
    pub(crate) fn look_again(&mut self, path: &Path) {
        self.seen.remove(path);
    }
}

impl Definition {
    /// The id that the file's name is, and what `parse` makes of its text.
    pub(crate) fn read<I, T>(self, parse: impl FnOnce(&str, &Path) -> Result<T>) -> Result<(I, T)>
    where
        I: FromStr<Err: std::error::Error + Send + Sync + 'static>,
    {
        let Definition { path, stem, text, what } = self;
        let id = stem.parse::<I>().with_context(|| {
            format!("{}: the file's name cannot be the id of {what}; rename the file", path.display())
        })?;
        Ok((id, parse(&text?, &path)?))
    }
}

/// The files of a directory that can define something. A directory that is not there has none.
pub(crate) fn list(directory: &Path) -> Result<BTreeMap<PathBuf, Stamp>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", directory.display())),
    };
    let mut files = BTreeMap::new();
    for entry in entries {
        let path = entry.with_context(|| format!("cannot read {}", directory.display()))?.path();
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if hidden || !ENDINGS.contains(&ending.to_ascii_lowercase().as_str()) {
            continue;
        }
        // A file that vanishes in between is simply not there.
        if let Ok(metadata) = fs::metadata(&path)
            && metadata.is_file()
        {
            files.insert(path, (metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH), metadata.len()));
        }
    }
    Ok(files)
}

fn read(path: &Path, owner: &Path) -> Result<String> {
    if owner != path {
        bail!("{}: {} has the same name and is used instead", path.display(), owner.display());
    }
    let length = fs::metadata(path).map(|metadata| metadata.len()).unwrap_or_default();
    if length > MAX_BYTES {
        bail!("{}: it has {length} bytes; at most {MAX_BYTES} are read", path.display());
    }
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Reads the text of a file. The file's ending says whether it is JSON; everything else is YAML.
pub(crate) fn parse<T: DeserializeOwned>(text: &str, path: &Path) -> Result<T> {
    let name = path.display().to_string();
    if !path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json")) {
        return yaml::parse(text, &name);
    }
    serde_json::from_str(text).map_err(|error| {
        let problem = error.to_string();
        let problem = problem.split(" at line ").next().unwrap_or_default();
        anyhow!("{name}:{}:{}: {problem}", error.line(), error.column())
    })
}

/// Where a field is: the first line that starts with its outermost name.
pub(crate) fn place(text: &str, path: &Path, field: &str) -> String {
    let key = field.split(['.', '[']).next().unwrap_or_default();
    let starts = |line: &str| {
        let rest = line.trim_start_matches([' ', '\t', '{', '"', '\'']).strip_prefix(key);
        rest.is_some_and(|rest| rest.trim_start_matches(['"', '\'', ' ']).starts_with(':'))
    };
    match text.lines().position(starts) {
        Some(index) => format!("{}:{}", path.display(), index + 1),
        None => path.display().to_string(),
    }
}
