//! `random_string`, a managed type, and `random_password`, both as a managed and as an ephemeral type.

use monoform_sdk::cty::{Type, Value};
use monoform_sdk::plan::Change;
use monoform_sdk::schema::{Attribute, computed, optional, required};
use monoform_sdk::{
    Attr, Check, Context, Diagnostic, EphemeralResource, Modifier, Opened, Resource, Result, Schema, Upgrader,
    Validator, async_trait, model,
};

use crate::Keepers;
use crate::text::{self, Class, Wish};

const MINIMA: &[&str] = &["min_upper", "min_lower", "min_numeric", "min_special"];

// Both managed types have the same arguments, and different computed attributes.
macro_rules! managed_model {
    ($name:ident { $($computed:tt)* }) => {
        model! {
            /// Random text and what it is made of.
            pub struct $name {
                /// Values of any meaning. When one changes, new text is made.
                pub keepers: Keepers = optional().requires_replace_if_values_change(),
                /// Number of characters: at least 1, and at least the sum of all minima.
                pub length: Attr<i64> = length().requires_replace(),
                /// True if upper-case letters may be used.
                pub upper: Attr<bool> = optional().computed().default(true).requires_replace(),
                /// True if lower-case letters may be used.
                pub lower: Attr<bool> = optional().computed().default(true).requires_replace(),
                /// True if digits may be used.
                pub numeric: Attr<bool> = optional().computed()
                    .validate(some_class("numeric")).modify(same_as("number")).requires_replace(),
                /// True if digits may be used; the former name of `numeric`.
                pub number: Attr<bool> = optional().computed()
                    .deprecated("It was renamed: use numeric instead.")
                    .validate(some_class("number")).modify(same_as("numeric")).requires_replace(),
                /// True if special characters may be used.
                pub special: Attr<bool> = optional().computed().default(true).requires_replace(),
                /// Least number of upper-case letters.
                pub min_upper: Attr<i64> = optional().computed().default(0i64).requires_replace(),
                /// Least number of lower-case letters.
                pub min_lower: Attr<i64> = optional().computed().default(0i64).requires_replace(),
                /// Least number of digits.
                pub min_numeric: Attr<i64> = optional().computed().default(0i64).requires_replace(),
                /// Least number of special characters.
                pub min_special: Attr<i64> = optional().computed().default(0i64).requires_replace(),
                /// The special characters to use, in place of the usual ones: !@#$%&*()-_=+[]{}<>:?
                pub override_special: Attr<String> = optional().modify(Modifier::custom(override_special)),
                $($computed)*
            }
        }

        impl $name {
            fn wish(&self) -> Wish {
                Wish {
                    length: self.length.clone().or(0),
                    upper: class(&self.upper, &self.min_upper),
                    lower: class(&self.lower, &self.min_lower),
                    numeric: class(&self.numeric, &self.min_numeric),
                    special: class(&self.special, &self.min_special),
                    override_special: self.override_special.text().to_owned(),
                }
            }

            /// Returns the model of an imported text. Its length is that of the text. The other arguments have their defaults, since they
            /// cannot be inferred.
            fn imported(text: &str) -> $name {
                $name { result: text.into(), ..$name::default() }.filled()
            }

            /// Sets the attributes that are missing in states of earlier versions.
            fn filled(mut self) -> $name {
                if !matches!(self.length, Attr::Known(_)) {
                    self.length = (self.result.text().len() as i64).into();
                }
                // States of earlier versions have only `number`, the old name of `numeric`.
                self.number = self.number.or(true).into();
                self.numeric = self.number.clone();
                for class in [&mut self.upper, &mut self.lower, &mut self.special] {
                    *class = class.clone().or(true).into();
                }
                for least in [&mut self.min_upper, &mut self.min_lower, &mut self.min_numeric, &mut self.min_special] {
                    *least = least.clone().or(0).into();
                }
                self
            }
        }
    };
}

managed_model!(StringModel {
    /// The text.
    pub result: Attr<String> = computed().keep(),
    /// The text.
    pub id: Attr<String> = computed().keep(),
});

