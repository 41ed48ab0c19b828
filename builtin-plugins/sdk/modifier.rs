//! Modifiers: steps in the planning of an attribute's value.

use std::fmt;
use std::sync::Arc;

use cty::{Path, Value};

use crate::diag::Diagnostics;

/// A step in the planning of an attribute's value.
#[derive(Clone)]
pub enum Modifier {
    /// Keeps the prior value if the planned value is unknown because the configuration does not set one (`UseStateForUnknown` of
    /// terraform-plugin-framework).
    Keep,
    /// Does the same as [`Modifier::Keep`], unless the prior value is null: a result that was absent may exist after the update.
    KeepNonNull,
    /// Replaces the object if the planned value differs from the prior one.
    RequiresReplace,
    /// Replaces the object if the planned value differs from the prior one, and the configuration sets the attribute.
    RequiresReplaceIfConfigured,
    /// For a map: replaces the object if a value changes, a key is removed, or a key with a value is added. A new key with a null value,
    /// and an empty map in place of null, do not count.
    RequiresReplaceIfValuesChange,
    /// Step that is implemented by a function.
    Custom(Arc<dyn Fn(&mut Change<'_>) + Send + Sync>),
}

impl Modifier {
    /// Creates a step that is implemented by a function.
    ///
    /// ```
    /// use monoform_sdk::schema::{Attribute, optional};
    /// use monoform_sdk::{Attr, Modifier, model};
    ///
    /// /// Plans a name in lower case, as the service stores it.
    /// fn lower_case() -> Attribute {
    ///     optional().computed().modify(Modifier::custom(|change| {
    ///         if let Some(name) = change.planned.as_str() {
    ///             change.planned = name.to_lowercase().into();
    ///         }
    ///     }))
    /// }
    ///
    /// model! {
    ///     pub struct Host {
    ///         pub name: Attr<String> = lower_case(),
    ///     }
    /// }
    /// # let _ = Host::default();
    /// ```
    pub fn custom(step: impl Fn(&mut Change<'_>) + Send + Sync + 'static) -> Modifier {
        Modifier::Custom(Arc::new(step))
    }

    /// Creates a step that replaces the object if the planned value differs from the prior one and a condition holds.
    ///
    /// ```
    /// use monoform_sdk::Modifier;
    /// use monoform_sdk::schema::required;
    ///
    /// // A smaller disk is another disk.
    /// let size = required().modify(Modifier::requires_replace_if(|change| {
    ///     let number = |value: &monoform_sdk::cty::Value| value.as_number().and_then(|number| number.to_i64());
    ///     number(&change.planned) < change.prior.and_then(number)
    /// }));
    /// assert_eq!(size.modifiers.len(), 1);
    /// ```
    pub fn requires_replace_if(condition: impl Fn(&Change<'_>) -> bool + Send + Sync + 'static) -> Modifier {
        Modifier::custom(move |change| {
            if change.differs() && condition(change) {
                change.replace = true;
            }
        })
    }
}

impl fmt::Debug for Modifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Modifier::Keep => "Keep",
            Modifier::KeepNonNull => "KeepNonNull",
            Modifier::RequiresReplaceIfConfigured => "RequiresReplaceIfConfigured",
            Modifier::RequiresReplace => "RequiresReplace",
            Modifier::RequiresReplaceIfValuesChange => "RequiresReplaceIfValuesChange",
            Modifier::Custom(_) => "Custom",
        })
    }
}

/// Change of one attribute, as input and output of its modifiers.
pub struct Change<'a> {
    /// Path of the attribute.
    pub path: Path,
    /// The configured value; null if the configuration sets none.
    pub config: &'a Value,
    /// The prior value, if there is a prior object.
    pub prior: Option<&'a Value>,
    /// The planned value after the earlier modifiers. A modifier can change it.
    pub planned: Value,
    /// True if the object must be replaced. A modifier can set it.
    pub replace: bool,
    /// Configuration of the block that contains the attribute.
    pub config_block: &'a Value,
    /// A modifier adds its errors and warnings to this list.
    pub diagnostics: &'a mut Diagnostics,
}

impl Change<'_> {
    /// Returns true if there is a prior object, and its value differs from the planned one. An unknown planned value counts as different,
    /// since it may become any value.
    #[must_use]
    pub fn differs(&self) -> bool {
        self.prior.is_some_and(|prior| *prior != self.planned)
    }

    /// Applies one modifier to the change.
    pub(crate) fn apply(&mut self, modifier: &Modifier) {
        match modifier {
            Modifier::KeepNonNull if self.prior.is_some_and(Value::is_null) => {}
            Modifier::Keep | Modifier::KeepNonNull => {
                // An unknown value of the configuration counts as a new value: the prior one is kept only if the
                // configuration sets none.
                if let Some(prior) = self.prior
                    && !self.planned.is_known()
                    && self.config.is_known()
                {
                    self.planned = prior.clone();
                }
            }
            Modifier::RequiresReplace => {
                if self.differs() {
                    self.replace = true;
                }
            }
            Modifier::RequiresReplaceIfConfigured => {
                if self.differs() && !self.config.is_null() {
                    self.replace = true;
                }
            }
            Modifier::RequiresReplaceIfValuesChange => {
                if self.prior.is_some_and(|prior| values_changed(prior, &self.planned)) {
                    self.replace = true;
                }
            }
            Modifier::Custom(step) => step(self),
        }
    }
}

/// Returns true if a map changed in a way that requires replacement; see [`Modifier::RequiresReplaceIfValuesChange`].
fn values_changed(old: &Value, new: &Value) -> bool {
    if old == new {
        return false;
    }
    // The unknown value may turn out to be different, so the plan has to announce the replacement.
    if !new.is_known() {
        return true;
    }
    let (Some(new_entries), Some(mut old_entries)) = (new.entries(), old.entries()) else {
        return match (old.entries(), new.entries()) {
            (None, Some(mut new)) => new.any(|(_, v)| !v.is_null()),
            (Some(mut old), None) => old.next().is_some(),
            _ => false,
        };
    };
    let added_or_changed = new_entries.into_iter().any(|(key, value)| match old.get(key) {
        Some(before) => before != value,
        None => !value.is_null(),
    });
    added_or_changed || old_entries.any(|(key, _)| new.get(key).is_none())
}
