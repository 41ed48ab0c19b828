//! State client of the layout `objects`.

use monoform_sdk::state_store::{DEFAULT, LockError, LockInfo, WorkspaceSupport};
use monoform_sdk::{Diagnostic, Result, async_trait};
use store_client::guard::{Holder, LockedStore, Revision as Known, Snapshot, Written};
use tokio::sync::MutexGuard;

use super::claims::Claims;
use super::connected::{Client, Patience, Session};
use super::document::{Document, DocumentError};
use super::history::{self, Question};
use super::locks::{Attempt, Held};
use super::merge::{self, Difference, Made, Transaction};
use super::records::{self, Record, Request};
use super::rows::{self, Failure, Revision, StateRow};
use super::within::{BEGIN, BEGIN_SNAPSHOT, within};
use crate::client::{LIST, LOCK, READ, UNLOCK, WRITE};
use crate::session::Connection;

/// Result of a write, as its transaction returns it.
enum Write {
    Done {
        revision: i64,
        run: i64,
    },
    /// The changes of a run that holds locks on parts of the state were written.
    Merged {
        run: i64,
        made: Box<Made>,
    },
    Changed,
    LockLost,
}

/// Content of a write.
enum Work<'w> {
    /// A state, and the revision that it is based on.
    State(&'w Document, Option<i64>),
    Records(&'w [Record]),
}

const LOCK_LOST: &str = "the lock that this program held was released or taken by another one.";

impl Session {
    /// Keeps the result of a write under a lock.
    ///
    /// # Errors
    /// Others have changed objects that a run without locks has changed, too.
    fn merged(&mut self, workspace: &str, run: i64, made: Made) -> Result<()> {
        if let Some(held) = self.held.get_mut(workspace) {
            held.run = Some(run);
        }
        let known = self.known.entry(workspace.to_owned()).or_default();
        known.0 = made.revision;
        made.difference.apply_to(&mut known.1);
        if made.conflicts.is_empty() {
            return Ok(());
        }
        Err(Diagnostic::error(
            WRITE,
            format!(
                "Other runs have changed objects that this run has changed without a lock: {}. Their results are in the state, and those \
                 of this run are not.",
                made.conflicts.join(", ")
            ),
        )
        .into())
    }
}

impl Client {
    /// Reads the state of a workspace, with its revision.
    async fn read_state(
        &self,
        connection: &Connection,
        workspace: &str,
    ) -> std::result::Result<Option<(i64, Document)>, Failure> {
        let row = rows::state_row(connection, &self.schema, workspace, "").await?;
        match row.filter(|row| row.revision > 0) {
            None => Ok(None),
            Some(row) => {
                let document = match &self.copies {
                    Some(copies) => copies.read(connection, &self.schema, workspace, &row).await?,
                    None => rows::read(connection, &self.schema, &row).await?,
                };
                Ok(Some((row.revision, document)))
            }
        }
    }

    /// Makes a write in a transaction. If the server ends the connection, and the run has locked only parts of the state, the write is
    /// repeated once on a new connection, because such writes can be repeated safely.
    async fn carry_out(&self, workspace: &str, work: &Work<'_>) -> Result<(MutexGuard<'_, Session>, Write)> {
        let patience = Patience::begin(&self.settings);
        loop {
            let session = self.session().await?;
            let connection = session.connection.clone();
            let transaction = within(&connection, BEGIN, async {
                match work {
                    Work::State(next, expected) => {
                        self.write_state(&connection, workspace, &session, next, *expected)
                            .await
                    }
                    Work::Records(records) => self.record(&connection, workspace, &session, records).await,
                }
            });
            let is_part = session.held.get(workspace).is_some_and(|held| !held.claims.is_whole());
            match connection.answer(&self.settings, WRITE, transaction).await? {
                Ok(written) => return Ok((session, written)),
                Err(failure) if is_part && failure.ends_connection() && patience.lasts() => connection.closed().await,
                Err(failure) => return Err(self.problem(WRITE, &failure)),
            }
        }
    }

    /// Writes the differences between the state that the session knows, or else the stored one, and `next`.
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
        if let Some(held) = held
            && !self.is_held(connection, held, &row).await?
        {
            return Ok(Write::LockLost);
        }
        let known = session.known.get(workspace);
        if let Some(held) = held.filter(|held| !held.claims.is_whole()) {
            let empty = Document::default();
            let known = known.map_or(&empty, |(_, known)| known);
            if !known.head.lineage.is_empty() && known.head.lineage != row.head.lineage {
                return Ok(Write::LockLost);
            }
            let run = self.run_of(connection, row.id, Some(held)).await?;
            let head = merge::merged_head(&row.head, &known.head, &next.head);
            let transaction = self.transaction(connection, &row, held, run);
            let difference = Difference::between(known, next);
            let made = transaction.write(difference, head).await?;
            return Ok(Write::Merged {
                run,
                made: Box::new(made),
            });
        }
        if expected.is_some_and(|expected| expected != row.revision) {
            return Ok(Write::Changed);
        }
        let read;
        let before = match known {
            Some((revision, document)) if *revision == row.revision => document,
            _ => {
                read = rows::read(connection, &self.schema, &row).await?;
                &read
            }
        };
        let run = self.run_of(connection, row.id, held).await?;
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

    /// Returns true if the session still holds its lock on the state in this row.
    async fn is_held(
        &self,
        connection: &Connection,
        held: &Held,
        row: &StateRow,
    ) -> std::result::Result<bool, Failure> {
        let there = self.locks(connection).is_queued(&held.ticket).await?;
        Ok(there && !held.is_lost && held.ticket.state == row.id)
    }

    fn transaction<'t>(
        &'t self,
        connection: &'t Connection,
        row: &'t StateRow,
        held: &'t Held,
        run: i64,
    ) -> Transaction<'t> {
        Transaction {
            connection,
            schema: &self.schema,
            row,
            held,
            run,
        }
    }

    /// Applies the records of a run that holds a lock.
    async fn record(
        &self,
        connection: &Connection,
        workspace: &str,
        session: &Session,
        records: &[Record],
    ) -> std::result::Result<Write, Failure> {
        let row = rows::state_row(connection, &self.schema, workspace, "FOR UPDATE").await?;
        let (Some(row), Some(held)) = (row, session.held.get(workspace)) else {
            return Ok(Write::LockLost);
        };
        if !self.is_held(connection, held, &row).await? {
            return Ok(Write::LockLost);
        }
        let run = self.run_of(connection, row.id, Some(held)).await?;
        let empty = Document::default();
        let known = session.known.get(workspace).map_or(&empty, |(_, known)| known);
        let transaction = self.transaction(connection, &row, held, run);
        let made = transaction.carry_out(records, known).await?;
        Ok(Write::Merged {
            run,
            made: Box::new(made),
        })
    }

    async fn create_state(&self, connection: &Connection, workspace: &str) -> std::result::Result<StateRow, Failure> {
        // If another program has created the row meanwhile, that row is locked and returned.
        let text = "INSERT INTO {S}.states (name) VALUES ($1) ON CONFLICT (name) DO UPDATE SET name = EXCLUDED.name";
        connection.execute(&self.schema.sql(text), &[&workspace]).await?;
        let row = rows::state_row(connection, &self.schema, workspace, "FOR UPDATE").await?;
        row.ok_or(Failure::Document(DocumentError::Vanished))
    }

    /// Returns the run to which writes under a lock belong. It is recorded at the first write. A write without a lock is a run of its own,
    /// which ends with the write.
    async fn run_of(
        &self,
        connection: &Connection,
        state: i32,
        held: Option<&Held>,
    ) -> std::result::Result<i64, Failure> {
        if let Some(run) = held.and_then(|held| held.run) {
            return Ok(run);
        }
        let own;
        let (info, result) = match held {
            Some(held) => (&held.ticket.info, None),
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

/// Returns the number of a revision. Returns `None` if it is unknown which state was read.
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
        let work = Work::State(&next, expected.and_then(number));
        let (mut session, written) = self.carry_out(workspace, &work).await?;
        Ok(match written {
            Write::Done { revision, run } => {
                if let Some(held) = session.held.get_mut(workspace) {
                    held.run = Some(run);
                }
                session.known.insert(workspace.to_owned(), (revision, next));
                Written::Done(Some(Known::Named(revision.to_string())))
            }
            Write::Merged { run, made } => {
                let revision = made.revision;
                session.merged(workspace, run, *made)?;
                Written::Done(Some(Known::Named(revision.to_string())))
            }
            Write::Changed => Written::Changed,
            Write::LockLost => Written::LockLost(LOCK_LOST.to_owned()),
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
        if let Some(held) = session.held.get(workspace).filter(|held| !held.is_lost) {
            let message = format!("Workspace is already locked by this program: {workspace}.");
            return Err(LockError::held(Some(held.ticket.info.clone()), message));
        }
        let connection = session.connection.clone();
        let wanted = session.wanted.get(workspace).filter(|(id, _)| *id == info.id);
        let claims = wanted.map_or_else(Claims::whole, |(_, claims)| claims.clone());
        let waiting = session.waiting.get(workspace).cloned();
        let waiting = waiting.filter(|ticket| ticket.info.id == info.id);
        let locks = self.locks(&connection);
        let request = locks.request(workspace, &info, &claims, waiting);
        let (ticket, attempt) = self.answer(&connection, LOCK, request).await?;
        let (holder, address, waits) = match attempt {
            Attempt::Granted => {
                session.waiting.remove(workspace);
                session.wanted.remove(workspace);
                let id = info.id;
                let held = Held {
                    ticket,
                    claims,
                    run: None,
                    is_lost: false,
                };
                session.held.insert(workspace.to_owned(), held);
                return Ok(id);
            }
            Attempt::Blocked { holder, address, waits } => (holder, address, waits),
        };
        session.waiting.insert(workspace.to_owned(), ticket);
        let state = match (address.is_empty(), waits) {
            (true, false) => format!("Workspace is already locked: {workspace}."),
            (true, true) => format!("Workspace is already waited for by an earlier run: {workspace}."),
            (false, false) => format!("Already locked by another run, which changes it or depends on it: {address}."),
            (false, true) => format!("Already waited for by an earlier run: {address}."),
        };
        // If the record of the holder cannot be read, the caller's own record is returned, because any holder makes the caller wait.
        Err(LockError::held(Some(holder.unwrap_or(info)), state))
    }

    async fn unlock(&self, workspace: &str, id: &str) -> Result<()> {
        let mut session = self.session().await?;
        let connection = session.connection.clone();
        if session
            .held
            .get(workspace)
            .is_some_and(|held| held.ticket.info.id == id)
            && let Some(held) = session.held.remove(workspace)
        {
            return match held.is_lost {
                true => Ok(()),
                false => {
                    let locks = self.locks(&connection);
                    self.answer(&connection, UNLOCK, locks.release(&held.ticket, held.run))
                        .await
                }
            };
        }
        if session
            .waiting
            .get(workspace)
            .is_some_and(|ticket| ticket.info.id == id)
            && let Some(ticket) = session.waiting.remove(workspace)
        {
            let locks = self.locks(&connection);
            let withdraw = async {
                locks.leave(&ticket).await?;
                locks.end(&ticket).await
            };
            return self.answer(&connection, UNLOCK, withdraw).await;
        }
        let locks = self.locks(&connection);
        let broken = within(&connection, BEGIN, locks.force(workspace, id));
        match self.answer(&connection, UNLOCK, broken).await? {
            true => Ok(()),
            false => Err(Diagnostic::error(
                UNLOCK,
                format!("The state of the workspace {workspace:?} has no lock with the ID {id:?}. It may have been released already."),
            )
            .into()),
        }
    }

    async fn request(&self, workspace: &str, request: &str) -> Result<()> {
        let request: Request = serde_json::from_str(request).map_err(|e| {
            let detail = format!("The request of the program cannot be understood: {e}.");
            Diagnostic::error(WRITE, detail)
        })?;
        let mut session = self.session().await?;
        let connection = session.connection.clone();
        match request {
            Request::Claim(wanted) => {
                let claims = (wanted.lock.clone(), Claims::from(wanted));
                session.wanted.insert(workspace.to_owned(), claims);
                Ok(())
            }
            Request::Forget { operations } => {
                let forget = records::forget(&connection, &self.schema, workspace, &operations);
                self.answer(&connection, WRITE, forget).await
            }
            Request::Record(records) => {
                drop(session);
                let (mut session, written) = self.carry_out(workspace, &Work::Records(&records)).await?;
                match written {
                    Write::Merged { run, made } => session.merged(workspace, run, *made),
                    _ => Err(Diagnostic::error(WRITE, format!("lock lost: {LOCK_LOST} Nothing was written.")).into()),
                }
            }
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
            .retain(|name, held| name != workspace || held.ticket.info.id != id);
    }

    async fn holder(&self, workspace: &str, own: &str) -> Result<Holder> {
        let patience = Patience::begin(&self.settings);
        loop {
            let session = self.session().await?;
            let held = session.held.get(workspace);
            let Some(held) = held.filter(|held| held.ticket.info.id == own && !held.is_lost) else {
                return Ok(Holder::Free);
            };
            let connection = session.connection.clone();
            let locks = self.locks(&connection);
            let there = connection.answer(&self.settings, WRITE, locks.is_queued(&held.ticket));
            match there.await? {
                Ok(true) => return Ok(Holder::Own),
                Ok(false) => return Ok(Holder::Free),
                Err(failure) if failure.ends_connection() && patience.lasts() => connection.closed().await,
                Err(failure) => return Err(self.problem(WRITE, &failure)),
            }
        }
    }
}
