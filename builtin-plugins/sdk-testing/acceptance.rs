//! Acceptance tests in Rust: steps with values of the test, which `monoform provider test` carries out.

use std::ffi::OsString;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::{env, fmt, fs, io};

use monoform_sdk::Json;

use crate::hcl::{Hcl, list, text};

/// Acceptance tests of a provider: steps that work on one state, one after the other.
///
/// The same steps can be written in files `tests/NAME.acctest.hcl`; `monoform help provider` says what each of them does. In Rust they
/// can be computed, and `cargo test` runs them. `monoform` carries them out; it is found in `PATH`, or by the variable `MONOFORM`.
///
/// ```no_run
/// use monoform_sdk_testing::acceptance::{Acceptance, Import, Object, Step};
///
/// # let executable = "target/debug/terraform-provider-zoo";
/// for name in ["Rex", "Bo"] {
///     // In an author's project: env!("CARGO_BIN_EXE_terraform-provider-zoo").
///     Acceptance::new(executable)
///         .source("example/zoo")
///         .config(r#"terraform { required_providers { zoo = { source = "example/zoo" } } }"#)
///         .step(
///             Step::apply("create")
///                 .config(format!("resource \"zoo_pet\" \"a\" {{\n  name = \"{name}\"\n}}"))
///                 .action("zoo_pet.a", "create")
///                 .planned(Object::at("zoo_pet.a").unknown("id"))
///                 .state(Object::at("zoo_pet.a").value("name", name).matches("id", "^[0-9]+$"))
///                 .import(Import::at("zoo_pet.a").ignore("chip")),
///         )
///         .step(Step::plan("a name is needed").config("resource \"zoo_pet\" \"a\" {}").expect_error("(?i)name"))
///         .run()?;
/// }
/// # Ok::<(), monoform_sdk_testing::acceptance::AcceptanceError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Acceptance {
    executable: PathBuf,
    monoform: Option<PathBuf>,
    name: Option<String>,
    source: Option<String>,
    programs: Vec<String>,
    init: bool,
    config: Option<String>,
    variables: Vec<(String, Json)>,
    steps: Vec<Step>,
    destroyed: Option<Step>,
}

/// Reason why acceptance tests have not passed.
pub enum AcceptanceError {
    /// The program that carries them out cannot be run.
    NotRun(io::Error),
    /// The files for it cannot be written.
    NotWritten(io::Error),
    /// A step has failed; the text is the report, with the steps that it is about.
    Failed(String),
}

impl fmt::Display for AcceptanceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AcceptanceError::NotRun(error) => write!(
                f,
                "monoform cannot be run: {error}. It must be in PATH, or the variable MONOFORM must have its path"
            ),
            AcceptanceError::NotWritten(error) => write!(f, "the steps cannot be written to a temporary file: {error}"),
            AcceptanceError::Failed(report) => f.write_str(report),
        }
    }
}

/// Shows the report as it is: a test that unwraps the error is easy to read then.
impl fmt::Debug for AcceptanceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{self}")
    }
}

impl std::error::Error for AcceptanceError {}

impl Acceptance {
    /// Creates tests of this executable.
    #[must_use]
    pub fn new(executable: impl Into<PathBuf>) -> Acceptance {
        Acceptance {
            executable: executable.into(),
            ..Acceptance::default()
        }
    }

    /// Sets the path of `monoform`.
    #[must_use]
    pub fn monoform(mut self, path: impl Into<PathBuf>) -> Acceptance {
        self.monoform = Some(path.into());
        self
    }

    /// Sets the name of the provider, if the executable is not named `terraform-provider-NAME`.
    #[must_use]
    pub fn named(mut self, name: &str) -> Acceptance {
        self.name = Some(name.to_owned());
        self
    }

    /// Sets the address of the provider, if it is not `hashicorp/NAME`.
    #[must_use]
    pub fn source(mut self, address: &str) -> Acceptance {
        self.source = Some(address.to_owned());
        self
    }

    /// Adds a program that carries out the steps, such as `terraform` or `tofu`: without one, Monoform does.
    #[must_use]
    pub fn with(mut self, program: &str) -> Acceptance {
        self.programs.push(program.to_owned());
        self
    }

    /// Runs `init` before the first step, for modules and other providers.
    #[must_use]
    pub fn init(mut self) -> Acceptance {
        self.init = true;
        self
    }

