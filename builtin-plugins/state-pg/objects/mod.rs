//! The layout "objects": a row for each object of a state, and the history of each write.
//!
//! [`tables`] has the tables and their migrations. [`document`] takes the text of a state apart and puts it together again, byte for
//! byte; [`json`] finds the texts that a `jsonb` column would not restore. [`rows`] reads a whole state, and writes the
//! differences between two; [`history`] reads earlier states. [`client`] is the state client: one snapshot for each read, one
//! transaction for each write.
//!
//! The lock of a state is an advisory lock of the session, as in the default layout, so that it ends with a killed program. Its
//! holder is in the table `locks`: another program names it, and `force-unlock` ends the session of its lock. A write checks that
//! row in its transaction, so that a program whose lock was taken away writes nothing.

mod client;
mod document;
#[cfg(test)]
mod document_tests;
mod history;
mod json;
mod rows;
mod tables;

pub(crate) use client::Client;
