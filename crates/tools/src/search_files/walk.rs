//! The files of a workspace that a search looks at.

use std::path::{Path, PathBuf};
use std::time::Instant;

use globset::{GlobBuilder, GlobMatcher};
use ignore::{Walk, WalkBuilder};

use crate::workspace::{OURS, Workspace};

/// Files below a directory, by their paths in the workspace, without those that ignore files name.
pub(super) struct Files {
    walk: Walk,
    root: PathBuf,
    only: Option<GlobMatcher>,
    deadline: Instant,
}

impl Files {
    pub(super) fn below(
        workspace: &Workspace,
        path: Option<&str>,
        only: Option<&str>,
        deadline: Instant,
    ) -> Result<Files, String> {
        let relative = workspace.relative(path.unwrap_or("."))?;
        // Resolved beneath the workspace, so that no link leads the walk out of it.
        let start = workspace.directory().canonicalize(&relative);
        let start = start.map_err(|error| workspace.explain(&relative, &error))?;
        let start = workspace.path().join(start);
        let mut builder = WalkBuilder::new(start);
        builder.hidden(false).parents(false).git_global(false).require_git(false).follow_links(false);
        builder.sort_by_file_path(Path::cmp);
        builder.filter_entry(|entry| !matches!(entry.file_name().to_str(), Some(".git" | OURS)));
        let only = only.map(glob).transpose()?;
        Ok(Files { walk: builder.build(), root: workspace.path().to_owned(), only, deadline })
    }
}

impl Iterator for Files {
    type Item = PathBuf;

    fn next(&mut self) -> Option<PathBuf> {
        loop {
            if Instant::now() >= self.deadline {
                return None;
            }
            let Ok(entry) = self.walk.next()? else { continue };
            if !entry.file_type().is_some_and(|kind| kind.is_file()) {
                continue;
            }
            let Ok(path) = entry.path().strip_prefix(&self.root) else { continue };
            if self.only.as_ref().is_none_or(|only| matches(only, path)) {
                return Some(path.to_owned());
            }
        }
    }
}

pub(super) fn glob(pattern: &str) -> Result<GlobMatcher, String> {
    let glob = GlobBuilder::new(pattern).literal_separator(pattern.contains('/')).build();
    glob.map(|glob| glob.compile_matcher()).map_err(|error| format!("The glob is wrong: {error}."))
}

/// Whether a glob fits a path, or the name at its end if the glob has no slash.
pub(super) fn matches(glob: &GlobMatcher, path: &Path) -> bool {
    let name = path.file_name().map(Path::new);
    match name {
        Some(name) if !glob.glob().glob().contains('/') => glob.is_match(name),
        _ => glob.is_match(path),
    }
}
