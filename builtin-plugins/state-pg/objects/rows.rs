//! Reads a state from the rows of the tables, and writes the differences between two states to them.

use std::collections::BTreeMap;

use tokio_postgres::Row;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;

use super::document::{Document, DocumentError, Head, Key, Object, Output, Rest};
use super::json::Json;
use super::tables::Schema;
use crate::session::Connection;

/// Number of rows that one statement writes.
const BATCH: usize = 1000;

/// Reason why rows could not be read or written.
#[derive(Debug)]
pub(crate) enum Failure {
    Database(tokio_postgres::Error),
    Document(DocumentError),
}

/// Errors of a server that ends, starts, or has become a standby.
const ENDING: &[SqlState] = &[
    SqlState::ADMIN_SHUTDOWN,
    SqlState::CRASH_SHUTDOWN,
    SqlState::CANNOT_CONNECT_NOW,
    SqlState::READ_ONLY_SQL_TRANSACTION,
];

impl Failure {
    /// Returns true if the connection has ended, or the server is about to end it.
    pub fn ends_connection(&self) -> bool {
        match self {
            Failure::Database(error) => error.is_closed() || error.code().is_some_and(|code| ENDING.contains(code)),
            Failure::Document(_) => false,
        }
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Failure {
        Failure::Database(error)
    }
}

impl From<DocumentError> for Failure {
    fn from(error: DocumentError) -> Failure {
        Failure::Document(error)
    }
}

/// Row of a state.
pub(crate) struct StateRow {
    pub id: i32,
    pub revision: i64,
    pub head: Head,
}

/// Reads the row of a state; `None` if there is none. `lock` is an SQL locking clause, or empty.
pub(crate) async fn state_row(
    connection: &Connection,
    schema: &Schema,
    workspace: &str,
    lock: &str,
) -> Result<Option<StateRow>, Failure> {
    let text = schema.sql(
        "SELECT id, revision, lineage, serial, terraform_version, check_results::text, rest::text FROM {S}.states WHERE name = $1 ",
    );
    let row = connection.query_opt(&(text + lock), &[&workspace]).await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(StateRow {
        id: row.get(0),
        revision: row.get(1),
        head: Head {
            lineage: row.get(2),
            serial: row.get(3),
            terraform_version: row.get(4),
            check_results: Json::compact(row.get(5)),
            rest: Rest::from_text(row.get(6))?,
        },
    }))
}

/// Reads the state of a row.
pub(crate) async fn read(connection: &Connection, schema: &Schema, row: &StateRow) -> Result<Document, Failure> {
    Ok(Document {
        head: row.head.clone(),
        outputs: read_outputs(connection, schema, row.id).await?,
        objects: read_objects(connection, schema, row.id, None).await?,
    })
}

/// Reads the outputs of a state.
pub(crate) async fn read_outputs(
    connection: &Connection,
    schema: &Schema,
    state: i32,
) -> Result<BTreeMap<String, Output>, Failure> {
    let mut outputs = BTreeMap::new();
    let text = schema.sql(
        "SELECT name, value::text, value_exact::text, type::text, sensitive, rest::text FROM {S}.outputs WHERE state_id = $1",
    );
    for row in connection.query(&text, &[&state]).await? {
        let output = Output {
            value: Json::from_columns(row.get(1), row.get(2)),
            ty: Json::compact(row.get(3)),
            sensitive: row.get(4),
            rest: Rest::from_text(row.get(5))?,
        };
        outputs.insert(row.get(0), output);
    }
    Ok(outputs)
}

/// Reads the objects of a state: all of them, or only those with these [sums](Key::sum).
pub(crate) async fn read_objects(
    connection: &Connection,
    schema: &Schema,
    state: i32,
    sums: Option<&[String]>,
) -> Result<BTreeMap<Key, Object>, Failure> {
    let mut objects = BTreeMap::new();
    let text = schema.sql(
        "SELECT module, mode, type, name, instance_key, deposed, provider, status, schema_version, CASE WHEN attributes_exact IS \
         NULL THEN attributes::text END, attributes_exact::text, sensitive_attributes::text, private, dependencies, \
         create_before_destroy, rest::text FROM {S}.objects WHERE state_id = $1 AND ($2::text[] IS NULL OR key = ANY($2))",
    );
    for row in connection.query(&text, &[&state, &sums]).await? {
        let (key, object) = object(&row)?;
        objects.insert(key, object);
    }
    Ok(objects)
}

