//! The data source `external`: a program that gets a JSON object on its standard input and prints another one to its
//! standard output.

use std::collections::BTreeMap;
use std::io;
use std::process::{ExitStatus, Output};

use monoform_sdk::schema::{computed, optional, required};
use monoform_sdk::{
    Attr, Context, DataSource, Diagnostic, Result, Schema, Stop, Validator, async_trait, collect, model, program,
};
use tokio::process::Command;

model! {
    /// A program and its answer.
    pub struct Model {
        /// The program (a path, or a name that is looked up on PATH) and its arguments. Elements that are null or empty are
        /// left out.
        pub program: Attr<Vec<Attr<String>>> = required().validate(Validator::Size(1, usize::MAX)),
        /// The directory it runs in; the current directory if it is not set.
        pub working_dir: Attr<String> = optional(),
        /// JSON object for the standard input of the program. Keys without a value are left out.
        pub query: Attr<BTreeMap<String, Attr<String>>> = optional(),
        /// JSON object from the standard output of the program.
        pub result: Attr<BTreeMap<String, Attr<String>>> = computed(),
        /// Always `-`.
        pub id: Attr<String> = computed(),
    }
}

pub(crate) struct External;

#[async_trait]
impl DataSource for External {
    type Model = Model;
    type Client = ();

    fn schema(&self) -> Schema {
        Schema::of::<Model>().describe(
            "Runs a program that reads a JSON object and prints a JSON object whose values are strings. It runs \
             whenever the data source is read, so it should change nothing.",
        )
    }

    async fn read(&self, config: Model, cx: &mut Context<()>) -> Result<Model> {
        let given = config.program.clone().or(Vec::new());
        let mut words = given.into_iter().filter_map(Attr::into_known).filter(|w| !w.is_empty());
        let Some(name) = words.next() else {
            return Err(Diagnostic::error(
                "External Program Missing",
                "No element of program has a value, so there is nothing to run. The first one names the program.",
            )
            .at_attribute("program")
            .into());
        };
        // The program is looked up before it is started, so that a missing program has an error of its own.
        let path = program::find(&name).map_err(|problem| {
            about_program(
                "External Program Lookup Failed",
                format!(
                    "The program could not be found, or cannot be run. A path is looked for from the current directory, \
                     a name on PATH.\n\nPlatform: {}\nProgram: {name}\nError: {problem}",
                    std::env::consts::OS
                ),
            )
        })?;

        let mut command = Command::new(path);
        command.args(words);
        if let Some(dir) = config.working_dir.as_str() {
            command.current_dir(dir);
        }
        let output = run(command, query(&config), cx.stop()).await.map_err(|problem| {
            about_program(
                "External Program Execution Failed",
                format!("The program could not be run to its end.\n\nProgram: {name}\nError: {problem}"),
            )
        })?;
        let errors = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            return Err(failure(&name, &errors, output.status).into());
        }
        // Not a warning, since a program that succeeds may write its log to standard error.
        if !errors.is_empty() {
            tracing::debug!("{name} wrote to its standard error: {errors}");
        }
        Ok(Model {
            result: answer(&output.stdout)
                .map_err(|problem| {
                    about_program(
                        "Unexpected External Program Results",
                        format!(
                            "The program ended well, but its standard output is not one JSON object whose values are \
                             strings, and nothing else. Messages for people belong on standard error.\n\n\
                             Program: {name}\nResult Error: {problem}"
                        ),
                    )
                })?
                .into(),
            id: "-".into(),
            ..config
        })
    }
}

fn about_program(summary: &str, detail: String) -> Diagnostic {
    Diagnostic::error(summary, detail).at_attribute("program")
}

/// Encodes the query for the standard input of the program.
fn query(config: &Model) -> Vec<u8> {
    let query = config.query.clone().or(BTreeMap::new());
    let object: serde_json::Map<_, _> = query
        .into_iter()
        .filter_map(|(key, value)| Some((key, value.into_known()?.into())))
        .collect();
    serde_json::Value::Object(object).to_string().into_bytes()
}

async fn run(mut command: Command, input: Vec<u8>, mut stop: Stop) -> io::Result<Output> {
    let output = collect::output(&mut command, Some(input), stop.requested()).await?;
    output.ok_or_else(|| io::Error::new(io::ErrorKind::Interrupted, "it was stopped on request"))
}

fn failure(name: &str, errors: &str, status: ExitStatus) -> Diagnostic {
    let state = match (status.code(), system::processes::signal(&status)) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    };
    let detail = if errors.trim().is_empty() {
        format!(
            "The program failed, with no additional error messaging: it wrote nothing to its standard error, where it \
             should say why.\n\nProgram: {name}\nState: {state}"
        )
    } else {
        let errors = errors.trim_end();
        format!("The program failed.\n\nProgram: {name}\nError Message: {errors}\nState: {state}")
    };
    about_program("External Program Execution Failed", detail)
}

