//! Learned skills: what an agent wrote down for a user.

use axum::Json;
use axum::extract::{Path, State};
use axum::routing;
use petasos_core::key::KeyScope;
use petasos_core::memory::{LearnedSkill, SkillSummary};
use petasos_engine::Engine;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Deleted, for_user, seconds, user_scope};
use crate::auth::{ReadsSessions, WritesSessions};
use crate::body::Body;
use crate::openapi::{Api, Operation};
use crate::page::Page;
use crate::problem::Problem;
use crate::query::Query;

pub(super) fn api() -> Api {
    let (read, write) = (KeyScope::SessionsRead, KeyScope::SessionsWrite);
    let one = "/v1/agents/{agentId}/learned-skills/{name}";
    Api::default()
        .get(
            "/v1/agents/{agentId}/learned-skills",
            routing::get(list),
            for_user(Operation::new::<Page<Listed>>(
                "listLearnedSkills",
                "What an agent learned with a user.",
                read,
            )),
        )
        .get(
            one,
            routing::get(get),
            for_user(Operation::new::<Skill>("getLearnedSkill", "One skill with its text.", read)),
        )
        .patch(
            one,
            routing::patch(change),
            for_user(Operation::new::<Skill>(
                "changeLearnedSkill",
                "Writes the text of a skill anew.",
                write,
            ))
            .takes::<Content>(),
        )
        .delete(
            one,
            routing::delete(delete),
            for_user(Operation::new::<Deleted>(
                "deleteLearnedSkill",
                "Removes a skill with its files.",
                write,
            )),
        )
        .get(
            "/v1/agents/{agentId}/learned-skills/{name}/file",
            routing::get(file),
            for_user(Operation::new::<SkillFile>("getLearnedSkillFile", "A file of a skill.", read))
                .required_query("path", "Its path.", json!({ "type": "string", "minLength": 1 })),
        )
}

/// A skill as it is listed.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ListedSkill")]
struct Listed {
    name: String,
    description: String,
    created_at: String,
    updated_at: String,
}

/// A skill.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LearnedSkill")]
struct Skill {
    #[serde(flatten)]
    listed: Listed,
    /// The text of `SKILL.md`.
    content: String,
    files: Vec<ListedFile>,
}

/// A file of a skill, as it is listed.
#[derive(Serialize, JsonSchema)]
struct ListedFile {
    path: String,
    bytes: u64,
}

/// A file of a skill.
#[derive(Serialize, JsonSchema)]
struct SkillFile {
    path: String,
    content: String,
}

/// The text of a skill from now on.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "LearnedSkillPatch")]
struct Content {
    content: String,
}

impl From<SkillSummary> for Listed {
    fn from(skill: SkillSummary) -> Self {
        let (created_at, updated_at) = (seconds(skill.created_at), seconds(skill.updated_at));
        Listed { name: skill.name, description: skill.description, created_at, updated_at }
    }
}

impl From<LearnedSkill> for Skill {
    fn from(skill: LearnedSkill) -> Self {
        let files = skill.files.into_iter().map(|file| ListedFile { path: file.path, bytes: file.bytes });
        Skill { listed: skill.summary.into(), content: skill.content, files: files.collect() }
    }
}

async fn list(
    State(engine): State<Engine>,
    ReadsSessions(tenant): ReadsSessions,
    Path(agent): Path<String>,
    query: Query,
) -> Result<Json<Page<Listed>>, Problem> {
    let skills = engine.learned_skills(&user_scope(tenant, &agent, &query)?).await?;
    Ok(Json(Page::new(skills.into_iter().map(Listed::from).collect(), None)))
}

async fn get(
    State(engine): State<Engine>,
    ReadsSessions(tenant): ReadsSessions,
    Path((agent, name)): Path<(String, String)>,
    query: Query,
) -> Result<Json<Skill>, Problem> {
    Ok(Json(engine.learned_skill(&user_scope(tenant, &agent, &query)?, &name).await?.into()))
}

async fn change(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path((agent, name)): Path<(String, String)>,
    query: Query,
    Body(change): Body<Content>,
) -> Result<Json<Skill>, Problem> {
    let scope = user_scope(tenant, &agent, &query)?;
    Ok(Json(engine.change_learned_skill(&scope, &name, &change.content).await?.into()))
}

async fn delete(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path((agent, name)): Path<(String, String)>,
    query: Query,
) -> Result<Json<Deleted>, Problem> {
    engine.delete_learned_skill(&user_scope(tenant, &agent, &query)?, &name).await?;
    Ok(Json(Deleted { id: name, deleted: true }))
}

async fn file(
    State(engine): State<Engine>,
    ReadsSessions(tenant): ReadsSessions,
    Path((agent, name)): Path<(String, String)>,
    query: Query,
) -> Result<Json<SkillFile>, Problem> {
    let path = query.text("path").ok_or_else(|| Problem::validation("path", "is missing"))?;
    let content = engine.learned_skill_file(&user_scope(tenant, &agent, &query)?, &name, path).await?;
    Ok(Json(SkillFile { path: path.to_owned(), content }))
}
