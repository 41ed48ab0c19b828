//! State client of the default layout, which is Terraform's.

use std::sync::Arc;

use monoform_sdk::state_store::{DEFAULT, LockError, LockInfo, WorkspaceSupport};
use monoform_sdk::{Diagnostic, Result, async_trait};
use store_client::guard::{Holder, LockedStore, Revision, Snapshot, Written};
use tokio::sync::{Mutex, MutexGuard};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;

use crate::Tables;
use crate::session::{Connection, connect, problem};
use crate::settings::Settings;

/// Advisory lock that Terraform holds while it creates a workspace, whatever the schema is.
const TERRAFORM_CREATION: i64 = -1;

/// Time limit for acquiring the creation locks. This program and OpenTofu hold them only briefly. Terraform holds its lock during the whole
/// first apply.
const CREATION_TIMEOUT: &str = "2s";

/// Content of a row that exists only to be locked: a state without resources. It is not empty, because a killed program may leave the row
/// behind, and Terraform cannot read an empty text.
const UNWRITTEN: &str =
    "{\"version\":4,\"terraform_version\":\"1.0.0\",\"serial\":0,\"lineage\":\"\",\"outputs\":{},\"resources\":[]}";

/// Client for a table of states.
pub(crate) struct Client {
    settings: Settings,
    /// Quoted name of the table, including its schema.
    table: String,
    /// Advisory lock that is held while a workspace is created in this schema, as in OpenTofu.
    creation: i64,
    session: Mutex<Session>,
}

struct Session {
    connection: Arc<Connection>,
    /// Lock that this session holds.
    held: Option<Held>,
}

struct Held {
    /// Lock ID as it was returned.
    id: String,
    /// Number of the advisory lock.
    number: i64,
    /// True if the lock ended with a lost connection and was acquired again. Another program may have held it meanwhile.
    is_interrupted: bool,
    /// True if the row was created for this lock. Unless a state is written, the row is removed when the lock is released.
    is_new: bool,
}

/// Returns the creation lock of a schema, computed as in OpenTofu: the FNV-1 hash of the schema and table names. It is negative, so that it
/// is different from the IDs of rows.
fn creation_of(schema: &str) -> i64 {
    let hash = format!("{schema}\0states").bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        hash.wrapping_mul(0x0100_0193) ^ u32::from(byte)
    });
    -i64::from(hash)
}

/// Quotes text as an SQL literal.
fn literal(text: &str) -> String {
    format!("'{}'", text.split('\0').next().unwrap_or_default().replace('\'', "''"))
}

pub(crate) const PREPARE: &str = "Error preparing PostgreSQL";
pub(crate) const READ: &str = "Error reading the state";
pub(crate) const WRITE: &str = "Error writing the state";
pub(crate) const LOCK: &str = "Error acquiring the state lock";
pub(crate) const UNLOCK: &str = "Cannot release the state lock";
pub(crate) const LIST: &str = "Failed to list workspaces";

