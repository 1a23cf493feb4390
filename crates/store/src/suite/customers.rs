//! Checks of customers and of what is known about them.

use petasos_core::customer::{ContextVariable, Customer, Tag};
use serde_json::{Map, Value, json};

use super::make::{at, page, tenant};
use crate::{Bearer, CustomerChange, Error, Order, Store};

fn map(value: Value) -> Map<String, Value> {
    serde_json::from_value(value).unwrap()
}

fn customer(id: &str, created: i64) -> Customer {
    Customer {
        tenant: tenant("default"),
        id: id.to_owned(),
        name: format!("Name of {id}"),
        metadata: map(json!({ "tier": "gold" })),
        created_at: at(created),
    }
}

async fn known(store: &impl Store, id: &str) -> Value {
    let values = store.values_of(&tenant("default"), id).await.unwrap();
    values.into_iter().map(|known| (known.variable.name, known.value.data)).collect::<Map<_, _>>().into()
}

async fn created(store: &impl Store, id: &str, at: i64, variables: Value) {
    store.create_customer(customer(id, at), map(variables)).await.unwrap();
}

pub async fn a_customer_is_found_as_it_was_given(store: &impl Store) {
    assert_eq!(store.customer(&tenant("default"), "anna").await.unwrap(), None);
    let variables = json!({ "plan": "pro", "seats": 3, "tags": ["a", { "b": null }] });
    created(store, "anna", 1, variables.clone()).await;
    assert_eq!(store.customer(&tenant("default"), "anna").await.unwrap(), Some(customer("anna", 1)));
    assert_eq!(known(store, "anna").await, variables);
}

pub async fn a_customer_exists_once_per_tenant(store: &impl Store) {
    created(store, "anna", 1, json!({ "plan": "pro" })).await;
    let again = store.create_customer(customer("anna", 2), map(json!({ "plan": "free" }))).await;
    assert!(matches!(again, Err(Error::AlreadyExists { .. })), "{again:?}");
    assert_eq!(known(store, "anna").await, json!({ "plan": "pro" }));
    let elsewhere = Customer { tenant: tenant("other"), ..customer("anna", 3) };
    store.create_customer(elsewhere.clone(), Map::new()).await.unwrap();
    assert_eq!(store.customer(&tenant("other"), "anna").await.unwrap(), Some(elsewhere));
    assert_eq!(store.count_customers(&tenant("default")).await.unwrap(), 1);
}

pub async fn a_change_of_a_customer_is_whole(store: &impl Store) {
    created(store, "anna", 1, json!({ "plan": "pro", "seats": 3 })).await;
    let change = CustomerChange {
        name: Some("Anna".into()),
        metadata: map(json!({ "tier": null, "since": "2020" })),
        variables: map(json!({ "plan": "free", "seats": null, "nothing": null, "city": "Rome" })),
    };
    assert!(store.change_customer(&tenant("default"), "anna", change.clone(), at(5)).await.unwrap());
    let changed =
        Customer { name: "Anna".into(), metadata: map(json!({ "since": "2020" })), ..customer("anna", 1) };
    assert_eq!(store.customer(&tenant("default"), "anna").await.unwrap(), Some(changed));
    assert_eq!(known(store, "anna").await, json!({ "plan": "free", "city": "Rome" }));
    let names: Vec<String> = store
        .variables(&tenant("default"))
        .await
        .unwrap()
        .into_iter()
        .map(|variable| variable.name)
        .collect();
    assert_eq!(names, ["plan", "seats", "city"]);
    assert!(!store.change_customer(&tenant("default"), "ben", change.clone(), at(5)).await.unwrap());
    assert!(!store.change_customer(&tenant("other"), "anna", change, at(5)).await.unwrap());
}

pub async fn a_deleted_customer_takes_what_is_known_with_it(store: &impl Store) {
    created(store, "anna", 1, json!({ "plan": "pro" })).await;
    created(store, "ben", 2, json!({ "plan": "free" })).await;
    assert!(!store.delete_customer(&tenant("other"), "anna").await.unwrap());
    assert!(store.delete_customer(&tenant("default"), "anna").await.unwrap());
    assert!(!store.delete_customer(&tenant("default"), "anna").await.unwrap());
    assert_eq!(known(store, "anna").await, json!({}));
    assert_eq!(known(store, "ben").await, json!({ "plan": "free" }));
    created(store, "anna", 3, json!({})).await;
    assert_eq!(known(store, "anna").await, json!({}));
}

