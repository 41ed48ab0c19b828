//! Requests for locks, stored in tables.
//!
//! The claims of a request are rows, because a run can have tens of thousands of them, and a server supports only a few thousand advisory
//! locks. In addition, each request has one advisory lock, with its number, which ends with the session. So the rows of a killed program
//! are recognized by the missing advisory lock, and the next request removes them. All decisions here are made while the row of the state
//! is locked.

use monoform_sdk::state_store::LockInfo;

use super::claims::{self, Claims, Mode, Overlap};
use super::rows::Failure;
use super::tables::Schema;
use super::within::{BEGIN, within};
use crate::session::Connection;

/// Number of claims that one statement writes.
const BATCH: usize = 5000;

/// A request for a lock, either granted or waiting.
#[derive(Clone, Debug)]
pub(super) struct Ticket {
    pub state: i32,
    /// Number of the request.
    pub number: i32,
    pub info: LockInfo,
}

/// A granted lock of this session.
pub(super) struct Held {
    pub ticket: Ticket,
    pub claims: Claims,
    /// Run of the writes under this lock, after the first write.
    pub run: Option<i64>,
    /// True if the lock ended with its connection, and could not be acquired again.
    pub is_lost: bool,
}

/// Result of checking whether a request can be granted.
pub(super) enum Attempt {
    Granted,
    /// The request waits for another one.
    Blocked {
        holder: Option<LockInfo>,
        /// Instance, resource or output of the conflicting claims; empty if they are on the whole state.
        address: String,
        /// True if the other request is waiting, too.
        waits: bool,
    },
}

/// SQL condition that the session of the request `l` still exists.
pub(super) const IS_ALIVE: &str = "EXISTS (SELECT FROM pg_locks p WHERE p.locktype = 'advisory' AND p.objsubid = 2 AND p.granted AND \
     p.classid = '{S}.locks'::regclass::oid AND p.objid::bigint = l.id AND p.database = (SELECT oid FROM pg_database WHERE datname = \
     current_database()))";

/// SQL expression for the first number of an advisory lock: the OID of the table as a signed number. Advisory locks with two numbers never
/// conflict with those with one number, which the default layout uses.
const CLASS: &str = "('{S}.locks'::regclass::oid::bigint - CASE WHEN '{S}.locks'::regclass::oid::bigint > 2147483647 THEN 4294967296 \
     ELSE 0 END)::integer";

pub(super) struct Locks<'c> {
    pub connection: &'c Connection,
    pub schema: &'c Schema,
}

