//! Checks a store against the contract.
