//! The trait for Rust types with validation and semantic equality of their own.

use cty::{Type, Value};

use crate::model::{Cty, ModelError};
use crate::type_rules::TypeRules;

/// A Rust type whose values are written as a simpler type (its base). The type accepts only some values of the base, and defines which
/// values mean the same.
///
/// A field of such a type needs no rule and no plan modifier:
/// - a configured value that the type does not accept is an error of the configuration, at its path;
/// - a value that means the same as the prior one ([`CustomType::same`]) is no change. A plan keeps the prior value; the results of
///   creating, updating and reading keep the planned or stored value. Otherwise a service that returns the same document in another form
///   would cause a difference in every plan, or an error because the result is not as planned.
///
/// [`types`](crate::types) has the custom types that many providers need.
///
/// ```
/// use monoform_sdk::model::ModelError;
/// use monoform_sdk::CustomType;
///
/// /// The name of a host, in which upper and lower case mean the same.
/// #[derive(Clone, Debug, PartialEq)]
/// pub struct Host(String);
///
/// impl CustomType for Host {
///     type Base = String;
///
///     fn from_base(base: String) -> Result<Host, ModelError> {
///         match base.contains(' ') {
///             true => Err(ModelError::new("the name of a host has no spaces")),
///             false => Ok(Host(base)),
///         }
///     }
///
///     fn to_base(&self) -> String {
///         self.0.clone()
///     }
///
///     fn same(&self, other: &Host) -> bool {
///         self.0.eq_ignore_ascii_case(&other.0)
///     }
/// }
/// ```
pub trait CustomType: Sized {
    /// The simpler type as which values are written in configuration, plan and state.
    type Base: Cty;

    /// Reads a value. The message of an error is a part of a sentence, and does not contain the value, which may be secret.
    ///
    /// # Errors
    /// The type does not accept the value.
    fn from_base(base: Self::Base) -> Result<Self, ModelError>;

    /// Writes the value, in the form in which it was read.
    fn to_base(&self) -> Self::Base;

    /// True if a plan keeps the prior value in place of a configured one that means the same. If false, the plan shows the new
    /// spelling as a change, as that of a provider on terraform-plugin-framework does; results are compared by meaning in both
    /// cases.
    const SAME_IN_PLANS: bool = true;

    /// Returns true if two values mean the same ("semantic equality"). By default, only equal ones do.
    fn same(&self, _other: &Self) -> bool {
        false
    }
}

impl<T: CustomType> Cty for T {
    fn ty() -> Type {
        T::Base::ty()
    }
    fn from_cty(value: &Value) -> Result<T, ModelError> {
        T::from_base(T::Base::from_cty(value)?)
    }
    fn to_cty(&self) -> Value {
        self.to_base().to_cty()
    }
    fn rules() -> TypeRules {
        let same = |one: &Value, other: &Value| match (T::from_cty(one), T::from_cty(other)) {
            (Ok(one), Ok(other)) => one.same(&other),
            _ => false,
        };
        TypeRules::custom(
            |value| T::from_cty(value).err(),
            same,
            T::SAME_IN_PLANS,
            T::Base::rules(),
        )
    }
}
