//! The layout "objects": a row for each object of a state, and the history of each write.
//!
//! [`tables`] has the tables and their migrations. [`document`] takes the text of a state apart and puts it together again, byte for
//! byte; [`json`] finds the texts that a `jsonb` column would not restore. [`rows`] reads a whole state, and writes the
//! differences between two; [`history`] reads earlier states. [`client`] is the state client: one snapshot for each read, one
//! transaction for each write. [`connected`] is its session, which is connected again if the server fails, and [`copies`] has the states
//! that are kept beside the configuration.
//!
//! # Many runs on one state
//!
//! A plan locks nothing: it reads one snapshot. An apply requests locks after its plan was approved, for the objects and outputs that
//! it changes and for the resources that they depend on ([`claims`]); commands that edit a state as a whole lock all of it. A request
//! is rows in the tables `locks` and `lock_claims`, which live as long as the session ([`locks`]): others name the holder, and
//! `force-unlock` ends its session. Each write checks the rows of its request in its transaction, so that a program whose lock was
//! taken away writes nothing.
//!
//! The program compares the locked objects with those of its plan, and lets the run begin if they are equal. From then on each intent
//! and each outcome is a transaction as it happens ([`records`]), so the state has all results at any time, and nothing is recovered
//! after a crash: intents without an outcome stay in the table `operations`, and the next run names them. At its end the run writes
//! the rest: outputs, results of checks ([`merge`]). All writes are differences to what this run has read. Rows of others, which may
//! have changed meanwhile, are neither written nor compared, and the serial rises with each transaction.
//!
//! A refresh can find changes of objects that the run does not lock. They are written if the row is still the one that was read and
//! nobody else has locked it, and dropped otherwise: the next plan finds them again.

mod claims;
#[cfg(test)]
mod claims_tests;
mod client;
mod connected;
mod copies;
mod document;
#[cfg(test)]
mod document_tests;
mod history;
mod json;
mod locks;
mod merge;
mod records;
mod rows;
mod tables;
mod within;

pub(crate) use connected::Client;
