//! The `store` block of `terraform_data`. It stores the value of a write-only argument, so that the argument may be ephemeral.

use monoform_sdk::cty::Path;
use monoform_sdk::cty::{Type, Value};
use monoform_sdk::schema::{computed, optional};
use monoform_sdk::{Any, Attr, Diagnostic, Result, model};

model! {
    /// A value to store, which may be ephemeral.
    pub struct Store {
        /// The value to store. It is in no plan and in no state.
        pub input: Any = optional().write_only(),
        /// The stored value, unless `sensitive` is set.
        pub output: Any = computed(),
        /// The stored value, if `sensitive` is set.
        pub sensitive_output: Any = computed().sensitive(),
        /// Version of the value: when this changes, a new value is stored. Without a version, it is stored when `input` differs.
        pub version: Any = optional(),
        /// True if the value is found as `sensitive_output`, and is not shown.
        pub sensitive: Attr<bool> = optional(),
        /// True if a new value replaces the whole object.
        pub replace: Attr<bool> = optional(),
    }
}

impl Store {
    /// Plans the stored value. `self` has the outputs of the prior object, and `input` is the configured value. `before` is the prior
    /// block; `None` if there is none or the object is replaced. Returns true if a new value requires a replacement.
    pub fn plan(&mut self, input: &Value, before: Option<&Store>) -> std::result::Result<bool, Diagnostic> {
        for (name, attribute) in [("sensitive", &self.sensitive), ("replace", &self.replace)] {
            if attribute.is_unknown() {
                return Err(must_be_known(name));
            }
        }
        let (version, sensitive) = match before {
            Some(store) => (store.version.clone(), store.sensitive.clone()),
            None => (Any::default(), Attr::Null),
        };
        // If `sensitive` has changed, the stored value moves to the other output.
        if sensitive != self.sensitive {
            let kept = self.kept().clone();
            self.keep(kept);
        }
        let changed = if self.version.0.is_null() {
            self.kept() != input
        } else {
            self.version != version
        };
        if input.is_null() && self.output.0.is_null() && self.sensitive_output.0.is_null() {
            self.keep(Value::null(input.ty().clone()));
        } else if changed {
            self.keep(Value::unknown(input.ty().clone()));
        }
        Ok(self.replace == Attr::Known(true) && self.is_pending())
    }

    /// Sets outputs that are unknown in the plan to the configured value. `input` is called only if there are any.
    pub fn resolve(&mut self, input: impl FnOnce() -> Result<Value>) -> Result<()> {
        if self.is_pending() {
            let input = input()?;
            for output in [&mut self.output.0, &mut self.sensitive_output.0] {
                if !output.is_known() {
                    output.clone_from(&input);
                }
            }
        }
        Ok(())
    }

    /// Returns true if an output is unknown, so that apply sets it to a new value.
    fn is_pending(&self) -> bool {
        !self.output.0.is_known() || !self.sensitive_output.0.is_known()
    }

    fn kept(&self) -> &Value {
        match self.sensitive_output.0.is_null() {
            true => &self.output.0,
            false => &self.sensitive_output.0,
        }
    }

    fn keep(&mut self, value: Value) {
        let (to, other) = match self.sensitive {
            Attr::Known(true) => (&mut self.sensitive_output, &mut self.output),
            _ => (&mut self.output, &mut self.sensitive_output),
        };
        *to = Any(value);
        *other = Any(Value::null(Type::Dynamic));
    }
}

/// Returns the error for an argument that must be known while planning.
pub fn must_be_known(attribute: &str) -> Diagnostic {
    Diagnostic::error(
        "unexpected unknown value",
        format!(
            "What is planned depends on \"{attribute}\" of the block \"store\", so that its value must be known before anything is \
             applied. Use a value that comes from no resource of the same run."
        ),
    )
    .at(Path::root().attribute("store").attribute(attribute))
}

#[cfg(test)]
mod tests {
    use monoform_sdk_testing::Harness;

    use super::*;

