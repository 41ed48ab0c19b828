//! `internal-plugin packed`: runs a provider of the pack from memory (`memfd_create`, `execveat`) if there is no directory to unpack it
//! into. The provider then has only its executable, not the other files of its package.

/// Reason why a provider cannot run from memory, as a clause.
#[cfg(target_os = "linux")]
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Pack(#[from] pack::PackError),
    #[error("this executable does not carry {provider} for {platform}")]
    Missing {
        /// Address and version.
        provider: String,
        platform: addrs::platform::Platform,
    },
    #[error("the provider does not fit into memory: {}", cli::io_reason(.0))]
    NoMemory(#[source] std::io::Error),
    #[error("the provider cannot be run from memory: {}", cli::io_reason(.0))]
    NotRun(#[source] std::io::Error),
    /// A variable of the environment, or the name of the file, contains a zero byte.
    #[error(transparent)]
    Nul(#[from] std::ffi::NulError),
}

/// Replaces this process by the provider. Returns only if that fails, with the error message.
#[cfg(target_os = "linux")]
pub fn run(address: &str, version: &str) -> String {
    use std::os::unix::ffi::OsStringExt as _;

    use crate::builtins::own_executable;
    let run = || -> Result<std::convert::Infallible, Error> {
        #[expect(
            clippy::disallowed_methods,
            reason = "the provider gets the environment of this process"
        )]
        let environment: Vec<_> = std::env::vars_os().collect();
        let options = pack::Conditions::from_environment(&cli::Environment::read(environment.clone()));
        let pack = pack::Pack::open(&own_executable(), &options)?;
        let platform = addrs::platform::Platform::current();
        let provider = (pack.index().providers.iter()).find(|provider| {
            provider.platform == platform
                && provider.address.to_string() == address
                && provider.version.to_string() == version
        });
        let missing = || Error::Missing {
            provider: format!("{address} {version}"),
            platform: platform.clone(),
        };
        let file = provider
            .and_then(|provider| provider.executable())
            .ok_or_else(missing)?;
        let blob = pack.index().blob_of(file).ok_or_else(missing)?;
        let memory = rustix::fs::memfd_create(file.path.as_str(), rustix::fs::MemfdFlags::empty());
        let mut memory = std::fs::File::from(memory.map_err(|error| Error::NoMemory(error.into()))?);
        pack.copy(blob, &mut memory).map_err(|error| match error {
            pack::CopyError::Pack(error) => Error::Pack(error),
            pack::CopyError::Write(error) => Error::NoMemory(error),
        })?;
        let text = |bytes: Vec<u8>| std::ffi::CString::new(bytes);
        let name = text(file.path.clone().into_bytes())?;
        let variables = (environment.into_iter())
            .map(|(name, value)| text([name.into_vec(), b"=".to_vec(), value.into_vec()].concat()));
        let variables = variables.collect::<Result<Vec<_>, _>>()?;
        let flags = nix::fcntl::AtFlags::AT_EMPTY_PATH;
        nix::unistd::execveat(memory, c"", &[name], &variables, flags).map_err(|error| Error::NotRun(error.into()))
    };
    match run() {
        Ok(never) => match never {},
        Err(why) => format!("The provider {address} {version} cannot be started: {why}.\n"),
    }
}

/// Returns the error message: other systems cannot run programs from memory.
#[cfg(not(target_os = "linux"))]
pub fn run(address: &str, version: &str) -> String {
    format!("The provider {address} {version} cannot be started: programs run from memory on Linux only.\n")
}
