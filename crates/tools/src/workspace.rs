//! Workspaces: the directories that tools work in, and the only way in which tools touch files there.
//!
//! A workspace belongs to a tenant, an agent and a user, or to a session without a user. Files are reached through a
//! handle of the directory: the kernel resolves each path beneath it, so that neither `..` nor a link leads out. That
//! can block for as long as the disk likes, so it happens on the threads of a [`FilePool`].

use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, OpenOptions, OpenOptionsExt};
use petasos_core::ids::{AgentId, SessionId, TenantId};
use petasos_sandbox::FileWrites;
use rustix::fs::OFlags;
use sha2::{Digest, Sha256};

use crate::file_pool::{FileOwner, FilePool, FilePoolError, FilePoolLimits};
use crate::quota::{Quota, QuotaWatch, WorkspaceLimits};
use crate::tool::{Invocation, ToolOutput};

/// Where we keep our own files in a workspace.
pub(crate) const OURS: &str = ".petasos";
/// Where commands keep what they need for a moment.
const TEMPORARY: &str = ".petasos/tmp";

/// All workspaces of a server.
#[derive(Debug, Clone)]
pub struct Workspaces {
    root: PathBuf,
    pool: FilePool,
    quota: Quota,
}

impl Workspaces {
    /// Workspaces below `root`, which is made when the first of them is.
    pub fn new(root: PathBuf) -> Self {
        let quota = Quota::new(&root, WorkspaceLimits::default());
        Workspaces { root, pool: FilePool::default(), quota }
    }

    /// The same with other limits of how much they take on the disk.
    #[must_use]
    pub fn with_limits(mut self, limits: WorkspaceLimits) -> Self {
        self.quota = Quota::new(&self.root, limits);
        self
    }

    /// The same with other limits for work on files.
    #[must_use]
    pub fn with_file_limits(mut self, limits: FilePoolLimits) -> Self {
        self.pool = FilePool::new(limits);
        self
    }

    /// The threads that file work runs on.
    pub fn pool(&self) -> &FilePool {
        &self.pool
    }

    /// The directory that they are all in.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The workspace of a call. The first use makes it. This blocks.
    pub fn open(&self, invocation: &Invocation) -> Result<Workspace, String> {
        let path = self.path_for(invocation);
        Workspace::make(&path, self, self.owner(invocation))
            .map_err(|error| format!("The workspace {} cannot be used: {error}.", path.display()))
    }

    /// [`Workspaces::open`] on the threads for files.
    pub(crate) async fn opened(&self, invocation: &Invocation) -> Result<Workspace, String> {
        let (workspaces, invocation) = (self.clone(), invocation.clone());
        let opened = self.pool.run(&self.owner(&invocation), move || workspaces.open(&invocation)).await;
        opened.unwrap_or_else(|error| Err(error.to_string()))
    }

    /// Carries out a call that only works on files, on the threads for that.
    pub(crate) async fn run_tool(
        &self,
        invocation: Invocation,
        work: fn(&Workspace, &Invocation) -> Result<ToolOutput, String>,
    ) -> ToolOutput {
        let (workspaces, owner) = (self.clone(), self.owner(&invocation));
        let run = move || work(&workspaces.open(&invocation)?, &invocation);
        let ran = self.pool.run(&owner, run).await;
        ran.unwrap_or_else(|error| Err(error.to_string())).unwrap_or_else(ToolOutput::error)
    }

    fn path_for(&self, invocation: &Invocation) -> PathBuf {
        let Invocation { tenant, agent_id, user_id, session_id, .. } = invocation;
        self.path(tenant, agent_id, user_id.as_deref(), session_id)
    }

    /// On whose account a call's file work goes.
    fn owner(&self, invocation: &Invocation) -> FileOwner {
        let path = self.path_for(invocation);
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        FileOwner { tenant: invocation.tenant.to_string(), workspace: name }
    }

    /// Where the workspace of a session is, or will be. Readable as far as the ids are; the last part tells apart what
    /// differs in anything.
    pub fn path(
        &self,
        tenant: &TenantId,
        agent_id: &AgentId,
        user_id: Option<&str>,
        session_id: &SessionId,
    ) -> PathBuf {
        let (tenant, agent) = (tenant.as_str(), agent_id.as_str());
        let (kind, whose) = match user_id {
            Some(user_id) => ("user", user_id),
            None => ("session", session_id.as_str()),
        };
        let mut hash = Sha256::new();
        for part in [tenant, agent, kind, whose] {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        let hash: String = hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        self.root.join(tenant).join(agent).join(format!("{kind}-{hash}"))
    }
}

/// One workspace. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Workspace {
    path: Arc<Path>,
    directory: Arc<Dir>,
    pool: FilePool,
    owner: FileOwner,
    quota: Quota,
}

impl Workspace {
    fn make(path: &Path, all: &Workspaces, owner: FileOwner) -> io::Result<Self> {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(path)?;
        let path = path.canonicalize()?;
        let directory = Dir::open_ambient_dir(&path, ambient_authority())?;
        if !directory.is_dir(TEMPORARY) {
            directory.create_dir_all(TEMPORARY)?;
        }
        let (pool, quota) = (all.pool.clone(), all.quota.clone());
        Ok(Workspace { path: path.into(), directory: Arc::new(directory), pool, owner, quota })
    }