    fn block(members: &[(&str, Value)]) -> Vec<(&'static str, Value)> {
        let given = |name: &str| members.iter().find(|(n, _)| *n == name).map(|(_, v)| v.clone());
        let any = |name: &str| given(name).unwrap_or_else(|| Value::null(Type::Dynamic));
        let flag = |name: &str| given(name).unwrap_or_else(|| Value::null(Type::Bool));
        let store = Value::object([
            ("input", any("input")),
            ("output", any("output")),
            ("sensitive_output", any("sensitive_output")),
            ("version", any("version")),
            ("sensitive", flag("sensitive")),
            ("replace", flag("replace")),
        ]);
        vec![("store", store)]
    }

    fn stored(state: &Value, name: &str) -> Value {
        state.get("store").and_then(|s| s.get(name)).cloned().unwrap()
    }

    /// Plans and applies a change. Returns the new state, and the paths that require a replacement.
    async fn next(state: Option<&Value>, members: &[(&str, Value)]) -> (Value, Vec<String>) {
        let harness = Harness::new(crate::provider());
        let config = block(members);
        let plan = harness.plan("terraform_data", state, &config).await.unwrap();
        assert!(stored(&plan.planned, "input").is_null());
        let new = harness.apply("terraform_data", state, Some(&plan.planned), &config);
        (
            new.await.unwrap(),
            plan.replace.iter().map(ToString::to_string).collect(),
        )
    }

    #[tokio::test]
    async fn without_version_a_new_input_is_kept() {
        let (first, _) = next(None, &[("input", "a".into())]).await;
        assert_eq!(stored(&first, "output"), "a".into());
        let (same, _) = next(Some(&first), &[("input", "a".into())]).await;
        assert_eq!(same, first);
        let (second, replaced) = next(Some(&first), &[("input", 2.into())]).await;
        assert_eq!((stored(&second, "output"), replaced), (2.into(), Vec::new()));
        assert_eq!(second.get("id"), first.get("id"));
        let (none, _) = next(Some(&second), &[]).await;
        assert!(stored(&none, "output").is_null());
    }

    #[tokio::test]
    async fn with_version_only_another_version_counts() {
        let (first, _) = next(None, &[("input", "a".into()), ("version", 1.into())]).await;
        let (same, _) = next(Some(&first), &[("input", "b".into()), ("version", 1.into())]).await;
        assert_eq!(stored(&same, "output"), "a".into());
        let (second, _) = next(Some(&first), &[("input", "b".into()), ("version", 2.into())]).await;
        assert_eq!(stored(&second, "output"), "b".into());
    }

    #[tokio::test]
    async fn sensitive_moves_what_is_kept() {
        let version = ("version", Value::from(1));
        let (first, _) = next(None, &[("input", "a".into()), version.clone()]).await;
        let secret = [("input", "b".into()), version, ("sensitive", true.into())];
        let (second, _) = next(Some(&first), &secret).await;
        assert_eq!(stored(&second, "sensitive_output"), "a".into());
        assert!(stored(&second, "output").is_null());
    }

    #[tokio::test]
    async fn replace_asks_for_a_new_object_with_a_new_value() {
        let config = |text: &str| [("input", text.into()), ("replace", true.into())];
        let (first, _) = next(None, &config("a")).await;
        let (_, replaced) = next(Some(&first), &config("a")).await;
        assert_eq!(replaced, Vec::<String>::new());
        let (_, replaced) = next(Some(&first), &config("b")).await;
        assert_eq!(replaced, ["store.input"]);
    }

    #[tokio::test]
    async fn what_decides_must_be_known() {
        let harness = Harness::new(crate::provider());
        for name in ["sensitive", "replace"] {
            let config = block(&[("input", "a".into()), (name, Value::unknown(Type::Bool))]);
            let errors = harness.plan("terraform_data", None, &config).await.unwrap_err();
            assert!(format!("{errors:?}").contains("unexpected unknown value"), "{errors:?}");
        }
    }
}
