//! Entry point: selects the program to run by the name of the executable, and then by the first argument.
//!
//! | called as | program |
//! | --- | --- |
//! | `monoform …` | the command line |
//! | `monoform internal-plugin …` | serves, lists or links built-in plugins: see [`internal`] |
//! | `terraform-provider-NAME[_vX.Y.Z][_xN]`, `terraform-provisioner-NAME` | that plugin |
//! | `terraform …` | the command line, with the output that wrappers of Terraform expect |
//! | `tofu …` | the command line, with the output that wrappers of OpenTofu expect |
//!
//! A plugin process runs nothing of the command line: no flags, no configuration, no search for other plugins.

mod builtins;
mod internal;
mod packed;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[expect(clippy::disallowed_methods, reason = "the environment is read here and passed on")]
fn main() -> ExitCode {
    let mut args = std::env::args_os();
    let called_as = args.next().unwrap_or_default();
    let args: Vec<OsString> = args.collect();
    let name = Path::new(&called_as)
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    // Only the suffix of Windows executables is removed, because versions contain dots, too.
    let full = Path::new(&called_as)
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let full = system::Os::CURRENT.program_name(&full);
    if let Some(plugin) = builtins::named_by_executable(full) {
        return internal::serve(plugin);
    }
    if args.first().is_some_and(|a| a == "internal-plugin") {
        return internal::run(&args[1..]);
    }
    system::console::prepare();
    let environment: Vec<_> = std::env::vars_os().collect();
    // The mode is selected before the table is made, because the addresses in it depend on the mode.
    cli::select_mode(&name, &environment);
    cli::main(cli::Invocation {
        builtins: builtins::table(),
        args,
        called_as: name,
        environment,
    })
}
