//! Tags: names that group agents, customers and context variables.

use std::collections::HashMap;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing;
use petasos_core::customer;
use petasos_core::ids::TenantId;
use petasos_core::key::KeyScope;
use petasos_engine::{Engine, TagChange};
use petasos_store::Bearer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::errors::Detail;
use crate::auth::{ReadsSessions, WritesSessions};
use crate::body::Body;
use crate::openapi::{Api, Operation};
use crate::problem::Problem;
use crate::query::Query;

pub(super) fn api() -> Api {
    let (read, write) = (KeyScope::SessionsRead, KeyScope::SessionsWrite);
    let (all, one) = ("/parlant/tags", "/parlant/tags/{tagId}");
    let list = Operation::new::<Vec<Tag>>("parlantListTags", "All tags.", read)
        .query("name", "Only the one of this name.", json!({ "type": "string" }))
        .fails_with::<Detail>();
    let make = Operation::new::<Tag>("parlantCreateTag", "Makes a tag.", write)
        .takes::<NameTag>()
        .creates()
        .fails_with::<Detail>();
    let get = Operation::new::<Tag>("parlantGetTag", "A tag.", read).fails_with::<Detail>();
    let rename = Operation::new::<Tag>("parlantRenameTag", "Gives a tag another name.", write)
        .takes::<NameTag>()
        .fails_with::<Detail>();
    let remove = Operation::new::<()>("parlantDeleteTag", "Removes a tag from all that bears it.", write)
        .empty()
        .fails_with::<Detail>();
    Api::default()
        .get(all, routing::get(list_tags), list)
        .post(all, routing::post(create), make)
        .get(one, routing::get(get_tag), get)
        .patch(one, routing::patch(rename_tag), rename)
        .delete(one, routing::delete(delete), remove)
}

/// A name that groups others.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ParlantTag")]
struct Tag {
    id: String,
    name: String,
}

impl From<customer::Tag> for Tag {
    fn from(customer::Tag { id, name }: customer::Tag) -> Self {
        Tag { id, name }
    }
}

/// What a tag is called.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ParlantNameTag")]
struct NameTag {
    name: String,
}

/// Tags to add and to take away, by their ids. `agent:` with the id of an agent stands for that agent.
#[derive(Deserialize, JsonSchema, Default)]
#[schemars(rename = "ParlantChangeTags")]
pub(super) struct ChangeTags {
    add: Option<Vec<String>>,
    remove: Option<Vec<String>>,
}

impl ChangeTags {
    /// A change that adds what something is made with.
    pub(super) fn adding(tags: Option<Vec<String>>) -> Self {
        ChangeTags { add: tags, remove: None }
    }

    /// Carries it out, and returns the tags that are there now.
    pub(super) async fn carry_out(
        self,
        engine: &Engine,
        tenant: &TenantId,
        (kind, id): (Bearer, &str),
    ) -> Result<Vec<String>, Problem> {
        let change = TagChange { add: self.add.unwrap_or_default(), remove: self.remove.unwrap_or_default() };
        engine.change_tags(tenant, (kind, id), change).await?;
        Ok(engine.tags_of(tenant, kind, vec![id.to_owned()]).await?.remove(id).unwrap_or_default())
    }

    /// Refuses tags that are not there, before anything is done.
    pub(super) async fn check(&self, engine: &Engine, tenant: &TenantId) -> Result<(), Problem> {
        Ok(engine.check_tags(tenant, self.add.as_deref().unwrap_or_default()).await?)
    }
}

/// Of how many the tags are read at once: each takes a look into the store, which serves others in between.
const AT_ONCE: usize = 100;

/// The tags of all of these, by id.
pub(super) async fn of_all(
    engine: &Engine,
    tenant: &TenantId,
    kind: Bearer,
    ids: impl Iterator<Item = String>,
) -> Result<HashMap<String, Vec<String>>, Problem> {
    let ids: Vec<String> = ids.collect();
    let mut tags = HashMap::new();
    for some in ids.chunks(AT_ONCE) {
        tags.extend(engine.tags_of(tenant, kind, some.to_vec()).await?);
    }
    Ok(tags)
}

async fn list_tags(
    State(engine): State<Engine>,
    ReadsSessions(tenant): ReadsSessions,
    query: Query,
) -> Result<Json<Vec<Tag>>, Problem> {
    let mut tags = engine.tags(&tenant).await?;
    tags.retain(|tag| query.text("name").is_none_or(|name| tag.name == name));
    Ok(Json(tags.into_iter().map(Tag::from).collect()))
}

async fn create(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Body(body): Body<NameTag>,
) -> Result<(StatusCode, Json<Tag>), Problem> {
    Ok((StatusCode::CREATED, Json(engine.create_tag(&tenant, &body.name).await?.into())))
}

async fn get_tag(
    State(engine): State<Engine>,
    ReadsSessions(tenant): ReadsSessions,
    Path(id): Path<String>,
) -> Result<Json<Tag>, Problem> {
    Ok(Json(engine.tag(&tenant, &id).await?.into()))
}

async fn rename_tag(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path(id): Path<String>,
    Body(body): Body<NameTag>,
) -> Result<Json<Tag>, Problem> {
    let tag = customer::Tag { id, name: body.name };
    Ok(Json(engine.rename_tag(&tenant, tag).await?.into()))
}

async fn delete(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    engine.delete_tag(&tenant, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}
