//! JSON Schemas in a form that is quick to compare objects with. Walking the JSON of a schema for every request takes
//! longer than reading the request.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// Spellings that definitions of tools take besides those that they are described with.
const ALIASES: [(&str, &str); 4] = [
    ("default_config", "defaultConfig"),
    ("input_schema", "inputSchema"),
    ("mcp_server_name", "mcpServerName"),
    ("permission_policy", "permissionPolicy"),
];

/// A schema and all that it refers to.
pub(crate) struct Schemas(Vec<Schema>);

/// The place of a schema among all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SchemaId(usize);

/// A schema as far as it is about objects and lists.
#[derive(Default)]
pub(crate) struct Schema {
    pub(crate) allows_objects: bool,
    pub(crate) properties: HashMap<String, SchemaId>,
    pub(crate) others: Others,
    items: Option<SchemaId>,
    /// Schemas that hold at the same time.
    pub(crate) parts: Vec<SchemaId>,
    /// Schemas of which one holds.
    pub(crate) alternatives: Vec<SchemaId>,
    constants: Vec<(String, Value)>,
    required: Vec<String>,
}

/// The fields that an object may have besides those with names.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Others {
    #[default]
    None,
    Any,
    Like(SchemaId),
}

/// How well an object fits an alternative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Match {
    /// It says that it is another.
    No,
    /// It does not say, and something is missing.
    Unclear,
    /// It says that it is this one, and something is missing.
    ByName,
    /// It has everything that is required.
    Whole,
}

impl Schemas {
    /// Reads a schema, with the definitions that it refers to.
    pub(crate) fn read(root: &Value, definitions: &Map<String, Value>) -> Self {
        let mut reading = Reading { definitions, by_name: HashMap::new(), schemas: Vec::new() };
        reading.read(root);
        Schemas(reading.schemas)
    }

    pub(crate) fn root(&self) -> &Schema {
        self.get(SchemaId(0))
    }

    pub(crate) fn get(&self, SchemaId(index): SchemaId) -> &Schema {
        &self.0[index]
    }

    pub(crate) fn all<'a>(&'a self, ids: &'a [SchemaId]) -> impl Iterator<Item = &'a Schema> {
        ids.iter().map(|id| self.get(*id))
    }
}

impl Schema {
    /// Adds the schemas of the entries of a list.
    pub(crate) fn collect_items<'a>(&'a self, all: &'a Schemas, items: &mut Vec<&'a Schema>) {
        items.extend(self.items.map(|id| all.get(id)));
        all.all(&self.parts)
            .chain(all.all(&self.alternatives))
            .for_each(|part| part.collect_items(all, items));
    }

    /// How well an object fits what this schema describes.
    pub(crate) fn matches(&self, all: &Schemas, object: &Map<String, Value>) -> Match {
        let has = |name: &String| {
            object.contains_key(name)
                || ALIASES.iter().any(|(alias, own)| own == name && object.contains_key(*alias))
        };
        let mut is_named = false;
        for (name, constant) in &self.constants {
            match object.get(name) {
                Some(value) if value == constant => is_named = true,
                Some(_) => return Match::No,
                None => {}
            }
        }
        let best = all.all(&self.alternatives).map(|schema| schema.matches(all, object)).max();
        match best {
            Some(Match::No) => Match::No,
            Some(Match::Whole) | None if self.required.iter().all(has) => Match::Whole,
            Some(Match::ByName) => Match::ByName,
            _ if is_named => Match::ByName,
            _ => Match::Unclear,
        }
    }
}

/// The work of reading schemas.
struct Reading<'a> {
    definitions: &'a Map<String, Value>,
    by_name: HashMap<&'a str, SchemaId>,
    schemas: Vec<Schema>,
}

impl<'a> Reading<'a> {
    /// Reads a schema, or finds it if it is a definition that was read already.
    fn read(&mut self, schema: &'a Value) -> SchemaId {
        let id = SchemaId(self.schemas.len());
        let schema = match self.definition(schema) {
            Some((name, definition)) => {
                if let Some(known) = self.by_name.get(name) {
                    return *known;
                }
                self.by_name.insert(name, id);
                definition
            }
            None => schema,
        };
        // A definition may refer to itself, so it has its place before it is read.
        self.schemas.push(Schema::default());
        self.schemas[id.0] = self.parse(schema);
        id
    }

    fn definition(&self, schema: &'a Value) -> Option<(&'a str, &'a Value)> {
        let name = schema.get("$ref")?.as_str()?.rsplit('/').next()?;
        Some((name, self.definitions.get(name)?))
    }

    fn parse(&mut self, schema: &'a Value) -> Schema {
        let properties = schema.get("properties").and_then(Value::as_object);
        let alternatives: Vec<&Value> = ["oneOf", "anyOf"].iter().flat_map(|key| list(schema, key)).collect();
        let is_composed = !alternatives.is_empty() || list(schema, "allOf").next().is_some();
        let fields = properties.into_iter().flatten();
        let others = match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => Others::None,
            Some(like @ Value::Object(_)) => Others::Like(self.read(like)),
            Some(_) => Others::Any,
            None if properties.is_none() && !is_composed => Others::Any,
            None => Others::None,
        };
        let parts: Vec<SchemaId> = list(schema, "allOf").map(|part| self.read(part)).collect();
        let alternatives: Vec<SchemaId> = alternatives.into_iter().map(|schema| self.read(schema)).collect();
        Schema {
            allows_objects: allows_objects(schema),
            constants: fields
                .clone()
                .filter_map(|(name, schema)| Some((name.clone(), schema.get("const")?.clone())))
                .collect(),
            required: list(schema, "required").filter_map(Value::as_str).map(str::to_owned).collect(),
            properties: fields.map(|(name, schema)| (name.clone(), self.read(schema))).collect(),
            others,
            items: schema.get("items").map(|items| self.read(items)),
            parts,
            alternatives,
        }
    }
}

/// The name that a field is described with.
pub(crate) fn canonical(name: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name)
}

/// Whether a schema is about objects, among others.
fn allows_objects(schema: &Value) -> bool {
    match schema.get("type") {
        Some(Value::String(own)) => own == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|own| own == "object"),
        _ => schema.get("const").is_none() && schema.get("enum").is_none(),
    }
}

fn list<'a>(schema: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    schema.get(key).and_then(Value::as_array).into_iter().flatten()
}