pub async fn customers_are_listed_in_pages_either_way_round(store: &impl Store) {
    for (id, created_at) in [("b", 2), ("d e/f", 3), ("a", 1), ("c", 3)] {
        created(store, id, created_at, json!({})).await;
    }
    let ids = async |order: Order| {
        let (mut ids, mut after) = (Vec::new(), None);
        loop {
            let found = store.customers(&tenant("default"), order, page(3, after)).await.unwrap();
            ids.extend(found.items.into_iter().map(|customer| customer.id));
            after = found.next;
            if after.is_none() {
                return ids;
            }
        }
    };
    assert_eq!(ids(Order::Ascending).await, ["a", "b", "c", "d e/f"]);
    assert_eq!(ids(Order::Descending).await, ["d e/f", "c", "b", "a"]);
    assert_eq!(store.count_customers(&tenant("default")).await.unwrap(), 4);
    assert_eq!(store.customers(&tenant("other"), Order::Ascending, page(9, None)).await.unwrap().items, []);
}

pub async fn what_is_known_is_set_read_and_forgotten(store: &impl Store) {
    let default = tenant("default");
    let plan = store.create_variable(&default, "plan", Some("What is paid for")).await.unwrap();
    assert_eq!(plan.description.as_deref(), Some("What is paid for"));
    let again = store.create_variable(&default, "plan", None).await;
    assert!(matches!(again, Err(Error::AlreadyExists { .. })), "{again:?}");
    assert_eq!(store.variables(&default).await.unwrap(), std::slice::from_ref(&plan));
    let first = store.set_value(&default, &plan.id, "anna", json!("pro"), at(1)).await.unwrap().unwrap();
    let second =
        store.set_value(&default, &plan.id, "anna", json!({ "a": 1 }), at(2)).await.unwrap().unwrap();
    assert_eq!((first.id, second.updated_at), (second.id.clone(), at(2)));
    assert_eq!(known(store, "anna").await, json!({ "plan": { "a": 1 } }));
    assert_eq!(store.values_by_customer(&default, &plan.id).await.unwrap(), [("anna".to_owned(), second)]);
    assert!(store.delete_value(&default, &plan.id, "anna").await.unwrap());
    assert!(!store.delete_value(&default, &plan.id, "anna").await.unwrap());
    assert_eq!(known(store, "anna").await, json!({}));
    let renamed = ContextVariable { name: "tariff".into(), description: None, ..plan.clone() };
    assert!(store.change_variable(&default, renamed.clone()).await.unwrap());
    assert_eq!(store.variables(&default).await.unwrap(), std::slice::from_ref(&renamed));
    store.create_variable(&default, "plan", None).await.unwrap();
    let taken = store.change_variable(&default, ContextVariable { name: "plan".into(), ..renamed }).await;
    assert!(matches!(taken, Err(Error::AlreadyExists { .. })), "{taken:?}");
    for id in ["var_999", "var_x", "x", ""] {
        assert_eq!(store.set_value(&default, id, "anna", json!(1), at(3)).await.unwrap(), None);
        assert!(!store.delete_variable(&default, id).await.unwrap());
    }
}

pub async fn variables_belong_to_one_tenant(store: &impl Store) {
    let (default, other) = (tenant("default"), tenant("other"));
    let plan = store.create_variable(&default, "plan", None).await.unwrap();
    store.set_value(&default, &plan.id, "anna", json!("pro"), at(1)).await.unwrap().unwrap();
    assert_eq!(store.variables(&other).await.unwrap(), []);
    assert_eq!(store.values_of(&other, "anna").await.unwrap(), []);
    assert_eq!(store.values_by_customer(&other, &plan.id).await.unwrap(), []);
    assert_eq!(store.set_value(&other, &plan.id, "anna", json!("free"), at(2)).await.unwrap(), None);
    assert!(!store.delete_value(&other, &plan.id, "anna").await.unwrap());
    assert!(!store.delete_variable(&other, &plan.id).await.unwrap());
    assert!(store.delete_variable(&default, &plan.id).await.unwrap());
    assert_eq!(known(store, "anna").await, json!({}));
}

