//! `internal-plugin packed`: runs a provider of the pack from memory (`memfd_create`, `execveat`) if there is no directory to unpack
//! it into. Only its executable exists there, not the other files of its package.

/// Replaces this process by the provider. Returns only if that fails, with the error message.
#[cfg(target_os = "linux")]
pub fn run(address: &str, version: &str) -> String {
    use std::os::unix::ffi::OsStringExt as _;

    use crate::builtins::own_executable;
    let run = || -> Result<std::convert::Infallible, String> {
        #[expect(
            clippy::disallowed_methods,
            reason = "the provider gets the environment of this process"
        )]
        let environment: Vec<_> = std::env::vars_os().collect();
        let options = pack::Conditions::from_environment(&cli::Environment::read(environment.clone()));
        let pack = pack::Pack::open(&own_executable(), &options).map_err(|error| error.to_string())?;
        let platform = addrs::platform::Platform::current();
        let provider = (pack.index().providers.iter()).find(|provider| {
            provider.platform == platform
                && provider.address.to_string() == address
                && provider.version.to_string() == version
        });
        let missing = || format!("this executable does not carry {address} {version} for {platform}");
        let file = provider
            .and_then(|provider| provider.executable())
            .ok_or_else(missing)?;
        let blob = pack.index().blob_of(file).ok_or_else(missing)?;
        let no_memory =
            |error: std::io::Error| format!("the provider does not fit into memory: {}", cli::io_reason(&error));
        let memory = rustix::fs::memfd_create(file.path.as_str(), rustix::fs::MemfdFlags::empty());
        let mut memory = std::fs::File::from(memory.map_err(|error| no_memory(error.into()))?);
        pack.copy(blob, &mut memory).map_err(|error| match error {
            pack::CopyError::Pack(error) => error.to_string(),
            pack::CopyError::Write(error) => no_memory(error),
        })?;
        let text = |bytes: Vec<u8>| std::ffi::CString::new(bytes).map_err(|error| error.to_string());
        let name = text(file.path.clone().into_bytes())?;
        let variables = (environment.into_iter())
            .map(|(name, value)| text([name.into_vec(), b"=".to_vec(), value.into_vec()].concat()));
        let variables = variables.collect::<Result<Vec<_>, _>>()?;
        let flags = nix::fcntl::AtFlags::AT_EMPTY_PATH;
        nix::unistd::execveat(memory, c"", &[name], &variables, flags).map_err(|error| {
            format!(
                "the provider cannot be run from memory: {}",
                cli::io_reason(&error.into())
            )
        })
    };
    match run() {
        Ok(never) => match never {},
        Err(why) => format!("The provider {address} {version} cannot be started: {why}.\n"),
    }
}

/// Returns the error message: other systems run no programs from memory.
#[cfg(not(target_os = "linux"))]
pub fn run(address: &str, version: &str) -> String {
    format!("The provider {address} {version} cannot be started: programs run from memory on Linux only.\n")
}
