//! Values of the root module's input variables: from the environment, from variable files, from flags.
//!
//! Later sources win over earlier ones: `TF_VAR_name`, then `terraform.tfvars`, `terraform.tfvars.json`, the
//! `*.auto.tfvars` and `*.auto.tfvars.json` in the order of their names, then `-var` and `-var-file` in the order of
//! the command line. Only the value with the highest precedence is evaluated.

mod asked;
mod questions;
mod stored;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use addrs::program::Mode;
use cty::Value;
use files::io_reason;
use lang::eval::describe_convert_error;
use syntax::ast::Expr;
use syntax::content::{did_you_mean, suggest};
use syntax::{Diagnostic, Diagnostics, Range, SourceMap, json};

use crate::decode::parts;
use crate::files::FileSource;
use crate::model::{Module, Variable};
use crate::parse;
pub use questions::Questions;
pub use stored::{StoredValue, complete};

/// The source of a variable's value.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueSource {
    Environment,
    /// A variable file that is loaded automatically, or named by `-var-file`.
    File(Range),
    Flag,
    /// Value that a workspace of HCP Terraform stores for its own runs.
    Workspace,
    Prompt,
    /// The saved plan that is applied.
    Plan,
    /// The default of the `variable` block.
    Default,
}

impl ValueSource {
    /// Range in a variable file; `None` for other sources.
    #[must_use]
    pub fn range(&self) -> Option<&Range> {
        match self {
            ValueSource::File(range) => Some(range),
            _ => None,
        }
    }
}

/// A variable's value, as it was set and as converted to the variable's type, and its source.
#[derive(Clone, PartialEq)]
pub struct VariableValue {
    /// Value, without marks.
    pub value: Value,
    /// Value as it was set, before conversion; `None` for a default.
    pub given: Option<Value>,
    pub source: ValueSource,
}

/// Prints the type only: the value may be a secret without a mark.
impl fmt::Debug for VariableValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VariableValue")
            .field("type", self.value.ty())
            .field("source", &self.source)
            .finish()
    }
}

/// Values of the root module's variables, by name.
pub type VariableValues = BTreeMap<Arc<str>, VariableValue>;

/// Variable files that are loaded automatically, before the `.auto.tfvars` files, which win over these.
const FIRST: [&str; 2] = ["terraform.tfvars", "terraform.tfvars.json"];

/// Returns true if a variable file of this name is loaded automatically.
#[must_use]
pub fn is_automatic(name: &str) -> bool {
    FIRST.contains(&name) || is_auto(name)
}

fn is_auto(name: &str) -> bool {
    name.ends_with(".auto.tfvars") || name.ends_with(".auto.tfvars.json")
}

/// A flag that sets one variable, or the variables in a file.
#[derive(Clone, PartialEq)]
pub enum VariableFlag {
    /// `-var 'name=text'`: the text after `-var`.
    Var(String),
    /// `-var-file`: the path.
    File(String),
}

/// Prints the name only: the value may be a secret.
impl fmt::Debug for VariableFlag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VariableFlag::Var(text) => write!(f, "-var {}=…", text.split('=').next().unwrap_or_default()),
            VariableFlag::File(path) => write!(f, "-var-file {path}"),
        }
    }
}

/// Sources of variable values: files, environment variables and flags.
#[derive(Clone, Copy)]
pub struct ValueInputs<'i> {
    /// Source of variable files. `terraform.tfvars` and the other automatic files are searched in the working
    /// directory.
    pub files: &'i dyn FileSource,
    /// Environment variables that begin with `TF_VAR_`, without that prefix.
    pub environment: &'i BTreeMap<String, String>,
    pub flags: &'i [VariableFlag],
}

/// Prints the kinds of the flags only: the values may be secrets.
impl fmt::Debug for ValueInputs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ValueInputs")
            .field("flags", &self.flags)
            .finish_non_exhaustive()
    }
}

