//! The command `metadata functions`, which prints the signatures of functions as JSON.

use lang::functions::signature::{self, SignatureParameter};
use serde_json::{Map, Value as Json};
use views::json::Object;

use crate::args::flags::{self, Flags, FromFlags};
use crate::commands::Command;
use crate::outcome::{Failure, Outcome};
use crate::session::Session;

pub const FUNCTIONS: Command = Command {
    path: "metadata functions",
    about: "Show signatures and descriptions for the available functions",
    positional: "",
    details: "Shows the signatures of all built-in functions.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    json: bool,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        Arguments {
            json: flags.switch("json", false, "Required: output the signatures as JSON."),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    if !arguments.json {
        return Err(Failure::usage(
            "The -json option is required",
            "The signatures are shown only in machine-readable form: use -json.",
        ));
    }
    session.ui.exact_line(cty::json::to_text(&document(), None));
    Ok(Outcome::success())
}

fn document() -> Json {
    let mut functions = Map::new();
    for (name, signature) in signature::all() {
        let parameters: Vec<Json> = signature.parameters.iter().map(parameter).collect();
        let told = Object::default()
            .with("description", signature.description)
            .with("return_type", cty::json::type_to_json(&signature.returns))
            .with_content("parameters", parameters)
            .with_some("variadic_parameter", signature.variadic.as_ref().map(parameter));
        let told = Json::from(told);
        // Each function has two names, as in Terraform.
        functions.insert(format!("core::{name}"), told.clone());
        functions.insert(name.to_owned(), told);
    }
    functions.sort_keys();
    Object::default()
        .with("format_version", "1.0")
        .with("function_signatures", functions)
        .into()
}

fn parameter(parameter: &SignatureParameter) -> Json {
    Object::default()
        .with("name", parameter.name)
        .with_some("description", parameter.description)
        .with_content("is_nullable", parameter.nullable)
        .with("type", cty::json::type_to_json(&parameter.ty))
        .into()
}
