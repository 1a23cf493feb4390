//! Customers, and what is known about them.

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use petasos_core::customer::{ContextVariable, Customer, VariableValue};
use petasos_core::ids::{AgentId, TenantId};
use serde_json::{Map, Value};

use super::{Order, Page, PageRequest};
use crate::error::Result;

/// What is to change about a customer, all or nothing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CustomerChange {
    /// A new name.
    pub name: Option<String>,
    /// Metadata to merge; `null` removes a key.
    pub metadata: Map<String, Value>,
    /// Values to merge, by the names of their variables; `null` removes one. A variable that is not there is made.
    pub variables: Map<String, Value>,
}

/// A value with the variable that it is of.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownValue {
    /// The variable.
    pub variable: ContextVariable,
    /// What is known.
    pub value: VariableValue,
}

/// The customers of every tenant.
pub trait CustomerStore: Send + Sync + 'static {
    /// Keeps a new customer with what is known about it. `AlreadyExists` if the tenant has one of that id.
    fn create_customer(&self, customer: Customer, variables: Map<String, Value>)
    -> BoxFuture<'_, Result<()>>;

    /// One customer of a tenant.
    fn customer<'a>(&'a self, tenant: &'a TenantId, id: &'a str) -> BoxFuture<'a, Result<Option<Customer>>>;

    /// A tenant's customers, oldest or newest first.
    fn customers<'a>(
        &'a self,
        tenant: &'a TenantId,
        order: Order,
        page: PageRequest,
    ) -> BoxFuture<'a, Result<Page<Customer>>>;

    /// How many customers a tenant has.
    fn count_customers<'a>(&'a self, tenant: &'a TenantId) -> BoxFuture<'a, Result<u64>>;

    /// Changes a customer. `false` if there is none.
    fn change_customer<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: &'a str,
        change: CustomerChange,
        at: Timestamp,
    ) -> BoxFuture<'a, Result<bool>>;

    /// Removes a customer and what is known about it. `false` if there was none. Sessions stay.
    fn delete_customer<'a>(&'a self, tenant: &'a TenantId, id: &'a str) -> BoxFuture<'a, Result<bool>>;
}

/// What can be known about customers, and what is.
pub trait VariableStore: Send + Sync + 'static {
    /// All variables of a tenant, in the order in which they were made.
    fn variables<'a>(&'a self, tenant: &'a TenantId) -> BoxFuture<'a, Result<Vec<ContextVariable>>>;

    /// Makes a variable. `AlreadyExists` if the tenant has one of that name.
    fn create_variable<'a>(
        &'a self,
        tenant: &'a TenantId,
        name: &'a str,
        description: Option<&'a str>,
    ) -> BoxFuture<'a, Result<ContextVariable>>;

    /// Gives a variable a new name and description. `false` if there is none, `AlreadyExists` if another has the name.
    fn change_variable<'a>(
        &'a self,
        tenant: &'a TenantId,
        variable: ContextVariable,
    ) -> BoxFuture<'a, Result<bool>>;

    /// Removes a variable and its values. `false` if there was none.
    fn delete_variable<'a>(&'a self, tenant: &'a TenantId, id: &'a str) -> BoxFuture<'a, Result<bool>>;

    /// What is known about one customer, in the order of the variables.
    fn values_of<'a>(
        &'a self,
        tenant: &'a TenantId,
        customer: &'a str,
    ) -> BoxFuture<'a, Result<Vec<KnownValue>>>;

    /// What a turn of an agent is told about a customer, in the order of the variables, and for each of them the least
    /// particular first: what holds for everybody, for the customer's tags, for the customer. A variable that has tags is
    /// left out unless the agent has one of them.
    fn values_for<'a>(
        &'a self,
        tenant: &'a TenantId,
        agent_id: &'a AgentId,
        customer: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<KnownValue>>>;

    /// The values of one variable, by customer.
    fn values_by_customer<'a>(
        &'a self,
        tenant: &'a TenantId,
        variable: &'a str,
    ) -> BoxFuture<'a, Result<Vec<(String, VariableValue)>>>;

    /// Sets what is known about a customer. None if there is no such variable.
    fn set_value<'a>(
        &'a self,
        tenant: &'a TenantId,
        variable: &'a str,
        customer: &'a str,
        data: Value,
        at: Timestamp,
    ) -> BoxFuture<'a, Result<Option<VariableValue>>>;

    /// Forgets what is known about a customer. `false` if nothing was.
    fn delete_value<'a>(
        &'a self,
        tenant: &'a TenantId,
        variable: &'a str,
        customer: &'a str,
    ) -> BoxFuture<'a, Result<bool>>;
}
