//! Directories of the home whose files define something: each file is one thing, and its name is the thing's id.
//!
//! What the files mean is not known here. Those that are new or changed are put where they belong, and what is wrong
//! with them is told.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::ErrorKind;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, anyhow};
use petasos_core::ids::InvalidId;
use petasos_engine::Engine;
use serde::de::DeserializeOwned;

use crate::yaml;

const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];
/// The most bytes that a file may have.
const MAX_BYTES: u64 = 4 * 1024 * 1024;
/// How often the files are looked at.
const POLL: Duration = Duration::from_secs(2);

/// When a file was last written, and its length: another pair means another content.
type Stamp = (SystemTime, u64);

/// What a file can define.
pub(crate) trait Defined: Sized {
    /// Its id, which the file's name is.
    type Id: FromStr<Err = InvalidId> + Send + Sync;
    /// What to call one, such as `an agent`.
    const WHAT: &'static str;

    /// Reads the text of a file, and says in which line it is wrong.
    fn parse(text: &str, path: &Path) -> Result<Self>;

    /// Makes the thing what its file says.
    fn put(
        self,
        engine: &Engine,
        id: &Self::Id,
        text: &str,
        path: &Path,
    ) -> impl Future<Output = Result<()>> + Send;
}

/// A directory and what was last seen of its files.
pub(crate) struct DefinitionFiles<T> {
    directory: PathBuf,
    seen: HashMap<PathBuf, Stamp>,
    /// What was last said about files that cannot be used.
    told: HashMap<PathBuf, String>,
    /// The last trouble with the directory itself, so that it is told once.
    trouble: Option<String>,
    defines: PhantomData<fn() -> T>,
}

/// Why a file is not used.
enum Unusable {
    /// What it says or is called: it stays so until the file changes.
    Written(anyhow::Error),
    /// What may pass without a change of the file: another file, its permissions, or whoever takes what it says.
    Passing(anyhow::Error),
}

impl From<Unusable> for anyhow::Error {
    fn from(unusable: Unusable) -> Self {
        match unusable {
            Unusable::Written(problem) | Unusable::Passing(problem) => problem,
        }
    }
}

/// What a file says.
struct Definition<T: Defined> {
    /// The file's name without the ending.
    id: T::Id,
    definition: T,
    text: String,
}

impl<T: Defined> DefinitionFiles<T> {
    /// Names the directory, which need not be there.
    pub(crate) fn new(directory: PathBuf) -> Self {
        let (seen, told) = (HashMap::new(), HashMap::new());
        DefinitionFiles { directory, seen, told, trouble: None, defines: PhantomData }
    }

    /// Reads all files once: each with its id, or what is wrong with it.
    pub(crate) fn check(directory: &Path) -> Result<Vec<Result<T::Id>>> {
        list(directory)?;
        let files = DefinitionFiles::<T>::new(directory.to_owned()).changed().into_iter();
        Ok(files.map(|(_, read)| Ok(read?.id)).collect())
    }

    /// Reads the files that are new or changed since the last time or could not be used then for a reason that may
    /// have passed, and makes everything what they say.
    pub(crate) async fn sync(&mut self, engine: &Engine) {
        for (path, read) in tokio::task::block_in_place(|| self.changed()) {
            let put = match read {
                Ok(Definition { id, definition, text }) => {
                    definition.put(engine, &id, &text, &path).await.map_err(Unusable::Passing)
                }
                Err(unusable) => Err(unusable),
            };
            match put {
                Ok(()) => drop(self.told.remove(&path)),
                Err(unusable) => self.tell(path, unusable),
            }
        }
    }

    /// Goes on looking for changes.
    pub(crate) async fn watch(mut self, engine: Engine) {
        loop {
            tokio::time::sleep(POLL).await;
            self.sync(&engine).await;
        }
    }

    /// Says once what is wrong with a file. It is read again the next time only if that may help.
    fn tell(&mut self, path: PathBuf, unusable: Unusable) {
        if matches!(unusable, Unusable::Passing(_)) {
            self.seen.remove(&path);
        }
        let problem = format!("{:#}", anyhow::Error::from(unusable));
        if self.told.get(&path) != Some(&problem) {
            tracing::warn!("{}'s file is not used: {problem}", T::WHAT);
            self.told.insert(path, problem);
        }
    }

    /// What is new or changed since the last time, in the order of the names.
    fn changed(&mut self) -> Vec<(PathBuf, Result<Definition<T>, Unusable>)> {
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
        self.told.retain(|path, _| files.contains_key(path));
        let mut owners: HashMap<String, &Path> = HashMap::new();
        let mut changed = Vec::new();
        for (path, stamp) in &files {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let owner = *owners.entry(stem.clone()).or_insert(path);
            if self.seen.insert(path.clone(), *stamp) != Some(*stamp) {
                changed.push((path.clone(), Definition::read(&stem, path, owner)));
            }
        }
        changed
    }
}

impl<T: Defined> Definition<T> {
    fn read(stem: &str, path: &Path, owner: &Path) -> Result<Self, Unusable> {
        let name = || {
            format!("{}: the file's name cannot be the id of {}; rename the file", path.display(), T::WHAT)
        };
        let id = stem.parse::<T::Id>().with_context(name).map_err(Unusable::Written)?;
        let text = read(path, owner)?;
        let definition = T::parse(&text, path).map_err(Unusable::Written)?;
        Ok(Definition { id, definition, text })
    }
}

