//! Tables whose keys are names of the user's own, in the order in which they are written.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Names and what is said of each.
#[derive(Clone, Debug, PartialEq)]
pub struct InOrder<T>(pub Vec<(String, T)>);

impl<T> Default for InOrder<T> {
    fn default() -> Self {
        InOrder(Vec::new())
    }
}

impl<T> InOrder<T> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A text, or texts by name: `odds.age = "…"` is a table within a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Texts {
    Text(String),
    Named(InOrder<Texts>),
}

/// To a depth that no name needs: a schema that goes on for ever cannot be written out.
impl JsonSchema for Texts {
    fn schema_name() -> Cow<'static, str> {
        "Texts".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut schema = serde_json::json!({ "type": "string" });
        for _ in 0..4 {
            schema = serde_json::json!({ "type": ["string", "object"], "additionalProperties": schema });
        }
        schema.try_into().expect("a schema is a table")
    }
}

impl InOrder<Texts> {
    /// With dotted names instead of tables within tables: as a file it keeps its order.
    pub fn flat(&self) -> InOrder<Texts> {
        InOrder(self.texts().into_iter().map(|(name, text)| (name, Texts::Text(text.to_owned()))).collect())
    }

    /// All texts, with their dotted names.
    pub fn texts(&self) -> Vec<(String, &str)> {
        let mut found = Vec::new();
        for (name, texts) in &self.0 {
            match texts {
                Texts::Text(text) => found.push((name.clone(), text.as_str())),
                Texts::Named(inner) => {
                    found.extend(
                        inner.texts().into_iter().map(|(rest, text)| (format!("{name}.{rest}"), text)),
                    );
                }
            }
        }
        found
    }
}

impl<T: Serialize> Serialize for InOrder<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

struct InTurn<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for InTurn<T> {
    type Value = InOrder<T>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "a table")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<InOrder<T>, A::Error> {
        let mut found = Vec::new();
        while let Some(entry) = map.next_entry()? {
            found.push(entry);
        }
        Ok(InOrder(found))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for InOrder<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(InTurn(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for InOrder<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("InOrder_of_{}", T::schema_name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        BTreeMap::<String, T>::json_schema(generator)
    }
}
