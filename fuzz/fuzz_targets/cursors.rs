#![no_main]

use libfuzzer_sys::fuzz_target;
use petasos_fuzz_targets::{Target, cursors};

thread_local!(static TARGET: Target = cursors::target());

fuzz_target!(|bytes: &[u8]| TARGET.with(|target| target(bytes)));
