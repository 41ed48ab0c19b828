//! Copies of states in the data directory (`local_copy`), so that a read gets only the changes since the last one from the server.
//!
//! A copy is used if the history has every later revision, and if its own revision is still the one with the same run: after a restored
//! backup, another one may have its number.

use std::path::PathBuf;

use monoform_sdk::env;
use serde::{Deserialize, Serialize};
use store_client::sum::sha256_hex;

use super::document::{Document, Output, parse_resource};
use super::rows::{Failure, StateRow};
use super::tables::Schema;
use crate::session::Connection;
use crate::settings::Settings;

/// Directory of the copies, below the data directory.
const DIRECTORY: &str = "state-copies";

/// Changes from which a copy is written again.
const MANY: usize = 200;

const POLICY: files::Policy = files::Policy {
    mode: 0o600,
    keep_mode: false,
    // A damaged copy is noticed, and not used.
    durable: false,
};

/// Copies of the states of one schema.
pub(super) struct Copies {
    directory: PathBuf,
    /// Name of the database and of the schema.
    source: String,
}

/// First line of a file, before the document.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    /// Number of the state's row.
    state: i32,
    revision: i64,
    /// Entry of the history that has the revision, with the time of its run.
    mark: String,
    /// Checksum of the document.
    sum: String,
}

/// A state that was read with the help of a copy.
struct Continued {
    document: Document,
    changes: usize,
}

impl Copies {
    pub fn new(settings: &Settings, schema: &str) -> Copies {
        let data = env::var("TF_DATA_DIR").unwrap_or_else(|| ".terraform".to_owned());
        Copies {
            directory: PathBuf::from(data).join(DIRECTORY),
            source: format!("{} {schema}", settings.title),
        }
    }

    fn path(&self, workspace: &str) -> PathBuf {
        let name = sha256_hex(format!("{} {workspace}", self.source).as_bytes());
        self.directory.join(name)
    }

    /// Reads the state of a row, in the transaction that has begun.
    pub async fn read(
        &self,
        connection: &Connection,
        schema: &Schema,
        workspace: &str,
        row: &StateRow,
    ) -> Result<Document, Failure> {
        let copy = self.load(workspace);
        let continued = match copy {
            Some((head, document)) => continue_copy(connection, schema, row, &head, document).await?,
            None => None,
        };
        let (document, is_old) = match continued {
            Some(continued) => (continued.document, continued.changes >= MANY),
            None => (super::rows::read(connection, schema, row).await?, true),
        };
        if is_old && let Some(mark) = mark(connection, schema, row.id, row.revision).await? {
            self.save(workspace, row, mark, &document);
        }
        Ok(document)
    }

    fn load(&self, workspace: &str) -> Option<(Head, Document)> {
        let text = std::fs::read(self.path(workspace)).ok()?;
        let end = text.iter().position(|byte| *byte == b'\n')?;
        let (head, document) = text.split_at(end);
        let head: Head = serde_json::from_slice(head).ok()?;
        let document = document.get(1..)?;
        if sha256_hex(document) != head.sum {
            return None;
        }
        Some((head, Document::parse(document).ok()?))
    }

    fn save(&self, workspace: &str, row: &StateRow, mark: String, document: &Document) {
        let text = document.render();
        let head = Head {
            state: row.id,
            revision: row.revision,
            mark,
            sum: sha256_hex(&text),
        };
        let saved = || {
            files::private_directory(&self.directory)?;
            let mut content = serde_json::to_vec(&head)?;
            content.push(b'\n');
            content.extend(text);
            files::replace(&self.path(workspace), &content, POLICY)
        };
        if let Err(error) = saved() {
            tracing::warn!(
                "the copy of the state cannot be written to {}: {error}",
                self.directory.display()
            );
        }
    }
}

/// Returns the entry of the history that has a revision, with the time of its run.
async fn mark(connection: &Connection, schema: &Schema, state: i32, revision: i64) -> Result<Option<String>, Failure> {
    let text = "SELECT h.id || ' ' || extract(epoch FROM r.started_at) FROM {S}.history h JOIN {S}.runs r ON r.id = h.run_id WHERE \
                h.state_id = $1 AND h.revision = $2 AND h.kind = 'state'";
    let row = connection.query_opt(&schema.sql(text), &[&state, &revision]).await?;
    Ok(row.map(|row| row.get(0)))
}

/// Makes the changes since a copy; `None` if it cannot be used.
async fn continue_copy(
    connection: &Connection,
    schema: &Schema,
    row: &StateRow,
    head: &Head,
    mut document: Document,
) -> Result<Option<Continued>, Failure> {
    if head.state != row.id || head.revision > row.revision {
        return Ok(None);
    }
    if mark(connection, schema, row.id, head.revision).await?.as_ref() != Some(&head.mark) {
        return Ok(None);
    }
    let later = "SELECT kind, name, before::text, after::text FROM {S}.history WHERE state_id = $1 AND revision > $2 ORDER BY id";
    let rows = connection.query(&schema.sql(later), &[&row.id, &head.revision]).await?;
    let mut revisions = 0;
    for row in &rows {
        let (kind, name, before, after): (&str, &str, Option<&str>, Option<&str>) =
            (row.get(0), row.get(1), row.get(2), row.get(3));
        match kind {
            "state" => revisions += 1,
            "output" => {
                document.outputs.remove(name);
                if let Some(after) = after {
                    document
                        .outputs
                        .insert(name.to_owned(), Output::from_text(after, name)?);
                }
            }
            _ => {
                for (key, _) in before.map_or(Ok(Vec::new()), parse_resource)? {
                    document.objects.remove(&key);
                }
                document.objects.extend(after.map_or(Ok(Vec::new()), parse_resource)?);
            }
        }
    }
    // Rows of the history may have been deleted by hand.
    if revisions != row.revision - head.revision {
        return Ok(None);
    }
    document.head = row.head.clone();
    Ok(Some(Continued {
        document,
        changes: rows.len(),
    }))
}
