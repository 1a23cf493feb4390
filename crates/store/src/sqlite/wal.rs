//! Reads which pages a write-ahead log holds, without SQLite and without changing anything.
//!
//! A crash in the middle of a checkpoint leaves a database file that is shorter than its header says, with the
//! missing pages still in the log. That is no damage, and only the log can tell it from a file that was cut.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;

/// What the transactions of a log amount to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Wal {
    /// The pages that the database has after the last transaction; none if the log holds no transaction.
    pub(super) page_count: Option<u64>,
    /// The pages that the log holds a copy of.
    pub(super) pages: BTreeSet<u64>,
}

/// The log that belongs to a database.
pub(super) fn path_of(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-wal");
    PathBuf::from(name)
}

/// Reads the log of a database. One that is missing or empty holds nothing.
pub(super) fn read(database: &Path) -> io::Result<Wal> {
    let mut file = match File::open(path_of(database)) {
        Ok(file) => io::BufReader::new(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Wal::default()),
        Err(error) => return Err(error),
    };
    let mut header = [0; HEADER];
    if !read_whole(&mut file, &mut header)? {
        return Ok(Wal::default());
    }
    let page_size = i64::from(number(&header, 8));
    let salts = &header[16..24];
    let mut wal = Wal::default();
    let mut uncommitted = Vec::new();
    let mut frame = [0; FRAME_HEADER];
    // Frames with other salts are left over from before the log was last started anew.
    while read_whole(&mut file, &mut frame)? && frame[8..16] == *salts {
        uncommitted.push(u64::from(number(&frame, 0)));
        let committed_pages = number(&frame, 4);
        if committed_pages > 0 {
            wal.page_count = Some(u64::from(committed_pages));
            wal.pages.extend(uncommitted.drain(..));
        }
        file.seek_relative(page_size)?;
    }
    Ok(wal)
}

/// Fills the buffer, or says that the file ends before.
fn read_whole(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn number(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |chunk| u32::from_be_bytes(*chunk))
}
