//! `local_command` as an action.

use std::collections::BTreeMap;
use std::process::Stdio;

use monoform_sdk::schema::{optional, required};
use monoform_sdk::{
    Action, Attr, Context, Diagnostic, Diagnostics, Progress, Result, Schema, async_trait, model, program,
};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

model! {
    /// A command to run.
    pub struct Model {
        /// The program: a path, or a name that is looked up on PATH.
        pub command: Attr<String> = required(),
        /// Arguments for the program. Those that are null are left out.
        pub arguments: Attr<Vec<Attr<String>>> = optional(),
        /// Text for its standard input, which is empty otherwise.
        pub stdin: Attr<String> = optional(),
        /// The directory it runs in.
        pub working_directory: Attr<String> = optional(),
        /// Environment variables for the program, beside those it inherits.
        pub environment: Attr<BTreeMap<String, Attr<String>>> = optional(),
    }
}

/// Looks a program up.
fn found(name: &str) -> Result<std::path::PathBuf> {
    let found = program::find(name).map_err(|problem| {
        Diagnostic::error(
            "Command Lookup Failed",
            format!("The program could not be found, or cannot be run.\n\nCommand: {name}\nError: {problem}"),
        )
        .at_attribute("command")
    })?;
    Ok(found)
}

pub(crate) struct LocalCommand;

#[async_trait]
impl Action for LocalCommand {
    type Config = Model;
    type Client = ();

    fn schema(&self) -> Schema {
        Schema::of::<Model>().describe("Runs a program, and shows what it writes to standard output.")
    }

    async fn plan(&self, config: Model, _cx: &mut Context<()>) -> Result<()> {
        match config.command.known() {
            Some(name) => found(name).map(drop),
            None => Ok(()),
        }
    }

    async fn invoke(&self, config: Model, progress: Progress, cx: &mut Context<()>) -> Result<()> {
        let name = config.command.text().to_owned();
        let failed = |problem: String| -> Diagnostics {
            Diagnostic::error("Command Execution Failed", format!("Command: {name}\nError: {problem}"))
                .at_attribute("command")
                .into()
        };
        let mut command = Command::new(found(&name)?);
        let arguments = config.arguments.clone().or(Vec::new());
        command
            .args(arguments.into_iter().filter_map(Attr::into_known))
            .kill_on_drop(true);
        let environment = config.environment.clone().or(BTreeMap::new());
        for (variable, value) in environment {
            command.env(variable, value.or(String::new()));
        }
        command.stdin(if config.stdin.known().is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(dir) = config.working_directory.as_str() {
            command.current_dir(dir);
        }
        let mut child = command.spawn().map_err(|e| failed(e.to_string()))?;
        let input = child.stdin.take().zip(config.stdin.known().cloned());
        let feed = async {
            if let Some((mut pipe, text)) = input {
                // A program need not read all it is given.
                drop(pipe.write_all(text.as_bytes()).await);
            }
        };
        let mut stop = cx.stop();
        let output = tokio::select! {
            ((), output) = async { tokio::join!(feed, child.wait_with_output()) } => output,
            () = stop.requested() => return Err(failed("The command was stopped on request.".into())),
        };
        let output = output.map_err(|e| failed(e.to_string()))?;
        if !output.status.success() {
            return Err(failed(super::command::explain(&output)));
        }
        progress
            .report(format!("\n\n{}\n", String::from_utf8_lossy(&output.stdout)))
            .await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use monoform_sdk::cty::{Type, Value};
    use monoform_sdk::testing::Harness;

    fn shell(script: &str) -> Vec<(&'static str, Value)> {
        let arguments = Value::list(Type::String, vec!["-c".into(), script.into()]);
        vec![("command", "sh".into()), ("arguments", arguments)]
    }

    #[tokio::test]
    async fn output_is_one_message_and_the_environment_is_merged() {
        let harness = Harness::new(crate::provider());
        let dir = tempfile::tempdir().unwrap();
        let mut config = shell("cat; printf ' %s %s' \"$GREETING\" \"${PATH:+path}\"; pwd >&2; touch here");
        config.push(("stdin", "in".into()));
        config.push(("working_directory", dir.path().to_str().unwrap().into()));
        let environment = Value::map(Type::String, [("GREETING".into(), "hello".into())].into());
        config.push(("environment", environment));
        let messages = harness.invoke("local_command", &config).await.unwrap();
        assert_eq!(messages, ["\n\nin hello path\n"]);
        assert!(dir.path().join("here").exists());
    }

    #[tokio::test]
    async fn failures_say_why() {
        let harness = Harness::new(crate::provider());
        let config = shell("echo no >&2; exit 3");
        let errors = harness.invoke("local_command", &config).await.unwrap_err();
        assert_eq!(errors.0[0].summary, "Command Execution Failed");
        assert!(errors.0[0].detail.contains("no"), "{:?}", errors.0[0]);
        let missing = [("command", "no-such-program".into())];
        let errors = harness.invoke("local_command", &missing).await.unwrap_err();
        assert_eq!(errors.0[0].summary, "Command Lookup Failed");
    }
}