impl Locks<'_> {
    async fn advisory(&self, function: &str, number: i32) -> Result<bool, Failure> {
        let text = format!("SELECT {function}({CLASS}, $1)");
        Ok(self
            .connection
            .query_one(&self.schema.sql(&text), &[&number])
            .await?
            .get(0))
    }

    /// Locks the row of a state until the end of the transaction. Returns false if there is no row.
    async fn lock_row(&self, state: i32) -> Result<bool, Failure> {
        let text = self.schema.sql("SELECT 1 FROM {S}.states WHERE id = $1 FOR UPDATE");
        Ok(self.connection.query_opt(&text, &[&state]).await?.is_some())
    }

    /// Returns the number of a workspace's state, and locks its row. A missing row is created.
    async fn state(&self, workspace: &str) -> Result<i32, Failure> {
        let find = self.schema.sql("SELECT id FROM {S}.states WHERE name = $1 FOR UPDATE");
        if let Some(row) = self.connection.query_opt(&find, &[&workspace]).await? {
            return Ok(row.get(0));
        }
        // If another program has created the row meanwhile, that row is locked and returned.
        let create = "INSERT INTO {S}.states (name) VALUES ($1) ON CONFLICT (name) DO UPDATE SET name = EXCLUDED.name RETURNING id";
        let row = self
            .connection
            .query_one(&self.schema.sql(create), &[&workspace])
            .await?;
        Ok(row.get(0))
    }

    /// Removes the requests whose sessions have ended, and marks their runs as ended.
    async fn remove_dead(&self, state: i32) -> Result<(), Failure> {
        let text = format!("DELETE FROM {{S}}.locks l WHERE l.state_id = $1 AND NOT {IS_ALIVE}");
        self.connection.execute(&self.schema.sql(&text), &[&state]).await?;
        let text = "UPDATE {S}.runs r SET result = 'interrupted', ended_at = now() WHERE state_id = $1 AND result IS NULL AND NOT EXISTS \
                    (SELECT FROM {S}.locks l WHERE l.state_id = $1 AND l.lock_id = r.lock_id)";
        self.connection.execute(&self.schema.sql(text), &[&state]).await?;
        Ok(())
    }

    /// Adds a request to the end of the queue, inside the caller's transaction. A rollback does not release the advisory lock of the
    /// request, but no request has its number then, and it ends with the session.
    async fn join(&self, workspace: &str, info: &LockInfo, claims: &Claims) -> Result<Ticket, Failure> {
        let state = self.state(workspace).await?;
        self.remove_dead(state).await?;
        let text = "INSERT INTO {S}.locks (state_id, lock_id, info, backend_pid) VALUES ($1, $2, $3, pg_backend_pid()) RETURNING id";
        let row = self
            .connection
            .query_one(&self.schema.sql(text), &[&state, &info.id, &info.to_json()])
            .await?;
        let ticket = Ticket {
            state,
            number: row.get(0),
            info: info.clone(),
        };
        self.advisory("pg_try_advisory_lock", ticket.number).await?;
        let text = "INSERT INTO {S}.lock_claims (request, state_id, key, mode, address) SELECT $1, $2, key, mode, address FROM \
                    unnest($3::text[], $4::text[], $5::text[]) AS new (key, mode, address)";
        for batch in claims.list.chunks(BATCH) {
            let keys: Vec<&str> = batch.iter().map(|claim| claim.key.as_str()).collect();
            let modes: Vec<&str> = batch.iter().map(|claim| claim.mode.as_str()).collect();
            let addresses: Vec<&str> = batch.iter().map(|claim| claim.address.as_str()).collect();
            self.connection
                .execute(
                    &self.schema.sql(text),
                    &[&ticket.number, &state, &keys, &modes, &addresses],
                )
                .await?;
        }
        Ok(ticket)
    }

    /// Grants a request, unless it conflicts with an earlier one. Returns `None` if the request is not in the queue any more.
    async fn attempt(&self, ticket: &Ticket) -> Result<Option<Attempt>, Failure> {
        if !self.lock_row(ticket.state).await? {
            return Ok(None);
        }
        self.remove_dead(ticket.state).await?;
        if !self.is_queued(ticket).await? {
            return Ok(None);
        }
        let text = "SELECT own.mode, other.request, other.mode, other.address, l.info, l.granted FROM {S}.lock_claims own JOIN \
                    {S}.lock_claims other ON other.state_id = own.state_id AND other.key = own.key AND other.request < own.request JOIN \
                    {S}.locks l ON l.id = other.request WHERE own.request = $1 ORDER BY other.request, other.address LIKE 'output.%', \
                    other.address";
        let rows = self.connection.query(&self.schema.sql(text), &[&ticket.number]).await?;
        let overlaps: Vec<Overlap> = rows
            .iter()
            .map(|row| Overlap {
                own: Mode::parse(row.get(0)),
                request: row.get(1),
                other: Mode::parse(row.get(2)),
            })
            .collect();
        if let Some(row) = claims::blocker(ticket.number, &overlaps).and_then(|at| rows.get(at)) {
            return Ok(Some(Attempt::Blocked {
                holder: LockInfo::from_json(row.get::<_, &str>(4).as_bytes()),
                address: row.get(3),
                waits: !row.get::<_, bool>(5),
            }));
        }
        let text = "UPDATE {S}.locks SET granted = true WHERE id = $1";
        self.connection
            .execute(&self.schema.sql(text), &[&ticket.number])
            .await?;
        Ok(Some(Attempt::Granted))
    }

    /// Returns true if the rows of a request still exist.
    pub async fn is_queued(&self, ticket: &Ticket) -> Result<bool, Failure> {
        let text = self
            .schema
            .sql("SELECT 1 FROM {S}.locks WHERE id = $1 AND state_id = $2 AND lock_id = $3");
        let found = self
            .connection
            .query_opt(&text, &[&ticket.number, &ticket.state, &ticket.info.id])
            .await?;
        Ok(found.is_some())
    }

    /// Acquires the advisory lock of a request again after it ended with its connection. If the rows of the request still exist, no
    /// conflicting request was granted meanwhile, because that would have removed them first. Returns false if the rows do not exist any
    /// more.
    pub async fn take_again(&self, ticket: &Ticket) -> Result<bool, Failure> {
        if !(self.lock_row(ticket.state).await? && self.is_queued(ticket).await?) {
            return Ok(false);
        }
        if !self.advisory("pg_try_advisory_lock", ticket.number).await? {
            return Ok(false);
        }
        let text = "UPDATE {S}.locks SET backend_pid = pg_backend_pid() WHERE id = $1";
        self.connection
            .execute(&self.schema.sql(text), &[&ticket.number])
            .await?;
        Ok(true)
    }

    /// Adds a request to the queue unless it is there already, and tries to grant it.
    pub async fn request(
        &self,
        workspace: &str,
        info: &LockInfo,
        claims: &Claims,
        mut waiting: Option<Ticket>,
    ) -> Result<(Ticket, Attempt), Failure> {
        loop {
            let ticket = match waiting.take() {
                Some(ticket) => ticket,
                None => within(self.connection, BEGIN, self.join(workspace, info, claims)).await?,
            };
            // If `force-unlock` or the deletion of the workspace has removed the rows, the request is made again.
            if let Some(attempt) = within(self.connection, BEGIN, self.attempt(&ticket)).await? {
                return Ok((ticket, attempt));
            }
            self.end(&ticket).await?;
        }
    }

    /// Releases a lock of this session, and ends its run.
    pub async fn release(&self, ticket: &Ticket, run: Option<i64>) -> Result<(), Failure> {
        within(self.connection, BEGIN, async {
            if let Some(run) = run {
                let ended =
                    "UPDATE {S}.runs SET result = 'finished', ended_at = now() WHERE id = $1 AND result IS NULL";
                self.connection.execute(&self.schema.sql(ended), &[&run]).await?;
                // If a creation has no result, an object may exist that the state does not have, so it stays recorded. For other
                // operations, the state has the object, and the next plan reads it.
                let known = "DELETE FROM {S}.operations WHERE run_id = $1 AND action <> 'create'";
                self.connection.execute(&self.schema.sql(known), &[&run]).await?;
            }
            self.leave(ticket).await
        })
        .await?;
        self.end(ticket).await
    }

    /// Removes the rows of a request of this session.
    pub async fn leave(&self, ticket: &Ticket) -> Result<(), Failure> {
        let text = "DELETE FROM {S}.locks WHERE id = $1 AND lock_id = $2";
        self.connection
            .execute(&self.schema.sql(text), &[&ticket.number, &ticket.info.id])
            .await?;
        Ok(())
    }

    /// Releases the advisory lock of a request whose rows were removed.
    pub async fn end(&self, ticket: &Ticket) -> Result<(), Failure> {
        self.advisory("pg_advisory_unlock", ticket.number).await.map(drop)
    }

    /// Ends a request of another session by ending that session, inside the caller's transaction. Returns false if there is no such
    /// request.
    pub async fn force(&self, workspace: &str, id: &str) -> Result<bool, Failure> {
        let state = self.state(workspace).await?;
        let text = "SELECT id, backend_pid FROM {S}.locks WHERE state_id = $1 AND lock_id = $2";
        let rows = self.connection.query(&self.schema.sql(text), &[&state, &id]).await?;
        for row in &rows {
            let (number, pid): (i32, i32) = (row.get(0), row.get(1));
            // The process ID may belong to another session by now, so the condition requires that the session holds this advisory lock.
            let end = "SELECT pg_terminate_backend(pid, 10000) FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid = $1 AND \
                       objsubid = 2 AND objid::bigint = $2 AND classid = '{S}.locks'::regclass::oid AND database = (SELECT oid FROM \
                       pg_database WHERE datname = current_database())";
            self.connection
                .query(&self.schema.sql(end), &[&pid, &i64::from(number)])
                .await?;
            let text = "DELETE FROM {S}.locks WHERE id = $1";
            self.connection.execute(&self.schema.sql(text), &[&number]).await?;
        }
        self.remove_dead(state).await?;
        Ok(!rows.is_empty())
    }
}
