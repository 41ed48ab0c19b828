//! Values that are known before the state is read, for the settings of a root module.
//!
//! The encryption of states is configured before a state is read. Its arguments can depend on input variables, on paths, on functions, and
//! on local values that use nothing else.

use std::sync::Arc;

use addrs::program::Mode;
use cty::Value;
use lang::body::decode_body;
use lang::eval::{Context, evaluate};
use lang::scope::Constant;
use schema::BlockSchema;
use syntax::ast::{Body, Expr};
use syntax::{Diagnostic, Diagnostics};

use crate::early::{ConstValues, EarlyModule};
use crate::files::FileSource;
use crate::loader::configuration_files;
use crate::model::{Config, Module};
use crate::values::{self, Questions, SetVariables};

/// Returns true if a file of a root module may have an `encryption` block. The text is searched for the word `encryption`, because few
/// modules have such a block, and parsing all of them would take time.
///
/// # Errors
/// The directory or a file cannot be read.
pub fn may_encrypt(files: &dyn FileSource, dir: &str) -> std::io::Result<bool> {
    const BLOCK: &[u8] = b"encryption";
    for (path, json) in configuration_files(files, dir)? {
        let text = files.read(&path)?;
        // JSON can hide any letter behind an escape.
        if json && text.windows(2).any(|part| part == b"\\u") {
            return Ok(true);
        }
        let found = |at: usize| {
            let before = at.checked_sub(1).map(|at| text[at]);
            let after = text[at + BLOCK.len()..]
                .iter()
                .find(|byte| !matches!(byte, b' ' | b'\t'));
            let whole = before.is_none_or(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'_' | b'-'));
            whole && matches!(after, Some(b'{' | b'"' | b'/'))
        };
        if (0..text.len().saturating_sub(BLOCK.len())).any(|at| text[at..].starts_with(BLOCK) && found(at)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Root module with the values of its variables, the working directory and the workspace, for settings that are needed
/// before the state is read.
pub struct KnownRoot {
    module: Arc<Module>,
    values: ConstValues,
    questions: Option<Arc<Questions>>,
    /// Working directory, as `path.cwd` returns it.
    cwd: String,
    workspace: String,
}

/// Prints no values: they may be secrets without a mark.
impl std::fmt::Debug for KnownRoot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KnownRoot").finish_non_exhaustive()
    }
}

impl KnownRoot {
    /// Collects the values of a root module's variables. A missing or invalid one is an error only where it is used.
    #[must_use]
    pub fn new(module: Arc<Module>, set: &SetVariables, cwd: &str, workspace: &str) -> KnownRoot {
        let collected = values::collect(&module, set).values.into_iter();
        KnownRoot {
            values: collected.map(|(name, variable)| (name, variable.value)).collect(),
            questions: set.questions().cloned(),
            module,
            cwd: cwd.to_owned(),
            workspace: workspace.to_owned(),
        }
    }

    /// Evaluates a body to an object of its schema. `variables` are further names that it can refer to.
    #[must_use]
    pub fn decode(&self, body: &Body, schema: &BlockSchema, variables: &[(Arc<str>, Value)]) -> (Value, Diagnostics) {
        let scope = EarlyModule::of_root(
            &self.module,
            self.values.clone(),
            self.questions.as_deref(),
            &self.cwd,
            &self.workspace,
        );
        prepare(&scope, body);
        let context = Context::new(&scope);
        let (value, problems) = decode_body(body, schema, context.with_variables(variables));
        // The problems of local values come first: those of the body may only be their consequences.
        let mut all = Diagnostics::new();
        scope.take_problems(&mut all);
        all.extend(problems);
        (value, all)
    }
}

/// In the language of OpenTofu, replaces settings of the `backend`, `state_store` or `cloud` block that are not
/// constant by their values. `workspace` returns the selected workspace; it is called only if there are such settings.
///
/// The values replace the expressions in the configuration, so that all readers of the block find only constants.
pub fn settle(config: &mut Config, set: &SetVariables, cwd: &str, workspace: impl FnOnce() -> String) {
    let root = &config.root.module;
    let body = match (&root.cloud, &root.backend) {
        (Some(cloud), _) => &cloud.body,
        (None, Some(backend)) => &backend.body,
        (None, None) => return,
    };
    if !Mode::current().has_opentofu() || is_constant(body) {
        return;
    }
    let known = KnownRoot::new(root.clone(), set, cwd, &workspace());
    let mut body = Body::clone(body);
    let mut problems = known.settle_body(&mut body);
    problems.0.retain(Diagnostic::is_error);
    let module = Arc::make_mut(&mut config.root.module);
    if let Some(cloud) = &mut module.cloud {
        cloud.body = Arc::new(body);
        cloud.problems = problems;
    } else if let Some(backend) = &mut module.backend {
        backend.body = Arc::new(body);
        backend.problems = problems;
    }
}

/// Returns true if all expressions of a body are constants. Those with errors are left to the decoder.
fn is_constant(body: &Body) -> bool {
    let constant = |expr: &Expr| matches!(expr, Expr::Invalid { .. }) || is_evaluated(expr);
    body.attributes.iter().all(|a| constant(&a.expr)) && body.blocks.iter().all(|b| is_constant(&b.body))
}

fn is_evaluated(expr: &Expr) -> bool {
    !evaluate(expr, Context::new(&Constant)).1.has_errors()
}

