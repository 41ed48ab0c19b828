//! State client of the layout "objects".

use std::collections::BTreeMap;
use std::sync::Arc;

use monoform_sdk::state_store::{DEFAULT, LockError, LockInfo, WorkspaceSupport};
use monoform_sdk::{Diagnostic, Diagnostics, Result, async_trait};
use store_client::guard::{Holder, LockedStore, Revision as Known, Snapshot, Written};
use tokio::sync::{Mutex, MutexGuard};

use super::document::Document;
use super::history::{self, Question};
use super::rows::{self, Failure, Revision, StateRow};
use super::tables::{self, Schema};
use crate::Tables;
use crate::client::{LIST, LOCK, READ, UNLOCK, WRITE};
use crate::session::{Connection, connect, problem};
use crate::settings::Settings;

/// Begins a transaction. An abandoned request may have left one open, so that one is ended first. If none is open, the server only
/// warns.
const BEGIN: &str = "ROLLBACK; BEGIN";
const BEGIN_SNAPSHOT: &str = "ROLLBACK; BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// Client for states of objects.
pub(crate) struct Client {
    settings: Settings,
    schema: Schema,
    session: Mutex<Session>,
}

struct Session {
    connection: Arc<Connection>,
    /// Locks by workspace.
    held: BTreeMap<String, Held>,
    /// The states that were read or written last, with their revisions.
    known: BTreeMap<String, (i64, Document)>,
}

/// A lock of the session.
struct Held {
    state: i32,
    info: LockInfo,
    /// Run of the writes under this lock, once there was one.
    run: Option<i64>,
    /// True if the lock ended with the connection, and could not be taken again.
    is_lost: bool,
}

/// Result of an attempt to lock a state.
enum Attempt {
    Locked(i32),
    Held(Option<LockInfo>),
}

/// Result of a write in its transaction.
enum Write {
    Done { revision: i64, run: i64 },
    Changed,
    LockLost(String),
}

/// Runs statements in a transaction, which is rolled back after a failure.
async fn within<T>(
    connection: &Connection,
    begin: &str,
    work: impl Future<Output = std::result::Result<T, Failure>>,
) -> std::result::Result<T, Failure> {
    connection.batch_execute(begin).await?;
    match work.await {
        Ok(done) => {
            connection.batch_execute("COMMIT").await?;
            Ok(done)
        }
        Err(failure) => {
            // A failure is ignored: if the connection is closed, the transaction has ended with it.
            drop(connection.batch_execute("ROLLBACK").await);
            Err(failure)
        }
    }
}

impl Client {
    /// Connects, and creates or migrates the tables.
    pub async fn prepare(settings: Settings, tables: &Tables) -> Result<Client> {
        let connection = connect(&settings).await?;
        let schema = tables::prepare(&connection, &settings, tables).await?;
        Ok(Client {
            settings,
            schema,
            session: Mutex::new(Session {
                connection: Arc::new(connection),
                held: BTreeMap::new(),
                known: BTreeMap::new(),
            }),
        })
    }

    fn problem(&self, summary: &str, failure: &Failure) -> Diagnostics {
        match failure {
            Failure::Database(error) => problem(summary, &self.settings.title, error),
            Failure::Document(error) => Diagnostic::error(
                summary,
                format!(
                    "PostgreSQL: {}: the state cannot be kept in the layout \"objects\": {error}. Nothing was changed.",
                    self.settings.title
                ),
            )
            .into(),
        }
    }

    async fn answer<T>(
        &self,
        connection: &Connection,
        summary: &str,
        work: impl Future<Output = std::result::Result<T, Failure>>,
    ) -> Result<T> {
        let result = connection.answer(&self.settings, summary, work).await?;
        result.map_err(|failure| self.problem(summary, &failure))
    }

