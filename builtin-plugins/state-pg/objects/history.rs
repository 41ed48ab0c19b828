//! Answers to questions about the history of a state, and results of queries.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::document::{Document, Head, Output, parse_resource};
use super::records;
use super::rows::{self, Failure};
use super::tables::Schema;
use crate::session::Connection;

/// A question, in the form that `proto::STATE_INQUIRY` describes.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Question {
    History { address: Option<Address> },
    StateAt { run: i64 },
    Query { sql: String },
    Unfinished {},
}

/// Parts of an address, as in the text of a state.
#[derive(Deserialize)]
pub(super) struct Address {
    module: String,
    mode: String,
    #[serde(rename = "type")]
    ty: String,
    name: String,
    /// Instance key as JSON; empty for an instance without a key. `None` means all instances.
    instance_key: Option<String>,
}

/// Reason why a question cannot be answered: a summary and a detail.
pub(super) type Refused = (&'static str, String);

/// Answers a question inside a transaction that has begun.
pub(super) async fn answer(
    connection: &Connection,
    schema: &Schema,
    workspace: &str,
    question: Question,
) -> Result<Result<Vec<u8>, Refused>, Failure> {
    match question {
        Question::History { address } => runs(connection, schema, workspace, address).await.map(Ok),
        Question::StateAt { run } => state_at(connection, schema, workspace, run).await,
        Question::Unfinished {} => records::unfinished(connection, schema, workspace).await.map(Ok),
        Question::Query { sql } => query(connection, schema, &sql).await,
    }
}

/// Lists the runs that wrote a state, with the objects that each run has changed. An object that was both created and removed in a run is
/// left out.
async fn runs(
    connection: &Connection,
    schema: &Schema,
    workspace: &str,
    address: Option<Address>,
) -> Result<Vec<u8>, Failure> {
    let text = "WITH changed AS (SELECT run_id, kind, module, mode, type, h.name, instance_key, deposed, (array_agg(before IS NULL \
                ORDER BY h.id))[1] AS created, (array_agg(after IS NULL ORDER BY h.id DESC))[1] AS deleted FROM {S}.history h JOIN \
                {S}.states s ON s.id = h.state_id WHERE s.name = $1 AND kind <> 'state' AND ($2::text IS NULL OR kind = 'object' \
                AND module = $2 AND mode = $3 AND type = $4 AND h.name = $5 AND ($6::text IS NULL OR instance_key = $6)) GROUP BY \
                run_id, kind, module, mode, type, h.name, instance_key, deposed), listed AS (SELECT r.id AS run, r.operation, r.who, \
                r.program_version, to_char(r.started_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') AS started_at, \
                coalesce(r.result, 'running') AS result, (SELECT (after->>'serial')::bigint FROM {S}.history h WHERE h.run_id = r.id \
                AND kind = 'state' ORDER BY h.id DESC LIMIT 1) AS serial, (SELECT coalesce(json_agg(json_build_object('kind', kind, \
                'module', module, 'mode', mode, 'type', type, 'name', c.name, 'instance_key', instance_key, 'deposed', deposed, \
                'action', CASE WHEN created THEN 'create' WHEN deleted THEN 'delete' ELSE 'update' END)), '[]') FROM changed c WHERE \
                c.run_id = r.id AND NOT (created AND deleted)) AS changes FROM {S}.runs r JOIN {S}.states s ON s.id = r.state_id \
                WHERE s.name = $1 AND ($2::text IS NULL OR r.id IN (SELECT run_id FROM changed WHERE NOT (created AND deleted)))) \
                SELECT coalesce(json_agg(listed ORDER BY run DESC), '[]')::text FROM listed";
    let (module, mode, ty, name, key) = match &address {
        None => (None, None, None, None, None),
        Some(address) => (
            Some(address.module.as_str()),
            Some(address.mode.as_str()),
            Some(address.ty.as_str()),
            Some(address.name.as_str()),
            address.instance_key.as_deref(),
        ),
    };
    let row = connection
        .query_one(&schema.sql(text), &[&workspace, &module, &mode, &ty, &name, &key])
        .await?;
    Ok(row.get::<_, String>(0).into_bytes())
}

/// Returns the text of a state as it was after a run. It is computed from the current state by undoing all later changes.
async fn state_at(
    connection: &Connection,
    schema: &Schema,
    workspace: &str,
    run: i64,
) -> Result<Result<Vec<u8>, Refused>, Failure> {
    let unknown = || {
        let detail = format!(
            "No run with the number {run} has written the state of the workspace {workspace:?}. \"state history\" lists the runs."
        );
        Ok(Err(("No such run", detail)))
    };
    let Some(row) = rows::state_row(connection, schema, workspace, "").await? else {
        return unknown();
    };
    let last = schema.sql("SELECT max(revision) FROM {S}.history WHERE state_id = $1 AND run_id = $2");
    let last: Option<i64> = connection.query_one(&last, &[&row.id, &run]).await?.get(0);
    let Some(last) = last else { return unknown() };
    let mut document = rows::read(connection, schema, &row).await?;
    let later = schema.sql(
        "SELECT kind, name, before::text, after::text FROM {S}.history WHERE state_id = $1 AND revision > $2 ORDER BY id DESC",
    );
    for row in connection.query(&later, &[&row.id, &last]).await? {
        let (kind, name, before, after): (&str, &str, Option<&str>, Option<&str>) =
            (row.get(0), row.get(1), row.get(2), row.get(3));
        undo(&mut document, kind, name, before, after)?;
    }
    Ok(Ok(document.render()))
}

fn undo(
    document: &mut Document,
    kind: &str,
    name: &str,
    before: Option<&str>,
    after: Option<&str>,
) -> Result<(), Failure> {
    match kind {
        "state" => {
            if let Some(before) = before {
                document.head = Head::from_text(before)?;
            }
        }
        "output" => {
            document.outputs.remove(name);
            if let Some(before) = before {
                document
                    .outputs
                    .insert(name.to_owned(), Output::from_text(before, name)?);
            }
        }
        _ => {
            if let Some(after) = after {
                for (key, _) in parse_resource(after)? {
                    document.objects.remove(&key);
                }
            }
            if let Some(before) = before {
                document.objects.extend(parse_resource(before)?);
            }
        }
    }
    Ok(())
}

/// Runs a single statement that returns rows, in the read-only transaction of the caller.
async fn query(connection: &Connection, schema: &Schema, sql: &str) -> Result<Result<Vec<u8>, Refused>, Failure> {
    let refused = |detail: &str| Ok(Err(("Query not supported", detail.to_owned())));
    let sql = sql.trim().trim_end_matches(';');
    connection
        .batch_execute(&schema.sql("SET LOCAL search_path = {S}"))
        .await?;
    // The text is prepared first, because the server refuses to prepare more than one statement. A single statement can safely be put in
    // parentheses.
    let statement = connection.prepare(sql).await?;
    let columns: Vec<&str> = statement.columns().iter().map(|column| column.name()).collect();
    if columns.is_empty() {
        return refused(
            "Only statements that return rows are supported, such as \"SELECT address FROM current_objects\".",
        );
    }
    let mut names = columns.clone();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        let detail = format!(
            "Two columns have the name {:?}. Give one of them another name with AS.",
            twice[0]
        );
        return Ok(Err(("Query not supported", detail)));
    }
    let wrapped = format!("SELECT coalesce(json_agg(q), '[]')::text FROM (\n{sql}\n) q");
    let row = connection.query_one(&wrapped, &[]).await?;
    let found: Vec<std::collections::BTreeMap<&str, &RawValue>> =
        serde_json::from_str(row.get(0)).map_err(|e| Failure::Document(super::document::content("the rows", e)))?;
    let rows: Vec<Vec<&RawValue>> = found
        .iter()
        .map(|row| columns.iter().filter_map(|name| row.get(name).copied()).collect())
        .collect();
    Ok(Ok(serde_json::json!({"columns": columns, "rows": rows})
        .to_string()
        .into_bytes()))
}