    /// Sets the configuration of all steps.
    #[must_use]
    pub fn config(mut self, config: impl Into<String>) -> Acceptance {
        self.config = Some(config.into());
        self
    }

    /// Sets the value of a variable in all steps.
    #[must_use]
    pub fn variable(mut self, name: &str, value: impl Into<Json>) -> Acceptance {
        self.variables.push((name.to_owned(), value.into()));
        self
    }

    /// Adds a step.
    #[must_use]
    pub fn step(mut self, step: Step) -> Acceptance {
        self.steps.push(step);
        self
    }

    /// Sets the last check, after everything is destroyed: see [`Step::destroyed`].
    #[must_use]
    pub fn destroyed(mut self, check: Step) -> Acceptance {
        self.destroyed = Some(check);
        self
    }

    /// Returns the tests as a file with acceptance tests.
    #[must_use]
    pub fn to_hcl(&self) -> String {
        let mut out = Hcl::default();
        out.text_if("source", self.source.as_deref());
        out.true_if("init", self.init);
        out.values("variables", &self.variables);
        out.config(self.config.as_deref());
        for step in self.steps.iter().chain(&self.destroyed) {
            step.write(&mut out);
        }
        out.into_text()
    }

    /// Runs the tests.
    ///
    /// # Errors
    /// A step fails, or `monoform` cannot be run.
    pub fn run(&self) -> Result<(), AcceptanceError> {
        let dir = Directory::create().map_err(AcceptanceError::NotWritten)?;
        let hcl = self.to_hcl();
        fs::write(dir.0.join("steps.acctest.hcl"), &hcl).map_err(AcceptanceError::NotWritten)?;
        let own = self.monoform.clone().map(OsString::from);
        let mut command = Command::new(own.or_else(from_environment).unwrap_or_else(|| "monoform".into()));
        command
            .args(["provider", "test", "-no-color"])
            .arg(format!("-test-directory={}", dir.0.display()))
            .args(self.name.iter().map(|name| format!("-name={name}")))
            .args(self.programs.iter().map(|program| format!("-with={program}")))
            .arg(&self.executable)
            .stdin(Stdio::null());
        let output = command.output().map_err(AcceptanceError::NotRun)?;
        if output.status.success() {
            return Ok(());
        }
        let [stdout, stderr] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        Err(AcceptanceError::Failed(format!(
            "{stdout}{stderr}\nThe steps:\n\n{hcl}"
        )))
    }
}

/// Returns the path of `monoform` that the user of the tests has set.
#[expect(clippy::disallowed_methods, reason = "a setting of tests, as authors have them")]
fn from_environment() -> Option<OsString> {
    env::var_os("MONOFORM").filter(|path| !path.is_empty())
}

/// Temporary directory, which is removed when dropped.
struct Directory(PathBuf);

impl Directory {
    fn create() -> io::Result<Directory> {
        // The name only has to be unused. A new hasher begins with random keys.
        let random = RandomState::new().build_hasher().finish();
        let path = env::temp_dir().join(format!("acceptance-steps-{random:016x}"));
        fs::create_dir(&path)?;
        Ok(Directory(path))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // A leftover is of no harm.
        drop(fs::remove_dir_all(&self.0));
    }
}

/// A step of acceptance tests.
#[derive(Clone, Debug, Default)]
pub struct Step {
    /// `None` for the check after the destruction.
    name: Option<String>,
    operation: &'static str,
    config: Option<String>,
    variables: Vec<(String, Json)>,
    commands: Vec<Vec<String>>,
    actions: Vec<(String, Json)>,
    planned: Vec<Object>,
    states: Vec<Object>,
    asserts: Vec<(String, String)>,
    imports: Vec<Import>,
    expect_error: Option<String>,
    non_empty_plan: bool,
}

impl Step {
    fn new(name: &str, operation: &'static str) -> Step {
        Step {
            name: Some(name.to_owned()),
            operation,
            ..Step::default()
        }
    }

    /// Creates a step that applies its configuration, and plans once more, which must find no change.
    #[must_use]
    pub fn apply(name: &str) -> Step {
        Step::new(name, "apply")
    }

    /// Creates a step that only plans.
    #[must_use]
    pub fn plan(name: &str) -> Step {
        Step::new(name, "plan")
    }

    /// Creates a step that refreshes the state.
    #[must_use]
    pub fn refresh(name: &str) -> Step {
        Step::new(name, "refresh")
    }

