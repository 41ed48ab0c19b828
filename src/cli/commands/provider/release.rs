//! `provider release`: archives, checksums, signature and mirrors of a provider.

use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};

use addrs::Provider;
use addrs::platform::Platform;
use authors::release::{Build, BuildError, Executables, Release, ReleaseError, Written, mirror, oci_layout};
use plugins::probe::{Probe, Start};
use versions::Version;

use super::one;
use crate::args::flags::{self, Flags, FromFlags};
use crate::commands::Command;
use crate::outcome::{Failure, Outcome};
use crate::session::Session;

pub const COMMAND: Command = Command {
    path: "provider release",
    about: "Make the files of a provider's release",
    positional: "VERSION",
    details: "Makes of built executables what a registry takes for a release: an archive for each platform, a manifest with the \
      protocols, the checksums, and with -sign their signature by the program gpg. The platform of an executable is that in its \
      header, or that of the directory it is in, if its name is like linux_amd64. With -build, cargo builds the project in the working \
      directory first, for each -target; paths of this machine do not get into the executables. The same executables give the same bytes. With \
      -mirror the release is also put into a directory that is a filesystem mirror and the content of a network mirror, with \
      -oci into an OCI image layout, from which tools such as oras copy it into a repository. Nothing is published.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

/// Time limit for starting the executable to learn its protocol versions.
const LIMIT: std::time::Duration = std::time::Duration::from_secs(30);

struct Arguments {
    from: Option<String>,
    build: bool,
    targets: Vec<String>,
    out: String,
    name: Option<String>,
    include: Vec<String>,
    protocols: Vec<String>,
    sign: Option<String>,
    mirror: Option<String>,
    source: Option<String>,
    oci: Option<String>,
    positional: Vec<String>,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        Arguments {
            from: flags.value(
                "from",
                "DIR",
                "Directory with the executables, itself or in directories of it. Required without -build.",
            ),
            build: flags.switch(
                "build",
                false,
                "Build the executables of the project in the working directory with cargo, in its profile \"release\".",
            ),
            targets: flags.values(
                "target",
                "TARGET",
                "With -build, a target of rustc, such as aarch64-unknown-linux-musl. Can be repeated. Without it, that of this machine.",
            ),
            out: flags.value_or("out", "DIR", "release", "Directory for the files of the release."),
            name: flags.value(
                "name",
                "NAME",
                "Name of the provider, where the directory has executables of several.",
            ),
            include: flags.values(
                "include",
                "FILE",
                "File that each archive has beside the executable, such as a licence. Can be repeated.",
            ),
            protocols: flags.values(
                "protocol",
                "NUMBER",
                "Protocol that the provider serves, 5 or 6. Can be repeated. Without it, the executable for this machine is asked.",
            ),
            sign: flags.value(
                "sign",
                "KEY",
                "Sign the checksums with this key of gpg: its fingerprint or its user's address.",
            ),
            mirror: flags.value("mirror", "DIR", "Add the release to this mirror, under the address of -source."),
            source: flags.value(
                "source",
                "ADDRESS",
                "Address of the provider in a mirror: [HOST/]NAMESPACE/NAME.",
            ),
            oci: flags.value("oci", "DIR", "Add the release to this OCI image layout."),
            positional: flags.positional(),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    let version = one(&arguments.positional, "the version of the release, such as 1.2.3")?;
    let version = Version::parse(version.strip_prefix('v').unwrap_or(version))
        .map_err(|_| Failure::usage("Invalid version", format!("\"{version}\" is no version such as 1.2.3.")))?;
    let source = address(arguments)?;
    let executables = executables(session, arguments)?;
    if let Some(source) = source.as_ref().filter(|source| *source.ty != *executables.name) {
        return Err(Failure::new(
            "Another provider in -source",
            format!(
                "The executables are of the provider \"{}\", and -source is {source}.",
                executables.name
            ),
        ));
    }
    let protocols = protocols(session, &arguments.protocols, &executables)?;
    let included: Vec<PathBuf> = arguments.include.iter().map(PathBuf::from).collect();
    let release = Release {
        executables: &executables,
        version: &version,
        protocols: &protocols,
        included: &included,
    };
    let written = release
        .write(Path::new(&arguments.out))
        .map_err(|error| failure(&error))?;
    let mut out = report(&written);
    if let Some(key) = &arguments.sign {
        out.push_str(&format!("Signed: {}\n", sign(&written.checksums, key)?.display()));
    }
    if let (Some(dir), Some(source)) = (&arguments.mirror, &source) {
        mirror(Path::new(dir), source, &version, &written, &session.env)?;
        out.push_str(&format!("Added to the mirror {dir} as {source}\n"));
    }
    if let Some(dir) = &arguments.oci {
        oci_layout(Path::new(dir), &version, &written).map_err(|error| failure(&error))?;
        out.push_str(&format!("Added to the OCI image layout {dir}\n"));
    }
    Ok(Outcome::text(out))
}

/// Finds the executables, or builds them.
fn executables(session: &Session, arguments: &Arguments) -> Result<Executables, Failure> {
    let name = arguments.name.as_deref();
    match &arguments.from {
        Some(_) if arguments.build => Err(Failure::usage(
            "Incompatible command-line flags",
            "Executables are either built by -build or found by -from.",
        )),
        None if arguments.build => {
            let build = Build {
                dir: Path::new("."),
                targets: &arguments.targets,
                name,
                environment: &session.env,
            };
            build.run().map_err(|error| match &error {
                BuildError::Release(error) => failure(error),
                BuildError::NotRun { .. } => failed("Failed to run program", &error),
                BuildError::UnknownTarget(_) => failed("Unknown target", &error),
                BuildError::NotInstalled(_) => failed("Targets are not installed", &error),
                BuildError::Failed(_) => failed("Failed to build", &error),
                BuildError::Nothing(_) => failed("No provider executable", &error),
            })
        }
        _ if !arguments.targets.is_empty() => Err(Failure::usage(
            "Missing option",
            "The option -target is a target of -build.",
        )),
        Some(from) => Executables::find(Path::new(from), name).map_err(|error| failure(&error)),
        None => Err(Failure::usage(
            "Missing option",
            "Name the directory with the executables by the option -from, or build them by -build.",
        )),
    }
}

/// Returns the provider address for the mirror; `None` if neither `-mirror` nor `-source` is set. Setting
/// only one of them is an error.
fn address(arguments: &Arguments) -> Result<Option<Provider>, Failure> {
    match (&arguments.mirror, &arguments.source) {
        (None, None) => Ok(None),
        (Some(_), Some(source)) => match Provider::parse(source) {
            Ok(source) => Ok(Some(source)),
            Err(error) => Err(Failure::usage("Invalid provider address", error.to_string())),
        },
        (Some(_), None) => Err(Failure::usage(
            "Missing option",
            "A mirror needs the address of the provider: -source=[HOST/]NAMESPACE/NAME.",
        )),
        (None, Some(_)) => Err(Failure::usage(
            "Missing option",
            "The option -source is the address in a mirror. Name that by the option -mirror.",
        )),
    }
}

fn failure(error: &ReleaseError) -> Failure {
    let summary = match error {
        ReleaseError::Nothing(_) => "No provider executable",
        ReleaseError::UnknownPlatform(_) | ReleaseError::Twice { .. } => "Unclear platform",
        ReleaseError::SeveralProviders(..) => "Several providers",
        ReleaseError::Read { .. } | ReleaseError::Write { .. } | ReleaseError::Archive(_) => "Failed to write release",
    };
    failed(summary, error)
}

/// Returns a failure whose detail is an error as a sentence.
fn failed(summary: &str, error: &dyn std::error::Error) -> Failure {
    let text = error.to_string();
    let mut characters = text.chars();
    let first = characters
        .next()
        .map(|c| c.to_uppercase().to_string())
        .unwrap_or_default();
    Failure::new(summary, format!("{first}{}.", characters.as_str()))
}

/// Returns the protocols: those of the options, or those with which the executable for this machine starts.
fn protocols(session: &Session, set: &[String], executables: &Executables) -> Result<Vec<u32>, Failure> {
    if !set.is_empty() {
        let mut protocols = Vec::new();
        for number in set {
            match number.parse() {
                Ok(number @ (5 | 6)) => protocols.push(number),
                _ => {
                    return Err(Failure::flag(format!(
                        "invalid value {number:?} for flag -protocol: 5 or 6 is needed"
                    )));
                }
            }
        }
        protocols.sort_unstable();
        protocols.dedup();
        return Ok(protocols);
    }
    let platform = Platform::current();
    let Some(program) = executables.files.get(&platform) else {
        return Err(Failure::new(
            "Unknown protocols",
            format!(
                "There is no executable for {platform} that could be asked which protocols it serves. Name them by the option \
                 -protocol."
            ),
        ));
    };
    let program = std::path::absolute(program).unwrap_or_else(|_| program.clone());
    let mut reason = String::new();
    let protocols = session.runtime()?.block_on(async {
        let mut served = Vec::new();
        for protocol in [5, 6] {
            let start = Start {
                program: &program,
                protocols: &[protocol],
                tls: true,
                cookie: true,
                timeout: LIMIT,
            };
            match Probe::start(&start).await {
                Ok(_) => served.push(protocol),
                Err(error) => reason = error.to_string(),
            }
        }
        served
    });
    match protocols.is_empty() {
        false => Ok(protocols),
        true => Err(Failure::new(
            "Unknown protocols",
            format!(
                "The protocols of the executable {} cannot be determined: {reason}. Name them by the option -protocol.",
                program.display()
            ),
        )),
    }
}

fn sign(file: &Path, key: &str) -> Result<PathBuf, Failure> {
    let mut signature = file.as_os_str().to_owned();
    signature.push(".sig");
    let signature = PathBuf::from(signature);
    let ran = Process::new("gpg")
        .args(["--batch", "--yes", "--local-user", key, "--output"])
        .arg(&signature)
        .arg("--detach-sign")
        .arg(file)
        .stdin(Stdio::null())
        .output();
    let why = match ran {
        Ok(ran) if ran.status.success() => return Ok(signature),
        Ok(ran) => String::from_utf8_lossy(&ran.stderr).trim().replace('\n', " "),
        Err(error) => files::io_reason(&error),
    };
    Err(Failure::new(
        "Failed to sign checksums",
        format!(
            "The program gpg could not sign with the key \"{key}\": {why}. The other files of the release are written."
        ),
    ))
}

fn report(written: &Written) -> String {
    let archives = written.archives.values();
    let files = archives.chain([&written.manifest, &written.checksums]);
    files.map(|path| format!("Wrote {}\n", path.display())).collect()
}
