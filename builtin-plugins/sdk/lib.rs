//! SDK for plugins: the built-in ones, and those of third parties.
//!
//! A plugin is a program that does one kind of work for Terraform, OpenTofu or Monoform: they start it, and it answers
//! their calls over gRPC on a local socket. This crate hides the protocol from authors. A provider is
//! a struct that implements [`Provider`] and lists its members: each type of managed resource implements [`Resource`],
//! each data source [`DataSource`], each ephemeral resource [`EphemeralResource`], each action [`Action`], and a [`Function`] is a
//! signature with a closure; a store of states implements [`StateStore`]. A provisioner implements [`Provisioner`].
//!
//! This crate is the author's side, and knows no protocol. The crate `monoform-sdk-server` serves what is written against it:
//! `main` is one call of its function `serve_provider`. The crate `monoform-sdk-testing` drives it in tests.
//!
//! What the SDK does for authors:
//! - Attributes are fields of a struct, declared together with their schema ([`derive@Model`], or [`model!`]); [`Attr`] says whether
//!   a value is known, null or unknown. No plugin walks maps by hand.
//! - Plans are computed from the schema ([`plan`]): defaults, unknown values, prior values that are kept, replacements. A resource
//!   adds only what is special about it.
//! - The usual rules for configurations are in the schema too ([`validate`]).
//! - States of earlier schema versions are read with their own models ([`Upgrader`]).
//!
//! Guarantees:
//! - A schema is compiled once, when it is first used; no call converts it again. Models of types that a run does not use cost
//!   nothing.
//! - A schema that cannot work is refused when a host or a test asks for the schemas, with all errors and their paths.
//! - A panic in a plugin's code is a diagnostic for that call, and the plugin goes on. What the call saved before
//!   ([`Context::save`], [`Context::set_private`]) is kept, as after an error.
//! - A panic in a task or thread that the plugin started itself is a warning in its next answer.
//! - Calls run in parallel, each on a thread of its own: a call that blocks its thread does not delay any other call.
//!   Tasks that calls spawn (`tokio::spawn`) share sixteen threads, so their blocking work belongs in [`blocking`]. A provider
//!   whose code never blocks can declare that ([`NeverBlocks`]), which makes its calls a little cheaper.
//! - Each call has its own stop signal ([`Stop`]), set when the user requests a stop, or when the caller disconnects.
//!   Closing an ephemeral resource gets no stop signal.
//! - No plugin outlives the program that started it.
//! - The SDK enables no feature of a library that an author may use as well, since features hold for the whole build. So JSON is
//!   a type of its own ([`Json`]), without loss of what a state file holds; any library can read its text.
//!
//! Of the crates of this repository, this one may use only `cty` (types and values), `locks` (records of locks), `process` (programs
//! that plugins run) and `sdk-derive`. A whole provider, as a third party would write it, is in `examples/notes.rs` of
//! `monoform-sdk-server`. To read the crate, begin with [`provider`] and [`resource`], then [`mod@model`], [`schema`], [`plan`];
//! `served` answers requests.

#![warn(missing_docs)]

pub mod action;
mod blocking;
mod check;
mod client;
mod configure;
pub mod context;
pub mod data;
mod deferral;
pub mod diag;
pub mod env;
pub mod function;
mod identity;
pub mod json;
mod list;
pub mod log;
mod meaning;
pub mod model;
mod model_error;
mod modifier;
mod numbers;
pub mod plan;
mod private;
pub mod provider;
pub mod provisioner;
mod record;
pub mod resource;
pub mod retry;
pub mod schema;
mod state;
pub mod state_store;
mod stop;
pub mod timeouts;
mod type_rules;
pub mod types;
mod upgrade;
pub mod validate;
mod waiting;

// Callers of the authors' traits: `monoform-sdk-server` and `monoform-sdk-testing` call plugins through these modules. They are
// released together with this crate, so these interfaces are not stable.
#[doc(hidden)]
pub mod calls;
#[doc(hidden)]
pub mod guard;
#[doc(hidden)]
pub mod pairing;
#[doc(hidden)]
pub mod served;
#[doc(hidden)]
pub mod wire;

// Derived code names the crate `monoform_sdk`, which must resolve in this crate, too.
extern crate self as monoform_sdk;

#[doc(no_inline)]
pub use async_trait::async_trait;
pub use cty;
#[doc(no_inline)]
pub use cty::json::Json;
#[doc(inline)]
pub use process::{collect, lines, program};

