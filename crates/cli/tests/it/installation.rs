//! A home of its own for each test, and the binary run in it.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::talker::Talker;
use crate::terminal::Terminal;

/// Nothing that a test waits for takes this long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A home directory, and what the environment says.
pub(crate) struct Installation {
    directory: TempDir,
    variables: Vec<(&'static str, String)>,
}

impl Installation {
    pub(crate) fn new() -> Self {
        Installation { directory: tempfile::tempdir().unwrap(), variables: Vec::new() }
    }

    /// Sets a variable for everything that is run from here on.
    pub(crate) fn with_env(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// The home, which is not there before the first command.
    pub(crate) fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.home().join(name)
    }

    /// Writes a file into the home.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        std::fs::create_dir_all(self.file(name).parent().unwrap()).unwrap();
        std::fs::write(self.file(name), text).unwrap();
        self.file(name)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.program(env!("CARGO_BIN_EXE_petasos"), arguments)
    }

    #[allow(clippy::disallowed_methods, reason = "these tests drive the binary from outside")]
    fn program(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("PETASOS_HOME", self.home()).args(arguments).stdin(Stdio::null());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Finished {
        Finished::from(self.command(arguments).output().unwrap())
    }

    /// Runs a command that must succeed and prints JSON.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let finished = self.run(&[arguments, &["--json"]].concat());
        assert!(finished.success, "{arguments:?}: {}", finished.stderr);
        serde_json::from_str(&finished.stdout).unwrap()
    }

    /// Runs a command that reads this from standard input.
    pub(crate) fn run_with_input(&self, arguments: &[&str], input: &str) -> Finished {
        let mut talker = self.talk(arguments);
        talker.say_all(input);
        talker.finish()
    }

    /// Starts a command that is talked to.
    pub(crate) fn talk(&self, arguments: &[&str]) -> Talker {
        Talker::start(self.command(arguments))
    }

    /// Starts a command at a terminal.
    pub(crate) fn at_terminal(&self, arguments: &[&str]) -> Terminal {
        Terminal::start(self.command(arguments), None)
    }

    /// The same, but what it says beside its result goes into a file.
    pub(crate) fn at_terminal_without_stderr(&self, arguments: &[&str], stderr: File) -> Terminal {
        Terminal::start(self.command(arguments), Some(stderr))
    }

    /// Starts another program at a terminal.
    pub(crate) fn program_at_terminal(&self, program: &str, arguments: &[&str]) -> Terminal {
        Terminal::start(self.program(program, arguments), None)
    }

    /// Starts a server on a free port and waits until it is ready.
    pub(crate) fn serve(&self) -> Server {
        self.serve_with(&["--listen", "127.0.0.1:0"])
    }

    pub(crate) fn serve_with(&self, arguments: &[&str]) -> Server {
        Server::start(self.command(&[&["serve"], arguments].concat()))
    }
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) success: bool,
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Finished {
    fn from(output: Output) -> Self {
        Finished {
            success: output.status.success(),
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Finished {
    /// Checks that the command was refused in plain words.
    #[track_caller]
    pub(crate) fn assert_refused(&self, words: &[&str]) {
        assert_eq!(self.code, Some(1), "{self:?}");
        assert!(self.stderr.starts_with("error: "), "{self:?}");
        for word in words {
            assert!(self.stderr.contains(word), "{word:?} is missing in {}", self.stderr);
        }
        for noise in ["panicked", "backtrace", "RUST_BACKTRACE"] {
            assert!(!self.stderr.contains(noise), "{}", self.stderr);
        }
    }
}

/// A server that is ready.
pub(crate) struct Server {
    child: Child,
    /// What it printed until it was ready.
    pub(crate) banner: String,
    pub(crate) url: String,
    stderr: Receiver<String>,
}

impl Server {
    fn start(mut command: Command) -> Server {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = lines(child.stdout.take().unwrap());
        let stderr = lines(child.stderr.take().unwrap());
        let mut banner = String::new();
        // The banner ends with the line that sends a message.
        while !banner.contains("user.message") {
            match stdout.recv_timeout(PATIENCE) {
                Ok(line) => banner.push_str(&format!("{line}\n")),
                Err(_) => {
                    let _ = child.kill();
                    panic!("no banner: {banner}{}", stderr.iter().collect::<Vec<_>>().join("\n"));
                }
            }
        }
        let first = banner.lines().next().unwrap();
        let url = first.split_once(" is ready at ").expect(first).1.to_owned();
        Server { child, banner, url, stderr }
    }

    /// The key that the banner shows, if it shows one.
    pub(crate) fn shown_key(&self) -> Option<&str> {
        self.banner.split_whitespace().find(|word| word.starts_with("pk_"))
    }

    /// Waits for a line of the log.
    pub(crate) fn wait_for_log(&self, words: &str) {
        while !self.stderr.recv_timeout(PATIENCE).expect(words).contains(words) {}
    }

    /// Sends a signal, such as `TERM`.
    pub(crate) fn signal(&self, name: &str) {
        signal(&self.child, name);
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// Ends the server as the system would at shutdown, and returns what it logged since it was last looked at.
    pub(crate) fn stop(mut self) -> String {
        self.signal("TERM");
        assert_eq!(self.wait().code(), Some(0));
        self.stderr.iter().collect::<Vec<_>>().join("\n")
    }

    /// Sends a request over a connection of its own and returns that, before anything was read.
    #[allow(clippy::disallowed_methods, reason = "these tests drive the binary from outside")]
    pub(crate) fn open(&self, method: &str, path: &str, key: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.url.strip_prefix("http://").unwrap()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: petasos\r\nconnection: close\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        stream
    }

    /// Sends a request and returns the status and the body of the answer.
    pub(crate) fn request(&self, method: &str, path: &str, key: &str, body: &str) -> (u16, Value) {
        let mut answer = String::new();
        self.open(method, path, key, body).read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or(Value::Null))
    }

    /// Creates an agent and a session, and returns the session's id.
    pub(crate) fn create_session(&self, key: &str, model: &str) -> String {
        let definition = format!(r#"{{"name":"Test","model":"{model}"}}"#);
        let (status, agent) = self.request("POST", "/v1/agents", key, &definition);
        assert_eq!(status, 201, "{agent}");
        let path = format!("/v1/agents/{}/sessions", agent["id"].as_str().unwrap());
        let (status, session) = self.request("POST", &path, key, r#"{"userId":"ada"}"#);
        assert_eq!(status, 201, "{session}");
        session["id"].as_str().unwrap().to_owned()
    }

    /// Sends a message to a session.
    pub(crate) fn say(&self, key: &str, session: &str, text: &str) {
        let path = format!("/v1/sessions/{session}/events");
        let body = format!(r#"{{"type":"user.message","content":[{{"type":"text","text":"{text}"}}]}}"#);
        let (status, answer) = self.request("POST", &path, key, &body);
        assert_eq!(status, 200, "{answer}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal to a process.
#[allow(clippy::disallowed_methods, reason = "these tests drive the binary from outside")]
pub(crate) fn signal(child: &Child, name: &str) {
    let kill = format!("kill -{name} {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
}

/// Reads lines as they come, so that the other side never waits for us.
fn lines(source: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(source).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// The permission bits of a file.
pub(crate) fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}
