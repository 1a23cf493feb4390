//! A home of its own for each test, and the binary run in it.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
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
    /// Who runs it, if not who runs the tests.
    user: Option<(u32, u32)>,
}

impl Installation {
    pub(crate) fn new() -> Self {
        Installation { directory: tempfile::tempdir().unwrap(), variables: Vec::new(), user: None }
    }

    /// A home of somebody else, as whom everything is run. The tests must be root's.
    pub(crate) fn of_user(uid: u32, gid: u32) -> Self {
        let installation = Installation { user: Some((uid, gid)), ..Installation::new() };
        // The user may not be able to reach the directory that the tests are built in.
        std::fs::copy(env!("CARGO_BIN_EXE_petasos"), installation.own_binary()).unwrap();
        std::os::unix::fs::chown(installation.directory.path(), Some(uid), Some(gid)).unwrap();
        installation
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
        if let Some((uid, gid)) = self.user {
            std::os::unix::fs::chown(self.home(), Some(uid), Some(gid)).unwrap();
        }
        self.file(name)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        match self.user {
            Some(_) => self.program(&self.own_binary().display().to_string(), arguments),
            None => self.program(env!("CARGO_BIN_EXE_petasos"), arguments),
        }
    }

    /// The copy of the binary that another user runs.
    fn own_binary(&self) -> PathBuf {
        self.directory.path().join("petasos")
    }

    #[allow(clippy::disallowed_methods, reason = "these tests drive the binary from outside")]
    fn program(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("PETASOS_HOME", self.home()).args(arguments).stdin(Stdio::null());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        if let Some((uid, gid)) = self.user {
            command.uid(uid).gid(gid);
        }
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

    /// The same on a free port, with a limit of open files.
    pub(crate) fn serve_with_open_files(&self, limit: u64) -> Server {
        let serve = format!("ulimit -n {limit}; exec \"$0\" serve --listen 127.0.0.1:0");
        Server::start(self.program("sh", &["-c", &serve, env!("CARGO_BIN_EXE_petasos")]))
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
    made_key: Option<String>,
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
        let made_key = banner.lines().find_map(|line| Some(line.split_once("kept in ")?.1)).map(|path| {
            let key = std::fs::read_to_string(path).unwrap();
            key.trim().to_owned()
        });
        assert!(!banner.contains("pk_"), "a key is for terminals: {banner}");
        Server { child, banner, url, made_key, stderr }
    }

    /// The key that the first start made, unless the environment gives one. The banner names its file.
    pub(crate) fn shown_key(&self) -> Option<&str> {
        self.made_key.as_deref()
    }

    /// Waits for a line of the log.
    pub(crate) fn wait_for_log(&self, words: &str) {
        while !self.stderr.recv_timeout(PATIENCE).expect(words).contains(words) {}
    }

    /// The most memory that the server has had so far, in bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        peak.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
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

    /// Opens a connection.
    #[allow(clippy::disallowed_methods, reason = "these tests drive the binary from outside")]
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.url.strip_prefix("http://").unwrap()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends a request over a connection of its own and returns that, before anything was read.
    pub(crate) fn open(&self, method: &str, path: &str, key: &str, body: &str) -> TcpStream {
        let mut stream = self.connect();
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
        let (head, body) = answer(&mut self.open(method, path, key, body));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }

    /// What is at a path, as text.
    pub(crate) fn text(&self, path: &str, key: &str) -> String {
        String::from_utf8(answer(&mut self.open("GET", path, key, "")).1).unwrap()
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

/// Reads an answer to its end: its head, and its body, which may come in chunks.
pub(crate) fn answer(connection: &mut impl Read) -> (String, Vec<u8>) {
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
    let rest = answer.split_off(end + 4);
    let head = String::from_utf8(answer).unwrap();
    if !head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        return (head, rest);
    }
    let mut body = Vec::new();
    let mut chunks = rest.as_slice();
    loop {
        let line = chunks.windows(2).position(|bytes| bytes == b"\r\n").expect("a chunk that is whole");
        let length = usize::from_str_radix(std::str::from_utf8(&chunks[..line]).unwrap(), 16).unwrap();
        if length == 0 {
            return (head, body);
        }
        body.extend_from_slice(&chunks[line + 2..line + 2 + length]);
        chunks = &chunks[line + 2 + length + 2..];
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
