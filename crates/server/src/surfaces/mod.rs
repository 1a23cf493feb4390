//! One module per wire protocol.

pub(crate) mod aap;
pub(crate) mod conversation;
mod errors;
pub(crate) mod herm;
pub(crate) mod parlant;
pub(crate) mod routines;

pub(crate) use errors::Shape;
