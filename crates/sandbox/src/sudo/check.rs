//! Finds out whether a password is the right one, before anything is started with it.

use std::path::Path;
use std::time::Duration;

use tokio::io::AsyncReadExt;

use super::Password;
use crate::error::{Error, Result};
use crate::job::{Ended, Job};
use crate::process::{self, Belongings};
use crate::sandbox::Supervisor;
use crate::streams::Streams;

/// How long `sudo` may take. A wrong password takes some seconds on most systems.
const PATIENCE: Duration = Duration::from_secs(60);
/// The most that is shown of what `sudo` said.
const MAX_SAID: u64 = 2000;

/// Fails unless `sudo` asks for a password here and takes this one.
pub(crate) async fn check(
    program: &Path,
    supervisor: &Supervisor,
    job: &Job,
    password: &Password,
) -> Result<()> {
    let call = |options: &[&str], password: Option<&Password>| {
        let words = options.iter().map(|&word| word.to_owned());
        let arguments = std::iter::once(program.to_string_lossy().into_owned()).chain(words).collect();
        let job = Job { arguments, sudo_password: password.cloned(), ..job.clone() };
        run(supervisor.clone(), job)
    };
    // With an account that sudo trusts without a password every password would be as good as any other.
    let (ended, _) = call(&["-k", "-n", "-v"], None).await?;
    if let Some(problem) = ended.problem {
        return Err(Error::Sudo(problem));
    }
    if ended.code == Some(0) {
        return Err(Error::Sudo(
            "sudo asks the server's account for no password (the server runs as root, or a rule says NOPASSWD), so none \
             can be checked"
                .to_owned(),
        ));
    }
    let (ended, said) = call(&["-k", "-A", "-p", "", "-v"], Some(password)).await?;
    match ended.code {
        Some(0) => Ok(()),
        _ => Err(Error::Sudo(format!("sudo does not take the password: {}", said.trim()))),
    }
}

async fn run(supervisor: Supervisor, job: Job) -> Result<(Ended, String)> {
    let mut process = process::start(&supervisor, &job, Streams::Merged, Belongings::default())?;
    process.stdin = None;
    let mut said = Vec::new();
    let reading = async {
        (&mut process.stdout).take(MAX_SAID).read_to_end(&mut said).await?;
        std::io::Result::Ok(process.wait().await)
    };
    let ended = tokio::time::timeout(PATIENCE, reading).await;
    let ended = ended.map_err(|_| Error::Sudo("sudo did not answer".to_owned()))??;
    Ok((ended, String::from_utf8_lossy(&said).into_owned()))
}