/// Parses the answer of the program; `None` if the answer is `null`. A null value in it becomes an empty text.
fn answer(output: &[u8]) -> std::result::Result<Option<BTreeMap<String, Attr<String>>>, serde_json::Error> {
    // As in Go's decoder, invalid UTF-8 is replaced by U+FFFD.
    let text = String::from_utf8_lossy(output);
    let object: Option<BTreeMap<String, Option<String>>> = serde_json::from_str(&text)?;
    Ok(object.map(|object| {
        object
            .into_iter()
            .map(|(key, value)| (key, value.unwrap_or_default().into()))
            .collect()
    }))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Arc;

    use monoform_sdk::cty::{Type, Value};
    use monoform_sdk_testing::Harness;

    use super::*;

    fn strings(list: &[Option<&str>]) -> Value {
        let null = || Value::null(Type::String);
        Value::list(
            Type::String,
            list.iter().map(|a| a.map_or_else(null, Value::string)).collect(),
        )
    }

    fn map(entries: &[(&str, &str)]) -> Value {
        Value::map(
            Type::String,
            entries.iter().map(|(k, v)| (Arc::from(*k), Value::string(v))).collect(),
        )
    }

    async fn ask(config: &[(&str, Value)]) -> Result<Value> {
        Harness::new(crate::provider()).data("external", config).await
    }

    async fn shell(script: &str) -> Result<Value> {
        ask(&[(
            "program",
            strings(&[Some("sh"), None, Some(""), Some("-c"), Some(script)]),
        )])
        .await
    }

    async fn error_of(script: &str) -> Diagnostic {
        shell(script).await.unwrap_err().0.remove(0)
    }

    #[tokio::test]
    async fn the_program_reads_the_query_and_its_answer_is_the_result() {
        let query = Value::map(
            Type::String,
            [
                ("b", Value::string("é\"")),
                ("a", "1".into()),
                ("no", Value::null(Type::String)),
            ]
            .map(|(k, v)| (Arc::from(k), v))
            .into(),
        );
        let dir = tempfile::tempdir().unwrap();
        let script =
            "printf '{\"got\":'; cat | sed 's/[\"\\\\]/\\\\&/g; s/.*/\"&\"/'; printf ', \"pwd\": \"%s\"}' \"$PWD\"";
        let state = ask(&[
            ("program", strings(&[Some("sh"), Some("-c"), Some(script)])),
            ("query", query),
            ("working_dir", dir.path().to_str().unwrap().into()),
        ])
        .await
        .unwrap();
        let here = dir.path().canonicalize().unwrap();
        let expected = map(&[("got", r#"{"a":"1","b":"é\""}"#), ("pwd", here.to_str().unwrap())]);
        assert_eq!(state.get("result"), Some(&expected));
        assert_eq!(state.get("id"), Some(&"-".into()));
        let without = shell("cat").await.unwrap();
        assert_eq!(without.get("result"), Some(&map(&[])));
    }

    #[tokio::test]
    async fn what_counts_as_an_answer() {
        for (output, expected) in [
            (r#"{"a":"1","a":"2","n":null} "#, map(&[("a", "2"), ("n", "")])),
            ("null", Value::null(Type::map(Type::String))),
        ] {
            let state = shell(&format!("echo noise >&2; printf '%s' '{output}'")).await.unwrap();
            assert_eq!(state.get("result"), Some(&expected), "{output}");
        }
        for output in [
            r#"{"a":1}"#,
            r#"{"a":{}}"#,
            "[]",
            r#"{"a":"1"} x"#,
            r#"{"a":"1"}{}"#,
            "",
            "text",
        ] {
            let error = error_of(&format!("printf '%s' '{output}'")).await;
            assert_eq!(error.summary, "Unexpected External Program Results", "{output}");
        }
    }

    #[tokio::test]
    async fn a_program_that_fails_says_why() {
        let error = error_of("echo it broke >&2; exit 3").await;
        assert_eq!(error.summary, "External Program Execution Failed");
        assert!(
            error.detail.contains("Error Message: it broke\nState: exit status 3"),
            "{}",
            error.detail
        );
        let error = error_of("exit 1").await;
        assert_eq!(error.summary, "External Program Execution Failed");
        assert!(
            error.detail.contains("no additional error messaging"),
            "{}",
            error.detail
        );
        assert!(error_of("kill -9 $$").await.detail.contains("State: signal 9"));
    }

    #[tokio::test]
    async fn programs_that_cannot_be_run() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "neither a program nor a script").unwrap();
        let file = file.to_str().unwrap();
        for (program, summary) in [
            (&[None, Some("")][..], "External Program Missing"),
            (&[], "Invalid Attribute Value"),
            (&[Some("no-such-program")], "External Program Lookup Failed"),
            (&[Some("./no/such")], "External Program Lookup Failed"),
            (&[Some(file)], "External Program Lookup Failed"),
        ] {
            let errors = ask(&[("program", strings(program))]).await.unwrap_err();
            assert_eq!(errors.0[0].summary, summary, "{program:?}");
        }
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
        let errors = ask(&[("program", strings(&[Some(file)]))]).await.unwrap_err();
        assert_eq!(errors.0[0].summary, "External Program Execution Failed");
    }
}
