//! `local_command` as an action.

use std::collections::BTreeMap;

use monoform_sdk::schema::{optional, required};
use monoform_sdk::{Action, Attr, Context, Progress, Result, Schema, async_trait, model};

use crate::command::{self, Invocation};

model! {
    /// A command to run.
    pub struct Model {
        /// The program: a path, or a name that is looked up on PATH.
        pub command: Attr<String> = required(),
        /// Arguments for the program. Those that are null are left out.
        pub arguments: Attr<Vec<Attr<String>>> = optional(),
        /// Text for its standard input, which is empty by default.
        pub stdin: Attr<String> = optional(),
        /// The directory it runs in.
        pub working_directory: Attr<String> = optional(),
        /// Environment variables for the program, beside those it inherits.
        pub environment: Attr<BTreeMap<String, Attr<String>>> = optional(),
    }
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
            // If the name is unknown, only `invoke` looks it up.
            Some(name) => command::find(name).map(drop),
            None => Ok(()),
        }
    }

    async fn invoke(&self, config: Model, progress: Progress, cx: &mut Context<()>) -> Result<()> {
        let environment = config.environment.clone().or(BTreeMap::new());
        let invocation = Invocation {
            command: &config.command,
            arguments: &config.arguments,
            stdin: &config.stdin,
            working_directory: &config.working_directory,
            environment: (environment.into_iter())
                .map(|(variable, value)| (variable, value.or(String::new())))
                .collect(),
        };
        let output = invocation.output(cx.stop()).await?;
        if !output.status.success() {
            let why = command::explain(&output);
            return Err(command::failed(config.command.text(), why));
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
    use monoform_sdk_testing::Harness;

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
