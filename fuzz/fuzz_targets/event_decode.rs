#![no_main]

use libfuzzer_sys::fuzz_target;
use petasos_fuzz_targets::{Target, event_decode};

thread_local!(static TARGET: Target = event_decode::target());

fuzz_target!(|bytes: &[u8]| TARGET.with(|target| target(bytes)));