/// The files of a directory that can define something. A directory that is not there has none.
fn list(directory: &Path) -> Result<BTreeMap<PathBuf, Stamp>> {
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

fn read(path: &Path, owner: &Path) -> Result<String, Unusable> {
    if owner != path {
        let problem =
            anyhow!("{}: {} has the same name and is used instead", path.display(), owner.display());
        return Err(Unusable::Passing(problem));
    }
    let length = fs::metadata(path).map(|metadata| metadata.len()).unwrap_or_default();
    if length > MAX_BYTES {
        let problem = anyhow!("{}: it has {length} bytes; at most {MAX_BYTES} are read", path.display());
        return Err(Unusable::Written(problem));
    }
    fs::read_to_string(path).map_err(|error| {
        let is_no_text = error.kind() == ErrorKind::InvalidData;
        let problem = anyhow!(error).context(format!("cannot read {}", path.display()));
        if is_no_text { Unusable::Written(problem) } else { Unusable::Passing(problem) }
    })
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

#[cfg(test)]
mod tests {
    use petasos_core::agent::AgentDefinition;

    use super::*;

    const AGENT: &str = "name: A\nmodel: demo/echo\n";

    fn ids(files: &mut DefinitionFiles<AgentDefinition>) -> Vec<String> {
        let shown = |read: Result<Definition<AgentDefinition>, Unusable>| match read {
            Ok(read) => format!("{}={}", read.id, read.definition.name),
            Err(unusable) => format!("{:#}", anyhow::Error::from(unusable)),
        };
        files.changed().into_iter().map(|(_, read)| shown(read)).collect()
    }

    #[test]
    fn only_what_changed_is_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let mut files = DefinitionFiles::new(directory.path().join("agents"));
        assert!(ids(&mut files).is_empty());
        fs::create_dir(&files.directory).unwrap();
        let (a, b) = (files.directory.join("a.yaml"), files.directory.join("b.json"));
        fs::write(&a, AGENT).unwrap();
        fs::write(&b, r#"{"name":"B","model":"demo/echo"}"#).unwrap();
        fs::write(files.directory.join("notes.txt"), "no agent").unwrap();
        fs::write(files.directory.join(".hidden.yaml"), "no agent").unwrap();
        assert_eq!(ids(&mut files), ["a=A", "b=B"]);
        assert!(ids(&mut files).is_empty());
        fs::write(&a, "name: Another\nmodel: demo/echo\n").unwrap();
        assert_eq!(ids(&mut files), ["a=Another"]);
        // A file that is gone and comes back is read again.
        fs::remove_file(&b).unwrap();
        assert!(ids(&mut files).is_empty());
        fs::write(&b, r#"{"name":"C","model":"demo/echo"}"#).unwrap();
        assert_eq!(ids(&mut files), ["b=C"]);
    }

    #[test]
    fn names_that_cannot_be_used_are_told() {
        let directory = tempfile::tempdir().unwrap();
        let mut files = DefinitionFiles::new(directory.path().to_owned());
        fs::write(directory.path().join("a.json"), r#"{"name":"A","model":"demo/echo"}"#).unwrap();
        fs::write(directory.path().join("a.yaml"), AGENT).unwrap();
        fs::write(directory.path().join("my agent.yaml"), AGENT).unwrap();
        let read = ids(&mut files);
        assert_eq!(read[0], "a=A");
        assert!(read[1].contains("a.yaml: ") && read[1].contains("a.json has the same name"), "{read:?}");
        assert!(read[2].contains("my agent.yaml") && read[2].contains("rename the file"), "{read:?}");
    }
    #[test]
    fn a_file_is_tried_again_only_if_its_trouble_may_pass() {
        let directory = tempfile::tempdir().unwrap();
        let mut files = DefinitionFiles::<AgentDefinition>::new(directory.path().to_owned());
        let write = |name: &str, text: &[u8]| fs::write(directory.path().join(name), text).unwrap();
        write("a.json", br#"{"name":"A","model":"demo/echo"}"#);
        write("a.yaml", AGENT.as_bytes());
        write("broken.yaml", b"name: [");
        write("my agent.yaml", AGENT.as_bytes());
        write("no-text.yaml", b"\xff");
        let mut tried = || {
            let mut names = Vec::new();
            for (path, read) in files.changed() {
                names.push(path.file_name().unwrap().to_str().unwrap().to_owned());
                if let Err(unusable) = read {
                    files.tell(path, unusable);
                }
            }
            names
        };
        assert_eq!(tried(), ["a.json", "a.yaml", "broken.yaml", "my agent.yaml", "no-text.yaml"]);
        // The other file may go.
        assert_eq!(tried(), ["a.yaml"]);
        assert_eq!(tried(), ["a.yaml"]);
        fs::remove_file(directory.path().join("a.json")).unwrap();
        write("broken.yaml", b"name: [[");
        assert_eq!(tried(), ["a.yaml", "broken.yaml"]);
        assert!(tried().is_empty());
    }
}