/// Values of variables, with the problems of reading them.
#[derive(Clone, Debug, Default)]
pub struct CollectedValues {
    /// Values by name. A variable whose value is invalid has none; that has been reported.
    pub values: VariableValues,
    /// Required variables without value: prompt for them, or report them with [`missing_variable`].
    pub missing: Vec<Arc<str>>,
    /// Text of every variable file.
    pub sources: SourceMap,
    /// Problems of declared variables.
    pub diagnostics: Diagnostics,
    /// Problems of names that are set and not declared.
    pub undeclared: Diagnostics,
}

/// Values of variables as they were set: the environment, variable files and flags, read once for a command.
/// Everything that depends on them (the sources of modules, the plan) uses the same texts, even if the files change
/// meanwhile.
#[derive(Clone, Default)]
pub struct SetVariables {
    given: BTreeMap<Arc<str>, Given>,
    /// Paths of variable files that flags name.
    named: BTreeSet<String>,
    sources: SourceMap,
    diagnostics: Diagnostics,
    questions: Option<Arc<Questions>>,
}

/// Prints the names only: the values may be secrets.
impl fmt::Debug for SetVariables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.given.keys()).finish()
    }
}

impl SetVariables {
    /// Reads the environment, the files and the flags, in this order.
    #[must_use]
    pub fn read(inputs: &ValueInputs<'_>) -> SetVariables {
        let mut out = SetVariables::default();
        // Later settings replace earlier ones, so this order is that of increasing precedence.
        for (name, text) in inputs.environment {
            out.give(
                name.as_str().into(),
                Content::Text(text.clone()),
                ValueSource::Environment,
            );
        }
        out.automatic_files(inputs.files);
        out.flags(inputs.files, inputs.flags);
        out
    }

    /// Returns a copy with more flags, which take precedence over all values that are set so far.
    #[must_use]
    pub fn with_flags(&self, files: &dyn FileSource, flags: &[VariableFlag]) -> SetVariables {
        let mut out = self.clone();
        out.flags(files, flags);
        out
    }

    /// Returns true if a flag names this file.
    #[must_use]
    pub fn is_named(&self, path: &str) -> bool {
        self.named.contains(path)
    }
}

/// Value as it was set, before it is parsed.
#[derive(Clone)]
struct Given {
    content: Content,
    source: ValueSource,
}

#[derive(Clone)]
enum Content {
    /// Text of the environment or of a flag.
    Text(String),
    /// An argument of a variable file.
    Expr(Expr),
    /// A property of a JSON variable file.
    Value(Value, Range),
}

/// Evaluates the values of a root module's variables.
#[must_use]
pub fn collect(module: &Module, set: &SetVariables) -> CollectedValues {
    let mut out = set.reported(module);
    for variable in module.variables.values() {
        let value = collected(variable, set, || set.answered(variable), &mut out);
        if let Some(value) = value {
            // The warning is for users who set the variable, so it is left out for a default.
            let warning = deprecated_variable(variable, &value.value).filter(|_| value.source != ValueSource::Default);
            out.diagnostics.extend(warning);
            out.values.insert(variable.name.clone(), value);
        }
    }
    out
}

/// Evaluates the values of a root module's const variables. Values of other variables are only parsed, and their
/// syntax errors reported.
#[must_use]
pub fn collect_const(module: &Module, set: &SetVariables) -> CollectedValues {
    let mut out = set.reported(module);
    for variable in module.variables.values() {
        let given = set.given.get(&variable.name);
        if variable.is_const {
            let ask = || set.questions()?.value(variable);
            let value = collected(variable, set, ask, &mut out);
            out.values.extend(value.map(|value| (variable.name.clone(), value)));
        } else if let Some(given) = given {
            written(variable, given, &mut out);
        }
    }
    out
}

