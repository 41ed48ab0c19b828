//! Settings of a backend, from the block, from `-backend-config` and from questions, and the hash of a block in records.

use std::collections::BTreeMap;
use std::sync::Arc;

use config::Config;
use config::model::Backend;
use cty::{Type, Value};
use lang::body::{decode_body, path_range};
use lang::eval::Context;
use lang::scope::Constant;
use schema::{BlockSchema, Schema};
use syntax::ast::Body;
use syntax::content::{did_you_mean, suggest};
use syntax::{Diagnostic, Diagnostics, SourceMap};

use super::additions::is_recorded;
use super::record::CLOUD;
use crate::{Console, NoAnswer, Question};

/// Returns the block that configures the backend; `None` without one. A `cloud` block is returned as a block of the type [`CLOUD`].
#[must_use]
pub fn block(config: Option<&Config>) -> Option<Backend> {
    let root = &config?.root.module;
    let cloud = root.cloud.as_ref().map(|cloud| Backend {
        ty: CLOUD.into(),
        body: cloud.body.clone(),
        problems: cloud.problems.clone(),
        range: cloud.range.clone(),
        type_range: cloud.range.clone(),
        provider: None,
    });
    cloud.or_else(|| root.backend.clone())
}

/// Makes all attributes and blocks of a schema optional, because missing settings may come from other sources.
fn lenient(block: &BlockSchema) -> BlockSchema {
    let mut block = block.clone();
    for attribute in block.attributes.values_mut() {
        attribute.optional |= attribute.required;
        attribute.required = false;
    }
    for nested in block.blocks.values_mut() {
        nested.min_items = 0;
        nested.block = lenient(&nested.block);
    }
    block
}

/// Decodes the settings of a block as an object of the schema's type. Required settings may be missing.
///
/// # Errors
/// A setting cannot be evaluated, is not in the schema, or has a value that does not fit.
pub fn decode_block(block: &Backend, schema: &Schema) -> Result<Value, Diagnostics> {
    block.problems.clone().into_result(())?;
    decode(&block.body, schema)
}

/// Decodes a body as an object of the schema's type. Required settings may be missing.
///
/// # Errors
/// An argument or block is not in the schema, or has a value that does not fit.
pub fn decode(body: &Body, schema: &Schema) -> Result<Value, Diagnostics> {
    let (value, problems) = decode_body(body, &lenient(&schema.block), Context::new(&Constant));
    problems.into_result(value)
}

/// Gives each problem the source range of its setting in `body`. Without a body, the problems stay as they are.
pub fn located(
    problems: impl IntoIterator<Item = (Diagnostic, cty::Path)>,
    body: Option<&Body>,
    schema: &Schema,
) -> Diagnostics {
    let at = |(problem, path): (Diagnostic, cty::Path)| match body {
        Some(body) => problem.at(&path_range(body, &schema.block, &path)),
        None => problem,
    };
    problems.into_iter().map(at).collect()
}

/// Computes the hash of a block for records. It is equal to Terraform's, so that neither program reports a block as changed that the other
/// one has recorded.
#[must_use]
pub fn hash(ty: &str, config: &Value) -> u32 {
    let mut text = format!("<{};", lang::render::quote(ty));
    match config.entries() {
        Some(entries) => {
            let recorded = entries.filter(|(name, value)| is_recorded(ty, name, value.is_null()));
            let recorded = recorded.map(|(name, value)| (name.clone(), value.clone()));
            describe(&Value::object(recorded), &mut text);
        }
        None => describe(config, &mut text),
    }
    text.push_str(";>");
    crc32fast::hash(text.as_bytes())
}

/// Computes the hash of a `state_store` block. `provider` has the address, the version (empty without version
/// selection) and the local name of its provider.
#[must_use]
pub fn store_hash(ty: &str, config: &Value, provider: [&str; 3], provider_config: &Value) -> u32 {
    let mut text = format!("<{};", lang::render::quote(ty));
    describe(config, &mut text);
    text.push(';');
    for part in provider {
        text.push_str(&lang::render::quote(part));
        text.push(';');
    }
    describe(provider_config, &mut text);
    text.push_str(";>");
    crc32fast::hash(text.as_bytes())
}

/// Appends a value in the notation of Terraform's value library, from which the hash is computed.
fn describe(value: &Value, out: &mut String) {
    if !value.is_known() {
        out.push('?');
        return;
    }
    if value.is_null() {
        out.push('~');
        return;
    }
    if let Some(text) = value.as_str() {
        out.push_str(&lang::render::quote(text));
    } else if let Some(truth) = value.as_bool() {
        out.push(if truth { 'T' } else { 'F' });
    } else if let Some(number) = value.as_number() {
        out.push_str(&number.to_string());
    } else if let Some(entries) = value.entries() {
        let is_map = matches!(value.ty(), Type::Map(_));
        out.push(if is_map { '{' } else { '<' });
        for (name, element) in entries {
            if is_map {
                out.push_str(&lang::render::quote(name));
                out.push(':');
            }
            describe(element, out);
            out.push(';');
        }
        out.push(if is_map { '}' } else { '>' });
    } else {
        let is_tuple = matches!(value.ty(), Type::Tuple(_));
        out.push(if is_tuple { '<' } else { '[' });
        for element in value.as_seq().unwrap_or_default() {
            describe(element, out);
            out.push(';');
        }
        out.push(if is_tuple { '>' } else { ']' });
    }
}

