//! Records that a run sends during the operation: intents, ends of operations, and outcomes. An outcome is written to the stored objects at
//! once, not at the end of the run.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::claims::{Instance, Wanted};
use super::document::{Document, Head, Key, Object};
use super::locks::IS_ALIVE;
use super::merge::{Difference, Made, Transaction};
use super::rows::Failure;
use super::tables::Schema;
use crate::session::Connection;

/// A request, in the form that `proto::STATE_REQUEST` describes.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Request {
    Claim(Wanted),
    Record(Vec<Record>),
    Forget { operations: Vec<i64> },
}

/// An intent, the end of an operation, or an outcome.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Record {
    Begin {
        intent: Box<RawValue>,
    },
    Outcome {
        address: String,
        object: Instance,
        #[serde(default)]
        answers: Option<String>,
        document: Box<RawValue>,
    },
    End {
        address: String,
        deposed: Option<String>,
        provision: bool,
    },
}

/// Fields of an intent that have columns.
#[derive(Deserialize)]
struct Intent {
    address: String,
    #[serde(default)]
    deposed: Option<String>,
    action: String,
}

/// Key of an operation in its run: the address, the key of the deposed object, and a flag for provisioners and actions, which run inside
/// another operation.
type Operation = (String, String, bool);

fn operation(intent: &Intent) -> Operation {
    let inside = matches!(intent.action.as_str(), "provision" | "invoke");
    (
        intent.address.clone(),
        intent.deposed.clone().unwrap_or_default(),
        inside,
    )
}

/// Combined effect of several records: the operations that begin and end, and the changes of objects.
#[derive(Default)]
struct Effect {
    ended: BTreeSet<Operation>,
    begun: BTreeMap<Operation, (String, String)>,
    difference: Difference,
}

impl Effect {
    /// Adds the effect of a record. `known` is the state as the run knows it.
    fn add(&mut self, record: &Record, known: &Document) -> Result<(), Failure> {
        let unreadable = |e: serde_json::Error| Failure::Document(super::document::content("a record", e));
        match record {
            Record::Begin { intent } => {
                let parts: Intent = serde_json::from_str(intent.get()).map_err(unreadable)?;
                let key = operation(&parts);
                self.ended.insert(key.clone());
                self.begun.insert(key, (parts.action, intent.get().to_owned()));
            }
            Record::End {
                address,
                deposed,
                provision,
            } => self.end((address.clone(), deposed.clone().unwrap_or_default(), *provision)),
            Record::Outcome {
                address,
                object,
                answers,
                document,
            } => {
                if let Some(answers) = answers {
                    let deposed = if answers == "current" { "" } else { answers };
                    self.end((address.clone(), deposed.to_owned(), false));
                }
                let next = Document::parse(document.get().as_bytes())?;
                self.replace(object.clone().key(), next.objects, known);
            }
        }
        Ok(())
    }

    fn end(&mut self, operation: Operation) {
        self.begun.remove(&operation);
        self.ended.insert(operation);
    }

    /// Replaces all objects of an instance.
    fn replace(&mut self, instance: Key, objects: BTreeMap<Key, Object>, known: &Document) {
        let Difference { before, after } = &mut self.difference;
        let is_of = |key: &Key| {
            let current = Key {
                deposed: String::new(),
                ..key.clone()
            };
            current == instance
        };
        let there = known.objects.range(&instance..).take_while(|(key, _)| is_of(key));
        for (key, object) in there {
            before.objects.insert(key.clone(), object.clone());
        }
        after.objects.retain(|key, _| !is_of(key));
        after.objects.extend(objects);
        // Objects that are equal are not changes.
        for key in before
            .objects
            .keys()
            .filter(|key| is_of(key))
            .cloned()
            .collect::<Vec<_>>()
        {
            if before.objects.get(&key) == after.objects.get(&key) {
                before.objects.remove(&key);
                after.objects.remove(&key);
            }
        }
    }
}

