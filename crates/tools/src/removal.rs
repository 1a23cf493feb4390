//! Removes the workspaces of sessions that are deleted.
//!
//! A session and its files cannot go in one step. So what is to be removed is noted before the session goes, and the
//! note is taken away after the files: a server that died in between finds it at its next start.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use petasos_core::ids::{AgentId, SessionId, TenantId};

use crate::beneath::open_regular_file;
use crate::remove_tree::{RemovalProgress, remove_tree};
use crate::workspace::Workspaces;

/// Where the notes are, beside the workspaces of tenants. No tenant has a name with a dot.
const NOTES: &str = ".removals";
/// More than three ids have.
const MAX_NOTE_BYTES: u64 = 4096;

/// The workspace of one session alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionWorkspace {
    /// Whose session it is.
    pub tenant: TenantId,
    /// Its agent.
    pub agent_id: AgentId,
    /// The session.
    pub session_id: SessionId,
}

impl Workspaces {
    /// Where the workspace of a session is, or would be.
    pub fn path_of(&self, own: &SessionWorkspace) -> PathBuf {
        self.path(&own.tenant, &own.agent_id, None, &own.session_id)
    }

    /// Notes that a workspace is to be removed, if it is there. This blocks.
    pub fn note_removal(&self, own: &SessionWorkspace) -> io::Result<()> {
        if !self.path_of(own).exists() {
            return Ok(());
        }
        let notes = self.root().join(NOTES);
        fs::create_dir_all(&notes)?;
        let mut note = File::create(self.note(own))?;
        write!(note, "{}\n{}\n{}\n", own.tenant, own.agent_id, own.session_id)?;
        // The session goes for good once this is done, so the note must outlast a power cut, and its name too.
        note.sync_all()?;
        File::open(&notes)?.sync_all()?;
        File::open(self.root())?.sync_all()
    }

    /// What was noted and not done. This blocks.
    pub fn noted_removals(&self) -> Vec<SessionWorkspace> {
        let notes = fs::read_dir(self.root().join(NOTES)).into_iter().flatten().flatten();
        notes.filter_map(|note| noted(&note.path())).collect()
    }

    /// Takes the note away: the session lives on. This blocks.
    pub fn forget_removal(&self, own: &SessionWorkspace) -> io::Result<()> {
        if_there(fs::remove_file(self.note(own)))
    }

    /// Removes a workspace with everything in it, then the note. This blocks.
    pub fn remove(&self, own: &SessionWorkspace) -> io::Result<()> {
        remove_tree(&self.path_of(own), None)?;
        self.forget_removal(own)
    }

    /// Removes a workspace as far as that is done by `deadline`, then the note. This blocks.
    pub fn remove_until(&self, own: &SessionWorkspace, deadline: Instant) -> io::Result<RemovalProgress> {
        let progress = remove_tree(&self.path_of(own), Some(deadline))?;
        if progress == RemovalProgress::Removed {
            self.forget_removal(own)?;
        }
        Ok(progress)
    }

    fn note(&self, own: &SessionWorkspace) -> PathBuf {
        let path = self.path_of(own);
        self.root().join(NOTES).join(path.file_name().unwrap_or_default())
    }
}

/// What a note says. One that is not whole was never finished, so its session lives on: it is taken away.
fn noted(path: &Path) -> Option<SessionWorkspace> {
    let noted = parse(&read_note(path).ok()?);
    if noted.is_none()
        && let Err(error) = fs::remove_file(path)
    {
        tracing::warn!(path = %path.display(), %error, "a note that was never finished cannot be removed");
    }
    noted
}

/// A note is a small plain file. Anything else is none of ours.
fn read_note(path: &Path) -> io::Result<String> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(ErrorKind::InvalidInput.into());
    };
    let file = open_regular_file(File::open(directory)?, Path::new(name))?;
    let mut text = String::new();
    file.take(MAX_NOTE_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

fn parse(note: &str) -> Option<SessionWorkspace> {
    let mut lines = note.lines();
    Some(SessionWorkspace {
        tenant: lines.next()?.parse().ok()?,
        agent_id: lines.next()?.parse().ok()?,
        session_id: lines.next()?.parse().ok()?,
    })
}

fn if_there(removed: io::Result<()>) -> io::Result<()> {
    removed.or_else(|error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_was_noted_is_found_again_until_it_is_done() {
        let directory = tempfile::tempdir().unwrap();
        let workspaces = Workspaces::new(directory.path().join("workspaces"));
        let own = |session: &str| SessionWorkspace {
            tenant: TenantId::default_tenant(),
            agent_id: "agent_1".parse().unwrap(),
            session_id: session.parse().unwrap(),
        };
        let (one, two) = (own("session_1"), own("session_2"));
        workspaces.note_removal(&one).unwrap();
        assert_eq!(workspaces.noted_removals(), [], "there is nothing to remove");
        for own in [&one, &two] {
            let below = workspaces.path_of(own).join("locked/below");
            fs::create_dir_all(&below).unwrap();
            fs::write(below.join("file"), "x").unwrap();
            fs::set_permissions(below, fs::Permissions::from_mode(0o500)).unwrap();
            workspaces.note_removal(own).unwrap();
        }
        // A server died while it wrote this one, or before that was on the disk.
        let unfinished = workspaces.root().join(NOTES).join("session-unfinished");
        fs::write(&unfinished, "default\n").unwrap();
        assert_eq!(workspaces.noted_removals().len(), 2);
        assert!(!unfinished.exists());
        workspaces.forget_removal(&two).unwrap();
        assert_eq!(workspaces.noted_removals(), std::slice::from_ref(&one));
        workspaces.remove(&one).unwrap();
        assert_eq!(workspaces.noted_removals(), []);
        assert!(!workspaces.path_of(&one).exists() && workspaces.path_of(&two).exists());
        workspaces.remove(&one).unwrap();
    }
}
