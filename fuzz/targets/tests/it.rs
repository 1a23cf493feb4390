//! Runs the fuzz targets on a stable toolchain: over the corpus, and over mutations of it from a fixed seed.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

use petasos_core::event::{Event, SHOWN_TYPES};
use petasos_fuzz_targets::mutate::{Random, mutation};
use petasos_fuzz_targets::{Target, cursors, event_decode, send_events, sse_decoder};

const SEED: u64 = 0x7065_7461_736f_7321;

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(name);
    let mut paths: Vec<_> =
        std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} is empty", directory.display());
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

fn run(name: &str, target: &Target, mutations: usize) {
    let corpus = corpus(name);
    let mut random = Random::new(SEED);
    let mutations = (0..mutations).map(|_| mutation(&corpus, &mut random));
    for input in corpus.iter().cloned().chain(mutations) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(&input))) {
            eprintln!("{name} broke with b\"{}\"", input.escape_ascii());
            resume_unwind(panic);
        }
    }
}

#[test]
fn streams_decode_the_same_in_any_chunks() {
    run("sse_decoder", &sse_decoder::target(), 500);
}

#[test]
fn events_fold_and_are_written_as_they_were_read() {
    run("event_decode", &event_decode::target(), 1500);
}

#[test]
fn cursors_and_queries_are_read_or_refused() {
    run("cursors", &cursors::target(), 2000);
}

#[test]
fn sent_events_are_read_or_refused() {
    run("send_events", &send_events::target(), 6000);
}

#[test]
fn the_corpus_has_an_event_of_every_type() {
    let internal = ["span.model_started", "span.model_finished", "tool.started", "session.titled"];
    let internal =
        internal.into_iter().chain(["session.metadata_changed", "session.archived", "session.compacted"]);
    let mut missing: BTreeSet<&str> = SHOWN_TYPES.iter().copied().chain(internal).collect();
    for file in corpus("event_decode") {
        for line in file.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let event: Event = serde_json::from_slice(line).unwrap();
            missing.remove(event.payload.type_name());
        }
    }
    assert!(missing.is_empty(), "no event of type {missing:?}");
}

#[test]
fn numbers_are_kept_to_the_last_digit() {
    let mut random = Random::new(SEED);
    for _ in 0..5000 {
        let number = random.next() as f64 / random.next() as f64;
        let read: serde_json::Value = serde_json::from_str(&serde_json::to_string(&number).unwrap()).unwrap();
        assert_eq!(read.as_f64(), Some(number));
    }
}
