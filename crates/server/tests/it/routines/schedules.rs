//! Runs that start by themselves: one for each due time.

use jiff::Timestamp;
use petasos_core::ids::TenantId;
use petasos_store::RoutineStore;
use petasos_testkit::{TestServer, within};
use serde_json::{Value, json};

use super::{approved, decides, failure, id, runs, settled, start};

/// Due on the first of each year.
const YEARLY: &str = "0 0 1 1 *";

/// Makes a routine believe that nothing was dealt with since a time.
async fn last_dealt_with(server: &TestServer, through: &str) {
    let through: Timestamp = through.parse().unwrap();
    let (tenant, routine) = (TenantId::default_tenant(), "kyc".parse().unwrap());
    server.store().scheduled_through(&tenant, &routine, through).await.unwrap();
}

/// The runs of `kyc`, once there are so many.
async fn wait_for_runs(server: &TestServer, count: usize) -> Vec<Value> {
    within("scheduled runs", async {
        loop {
            let runs = runs(server).await;
            if runs.len() >= count {
                return runs;
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_missed_due_time_is_made_up_for_once_whatever_is_restarted() {
    let schedule = json!({ "cron": YEARLY, "missed": "latest", "input": { "n": 7 } });
    let server = start(json!({ "schedule": schedule })).await;
    server.model.script([approved()]);
    last_dealt_with(&server, "2020-06-01T00:00:00Z").await;
    let server = server.restart().await;
    let made = wait_for_runs(&server, 1).await;
    let year = Timestamp::now().strftime("%Y").to_string();
    let due = format!("{year}-01-01T00:00:00+00:00");
    assert_eq!(made[0]["idempotency_key"], json!(format!("schedule:{due}")));
    assert_eq!(made[0]["metadata"], json!({ "scheduled_for": due }));
    assert_eq!(settled(&server, &id(&made[0])).await["status"], "succeeded");
    assert_eq!(server.model.requests()[0].last_user_text(), r#"{"n":7}"#);
    // A process that died before it could note that it dealt with it does it again, and it is the same run.
    last_dealt_with(&server, "2020-06-01T00:00:00Z").await;
    let server = server.restart().await;
    within("the note", async {
        let (tenant, routine) = (TenantId::default_tenant(), "kyc".parse().unwrap());
        let through =
            async || server.store().routine(&tenant, &routine).await.unwrap().unwrap().scheduled_through;
        while through().await.strftime("%Y").to_string() != year {}
    })
    .await;
    assert_eq!(runs(&server).await.len(), 1);
}

#[tokio::test]
async fn a_missed_due_time_is_skipped_unless_the_schedule_says_otherwise() {
    let server = start(json!({ "schedule": { "cron": YEARLY } })).await;
    // A second routine shows when the schedules have been looked at.
    let schedule = json!({ "cron": YEARLY, "missed": "latest" });
    server.client.put("/routines/zzz", decides(json!({ "schedule": schedule }))).await.expect(201);
    server.model.respond(|_| approved());
    last_dealt_with(&server, "2020-06-01T00:00:00Z").await;
    let (tenant, routine) = (TenantId::default_tenant(), "zzz".parse().unwrap());
    let through: Timestamp = "2020-06-01T00:00:00Z".parse().unwrap();
    server.store().scheduled_through(&tenant, &routine, through).await.unwrap();
    let server = server.restart().await;
    within("the other routine's run", async {
        while server.client.get("/routines/zzz/runs").await.expect(200)["items"]
            .as_array()
            .unwrap()
            .is_empty()
        {}
    })
    .await;
    assert!(runs(&server).await.is_empty());
}

#[tokio::test]
async fn each_due_time_has_one_run_over_a_restart() {
    let server = start(json!({ "schedule": { "cron": "* * * * * *" } })).await;
    server.model.respond(|_| approved());
    wait_for_runs(&server, 1).await;
    let server = server.restart().await;
    let before = runs(&server).await.len();
    let made = wait_for_runs(&server, before + 1).await;
    let due: std::collections::BTreeSet<String> =
        made.iter().map(|run| run["metadata"]["scheduled_for"].to_string()).collect();
    assert_eq!(due.len(), made.len(), "{due:?}");
    // A routine that is removed is not due any more.
    server.client.delete("/routines/kyc").await.expect(204);
}

#[tokio::test]
async fn bad_input_of_a_schedule_is_a_run_that_failed() {
    let schedule = json!({ "cron": YEARLY, "missed": "latest", "input": { "n": "seven" } });
    let input_schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    let server = start(json!({ "schedule": schedule, "input_schema": input_schema })).await;
    last_dealt_with(&server, "2020-06-01T00:00:00Z").await;
    let server = server.restart().await;
    let made = wait_for_runs(&server, 1).await;
    let error = failure(&server, &id(&made[0])).await;
    assert_eq!(error["code"], "input_validation_failed");
    assert_eq!(error["details"], json!({ "path": ["n"], "schema_path": ["properties", "n", "type"] }));
    assert!(made[0]["session_id"].is_string() && server.model.requests().is_empty());
}
