//! What readers see of a message while it is being said.

use petasos_core::event::StopReason;
use petasos_engine::{Item, Live, Start};
use petasos_testkit::{Gate, Reply};

use crate::world::{World, last_stop, live_text};

fn live(item: &Item) -> Option<&Live> {
    match item {
        Item::Live(live) => Some(live),
        Item::Durable(_) => None,
    }
}

#[tokio::test]
async fn a_reader_that_joins_late_gets_the_text_so_far_in_one_piece() {
    let world = World::new().await;
    let id = world.session().await;
    let gate = Gate::new();
    world.model.script([Reply::text("Once upon a time ").gate(&gate).and_text("it ended.")]);
    let mut early = world.follow(&id, Start::Now).await;
    world.message(&id, "a story").await.unwrap();
    early.until(|item| live(item).is_some_and(|live| live.text.ends_with("time "))).await;
    let mut late = Vec::new();
    for start in [Start::Now, Start::After(0), Start::After(2)] {
        let mut reader = world.follow(&id, start).await;
        let items = reader.until(|item| live(item).is_some()).await;
        assert_eq!(live(items.last().unwrap()).unwrap().text, "Once upon a time ");
        late.push(reader);
    }
    gate.open();
    for mut reader in late {
        let rest = live_text(&reader.until_idle().await);
        // A reader that looks when the session already sleeps finds the whole message in the log instead.
        assert!(["it ended.", ""].contains(&rest.as_str()), "{rest}");
    }
}

#[tokio::test]
async fn a_retried_call_takes_back_what_it_said() {
    let world = World::new().await;
    let id = world.session().await;
    let gate = Gate::new();
    // The gate stands before the cut, so that the reader has seen the first half.
    let half = Reply::text("Half an ").gate(&gate).and_text("answer, lost").cut_after_chunks(4);
    world.model.script([half, Reply::text("A whole answer.")]);
    let mut reader = world.follow(&id, Start::Now).await;
    world.message(&id, "go").await.unwrap();
    let mut items = reader.until(|item| live(item).is_some_and(|live| live.text.contains("an "))).await;
    gate.open();
    items.extend(reader.until_idle().await);
    let reset = items.iter().position(|item| live(item).is_some_and(|live| live.reset)).expect("a reset");
    assert_eq!(live_text(&items[reset..]), "A whole answer.");
    assert_eq!(last_stop(&items), &StopReason::end_turn());
}