/// Evaluates a variable; `None` if it has no value, or an invalid one. `answer` returns what the user typed for it.
fn collected(
    variable: &Variable,
    set: &SetVariables,
    answer: impl FnOnce() -> Option<VariableValue>,
    out: &mut CollectedValues,
) -> Option<VariableValue> {
    match (set.given.get(&variable.name), &variable.default) {
        (Some(given), _) => evaluate(variable, given, out),
        (None, Some(default)) => Some(VariableValue {
            value: default.clone(),
            given: None,
            source: ValueSource::Default,
        }),
        (None, None) => {
            let answer = answer();
            if answer.is_none() {
                out.missing.push(variable.name.clone());
            }
            answer
        }
    }
}

/// Evaluates the text that was typed at the prompt for a variable.
pub fn from_prompt(variable: &Variable, text: &str) -> Result<VariableValue, Diagnostics> {
    let mut out = CollectedValues::default();
    let given = Given {
        content: Content::Text(text.to_owned()),
        source: ValueSource::Prompt,
    };
    evaluate(variable, &given, &mut out).ok_or(out.diagnostics)
}

/// Builds the warning for a deprecated variable of the root module that is set. `None` for other variables, for null
/// and unknown values, and in the mode of OpenTofu.
fn deprecated_variable(variable: &Variable, value: &Value) -> Option<Diagnostic> {
    // OpenTofu does not warn: the author of the module decides.
    let warned = value.is_present() && !Mode::current().is_opentofu();
    let deprecated = variable.deprecated.as_ref().filter(|_| warned)?;
    let warning = Diagnostic::warning("Deprecated variable got a value", &*deprecated.message);
    Some(warning.at(&deprecated.range).within(&variable.range))
}

/// Builds the error for a required variable that has no value.
#[must_use]
pub fn missing_variable(variable: &Variable) -> Diagnostic {
    Diagnostic::error(
        "No value for required variable",
        format!(
            "The root module's variable \"{0}\" has no default, and was given no value. Give it one with -var '{0}=…', in a \
             variable file, or in the environment as TF_VAR_{0}.",
            variable.name
        ),
    )
    .at(&variable.range)
}

impl SetVariables {
    /// Creates a result without values, but with the problems of reading the sources and of undeclared names.
    fn reported(&self, module: &Module) -> CollectedValues {
        let mut out = CollectedValues {
            sources: self.sources.clone(),
            diagnostics: self.diagnostics.clone(),
            ..CollectedValues::default()
        };
        report_undeclared(module, &self.given, &mut out.undeclared);
        out
    }

    fn flags(&mut self, files: &dyn FileSource, flags: &[VariableFlag]) {
        for flag in flags {
            match flag {
                VariableFlag::Var(text) => self.var_flag(text),
                VariableFlag::File(path) => {
                    self.named.insert(path.clone());
                    self.file(files, path);
                }
            }
        }
    }

    fn give(&mut self, name: Arc<str>, content: Content, source: ValueSource) {
        self.given.insert(name, Given { content, source });
    }

    /// Reads the variable files that are loaded automatically.
    fn automatic_files(&mut self, files: &dyn FileSource) {
        let mut names = match files.list(".") {
            Ok(names) => names,
            Err(error) => {
                self.diagnostics.push(Diagnostic::error(
                    "Failed to read variables files",
                    format!("The working directory cannot be read: {}.", io_reason(&error)),
                ));
                return;
            }
        };
        // The names are sorted, because a later file has precedence.
        names.sort();
        for first in FIRST {
            if names.iter().any(|n| n == first) {
                self.file(files, first);
            }
        }
        for name in names.iter().filter(|name| is_auto(name)) {
            self.file(files, name);
        }
    }

    fn var_flag(&mut self, text: &str) {
        let invalid = |detail: String| Diagnostic::error("Invalid -var option", detail);
        let Some((name, value)) = text.split_once('=') else {
            self.diagnostics.push(invalid(format!(
                "\"{text}\" is not the name of a variable, an equals sign, and a value, such as -var=\"key=value\"."
            )));
            return;
        };
        // A common mistake is to write blanks around the equals sign, as in a file.
        if name.ends_with(' ') {
            self.diagnostics.push(invalid(format!(
                "The name of the variable, \"{name}\", ends with a blank. Did you mean -var=\"{}={}\"?",
                name.trim_end(),
                value.trim_start()
            )));
            return;
        }
        self.give(name.into(), Content::Text(value.to_owned()), ValueSource::Flag);
    }

