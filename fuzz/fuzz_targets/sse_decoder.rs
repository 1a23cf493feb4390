#![no_main]

use libfuzzer_sys::fuzz_target;
use petasos_fuzz_targets::{Target, sse_decoder};

thread_local!(static TARGET: Target = sse_decoder::target());

fuzz_target!(|bytes: &[u8]| TARGET.with(|target| target(bytes)));
