//! The layout `objects`: a row for each object of a state, and a history of all writes.
//!
//! [`tables`] has the tables and their migrations. [`document`] takes the text of a state apart and puts it together again, byte for
//! byte; [`json`] finds the texts that a `jsonb` column would not restore. [`rows`] reads a whole state, and writes the
//! differences between two; [`history`] reads earlier states. [`client`] is the state client: one snapshot for each read, one
//! transaction for each write. [`connected`] is its session, which is connected again if the server fails, and [`copies`] has the states
//! that are kept beside the configuration.
//!
//! # Many runs on one state
//!
//! A plan reads one snapshot and locks nothing. After the plan is approved, an apply requests locks for the objects and outputs that it
//! changes, and for the resources that they depend on ([`claims`]). Commands that edit a state as a whole lock all of it. A request
//! consists of rows in the tables `locks` and `lock_claims`, which are valid as long as the session exists ([`locks`]). From these rows,
//! other programs know the holder, and `force-unlock` ends the holder's session. Each write checks in its transaction that the rows of its
//! request still exist, so that a program that has lost its lock writes nothing.
//!
//! The program compares the locked objects with those in its plan, and the run begins only if they are equal. From then on, each intent and
//! each outcome is written in a transaction at once ([`records`]). So the state always has all results, and a crash requires no recovery:
//! intents without an outcome remain in the table `operations`, and the next run reports them. At the end, the run writes the rest:
//! outputs, and results of checks ([`merge`]). Only differences to what the run has read are written. Rows that other runs may have changed
//! are neither written nor compared. The serial increases with each transaction.
//!
//! A refresh can find changes of objects that the run does not lock. They are written only if the row has not changed since it was read and
//! no other run has locked it. Otherwise they are dropped, and the next plan finds them again.

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