    /// Returns the session, connected again if the connection was lost. Its lock ended with it, and is taken again if nobody else had
    /// it meanwhile.
    async fn session(&self) -> Result<MutexGuard<'_, Session>> {
        let mut session = self.session.lock().await;
        if !session.connection.is_closed() {
            return Ok(session);
        }
        tracing::warn!("the connection to PostgreSQL was lost, and is made again");
        session.connection = Arc::new(connect(&self.settings).await?);
        let connection = session.connection.clone();
        for held in session.held.values_mut().filter(|held| !held.is_lost) {
            let again = self.lock_again(&connection, held.state, &held.info.id);
            held.is_lost = !self.answer(&connection, LOCK, again).await?;
        }
        Ok(session)
    }

    /// Takes a lock that ended with its connection. Every other holder replaces or removes the row of the lock, so if it is there,
    /// nobody else has held the lock.
    async fn lock_again(&self, connection: &Connection, state: i32, id: &str) -> std::result::Result<bool, Failure> {
        if !self.try_advisory_lock(connection, state).await? {
            return Ok(false);
        }
        let text = "UPDATE {S}.locks SET backend_pid = pg_backend_pid() WHERE state_id = $1 AND lock_id = $2";
        let updated = connection.execute(&self.schema.sql(text), &[&state, &id]).await?;
        if updated == 0 {
            self.advisory_unlock(connection, state).await?;
        }
        Ok(updated > 0)
    }

    /// Tries to take the advisory lock of a state. Its key is two numbers, since the default layout uses the keys of one number. The
    /// first number distinguishes the schemas of a database.
    async fn try_advisory_lock(&self, connection: &Connection, state: i32) -> std::result::Result<bool, Failure> {
        let text = format!("SELECT pg_try_advisory_lock({}, $1)", self.lock_class());
        Ok(connection.query_one(&self.schema.sql(&text), &[&state]).await?.get(0))
    }

    async fn advisory_unlock(&self, connection: &Connection, state: i32) -> std::result::Result<(), Failure> {
        let text = format!("SELECT pg_advisory_unlock({}, $1)", self.lock_class());
        connection.query_one(&self.schema.sql(&text), &[&state]).await?;
        Ok(())
    }

    /// Expression for the first number of a lock: the OID of the table of states as a signed number.
    fn lock_class(&self) -> &'static str {
        "('{S}.states'::regclass::oid::bigint - CASE WHEN '{S}.states'::regclass::oid::bigint > 2147483647 THEN 4294967296 ELSE 0 \
         END)::integer"
    }

    async fn try_lock(
        &self,
        connection: &Connection,
        workspace: &str,
        info: &LockInfo,
    ) -> std::result::Result<Attempt, Failure> {
        let find = self.schema.sql("SELECT id FROM {S}.states WHERE name = $1");
        let row = match connection.query_opt(&find, &[&workspace]).await? {
            Some(row) => Some(row),
            None => {
                let create = "INSERT INTO {S}.states (name) VALUES ($1) ON CONFLICT (name) DO NOTHING";
                connection.execute(&self.schema.sql(create), &[&workspace]).await?;
                connection.query_opt(&find, &[&workspace]).await?
            }
        };
        let Some(row) = row else {
            // The workspace was deleted between the two statements; the caller tries again.
            return Ok(Attempt::Held(Some(info.clone())));
        };
        let state: i32 = row.get(0);
        if !self.try_advisory_lock(connection, state).await? {
            let text = self.schema.sql("SELECT info FROM {S}.locks WHERE state_id = $1");
            let row = connection.query_opt(&text, &[&state]).await?;
            let holder = row.and_then(|row| LockInfo::from_json(row.get::<_, &str>(0).as_bytes()));
            return Ok(Attempt::Held(holder));
        }
        let recorded = within(connection, BEGIN, self.record_lock(connection, workspace, state, info)).await;
        match recorded {
            Ok(true) => Ok(Attempt::Locked(state)),
            Ok(false) => {
                self.advisory_unlock(connection, state).await?;
                Ok(Attempt::Held(Some(info.clone())))
            }
            Err(failure) => {
                drop(self.advisory_unlock(connection, state).await);
                Err(failure)
            }
        }
    }

    /// Records the holder of a lock that was taken; false if the workspace was deleted meanwhile.
    async fn record_lock(
        &self,
        connection: &Connection,
        workspace: &str,
        state: i32,
        info: &LockInfo,
    ) -> std::result::Result<bool, Failure> {
        let still = self
            .schema
            .sql("SELECT 1 FROM {S}.states WHERE id = $1 AND name = $2 FOR SHARE");
        if connection.query_opt(&still, &[&state, &workspace]).await?.is_none() {
            return Ok(false);
        }
        let text = "INSERT INTO {S}.locks (state_id, lock_id, info, backend_pid) VALUES ($1, $2, $3, pg_backend_pid()) ON CONFLICT \
                    (state_id) DO UPDATE SET lock_id = EXCLUDED.lock_id, info = EXCLUDED.info, backend_pid = EXCLUDED.backend_pid, \
                    acquired_at = now()";
        connection
            .execute(&self.schema.sql(text), &[&state, &info.id, &info.to_json()])
            .await?;
        // The lock was free, so a run without a result has lost its session.
        let ended =
            "UPDATE {S}.runs SET result = 'interrupted', ended_at = now() WHERE state_id = $1 AND result IS NULL";
        connection.execute(&self.schema.sql(ended), &[&state]).await?;
        Ok(true)
    }

    /// Releases the lock of this session, and ends its run.
    async fn release(&self, connection: &Connection, held: &Held) -> std::result::Result<(), Failure> {
        within(connection, BEGIN, async {
            if let Some(run) = held.run {
                let ended =
                    "UPDATE {S}.runs SET result = 'finished', ended_at = now() WHERE id = $1 AND result IS NULL";
                connection.execute(&self.schema.sql(ended), &[&run]).await?;
            }
            let text = "DELETE FROM {S}.locks WHERE state_id = $1 AND lock_id = $2";
            connection
                .execute(&self.schema.sql(text), &[&held.state, &held.info.id])
                .await?;
            Ok(())
        })
        .await?;
        self.advisory_unlock(connection, held.state).await
    }

    /// Breaks the lock of another session by ending that session. Returns false if there is no such lock.
    async fn break_lock(
        &self,
        connection: &Connection,
        workspace: &str,
        id: &str,
    ) -> std::result::Result<bool, Failure> {
        within(connection, BEGIN, async {
            let text = "SELECT l.state_id, l.backend_pid FROM {S}.locks l JOIN {S}.states s ON s.id = l.state_id WHERE s.name = $1 \
                        AND l.lock_id = $2 FOR UPDATE OF l";
            let Some(row) = connection.query_opt(&self.schema.sql(text), &[&workspace, &id]).await? else {
                return Ok(false);
            };
            let (state, pid): (i32, i32) = (row.get(0), row.get(1));
            // The process ID may belong to another session by now, so only a session that holds this very lock is ended.
            let end = "SELECT pg_terminate_backend(pid, 10000) FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid = $1 AND \
                       objsubid = 2 AND objid::bigint = $2 AND classid = '{S}.states'::regclass::oid AND database = (SELECT oid FROM \
                       pg_database WHERE datname = current_database())";
            let number = i64::from(state);
            connection.query(&self.schema.sql(end), &[&pid, &number]).await?;
            let text = "DELETE FROM {S}.locks WHERE state_id = $1 AND lock_id = $2";
            connection.execute(&self.schema.sql(text), &[&state, &id]).await?;
            Ok(true)
        })
        .await
    }

    /// Reads the state of a workspace, with its revision.
    async fn read_state(
        &self,
        connection: &Connection,
        workspace: &str,
    ) -> std::result::Result<Option<(i64, Document)>, Failure> {
        let row = rows::state_row(connection, &self.schema, workspace, "").await?;
        match row.filter(|row| row.revision > 0) {
            None => Ok(None),
            Some(row) => Ok(Some((row.revision, rows::read(connection, &self.schema, &row).await?))),
        }
    }

    /// Writes the differences between the stored state and `next`.
    async fn write_state(
        &self,
        connection: &Connection,
        workspace: &str,
        session: &Session,
        next: &Document,
        expected: Option<i64>,
    ) -> std::result::Result<Write, Failure> {
        let row = match rows::state_row(connection, &self.schema, workspace, "FOR UPDATE").await? {
            Some(row) => row,
            None => self.create_state(connection, workspace).await?,
        };
        let held = session.held.get(workspace);
        if let Some(held) = held {
            let text = self
                .schema
                .sql("SELECT lock_id FROM {S}.locks WHERE state_id = $1 FOR SHARE");
            let found = connection.query_opt(&text, &[&held.state]).await?;
            let is_own = found.is_some_and(|found| found.get::<_, &str>(0) == held.info.id);
            if held.is_lost || !is_own || held.state != row.id {
                let why = "the lock that this program held was released or taken by another one.";
                return Ok(Write::LockLost(why.to_owned()));
            }
        }
        if expected.is_some_and(|expected| expected != row.revision) {
            return Ok(Write::Changed);
        }
        let read;
        let before = match session.known.get(workspace) {
            Some((revision, document)) if *revision == row.revision => document,
            _ => {
                read = rows::read(connection, &self.schema, &row).await?;
                &read
            }
        };
        let run = match held.and_then(|held| held.run) {
            Some(run) => run,
            None => self.begin_run(connection, row.id, held).await?,
        };
        let revision = Revision {
            connection,
            schema: &self.schema,
            state: row.id,
            run,
            number: row.revision + 1,
        };
        revision.write(before, next).await?;
        Ok(Write::Done {
            revision: revision.number,
            run,
        })
    }

    async fn create_state(&self, connection: &Connection, workspace: &str) -> std::result::Result<StateRow, Failure> {
        // On a conflict, the row of the other program is locked and returned.
        let text = "INSERT INTO {S}.states (name) VALUES ($1) ON CONFLICT (name) DO UPDATE SET name = EXCLUDED.name";
        connection.execute(&self.schema.sql(text), &[&workspace]).await?;
        let row = rows::state_row(connection, &self.schema, workspace, "FOR UPDATE").await?;
        row.ok_or_else(|| Failure::Document(super::document::DocumentError::Version("none".to_owned())))
    }

    /// Records a run. A run without a lock ends with its write.
    async fn begin_run(
        &self,
        connection: &Connection,
        state: i32,
        held: Option<&Held>,
    ) -> std::result::Result<i64, Failure> {
        let own;
        let (info, result) = match held {
            Some(held) => (&held.info, None),
            None => {
                own = LockInfo {
                    id: String::new(),
                    ..LockInfo::of_this_process("")
                };
                (&own, Some("finished"))
            }
        };
        let text = "INSERT INTO {S}.runs (state_id, lock_id, operation, who, program_version, result, ended_at) VALUES ($1, $2, $3, \
                    $4, $5, $6::text, CASE WHEN $6::text IS NULL THEN NULL ELSE now() END) RETURNING id";
        let row = connection
            .query_one(
                &self.schema.sql(text),
                &[&state, &info.id, &info.operation, &info.who, &info.version, &result],
            )
            .await?;
        Ok(row.get(0))
    }
}

