//! `local_command`, as a data source and as an ephemeral resource.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;
use std::process::Output;

use monoform_sdk::schema::{computed, optional, required};
use monoform_sdk::{
    Attr, Context, DataSource, Diagnostic, Diagnostics, EphemeralResource, Opened, Result, Schema, Stop, async_trait,
    collect, model, program,
};
use tokio::process::Command;

model! {
    /// A command that was run.
    pub struct Model {
        /// The program: a path, or a name that is looked up on PATH.
        pub command: Attr<String> = required(),
        /// Arguments for the program. Those that are null are left out.
        pub arguments: Attr<Vec<Attr<String>>> = optional(),
        /// Text for its standard input, which is empty by default.
        pub stdin: Attr<String> = optional(),
        /// The directory it runs in.
        pub working_directory: Attr<String> = optional(),
        /// True if an exit code other than 0 is accepted.
        pub allow_non_zero_exit_code: Attr<bool> = optional(),
        /// The exit code; -1 if a signal ended the program.
        pub exit_code: Attr<i64> = computed(),
        /// Standard output of the command; null if it is empty.
        pub stdout: Attr<String> = computed(),
        /// Standard error of the command; null if it is empty.
        pub stderr: Attr<String> = computed(),
    }
}

/// A command with its arguments, input, working directory and environment.
pub(crate) struct Invocation<'m> {
    pub command: &'m Attr<String>,
    pub arguments: &'m Attr<Vec<Attr<String>>>,
    pub stdin: &'m Attr<String>,
    pub working_directory: &'m Attr<String>,
    /// Environment variables in addition to the inherited ones.
    pub environment: BTreeMap<String, String>,
}

/// Finds a program by its path, or by its name on PATH.
pub(crate) fn find(name: &str) -> Result<PathBuf> {
    let found = program::find(name).map_err(|problem| {
        Diagnostic::error(
            "Command Lookup Failed",
            format!("The program could not be found, or cannot be run.\n\nCommand: {name}\nError: {problem}"),
        )
        .at_attribute("command")
    })?;
    Ok(found)
}

/// Builds the error of a command that failed.
pub(crate) fn failed(name: &str, problem: impl Display) -> Diagnostics {
    Diagnostic::error("Command Execution Failed", format!("Command: {name}\nError: {problem}"))
        .at_attribute("command")
        .into()
}

impl Invocation<'_> {
    /// Runs the program to its end. A non-zero exit code is not an error of this function.
    pub async fn output(&self, mut stop: Stop) -> Result<Output> {
        let name = self.command.text();
        let mut command = Command::new(find(name)?);
        let arguments = self.arguments.clone().or(Vec::new());
        command
            .args(arguments.into_iter().filter_map(Attr::into_known))
            .envs(&self.environment);
        if let Some(dir) = self.working_directory.as_str() {
            command.current_dir(dir);
        }
        let input = self.stdin.known().map(|text| text.clone().into_bytes());
        let output = collect::output(&mut command, input, stop.requested()).await;
        output
            .map_err(|e| failed(name, e))?
            .ok_or_else(|| failed(name, "The command was stopped on request."))
    }
}

/// Runs the command. Its results are put into the model even if the command failed.
async fn run(model: &mut Model, stop: Stop) -> Result<()> {
    let invocation = Invocation {
        command: &model.command,
        arguments: &model.arguments,
        stdin: &model.stdin,
        working_directory: &model.working_directory,
        environment: BTreeMap::new(),
    };
    let output = invocation.output(stop).await?;
    // Strings in Terraform are Unicode, so other bytes are replaced by U+FFFD.
    let text = |bytes: &[u8]| match bytes {
        [] => Attr::Null,
        bytes => Attr::Known(String::from_utf8_lossy(bytes).into_owned()),
    };
    model.exit_code = i64::from(output.status.code().unwrap_or(-1)).into();
    model.stdout = text(&output.stdout);
    model.stderr = text(&output.stderr);
    if output.status.success() || model.allow_non_zero_exit_code.clone().or(false) {
        return Ok(());
    }
    Err(failed(model.command.text(), explain(&output)))
}

pub(crate) fn explain(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    match text.trim() {
        "" => format!("{}, and nothing was written to standard error.", output.status),
        text => format!("{}\n\n{text}", output.status),
    }
}

pub(crate) struct LocalCommand;

#[async_trait]
impl DataSource for LocalCommand {
    type Model = Model;
    type Client = ();

    fn schema(&self) -> Schema {
        Schema::of::<Model>().describe(
            "Runs a program and returns its output. It runs during every plan and apply, so it should change nothing.",
        )
    }

    async fn read(&self, mut config: Model, cx: &mut Context<()>) -> Result<Model> {
        let result = run(&mut config, cx.stop()).await;
        // If the command ran and failed, its output is returned together with the error.
        if config.exit_code.known().is_some() {
            cx.save(&config);
        }
        result.map(|()| config)
    }
}

#[async_trait]
impl EphemeralResource for LocalCommand {
    type Model = Model;
    type Client = ();

    fn schema(&self) -> Schema {
        Schema::of::<Model>().describe("Runs a program and returns its output for one run; nothing is stored.")
    }

    async fn open(&self, mut config: Model, cx: &mut Context<()>) -> Result<Opened<Model>> {
        run(&mut config, cx.stop()).await?;
        Ok(config.into())
    }
}

#[cfg(test)]
mod tests {
    use monoform_sdk::cty::{Type, Value};
    use monoform_sdk_testing::Harness;

    fn arguments(list: &[Option<&str>]) -> Value {
        let null = || Value::null(Type::String);
        Value::list(
            Type::String,
            list.iter().map(|a| a.map_or_else(null, Value::string)).collect(),
        )
    }

    fn shell(script: &str) -> [(&str, Value); 2] {
        [
            ("command", "sh".into()),
            ("arguments", arguments(&[Some("-c"), None, Some(script)])),
        ]
    }

    #[tokio::test]
    async fn output_and_exit_code_are_given() {
        let harness = Harness::new(crate::provider());
        let mut config = shell("cat; printf err >&2; exit 3").to_vec();
        config.push(("stdin", "in".into()));
        config.push(("allow_non_zero_exit_code", true.into()));
        for state in [
            harness.data("local_command", &config).await,
            harness.open("local_command", &config).await,
        ] {
            let state = state.unwrap();
            assert_eq!(state.get("stdout"), Some(&"in".into()));
            assert_eq!(state.get("stderr"), Some(&"err".into()));
            assert_eq!(state.get("exit_code"), Some(&3.into()));
        }
        let silent = harness
            .data("local_command", &shell("kill -9 $$")[..])
            .await
            .unwrap_err();
        assert_eq!(silent.0[0].summary, "Command Execution Failed");
    }

    #[tokio::test]
    async fn empty_output_is_null_and_signals_are_minus_one() {
        let harness = Harness::new(crate::provider());
        let mut config = shell("kill -9 $$").to_vec();
        config.push(("allow_non_zero_exit_code", true.into()));
        let state = harness.data("local_command", &config).await.unwrap();
        assert_eq!(state.get("exit_code"), Some(&(-1).into()));
        assert_eq!(state.get("stdout"), Some(&Value::null(Type::String)));
    }

    #[tokio::test]
    async fn programs_that_are_not_there() {
        let harness = Harness::new(crate::provider());
        for name in ["no-such-program", "./no/such", "", "/"] {
            let errors = harness
                .data("local_command", &[("command", name.into())])
                .await
                .unwrap_err();
            assert_eq!(errors.0[0].summary, "Command Lookup Failed", "{name}");
        }
    }
}