    fn file(&mut self, files: &dyn FileSource, path: &str) {
        let bytes = match files.read(path) {
            Ok(bytes) => bytes,
            Err(error) => {
                let detail = if error.kind() == std::io::ErrorKind::NotFound {
                    format!("The variables file {path} does not exist.")
                } else {
                    format!("The variables file {path} cannot be read: {}.", io_reason(&error))
                };
                self.diagnostics
                    .push(Diagnostic::error("Failed to read variables file", detail));
                return;
            }
        };
        // The text is recorded before parsing, because diagnostics show the text.
        self.sources.insert(path, String::from_utf8_lossy(&bytes).as_ref());
        if path.ends_with(".json") {
            self.json_file(path, &bytes)
        } else {
            self.native_file(path, &bytes)
        }
    }

    fn native_file(&mut self, path: &str, bytes: &[u8]) {
        let (body, problems) = parse::file(path, bytes);
        self.diagnostics.extend(problems);
        let body = Arc::unwrap_or_clone(body);
        for block in &body.blocks {
            let problem = match (&*block.ty, block.labels.first()) {
                ("variable", Some(label)) => Diagnostic::error(
                    "Variable declaration in .tfvars file",
                    format!(
                        "A variable file gives values to variables that the configuration declares. To declare \"{0}\", put this \
                         block into a .tf file; to give it a value, write {0} = … here.",
                        label.text
                    ),
                ),
                _ => Diagnostic::error(
                    format!("Unexpected \"{}\" block", block.ty),
                    "Blocks are not allowed here: a variable file has arguments only.",
                ),
            };
            self.diagnostics.push(problem.at(&block.type_range));
        }
        for attribute in body.attributes {
            let source = ValueSource::File(attribute.expr.range().clone());
            self.give(attribute.name, Content::Expr(attribute.expr), source);
        }
    }

    fn json_file(&mut self, path: &str, bytes: &[u8]) {
        let node = match json::parse(path, bytes) {
            Ok(node) => node,
            Err(problem) => return self.diagnostics.push(problem),
        };
        // If a property occurs twice, its value would depend on the reader; HCL refuses it, too.
        if let Some(problem) = node.duplicate() {
            return self.diagnostics.push(problem);
        }
        let json::Kind::Object(members) = &node.kind else {
            let problem = Diagnostic::error(
                "Incorrect JSON value type",
                "A variable file in JSON is one object, with a property for each variable.",
            );
            return self.diagnostics.push(problem.at(&node.start_range()));
        };
        // In HCL's JSON syntax, a property named "//" is a comment.
        for member in members.iter().filter(|m| &*m.name != "//") {
            let range = member.value.range.clone();
            let content = Content::Value(member.value.literal(), range.clone());
            self.give(member.name.clone(), content, ValueSource::File(range));
        }
    }
}

/// Number of undeclared variables in files that are reported separately. All others are counted in one warning.
const UNDECLARED_IN_FULL: usize = 2;

