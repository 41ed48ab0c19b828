//! The statements.

use std::sync::Arc;

use monoform_sdk::state_store::{DEFAULT, LockError, LockInfo, WorkspaceSupport};
use monoform_sdk::{Diagnostic, Result, async_trait};
use store_client::guard::{Holder, LockedStore, Revision, Snapshot, Written};
use tokio::sync::{Mutex, MutexGuard};
use tokio_postgres::Client as Connection;
use tokio_postgres::types::ToSql;

use crate::Tables;
use crate::session::{connect, problem};
use crate::settings::Settings;

/// The lock for creating a workspace.
const CREATION: i64 = -1;

/// A table of states.
pub(crate) struct Client {
    settings: Settings,
    /// The table with its schema, as it stands in statements.
    table: String,
    session: Mutex<Session>,
}

struct Session {
    connection: Arc<Connection>,
    /// The lock that this session holds.
    held: Option<Held>,
}

/// A lock of a session.
struct Held {
    /// Its name, as it was told.
    id: String,
    /// The number of the advisory lock.
    number: i64,
    /// Whether it was lost with the connection, and taken anew: another program may have had it for a time.
    is_interrupted: bool,
}

const READ: &str = "Error reading the state";
const WRITE: &str = "Error writing the state";
const LOCK: &str = "Error acquiring the state lock";
const LIST: &str = "Failed to list workspaces";

/// An identifier as it stands in a statement.
fn quoted(name: &str) -> String {
    let name = name.split('\0').next().unwrap_or_default();
    format!("\"{}\"", name.replace('"', "\"\""))
}

