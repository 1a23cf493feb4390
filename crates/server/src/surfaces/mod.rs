//! One module per wire protocol.

pub(crate) mod aap;
pub(crate) mod conversation;
pub(crate) mod herm;
pub(crate) mod parlant;