fn object(row: &Row) -> Result<(Key, Object), DocumentError> {
    let key = Key {
        module: row.get(0),
        mode: row.get(1),
        ty: row.get(2),
        name: row.get(3),
        instance: row.get(4),
        deposed: row.get(5),
    };
    let (attributes, exact): (Option<&str>, Option<&str>) = (row.get(9), row.get(10));
    let object = Object {
        provider: row.get(6),
        status: row.get(7),
        schema_version: row.get(8),
        attributes: (attributes.is_some() || exact.is_some()).then(|| Json::from_columns(attributes, exact)),
        sensitive: Json::compact(row.get(11)),
        private: row.get(12),
        dependencies: row.get(13),
        create_before_destroy: row.get(14),
        rest: Rest::from_text(row.get(15))?,
    };
    Ok((key, object))
}

/// An entry that differs between two states.
pub(super) struct Change<'d, T> {
    pub before: Option<&'d T>,
    pub after: Option<&'d T>,
}

/// Returns the entries of two maps that differ.
pub(super) fn changes<'d, K: Ord, T: PartialEq>(
    before: &'d BTreeMap<K, T>,
    after: &'d BTreeMap<K, T>,
) -> Vec<(&'d K, Change<'d, T>)> {
    let gone = before.iter().filter(|(key, _)| !after.contains_key(key));
    let gone = gone.map(|(key, value)| {
        let change = Change {
            before: Some(value),
            after: None,
        };
        (key, change)
    });
    let others = after.iter().map(|(key, value)| {
        let change = Change {
            before: before.get(key),
            after: Some(value),
        };
        (key, change)
    });
    gone.chain(others.filter(|(_, change)| change.before != change.after))
        .collect()
}

/// Writes the next revision of a state, inside a transaction.
pub(crate) struct Revision<'a> {
    pub connection: &'a Connection,
    pub schema: &'a Schema,
    pub state: i32,
    pub run: i64,
    /// Number of the new revision.
    pub number: i64,
}