pub async fn tags_go_from_whatever_bears_them(store: &impl Store) {
    let ours = tenant("default");
    created(store, "anna", 1, json!({})).await;
    let vip = store.create_tag(&ours, "vip").await.unwrap();
    let late = store.create_tag(&ours, "late").await.unwrap();
    assert!(matches!(store.create_tag(&ours, "vip").await, Err(Error::AlreadyExists { .. })));
    assert_eq!(store.tags(&ours).await.unwrap(), [vip.clone(), late.clone()]);
    assert!(store.tags(&tenant("other")).await.unwrap().is_empty());
    let anna = (Bearer::Customer, "anna");
    let both = vec![vip.id.clone(), late.id.clone()];
    store.change_tags(&ours, anna, both.clone(), vec![]).await.unwrap();
    store.change_tags(&ours, anna, both, vec!["none".into()]).await.unwrap();
    let of = async |kind| {
        let found = store.tags_of(&ours, kind, vec!["anna".into(), "ben".into()]).await.unwrap();
        found.into_iter().map(|(_, tag)| tag).collect::<Vec<_>>()
    };
    assert_eq!(of(Bearer::Customer).await, [vip.id.clone(), late.id.clone()]);
    assert!(of(Bearer::Agent).await.is_empty());
    let renamed = Tag { name: "late".into(), ..vip.clone() };
    assert!(matches!(store.rename_tag(&ours, renamed).await, Err(Error::AlreadyExists { .. })));
    assert!(store.rename_tag(&ours, Tag { name: "gold".into(), ..vip.clone() }).await.unwrap());
    assert!(
        store.delete_tag(&ours, &late.id).await.unwrap() && !store.delete_tag(&ours, &late.id).await.unwrap()
    );
    assert!(!store.delete_tag(&tenant("other"), &vip.id).await.unwrap());
    assert_eq!(of(Bearer::Customer).await, [vip.id.as_str()]);
    store.delete_customer(&ours, "anna").await.unwrap();
    assert!(of(Bearer::Customer).await.is_empty());
}

pub async fn a_turn_is_told_what_is_most_particular(store: &impl Store) {
    let (ours, agent) = (tenant("default"), "helper".parse().unwrap());
    created(store, "anna", 1, json!({ "plan": "pro" })).await;
    let told = async |customer: Option<&str>| {
        let values = store.values_for(&ours, &agent, customer).await.unwrap();
        Value::from(
            values.into_iter().map(|known| (known.variable.name, known.value.data)).collect::<Map<_, _>>(),
        )
    };
    let plan = store.variables(&ours).await.unwrap().remove(0);
    let vip = store.create_tag(&ours, "vip").await.unwrap();
    let with_tag = format!("tag:{}", vip.id);
    for (key, data) in [("DEFAULT", "free"), (with_tag.as_str(), "gold")] {
        store.set_value(&ours, &plan.id, key, json!(data), at(2)).await.unwrap();
    }
    store.change_tags(&ours, (Bearer::Customer, "ben"), vec![vip.id.clone()], vec![]).await.unwrap();
    assert_eq!(told(None).await, json!({ "plan": "free" }));
    assert_eq!(told(Some("carl")).await, json!({ "plan": "free" }));
    assert_eq!(told(Some("ben")).await, json!({ "plan": "gold" }));
    assert_eq!(told(Some("anna")).await, json!({ "plan": "pro" }));
    // A variable with tags is for the agents that have one of them.
    let tag = async |kind, id: &str, tag: &str| {
        store.change_tags(&ours, (kind, id), vec![tag.to_owned()], vec![]).await.unwrap();
    };
    tag(Bearer::Variable, &plan.id, &vip.id).await;
    assert_eq!(told(Some("anna")).await, json!({}));
    tag(Bearer::Variable, &plan.id, "agent:helper").await;
    assert_eq!(told(Some("anna")).await, json!({ "plan": "pro" }));
    store
        .change_tags(&ours, (Bearer::Variable, &plan.id), vec![], vec!["agent:helper".into()])
        .await
        .unwrap();
    tag(Bearer::Agent, "helper", &vip.id).await;
    assert_eq!(told(Some("anna")).await, json!({ "plan": "pro" }));
}
