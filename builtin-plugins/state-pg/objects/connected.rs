//! The client with its session, and new connections for the session of a run: the server was restarted, or its standby takes over.
//!
//! The rows of the run's locks are still there, so the run goes on unless a conflicting request was granted meanwhile. A standby that
//! gets changes asynchronously can lack the last ones. So the run's objects are read again: those that differ from what the run has
//! written are written once more at its end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use monoform_sdk::{Diagnostic, Diagnostics, Result};
use tokio::sync::{Mutex, MutexGuard};

use super::claims::{Claims, object_key};
use super::copies::Copies;
use super::document::Document;
use super::locks::{Held, Locks, Ticket};
use super::rows::{self, Failure};
use super::tables::{self, Schema};
use super::within::{BEGIN, within};
use crate::Tables;
use crate::client::LOCK;
use crate::session::{Connection, connect, problem};
use crate::settings::Settings;

/// Pause between attempts to connect.
const PAUSE: Duration = Duration::from_millis(250);

/// Client for states of objects.
pub(crate) struct Client {
    pub(super) settings: Settings,
    pub(super) schema: Schema,
    pub(super) session: Mutex<Session>,
    pub(super) copies: Option<Copies>,
}

pub(super) struct Session {
    pub connection: Arc<Connection>,
    /// Locks by workspace.
    pub held: BTreeMap<String, Held>,
    /// Requests that wait for others, by workspace.
    pub waiting: BTreeMap<String, Ticket>,
    /// Claims of the next lock of a workspace, with its ID.
    pub wanted: BTreeMap<String, (String, Claims)>,
    /// The states that were read or written last, with their revisions.
    pub known: BTreeMap<String, (i64, Document)>,
}

/// Time for which a run waits for the server, unless the user's limit for answers is lower. It covers the restart of a server and the
/// promotion of a standby.
const PATIENCE: Duration = Duration::from_secs(120);

/// A run that waits for the server.
pub(super) struct Patience {
    until: Instant,
}

impl Patience {
    pub fn begin(settings: &Settings) -> Patience {
        let limit = settings.silence.map_or(PATIENCE, |limit| limit.min(PATIENCE));
        Patience {
            until: Instant::now() + limit,
        }
    }

    pub fn lasts(&self) -> bool {
        Instant::now() < self.until
    }
}

impl Client {
    /// Connects, and creates or migrates the tables.
    pub async fn prepare(settings: Settings, tables: &Tables, keeps_copies: bool) -> Result<Client> {
        let connection = connect(&settings).await?;
        let schema = tables::prepare(&connection, &settings, tables).await?;
        Ok(Client {
            copies: keeps_copies.then(|| Copies::new(&settings, &tables.schema)),
            settings,
            schema,
            session: Mutex::new(Session {
                connection: Arc::new(connection),
                held: BTreeMap::new(),
                waiting: BTreeMap::new(),
                wanted: BTreeMap::new(),
                known: BTreeMap::new(),
            }),
        })
    }

    pub(super) fn problem(&self, summary: &str, failure: &Failure) -> Diagnostics {
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

    pub(super) async fn answer<T>(
        &self,
        connection: &Connection,
        summary: &str,
        work: impl Future<Output = std::result::Result<T, Failure>>,
    ) -> Result<T> {
        let result = connection.answer(&self.settings, summary, work).await?;
        result.map_err(|failure| self.problem(summary, &failure))
    }

    pub(super) fn locks<'c>(&'c self, connection: &'c Connection) -> Locks<'c> {
        Locks {
            connection,
            schema: &self.schema,
        }
    }

    /// Returns the session, connected again if the connection was lost. Its locks ended with it, and are taken again if nobody else had
    /// them meanwhile. A run that holds locks on parts of a state waits for the server.
    pub(super) async fn session(&self) -> Result<MutexGuard<'_, Session>> {
        let mut session = self.session.lock().await;
        if !session.connection.is_closed() {
            return Ok(session);
        }
        tracing::warn!("the connection to PostgreSQL was lost, and is made again");
        let waits = session
            .held
            .values()
            .any(|held| !held.is_lost && !held.claims.is_whole());
        let patience = Patience::begin(&self.settings);
        loop {
            match self.connect_again(&mut session).await {
                Ok(()) => return Ok(session),
                Err(problems) if waits && patience.lasts() => {
                    tracing::info!("PostgreSQL cannot be used yet: {problems:?}");
                    tokio::time::sleep(PAUSE).await;
                }
                Err(problems) => return Err(problems),
            }
        }
    }

    async fn connect_again(&self, session: &mut Session) -> Result<()> {
        let connection = connect(&self.settings).await?;
        for (workspace, held) in session.held.iter_mut().filter(|(_, held)| !held.is_lost) {
            let known = session.known.entry(workspace.clone()).or_default();
            // On a standby that was not promoted this fails, since it locks a row.
            let again = within(&connection, BEGIN, self.take_again(&connection, held, &mut known.1));
            let is_there = self.answer(&connection, LOCK, again).await?;
            held.is_lost = !is_there;
        }
        session.connection = Arc::new(connection);
        // Another request joins the end of the queue.
        session.waiting.clear();
        Ok(())
    }

    /// Takes a lock again, and reads the objects that it is on. Returns false if the lock is lost.
    async fn take_again(
        &self,
        connection: &Connection,
        held: &mut Held,
        known: &mut Document,
    ) -> std::result::Result<bool, Failure> {
        if !self.locks(connection).take_again(&held.ticket).await? {
            return Ok(false);
        }
        if let Some(run) = held.run {
            let text = self.schema.sql("SELECT 1 FROM {S}.runs WHERE id = $1");
            let is_there = connection.query_opt(&text, &[&run]).await?.is_some();
            held.run = is_there.then_some(run);
        }
        if !held.claims.is_whole() {
            self.read_again(connection, held.ticket.state, &held.claims, known)
                .await?;
        }
        Ok(true)
    }

    async fn read_again(
        &self,
        connection: &Connection,
        state: i32,
        claims: &Claims,
        known: &mut Document,
    ) -> std::result::Result<(), Failure> {
        let own = known.objects.keys().filter(|key| claims.covers(&object_key(key)));
        let own: Vec<_> = own.cloned().collect();
        let sums: Vec<String> = own.iter().map(|key| key.sum()).collect();
        let mut there = rows::read_objects(connection, &self.schema, state, Some(&sums)).await?;
        for key in own {
            match there.remove(&key) {
                Some(object) => known.objects.insert(key, object),
                None => known.objects.remove(&key),
            };
        }
        Ok(())
    }
}
