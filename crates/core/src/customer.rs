//! Customers, and what is known about them. They belong to a tenant and to no session.

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::ids::TenantId;

/// Somebody whom conversations are for: the user of sessions that name the same id.
#[derive(Debug, Clone, PartialEq)]
pub struct Customer {
    /// Whose customer it is.
    pub tenant: TenantId,
    /// Names the customer, as the application does.
    pub id: String,
    /// What people call the customer.
    pub name: String,
    /// The application's own tags, which no model sees.
    pub metadata: Map<String, Value>,
    /// When the customer was registered.
    pub created_at: Timestamp,
}

/// The key of values that hold for all customers about whom nothing else is known.
pub const EVERYBODY: &str = "DEFAULT";
/// What the keys of values start with that hold for customers with a tag; its id follows.
pub const WITH_TAG: &str = "tag:";
/// What tags start with that stand for one agent; its id follows.
pub const FOR_AGENT: &str = "agent:";

/// A name that groups agents, customers and context variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    /// Names it for programs.
    pub id: String,
    /// Names it for people. No two of a tenant have the same.
    pub name: String,
}

/// Something that can be known about customers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextVariable {
    /// Names it for programs.
    pub id: String,
    /// Names it for the model. No two of a tenant have the same.
    pub name: String,
    /// What it is about.
    pub description: Option<String>,
}

/// What is known about one customer.
#[derive(Debug, Clone, PartialEq)]
pub struct VariableValue {
    /// Names the value.
    pub id: String,
    /// The value itself.
    pub data: Value,
    /// When it was last set.
    pub updated_at: Timestamp,
}
