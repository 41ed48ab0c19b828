//! States of a backend for the clients of `state serve`, which use Terraform's backend `http`.
//!
//! A backend is used by one thread at a time, and some of them answer one request after the other. So there are several threads with a
//! connection of their own ([`pool`]): reads are answered by any of them, and locks and writes of one state by the same one, in the
//! order of their arrival. A client's lock is a lock of the backend itself, with the client's own record, so that every other user of
//! the state sees who holds it ([`states`]).

mod command;
mod pool;
mod states;

use state::LockInfo;

pub use command::Event;
pub use pool::{Job, Pool, start};

/// Request of a client for the state of one workspace.
#[derive(Debug)]
pub enum Request {
    Read,
    /// Writes the text of a state. The ID is that of the client's lock; a client without a lock sends none.
    Write {
        lock: Option<String>,
        text: Vec<u8>,
    },
    /// Locks the state, with the record of the client.
    Lock(Vec<u8>),
    /// Releases the lock of the client with this record; without one, that of any client.
    Unlock(Vec<u8>),
}

/// Answer to a request.
#[derive(Debug)]
pub enum Answer {
    Done,
    /// Text of the state.
    State(Vec<u8>),
    NoState,
    /// Another program holds the lock.
    Locked(Box<LockInfo>),
    /// The client's lock is not the one that is held.
    Refused(String),
    /// The request cannot be understood.
    Invalid(String),
    Failed(String),
}