impl Revision<'_> {
    /// Writes the differences between two states, and their history.
    pub async fn write(&self, before: &Document, after: &Document) -> Result<(), Failure> {
        let objects = changes(&before.objects, &after.objects);
        let outputs = changes(&before.outputs, &after.outputs);
        let mut history = vec![Entry {
            kind: "state",
            key: Key {
                module: String::new(),
                mode: String::new(),
                ty: String::new(),
                name: String::new(),
                instance: String::new(),
                deposed: String::new(),
            },
            address: String::new(),
            before: (self.number > 1).then(|| before.head.to_text()),
            after: Some(after.head.to_text()),
        }];
        history.extend(objects.iter().map(|(key, change)| Entry {
            kind: "object",
            key: (*key).clone(),
            address: key.address(),
            before: change.before.map(|object| object.to_text(key)),
            after: change.after.map(|object| object.to_text(key)),
        }));
        history.extend(outputs.iter().map(|(name, change)| Entry {
            kind: "output",
            key: Key {
                module: String::new(),
                mode: String::new(),
                ty: String::new(),
                name: (*name).clone(),
                instance: String::new(),
                deposed: String::new(),
            },
            address: format!("output.{name}"),
            before: change.before.map(Output::to_text),
            after: change.after.map(Output::to_text),
        }));
        self.remove(&objects, &outputs).await?;
        let kept = objects.iter().filter_map(|(key, change)| Some((*key, change.after?)));
        for batch in kept.collect::<Vec<_>>().chunks(BATCH) {
            self.put_objects(batch).await?;
        }
        let kept = outputs
            .iter()
            .filter_map(|(name, change)| Some((name.as_str(), change.after?)));
        for batch in kept.collect::<Vec<_>>().chunks(BATCH) {
            self.put_outputs(batch).await?;
        }
        for batch in history.chunks(BATCH) {
            self.put_history(batch).await?;
        }
        self.put_head(&after.head).await
    }

    async fn execute(&self, text: &str, values: &[&(dyn ToSql + Sync)]) -> Result<(), Failure> {
        self.connection.execute(&self.schema.sql(text), values).await?;
        Ok(())
    }

    async fn remove(
        &self,
        objects: &[(&Key, Change<'_, Object>)],
        outputs: &[(&String, Change<'_, Output>)],
    ) -> Result<(), Failure> {
        let gone = objects.iter().filter(|(_, change)| change.after.is_none());
        let keys: Vec<String> = gone.map(|(key, _)| key.sum()).collect();
        if !keys.is_empty() {
            let text = "DELETE FROM {S}.objects WHERE state_id = $1 AND key = ANY($2)";
            self.execute(text, &[&self.state, &keys]).await?;
        }
        let gone = outputs.iter().filter(|(_, change)| change.after.is_none());
        let names: Vec<&str> = gone.map(|(name, _)| name.as_str()).collect();
        if !names.is_empty() {
            let text = "DELETE FROM {S}.outputs WHERE state_id = $1 AND name = ANY($2)";
            self.execute(text, &[&self.state, &names]).await?;
        }
        Ok(())
    }

    async fn put_objects(&self, objects: &[(&Key, &Object)]) -> Result<(), Failure> {
        let texts = |part: fn(&Key) -> &str| -> Vec<&str> { objects.iter().map(|(key, _)| part(key)).collect() };
        let sums: Vec<String> = objects.iter().map(|(key, _)| key.sum()).collect();
        let addresses: Vec<String> = objects.iter().map(|(key, _)| key.address()).collect();
        let columns: Vec<(Option<&str>, Option<&str>)> = objects
            .iter()
            .map(|(_, object)| object.attributes.as_ref().map_or((None, None), Json::columns))
            .collect();
        let (attributes, exact): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
        let sensitive: Vec<&str> = objects.iter().map(|(_, object)| object.sensitive.as_str()).collect();
        let private: Vec<Option<&[u8]>> = objects.iter().map(|(_, object)| object.private.as_deref()).collect();
        let dependencies: Vec<String> = objects
            .iter()
            .map(|(_, object)| serde_json::Value::from(object.dependencies.clone()).to_string())
            .collect();
        let providers: Vec<&str> = objects.iter().map(|(_, object)| object.provider.as_str()).collect();
        let statuses: Vec<&str> = objects.iter().map(|(_, object)| object.status.as_str()).collect();
        let versions: Vec<i64> = objects.iter().map(|(_, object)| object.schema_version).collect();
        let first: Vec<bool> = objects.iter().map(|(_, object)| object.create_before_destroy).collect();
        let rest: Vec<String> = objects.iter().map(|(_, object)| object.rest.to_text()).collect();
        let text = "INSERT INTO {S}.objects (state_id, run_id, key, address, module, mode, type, name, instance_key, deposed, \
                    provider, status, schema_version, attributes, attributes_exact, sensitive_attributes, private, dependencies, \
                    create_before_destroy, rest) SELECT $1, $2, key, address, module, mode, type, name, instance_key, deposed, \
                    provider, status, schema_version, attributes::jsonb, exact::json, sensitive::json, private, \
                    ARRAY(SELECT json_array_elements_text(dependencies::json)), first, rest::json FROM unnest($3::text[], \
                    $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], \
                    $13::bigint[], $14::text[], $15::text[], $16::text[], $17::bytea[], $18::text[], $19::boolean[], $20::text[]) \
                    AS new (key, address, module, mode, type, name, instance_key, deposed, provider, status, schema_version, \
                    attributes, exact, sensitive, private, dependencies, first, rest) ON CONFLICT (state_id, key) DO UPDATE SET \
                    run_id = EXCLUDED.run_id, provider = EXCLUDED.provider, status = EXCLUDED.status, schema_version = \
                    EXCLUDED.schema_version, attributes = EXCLUDED.attributes, attributes_exact = EXCLUDED.attributes_exact, \
                    sensitive_attributes = EXCLUDED.sensitive_attributes, private = EXCLUDED.private, dependencies = \
                    EXCLUDED.dependencies, create_before_destroy = EXCLUDED.create_before_destroy, rest = EXCLUDED.rest, \
                    updated_at = now()";
        self.execute(
            text,
            &[
                &self.state,
                &self.run,
                &sums,
                &addresses,
                &texts(|key| &key.module),
                &texts(|key| &key.mode),
                &texts(|key| &key.ty),
                &texts(|key| &key.name),
                &texts(|key| &key.instance),
                &texts(|key| &key.deposed),
                &providers,
                &statuses,
                &versions,
                &attributes,
                &exact,
                &sensitive,
                &private,
                &dependencies,
                &first,
                &rest,
            ],
        )
        .await
    }

    async fn put_outputs(&self, outputs: &[(&str, &Output)]) -> Result<(), Failure> {
        let names: Vec<&str> = outputs.iter().map(|(name, _)| *name).collect();
        let columns = outputs.iter().map(|(_, output)| output.value.columns());
        let (values, exact): (Vec<_>, Vec<_>) = columns.unzip();
        let types: Vec<&str> = outputs.iter().map(|(_, output)| output.ty.as_str()).collect();
        let sensitive: Vec<bool> = outputs.iter().map(|(_, output)| output.sensitive).collect();
        let rest: Vec<String> = outputs.iter().map(|(_, output)| output.rest.to_text()).collect();
        let text = "INSERT INTO {S}.outputs (state_id, run_id, name, value, value_exact, type, sensitive, rest) SELECT $1, $2, \
                    name, value::jsonb, exact::json, type::json, sensitive, rest::json FROM unnest($3::text[], $4::text[], \
                    $5::text[], $6::text[], $7::boolean[], $8::text[]) AS new (name, value, exact, type, sensitive, rest) ON \
                    CONFLICT (state_id, name) DO UPDATE SET run_id = EXCLUDED.run_id, value = EXCLUDED.value, value_exact = \
                    EXCLUDED.value_exact, type = EXCLUDED.type, sensitive = EXCLUDED.sensitive, rest = EXCLUDED.rest";
        self.execute(
            text,
            &[
                &self.state,
                &self.run,
                &names,
                &values,
                &exact,
                &types,
                &sensitive,
                &rest,
            ],
        )
        .await
    }

    async fn put_history(&self, entries: &[Entry]) -> Result<(), Failure> {
        let kinds: Vec<&str> = entries.iter().map(|entry| entry.kind).collect();
        let addresses: Vec<&str> = entries.iter().map(|entry| entry.address.as_str()).collect();
        let texts = |part: fn(&Key) -> &str| -> Vec<&str> { entries.iter().map(|entry| part(&entry.key)).collect() };
        let before: Vec<Option<&str>> = entries.iter().map(|entry| entry.before.as_deref()).collect();
        let after: Vec<Option<&str>> = entries.iter().map(|entry| entry.after.as_deref()).collect();
        let text = "INSERT INTO {S}.history (state_id, run_id, revision, kind, address, module, mode, type, name, instance_key, \
                    deposed, before, after) SELECT $1, $2, $3, kind, address, module, mode, type, name, instance_key, deposed, \
                    before::json, after::json FROM unnest($4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], \
                    $10::text[], $11::text[], $12::text[], $13::text[]) AS new (kind, address, module, mode, type, name, \
                    instance_key, deposed, before, after)";
        self.execute(
            text,
            &[
                &self.state,
                &self.run,
                &self.number,
                &kinds,
                &addresses,
                &texts(|key| &key.module),
                &texts(|key| &key.mode),
                &texts(|key| &key.ty),
                &texts(|key| &key.name),
                &texts(|key| &key.instance),
                &texts(|key| &key.deposed),
                &before,
                &after,
            ],
        )
        .await
    }

    async fn put_head(&self, head: &Head) -> Result<(), Failure> {
        let text = "UPDATE {S}.states SET revision = $2, lineage = $3, serial = $4, terraform_version = $5, check_results = \
                    $6::text::json, rest = $7::text::json, updated_at = now() WHERE id = $1";
        let checks = head.check_results.as_str();
        self.execute(
            text,
            &[
                &self.state,
                &self.number,
                &head.lineage,
                &head.serial,
                &head.terraform_version,
                &checks,
                &head.rest.to_text(),
            ],
        )
        .await
    }
}

/// Row of the history.
struct Entry {
    kind: &'static str,
    key: Key,
    address: String,
    before: Option<String>,
    after: Option<String>,
}
