//! Customers: registered, changed, forgotten; and what is known about them.

use petasos_core::conversation::CustomerVariables;
use petasos_core::customer::{ContextVariable, Customer, VariableValue};
use petasos_core::ids::TenantId;
use petasos_core::metadata::metadata_problem;
use petasos_core::session::{CONVERSATION_PLATFORM, SessionHeader};
use petasos_store::{CustomerChange, KnownValue, Order, Page, PageRequest};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::agents::merge_by_key;
use crate::engine::{Engine, Shared, now};
use crate::error::{Error, Result};

const MAX_ID_CHARS: usize = 256;
pub(crate) const MAX_NAME_CHARS: usize = 256;

/// A customer and what is known about it.
#[derive(Debug, Clone, PartialEq)]
pub struct CustomerDetail {
    /// The customer.
    pub customer: Customer,
    /// What is known, by the names of variables.
    pub variables: Map<String, Value>,
}

/// What a customer is registered with.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NewCustomer {
    /// Its id; one is made otherwise.
    pub id: Option<String>,
    /// What people call it.
    pub name: String,
    /// The application's own tags.
    pub metadata: Map<String, Value>,
    /// What is known about it.
    pub variables: Map<String, Value>,
}

impl Engine {
    /// Registers a customer.
    pub async fn create_customer(&self, tenant: &TenantId, new: NewCustomer) -> Result<CustomerDetail> {
        let id = new.id.unwrap_or_else(|| format!("customer_{}", Uuid::now_v7().simple()));
        check("id", &id, MAX_ID_CHARS)?;
        check("name", &new.name, MAX_NAME_CHARS)?;
        check_map("metadata", &new.metadata)?;
        check_map("variables", &new.variables)?;
        let customer = Customer {
            tenant: tenant.clone(),
            id,
            name: new.name,
            metadata: new.metadata,
            created_at: now(),
        };
        let created = self.shared.store.create_customer(customer.clone(), new.variables).await;
        created.map_err(|error| named_already(error, "customer", &customer.id))?;
        self.customer(tenant, &customer.id).await
    }

