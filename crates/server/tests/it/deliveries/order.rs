//! Order within a session, and none between sessions.

use std::time::Duration;

use petasos_engine::DeliverySettings;
use petasos_testkit::receiver::{Receiver, Reception};
use petasos_testkit::{Gate, Setup, TestServer};

use super::{
    bodies, conversation, deliveries, first_arrivals, session, settled, setup, start, statuses, turn,
};

#[tokio::test]
async fn events_of_a_session_wait_for_each_other() {
    let (server, receiver) = start().await;
    let session = session(&server, &receiver.url).await;
    let gate = Gate::new();
    receiver.script([Reception::Held(gate.clone())]);
    // A receiver that takes its time may be waited for longer here.
    turn(&server, &session, "Hello.").await;
    gate.reached().await;
    assert_eq!(receiver.received().len(), 1);
    let waiting = deliveries(&server, &session).await;
    assert!(waiting[1..].iter().all(|delivery| delivery["next_attempt_at"].is_null()), "{waiting:?}");
    gate.open();
    let events = conversation(&server, &session).await;
    settled(&server, &session).await;
    assert_eq!(first_arrivals(&receiver.received()), events);
}

#[tokio::test]
async fn a_stuck_receiver_holds_up_its_own_session_only() {
    let patient = DeliverySettings { timeout: Duration::from_secs(60), ..setup().deliveries };
    let server = TestServer::start_with(Setup { deliveries: patient, ..setup() }).await;
    let receiver = Receiver::start().await;
    receiver.answer("/stuck", Reception::Silence);
    let mut stuck = Vec::new();
    for _ in 0..20 {
        let session = session(&server, &receiver.at("/stuck")).await;
        turn(&server, &session, "Hello.").await;
        stuck.push(session);
    }
    let well = session(&server, &receiver.url).await;
    for text in ["One.", "Two.", "Three."] {
        turn(&server, &well, text).await;
    }
    let all = settled(&server, &well).await;
    assert_eq!(statuses(&all), vec!["delivered"; 15]);
    let of_well: Vec<_> =
        receiver.received().into_iter().filter(|request| request.header("x-session-id") == well).collect();
    assert_eq!(bodies(&of_well), conversation(&server, &well).await);
    for session in stuck {
        assert_eq!(statuses(&deliveries(&server, &session).await), vec!["pending"; 5]);
    }
}

#[tokio::test]
async fn many_turns_arrive_in_their_order_over_failures() {
    let (server, receiver) = start().await;
    let session = session(&server, &receiver.url).await;
    for (number, text) in ["One.", "Two.", "Three.", "Four."].into_iter().enumerate() {
        if number % 2 == 0 {
            receiver.script([Reception::Status(200), Reception::Status(500), Reception::Close]);
        }
        turn(&server, &session, text).await;
    }
    assert_eq!(statuses(&settled(&server, &session).await), vec!["delivered"; 20]);
    assert_eq!(first_arrivals(&receiver.received()), conversation(&server, &session).await);
}
