//! `petasos sessions export` and `petasos sessions import`.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use petasos_net::Response;
use serde_json::{Value, json};

use super::Format;
use crate::api::{Api, Refusal};
use crate::table::{field, plain};
use crate::{output, private_file};

/// The id that an imported session gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ImportAs {
    /// Its own.
    Itself,
    /// A new one.
    Another,
}

/// Writes a session to a file, or to standard output.
pub(super) async fn export(api: &Api, id: &str, file: Option<&Path>, format: Format) -> Result<()> {
    let Some(file) = file else {
        return write_all(api.export(id).await?, &mut std::io::stdout().lock()).await;
    };
    if file.exists() {
        bail!("{} exists already; name a file that is not there yet", file.display());
    }
    let response = api.export(id).await?;
    let new = private_file::beside(file);
    let written = write_file(response, &new, file).await;
    if written.is_err() {
        // What matters is why it failed.
        let _ = private_file::remove(&new);
    }
    written.with_context(|| format!("cannot write {}", file.display()))?;
    let shown = json!({ "id": id, "path": file.display().to_string() });
    format.show(&shown, |shown| format!("Exported {} to {}", plain(id), plain(&field(shown, "path"))))
}

/// Writes under another name, so that a file that is there is whole.
async fn write_file(response: Response, new: &Path, file: &Path) -> Result<()> {
    private_file::remove(new)?;
    let mut target = private_file::create_new(new)?;
    write_all(response, &mut target).await?;
    target.sync_all()?;
    fs::rename(new, file)?;
    Ok(private_file::sync_parent(file)?)
}

async fn write_all(mut response: Response, target: &mut impl Write) -> Result<()> {
    while let Some(chunk) = response.chunk().await? {
        target.write_all(&chunk)?;
    }
    Ok(target.flush()?)
}

/// Sends a file to the server, which takes in all of it or nothing.
pub(super) async fn import(api: &Api, file: &Path, import_as: ImportAs, format: Format) -> Result<()> {
    let mut lines = String::new();
    let (name, read) = if file == Path::new("-") {
        ("standard input".to_owned(), std::io::stdin().read_to_string(&mut lines))
    } else {
        let read = File::open(file).and_then(|mut file| file.read_to_string(&mut lines));
        (file.display().to_string(), read)
    };
    read.with_context(|| format!("cannot read {name}"))?;
    let query: &[(&str, &str)] = if import_as == ImportAs::Another { &[("newId", "true")] } else { &[] };
    let imported = api.import(lines, query).await.with_context(|| format!("{name} was not imported"));
    let imported = imported.map_err(|error| match error.downcast_ref::<Refusal>() {
        Some(refusal) if refusal.code == "already_exists" => {
            error.context("the session is there already; --new-id imports it as another one")
        }
        _ => error,
    })?;
    if imported["interrupted"] == Value::Bool(true) && format == Format::Text {
        output::note("A turn was running when the session was exported; it is interrupted.");
    }
    format.show(&imported, |imported| {
        format!("Imported {} with {} events", field(imported, "id"), field(imported, "lastSequence"))
    })
}
