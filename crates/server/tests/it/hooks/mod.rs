//! Hooks of the configuration, seen from outside.

mod blocks;
mod context;
mod contract;
mod events;
mod faults;
mod http;
mod pairs;
mod persistent;
mod surfaces;
mod waiting;
mod world;
