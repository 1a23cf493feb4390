//! Streams: resumed, joined late, read slowly, cut.

use std::time::Duration;

use petasos_testkit::{Frame, Gate, Reply, Setup, TestServer};
use serde_json::json;

/// A session with two finished turns.
async fn two_turns(server: &TestServer) -> String {
    let session = server.session().await;
    server.model.script([Reply::thinking("Hm.").and_text("One."), Reply::text("Two.")]);
    let mut stream = server.client.stream(&session, "").await;
    for text in ["first", "second"] {
        server.client.message(&session, text).await.expect(200);
        stream.until_idle().await;
    }
    session
}

#[tokio::test]
async fn a_stream_resumes_after_any_event() {
    let server = TestServer::start().await;
    let session = two_turns(&server).await;
    let listed = server.client.events(&session).await;
    let last = listed.last().unwrap()["sequence"].as_u64().unwrap();
    let sequences: Vec<u64> = listed.iter().map(|event| event["sequence"].as_u64().unwrap()).collect();
    assert!(sequences.is_sorted_by(|a, b| a < b));
    for (index, event) in listed.iter().enumerate() {
        let (id, sequence) = (event["id"].as_str().unwrap(), event["sequence"].to_string());
        for last_event_id in [id, &sequence, &format!("{id}_live3")] {
            // The header wins over the query.
            let client = server.client.with_header("last-event-id", last_event_id);
            let mut stream = client.stream(&session, "?after=0").await;
            let mut seen = Vec::new();
            while seen.len() < listed.len() - index - 1 {
                seen.push(stream.next().await.unwrap().data);
            }
            assert_eq!(seen, listed[index + 1..]);
        }
    }
    let mut stream = server.client.stream(&session, "?after=0").await;
    let frames = stream.until(|frame| frame.data["sequence"] == last).await;
    let replayed: Vec<_> = frames.into_iter().map(|frame| frame.data).collect();
    assert_eq!(replayed, listed, "a replay has every durable event once and nothing live");
    for bad in ["evt_other_3", "nonsense"] {
        let client = server.client.with_header("last-event-id", bad);
        client
            .get(&format!("/v1/sessions/{session}/events/stream"))
            .await
            .expect_error(400, "validation_error");
    }
    let path = format!("/v1/sessions/{session}/events/stream?after=x");
    server.client.get(&path).await.expect_error(400, "validation_error");
}

#[tokio::test]
async fn a_reader_that_joins_late_gets_the_text_so_far_in_one_piece() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let gate = Gate::new();
    server.model.script([Reply::thinking("Let me see.")
        .and_text("Once upon a time ")
        .gate(&gate)
        .and_text("the end.")]);
    let mut early = server.client.stream(&session, "").await;
    server.client.message(&session, "a story").await.expect(200);
    early.until(|frame| frame.is_delta() && frame.text().ends_with("time ")).await;
    for query in ["", "?after=0"] {
        let mut late = server.client.stream(&session, query).await;
        let thought = late.until(|frame| frame.is_delta()).await.pop().unwrap();
        assert_eq!((thought.event.as_str(), thought.text().as_str()), ("agent.thinking", "Let me see."));
        let said = late.next().await.unwrap();
        assert_eq!((said.event.as_str(), said.text().as_str()), ("agent.message", "Once upon a time "));
        assert_eq!(said.id, None);
    }
    let mut late = server.client.stream(&session, "").await;
    gate.open();
    let frames = late.until_idle().await;
    let text: String = frames
        .iter()
        .filter(|frame| frame.event == "agent.message" && frame.is_delta())
        .map(|frame| frame.text())
        .collect();
    assert_eq!(text, "Once upon a time the end.");
}

#[tokio::test]
async fn two_readers_see_the_same_facts_in_the_same_order() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let mut readers = Vec::new();
    for _ in 0..5 {
        readers.push(server.client.stream(&session, "").await);
    }
    server.model.script([Reply::tool_call("todo", json!({ "todos": ["x"] })), Reply::text("Done.")]);
    server.client.message(&session, "go").await.expect(200);
    let mut stories = Vec::new();
    for reader in &mut readers {
        let frames = reader.until_idle().await;
        stories.push(frames.into_iter().filter(|frame| frame.id.is_some()).collect::<Vec<_>>());
    }
    assert!(stories.windows(2).all(|pair| pair[0] == pair[1]));
}

#[tokio::test]
async fn a_reader_that_falls_behind_loses_no_durable_event() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let mut slow = server.client.stream(&session, "").await;
    let mut watcher = server.client.stream(&session, "").await;
    // More events than a feed keeps, while the slow reader reads nothing.
    for turn in 0..60 {
        server.model.script([Reply::text(format!("Answer {turn}. ").repeat(200))]);
        server.client.message(&session, "go").await.expect(200);
        watcher.until_idle().await;
    }
    let listed = server.client.events(&session).await;
    let mut durable = Vec::new();
    while durable.len() < listed.len() {
        let frame = slow.next().await.unwrap();
        if frame.id.is_some() {
            durable.push(frame.data["sequence"].clone());
        }
    }
    let expected: Vec<_> = listed.iter().map(|event| event["sequence"].clone()).collect();
    assert_eq!(durable, expected);
}

