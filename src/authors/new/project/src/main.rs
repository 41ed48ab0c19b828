//! The provider `sample`, served to Terraform, OpenTofu and Monoform.

mod files;
mod functions;
mod lookup;
mod note;
mod provider;

use std::process::ExitCode;

/// Address of the provider, by which a debugged process is found.
const ADDRESS: &str = "registry.terraform.io/example/sample";

fn main() -> ExitCode {
    // With this argument the provider waits for a host, so that it can be started in a debugger.
    if std::env::args().any(|argument| argument == "-debug") {
        return monoform_sdk_server::debug_provider(ADDRESS, provider::SampleProvider);
    }
    monoform_sdk_server::serve_provider(provider::SampleProvider)
}