/// Replaces some attributes and blocks in an object of a schema's type.
fn replaced(config: &Value, schema: &Schema, changes: &BTreeMap<Arc<str>, Value>) -> Value {
    let values = schema.ty.0.attributes().iter().map(|part| {
        let changed = changes.get(&part.name).cloned();
        changed.unwrap_or_else(|| {
            config
                .get(&part.name)
                .cloned()
                .unwrap_or_else(|| Value::null(part.ty.clone()))
        })
    });
    Value::object_of(&schema.ty.0, values.collect())
}

/// Adds the settings of `-backend-config` to those of a block, in the order of the command line.
///
/// # Errors
/// A file cannot be read, or has a setting that the backend does not know.
pub fn with_overrides(
    ty: &str,
    schema: &Schema,
    config: Value,
    overrides: &[String],
    sources: &mut SourceMap,
) -> Result<Value, Diagnostics> {
    let mut changes = BTreeMap::new();
    for text in overrides.iter().filter(|text| !text.is_empty()) {
        match text.split_once('=') {
            None => file(text, schema, &mut changes, sources)?,
            Some((name, value)) => {
                let (name, value) = argument(ty, schema, name.trim(), value)?;
                changes.insert(name, value);
            }
        }
    }
    Ok(replaced(&config, schema, &changes))
}

fn argument(ty: &str, schema: &Schema, name: &str, text: &str) -> Result<(Arc<str>, Value), Diagnostics> {
    let invalid =
        |detail: String| Diagnostics::from(Diagnostic::error("Invalid backend configuration argument", detail));
    let Some((known, attribute)) = schema.block.attributes.get_key_value(name) else {
        let names = schema.block.attributes.keys().map(|k| &**k);
        let hint = did_you_mean(suggest(name, names));
        return Err(invalid(format!(
            "The option -backend-config sets \"{name}\", which the backend \"{ty}\" does not have.{hint}"
        )));
    };
    let wanted = attribute.implied_type();
    // A string setting needs no quotes: otherwise users would have to quote it twice, for the shell and for HCL.
    if wanted == Type::String {
        return Ok((known.clone(), Value::string(text)));
    }
    let source = format!("-backend-config={name}=…");
    let wrong = |why: String| {
        invalid(format!(
            "The value of \"{name}\" in the option -backend-config cannot be used: {why}."
        ))
    };
    let (expression, problems) = syntax::parse_expression(&source, text, syntax::Pos::default());
    if let Some(problem) = problems.into_iter().find(Diagnostic::is_error) {
        return Err(wrong(problem.detail.trim_end_matches('.').to_owned()));
    }
    let (value, problems) = lang::eval::evaluate(&expression, Context::new(&Constant));
    if let Some(problem) = problems.into_iter().find(Diagnostic::is_error) {
        return Err(wrong(problem.detail.trim_end_matches('.').to_owned()));
    }
    let value = cty::convert(&value, &wanted).map_err(|e| wrong(e.message))?;
    Ok((known.clone(), value))
}

fn file(
    path: &str,
    schema: &Schema,
    changes: &mut BTreeMap<Arc<str>, Value>,
    sources: &mut SourceMap,
) -> Result<(), Diagnostics> {
    let bytes = std::fs::read(path).map_err(|e| {
        Diagnostics::from(Diagnostic::error(
            "Failed to read file",
            format!("The file \"{path}\" could not be read: {}.", files::io_reason(&e)),
        ))
    })?;
    sources.insert(path, &*String::from_utf8_lossy(&bytes));
    let parse = match path.ends_with(".json") {
        true => syntax::json::parse_file,
        false => syntax::parse_file,
    };
    let (body, problems) = parse(path, &bytes);
    if problems.has_errors() {
        return Err(problems);
    }
    let value = decode(&body, schema)?;
    let mut resolving = Diagnostics::new();
    let body = lang::body::resolve(&body, &schema.block, &mut resolving);
    let written = body
        .attributes
        .iter()
        .map(|a| &a.name)
        .chain(body.blocks.iter().map(|b| &b.ty));
    // Only the settings of the file are taken. The decoded object has null for all other settings, which must not replace the settings of
    // the block.
    for name in written {
        if let Some(value) = value.get(name) {
            changes.insert(Arc::from(&**name), value.clone());
        }
    }
    Ok(())
}