impl Transaction<'_> {
    /// Carries out records.
    pub async fn carry_out(&self, records: &[Record], known: &Document) -> Result<Made, Failure> {
        let mut effect = Effect::default();
        for record in records {
            effect.add(record, known)?;
        }
        self.end_operations(&effect.ended).await?;
        self.begin_operations(&effect.begun).await?;
        if effect.difference.is_empty() {
            effect.difference.after.head = known.head.clone();
            return Ok(Made {
                revision: self.row.revision,
                difference: effect.difference,
                conflicts: Vec::new(),
            });
        }
        let info = &self.held.ticket.info;
        let current = &self.row.head;
        let head = Head {
            terraform_version: match info.version.is_empty() {
                true => current.terraform_version.clone(),
                false => info.version.clone(),
            },
            // A new state needs a random lineage, and the lock ID is random.
            lineage: match current.lineage.is_empty() {
                true => info.id.clone(),
                false => current.lineage.clone(),
            },
            ..current.clone()
        };
        let mut made = self.write(effect.difference, head).await?;
        // The rest of the head stays as the run knows it, since its own changes are found by comparison at the end.
        made.difference.after.head = known.head.clone();
        Ok(made)
    }

    async fn end_operations(&self, ended: &BTreeSet<Operation>) -> Result<(), Failure> {
        if ended.is_empty() {
            return Ok(());
        }
        let addresses: Vec<&str> = ended.iter().map(|(address, _, _)| address.as_str()).collect();
        let deposed: Vec<&str> = ended.iter().map(|(_, deposed, _)| deposed.as_str()).collect();
        let inside: Vec<bool> = ended.iter().map(|(_, _, inside)| *inside).collect();
        let text = "DELETE FROM {S}.operations o USING unnest($2::text[], $3::text[], $4::boolean[]) AS gone (address, deposed, \
                    provision) WHERE o.run_id = $1 AND o.address = gone.address AND o.deposed = gone.deposed AND o.provision = \
                    gone.provision";
        self.connection
            .execute(&self.schema.sql(text), &[&self.run, &addresses, &deposed, &inside])
            .await?;
        Ok(())
    }

    async fn begin_operations(&self, begun: &BTreeMap<Operation, (String, String)>) -> Result<(), Failure> {
        if begun.is_empty() {
            return Ok(());
        }
        let addresses: Vec<&str> = begun.keys().map(|(address, _, _)| address.as_str()).collect();
        let deposed: Vec<&str> = begun.keys().map(|(_, deposed, _)| deposed.as_str()).collect();
        let inside: Vec<bool> = begun.keys().map(|(_, _, inside)| *inside).collect();
        let actions: Vec<&str> = begun.values().map(|(action, _)| action.as_str()).collect();
        let intents: Vec<&str> = begun.values().map(|(_, intent)| intent.as_str()).collect();
        let text = "INSERT INTO {S}.operations (state_id, run_id, address, deposed, provision, action, intent) SELECT $1, $2, address, \
                    deposed, provision, action, intent::json FROM unnest($3::text[], $4::text[], $5::boolean[], $6::text[], $7::text[]) AS \
                    new (address, deposed, provision, action, intent)";
        let (state, run) = (self.row.id, self.run);
        self.connection
            .execute(
                &self.schema.sql(text),
                &[&state, &run, &addresses, &deposed, &inside, &actions, &intents],
            )
            .await?;
        Ok(())
    }
}

/// Returns the SQL condition that the run `r` has ended.
fn has_ended() -> String {
    format!(
        "(r.result IS NOT NULL OR NOT EXISTS (SELECT FROM {{S}}.locks l WHERE l.lock_id = r.lock_id AND {IS_ALIVE}))"
    )
}

/// Lists the operations without an outcome, of runs that have ended.
pub(super) async fn unfinished(connection: &Connection, schema: &Schema, workspace: &str) -> Result<Vec<u8>, Failure> {
    let text = format!(
        "SELECT coalesce(json_agg(json_build_object('operation', o.id, 'run', r.operation, 'who', r.who, 'started_at', \
         to_char(r.started_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'), 'intent', o.intent) ORDER BY o.id), '[]')::text FROM \
         {{S}}.operations o JOIN {{S}}.runs r ON r.id = o.run_id JOIN {{S}}.states s ON s.id = o.state_id WHERE s.name = $1 AND {}",
        has_ended()
    );
    let row = connection.query_one(&schema.sql(&text), &[&workspace]).await?;
    Ok(row.get::<_, String>(0).into_bytes())
}

/// Removes operations of ended runs, which have been reported to the user.
pub(super) async fn forget(
    connection: &Connection,
    schema: &Schema,
    workspace: &str,
    operations: &[i64],
) -> Result<(), Failure> {
    let text = format!(
        "DELETE FROM {{S}}.operations o USING {{S}}.runs r, {{S}}.states s WHERE r.id = o.run_id AND s.id = o.state_id AND s.name = $1 AND \
         o.id = ANY($2) AND {}",
        has_ended()
    );
    connection
        .execute(&schema.sql(&text), &[&workspace, &operations])
        .await?;
    Ok(())
}