    /// Makes sure that a customer is registered.
    pub async fn register_customer(&self, tenant: &TenantId, id: &str) -> Result<()> {
        if self.shared.store.customer(tenant, id).await?.is_some() {
            return Ok(());
        }
        let new = NewCustomer { id: Some(id.to_owned()), name: id.to_owned(), ..NewCustomer::default() };
        match self.create_customer(tenant, new).await {
            Ok(_) | Err(Error::AlreadyExists { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// A customer and what is known about it.
    pub async fn customer(&self, tenant: &TenantId, id: &str) -> Result<CustomerDetail> {
        let customer = self.shared.store.customer(tenant, id).await?;
        let customer = customer.ok_or_else(|| no_customer(id))?;
        Ok(CustomerDetail { customer, variables: known_about(&self.shared, tenant, id).await? })
    }

    /// A tenant's customers.
    pub async fn customers(
        &self,
        tenant: &TenantId,
        order: Order,
        page: PageRequest,
    ) -> Result<Page<Customer>> {
        Ok(self.shared.store.customers(tenant, order, page).await?)
    }

    /// How many customers a tenant has.
    pub async fn count_customers(&self, tenant: &TenantId) -> Result<u64> {
        Ok(self.shared.store.count_customers(tenant).await?)
    }

    /// Changes a customer and what is known about it, all or nothing.
    pub async fn change_customer(
        &self,
        tenant: &TenantId,
        id: &str,
        change: CustomerChange,
    ) -> Result<CustomerDetail> {
        let CustomerDetail { mut customer, mut variables } = self.customer(tenant, id).await?;
        if let Some(name) = &change.name {
            check("name", name, MAX_NAME_CHARS)?;
        }
        merge_by_key(&mut customer.metadata, &change.metadata);
        merge_by_key(&mut variables, &change.variables);
        check_map("metadata", &customer.metadata)?;
        check_map("variables", &variables)?;
        if !self.shared.store.change_customer(tenant, id, change, now()).await? {
            return Err(no_customer(id));
        }
        self.customer(tenant, id).await
    }

    /// Forgets a customer. Its sessions stay.
    pub async fn delete_customer(&self, tenant: &TenantId, id: &str) -> Result<()> {
        let deleted = self.shared.store.delete_customer(tenant, id).await?;
        if deleted { Ok(()) } else { Err(no_customer(id)) }
    }

    /// What can be known about a tenant's customers.
    pub async fn context_variables(&self, tenant: &TenantId) -> Result<Vec<ContextVariable>> {
        Ok(self.shared.store.variables(tenant).await?)
    }

    /// One thing that can be known.
    pub async fn context_variable(&self, tenant: &TenantId, id: &str) -> Result<ContextVariable> {
        let all = self.context_variables(tenant).await?;
        all.into_iter().find(|variable| variable.id == id).ok_or_else(|| no_variable(id))
    }

    /// Makes something that can be known.
    pub async fn create_context_variable(
        &self,
        tenant: &TenantId,
        name: &str,
        description: Option<&str>,
    ) -> Result<ContextVariable> {
        check("name", name, MAX_NAME_CHARS)?;
        let made = self.shared.store.create_variable(tenant, name, description).await;
        made.map_err(|error| named_already(error, "context variable", name))
    }

    /// Gives something that can be known another name or description.
    pub async fn change_context_variable(
        &self,
        tenant: &TenantId,
        variable: ContextVariable,
    ) -> Result<ContextVariable> {
        check("name", &variable.name, MAX_NAME_CHARS)?;
        let changed = self.shared.store.change_variable(tenant, variable.clone()).await;
        match changed.map_err(|error| named_already(error, "context variable", &variable.name))? {
            true => Ok(variable),
            false => Err(no_variable(&variable.id)),
        }
    }

    /// Removes something that can be known, and what is known of it.
    pub async fn delete_context_variable(&self, tenant: &TenantId, id: &str) -> Result<()> {
        let deleted = self.shared.store.delete_variable(tenant, id).await?;
        if deleted { Ok(()) } else { Err(no_variable(id)) }
    }

    /// The values of a variable, by customer.
    pub async fn variable_values(
        &self,
        tenant: &TenantId,
        variable: &str,
    ) -> Result<Vec<(String, VariableValue)>> {
        Ok(self.shared.store.values_by_customer(tenant, variable).await?)
    }

    /// What is known of a variable about a customer.
    pub async fn variable_value(
        &self,
        tenant: &TenantId,
        variable: &str,
        customer: &str,
    ) -> Result<VariableValue> {
        let known = self.shared.store.values_of(tenant, customer).await?;
        let known = known.into_iter().find(|known| known.variable.id == variable);
        known.map(|known| known.value).ok_or_else(|| no_value(variable, customer))
    }

    /// Sets what is known about a customer, who need not be registered yet.
    pub async fn set_variable_value(
        &self,
        tenant: &TenantId,
        variable: &str,
        customer: &str,
        data: Value,
    ) -> Result<VariableValue> {
        check("key", customer, MAX_ID_CHARS)?;
        let name = self.context_variable(tenant, variable).await?.name;
        let mut known = known_about(&self.shared, tenant, customer).await?;
        known.insert(name, data.clone());
        check_map("data", &known)?;
        let set = self.shared.store.set_value(tenant, variable, customer, data, now()).await?;
        set.ok_or_else(|| no_variable(variable))
    }

    /// Forgets what is known about a customer.
    pub async fn delete_variable_value(
        &self,
        tenant: &TenantId,
        variable: &str,
        customer: &str,
    ) -> Result<()> {
        let deleted = self.shared.store.delete_value(tenant, variable, customer).await?;
        if deleted { Ok(()) } else { Err(no_value(variable, customer)) }
    }
}

/// What is known about a customer, by the names of variables.
async fn known_about(shared: &Shared, tenant: &TenantId, customer: &str) -> Result<Map<String, Value>> {
    let known = shared.store.values_of(tenant, customer).await?;
    Ok(known.into_iter().map(|KnownValue { variable, value }| (variable.name, value.data)).collect())
}

/// What a turn is told about the customer of a session, if that is not what the turn before was told. What is not known
/// about this one is as it is for its tags, or for all.
pub(crate) async fn news(
    shared: &Shared,
    header: &SessionHeader,
    told: &Map<String, Value>,
) -> Result<Option<CustomerVariables>> {
    if header.user_id.is_none() && header.platform != CONVERSATION_PLATFORM {
        return Ok(None);
    }
    let customer = header.user_id.as_deref();
    let values = shared.store.values_for(&header.tenant, &header.agent_id, customer).await?;
    let told_of = |known: KnownValue| (known.variable.name, known.value.data);
    let mut variables: Map<String, Value> = values.into_iter().map(told_of).collect();
    variables.retain(|_, value| !value.is_null());
    Ok((variables != *told).then_some(CustomerVariables { variables }))
}

/// Refuses a name that is empty, too long or cannot be shown.
pub(crate) fn check(field: &str, text: &str, most: usize) -> Result<()> {
    let problem = match text.chars().count() {
        _ if text.trim().is_empty() => "must not be empty".to_owned(),
        count if count > most => format!("has {count} characters; at most {most} are allowed"),
        _ if text.chars().any(char::is_control) => "must not have control characters".to_owned(),
        _ => return Ok(()),
    };
    Err(Error::Invalid { field: field.to_owned(), problem })
}

fn check_map(field: &str, map: &Map<String, Value>) -> Result<()> {
    match metadata_problem(map) {
        None => Ok(()),
        Some(problem) => Err(Error::Invalid { field: field.to_owned(), problem }),
    }
}

fn no_customer(id: &str) -> Error {
    Error::NotFound { kind: "customer", id: id.to_owned() }
}

fn no_variable(id: &str) -> Error {
    Error::NotFound { kind: "context variable", id: id.to_owned() }
}

fn no_value(variable: &str, customer: &str) -> Error {
    Error::NotFound { kind: "value", id: format!("of {variable} for {customer}") }
}

/// The error of something whose name or id is taken.
pub(crate) fn named_already(error: petasos_store::Error, kind: &'static str, name: &str) -> Error {
    match error {
        petasos_store::Error::AlreadyExists { .. } => Error::AlreadyExists { kind, id: name.to_owned() },
        error => error.into(),
    }
}