/// Returns the number of a revision; `None` if the state was never read.
fn number(revision: &Known) -> Option<i64> {
    match revision {
        Known::Absent => Some(0),
        Known::Named(name) => name.parse().ok(),
    }
}

#[async_trait]
impl LockedStore for Client {
    fn support(&self) -> WorkspaceSupport {
        WorkspaceSupport::NamedAndDefault
    }

    async fn workspaces(&self) -> Result<Vec<String>> {
        let session = self.session().await?;
        let text = self
            .schema
            .sql("SELECT name FROM {S}.states WHERE revision > 0 AND name <> 'default' ORDER BY name");
        let query = async { Ok(session.connection.query(&text, &[]).await?) };
        let rows = self.answer(&session.connection, LIST, query).await?;
        let names = rows.iter().map(|row| row.get::<_, String>(0));
        Ok(std::iter::once(DEFAULT.to_owned()).chain(names).collect())
    }

    async fn read(&self, workspace: &str) -> Result<Snapshot> {
        let mut session = self.session().await?;
        let connection = session.connection.clone();
        let read = within(&connection, BEGIN_SNAPSHOT, self.read_state(&connection, workspace));
        let Some((revision, document)) = self.answer(&connection, READ, read).await? else {
            session.known.remove(workspace);
            return Ok(Snapshot {
                state: None,
                revision: Some(Known::Absent),
            });
        };
        let state = document.render();
        session.known.insert(workspace.to_owned(), (revision, document));
        Ok(Snapshot {
            state: Some(state),
            revision: Some(Known::Named(revision.to_string())),
        })
    }

