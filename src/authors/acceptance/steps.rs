//! The steps of a test: configuration, plan, checks, apply, checks, a plan without changes, imports.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use files::io_reason;
use regex::Regex;
use serde_json::Value as Json;
use syntax::{Diagnostic, Diagnostics, Range};
use testing::events::Destroyed;
use testing::{Performed, Status};

use super::checks::{self, FAILED, Objects};
use super::conditions::Conditions;
use super::file::{AcceptanceFile, Import, Operation, Step, StepConfig, configuration_files, masked, shown_path};
use super::program::{NotRun, Ran, Workspace};

/// File in the working directory with the configuration from the test file.
const CONFIG: &str = "acceptance.tf";
const VARIABLES: &str = "acceptance.auto.tfvars.json";
const PLAN: &str = "acceptance.tfplan";
const IMPORTED: &str = "import.tfstate";

/// Exit status of `plan -detailed-exitcode` if there are changes.
const CHANGES: i32 = 2;

/// Steps of a file in a workspace.
pub struct Steps<'s> {
    file: &'s AcceptanceFile,
    workspace: Workspace<'s>,
    /// Configuration of the last step.
    config: Option<StepConfig>,
    variables: BTreeMap<String, Json>,
    /// Configuration and variables of the last step that was planned, with which everything is destroyed.
    planned: Option<(Option<StepConfig>, BTreeMap<String, Json>)>,
    /// Files that the last step has written.
    written: Vec<String>,
    is_initialized: bool,
    /// True if there may be objects to destroy.
    has_objects: bool,
    plan: Objects,
    state: Objects,
}

/// Reason why a step ended before its last part.
enum Ended {
    /// The program has reported errors.
    Errors(Diagnostics),
    Stopped,
}

impl From<NotRun> for Ended {
    fn from(error: NotRun) -> Ended {
        match error {
            NotRun::Stopped => Ended::Stopped,
            NotRun::Failed(problem) => Ended::Errors(problem.into()),
        }
    }
}

impl From<Diagnostic> for Ended {
    fn from(problem: Diagnostic) -> Ended {
        Ended::Errors(problem.into())
    }
}

