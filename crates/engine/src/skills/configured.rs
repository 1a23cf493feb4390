//! The texts of configured skills: in the definition, in a file of the installation, or at an address.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use petasos_core::agent::{ConfiguredSkill, SkillSource};
use petasos_net::{Client, Method};
use petasos_tools::{FileOwner, FilePool};
use rustix::fs::OFlags;

use super::{SkillSettings, document};
use crate::feed::lock;

/// How long fetching a text may take.
const FETCH_TIME: Duration = Duration::from_secs(15);
/// For how long a fetched text is used without asking again.
const FRESH: Duration = Duration::from_secs(300);
/// How many fetched texts are kept.
const MAX_KEPT: usize = 256;
const SKILL_FILE: &str = "SKILL.md";

/// A skill whose text is here.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Loaded {
    pub(super) description: String,
    pub(super) content: Arc<str>,
    /// The files that come with it.
    pub(super) files: Vec<String>,
}

/// Where the texts come from.
pub(super) struct Sources {
    settings: SkillSettings,
    directory: Option<PathBuf>,
    client: Option<Client>,
    /// Where files are read.
    pool: FilePool,
    fetched: Mutex<HashMap<String, (Instant, Arc<str>)>>,
}

impl Sources {
    pub(super) fn new(
        settings: SkillSettings,
        directory: Option<PathBuf>,
        client: Option<Client>,
        pool: FilePool,
    ) -> Self {
        Sources { settings, directory, client, pool, fetched: Mutex::default() }
    }

    /// Reads a skill, or says why it cannot be read.
    pub(super) async fn load(&self, skill: &ConfiguredSkill) -> Result<Loaded, String> {
        let (content, files) = match &skill.source {
            SkillSource::Inline { content } => (content.as_str().into(), Vec::new()),
            SkillSource::Url { url } => (self.fetch(url).await?, Vec::new()),
            SkillSource::File { path } => return self.load_from(&self.find(path).await?).await,
        };
        let description = document::configured(&content, &self.settings)?;
        Ok(Loaded { description, content, files })
    }

    /// Reads a skill from its file, or from the directory that has it.
    pub(super) async fn load_from(&self, path: &Path) -> Result<Loaded, String> {
        let (path, most) = (path.to_owned(), self.most_bytes());
        let read = move || {
            let path = skill_file(&path);
            Ok((Arc::<str>::from(read(&path, most)?), files_beside(&path)))
        };
        let (content, files) = self.on_pool(read).await?;
        let description = document::configured(&content, &self.settings)?;
        Ok(Loaded { description, content, files })
    }

    /// Reads a file that comes with a skill.
    pub(super) async fn file(&self, skill: &ConfiguredSkill, path: &str) -> Result<String, String> {
        let SkillSource::File { path: skill_path } = &skill.source else {
            return Err(format!("there is no file {path}"));
        };
        self.file_beside(&self.find(skill_path).await?, path).await
    }

    /// Reads a file beside that of a skill.
    pub(super) async fn file_beside(&self, skill: &Path, path: &str) -> Result<String, String> {
        document::refuse_bad_path(path)?;
        let (skill, path, most) = (skill.to_owned(), PathBuf::from(path), self.settings.file_bytes);
        let read = move || {
            let skill_file = skill_file(&skill);
            read(&inside(skill_file.parent().unwrap_or(&skill_file), &path)?, most)
        };
        self.on_pool(read).await
    }

    /// Reads files where a disk that does not answer holds up nobody else.
    async fn on_pool<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> Result<T, String> {
        // They belong to the installation, which no tenant's name is.
        let owner = FileOwner { tenant: String::new(), workspace: "skills".to_owned() };
        self.pool.run(&owner, read).await.unwrap_or_else(|error| Err(error.to_string()))
    }

    /// The file of a skill. A path that leads out of the directory leads nowhere.
    async fn find(&self, path: &str) -> Result<PathBuf, String> {
        let directory = self.directory.clone().ok_or("this server has no directory with skills")?;
        let path = PathBuf::from(path);
        let find = move || {
            let found = inside(&directory, &path)?;
            if found.is_dir() { inside(&found, Path::new(SKILL_FILE)) } else { Ok(found) }
        };
        self.on_pool(find).await
    }

    /// A bound in bytes that no text of the allowed length exceeds.
    fn most_bytes(&self) -> usize {
        self.settings.content_chars.saturating_mul(4)
    }

    async fn fetch(&self, url: &str) -> Result<Arc<str>, String> {
        let known = lock(&self.fetched).get(url).cloned();
        if let Some((at, text)) = &known
            && at.elapsed() < FRESH
        {
            return Ok(Arc::clone(text));
        }
        let fetched = tokio::time::timeout(FETCH_TIME, self.fetch_now(url)).await;
        let fetched = fetched.unwrap_or_else(|_| Err(format!("{url} did not answer in time")));
        match (fetched, known) {
            (Ok(text), _) => {
                let text: Arc<str> = text.into();
                let mut fetched = lock(&self.fetched);
                if fetched.len() >= MAX_KEPT {
                    fetched.clear();
                }
                fetched.insert(url.to_owned(), (Instant::now(), Arc::clone(&text)));
                Ok(text)
            }
            // An old text is better than none while the address cannot be reached.
            (Err(_), Some((_, text))) => Ok(text),
            (Err(problem), None) => Err(problem),
        }
    }