impl KnownRoot {
    /// Replaces the expressions of a block and of its nested blocks that are not constant by their values. An expression whose evaluation
    /// fails stays, and its problems are returned.
    fn settle_body(&self, body: &mut Body) -> Diagnostics {
        let mut problems = Diagnostics::new();
        for attribute in &mut body.attributes {
            if !matches!(attribute.expr, Expr::Invalid { .. }) && !is_evaluated(&attribute.expr) {
                match self.setting(&attribute.expr) {
                    Ok(value) => {
                        attribute.expr = Expr::Literal {
                            value,
                            range: attribute.expr.range().clone(),
                        }
                    }
                    Err(found) => problems.extend(found),
                }
            }
        }
        for block in &mut body.blocks {
            problems.extend(self.settle_body(&mut block.body));
        }
        problems
    }

    /// Evaluates a setting. Settings are stored in clear text, so a sensitive or ephemeral value is an error.
    fn setting(&self, expr: &Expr) -> Result<Value, Diagnostics> {
        let scope = EarlyModule::of_root(
            &self.module,
            self.values.clone(),
            self.questions.as_deref(),
            &self.cwd,
            &self.workspace,
        );
        scope.prepare(expr);
        let (value, problems) = evaluate(expr, Context::new(&scope));
        let mut all = Diagnostics::new();
        scope.take_problems(&mut all);
        all.extend(problems);
        let value = all.into_result(value)?;
        let (value, marks) = value.unmark_deep();
        let refused = |summary: &str, why: &str| {
            Diagnostics::from(
                Diagnostic::error(
                    summary,
                    format!("The settings of a backend are stored in clear text, so {why} value cannot be used here."),
                )
                .at(expr.range()),
            )
        };
        if marks.is_sensitive() {
            return Err(refused("Sensitive value not allowed", "a sensitive"));
        }
        if marks.is_ephemeral() {
            return Err(refused("Ephemeral value not allowed", "an ephemeral"));
        }
        Ok(value)
    }
}

fn prepare(scope: &EarlyModule<'_>, body: &Body) {
    for attribute in &body.attributes {
        scope.prepare(&attribute.expr);
    }
    for block in &body.blocks {
        prepare(scope, &block.body);
    }
}

#[cfg(test)]
mod tests {
    use cty::Type;
    use schema::{AttributeSchema, AttributeType};

    use super::*;
    use crate::files::MemoryFiles;

    fn evaluate(config: &str) -> Result<Value, String> {
        let files: MemoryFiles = [("main.tf", config)].into_iter().collect();
        let root = crate::load_root(&files, ".", "1.16.0").unwrap();
        assert!(!root.diagnostics.has_errors(), "{:?}", root.diagnostics);
        let body = root.module.encryption.clone().unwrap().body;
        let known = KnownRoot::new(root.module, &SetVariables::default(), "/work", "blue");
        let attribute = AttributeSchema {
            ty: AttributeType::Plain(Type::String),
            optional: true,
            ..AttributeSchema::default()
        };
        let mut schema = BlockSchema::default();
        schema.attributes.insert("x".into(), attribute);
        let (value, problems) = known.decode(&body, &schema, &[("extra".into(), Value::string("more"))]);
        match problems.0.iter().find(|d| d.is_error()) {
            Some(problem) => Err(problem.summary.to_string()),
            None => Ok(value.get("x").cloned().unwrap()),
        }
    }

    #[test]
    fn variables_locals_and_the_workspace_are_known() {
        let value = evaluate(
            r#"
            variable "a" { default = "one" }
            locals {
              b = upper(var.a)
              c = "${local.b}-${terraform.workspace}"
            }
            terraform {
              encryption { x = "${local.c}-${extra}" }
            }
            "#,
        );
        assert_eq!(value.unwrap(), Value::string("ONE-blue-more"));
    }

    #[test]
    fn blocks_are_found_by_their_text() {
        let may = |name: &str, text: &str| {
            let files: MemoryFiles = [(name, text)].into_iter().collect();
            may_encrypt(&files, ".").unwrap()
        };
        for text in [
            "terraform {\n  encryption {\n",
            "encryption{",
            "terraform{\nencryption /* x */ {}}",
        ] {
            assert!(may("main.tf", text), "{text}");
        }
        assert!(may("main.tf.json", "{\"terraform\": {\"encryption\": {}}}"));
        assert!(may("main.tf.json", "{\"terraform\": {\"\\u0065ncryption\": {}}}"));
        for text in [
            "encryption = true",
            "server_side_encryption {",
            "resource \"x\" \"encryption_at_rest\" {",
            "# encryption",
        ] {
            assert!(!may("main.tf", text), "{text}");
        }
    }

    #[test]
    fn objects_of_a_plan_are_errors() {
        let of = |x: &str| {
            let text = format!(
                "variable \"unset\" {{}}\nlocals {{\n  a = local.b\n  b = local.a\n}}\nresource \"terraform_data\" \"r\" {{}}\n\
                 module \"m\" {{ source = \"./m\" }}\nterraform {{\n  encryption {{ x = {x} }}\n}}\n"
            );
            evaluate(&text).unwrap_err()
        };
        assert_eq!(of("terraform_data.r.id"), "Dynamic value in static context");
        assert_eq!(of("module.m.out"), "Module output not supported in static context");
        assert_eq!(of("terraform.applying"), "Invalid attribute in static context");
        assert_eq!(of("var.unset"), "Required variable not set");
        assert_eq!(of("provider::a::b()"), "Provider function in static context");
        assert!(of("local.a").starts_with("Cycle"));
    }
}
