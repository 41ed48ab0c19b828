//! The `terraform` provider, which is available in every configuration without being required. It has `terraform_data`,
//! `terraform_remote_state` and functions for variable files.
//!
//! In Terraform it is a part of the core; here it is a plugin like the others. It has no version and no configuration. Its functions need
//! the crates of the configuration language, so it may use those.
//!
//! It implements the provider of Terraform 1.16. `terraform_remote_state` reads states from local files, and from the state stores of this
//! executable, which run in its own process.

mod data;
mod decode;
mod encode;
mod remote_state;
mod store;
mod stored;

use monoform_sdk::cty::{Kind, Refinements, Type, Value};
use monoform_sdk::{
    Any, AnyStateStore, Arguments, Empty, Function, FunctionError, Members, NeverBlocks, Parameter, Provider, Result,
    async_trait,
};

/// Name of the provider in addresses and in the names of executables.
pub const NAME: &str = "terraform";

/// Terraform release whose provider this one implements. Configurations cannot require a version of the provider.
pub const VERSION: &str = "1.16.0";

/// Empty, since configurations cannot choose a version.
pub const RELEASED: &[&str] = &[];

/// State stores: their names and constructors.
pub type Stores = &'static [(&'static str, fn() -> AnyStateStore)];

/// Constructs the provider without state stores.
#[must_use]
pub fn provider() -> impl Provider {
    with_stores(&[])
}

/// Constructs the provider with state stores that `terraform_remote_state` can read.
#[must_use]
pub fn with_stores(stores: Stores) -> impl Provider {
    NeverBlocks(Terraform(stores))
}

struct Terraform(Stores);

#[async_trait]
impl Provider for Terraform {
    type Config = Empty;
    type Client = ();

    fn members(&self, members: &mut Members<()>) {
        members.resource("terraform_data", data::TerraformData);
        members.data_source("terraform_remote_state", remote_state::RemoteState(self.0));
        members.function("decode_tfvars", decode_tfvars());
        members.function("encode_expr", encode_expr());
        members.function("encode_tfvars", encode_tfvars());
    }

    async fn configure(&self, _config: Empty, _terraform_version: &str) -> Result<()> {
        Ok(())
    }
}

fn decode_tfvars() -> Function {
    Function::new(
        "Parses the text of a variable file.",
        "Takes text as it stands in a .tfvars file and gives an object with an attribute for each variable.",
        vec![Parameter::new::<String>("src", "Text of a .tfvars file.")],
        |arguments: Arguments<'_>| {
            let text: String = arguments.get(0)?;
            decode::decode(&text)
                .map(Any)
                .map_err(|e| FunctionError::new(e.to_string()))
        },
    )
}

fn encode_tfvars() -> Function {
    Function::new(
        "Writes the text of a variable file.",
        "Takes an object or a map and gives text, as it stands in a .tfvars file, that sets a variable for each attribute.",
        vec![Parameter::new::<Any>("value", "Values of variables by name.").allow_unknown()],
        |arguments: Arguments<'_>| {
            let Any(value) = arguments.get(0)?;
            if !value.is_wholly_known() {
                return Ok(Any(Value::unknown_not_null(Type::String)));
            }
            encode::tfvars(&value).map(|text| Any(text.into())).map_err(|e| FunctionError::new(e.to_string()))
        },
    )
    .returning(Type::String)
}

fn encode_expr() -> Function {
    Function::new(
        "Writes a value as an expression.",
        "Takes any value and gives the text of an expression that would give this value.",
        vec![Parameter::new::<Any>("value", "The value to write.").allow_unknown()],
        |arguments: Arguments<'_>| {
            let Any(value) = arguments.get(0)?;
            if !value.is_wholly_known() {
                return Ok(Any(Value::unknown_refined(Type::String, what_is_known(&value))));
            }
            Ok(Any(encode::expression(&value).into()))
        },
    )
    .returning(Type::String)
}

/// Returns the refinements of an expression's text for a value that is not wholly known: its first character, if the type of the value
/// determines it.
fn what_is_known(value: &Value) -> Refinements {
    let prefix = match value.ty() {
        _ if !value.is_certainly_not_null() => None,
        Type::Object(_) | Type::Map(_) => Some("{"),
        Type::Tuple(_) | Type::List(_) | Type::Set(_) => Some("["),
        Type::String => Some("\""),
        _ => None,
    };
    // Even a null value has a text (`null`), so the text itself is never null.
    Refinements {
        prefix: prefix.map(Into::into),
        ..Refinements::not_null()
    }
}

/// Returns true if a value is an object or a map.
fn is_mapping(value: &Value) -> bool {
    matches!(
        (value.kind(), value.ty()),
        (Kind::Seq(_) | Kind::Map(_), Type::Object(_) | Type::Map(_))
    )
}

#[cfg(test)]
mod tests {
    use monoform_sdk::cty::{Refinements, Type, Value};
    use monoform_sdk_testing::Harness;

    #[test]
    fn the_schema_is_the_one_of_the_core() {
        assert_eq!(
            Harness::new(crate::provider()).schema_text(),
            "resource terraform_data v0\n  id string computed\n  input any optional\n  output any computed\n  \
             triggers_replace any optional\n\
             data terraform_remote_state v0\n  backend string required\n  config any optional\n  \
             defaults any optional\n  outputs any computed\n  workspace string optional\n"
        );
    }

    #[test]
    fn unknown_values_give_what_is_known_of_the_text() {
        let harness = Harness::new(crate::provider());
        let object = Value::object([("a", Value::unknown(Type::String))]);
        let text = harness.call("encode_expr", std::slice::from_ref(&object)).unwrap();
        let expected = Refinements {
            prefix: Some("{".into()),
            ..Refinements::not_null()
        };
        assert_eq!(text, Value::unknown_refined(Type::String, expected));
        let text = harness.call("encode_expr", &[Value::unknown(Type::String)]).unwrap();
        assert_eq!(text, Value::unknown_not_null(Type::String));
        assert_eq!(
            harness.call("encode_tfvars", &[object]).unwrap(),
            Value::unknown_not_null(Type::String)
        );
    }
}