#[tokio::test]
async fn a_retried_model_call_takes_back_what_it_said() {
    let server = TestServer::start().await;
    let session = server.session().await;
    server.model.script([Reply::text("Half an answer").cut_after_chunks(3), Reply::text("A whole answer.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    let frames = stream.until_idle().await;
    let deltas: Vec<_> = frames.iter().filter(|frame| frame.is_delta()).collect();
    let reset = deltas.iter().position(|frame| frame.data["payload"]["reset"] == true).expect("a reset");
    let after: String = deltas[reset..].iter().map(|frame| frame.text()).collect();
    assert_eq!(after, "A whole answer.");
    let said: Vec<_> =
        frames.iter().filter(|frame| frame.event == "agent.message" && !frame.is_delta()).collect();
    assert_eq!(said.len(), 1);
    assert_eq!(said[0].text(), "A whole answer.");
}

/// What the pieces of each kind add up to when a message ends, for a client that drops what it is told to.
fn displayed(frames: &[Frame]) -> [String; 2] {
    ["agent.thinking", "agent.message"].map(|event| {
        let pieces = frames.iter().filter(|frame| frame.is_delta() && frame.event == event);
        pieces.fold(String::new(), |shown, frame| {
            let kept = if frame.data["payload"]["reset"] == true { String::new() } else { shown };
            kept + &frame.text()
        })
    })
}

#[tokio::test]
async fn what_is_taken_back_is_so_for_each_kind() {
    let server = TestServer::start().await;
    let call = Reply::tool_call("todo", json!({ "todos": [] }));
    for (first, then, expected) in [
        ("text", vec![Reply::thinking("Hm.").and_text("Whole.")], ["Hm.", "Whole."]),
        ("thinking", vec![Reply::text("Whole.")], ["", "Whole."]),
        ("text", vec![call, Reply::text("Done.")], ["", ""]),
        // It fails for good in the end, and is in no message.
        ("text", vec![Reply::text("Another half").cut_after_chunks(3); 9], ["", ""]),
    ] {
        let session = server.session().await;
        let half = if first == "text" { Reply::text("Half of it") } else { Reply::thinking("Half of it") };
        let gate = Gate::new();
        let half = half.gate(&gate).and_text("never said").cut_after_chunks(5);
        server.model.script(std::iter::once(half).chain(then));
        let mut stream = server.client.stream(&session, "").await;
        server.client.message(&session, "go").await.expect(200);
        let mut frames = stream.until(Frame::is_delta).await;
        gate.open();
        frames.extend(stream.until(|frame| frame.event == "agent.tool_use" || frame.stop().is_some()).await);
        let deltas: Vec<&Frame> = frames.iter().filter(|frame| frame.is_delta()).collect();
        assert!(deltas.iter().any(|frame| frame.data["payload"]["reset"] == true), "{deltas:?}");
        assert_eq!(displayed(&frames), expected, "{deltas:?}");
        if frames.last().is_some_and(|last| last.stop().is_none()) {
            stream.until_idle().await;
        }
    }
}

#[tokio::test]
async fn quiet_streams_get_comments_and_end_with_the_server() {
    let server =
        TestServer::start_with(Setup { keep_alive: Duration::from_millis(20), ..Setup::default() }).await;
    let session = server.session().await;
    let http = petasos_net::Client::new(&petasos_net::Options::default());
    let url = format!("{}/v1/sessions/{session}/events/stream", server.url);
    let headers = [("authorization", "Bearer pk_admin_key_of_tests")];
    let mut response = http.request(petasos_net::Method::Get, &url, &headers, None).await.unwrap();
    let comment = petasos_testkit::within("a comment", response.chunk()).await.unwrap().unwrap();
    assert!(comment.starts_with(b": keep-alive"), "{comment:?}");
    let mut stream = server.client.stream(&session, "").await;
    let server = server.restart().await;
    while stream.next().await.is_some() {}
    server.client.get("/v1/agents").await.expect(200);
}

#[tokio::test]
async fn events_are_listed_in_both_orders_by_type_and_page() {
    let server = TestServer::start().await;
    let session = two_turns(&server).await;
    let all = server.client.events(&session).await;
    let path = format!("/v1/sessions/{session}/events");
    let list = async |query: &str| server.client.get(&format!("{path}{query}")).await.expect(200);
    let mut walked = Vec::new();
    let mut page = list("?order=desc&limit=2").await;
    loop {
        walked.extend(page["data"].as_array().unwrap().iter().cloned());
        let Some(cursor) = page["nextCursor"].as_str() else { break };
        page = list(&format!("?order=desc&limit=2&cursor={cursor}")).await;
    }
    walked.reverse();
    assert_eq!(walked, all);
    assert_eq!(list("?types=session.title_updated").await["data"], json!([]), "it is never stored");
    let messages = list("?types=user.message,agent.message").await;
    assert_eq!(messages["data"].as_array().unwrap().len(), 4);
    let after = all[2]["sequence"].as_u64().unwrap();
    assert_eq!(list(&format!("?after={after}")).await["data"].as_array().unwrap(), &all[3..]);
    for bad in [
        "?limit=0",
        "?limit=1001",
        "?order=up",
        "?types=agent.nonsense",
        "?after=-1",
        "?cursor=zz",
        "?types=span.model_started",
    ] {
        server.client.get(&format!("{path}{bad}")).await.expect_error(400, "validation_error");
    }
}