pub use action::{Action, Progress};
pub use blocking::blocking;
pub use configure::ConfigureContext;
pub use context::{Context, Stop};
pub use data::{DataSource, EphemeralResource, Opened};
pub use deferral::Deferral;
pub use diag::{Diagnostic, Diagnostics, Result, Severity};
pub use function::{Arguments, Function, FunctionError, Parameter};
pub use list::{Found, ListResource};
pub use meaning::CustomType;
/// Makes a struct with named fields a [`Model`](trait@Model): the schema of a block, and its value.
///
/// ```
/// use monoform_sdk::schema::{block, computed, optional, required};
/// use monoform_sdk::{Attr, Model, Validator};
///
/// /// A network.
/// #[derive(Clone, Default, Model)]
/// pub struct Network {
///     /// The name. A change of the name replaces the network.
///     #[member(required().requires_replace())]
///     pub name: Attr<String>,
///     /// The number of machines.
///     #[member(optional().computed().default(16i64).validate(Validator::AtLeast(1)))]
///     pub size: Attr<i64>,
///     /// Traffic that is let in.
///     #[member(block())]
///     pub rule: Vec<Rule>,
///     #[member(flatten)]
///     pub identity: Identity,
/// }
///
/// /// A kind of traffic that is let in.
/// #[derive(Clone, Default, Model)]
/// pub struct Rule {
///     /// The port.
///     #[member(required())]
///     pub port: Attr<i64>,
/// }
///
/// /// Attributes of every object of this provider.
/// #[derive(Clone, Default, Model)]
/// pub struct Identity {
///     /// The id.
///     #[member(computed().keep())]
///     pub id: Attr<String>,
/// }
/// ```
///
/// The type of a field gives the type of the attribute, and the comment on it is the description that users see. The
/// expression in `#[member(…)]` declares the rest:
/// - [`required()`](schema::required), [`optional()`](schema::optional) or [`computed()`](schema::computed), with what
///   [`Attribute`](schema::Attribute) adds: defaults, rules, modifiers of planned values;
/// - [`nested(…)`](schema::nested) around one of these, for an attribute that has attributes of its own: the field's type is
///   `Attr` of another model, or of a `Vec`, `Set` or `BTreeMap<String, _>` of one;
/// - [`block()`](schema::block) for nested blocks: the field's type is `M` (always there), `Attr<M>` (at most one), `Vec<M>`,
///   `Set<M>` or `BTreeMap<String, M>` of another model `M`; an `Attr` of the last three stands for blocks whose number may be
///   unknown, in a plan; [`computed()`](schema::BlockBuilder::computed) after it, for an `Attr` of blocks that the plugin may set;
/// - the word `flatten`: the members of another model are members of this one, too.
///
/// A name that Rust does not allow for a field stands before the expression: `#[member(name = "self", optional())]`.
///
/// Values of sensitive attributes are not shown by the struct's `Debug`, which the macro writes, too.
#[doc(inline)]
pub use monoform_sdk_derive::Model;
pub use type_rules::TypeRules;

/// Makes a type of the language from an enum of names, or from a struct around one value.
///
/// ```
/// use monoform_sdk::schema::{optional, required};
/// use monoform_sdk::{Attr, Cty, Model};
///
/// /// The size of a machine: a string. Another text in a configuration is an error, which lists the names.
/// #[derive(Clone, Debug, PartialEq, Cty)]
/// pub enum Size {
///     Small,
///     VeryLarge,
///     #[member(name = "x-large")]
///     Huge,
/// }
///
/// /// A port: a number from 0 to 65535.
/// #[derive(Clone, Debug, PartialEq, Cty)]
/// pub struct Port(pub u16);
///
/// #[derive(Clone, Default, Model)]
/// pub struct Machine {
///     #[member(required())]
///     pub size: Attr<Size>,
///     #[member(optional())]
///     pub ports: Attr<Vec<Port>>,
/// }
///
/// assert_eq!(Size::NAMES, ["small", "very_large", "x-large"]);
/// ```
///
/// Names of variants become words with underscores. `#[member(case = "kebab")]` on the enum makes hyphens of them, `"upper"` capital
/// letters, and `"verbatim"` leaves the names as they are.
#[doc(inline)]
pub use monoform_sdk_derive::Cty;

pub use model::{Any, Attr, Cty, Empty, Model, Set};
pub use modifier::Modifier;
pub use plan::Plan;
pub use provider::{Both, Members, NeverBlocks, Plain, Provider};
pub use provisioner::{HANDSHAKE_VARIABLES, Output, Provisioner};
pub use record::Record;
pub use resource::{IdentityAttribute, MoveSource, Resource, Upgrader};
pub use schema::Schema;
pub use state_store::{AnyStateStore, StateClient, StateStore};
pub use validate::{Check, Validator};