impl<'s> Steps<'s> {
    #[must_use]
    pub fn new(file: &'s AcceptanceFile, workspace: Workspace<'s>) -> Steps<'s> {
        Steps {
            file,
            workspace,
            config: None,
            variables: BTreeMap::new(),
            planned: None,
            written: Vec::new(),
            is_initialized: false,
            has_objects: false,
            plan: Objects::default(),
            state: Objects::default(),
        }
    }

    /// Carries out a step.
    pub async fn perform(&mut self, step: &Step) -> Performed {
        let mut problems = Diagnostics::new();
        let ended = self.carry_out(step, &mut problems).await;
        let mut status = Status::Pass;
        match ended {
            Ok(()) => {
                if let Some((pattern, at)) = &step.expect_error {
                    let detail = format!("The step has no error, and one that matches \"{pattern}\" is expected.");
                    problems.push(Diagnostic::error(FAILED, detail).at(at));
                }
            }
            Err(Ended::Errors(errors)) => match &step.expect_error {
                Some((pattern, _)) if is_expected(pattern, &errors) => {}
                Some((pattern, at)) => {
                    let detail = format!("The step has other errors than the one that matches \"{pattern}\".");
                    problems.push(Diagnostic::error(FAILED, detail).at(at));
                    problems.extend(errors);
                }
                None => {
                    status = Status::Error;
                    problems.extend(errors);
                }
            },
            Err(Ended::Stopped) => {
                status = Status::Error;
                let detail = format!("The step \"{}\" was ended by an interrupt.", step.name);
                problems.push(Diagnostic::error("Interrupted", detail).at(&step.range));
            }
        }
        let failed_assertions = problems.iter().filter(|problem| problem.summary == FAILED).count();
        if status == Status::Pass && problems.has_errors() {
            // Errors other than failed assertions come from evaluating the conditions.
            let is_failure = failed_assertions > 0;
            status = if is_failure { Status::Fail } else { Status::Error };
        }
        Performed {
            status,
            failed_assertions,
            diagnostics: problems,
            ..Performed::default()
        }
    }

    async fn carry_out(&mut self, step: &Step, problems: &mut Diagnostics) -> Result<(), Ended> {
        for words in &step.run {
            let ran = self.workspace.command(words).await?;
            if !ran.status.success() {
                let name = words.first().map_or("", String::as_str);
                let problem = ran.failure(&format!("\"{name}\" has failed"));
                return Err(problem.at(&step.run_range).into());
            }
        }
        if step.operation == Operation::Nothing {
            self.assert(step, problems);
            return Ok(());
        }
        if step.config.is_some() {
            self.config.clone_from(&step.config);
            self.is_initialized = false;
        }
        self.variables = self.file.variables.clone();
        self.variables.extend(step.variables.clone());
        self.write()?;
        self.initialize().await?;
        self.plan = self.plan(step.operation, problems).await?;
        self.planned = Some((self.config.clone(), self.variables.clone()));
        if let Some((expected, at)) = &step.actions {
            checks::actions(&self.plan, expected, at, problems);
        }
        for check in &step.planned {
            checks::object(&self.plan, check, "plan", problems);
        }
        if step.operation != Operation::Plan {
            // An apply that fails may have created objects.
            self.has_objects = true;
            let ran = self
                .workspace
                .program(&["apply", "-input=false", "-no-color", "-json", PLAN])
                .await?;
            self.succeeded(&ran, problems)?;
            self.state = self.read_state(&[]).await?;
            self.has_objects = self.state.managed().next().is_some();
        }
        for check in &step.states {
            checks::object(&self.state, check, "state", problems);
        }
        if matches!(step.operation, Operation::Apply | Operation::Refresh) {
            self.plan_again(step, problems).await?;
        }
        for import in &step.imports {
            self.import(import, problems).await?;
        }
        self.assert(step, problems);
        Ok(())
    }

    fn assert(&self, step: &Step, problems: &mut Diagnostics) {
        if step.asserts.is_empty() {
            return;
        }
        let conditions = Conditions::new(&self.plan, &self.state);
        step.asserts.iter().for_each(|rule| conditions.check(rule, problems));
    }

    /// Writes configuration and variables in place of those of the previous step.
    fn write(&mut self) -> Result<(), Diagnostic> {
        let work = self.workspace.work();
        let failed = |path: &Path, error: &std::io::Error| {
            let detail = format!("The file {} cannot be written: {}.", path.display(), io_reason(error));
            Diagnostic::error("Failed to write configuration", detail)
        };
        for file in self.written.drain(..) {
            // A command of the test may have removed it.
            let _: std::io::Result<()> = fs::remove_file(work.join(file));
        }
        let mut put = |name: &str, bytes: &[u8]| {
            let path = work.join(name);
            fs::write(&path, bytes).map_err(|error| failed(&path, &error))?;
            self.written.push(name.to_owned());
            Ok::<(), Diagnostic>(())
        };
        let mut ranges: Vec<&Range> = self.file.config.iter().collect();
        if let Some(StepConfig::Text(range)) = &self.config {
            ranges.push(range);
        }
        put(CONFIG, masked(&self.file.text, &ranges).as_bytes())?;
        if let Some(StepConfig::Directory(dir, _)) = &self.config {
            let dir = self.file.dir.join(dir);
            let files = configuration_files(&dir).map_err(|error| failed(&dir, &error))?;
            for file in files {
                let path = dir.join(&file);
                let bytes = fs::read(&path).map_err(|error| failed(&path, &error))?;
                put(&file, &bytes)?;
            }
        }
        if !self.variables.is_empty() {
            let values = Json::from_iter(self.variables.clone());
            put(VARIABLES, values.to_string().as_bytes())?;
        }
        Ok(())
    }

    async fn initialize(&mut self) -> Result<(), Ended> {
        if !self.file.init || self.is_initialized {
            return Ok(());
        }
        let ran = self.workspace.program(&["init", "-input=false", "-no-color"]).await?;
        if !ran.status.success() {
            return Err(ran.failure("Failed to initialize").into());
        }
        self.is_initialized = true;
        Ok(())
    }

    /// Returns the name that messages show in place of a configuration file in the working directory; `None`
    /// if the file is not from the step.
    fn shown(&self, file: &str) -> Option<String> {
        match &self.config {
            _ if file == CONFIG => Some(self.file.name.to_string()),
            Some(StepConfig::Directory(dir, range)) if !file.contains('/') => {
                Some(shown_path(range, &dir.to_string_lossy(), file))
            }
            _ => None,
        }
    }

    /// Takes the warnings of a command. Its errors end the step.
    fn succeeded(&self, ran: &Ran, problems: &mut Diagnostics) -> Result<(), Ended> {
        let found = ran.diagnostics(|file| self.shown(file));
        let is_failed = found.has_errors();
        // Other warnings are about the development override.
        let relevant = found
            .into_iter()
            .filter(|problem| problem.is_error() || problem.subject.is_some() || problem.address.is_some());
        if is_failed {
            return Err(Ended::Errors(relevant.collect()));
        }
        problems.extend(relevant);
        Ok(())
    }

    async fn plan(&self, operation: Operation, problems: &mut Diagnostics) -> Result<Objects, Ended> {
        let out = format!("-out={PLAN}");
        let mut arguments = vec!["plan", "-input=false", "-no-color", "-json", &out];
        match operation {
            Operation::Refresh => arguments.push("-refresh-only"),
            Operation::Destroy => arguments.push("-destroy"),
            Operation::Apply | Operation::Plan | Operation::Nothing => {}
        }
        let ran = self.workspace.program(&arguments).await?;
        self.succeeded(&ran, problems)?;
        Ok(Objects::of_plan(&self.document(&[PLAN]).await?))
    }

    /// Plans once more. The plan must have no changes, or must have some if the step says so.
    async fn plan_again(&self, step: &Step, problems: &mut Diagnostics) -> Result<(), Ended> {
        let out = format!("-out={PLAN}");
        let arguments = ["plan", "-input=false", "-no-color", "-json", "-detailed-exitcode", &out];
        let ran = self.workspace.program(&arguments).await?;
        let has_changes = ran.status.code() == Some(CHANGES);
        if !has_changes {
            // Warnings were taken from the first plan.
            self.succeeded(&ran, &mut Diagnostics::new())?;
        }
        match &step.non_empty_plan {
            Some(at) if !has_changes => problems
                .push(Diagnostic::error(FAILED, "A plan after the step has no changes, and some are expected.").at(at)),
            None if has_changes => {
                let changes = Objects::of_plan(&self.document(&[PLAN]).await?).changes();
                let changes = match changes.is_empty() {
                    true => "outputs".to_owned(),
                    false => changes.join(", "),
                };
                let detail = format!("A plan after the step must have no changes, and has these: {changes}.");
                problems.push(Diagnostic::error(FAILED, detail).at(&step.range));
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the JSON document of a plan or a state.
    async fn document(&self, arguments: &[&str]) -> Result<Json, Ended> {
        let ran = self
            .workspace
            .program(&[&["show", "-no-color", "-json"], arguments].concat())
            .await?;
        if !ran.status.success() {
            return Err(ran.failure("Failed to show plan or state").into());
        }
        serde_json::from_str(&ran.stdout).map_err(|_| {
            Diagnostic::error("Failed to show plan or state", "The program printed no JSON document.").into()
        })
    }

    async fn read_state(&self, arguments: &[&str]) -> Result<Objects, Ended> {
        Ok(Objects::of_state(&self.document(arguments).await?))
    }

    /// Imports an object into a state of its own, and compares it with the object in the state of the step. If the import is expected to
    /// fail, only its error is checked.
    async fn import(&self, import: &Import, problems: &mut Diagnostics) -> Result<(), Ended> {
        let address = &import.address;
        let id = match &import.id {
            Some(expr) => Conditions::new(&self.plan, &self.state).text(expr, problems),
            None => {
                let object = self.state.objects.get(address);
                let id = object.and_then(|object| object.values["id"].as_str());
                if id.is_none() {
                    let detail = format!("The state has no attribute id of {address}. Set the argument \"id\".");
                    problems.push(Diagnostic::error("No identifier to import", detail).at(&import.range));
                }
                id.map(str::to_owned)
            }
        };
        let Some(id) = id else { return Ok(()) };
        // Removes the state of the previous import, so that this import begins with an empty one.
        let _: std::io::Result<()> = fs::remove_file(self.workspace.work().join(IMPORTED));
        let state = format!("-state={IMPORTED}");
        let ran = self
            .workspace
            .program(&["import", "-input=false", "-no-color", &state, "--", address, &id])
            .await?;
        if !ran.status.success() {
            let problem = ran.failure("Failed to import").at(&import.range);
            match &import.expect_error {
                Some((pattern, _)) if is_expected(pattern, &problem.clone().into()) => {}
                Some((pattern, at)) => {
                    let detail = format!("The import has another error than the one that matches \"{pattern}\".");
                    problems.push(Diagnostic::error(FAILED, detail).at(at));
                    problems.push(problem);
                }
                None => return Err(problem.into()),
            }
            return Ok(());
        }
        if let Some((pattern, at)) = &import.expect_error {
            let detail = format!("The import has no error, and one that matches \"{pattern}\" is expected.");
            problems.push(Diagnostic::error(FAILED, detail).at(at));
            return Ok(());
        }
        let imported = self.read_state(&[IMPORTED]).await?;
        checks::imported(address, &imported, &self.state, &import.ignore, &import.range, problems);
        Ok(())
    }

    /// Destroys the objects in the state. Objects that are left stay in a directory for the user.
    pub async fn destroy(&mut self) -> Destroyed {
        let mut diagnostics = Diagnostics::new();
        if let Err(Ended::Errors(errors)) = self.try_destroy(&mut diagnostics).await {
            diagnostics.extend(errors);
        }
        if diagnostics.has_errors() {
            diagnostics.push(self.left());
        }
        Destroyed {
            diagnostics,
            ..Destroyed::default()
        }
    }

    async fn try_destroy(&mut self, problems: &mut Diagnostics) -> Result<(), Ended> {
        if !self.has_objects {
            return Ok(());
        }
        // The configuration of the last step may be one that is meant to fail.
        if let Some((config, variables)) = self.planned.take() {
            self.is_initialized &= config_range(&config) == config_range(&self.config);
            (self.config, self.variables) = (config, variables);
        }
        self.write()?;
        self.initialize().await?;
        let arguments = ["destroy", "-auto-approve", "-input=false", "-no-color", "-json"];
        let ran = self.workspace.program(&arguments).await?;
        self.succeeded(&ran, &mut Diagnostics::new())?;
        self.state = self.read_state(&[]).await?;
        self.has_objects = self.state.managed().next().is_some();
        let left: Vec<&str> = self.state.managed().collect();
        if !left.is_empty() {
            let detail = format!("These objects are still in the state: {}.", left.join(", "));
            problems.push(Diagnostic::error("Objects are not destroyed", detail));
        }
        Ok(())
    }

    /// Returns an error with the command that destroys the remaining objects.
    fn left(&mut self) -> Diagnostic {
        let command = self.workspace.keep();
        let detail = format!("To destroy the objects that are left, run: {command}");
        Diagnostic::error("Objects are left", detail)
    }

    /// Returns an error if a second interrupt has left objects.
    pub fn interrupted(&mut self) -> Option<Diagnostic> {
        self.has_objects.then(|| self.left())
    }
}

fn config_range(config: &Option<StepConfig>) -> Option<&Range> {
    match config {
        Some(StepConfig::Text(range) | StepConfig::Directory(_, range)) => Some(range),
        None => None,
    }
}

/// Returns true if one of the errors matches: its summary, its detail, or both. Line breaks count as blanks.
fn is_expected(pattern: &Regex, errors: &Diagnostics) -> bool {
    errors.iter().filter(|error| error.is_error()).any(|error| {
        let text = format!("{}\n{}", error.summary, error.detail);
        let words: Vec<&str> = text.split_whitespace().collect();
        pattern.is_match(&text) || pattern.is_match(&words.join(" "))
    })
}
