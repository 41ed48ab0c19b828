//! A provider as gRPC services: those of protocol 5 and of protocol 6, and the one that has calls in batches ([`batches`]).
//!
//! Both protocols have the same messages, except for two descriptions of the provider and the names of some methods. The methods
//! are therefore written once, in the messages of protocol 6, and [`methods`] is the table of what they are called. A test of the
//! crate `proto` holds the two protocols to that.
//!
//! The methods take and return encoded messages here, so that the machinery around them is compiled once rather than for each.

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