    async fn write(&self, workspace: &str, state: &[u8], expected: Option<&Known>) -> Result<Written> {
        let next = Document::parse(state).map_err(|e| self.problem(WRITE, &Failure::Document(e)))?;
        let mut session = self.session().await?;
        let connection = session.connection.clone();
        let expected = expected.and_then(number);
        let write = self.write_state(&connection, workspace, &session, &next, expected);
        let written = self
            .answer(&connection, WRITE, within(&connection, BEGIN, write))
            .await?;
        Ok(match written {
            Write::Done { revision, run } => {
                if let Some(held) = session.held.get_mut(workspace) {
                    held.run = Some(run);
                }
                session.known.insert(workspace.to_owned(), (revision, next));
                Written::Done(Some(Known::Named(revision.to_string())))
            }
            Write::Changed => Written::Changed,
            Write::LockLost(why) => Written::LockLost(why),
        })
    }

    async fn delete(&self, workspace: &str) -> Result<()> {
        let mut session = self.session().await?;
        session.known.remove(workspace);
        let text = self.schema.sql("DELETE FROM {S}.states WHERE name = $1");
        let query = async { Ok(session.connection.execute(&text, &[&workspace]).await?) };
        self.answer(&session.connection, WRITE, query).await.map(drop)
    }

    async fn lock(&self, workspace: &str, info: LockInfo) -> std::result::Result<String, LockError> {
        let mut session = self.session().await?;
        // PostgreSQL would grant the lock to this session a second time.
        if let Some(held) = session.held.get(workspace).filter(|held| !held.is_lost) {
            let message = format!("Workspace is already locked by this program: {workspace}.");
            return Err(LockError::held(Some(held.info.clone()), message));
        }
        let connection = session.connection.clone();
        let attempt = self.try_lock(&connection, workspace, &info);
        match self.answer(&connection, LOCK, attempt).await? {
            Attempt::Locked(state) => {
                let id = info.id.clone();
                let held = Held {
                    state,
                    info,
                    run: None,
                    is_lost: false,
                };
                session.held.insert(workspace.to_owned(), held);
                Ok(id)
            }
            Attempt::Held(holder) => {
                // A holder that has just taken the lock is not recorded yet. Any holder makes the caller wait, so its own record is
                // returned.
                let holder = holder.unwrap_or(info);
                let message = format!("Workspace is already locked: {workspace}.");
                Err(LockError::held(Some(holder), message))
            }
        }
    }

