//! A schedule: the server dies when it writes down the run that is due.

use std::path::Path;

use petasos_net::Method;
use petasos_testkit::{Client, within};
use serde_json::{Value, json};

use super::case::Case;
use crate::shim::{Call, Rule};

const PATH: &str = "/routines/tick";

#[derive(Default)]
pub(super) struct ScheduledRun;

fn routine(cron: &str) -> Value {
    json!({ "agent": { "model": "openai/scripted" }, "schedule": { "cron": cron }, "timeout_seconds": 600 })
}

async fn runs(client: &Client) -> usize {
    client.get(&format!("{PATH}/runs")).await.expect(200)["items"].as_array().unwrap().len()
}

impl Case for ScheduledRun {
    const KIND: &'static str = "schedule";

    async fn prepare(&mut self, _: &Client) {}

    fn rule(&self) -> Rule {
        // The key of a scheduled run, with the year that it begins with.
        Rule::kill(Call::Write, "*/petasos.db-wal", "schedule:2")
    }

    async fn begin(&mut self, client: &Client) {
        let routine = routine("* * * * * *").to_string();
        client.try_send(Method::Put, PATH, Some(routine.into())).await;
    }

    async fn check_done(&self, client: &Client, _: &Path) {
        within("a run", async { while runs(client).await == 0 {} }).await;
        client.delete(PATH).await.expect(204);
    }

    async fn check_given_up(&self, client: &Client, _: &Path) {
        assert_eq!(runs(client).await, 0);
        // Another definition gives it a new chance.
        client.put(PATH, routine("0 0 1 1 *")).await.expect(200);
    }
}
