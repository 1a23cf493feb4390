//! Receivers that answer badly, or not at all.

use petasos_testkit::receiver::Reception;
use petasos_testkit::within;
use serde_json::Value;

use crate::operations::metrics;

use super::{
    bodies, conversation, deliveries, first_arrivals, impatient, session, settled, setup, start, start_with,
    statuses, turn,
};

/// Answers the first request of a turn like this and takes the rest, and returns what became of the first delivery.
async fn first_answered(answer: Reception) -> (Value, usize) {
    // The others answer, so that waiting long costs nothing.
    let is_slow = matches!(answer, Reception::Silence | Reception::Drip);
    let (server, receiver) = start_with(if is_slow { impatient() } else { setup() }).await;
    let session = session(&server, &receiver.url).await;
    receiver.script([answer]);
    turn(&server, &session, "Hello.").await;
    let mut all = settled(&server, &session).await;
    let events = conversation(&server, &session).await;
    let received = receiver.received();
    assert_eq!(first_arrivals(&received), events);
    let again: Vec<_> = received.iter().filter(|request| request.offset() == 0).collect();
    for request in &again {
        assert_eq!(request.body, again[0].body, "the same bytes");
        assert_eq!(request.header("webhook-id"), again[0].header("webhook-id"));
    }
    let numbers: Vec<_> = again.iter().map(|request| request.header("webhook-attempt").to_owned()).collect();
    let expected: Vec<_> = (1..=again.len()).map(|number| number.to_string()).collect();
    assert_eq!(numbers, expected);
    (all.swap_remove(0), again.len())
}

async fn is_tried_again(answer: Reception, status: Option<u16>, error: &str) {
    let (delivery, attempts) = first_answered(answer).await;
    assert_eq!((delivery["status"].as_str(), attempts), (Some("delivered"), 2), "{delivery}");
    let first = &delivery["attempts"][0];
    assert_eq!(first["status_code"].as_u64(), status.map(u64::from), "{first}");
    assert!(first["error"].as_str().is_some_and(|text| text.contains(error)), "{first}");
    assert_eq!(delivery["attempts"][1]["error"], Value::Null);
}

#[tokio::test]
async fn an_error_is_tried_again() {
    is_tried_again(Reception::Status(500), Some(500), "answered 500").await;
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let answer = Reception::Header(301, "location", "http://127.0.0.1:1/elsewhere");
    is_tried_again(answer, Some(301), "redirects are not followed").await;
}

#[tokio::test]
async fn no_answer_is_tried_again() {
    is_tried_again(Reception::Silence, None, "did not answer within 1.5 s").await;
}

#[tokio::test]
async fn a_closed_connection_is_tried_again() {
    is_tried_again(Reception::Close, None, "").await;
}

#[tokio::test]
async fn garbage_is_tried_again() {
    is_tried_again(Reception::Garbage, None, "").await;
}

#[tokio::test]
async fn an_answer_byte_by_byte_is_not_waited_for() {
    is_tried_again(Reception::Drip, None, "did not answer within").await;
}

#[tokio::test]
async fn the_body_of_an_answer_is_not_waited_for() {
    let (delivery, attempts) = first_answered(Reception::EndlessBody).await;
    assert_eq!((delivery["status"].as_str(), attempts), (Some("delivered"), 1), "{delivery}");
}

#[tokio::test]
async fn a_receiver_that_is_gone_is_believed() {
    let (delivery, attempts) = first_answered(Reception::Status(410)).await;
    assert_eq!((delivery["status"].as_str(), attempts), (Some("dead"), 1), "{delivery}");
    assert_eq!(delivery["next_attempt_at"], Value::Null);
}

#[tokio::test]
async fn a_wish_to_wait_is_followed() {
    let (delivery, _) = first_answered(Reception::Header(429, "retry-after", "0.1")).await;
    assert_eq!(delivery["status"], "delivered");
    let at = |index: usize| {
        delivery["attempts"][index]["at"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap()
    };
    assert!(at(1).duration_since(at(0)).as_millis() >= 100, "{delivery}");
}

#[tokio::test]
async fn a_wish_to_wait_is_followed_even_if_it_is_longer_than_our_own_waits() {
    let (server, receiver) = start().await;
    let session = session(&server, &receiver.url).await;
    receiver.script([Reception::Header(503, "retry-after", "600")]);
    turn(&server, &session, "Hello.").await;
    let delivery = within("the first attempt", async {
        loop {
            let first = deliveries(&server, &session).await.swap_remove(0);
            if first["attempts"].as_array().is_some_and(|attempts| !attempts.is_empty()) {
                return first;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    let time = |value: &Value| value.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let wait = time(&delivery["next_attempt_at"]).duration_since(time(&delivery["attempts"][0]["at"]));
    assert!(wait.as_secs() >= 599, "{delivery}");
}

#[tokio::test]
async fn what_nobody_takes_is_dead_after_all_attempts_and_the_next_one_goes() {
    let (server, receiver) = start().await;
    let session = session(&server, &receiver.url).await;
    receiver.script(vec![Reception::Status(503); 4]);
    turn(&server, &session, "Hello.").await;
    let all = settled(&server, &session).await;
    assert_eq!(statuses(&all), ["dead", "delivered", "delivered", "delivered", "delivered"]);
    assert_eq!(all[0]["attempts"].as_array().unwrap().len(), 4);
    let events = conversation(&server, &session).await;
    assert_eq!(bodies(&receiver.received())[4..], events[1..]);
    let metrics = metrics(&server).await;
    assert!(metrics.contains("petasos_deliveries_total{outcome=\"dead\"} 1"), "{metrics}");
    assert!(metrics.contains("petasos_deliveries_total{outcome=\"delivered\"} 4"), "{metrics}");
    assert!(metrics.contains("petasos_pending_deliveries 0"), "{metrics}");
}