    /// Runs work on files where it may block.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Workspace) -> T + Send + 'static,
    ) -> Result<T, FilePoolError> {
        let workspace = self.clone();
        self.pool.run(&self.owner, move || work(&workspace)).await
    }

    /// Refuses to write so many bytes more where there is no room for them. This blocks.
    pub(crate) fn make_sure_of_room(&self, bytes: u64) -> Result<(), String> {
        self.quota.make_sure_of_room(&self.path, bytes)
    }

    /// Watches how much the workspace takes during a command that begins now.
    ///
    /// # Errors
    /// If no command may run there, because it is too large.
    pub(crate) async fn watch(&self) -> Result<WorkspaceWatch, String> {
        let watch = self.run(|workspace| workspace.quota.watch(&workspace.path)).await;
        let watch = watch.map_err(|error| error.to_string())??;
        Ok(WorkspaceWatch { watch, pool: self.pool.clone(), owner: self.owner.clone() })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where commands keep what they need for a moment.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.path.join(TEMPORARY)
    }

    /// The handle through which everything below is reached.
    pub(crate) fn directory(&self) -> &Dir {
        &self.directory
    }

    /// A path as a model writes it, as one below the workspace. What is outside is refused here or when it is used.
    pub(crate) fn relative(&self, path: &str) -> Result<PathBuf, String> {
        let path = path.strip_prefix("~/").unwrap_or(path);
        let path = Path::new(path);
        let below = match path.strip_prefix(&*self.path) {
            Ok(below) => below,
            Err(_) if path.is_absolute() => return Err(self.outside(path)),
            Err(_) => path,
        };
        let below: PathBuf = below.components().filter(|part| *part != Component::CurDir).collect();
        Ok(if below.as_os_str().is_empty() { PathBuf::from(".") } else { below })
    }

    /// Opens a regular file to read it.
    pub(crate) fn open_file(&self, path: &Path) -> Result<File, String> {
        let mut options = OpenOptions::new();
        // A pipe must not hold us up until somebody writes to it.
        options.read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
        let file = self.directory.open_with(path, &options).map_err(|error| self.explain(path, &error))?;
        match file.metadata() {
            Ok(metadata) if metadata.is_file() => Ok(file),
            Ok(metadata) if metadata.is_dir() => Err(format!("{} is a directory.", path.display())),
            Ok(_) => Err(format!("{} is no regular file.", path.display())),
            Err(error) => Err(self.explain(path, &error)),
        }
    }

    /// Puts a file in place, whole or not at all, with the directories above it.
    pub(crate) fn write_file(&self, path: &Path, content: &[u8]) -> Result<(), String> {
        let explain = |error: io::Error| self.explain(path, &error);
        let is_link = self.directory.symlink_metadata(path).is_ok_and(|found| found.is_symlink());
        // What a link leads to is written, if that is in the workspace.
        let real =
            if is_link { self.directory.canonicalize(path).map_err(explain)? } else { path.to_owned() };
        let path = real.as_path();
        let Some(name) = path.file_name() else { return Err(format!("{} is no file.", path.display())) };
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = match parent {
            Some(parent) => {
                self.directory.create_dir_all(parent).map_err(explain)?;
                self.directory.open_dir(parent).map_err(explain)?
            }
            None => self.directory.try_clone().map_err(explain)?,
        };
        let old = parent.metadata(name).ok();
        if old.as_ref().is_some_and(|old| !old.is_file()) {
            return Err(format!("{} is there and is no regular file.", path.display()));
        }
        let bytes = u64::try_from(content.len()).unwrap_or(u64::MAX);
        self.make_sure_of_room(bytes.saturating_sub(old.as_ref().map_or(0, |old| old.len())))?;
        // Not made of the name, which may be as long as names can be.
        let draft = format!(".petasos-{}", uuid::Uuid::now_v7().simple());
        let written = (|| {
            let mut options = OpenOptions::new();
            parent.open_with(&draft, options.write(true).create_new(true))?.write_all(content)?;
            if let Some(old) = old {
                parent.set_permissions(&draft, old.permissions())?;
            }
            parent.rename(&draft, &parent, name)
        })();
        if written.is_err() {
            // It may never have been made.
            let _ = parent.remove_file(&draft);
        }
        written.map_err(explain)
    }

    /// What the model is told about a file that cannot be used.
    pub(crate) fn explain(&self, path: &Path, error: &io::Error) -> String {
        let shown = path.display();
        match error.kind() {
            io::ErrorKind::NotFound => format!("{shown} is not there."),
            _ if error.raw_os_error() == Some(rustix::io::Errno::XDEV.raw_os_error()) => self.outside(path),
            // This is how a path that leads out is reported.
            io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => self.outside(path),
            _ => format!("{shown}: {error}."),
        }
    }

    fn outside(&self, path: &Path) -> String {
        let (path, workspace) = (path.display(), self.path.display());
        format!("{path} is outside of the workspace. Paths are relative to it, or start with {workspace}.")
    }
}

/// Watches how much a workspace takes while a command runs.
#[derive(Clone)]
pub(crate) struct WorkspaceWatch {
    watch: QuotaWatch,
    pool: FilePool,
    owner: FileOwner,
}

impl WorkspaceWatch {
    /// Whether the command may write to files.
    pub(crate) fn files(&self) -> FileWrites {
        self.watch.files()
    }

    /// Why a command failed that could write to no file.
    pub(crate) fn reason(&self) -> Option<String> {
        self.watch.reason()
    }

    /// Waits until there is more than there may be, and says so. Dropping the future ends the watch.
    pub(crate) async fn exceeded(&self) -> String {
        self.watch.exceeded(&self.pool, &self.owner).await
    }

    /// Whether there is more than there may be after the command.
    pub(crate) async fn look(&self) -> Option<String> {
        self.watch.look(&self.pool, &self.owner).await
    }
}
