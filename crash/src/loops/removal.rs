//! The removal of a deleted session's files: the server dies when it takes the note of it away.

use std::path::{Path, PathBuf};

use petasos_net::Method;
use petasos_testkit::Client;
use petasos_testkit::client::message;

use super::case::Case;
use crate::recording;
use crate::shim::{Call, Rule};

#[derive(Default)]
pub(super) struct Removal {
    session: String,
}

impl Case for Removal {
    const KIND: &'static str = "removal";

    async fn prepare(&mut self, client: &Client) {
        self.session = recording::sessions(client, 1).await.remove(0);
        let mut stream = client.stream(&self.session, "").await;
        client.event(&self.session, message("do command-1")).await.expect(200);
        stream.until_idle().await;
    }

    fn rule(&self) -> Rule {
        Rule::kill(Call::Unlink, "*/workspaces/.removals/*", "")
    }

    async fn begin(&mut self, client: &Client) {
        client.try_send(Method::Delete, &format!("/v1/sessions/{}", self.session), None).await;
    }

    async fn check_done(&self, client: &Client, home: &Path) {
        client.get(&format!("/v1/sessions/{}", self.session)).await.expect(404);
        assert_eq!(notes(home), Vec::<PathBuf>::new());
    }

    async fn check_given_up(&self, client: &Client, home: &Path) {
        client.get(&format!("/v1/sessions/{}", self.session)).await.expect(404);
        // People are asked to do this while the server is stopped, which it is before the next start.
        let notes = notes(home);
        assert_eq!(notes.len(), 1);
        notes.into_iter().for_each(|note| std::fs::remove_file(note).unwrap());
    }

    fn can_be_mended(&self) -> bool {
        false
    }
}

fn notes(home: &Path) -> Vec<PathBuf> {
    let notes = std::fs::read_dir(home.join("workspaces/.removals")).unwrap();
    notes.map(|note| note.unwrap().path()).collect()
}
