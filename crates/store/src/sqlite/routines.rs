//! Definitions of routines.

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use petasos_core::ids::{RoutineId, TenantId};
use petasos_core::routine::RoutineRecord;
use rusqlite::{Connection, Row, params};

use super::checksum::{self, Checksum};
use super::columns::{Json, Nanos, Parsed, failed, json, unreadable};
use super::{SqliteStore, statement};
use crate::contract::RoutineStore;
use crate::error::Result;

const COLUMNS: &str = "tenant, id, definition, created_at, updated_at, scheduled_through, checksum";

impl RoutineStore for SqliteStore {
    fn put_routine(&self, routine: RoutineRecord) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.writer().write(move |connection| put(connection, &routine)))
    }

    fn routine<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: &'a RoutineId,
    ) -> BoxFuture<'a, Result<Option<RoutineRecord>>> {
        let (tenant, id) = (tenant.clone(), id.clone());
        Box::pin(self.readers().read(move |connection| get(connection, &tenant, &id)))
    }

    fn routines<'a>(&'a self, tenant: Option<&'a TenantId>) -> BoxFuture<'a, Result<Vec<RoutineRecord>>> {
        let tenant = tenant.map(|tenant| tenant.as_str().to_owned());
        Box::pin(self.readers().read(move |connection| {
            let sql =
                format!("SELECT {COLUMNS} FROM routines WHERE ?1 IS NULL OR tenant = ?1 ORDER BY tenant, id");
            statement::all(connection, &sql, [tenant], read_row)
                .map_err(unreadable(connection, "the list of routines"))
        }))
    }

    fn delete_routine<'a>(&'a self, tenant: &'a TenantId, id: &'a RoutineId) -> BoxFuture<'a, Result<bool>> {
        let (tenant, id) = (tenant.clone(), id.clone());
        Box::pin(self.writer().write(move |connection| {
            let sql = "DELETE FROM routines WHERE tenant = ? AND id = ?";
            let deleted = statement::execute(connection, sql, [tenant.as_str(), id.as_str()]);
            Ok(deleted.map_err(failed(format!("delete {}", what(&id))))? > 0)
        }))
    }

    fn scheduled_through<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: &'a RoutineId,
        through: Timestamp,
    ) -> BoxFuture<'a, Result<()>> {
        let (tenant, id) = (tenant.clone(), id.clone());
        Box::pin(self.writer().write(move |connection| match get(connection, &tenant, &id)? {
            Some(routine) => put(connection, &RoutineRecord { scheduled_through: through, ..routine }),
            None => Ok(()),
        }))
    }
}

fn what(id: &RoutineId) -> String {
    format!("routine {id}")
}

fn get(connection: &Connection, tenant: &TenantId, id: &RoutineId) -> Result<Option<RoutineRecord>> {
    let sql = format!("SELECT {COLUMNS} FROM routines WHERE tenant = ? AND id = ?");
    statement::first(connection, &sql, [tenant.as_str(), id.as_str()], read_row)
        .map_err(unreadable(connection, what(id)))
}

fn put(connection: &Connection, routine: &RoutineRecord) -> Result<()> {
    let created_at = get(connection, &routine.tenant, &routine.id)?.map(|known| known.created_at);
    let created_at = Nanos(created_at.unwrap_or(routine.created_at));
    let write = || {
        let (tenant, id, definition) =
            (routine.tenant.as_str(), routine.id.as_str(), json(&routine.definition)?);
        let (updated_at, through) = (Nanos(routine.updated_at), Nanos(routine.scheduled_through));
        let checksum = checksum::of(&[&tenant, &id, &definition, &created_at, &updated_at, &through])?;
        let sql = format!("INSERT OR REPLACE INTO routines ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)");
        let values = params![tenant, id, definition, created_at, updated_at, through, checksum];
        statement::execute(connection, &sql, values)
    };
    write().map(drop).map_err(failed::<rusqlite::Error>(format!("write {}", what(&routine.id))))
}

fn read_row(row: &Row<'_>) -> rusqlite::Result<RoutineRecord> {
    checksum::check(row, 6, Checksum::default().columns(row, 0..6)?.finish())?;
    Ok(RoutineRecord {
        tenant: row.get::<_, Parsed<_>>(0)?.0,
        id: row.get::<_, Parsed<_>>(1)?.0,
        definition: row.get::<_, Json<_>>(2)?.0,
        created_at: row.get::<_, Nanos>(3)?.0,
        updated_at: row.get::<_, Nanos>(4)?.0,
        scheduled_through: row.get::<_, Nanos>(5)?.0,
    })
}