/// Asks for missing required settings. If questions are not possible, they stay missing, and the backend reports them.
///
/// # Errors
/// A question was interrupted.
pub fn asked(console: &dyn Console, schema: &Schema, config: Value, input: bool) -> Result<Value, Diagnostics> {
    let mut changes = BTreeMap::new();
    if !input {
        return Ok(config);
    }
    for (name, attribute) in &schema.block.attributes {
        if !attribute.required || config.get(name).is_some_and(|value| !value.is_null()) {
            continue;
        }
        let explanation = attribute.description.text.trim();
        let question = Question {
            secret: attribute.sensitive,
            ..Question::new(name, explanation)
        };
        loop {
            match console.ask(&question) {
                Ok(text) => match cty::convert(&Value::string(&text), &attribute.implied_type()) {
                    Ok(value) => {
                        changes.insert(name.clone(), value);
                        break;
                    }
                    // A person can correct an answer. A program that supplies answers would be asked forever, so it gets the error.
                    Err(e) if console.is_interactive() => {
                        let why = format!("This is no value for \"{name}\": {}.", e.message);
                        console.show(&Diagnostic::error("Invalid value", why).into());
                    }
                    Err(e) => {
                        let detail = format!("The answer is no value for \"{name}\": {}.", e.message);
                        return Err(Diagnostic::error("Invalid value", detail).into());
                    }
                },
                Err(NoAnswer::End) => break,
                Err(NoAnswer::Interrupted) => {
                    return Err(Diagnostic::error(
                        "Interrupted",
                        format!("The question for \"{name}\" was interrupted, and nothing was changed."),
                    )
                    .into());
                }
            }
        }
    }
    Ok(replaced(&config, schema, &changes))
}

/// Returns the names of the required settings that are missing.
pub fn absent(schema: &Schema, config: &Value) -> Vec<Arc<str>> {
    let required = schema.block.attributes.iter().filter(|(_, a)| a.required);
    let absent = required.filter(|(name, _)| config.get(name).is_none_or(Value::is_null));
    absent.map(|(name, _)| name.clone()).collect()
}

/// Reports the required settings that are missing.
pub fn missing(ty: &str, schema: &Schema, config: &Value, body: Option<&Body>) -> Diagnostics {
    let problem = |name: Arc<str>| {
        let problem = Diagnostic::error(
            "Missing required argument",
            format!(
                "The backend \"{ty}\" needs the argument \"{name}\": write it in the \"backend\" block, or set it with init and \
                 -backend-config=\"{name}=VALUE\"."
            ),
        );
        (problem, cty::Path::default())
    };
    located(absent(schema, config).into_iter().map(problem), body, schema)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::local;

    fn local_settings(path: Option<&str>, dir: Option<&str>) -> Value {
        let text = |text: Option<&str>| text.map_or(Value::null(Type::String), Value::string);
        Value::object([("path", text(path)), ("workspace_dir", text(dir))])
    }

    #[test]
    fn the_hash_is_the_one_terraform_records() {
        assert_eq!(hash("local", &local_settings(None, None)), 666_019_178);
        assert_eq!(hash("local", &local_settings(Some("one.tfstate"), None)), 427_796_062);
        assert_eq!(
            hash("local", &local_settings(Some("two.tfstate"), Some("ws"))),
            1_779_414_609
        );
    }

    #[test]
    fn an_argument_that_terraform_lacks_changes_the_hash_only_if_it_is_set() {
        let schema = ("schema_name", Value::string("s"));
        let theirs = hash("pg", &Value::object([schema.clone()]));
        let with = |layout: Value| hash("pg", &Value::object([schema.clone(), ("layout", layout)]));
        assert_eq!(with(Value::null(Type::String)), theirs);
        assert_ne!(with(Value::string("objects")), theirs);
    }

    #[test]
    fn the_hash_of_a_state_store_is_the_one_terraform_records() {
        let config = Value::object([("fault", Value::null(Type::String)), ("path", Value::string("one"))]);
        let provider = Value::object([("root", Value::string("states"))]);
        let hash = store_hash(
            "keep_dir",
            &config,
            ["example.com/test/keep", "1.0.0", "keep"],
            &provider,
        );
        assert_eq!(hash, 3_540_007_166);
    }

    #[test]
    fn overrides_replace_what_the_block_says_and_unknown_names_are_refused() {
        let schema = local::schema();
        let mut sources = SourceMap::default();
        let block = local_settings(Some("a"), Some("b"));
        let with = |overrides: &[&str], sources: &mut SourceMap| {
            let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
            with_overrides("local", &schema, block.clone(), &overrides, sources)
        };
        assert_eq!(
            with(&["path=x", " path =y=z"], &mut sources).unwrap(),
            local_settings(Some("y=z"), Some("b"))
        );
        assert_eq!(with(&[""], &mut sources).unwrap(), block);
        assert!(with(&["pth=x"], &mut sources).unwrap_err().0[0].detail.contains("path"));
    }
}
