//! Which URL events go to, and what a change of it does.

use petasos_testkit::receiver::{Receiver, Reception};
use petasos_testkit::{Setup, TestServer};
use serde_json::{Value, json};

use super::{
    bodies, conversation, deliveries, impatient, session, set_url, settled, setup, start, start_with,
    statuses, turn,
};

#[tokio::test]
async fn the_session_wins_over_the_agent_and_the_agent_over_the_server() {
    let receiver = Receiver::start().await;
    let configured = Setup { event_webhook_url: Some(receiver.at("/server")), ..setup() };
    let server = TestServer::start_with(configured).await;
    let plain = server.session().await;
    turn(&server, &plain, "One.").await;
    let agent =
        server.agent_with(json!({ "metadata": { "event_webhook_url": receiver.at("/agent") } })).await;
    let of_agent = server.client.session(&agent).await;
    turn(&server, &of_agent, "Two.").await;
    settled(&server, &of_agent).await;
    set_url(&server, &of_agent, receiver.at("/session").into()).await;
    turn(&server, &of_agent, "Three.").await;
    let received = receiver.wait_for(15).await;
    let count = |path: &str| received.iter().filter(|request| request.path == path).count();
    assert_eq!((count("/server"), count("/agent"), count("/session")), (5, 5, 5));
}

#[tokio::test]
async fn a_url_from_the_configuration_may_be_anywhere_but_opens_nothing_else() {
    let receiver = Receiver::start().await;
    let configured =
        Setup { event_webhook_url: Some(receiver.url.clone()), guard: Default::default(), ..setup() };
    let server = TestServer::start_with(configured).await;
    let session = server.session().await;
    turn(&server, &session, "Hello.").await;
    receiver.wait_for(5).await;
    let agent = server.agent_with(json!({})).await;
    let body = json!({ "metadata": { "event_webhook_url": receiver.at("/other") } });
    let refused = server.client.post(&format!("/v1/agents/{agent}/sessions"), body).await;
    refused.expect_error(400, "egress_denied");
}

#[tokio::test]
async fn events_from_before_are_not_sent() {
    let (server, receiver) = start().await;
    let session = server.session().await;
    turn(&server, &session, "One.").await;
    let before = conversation(&server, &session).await.len();
    set_url(&server, &session, receiver.url.clone().into()).await;
    turn(&server, &session, "Two.").await;
    let events = conversation(&server, &session).await;
    let received = receiver.wait_for(events.len() - before).await;
    assert_eq!(bodies(&received), events[before..]);
}

#[tokio::test]
async fn a_new_url_takes_what_is_undelivered() {
    let (server, receiver) = start_with(impatient()).await;
    receiver.answer("/old", Reception::Silence);
    let session = session(&server, &receiver.at("/old")).await;
    turn(&server, &session, "Hello.").await;
    receiver.wait_for(1).await;
    set_url(&server, &session, receiver.at("/new").into()).await;
    let all = settled(&server, &session).await;
    assert_eq!(statuses(&all), vec!["delivered"; 5]);
    let new: Vec<_> = receiver.received().into_iter().filter(|request| request.path == "/new").collect();
    assert_eq!(bodies(&new), conversation(&server, &session).await);
    assert_eq!(all[0]["url"], receiver.at("/new"));
}

#[tokio::test]
async fn what_was_meant_for_the_session_does_not_go_to_the_server_s_default() {
    let receiver = Receiver::start().await;
    let configured = Setup { event_webhook_url: Some(receiver.at("/server")), ..setup() };
    let server = TestServer::start_with(configured).await;
    let gate = petasos_testkit::Gate::new();
    receiver.script(vec![Reception::Held(gate.clone())]);
    let session = session(&server, &receiver.at("/session")).await;
    turn(&server, &session, "Hello.").await;
    gate.reached().await;
    set_url(&server, &session, Value::Null).await;
    assert_eq!(statuses(&settled(&server, &session).await), vec!["cancelled"; 5]);
    gate.open();
    // What comes later does.
    turn(&server, &session, "Again.").await;
    let all = settled(&server, &session).await;
    assert_eq!(statuses(&all[5..]), vec!["delivered"; 5]);
    assert!(all[5..].iter().all(|delivery| delivery["url"] == receiver.at("/server")));
}

#[tokio::test]
async fn no_url_cancels_what_is_undelivered() {
    let (server, receiver) = start().await;
    receiver.script(vec![Reception::Status(500)]);
    let session = session(&server, &receiver.url).await;
    let gate = petasos_testkit::Gate::new();
    receiver.script(vec![Reception::Held(gate.clone())]);
    turn(&server, &session, "Hello.").await;
    gate.reached().await;
    set_url(&server, &session, Value::Null).await;
    let all = settled(&server, &session).await;
    assert_eq!(statuses(&all), vec!["cancelled"; 5]);
    gate.open();
    turn(&server, &session, "Quiet.").await;
    assert_eq!(deliveries(&server, &session).await.len(), 5);
    assert_eq!(receiver.received().len(), 2);
}