managed_model!(PasswordModel {
    /// The password.
    pub result: Attr<String> = computed().sensitive().keep(),
    /// A bcrypt hash of the first 72 bytes of the password.
    pub bcrypt_hash: Attr<String> = computed().sensitive().keep(),
    /// Always `none`.
    pub id: Attr<String> = computed().keep(),
});

model! {
    /// A password for one run.
    pub struct EphemeralModel {
        /// Number of characters: at least 1, and at least the sum of all minima.
        pub length: Attr<i64> = length(),
        /// True if upper-case letters may be used.
        pub upper: Attr<bool> = optional().computed().default(true),
        /// True if lower-case letters may be used.
        pub lower: Attr<bool> = optional().computed().default(true),
        /// True if digits may be used.
        pub numeric: Attr<bool> = optional().computed().default(true).validate(some_class("numeric")),
        /// True if special characters may be used.
        pub special: Attr<bool> = optional().computed().default(true),
        /// Least number of upper-case letters.
        pub min_upper: Attr<i64> = optional().computed().default(0i64),
        /// Least number of lower-case letters.
        pub min_lower: Attr<i64> = optional().computed().default(0i64),
        /// Least number of digits.
        pub min_numeric: Attr<i64> = optional().computed().default(0i64),
        /// Least number of special characters.
        pub min_special: Attr<i64> = optional().computed().default(0i64),
        /// The special characters to use, in place of the usual ones: !@#$%&*()-_=+[]{}<>:?
        pub override_special: Attr<String> = optional(),
        /// The password.
        pub result: Attr<String> = computed().sensitive(),
        /// A bcrypt hash of the first 72 bytes of the password.
        pub bcrypt_hash: Attr<String> = computed().sensitive(),
    }
}

fn length() -> Attribute {
    required()
        .validate(Validator::AtLeast(1))
        .validate(Validator::AtLeastSumOf(MINIMA))
}

fn class(enabled: &Attr<bool>, least: &Attr<i64>) -> Class {
    Class {
        enabled: enabled.clone().or(true),
        least: least.clone().or(0),
    }
}

/// Returns the rule that at least one class must be enabled. It applies only if the configuration sets all of them.
fn some_class(own: &'static str) -> Validator {
    Validator::custom(move |check: &Check<'_>| {
        let mut all = vec![check.value];
        for name in ["special", "upper", "lower"] {
            all.push(check.other(name)?);
        }
        let off = all.iter().all(|v| v.as_bool() == Some(false));
        off.then(|| {
            let detail = format!("At least one attribute out of [special,upper,lower,{own}] must be specified as true");
            Diagnostic::error("Invalid Attribute Combination", detail).at(check.path.clone())
        })
    })
}

/// Gives `number` and `numeric` the same planned value: `number` is the former name of `numeric`.
fn same_as(other: &'static str) -> Modifier {
    Modifier::custom(move |change: &mut Change<'_>| {
        let null = Value::null(Type::Bool);
        let twin = change.config_block.get(other).unwrap_or(&null);
        change.planned = match (change.config.is_null(), twin.is_null()) {
            (false, false) => {
                let differ = change.config.is_known() && twin.is_known() && change.config != twin;
                // The rule runs for both arguments, but the contradiction is reported once.
                if differ && other == "numeric" {
                    change.diagnostics.push(
                        Diagnostic::error(
                            "Number and numeric are both configured with different values",
                            "The argument number is the former name of numeric: remove number.",
                        )
                        .at(change.path.clone()),
                    );
                }
                return;
            }
            (false, true) => return,
            (true, false) => twin.clone(),
            (true, true) => Value::bool(true),
        };
    })
}

/// Replaces the object if the argument changes, except from an empty text to null, since both mean the default characters.
fn override_special(change: &mut Change<'_>) {
    if let Some(prior) = change.prior
        && *prior != change.planned
        && !(prior.as_str() == Some("") && change.planned.is_null())
    {
        change.replace = true;
    }
}

pub(crate) struct RandomString;

#[async_trait]
impl Resource for RandomString {
    type Model = StringModel;
    type Client = ();

