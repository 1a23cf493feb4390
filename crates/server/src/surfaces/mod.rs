//! One module per wire protocol.

pub(crate) mod aap;
mod confirmation;
pub(crate) mod conversation;
mod errors;
pub(crate) mod herm;
pub(crate) mod parlant;
mod pending_actions;
pub(crate) mod routines;

pub(crate) use errors::Shape;
