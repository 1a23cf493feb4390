//! A server that stops between the commit and the answer: at least once, with the same bytes.

use std::time::Duration;

use petasos_engine::{DeliverySettings, Retries};
use petasos_testkit::receiver::{Receiver, Reception};
use petasos_testkit::{Gate, Setup, TestServer};

use super::{conversation, first_arrivals, session, settled, setup, statuses, turn};

#[tokio::test]
async fn what_was_not_sent_is_sent_after_a_restart() {
    let receiver = Receiver::start().await;
    let slow =
        Retries { first_delay: Duration::from_secs(5), max_delay: Duration::from_secs(5), max_attempts: 9 };
    let settings = DeliverySettings { events: slow, ..setup().deliveries };
    let server = TestServer::start_with(Setup { deliveries: settings, ..setup() }).await;
    let session = session(&server, &receiver.url).await;
    receiver.script([Reception::Status(500)]);
    turn(&server, &session, "Hello.").await;
    receiver.wait_for(1).await;
    let server = server.restart().await;
    let all = settled(&server, &session).await;
    assert_eq!(statuses(&all), vec!["delivered"; 5]);
    let received = receiver.received();
    assert_eq!(first_arrivals(&received), conversation(&server, &session).await);
    assert_eq!((received[0].offset(), received[1].offset()), (0, 0));
    assert_eq!(received[0].body, received[1].body);
}

#[tokio::test]
async fn what_was_sent_and_not_recorded_is_sent_again() {
    let receiver = Receiver::start().await;
    let patient = DeliverySettings { timeout: Duration::from_secs(60), ..setup().deliveries };
    let server = TestServer::start_with(Setup { deliveries: patient, ..setup() }).await;
    let session = session(&server, &receiver.url).await;
    let gate = Gate::new();
    receiver.script([Reception::Held(gate.clone())]);
    turn(&server, &session, "Hello.").await;
    gate.reached().await;
    let server = server.restart().await;
    let all = settled(&server, &session).await;
    assert_eq!(statuses(&all), vec!["delivered"; 5]);
    let received = receiver.received();
    let twice: Vec<_> = received.iter().filter(|request| request.offset() == 0).collect();
    assert_eq!(twice.len(), 2);
    assert_eq!(twice[0].body, twice[1].body);
    assert_eq!(twice[0].header("webhook-id"), twice[1].header("webhook-id"));
    // Nothing was recorded of the first, so the receiver cannot be told that this is the second.
    assert_eq!(twice[1].header("webhook-attempt"), "1");
    assert_eq!(first_arrivals(&received), conversation(&server, &session).await);
}