/// Quotes an SQL identifier.
pub(crate) fn quoted(name: &str) -> String {
    let name = name.split('\0').next().unwrap_or_default();
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Creates the schema, the table and the index if they are missing.
async fn create_missing(
    connection: &Connection,
    tables: &Tables,
    schema: &str,
    table: &str,
) -> std::result::Result<(), tokio_postgres::Error> {
    if tables.create_schema {
        let count = "SELECT count(1) FROM information_schema.schemata WHERE schema_name = $1";
        let row = connection.query_one(count, &[&tables.schema]).await?;
        // CREATE SCHEMA IF NOT EXISTS requires the privilege even if the schema exists.
        if row.get::<_, i64>(0) < 1 {
            let create = format!("CREATE SCHEMA IF NOT EXISTS {schema}");
            connection.batch_execute(&create).await?;
        }
    }
    if tables.create_table {
        let sequence = "CREATE SEQUENCE IF NOT EXISTS public.global_states_id_seq AS bigint";
        connection.batch_execute(sequence).await?;
        let create = format!(
            "CREATE TABLE IF NOT EXISTS {table} (id bigint NOT NULL DEFAULT nextval('public.global_states_id_seq') PRIMARY \
             KEY, name text UNIQUE, data text)"
        );
        connection.batch_execute(&create).await?;
    }
    if tables.create_index {
        let create = format!("CREATE UNIQUE INDEX IF NOT EXISTS states_by_name ON {table} (name)");
        connection.batch_execute(&create).await?;
    }
    Ok(())
}

impl Client {
    /// Connects, and creates the schema, the table and the index if they are missing.
    pub async fn prepare(settings: Settings, tables: &Tables) -> Result<Client> {
        let connection = connect(&settings).await?;
        let schema = quoted(&tables.schema);
        let table = format!("{schema}.states");
        let created = create_missing(&connection, tables, &schema, &table);
        connection
            .answer(&settings, PREPARE, created)
            .await?
            .map_err(|e| problem(PREPARE, &settings.title, &e))?;
        Ok(Client {
            table,
            creation: creation_of(&tables.schema),
            session: Mutex::new(Session {
                connection: Arc::new(connection),
                held: None,
            }),
            settings,
        })
    }

    fn problem(&self, summary: &str, error: &tokio_postgres::Error) -> monoform_sdk::Diagnostics {
        problem(summary, &self.settings.title, error)
    }

    /// Returns the session. If the connection was lost, a new one is made, and the lock, which ended with the old one, is acquired again
    /// unless another program holds it.
    async fn session(&self) -> Result<MutexGuard<'_, Session>> {
        let mut session = self.session.lock().await;
        if !session.connection.is_closed() {
            return Ok(session);
        }
        tracing::warn!("the connection to PostgreSQL was lost, and is made again");
        let connection = Arc::new(connect(&self.settings).await?);
        if let Some(held) = &mut session.held {
            let query = format!("SELECT pg_try_advisory_lock({})", held.number);
            // After an error, the session keeps the closed connection and the lock, so that the next request tries again. If the lock were
            // forgotten, later writes would count as writes without a lock.
            let row = connection
                .answer(&self.settings, LOCK, connection.query_one(&query, &[]))
                .await?;
            let got: bool = row.map_err(|e| self.problem(LOCK, &e))?.get(0);
            held.is_interrupted = true;
            // Another program holds the lock now. The session forgets it, so that writes under it are refused.
            if !got {
                session.held = None;
            }
        }
        session.connection = connection;
        Ok(session)
    }

    async fn query(
        &self,
        summary: &str,
        text: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<tokio_postgres::Row>> {
        let connection = self.session().await?.connection.clone();
        let rows = connection
            .answer(&self.settings, summary, connection.query(text, values))
            .await?;
        rows.map_err(|e| self.problem(summary, &e))
    }

    /// Locks the row of a workspace. A missing row is created, if the user may do that. The creation lock is released as soon as the row is
    /// locked, so that the first applies of other states do not have to wait.
    async fn try_lock(&self, connection: &Connection, workspace: &str) -> std::result::Result<Lock, Refusal> {
        let table = &self.table;
        let mut is_new = false;
        // Another program's unlock can remove its new row between two statements, so this is repeated.
        for _ in 0..10 {
            let find = format!("SELECT id, pg_try_advisory_lock(id) FROM {table} WHERE name = $1");
            let Some(row) = connection.query_opt(&find, &[&workspace]).await? else {
                if self.create(connection, workspace).await? {
                    is_new = true;
                    continue;
                }
                // A user with read permission only can still make a plan: without a row, only Terraform's creation lock is acquired, as
                // Terraform does.
                let query = format!("SELECT pg_try_advisory_lock({TERRAFORM_CREATION})");
                return match connection.query_one(&query, &[]).await?.get(0) {
                    true => Ok(Lock {
                        number: TERRAFORM_CREATION,
                        is_new: false,
                    }),
                    false => Err(Refusal::Held(format!(
                        "Already locked for workspace creation: {workspace}"
                    ))),
                };
            };
            let (id, locked): (i64, bool) = (row.get(0), row.get(1));
            if !locked {
                return Err(Refusal::Held(format!("Workspace is already locked: {workspace}")));
            }
            let release = async || {
                let unlock = format!("SELECT pg_advisory_unlock({id})");
                connection.query_one(&unlock, &[]).await.map(drop)
            };
            // During its first apply, Terraform holds only its creation lock, and no lock on the row, so that lock is checked, too.
            let refused = self.in_turn(connection, "_shared", "").await.err();
            let still = format!("SELECT data = $2 FROM {table} WHERE name = $1 AND id = {id}");
            let still = connection.query_opt(&still, &[&workspace, &UNWRITTEN]).await?;
            if let Some(error) = refused {
                if still.is_some() && is_new {
                    self.remove_unwritten(connection, workspace).await?;
                }
                release().await?;
                return Err(self.refusal(
                    error,
                    format!("Cannot lock workspace; already locked for workspace creation: {workspace}"),
                ));
            }
            match still {
                Some(row) => {
                    let is_unwritten = row.get::<_, Option<bool>>(0).unwrap_or_default();
                    return Ok(Lock {
                        number: id,
                        is_new: is_new && is_unwritten,
                    });
                }
                None => release().await?,
            }
        }
        Err(Refusal::Held(format!("Workspace is already locked: {workspace}")))
    }

    /// Runs a statement under the creation locks of this schema and of Terraform, so that no other program creates a workspace at the same
    /// time.
    async fn in_turn(
        &self,
        connection: &Connection,
        shared: &str,
        statement: &str,
    ) -> std::result::Result<(), tokio_postgres::Error> {
        let text = format!(
            "BEGIN; SET LOCAL lock_timeout = '{CREATION_TIMEOUT}'; SELECT pg_advisory_xact_lock{shared}({}); SELECT \
             pg_advisory_xact_lock{shared}({TERRAFORM_CREATION}); {statement} COMMIT",
            self.creation,
        );
        let result = connection.batch_execute(&text).await;
        if result.is_err() {
            // A failure is ignored, because closing the connection also ends the transaction.
            drop(connection.batch_execute("ROLLBACK").await);
        }
        result
    }

    fn refusal(&self, error: tokio_postgres::Error, held: String) -> Refusal {
        match error.code() {
            Some(code) if *code == SqlState::LOCK_NOT_AVAILABLE => Refusal::Held(held),
            _ => Refusal::Failed(error),
        }
    }

    /// Creates the row of a workspace. It is not an error if another program has just created it. Returns false if the user lacks the
    /// privilege.
    async fn create(&self, connection: &Connection, workspace: &str) -> std::result::Result<bool, Refusal> {
        let insert = format!(
            "INSERT INTO {} (name, data) VALUES ({}, {}) ON CONFLICT (name) DO NOTHING;",
            self.table,
            literal(workspace),
            literal(UNWRITTEN)
        );
        match self.in_turn(connection, "", &insert).await {
            Ok(()) => Ok(true),
            Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => Ok(false),
            Err(error) => Err(self.refusal(error, format!("Already locked for workspace creation: {workspace}"))),
        }
    }

    /// Removes a row that was created only to be locked.
    async fn remove_unwritten(
        &self,
        connection: &Connection,
        workspace: &str,
    ) -> std::result::Result<(), tokio_postgres::Error> {
        let text = format!("DELETE FROM {} WHERE name = $1 AND data = $2", self.table);
        connection.execute(&text, &[&workspace, &UNWRITTEN]).await.map(drop)
    }
}

/// Result of a successful attempt to lock.
struct Lock {
    number: i64,
    is_new: bool,
}

/// Reason why the lock was not acquired.
enum Refusal {
    Held(String),
    Failed(tokio_postgres::Error),
}

impl From<tokio_postgres::Error> for Refusal {
    fn from(error: tokio_postgres::Error) -> Refusal {
        Refusal::Failed(error)
    }
}

#[async_trait]
impl LockedStore for Client {
    fn support(&self) -> WorkspaceSupport {
        WorkspaceSupport::NamedAndDefault
    }

    async fn workspaces(&self) -> Result<Vec<String>> {
        let text = format!("SELECT name FROM {} WHERE name != 'default' ORDER BY name", self.table);
        let rows = self.query(LIST, &text, &[]).await?;
        let names = rows.iter().map(|row| row.get::<_, String>(0));
        Ok(std::iter::once(DEFAULT.to_owned()).chain(names).collect())
    }

    async fn read(&self, workspace: &str) -> Result<Snapshot> {
        let text = format!("SELECT data FROM {} WHERE name = $1", self.table);
        let rows = self.query(READ, &text, &[&workspace]).await?;
        let data = rows.first().and_then(|row| row.get::<_, Option<String>>(0));
        let written = data.filter(|data| !data.is_empty() && data != UNWRITTEN);
        Ok(written.map(String::into_bytes).into())
    }

    /// Writes without a condition: rows have no revisions, and the lock protects the state.
    async fn write(&self, workspace: &str, state: &[u8], _expected: Option<&Revision>) -> Result<Written> {
        let state = str::from_utf8(state).map_err(|_| {
            Diagnostic::error(
                WRITE,
                "The state is not UTF-8 text, so the table cannot store it. Nothing was written.",
            )
        })?;
        let text = format!(
            "INSERT INTO {} (name, data) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET data = $2 WHERE states.name = $1",
            self.table
        );
        self.query(WRITE, &text, &[&workspace, &state]).await?;
        Ok(Written::Done(None))
    }

    async fn delete(&self, workspace: &str) -> Result<()> {
        let text = format!("DELETE FROM {} WHERE name = $1", self.table);
        self.query(WRITE, &text, &[&workspace]).await.map(drop)
    }

    async fn lock(&self, workspace: &str, info: LockInfo) -> std::result::Result<String, LockError> {
        let mut session = self.session().await?;
        let connection = session.connection.clone();
        let taken = self.try_lock(&connection, workspace);
        match connection.answer(&self.settings, LOCK, taken).await? {
            Ok(lock) => {
                session.held = Some(Held {
                    id: info.id.clone(),
                    number: lock.number,
                    is_interrupted: false,
                    is_new: lock.is_new,
                });
                Ok(info.id)
            }
            // PostgreSQL does not store the holder of a lock. The caller's own record is returned as the holder, because -lock-timeout only
            // waits for a known holder.
            Err(Refusal::Held(message)) => {
                let number = format!(
                    "{message}. The lock information below is that of this attempt: PostgreSQL does not say who holds a lock. The \
                     lock ends with its session, which \"SELECT * FROM pg_locks WHERE locktype = 'advisory'\" shows."
                );
                Err(LockError::held(Some(info), number))
            }
            Err(Refusal::Failed(error)) => Err(self.problem(LOCK, &error).into()),
        }
    }

    async fn unlock(&self, workspace: &str, _id: &str) -> Result<()> {
        let mut session = self.session.lock().await;
        // A lock can be released only by its own session, and ends when that session ends.
        let Some(Held { number, is_new, .. }) = session.held.take() else {
            return Ok(());
        };
        if session.connection.is_closed() {
            return Ok(());
        }
        let connection = session.connection.clone();
        let released = async {
            if is_new {
                self.remove_unwritten(&connection, workspace).await?;
            }
            let text = format!("SELECT pg_advisory_unlock({number})");
            connection.query_one(&text, &[]).await.map(drop)
        };
        connection
            .answer(&self.settings, UNLOCK, released)
            .await?
            .map_err(|e| self.problem(UNLOCK, &e))
    }

    async fn holder(&self, _workspace: &str, own: &str) -> Result<Holder> {
        // The lock exists as long as the session. This request finds out whether the session still exists.
        self.query(WRITE, "SELECT 1", &[]).await?;
        Ok(match &self.session().await?.held {
            Some(held) if held.id == own && !held.is_interrupted => Holder::Own,
            Some(held) if held.id == own => Holder::Unknown,
            _ => Holder::Free,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn creation_locks_are_those_of_a_schema() {
        // The numbers that OpenTofu 1.12 uses.
        assert_eq!(creation_of("terraform_remote_state"), -3_797_183_428);
        assert_ne!(creation_of("a"), creation_of("b"));
        assert_eq!(literal("it's"), "'it''s'");
    }
}
