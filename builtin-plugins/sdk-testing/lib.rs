//! Tests of plugins that are written with `monoform-sdk`. A provider is called as by a host, but without a process or a socket.
//!
//! Values go through the same encoding, planning and diagnostics as in production. An attribute that is not in the schema is an error.
//! Methods return errors as [`Diagnostics`](monoform_sdk::Diagnostics), and collect warnings for [`Harness::warnings`].
//!
//! [`Harness::object`] is an object of a managed resource with all its life: planned, applied, read again, imported, destroyed, with
//! its state and private data between the steps. [`Harness::ephemeral`] is the same for an ephemeral resource. [`Harness::list`],
//! [`Harness::invoke`], [`Harness::data`] and [`Harness::call`] are for list resources, actions, data sources and functions;
//! [`Harness::upgrade`], [`Harness::upgrade_identity`], [`Harness::move_from`] and [`Harness::generate_config`] for what hosts do with
//! states. [`Harness::allow_deferral`], [`Harness::with_provider_meta`] and [`Harness::stop_next`] set options of the calls.
//! [`state_store::conformance`] checks a state store. [`acceptance`] runs the executable of a provider in Monoform, Terraform and
//! OpenTofu.
//!
//! An author lists this crate in `[dev-dependencies]`, so that no plugin links it.
//! ```
//! # use monoform_sdk::schema::{computed, required};
//! # use monoform_sdk::{Attr, Context, Plain, Resource, Result, async_trait, model};
//! # use monoform_sdk_testing::Harness;
//! # model! {
//! #     pub struct Pet {
//! #         pub name: Attr<String> = required().requires_replace(),
//! #         pub id: Attr<String> = computed().keep(),
//! #     }
//! # }
//! # struct Pets;
//! # #[async_trait]
//! # impl Resource for Pets {
//! #     type Model = Pet;
//! #     type Client = ();
//! #     async fn create(&self, plan: Pet, _: &mut Context<()>) -> Result<Pet> {
//! #         Ok(Pet { id: "1".into(), ..plan })
//! #     }
//! # }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<()> {
//! let harness = Harness::new(Plain(|members| members.resource("zoo_pet", Pets)));
//! let mut pet = harness.object("zoo_pet");
//! pet.apply(&[("name", "Bo".into())]).await?;
//! assert_eq!(pet.get("id"), Some(&"1".into()));
//! assert_eq!(pet.plan(&[("name", "Max".into())]).await?.replace, ["name"]);
//! assert!(pet.apply(&[("nmae", "Bo".into())]).await.is_err(), "there is no such attribute");
//! pet.destroy().await
//! # }
//! ```

pub mod acceptance;
mod action;
mod calls;
mod config;
mod ephemeral;
mod granted;
mod harness;
mod hcl;
mod list;
mod object;
mod proposed;
pub mod state_store;
mod wires;

pub use self::config::Config;
pub use self::ephemeral::Ephemeral;
pub use self::harness::Harness;
pub use self::list::Listed;
pub use self::object::{Object, PlannedChange};
