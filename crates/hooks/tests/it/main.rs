//! Hooks from outside: real scripts and real Python.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod git;
mod persistent;
mod python;

petasos_sandbox::supervisor_of_tests!();