    async fn unlock(&self, workspace: &str, id: &str) -> Result<()> {
        let mut session = self.session().await?;
        let connection = session.connection.clone();
        if session.held.get(workspace).is_some_and(|held| held.info.id == id)
            && let Some(held) = session.held.remove(workspace)
        {
            return match held.is_lost {
                true => Ok(()),
                false => self.answer(&connection, UNLOCK, self.release(&connection, &held)).await,
            };
        }
        let broken = self.break_lock(&connection, workspace, id);
        match self.answer(&connection, UNLOCK, broken).await? {
            true => Ok(()),
            false => Err(Diagnostic::error(
                UNLOCK,
                format!("The state of the workspace {workspace:?} has no lock with the ID {id:?}. It may have been released already."),
            )
            .into()),
        }
    }

    fn keeps_objects(&self) -> bool {
        true
    }

    async fn inquire(&self, workspace: &str, question: &str) -> Result<Vec<u8>> {
        let question: Question = serde_json::from_str(question).map_err(|e| {
            let detail = format!("The request of the program cannot be understood: {e}.");
            Diagnostic::error("Error reading the history", detail)
        })?;
        let summary = match question {
            Question::Query { .. } => "Query failed",
            _ => "Error reading the history",
        };
        let session = self.session().await?;
        let connection = session.connection.clone();
        let work = history::answer(&connection, &self.schema, workspace, question);
        let answered = self
            .answer(&connection, summary, within(&connection, BEGIN_SNAPSHOT, work))
            .await?;
        answered.map_err(|(summary, detail)| Diagnostic::error(summary, detail).into())
    }

    async fn forget_lock(&self, workspace: &str, id: &str) {
        let mut session = self.session.lock().await;
        session
            .held
            .retain(|name, held| name != workspace || held.info.id != id);
    }

    async fn holder(&self, workspace: &str, own: &str) -> Result<Holder> {
        let session = self.session().await?;
        let text = self
            .schema
            .sql("SELECT l.info FROM {S}.locks l JOIN {S}.states s ON s.id = l.state_id WHERE s.name = $1");
        let query = async { Ok(session.connection.query_opt(&text, &[&workspace]).await?) };
        let row = self.answer(&session.connection, WRITE, query).await?;
        let info = row.and_then(|row| LockInfo::from_json(row.get::<_, &str>(0).as_bytes()));
        Ok(match info {
            Some(info) if info.id == own => match session.held.get(workspace).is_some_and(|held| !held.is_lost) {
                true => Holder::Own,
                false => Holder::Free,
            },
            Some(info) => Holder::Other(Box::new(info)),
            None => Holder::Free,
        })
    }
}