    async fn fetch_now(&self, url: &str) -> Result<String, String> {
        let client = self.client.as_ref().ok_or("this server does not fetch skills")?;
        let failed = |error: petasos_net::Error| format!("{url} cannot be fetched: {error}");
        let response = client.request(Method::Get, url, &[], None).await.map_err(failed)?;
        match response.status() {
            200 => response.text_bounded(self.most_bytes()).await.map_err(failed),
            status => Err(format!("{url} answered with {status}; name the address of the text itself")),
        }
    }
}

/// The file of a skill that may be named by its directory.
fn skill_file(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(SKILL_FILE) } else { path.to_owned() }
}

/// A path under a directory, with every link followed, if it is still under it.
fn inside(directory: &Path, path: &Path) -> Result<PathBuf, String> {
    let shown = path.display();
    let plain = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !plain {
        return Err(format!("{shown} must be a path in the directory with skills"));
    }
    let missing = |_| format!("there is no file {shown}");
    let directory = directory.canonicalize().map_err(missing)?;
    let found = directory.join(path).canonicalize().map_err(missing)?;
    if found.starts_with(&directory) { Ok(found) } else { Err(format!("there is no file {shown}")) }
}

fn read(path: &Path, most: usize) -> Result<String, String> {
    let shown = path.file_name().unwrap_or(path.as_os_str()).display();
    let missing = |_| format!("there is no file {shown}");
    // A pipe must not be waited for.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)
        .map_err(missing)?;
    let metadata = file.metadata().map_err(missing)?;
    if !metadata.is_file() {
        return Err(format!("{shown} is no regular file"));
    }
    let (length, bound) = (metadata.len(), u64::try_from(most).unwrap_or(u64::MAX));
    if length > bound {
        return Err(format!("{shown} has {length} bytes; at most {most} are allowed"));
    }
    let mut text = String::new();
    let read = file.take(bound).read_to_string(&mut text);
    read.map(|_| text).map_err(|error| format!("{shown} cannot be read as text: {error}"))
}

/// The files that come with a skill, two levels deep, by path. Only a `SKILL.md` has a directory of its own.
fn files_beside(skill_file: &Path) -> Vec<String> {
    let Some(directory) = skill_file.parent().filter(|_| skill_file.ends_with(SKILL_FILE)) else {
        return Vec::new();
    };
    let entries =
        |path: PathBuf| std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<String> = entries(directory.to_owned())
        .filter(|path| path.is_dir())
        .flat_map(entries)
        .filter(|path| path.is_file())
        .filter_map(|path| path.strip_prefix(directory).ok().map(|path| path.display().to_string()))
        .filter(|path| document::refuse_bad_path(path).is_ok())
        .collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(path: &str) -> ConfiguredSkill {
        ConfiguredSkill { name: "brew".into(), source: SkillSource::File { path: path.into() } }
    }

    #[tokio::test]
    async fn files_are_read_and_paths_stay_inside() {
        let home = tempfile::tempdir().unwrap();
        let skills = home.path().join("skills");
        std::fs::create_dir_all(skills.join("brew/scripts")).unwrap();
        std::fs::write(skills.join("brew/SKILL.md"), "# Tea\nBoil.").unwrap();
        std::fs::write(skills.join("brew/scripts/boil.sh"), "boil").unwrap();
        std::fs::write(skills.join("plain.md"), "Plain.").unwrap();
        std::fs::write(home.path().join("secret.md"), "secret").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(home.path().join("secret.md"), skills.join("link.md")).unwrap();
        let pool = FilePool::default();
        let sources = Sources::new(SkillSettings::default(), Some(skills), None, pool);
        let loaded = sources.load(&skill("brew")).await.unwrap();
        assert_eq!((loaded.description.as_str(), &*loaded.content), ("Tea", "# Tea\nBoil."));
        assert_eq!(loaded.files, ["scripts/boil.sh"]);
        assert_eq!(sources.load(&skill("brew/SKILL.md")).await.unwrap(), loaded);
        assert_eq!(sources.file(&skill("brew"), "scripts/boil.sh").await.as_deref(), Ok("boil"));
        assert!(sources.file(&skill("brew"), "../plain.md").await.is_err());
        let plain = sources.load(&skill("plain.md")).await.unwrap();
        assert_eq!((plain.description.as_str(), plain.files.len()), ("Plain.", 0));
        for path in ["../secret.md", "link.md", "/etc/passwd", "brew/../../secret.md", "none.md", ""] {
            assert!(sources.load(&skill(path)).await.is_err(), "{path}");
        }
    }
}
