//! One module per wire protocol.

pub(crate) mod aap;
pub(crate) mod herm;