    const STATE_ONLY: bool = true;

    fn schema(&self) -> Schema {
        Schema::of::<StringModel>()
            .version(2)
            .describe("Random text. For secrets use random_password, which is not shown.")
    }

    fn upgraders(&self) -> Vec<Upgrader<StringModel>> {
        vec![Upgrader::from::<StringModel>(1, |old| Ok(old.filled()))]
    }

    async fn create(&self, plan: StringModel, _cx: &mut Context<()>) -> Result<StringModel> {
        let result = plan.wish().make("Create Random String error")?;
        Ok(StringModel {
            id: result.clone().into(),
            result: result.into(),
            ..plan
        })
    }

    async fn import(&self, id: &str, _cx: &mut Context<()>) -> Result<StringModel> {
        Ok(StringModel {
            id: id.into(),
            ..StringModel::imported(id)
        })
    }
}

const PASSWORD_ERROR: &str = "Create Random Password error";

pub(crate) struct RandomPassword;

#[async_trait]
impl Resource for RandomPassword {
    type Model = PasswordModel;
    type Client = ();

    const STATE_ONLY: bool = true;

    fn schema(&self) -> Schema {
        Schema::of::<PasswordModel>()
            .version(3)
            .describe("A random password. It is not shown, but stored in the state.")
    }

    fn upgraders(&self) -> Vec<Upgrader<PasswordModel>> {
        const SUMMARY: &str = "Version 3 State Upgrade Error";
        let rehashed = |old: PasswordModel| {
            let hash = text::hash_text_now(old.result.text(), SUMMARY)?;
            Ok(PasswordModel {
                bcrypt_hash: hash.into(),
                ..old.filled()
            })
        };
        vec![
            Upgrader::from::<PasswordModel>(0, rehashed),
            Upgrader::from::<PasswordModel>(1, |old| Ok(old.filled())),
            // Some releases computed the hash of more than 72 bytes, which does not match the password. It is computed again.
            Upgrader::from::<PasswordModel>(2, move |old| {
                if text::verifies(old.result.text(), old.bcrypt_hash.text()) {
                    Ok(old.filled())
                } else {
                    rehashed(old)
                }
            }),
        ]
    }

    async fn create(&self, plan: PasswordModel, _cx: &mut Context<()>) -> Result<PasswordModel> {
        let result = plan.wish().make(PASSWORD_ERROR)?;
        let bcrypt_hash = text::hash(&result, PASSWORD_ERROR).await?.into();
        Ok(PasswordModel {
            bcrypt_hash,
            result: result.into(),
            // The ID is a constant, because it is not sensitive and must not reveal the password.
            id: "none".into(),
            ..plan
        })
    }

    async fn import(&self, id: &str, _cx: &mut Context<()>) -> Result<PasswordModel> {
        let bcrypt_hash = text::hash(id, "Import Random Password Error").await?.into();
        Ok(PasswordModel {
            bcrypt_hash,
            id: "none".into(),
            ..PasswordModel::imported(id)
        })
    }
}

pub(crate) struct EphemeralPassword;

#[async_trait]
impl EphemeralResource for EphemeralPassword {
    type Model = EphemeralModel;
    type Client = ();

    fn schema(&self) -> Schema {
        Schema::of::<EphemeralModel>().describe("A random password for one run, which is not stored.")
    }

    async fn open(&self, config: EphemeralModel, _cx: &mut Context<()>) -> Result<Opened<EphemeralModel>> {
        let wish = Wish {
            length: config.length.clone().or(0),
            upper: class(&config.upper, &config.min_upper),
            lower: class(&config.lower, &config.min_lower),
            numeric: class(&config.numeric, &config.min_numeric),
            special: class(&config.special, &config.min_special),
            override_special: config.override_special.text().to_owned(),
        };
        let result = wish.make(PASSWORD_ERROR)?;
        let bcrypt_hash = text::hash(&result, PASSWORD_ERROR).await?.into();
        Ok(EphemeralModel {
            bcrypt_hash,
            result: result.into(),
            ..config
        }
        .into())
    }
}

#[cfg(test)]
mod tests;