impl Client {
    /// Connects, and creates what is missing.
    pub async fn prepare(settings: Settings, tables: &Tables) -> Result<Client> {
        let connection = connect(&settings).await?;
        let failed = |e: tokio_postgres::Error| problem("Error preparing PostgreSQL", &settings.title, &e);
        let schema = quoted(&tables.schema);
        let table = format!("{schema}.states");
        if tables.create_schema {
            let count = "SELECT count(1) FROM information_schema.schemata WHERE schema_name = $1";
            let row = connection.query_one(count, &[&tables.schema]).await.map_err(failed)?;
            // Where the schema is there, the privilege to create one is not needed.
            if row.get::<_, i64>(0) < 1 {
                let create = format!("CREATE SCHEMA IF NOT EXISTS {schema}");
                connection.batch_execute(&create).await.map_err(failed)?;
            }
        }
        if tables.create_table {
            let sequence = "CREATE SEQUENCE IF NOT EXISTS public.global_states_id_seq AS bigint";
            connection.batch_execute(sequence).await.map_err(failed)?;
            let create = format!(
                "CREATE TABLE IF NOT EXISTS {table} (id bigint NOT NULL DEFAULT nextval('public.global_states_id_seq') PRIMARY \
                 KEY, name text UNIQUE, data text)"
            );
            connection.batch_execute(&create).await.map_err(failed)?;
        }
        if tables.create_index {
            let create = format!("CREATE UNIQUE INDEX IF NOT EXISTS states_by_name ON {table} (name)");
            connection.batch_execute(&create).await.map_err(failed)?;
        }
        Ok(Client {
            table,
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

    /// The session, connected again if the connection was lost. A lock is lost with it, and must be had again.
    async fn session(&self) -> Result<MutexGuard<'_, Session>> {
        let mut session = self.session.lock().await;
        if !session.connection.is_closed() {
            return Ok(session);
        }
        tracing::warn!("the connection to PostgreSQL was lost, and is made again");
        session.connection = Arc::new(connect(&self.settings).await?);
        if let Some(mut held) = session.held.take() {
            let query = format!("SELECT pg_try_advisory_lock({})", held.number);
            let row = session.connection.query_one(&query, &[]).await;
            let got: bool = row.map_err(|e| self.problem(LOCK, &e))?.get(0);
            // Where another program has it, it is lost, and no write is made under it.
            if got {
                held.is_interrupted = true;
                session.held = Some(held);
            }
        }
        Ok(session)
    }

    async fn query(
        &self,
        summary: &str,
        text: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<tokio_postgres::Row>> {
        let connection = self.session().await?.connection.clone();
        let rows = connection.query(text, values).await;
        rows.map_err(|e| self.problem(summary, &e))
    }

    async fn try_lock(&self, session: &mut Session, workspace: &str) -> std::result::Result<i64, Refusal> {
        let table = &self.table;
        let connection = &session.connection;
        let both = format!(
            "SELECT id, pg_try_advisory_lock(id), pg_try_advisory_lock({CREATION}) FROM {table} WHERE name = $1"
        );
        let row = connection.query_opt(&both, &[&workspace]).await?;
        let release = async |number: i64| {
            let unlock = format!("SELECT pg_advisory_unlock({number})");
            connection.query_one(&unlock, &[]).await.map(drop)
        };
        let Some(row) = row else {
            // The workspace is being created.
            let query = format!("SELECT pg_try_advisory_lock({CREATION})");
            return match connection.query_one(&query, &[]).await?.get(0) {
                true => Ok(CREATION),
                false => Err(Refusal::Held(format!(
                    "Already locked for workspace creation: {workspace}"
                ))),
            };
        };
        let (id, locked, creation): (i64, bool, bool) = (row.get(0), row.get(1), row.get(2));
        if creation {
            release(CREATION).await?;
        }
        match (locked, creation) {
            (true, true) => Ok(id),
            (false, _) => Err(Refusal::Held(format!("Workspace is already locked: {workspace}"))),
            (true, false) => {
                release(id).await?;
                Err(Refusal::Held(format!(
                    "Cannot lock workspace; already locked for workspace creation: {workspace}"
                )))
            }
        }
    }
}

/// Why there is no lock.
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
        Ok(data.filter(|data| !data.is_empty()).map(String::into_bytes).into())
    }

    /// The lock of the session is the condition.
    async fn write(&self, workspace: &str, state: &[u8], _expected: Option<&Revision>) -> Result<Written> {
        let state = str::from_utf8(state)
            .map_err(|_| Diagnostic::error(WRITE, "The state is no text in UTF-8, which is what the column takes."))?;
        let text = format!(
            "INSERT INTO {} (name, data) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET data = $2 WHERE states.name = $1",
            self.table
        );
        self.query(WRITE, &text, &[&workspace, &state]).await?;
        Ok(Written::Done(None))
    }

    async fn delete(&self, workspace: &str) -> Result<()> {
        if workspace == DEFAULT || workspace.is_empty() {
            return Err(
                Diagnostic::error("Cannot delete the workspace", "The default workspace is always there.").into(),
            );
        }
        let text = format!("DELETE FROM {} WHERE name = $1", self.table);
        self.query(WRITE, &text, &[&workspace]).await.map(drop)
    }

    async fn lock(&self, workspace: &str, info: LockInfo) -> std::result::Result<String, LockError> {
        let mut session = self.session().await?;
        match self.try_lock(&mut session, workspace).await {
            Ok(number) => {
                session.held = Some(Held {
                    id: info.id.clone(),
                    number,
                    is_interrupted: false,
                });
                Ok(info.id)
            }
            // PostgreSQL does not keep who holds a lock. With the information of who asks, it is tried again.
            Err(Refusal::Held(message)) => {
                let number = format!(
                    "{message}. The lock information below is that of this attempt: PostgreSQL does not say who holds a lock. It \
                     ends with the session that took it, which \"SELECT * FROM pg_locks WHERE locktype = 'advisory'\" shows."
                );
                Err(LockError::held(Some(info), number))
            }
            Err(Refusal::Failed(error)) => Err(self.problem(LOCK, &error).into()),
        }
    }

    async fn unlock(&self, _workspace: &str, _id: &str) -> Result<()> {
        let mut session = self.session.lock().await;
        // A lock of another session ends with that session; nobody else can release it.
        let Some(Held { number, .. }) = session.held.take() else {
            return Ok(());
        };
        if session.connection.is_closed() {
            return Ok(());
        }
        let text = format!("SELECT pg_advisory_unlock({number})");
        let result = session.connection.query_one(&text, &[]).await;
        result
            .map(drop)
            .map_err(|e| self.problem("Cannot release the state lock", &e))
    }

    async fn holder(&self, _workspace: &str, own: &str) -> Result<Holder> {
        // The session holds the lock as long as it lives: whether it does is asked of the server.
        self.query(WRITE, "SELECT 1", &[]).await?;
        Ok(match &self.session().await?.held {
            Some(held) if held.id == own && !held.is_interrupted => Holder::Own,
            Some(held) if held.id == own => Holder::Unknown,
            _ => Holder::Free,
        })
    }
}
