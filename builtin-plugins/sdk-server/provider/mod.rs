//! The gRPC services of a provider: one for protocol 5, one for protocol 6, and one for batched calls ([`batches`]).
//!
//! Both protocols have the same messages, except for two descriptions of the provider and the names of some methods. The methods are
//! therefore written once, with the messages of protocol 6; the table in [`methods`] maps the names of both protocols to them. A test of
//! the crate `proto` checks that the protocols stay equal in this way.
//!
//! Methods take and return encoded messages, so that the code around them is compiled once instead of once for each message type.

mod actions;
mod batches;
mod called;
mod data;
mod descriptions;
mod grpc;
mod managed;
mod methods;
mod service;
mod stores;

pub(crate) use self::batches::Batches;
pub(crate) use self::grpc::ProviderService;
pub(crate) use self::service::Service;
