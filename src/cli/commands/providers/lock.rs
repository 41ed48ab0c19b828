//! `providers lock`: adds checksums of packages for other platforms to the dependency lock file.

use std::collections::BTreeMap;
use std::path::Path;

use addrs::Provider;
use packages::cross_platform::{Request, Step, Tracked};
use packages::repository_template::RepositoryTemplate;
use packages::sources::PackageSource;
use syntax::Diagnostic;

use super::{asked, configured_with_tests, fetching, requested_platforms, required};
use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::{VariableFlags, platforms};
use crate::commands::Command;
use crate::downloads;
use crate::outcome::{Failure, Outcome};
use crate::plugin_source::origins;
use crate::session::Session;
use crate::tested;
use views::wrap::wrapped;

pub const COMMAND: Command = Command {
    path: "providers lock",
    about: "Write out dependency locks for the configured providers",
    positional: "[PROVIDER...]",
    details: "Adds checksums to the dependency lock file, of the packages for each given platform: from the providers' own \
      registries, or from a mirror. A provider that is built in is left out unless it is named, or is in the lock file \
      already.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    positional: Vec<String>,
    fs_mirror: Option<String>,
    net_mirror: Option<String>,
    oci_mirror: Option<String>,
    platforms: Vec<String>,
    enable_plugin_cache: bool,
    test_directory: Option<String>,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        flags.json_into();
        VariableFlags::read(flags);
        let positional = flags.positional();
        let fs_mirror = flags.value(
            "fs-mirror",
            "DIR",
            "Look for packages in this directory, and in no registry.",
        );
        let net_mirror = flags.value(
            "net-mirror",
            "URL",
            "Look for packages in this network mirror, and in no registry.",
        );
        let oci_mirror = flags.value(
            "oci-mirror",
            "TEMPLATE",
            "Look for packages in OCI registries, and in no other: HOST/REPOSITORY with {hostname}, {namespace} and {type} in it.",
        );
        let platforms = platforms(flags);
        let enable_plugin_cache = flags.switch(
            "enable-plugin-cache",
            false,
            "Take packages from the plugin cache where they are there.",
        );
        let test_directory = tested::directory_flag(flags);
        Arguments {
            positional,
            fs_mirror,
            net_mirror,
            oci_mirror,
            platforms,
            enable_plugin_cache,
            test_directory,
        }
    }
}

/// Returns the package source that the flags select.
fn source(arguments: &Arguments) -> Result<PackageSource, Failure> {
    let mirrors = (
        arguments.fs_mirror.as_deref(),
        arguments.net_mirror.as_deref(),
        arguments.oci_mirror.as_deref(),
    );
    Ok(match mirrors {
        (None, None, Some(template)) => match RepositoryTemplate::parse_argument(template) {
            Ok(template) => PackageSource::Oci(template),
            Err(error) => {
                return Err(Failure::new(
                    "Invalid OCI mirror template",
                    format!("The template cannot be used: {error}."),
                ));
            }
        },
        (Some(_), Some(_), _) | (Some(_), _, Some(_)) | (_, Some(_), Some(_)) => {
            return Err(Failure::new(
                "Invalid installation method options",
                "Packages come from one mirror: use one of -fs-mirror, -net-mirror and -oci-mirror.",
            ));
        }
        (Some(dir), None, None) if !Path::new(dir).is_dir() => {
            return Err(Failure::new(
                "Could not retrieve providers for locking",
                format!("The mirror {dir} cannot be searched: it is no directory."),
            ));
        }
        (Some(dir), None, None) => PackageSource::Packed(dir.into()),
        // As in Terraform: packages of a network mirror have no signatures, so that TLS is all that vouches for them.
        (None, Some(url), None) => match net::Url::parse(url).ok().filter(|url| url.scheme() == "https") {
            Some(url) => PackageSource::Mirror(url),
            None => {
                return Err(Failure::new(
                    "Invalid network mirror URL",
                    "A network mirror is named by its base URL, which begins with https:.",
                ));
            }
        },
        (None, None, None) => PackageSource::Direct,
    })
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    let place = source(arguments)?;
    let platforms = requested_platforms(&arguments.platforms)?;
    let (project, tested) = configured_with_tests(session, arguments.test_directory.as_deref())?;
    let required = required(&project, Some(&tested));
    let asked = required.and_then(|required| asked(session, required, &arguments.positional))?;
    for provider in asked.built_in.keys().filter(|p| !p.is_builtin()) {
        session.message(format!(
            "- Leaving out {}, which is built in to {}: name it to lock it for other programs",
            provider.for_display(),
            session.ui.program.tool
        ));
    }
    if let PackageSource::Oci(template) = &place {
        one_repository_each(template, asked.wanted.keys())?;
    }
    let client = session.net();
    let cache = session.cli_config.plugin_cache_dir.clone();
    let request = Request {
        client: &client,
        requirements: &asked.wanted,
        origins: &origins(&project.config, &state::State::default()),
        platforms: &platforms,
        source: place,
        cache: cache.filter(|_| arguments.enable_plugin_cache),
    };
    let locked = fetching(session, async || {
        request
            .lock(&session.working_dir, &mut |step| emit(session, &step))
            .await
    })?;
    let style = session.ui.style();
    let success = style.green(style.bold("Success!"));
    Ok(match locked {
        true => Outcome::line(format!(
            "\n{success} {}\n\n{}\n",
            style.bold(format!("{} has updated the lock file.", session.ui.program.tool)),
            wrapped(
                &format!(
                    "Look at the difference in {}, and commit it with the configuration, so that others install only packages \
                     with these checksums.",
                    packages::lock_file::FILE_NAME
                ),
                session.ui.width()
            )
        )),
        false => Outcome::line(format!(
            "\n{success} {}",
            style.bold(format!(
                "{} has validated the lock file and found no need for changes.",
                session.ui.program.tool
            ))
        )),
    })
}

fn emit(session: &Session, step: &Step<'_>) {
    session.message(match step {
        Step::Downloading(overall) => return downloads::show(session, overall),
        Step::Selected(..) | Step::Packing(..) => return,
        Step::Fetching(provider, version, platform) => {
            format!("- Fetching {} {version} for {platform}...", provider.for_display())
        }
        Step::Retrieved(provider, version, platform, authentication) => {
            format!(
                "- Retrieved {} {version} for {platform} ({authentication})",
                provider.for_display()
            )
        }
        Step::Compared(provider, platform, tracked) => {
            let what = match tracked {
                Tracked::NewProvider => "the lock file has its first entry for this provider",
                Tracked::More => "the lock file has them in addition to those it had",
                Tracked::All => "the lock file had all of them",
            };
            format!("- Obtained {} checksums for {platform}; {what}", provider.for_display())
        }
    });
}

/// Checks that a template names a different repository for each of these providers.
fn one_repository_each<'p>(
    template: &RepositoryTemplate,
    providers: impl Iterator<Item = &'p Provider>,
) -> Result<(), Diagnostic> {
    let invalid = |why: String| Diagnostic::error("Invalid OCI mirror template", why);
    let mut found = BTreeMap::new();
    for provider in providers {
        let repository = template
            .repository(provider)
            .map_err(|error| invalid(format!("The template cannot be used: {error}.")))?;
        if let Some(other) = found.insert(repository.clone(), provider) {
            return Err(invalid(format!(
                "The template gives the repository {repository} both for {} and for {}. Use more placeholders in it.",
                other.for_display(),
                provider.for_display()
            )));
        }
    }
    Ok(())
}
