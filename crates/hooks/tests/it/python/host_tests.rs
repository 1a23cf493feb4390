//! The host's own tests.

use petasos_sandbox::{Command, Confine, FileWrites, Sandbox, Settings, Streams, Supervisor};
use petasos_testkit::within;
use tokio::io::AsyncReadExt;

use super::quick;

#[tokio::test]
async fn the_tests_of_the_host_itself_pass() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python");
    let sandbox = Sandbox::new(Settings::default(), Supervisor::of_tests());
    let arguments = ["python3", "-B", "-W", "ignore", "-m", "unittest"];
    let process = sandbox.start(Command {
        arguments: arguments.map(str::to_owned).to_vec(),
        env: quick().python.env,
        workspace: directory.into(),
        directory: directory.into(),
        streams: Streams::Merged,
        confine: Confine::Not,
        files: FileWrites::Limited,
    });
    let mut process = process.unwrap();
    let mut output = String::new();
    within("the tests", process.stdout.read_to_string(&mut output)).await.unwrap();
    assert_eq!(within("their end", process.wait()).await.code, Some(0), "{output}");
}
