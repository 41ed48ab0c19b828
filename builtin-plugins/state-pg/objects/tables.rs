//! The tables of the layout: their names, their creation, and their migrations to newer versions.

use monoform_sdk::{Diagnostic, Result};

use crate::Tables;
use crate::client::{PREPARE, quoted};
use crate::session::{Connection, problem};
use crate::settings::Settings;

/// Statements that migrate from each version of the tables to the next one.
const MIGRATIONS: &[&str] = &[
    include_str!("tables_1.sql"),
    include_str!("tables_2.sql"),
    include_str!("tables_3.sql"),
];

/// Advisory lock that is held while the tables of a database are migrated. The number must differ from those of the default layout, which
/// are positive for states and negative with 32 bits for creation locks.
const MIGRATION_LOCK: i64 = -0x6d6f_6e6f_666f_726d;

/// Quoted name of the schema.
#[derive(Clone)]
pub(crate) struct Schema(String);

impl Schema {
    pub fn new(name: &str) -> Schema {
        Schema(quoted(name))
    }

    /// Inserts the name of the schema into a statement, which contains it as `{S}`, or as `'{S}.` at the start of a string.
    pub fn sql(&self, statement: &str) -> String {
        // An apostrophe in the name would end the string, so it is doubled.
        let in_string = format!("'{}.", self.0.replace('\'', "''"));
        statement.replace("'{S}.", &in_string).replace("{S}", &self.0)
    }
}

/// Reads the version of the tables; 0 if they do not exist.
async fn version(connection: &Connection, schema: &Schema) -> std::result::Result<i32, tokio_postgres::Error> {
    let table = schema.sql("{S}.layout");
    let there = connection
        .query_one("SELECT to_regclass($1) IS NOT NULL", &[&table])
        .await?;
    if !there.get::<_, bool>(0) {
        return Ok(0);
    }
    let row = connection
        .query_opt(&schema.sql("SELECT version FROM {S}.layout"), &[])
        .await?;
    Ok(row.map_or(0, |row| row.get(0)))
}

/// Creates the schema and its tables, or migrates the tables to the current version.
pub(crate) async fn prepare(connection: &Connection, settings: &Settings, tables: &Tables) -> Result<Schema> {
    let schema = Schema::new(&tables.schema);
    let prepared = connection.answer(settings, PREPARE, migrate(connection, tables, &schema));
    match prepared.await?.map_err(|e| problem(PREPARE, &settings.title, &e))? {
        State::Ready => Ok(schema),
        State::OtherLayout => Err(Diagnostic::error(
            "Schema has another layout",
            format!(
                "The PostgreSQL schema {:?} has a table \"states\" of the default layout, with a whole state in each row. Name \
                 another schema in schema_name, and move the states there with \"init -migrate-state\".",
                tables.schema
            ),
        )
        .at_attribute("schema_name")
        .into()),
        State::Newer(found) => Err(Diagnostic::error(
            "Tables are of a newer version",
            format!(
                "The tables in the PostgreSQL schema {:?} have the version {found}, and this program knows versions up to {}. \
                 Update this program.",
                tables.schema,
                MIGRATIONS.len()
            ),
        )
        .into()),
        State::Older(found) => Err(Diagnostic::error(
            "Tables are missing or of an older version",
            format!(
                "The tables in the PostgreSQL schema {:?} have the version {found}, and {} is needed. Run init once without \
                 skip_table_creation and skip_index_creation, as a user who may create tables.",
                tables.schema,
                MIGRATIONS.len()
            ),
        )
        .into()),
    }
}

enum State {
    Ready,
    /// The schema contains tables of the default layout.
    OtherLayout,
    Newer(i32),
    /// The tables have an older version, and the configuration does not allow changing them.
    Older(i32),
}

async fn migrate(
    connection: &Connection,
    tables: &Tables,
    schema: &Schema,
) -> std::result::Result<State, tokio_postgres::Error> {
    let current = i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX);
    // Usually the tables have the current version, so this check needs neither a lock nor a privilege.
    match version(connection, schema).await? {
        found if found == current => return Ok(State::Ready),
        found if found > current => return Ok(State::Newer(found)),
        0 => {
            let theirs = "SELECT to_regclass($1) IS NOT NULL";
            let row = connection.query_one(theirs, &[&schema.sql("{S}.states")]).await?;
            if row.get::<_, bool>(0) {
                return Ok(State::OtherLayout);
            }
        }
        _ => {}
    }
    if !(tables.create_table && tables.create_index) {
        return Ok(State::Older(version(connection, schema).await?));
    }
    connection.batch_execute("ROLLBACK; BEGIN").await?;
    let migrated = migrate_within(connection, tables, schema, current).await;
    let end = if migrated.is_ok() { "COMMIT" } else { "ROLLBACK" };
    let ended = connection.batch_execute(end).await;
    let state = migrated?;
    ended.map(|()| state)
}

/// Runs the missing migrations inside the caller's transaction.
async fn migrate_within(
    connection: &Connection,
    tables: &Tables,
    schema: &Schema,
    current: i32,
) -> std::result::Result<State, tokio_postgres::Error> {
    let lock = "SELECT pg_advisory_xact_lock($1)";
    connection.query_one(lock, &[&MIGRATION_LOCK]).await?;
    if tables.create_schema {
        let count = "SELECT count(1) FROM information_schema.schemata WHERE schema_name = $1";
        let row = connection.query_one(count, &[&tables.schema]).await?;
        if row.get::<_, i64>(0) < 1 {
            connection
                .batch_execute(&schema.sql("CREATE SCHEMA IF NOT EXISTS {S}"))
                .await?;
        }
    }
    // Another program may have migrated the tables before this one got the lock, so the version is read again.
    let found = version(connection, schema).await?;
    if found > current {
        return Ok(State::Newer(found));
    }
    if found == 0 {
        let create = "CREATE TABLE {S}.layout (only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row), version integer NOT \
                      NULL); INSERT INTO {S}.layout (version) VALUES (0)";
        connection.batch_execute(&schema.sql(create)).await?;
    }
    for migration in MIGRATIONS.iter().skip(usize::try_from(found).unwrap_or_default()) {
        connection.batch_execute(&schema.sql(migration)).await?;
    }
    let update = schema.sql("UPDATE {S}.layout SET version = $1");
    connection.execute(&update, &[&current]).await?;
    Ok(State::Ready)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_a_schema_is_quoted_as_a_name_and_in_a_string() {
        let schema = Schema::new("o'neil \"x\"");
        assert_eq!(
            schema.sql("SELECT '{S}.states'::regclass FROM {S}.states"),
            "SELECT '\"o''neil \"\"x\"\"\".states'::regclass FROM \"o'neil \"\"x\"\"\".states"
        );
    }
}
