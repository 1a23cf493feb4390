//! One module per wire protocol.

pub(crate) mod herm;
