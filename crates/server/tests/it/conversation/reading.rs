//! Long polls and streams.

use std::time::Instant;

use petasos_testkit::{Reply, within};
use serde_json::json;

use super::{Talk, story};

#[tokio::test]
async fn a_waiting_poll_is_woken_by_the_append() {
    let talk = Talk::start().await;
    talk.server.model.script([Reply::text("Hi.")]);
    let waiting = talk.read("wait_for_data=30&kinds=assistant_message");
    let (found, _) = tokio::join!(waiting, talk.say("hello"));
    assert_eq!(story(&found), ["assistant_message Hi."]);
}

#[tokio::test]
async fn a_poll_without_news_times_out_and_one_that_does_not_wait_is_empty() {
    let talk = Talk::start().await;
    assert_eq!(talk.read("wait_for_data=0").await, Vec::<serde_json::Value>::new());
    let started = Instant::now();
    let answer = talk.get("wait_for_data=1").await;
    assert_eq!((answer.status, answer.body["code"].as_str()), (504, Some("wait_timed_out")));
    assert!(answer.body["details"].is_object());
    assert!(started.elapsed().as_secs() >= 1);
}

#[tokio::test]
async fn a_stream_shows_what_is_there_then_what_comes_and_ends_when_nothing_does() {
    let talk = Talk::start().await;
    talk.server.model.script([Reply::text("One."), Reply::text("Two.")]);
    talk.say("first").await;
    talk.until_over(0).await;
    let mut stream =
        talk.server.client.get_stream(&format!("{}/events?sse=true&wait_for_data=1", talk.path())).await;
    let first = stream.until(|frame| frame.data["status"] == "ready").await;
    let second = talk.say("second").await;
    let second_frames = stream.until(|frame| frame.data["status"] == "ready").await;
    assert_eq!(second_frames[0].data, second);
    assert!(within("the end of the stream", stream.next()).await.is_none());
    let all: Vec<_> = first.into_iter().chain(second_frames).collect();
    for frame in &all {
        assert_eq!(frame.event, "", "no event line");
        assert_eq!(frame.id.as_deref(), Some(frame.data["offset"].to_string().as_str()));
        talk.checked(frame.data.clone());
    }
    let frames: Vec<_> = all.iter().map(|frame| frame.data.clone()).collect();
    assert_eq!(frames, talk.read("min_offset=0").await);
    // A reader that comes back says what it has.
    let last = all[2].id.clone().unwrap();
    let client = talk.server.client.with_header("last-event-id", &last);
    let path = format!("{}/events?sse=true&min_offset=1&wait_for_data=0&kinds=status", talk.path());
    let mut stream = client.get_stream(&path).await;
    let mut rest = Vec::new();
    while let Some(frame) = stream.next().await {
        rest.push(frame.data);
    }
    let status = |frame: &&petasos_testkit::Frame| frame.data["kind"] == "status";
    let expected: Vec<_> = all[3..].iter().filter(status).map(|frame| frame.data.clone()).collect();
    assert_eq!(rest, expected);
}

#[tokio::test]
async fn one_append_answers_every_poll_that_waits() {
    let talk = Talk::start().await;
    let polls = (0..200).map(|_| talk.read("wait_for_data=30"));
    let append = async {
        while talk.server.engine.held_sessions() == 0 {
            tokio::task::yield_now().await;
        }
        let said = json!({ "kind": "human_agent_message", "text": "I am here.", "author": "Ann" });
        talk.post(said).await.expect(201)
    };
    let (answers, said) = tokio::join!(futures_util::future::join_all(polls), append);
    assert!(answers.iter().all(|answer| *answer == [said.clone()]));
}

#[tokio::test]
async fn a_poll_ends_with_its_session() {
    let talk = Talk::start().await;
    let waiting = talk.get("wait_for_data=30");
    let delete = async {
        while talk.server.engine.held_sessions() == 0 {
            tokio::task::yield_now().await;
        }
        talk.server.client.delete(&talk.path()).await.expect(204);
    };
    let (answer, ()) = tokio::join!(waiting, delete);
    assert_eq!((answer.status, answer.body["code"].as_str()), (404, Some("not_found")));
}

#[tokio::test]
async fn sessions_are_listed_either_way_round() {
    let talk = Talk::start().await;
    let open = async |title: &str| {
        let body = json!({ "title": title, "customer_id": "anna", "metadata": { "n": 1 } });
        talk.server.client.post("/conversation/sessions", body).await.expect(201)
    };
    let (one, two) = (open("one").await, open("two").await);
    assert_eq!(one["customer_id"], "anna");
    assert_eq!((one["mode"].as_str(), &one["metadata"]), (Some("auto"), &json!({ "n": 1 })));
    let page = talk.server.client.get("/conversation/sessions?customer_id=anna&limit=1").await.expect(200);
    assert_eq!(
        (&page["items"], &page["total_count"], &page["has_more"]),
        (&json!([two]), &json!(2), &json!(true))
    );
    let cursor = page["next_cursor"].as_str().unwrap();
    let path = format!("/conversation/sessions?customer_id=anna&limit=1&cursor={cursor}");
    let page = talk.server.client.get(&path).await.expect(200);
    assert_eq!((&page["items"], &page["next_cursor"]), (&json!([one]), &json!(null)));
    let page = talk.server.client.get("/conversation/sessions?customer_id=anna&sort=asc").await.expect(200);
    assert_eq!(page["items"], json!([one, two]));
    let patch = json!({ "title": "new", "metadata": { "set": { "a": "b" }, "unset": ["n"] } });
    let path = format!("/conversation/sessions/{}", one["id"].as_str().unwrap());
    let changed = talk.server.client.patch(&path, patch).await.expect(200);
    assert_eq!((changed["title"].as_str(), &changed["metadata"]), (Some("new"), &json!({ "a": "b" })));
    assert_eq!(talk.server.client.get(&path).await.expect(200), changed);
}

/// By the protocol a field with a default may be left out, and what lacks a required one is no event.
#[tokio::test]
async fn the_schema_of_events_is_that_of_the_protocol() {
    let talk = Talk::start().await;
    for (mut event, fields) in [
        (json!({ "kind": "user_message", "text": "x" }), vec!["offset", "created_at", "text"]),
        (json!({ "kind": "status", "status": "ready", "stage": null, "error_detail": null }), vec!["status"]),
        (json!({ "kind": "tool", "tool_calls": [] }), vec!["tool_calls"]),
    ] {
        event["offset"] = json!(4);
        event["created_at"] = json!("2026-06-04T10:15:00Z");
        assert!(talk.schema.is_valid(&event), "{event}");
        for field in fields {
            let mut lacking = event.clone();
            lacking.as_object_mut().unwrap().remove(field);
            assert!(!talk.schema.is_valid(&lacking), "{lacking}");
        }
        for field in ["stage", "error_detail", "kind"] {
            event.as_object_mut().unwrap().remove(field);
            assert!(talk.schema.is_valid(&event), "{event}");
        }
        event["kind"] = json!("news");
        assert!(!talk.schema.is_valid(&event), "{event}");
    }
}
