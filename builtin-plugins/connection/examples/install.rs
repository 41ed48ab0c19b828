//! Example of a provisioner: writes a script to another machine, and runs it.
//!
//! An external provisioner needs nothing else: a crate that depends on `monoform-sdk` and `monoform-connection`, with this file as its
//! `main.rs`. Name the executable `terraform-provisioner-install`, and put it into a plugin directory such as `~/.terraform.d/plugins`. A
//! configuration then uses it as `provisioner "install"`.

use std::process::ExitCode;

use connection::{Content, Settings};
use monoform_sdk::cty::Value;
use monoform_sdk::schema::required;
use monoform_sdk::{Attr, Diagnostic, Output, Provisioner, Result, Stop, async_trait, model};

model! {
    /// The arguments.
    pub struct Config {
        /// The lines of the program.
        pub inline: Attr<Vec<Attr<String>>> = required(),
    }
}

struct Install;

#[async_trait]
impl Provisioner for Install {
    type Config = Config;

    async fn run(&self, config: Config, connection: Value, output: Output, mut stop: Stop) -> Result<()> {
        install(config, &connection, &output, &mut stop)
            .await
            .map_err(|error| Diagnostic::error("install provisioner error", error.to_string()).into())
    }
}

async fn install(config: Config, block: &Value, output: &Output, stop: &mut Stop) -> connection::Result<()> {
    let lines: Vec<String> = config
        .inline
        .or(Vec::new())
        .into_iter()
        .filter_map(Attr::into_known)
        .collect();
    let settings = Settings::read(block)?;
    let mut machine = connection::connect(&settings, None, stop).await?;
    output.show("installing on the other machine").await;
    let path = settings.script_path();
    machine.upload_script(&path, lines.join("\n").into_bytes()).await?;
    machine.run_script(&path, output, stop).await?;
    machine.upload(&path, Content::Bytes(Vec::new())).await?;
    machine.close().await;
    Ok(())
}

fn main() -> ExitCode {
    monoform_sdk_server::serve_provisioner(Install)
}
