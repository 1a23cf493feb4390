//! Checks of [`RoutineStore`](crate::RoutineStore).

use petasos_core::routine::RoutineRecord;
use serde_json::json;

use super::make::{at, tenant};
use crate::Store;

pub(super) fn routine(tenant_name: &str, id: &str) -> RoutineRecord {
    let definition = json!({
        "title": "KYC \"decision\"", "agent": "helper", "timeout_seconds": 0.5, "on_tool_error": "fail",
        "schedule": { "cron": "0 9 * * 1-5", "timezone": "Europe/Berlin", "input": { "a": [1, null] } },
    });
    RoutineRecord {
        id: id.parse().unwrap(),
        tenant: tenant(tenant_name),
        definition: serde_json::from_value(definition).unwrap(),
        created_at: at(1),
        updated_at: at(2),
        scheduled_through: at(3),
    }
}

pub async fn a_routine_is_read_as_it_was_given(store: &impl Store) {
    let (kyc, default) = (routine("default", "kyc"), tenant("default"));
    assert_eq!(store.routine(&default, &kyc.id).await.unwrap(), None);
    store.put_routine(kyc.clone()).await.unwrap();
    assert_eq!(store.routine(&default, &kyc.id).await.unwrap(), Some(kyc.clone()));
    assert!(store.delete_routine(&default, &kyc.id).await.unwrap());
    assert!(!store.delete_routine(&default, &kyc.id).await.unwrap());
    assert_eq!(store.routines(None).await.unwrap(), []);
}

pub async fn a_routine_that_changes_stays_as_old_as_it_is(store: &impl Store) {
    let default = tenant("default");
    store.put_routine(routine("default", "kyc")).await.unwrap();
    let mut changed = routine("default", "kyc");
    changed.definition.title = None;
    (changed.created_at, changed.updated_at) = (at(50), at(50));
    store.put_routine(changed.clone()).await.unwrap();
    let expected = RoutineRecord { created_at: at(1), ..changed };
    assert_eq!(store.routine(&default, &expected.id).await.unwrap(), Some(expected.clone()));
    store.scheduled_through(&default, &expected.id, at(90)).await.unwrap();
    let noted = RoutineRecord { scheduled_through: at(90), ..expected };
    assert_eq!(store.routine(&default, &noted.id).await.unwrap(), Some(noted));
    store.scheduled_through(&default, &"gone".parse().unwrap(), at(90)).await.unwrap();
}

pub async fn routines_belong_to_a_tenant(store: &impl Store) {
    for (tenant_name, id) in [("default", "b"), ("other", "a"), ("default", "a")] {
        store.put_routine(routine(tenant_name, id)).await.unwrap();
    }
    let ids = |routines: Vec<RoutineRecord>| -> Vec<String> {
        routines.into_iter().map(|routine| format!("{}/{}", routine.tenant, routine.id)).collect()
    };
    assert_eq!(ids(store.routines(Some(&tenant("default"))).await.unwrap()), ["default/a", "default/b"]);
    assert_eq!(ids(store.routines(None).await.unwrap()), ["default/a", "default/b", "other/a"]);
    assert!(!store.delete_routine(&tenant("other"), &"b".parse().unwrap()).await.unwrap());
    assert_eq!(store.routine(&tenant("other"), &"b".parse().unwrap()).await.unwrap(), None);
}