    /// Creates a step that destroys all objects.
    #[must_use]
    pub fn destroy(name: &str) -> Step {
        Step::new(name, "destroy")
    }

    /// Creates the check after everything is destroyed, for [`Acceptance::destroyed`]. It can have a configuration (data sources show
    /// that the objects are gone), variables, commands, an expected error and conditions; others of its settings are left out.
    #[must_use]
    pub fn destroyed() -> Step {
        Step::default()
    }

    /// Sets the configuration: without one, it is that of the step before.
    #[must_use]
    pub fn config(mut self, config: impl Into<String>) -> Step {
        self.config = Some(config.into());
        self
    }

    /// Sets the value of a variable.
    #[must_use]
    pub fn variable(mut self, name: &str, value: impl Into<Json>) -> Step {
        self.variables.push((name.to_owned(), value.into()));
        self
    }

    /// Adds a command that comes first: a program and its arguments.
    #[must_use]
    pub fn command<W: Into<String>>(mut self, words: impl IntoIterator<Item = W>) -> Step {
        self.commands.push(words.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the action that the plan must have for an object. Once one is set, the plan must change no other object.
    #[must_use]
    pub fn action(mut self, address: &str, action: &str) -> Step {
        self.actions.push((address.to_owned(), action.into()));
        self
    }

    /// Adds checks of an object in the plan.
    #[must_use]
    pub fn planned(mut self, object: Object) -> Step {
        self.planned.push(object);
        self
    }

    /// Adds checks of an object after the step.
    #[must_use]
    pub fn state(mut self, object: Object) -> Step {
        self.states.push(object);
        self
    }

    /// Adds a condition: an expression about `state["ADDRESS"]`, `plan["ADDRESS"]` and `outputs.NAME`.
    #[must_use]
    pub fn assert(mut self, condition: impl Into<String>, message: impl Into<String>) -> Step {
        self.asserts.push((condition.into(), message.into()));
        self
    }

    /// Adds an import of an object into an empty state, which must give the same object.
    #[must_use]
    pub fn import(mut self, import: Import) -> Step {
        self.imports.push(import);
        self
    }

    /// Makes the step one that must fail, with an error that matches a regular expression.
    #[must_use]
    pub fn expect_error(mut self, pattern: impl Into<String>) -> Step {
        self.expect_error = Some(pattern.into());
        self
    }

    /// Makes the step one whose last plan must have changes.
    #[must_use]
    pub fn non_empty_plan(mut self) -> Step {
        self.non_empty_plan = true;
        self
    }

    fn write(&self, out: &mut Hcl) {
        match &self.name {
            Some(name) => {
                out.open(&format!("step {}", text(name)));
                out.attribute("operation", &text(self.operation));
            }
            None => out.open("destroyed"),
        }
        out.values("variables", &self.variables);
        out.config(self.config.as_deref());
        if !self.commands.is_empty() {
            let commands: Vec<String> = self.commands.iter().map(|words| list(words)).collect();
            out.attribute("run", &format!("[{}]", commands.join(", ")));
        }
        if self.name.is_some() {
            out.values("actions", &self.actions);
            out.true_if("non_empty_plan", self.non_empty_plan);
            self.planned.iter().for_each(|object| object.write("planned", out));
            self.states.iter().for_each(|object| object.write("state", out));
        }
        for (condition, message) in &self.asserts {
            out.open("assert");
            out.attribute("condition", condition);
            out.attribute("error_message", &text(message));
            out.close();
        }
        if self.name.is_some() {
            self.imports.iter().for_each(|import| import.write(out));
        }
        out.text_if("expect_error", self.expect_error.as_deref());
        out.close();
    }
}

/// Checks of an object. Names of values are paths, such as `rule[0].port`.
#[derive(Clone, Debug, Default)]
pub struct Object {
    address: String,
    values: Vec<(String, Json)>,
    matches: Vec<(String, Json)>,
    /// Lists of paths, by the name of their check.
    paths: Vec<(&'static str, Vec<String>)>,
}

impl Object {
    /// Creates checks of the object at this address.
    #[must_use]
    pub fn at(address: &str) -> Object {
        Object {
            address: address.to_owned(),
            ..Object::default()
        }
    }

    /// Adds a value that must be equal.
    #[must_use]
    pub fn value(mut self, path: &str, value: impl Into<Json>) -> Object {
        self.values.push((path.to_owned(), value.into()));
        self
    }

    /// Adds a text that must match a regular expression.
    #[must_use]
    pub fn matches(mut self, path: &str, pattern: &str) -> Object {
        self.matches.push((path.to_owned(), pattern.into()));
        self
    }

    /// Adds a value that must not be null.
    #[must_use]
    pub fn set(self, path: &str) -> Object {
        self.path("set", path)
    }

    /// Adds a value that must be null.
    #[must_use]
    pub fn null(self, path: &str) -> Object {
        self.path("null", path)
    }

    /// Adds a value that must be sensitive.
    #[must_use]
    pub fn sensitive(self, path: &str) -> Object {
        self.path("sensitive", path)
    }

    /// Adds a value that must be unknown, for a planned object.
    #[must_use]
    pub fn unknown(self, path: &str) -> Object {
        self.path("unknown", path)
    }

    fn path(mut self, check: &'static str, path: &str) -> Object {
        match self.paths.iter_mut().find(|(name, _)| *name == check) {
            Some((_, paths)) => paths.push(path.to_owned()),
            None => self.paths.push((check, vec![path.to_owned()])),
        }
        self
    }

    fn write(&self, block: &str, out: &mut Hcl) {
        out.open(&format!("{block} {}", text(&self.address)));
        out.values("values", &self.values);
        out.values("matches", &self.matches);
        for (check, paths) in &self.paths {
            out.attribute(check, &list(paths));
        }
        out.close();
    }
}

/// An import that is compared with the object in the state.
#[derive(Clone, Debug, Default)]
pub struct Import {
    address: String,
    id: Option<String>,
    ignore: Vec<String>,
    expect_error: Option<String>,
}

impl Import {
    /// Creates an import of the object at this address, by its attribute `id`.
    #[must_use]
    pub fn at(address: &str) -> Import {
        Import {
            address: address.to_owned(),
            ..Import::default()
        }
    }

    /// Sets the import ID, as an expression such as `state["zoo_pet.a"].name`.
    #[must_use]
    pub fn id(mut self, expression: impl Into<String>) -> Import {
        self.id = Some(expression.into());
        self
    }

    /// Leaves an attribute out of the comparison.
    #[must_use]
    pub fn ignore(mut self, path: &str) -> Import {
        self.ignore.push(path.to_owned());
        self
    }

    /// Makes the import one that must fail, with an error that matches a regular expression.
    #[must_use]
    pub fn expect_error(mut self, pattern: impl Into<String>) -> Import {
        self.expect_error = Some(pattern.into());
        self
    }

    fn write(&self, out: &mut Hcl) {
        out.open(&format!("import {}", text(&self.address)));
        if let Some(id) = &self.id {
            out.attribute("id", id);
        }
        if !self.ignore.is_empty() {
            out.attribute("ignore", &list(&self.ignore));
        }
        out.text_if("expect_error", self.expect_error.as_deref());
        out.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_written_as_a_file_with_acceptance_tests() {
        let tests = Acceptance::new("terraform-provider-zoo")
            .source("example/zoo")
            .init()
            .variable("text", "a ${b}\n")
            .step(
                Step::apply("create")
                    .config("resource \"zoo_pet\" \"a\" {}")
                    .command(["rm", "x"])
                    .action("zoo_pet.a", "create")
                    .planned(Object::at("zoo_pet.a").unknown("id").unknown("chip"))
                    .assert("outputs.n == 1", "It is not 1.")
                    .import(Import::at("zoo_pet.a").id("state[\"zoo_pet.a\"].name").ignore("chip")),
            )
            .destroyed(Step::destroyed().command(["test", "!", "-e", "x"]));
        let expected = r#"source = "example/zoo"
init = true
variables = { "text" = "a $${b}\n" }
step "create" {
  operation = "apply"
  config {
resource "zoo_pet" "a" {}
  }
  run = [["rm", "x"]]
  actions = { "zoo_pet.a" = "create" }
  planned "zoo_pet.a" {
    unknown = ["id", "chip"]
  }
  assert {
    condition = outputs.n == 1
    error_message = "It is not 1."
  }
  import "zoo_pet.a" {
    id = state["zoo_pet.a"].name
    ignore = ["chip"]
  }
}
destroyed {
  run = [["test", "!", "-e", "x"]]
}
"#;
        assert_eq!(tests.to_hcl(), expected);
    }
}
