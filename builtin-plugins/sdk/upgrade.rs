//! States that were stored by an earlier version of a resource type, or by another type.

use cty::json::Json;

use crate::diag::Result;
use crate::model::Model;
use crate::schema::{LazySchema, Schema};
use crate::state;

/// Function that reads the state of an earlier schema version.
pub(crate) type Upgrade<M> = Box<dyn Fn(&Json) -> Result<M> + Send + Sync>;

/// Conversion of states with an earlier schema version.
///
/// ```
/// use monoform_sdk::schema::{optional, required};
/// use monoform_sdk::{Attr, Upgrader, model};
///
/// model! {
///     /// The attributes of version 0.
///     pub struct Old {
///         pub minutes: Attr<i64> = required(),
///     }
/// }
///
/// model! {
///     pub struct Timer {
///         pub seconds: Attr<i64> = required(),
///         pub label: Attr<String> = optional(),
///     }
/// }
///
/// /// For `Resource::upgraders`, with a schema of `Schema::of::<Timer>().version(1)`.
/// fn upgraders() -> Vec<Upgrader<Timer>> {
///     vec![Upgrader::from(0, |old: Old| {
///         let seconds = old.minutes.known().map(|minutes| minutes * 60);
///         Ok(Timer { seconds: seconds.into(), ..Timer::default() })
///     })]
/// }
/// # let _ = upgraders();
/// ```
pub struct Upgrader<M> {
    pub(crate) from: i64,
    pub(crate) run: Upgrade<M>,
}

impl<M: Model> Upgrader<M> {
    /// Creates an upgrader from this version, whose attributes were those of `Old`. Unknown attributes are dropped, missing ones
    /// are null.
    pub fn from<Old: Model>(version: i64, run: impl Fn(Old) -> Result<M> + Send + Sync + 'static) -> Upgrader<M> {
        // Most states have the current version.
        let schema = LazySchema::default();
        let run = move |json: &Json| {
            let schema = schema.get(Schema::of::<Old>);
            run(Old::from_cty(&state::read_object(json, schema)?)?)
        };
        Upgrader {
            from: version,
            run: Box::new(run),
        }
    }
}

/// The state of a resource of another type.
///
/// ```
/// use monoform_sdk::schema::{computed, optional};
/// use monoform_sdk::{Attr, MoveSource, Result, model};
///
/// model! {
///     /// The attributes of `terraform_data` that are needed.
///     pub struct Data {
///         pub input: Attr<String> = optional(),
///         pub id: Attr<String> = computed(),
///     }
/// }
///
/// model! {
///     pub struct Note {
///         pub text: Attr<String> = optional(),
///     }
/// }
///
/// /// For `Resource::move_from`.
/// fn moved(source: &MoveSource) -> Result<Option<Note>> {
///     if source.type_name != "terraform_data" {
///         return Ok(None);
///     }
///     Ok(Some(Note { text: source.read::<Data>()?.input }))
/// }
/// # let _ = moved;
/// ```
#[derive(Clone, Debug)]
pub struct MoveSource {
    /// Full address of the provider that stored the state.
    pub provider: String,
    /// Resource type of the stored state.
    pub type_name: String,
    /// Schema version of the state.
    pub schema_version: i64,
    /// The attributes, in the form of the state file. [`MoveSource::read`] reads them as a model.
    pub state: Json,
    /// Identity, in the form of the state file; none if the object has none there.
    pub identity: Option<Json>,
    /// Schema version of the identity.
    pub identity_schema_version: i64,
}

impl MoveSource {
    /// Reads the state with these attributes; others are dropped, missing ones are null.
    pub fn read<M: Model>(&self) -> Result<M> {
        Ok(M::from_cty(&state::read(&self.state, &M::ty())?)?)
    }
}