fn report_undeclared(module: &Module, given: &BTreeMap<Arc<str>, Given>, diagnostics: &mut Diagnostics) {
    let near = |name: &str| did_you_mean(suggest(name, module.variables.keys().map(|n| &**n)));
    let mut in_files = 0;
    for (name, given) in given.iter().filter(|(name, _)| !module.variables.contains_key(*name)) {
        match &given.source {
            ValueSource::Flag => diagnostics.push(Diagnostic::error(
                "Value for undeclared variable",
                format!(
                    "The variable \"{name}\" was given a value on the command line, but the root module declares no variable of \
                     that name. Add a \"variable\" block for it, or leave the option out.{}",
                    near(name)
                ),
            )),
            ValueSource::File(range) => {
                in_files += 1;
                if in_files <= UNDECLARED_IN_FULL {
                    diagnostics.push(Diagnostic::warning(
                        "Value for undeclared variable",
                        format!(
                            "The file {} has a value for \"{name}\", but the root module declares no variable of that name. Add a \
                             \"variable\" block for it, or remove the value. Values that several configurations share can be given as \
                             environment variables TF_VAR_…, which may be undeclared.{}",
                            range.file,
                            near(name)
                        ),
                    ));
                }
            }
            // Several configurations share the environment, so undeclared names are normal in it.
            _ => {}
        }
    }
    if in_files > UNDECLARED_IN_FULL {
        diagnostics.push(Diagnostic::warning(
            "Values for undeclared variables",
            format!(
                "There are {} more values for variables that are not declared.",
                in_files - UNDECLARED_IN_FULL
            ),
        ));
    }
}

/// Returns the value that a variable is set to, before conversion, and its range if a variable file sets it. `None`
/// after a problem, which is reported.
fn written<'g>(variable: &Variable, given: &'g Given, out: &mut CollectedValues) -> Option<(Value, Option<&'g Range>)> {
    let name = &variable.name;
    Some(match &given.content {
        Content::Text(text) if variable.takes_literal_text() => (Value::string(text), None),
        Content::Text(text) => {
            let file: Arc<str> = format!("<value for var.{name}>").into();
            // The text has no file: it is registered under a name of its own,
            // so that problems in it are shown with an excerpt.
            out.sources.insert(file.clone(), text.as_str());
            let (expr, problems) = parse::expression(text, &file);
            let failed = problems.has_errors();
            out.diagnostics.extend(problems);
            if failed {
                return None;
            }
            (parts::constant(&expr, &mut out.diagnostics)?, None)
        }
        Content::Expr(expr) => (parts::constant(expr, &mut out.diagnostics)?, Some(expr.range())),
        Content::Value(value, range) => (value.clone(), Some(range)),
    })
}

/// Evaluates the value that a variable is set to, and converts it to the variable's type. `None` after a problem,
/// which is reported.
fn evaluate(variable: &Variable, given: &Given, out: &mut CollectedValues) -> Option<VariableValue> {
    let name = &variable.name;
    let (value, written) = written(variable, given, out)?;
    match (variable.fit(&value), written) {
        // With nullable = false, null means "not set".
        (Ok(fitting), _) if fitting.is_null() && !variable.nullable => match &variable.default {
            Some(default) => Some(VariableValue {
                value: default.clone(),
                given: Some(value.clone()),
                source: ValueSource::Default,
            }),
            None => {
                out.diagnostics.push(
                    Diagnostic::error(
                        "Required variable not set",
                        format!("The variable \"{name}\" cannot be null (it has nullable = false and no default)."),
                    )
                    .at(written.unwrap_or(&variable.range)),
                );
                None
            }
        },
        (Ok(fitting), _) => Some(VariableValue {
            value: fitting,
            given: Some(value),
            source: given.source.clone(),
        }),
        (Err(error), Some(range)) => {
            out.diagnostics.push(
                Diagnostic::error(
                    "Invalid value for input variable",
                    format!(
                        "The value does not fit var.{name}, which is declared at {}: {}.",
                        variable.range,
                        describe_convert_error(&error)
                    ),
                )
                .at(range),
            );
            None
        }
        (Err(error), None) => {
            let how = match given.source {
                ValueSource::Environment => format!("by the environment variable TF_VAR_{name}"),
                ValueSource::Flag => format!("by -var=\"{name}=…\""),
                _ => "when asked".to_owned(),
            };
            out.diagnostics.push(
                Diagnostic::error(
                    "Invalid value for input variable",
                    format!(
                        "The value given to var.{name} {how} does not fit: {}.",
                        describe_convert_error(&error)
                    ),
                )
                .at(&variable.range),
            );
            None
        }
    }
}
