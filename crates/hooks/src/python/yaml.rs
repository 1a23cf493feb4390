//! Reads the manifests of plugins and gateway hooks, and lists the directories that they are in.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

/// The most bytes of a manifest.
const MAX_BYTES: u64 = 256 * 1024;

/// The object that a file holds, or what is wrong with it.
pub(super) fn object(path: &Path) -> Result<Map<String, Value>, String> {
    let size = path.metadata().map_err(|error| error.to_string())?.len();
    if size > MAX_BYTES {
        return Err(format!("it has {size} bytes; at most {MAX_BYTES} are read"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    match serde_saphyr::from_str(&text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err("it is not a mapping".to_owned()),
        Err(error) => Err(error.without_snippet().to_string()),
    }
}

/// The directories in a directory, by name.
pub(super) fn directories(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut paths: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    paths.sort();
    paths
}

/// The last part of a path.
pub(super) fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
