//! A library that is loaded into the server before libc: calls of the system fail, wait or kill the process, and the
//! clock jumps, as rules say that are changed while the server runs.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;
use tokio::process::Command;

const SOURCE: &str = include_str!("shim.c");

/// Numbers of errors, as Linux has them everywhere.
pub(crate) const EIO: i32 = 5;
pub(crate) const ENOSPC: i32 = 28;

/// The library, with rules for one server.
pub(crate) struct Shim {
    directory: TempDir,
}

/// A call that a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Read,
    Write,
    Sync,
    Unlink,
}

impl Call {
    fn name(self) -> &'static str {
        match self {
            Call::Read => "read",
            Call::Write => "write",
            Call::Sync => "sync",
            Call::Unlink => "unlink",
        }
    }
}

/// What happens to calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule(String);

impl Rule {
    /// The process dies in this call on a file whose path matches, if the bytes in question hold `content`.
    pub(crate) fn kill(call: Call, pattern: &str, content: &str) -> Self {
        Rule(format!("kill\t{}\t{pattern}\t{content}", call.name()))
    }

    /// The call fails with an error.
    pub(crate) fn fail(error: i32, call: Call, pattern: &str) -> Self {
        Rule(format!("{error}\t{}\t{pattern}", call.name()))
    }

    /// What is written to files since their last sync is remembered, for [`Rule::lose`].
    pub(crate) fn track(pattern: &str) -> Self {
        Rule(format!("track\t{}\t{pattern}", Call::Write.name()))
    }

    /// A sync fails, and what was written since the last one is gone, as after a kernel that could not write pages.
    pub(crate) fn lose(error: i32, pattern: &str) -> Self {
        Rule(format!("lose:{error}\t{}\t{pattern}", Call::Sync.name()))
    }

    /// The call takes longer.
    pub(crate) fn delay(milliseconds: u32, call: Call, pattern: &str) -> Self {
        Rule(format!("delay:{milliseconds}\t{}\t{pattern}", call.name()))
    }

    /// The time of day is later by this much.
    pub(crate) fn clock(seconds: i64) -> Self {
        Rule(format!("clock\t{seconds}"))
    }
}

impl Shim {
    /// Compiles the library. There are no rules yet.
    pub(crate) async fn build() -> Result<Shim> {
        let shim = Shim { directory: tempfile::tempdir()? };
        let source = shim.directory.path().join("shim.c");
        std::fs::write(&source, SOURCE)?;
        #[expect(clippy::disallowed_methods, reason = "the suite changes what the server stands on")]
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O2", "-o"]).arg(shim.library()).arg(&source);
        let output = compiler.output().await.context("cc is needed to compile crash/src/shim/shim.c")?;
        if !output.status.success() {
            bail!("the shim cannot be compiled: {}", String::from_utf8_lossy(&output.stderr));
        }
        shim.set(&[])?;
        Ok(shim)
    }

    /// Puts these rules in place of all others. They hold for every call that begins afterwards.
    pub(crate) fn set(&self, rules: &[Rule]) -> Result<()> {
        let text: String = rules.iter().map(|Rule(line)| format!("{line}\n")).collect();
        let new = self.directory.path().join("new");
        std::fs::write(&new, text)?;
        std::fs::rename(new, self.rules()).context("cannot change the rules")
    }

    /// What a server has to have in its environment.
    pub(crate) fn environment(&self) -> [(&'static str, PathBuf); 2] {
        [("LD_PRELOAD", self.library()), ("PETASOS_SHIM_RULES", self.rules())]
    }

    fn library(&self) -> PathBuf {
        self.directory.path().join("shim.so")
    }

    fn rules(&self) -> PathBuf {
        self.directory.path().join("rules")
    }
}
