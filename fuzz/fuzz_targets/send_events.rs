#![no_main]

use libfuzzer_sys::fuzz_target;
use petasos_fuzz_targets::{Target, send_events};

thread_local!(static TARGET: Target = send_events::target());

fuzz_target!(|bytes: &[u8]| TARGET.with(|target| target(bytes)));
