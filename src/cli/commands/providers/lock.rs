//! `providers lock`: checksums of packages for other machines are added to the dependency lock file.

use std::path::Path;

use packages::cross_platform::{Request, Step, Tracked};
use packages::sources::PackageSource;
use syntax::SourceMap;

use super::{asked, configured, fetching, platforms};
use crate::args::matches::Given;
use crate::args::{UsageError, flags};
use crate::commands::Command;
use crate::plugin_source::origins;
use crate::program;
use crate::session::{Session, Status};
use crate::views::downloads;

pub const COMMAND: Command = Command {
    path: "providers lock",
    about: "Write out dependency locks for the configured providers",
    positional: "[PROVIDER...]",
    declare: || {
        let command = flags::command(
            "lock",
            "Adds checksums to the dependency lock file, of the packages for each given platform: from the providers' own \
             registries, or from a mirror. A provider that is built in is left out unless it is named, or is in the lock file \
             already.",
        );
        flags::positional(command, "args")
            .arg(flags::value(
                "fs-mirror",
                "DIR",
                "Look for packages in this directory, and in no registry.",
            ))
            .arg(flags::value(
                "net-mirror",
                "URL",
                "Look for packages in this network mirror, and in no registry.",
            ))
            .arg(flags::values(
                "platform",
                "OS_ARCH",
                "A platform to get packages for: \"linux_amd64\". May be given many times; without it, this machine's.",
            ))
            .arg(flags::switch(
                "enable-plugin-cache",
                false,
                "Take packages from the plugin cache where they are there.",
            ))
            .arg(flags::value(
                "test-directory",
                "DIR",
                "Where test files are, \"tests\" by default. None of this release's commands reads them.",
            ))
    },
    refused: &[],
    run,
};

fn run(session: &Session, given: &Given) -> Result<Status, UsageError> {
    let place = match (given.value("fs-mirror"), given.value("net-mirror")) {
        (Some(_), Some(_)) => {
            return Ok(session.fail(
                "Invalid installation method options",
                "The -fs-mirror and -net-mirror command line options are mutually-exclusive.",
            ));
        }
        (Some(dir), None) if !Path::new(dir).is_dir() => {
            return Ok(session.fail(
                "Could not retrieve providers for locking",
                format!("The mirror {dir} cannot be searched: it is no directory."),
            ));
        }
        (Some(dir), None) => PackageSource::Packed(dir.into()),
        (None, Some(url)) => match net::Url::parse(url).ok().filter(|url| url.scheme() == "https") {
            Some(url) => PackageSource::Mirror(url),
            None => {
                return Ok(session.fail(
                    "Invalid network mirror URL",
                    "The -net-mirror option requires a valid https: URL as the mirror base URL.",
                ));
            }
        },
        (None, None) => PackageSource::Direct,
    };
    let platforms = match platforms(session, given) {
        Ok(platforms) => platforms,
        Err(status) => return Ok(status),
    };
    let Some(project) = configured(session) else {
        return Ok(1);
    };
    let asked = match asked(session, &project, &given.values("args")) {
        Ok(asked) => asked,
        Err(problems) => {
            session.show(&problems, &SourceMap::default());
            return Ok(1);
        }
    };
    for provider in asked.built_in.iter().filter(|p| !p.is_builtin()) {
        session.ui.line(format!(
            "- Leaving out {}, which is built in to Monoform: name it to lock it for other programs",
            provider.for_display()
        ));
    }
    let client = session.net();
    let cache = session.cli_config.plugin_cache_dir.clone();
    let request = Request {
        client: &client,
        requirements: &asked.wanted,
        origins: &origins(&project.config, &state::State::default()),
        platforms: &platforms,
        source: place,
        cache: cache.filter(|_| given.on("enable-plugin-cache")),
    };
    let locked = fetching(session, async || {
        request
            .lock(&session.working_dir, &mut |step| tell(session, &step))
            .await
    });
    let style = session.ui.style();
    let success = style.green(style.bold("Success!"));
    Ok(match locked {
        Ok(true) => {
            session.ui.line(format!(
                "\n{success} {}\n\nReview the changes in {} and then commit to your\nversion control system to retain the new checksums.\n",
                style.bold(format!("{} has updated the lock file.", program::tool())),
                packages::lock_file::FILE_NAME
            ));
            0
        }
        Ok(false) => {
            session.ui.line(format!(
                "\n{success} {}",
                style.bold(format!(
                    "{} has validated the lock file and found no need for changes.",
                    program::tool()
                ))
            ));
            0
        }
        Err(status) => status,
    })
}

fn tell(session: &Session, step: &Step<'_>) {
    session.ui.line(match step {
        Step::Downloading(overall) => return downloads::show(session, *overall),
        Step::Selected(..) => return,
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
                Tracked::NewProvider => {
                    "This was a new provider and the checksums for this platform are now tracked in the lock file"
                }
                Tracked::More => "Additional checksums for this platform are now tracked in the lock file",
                Tracked::All => "All checksums for this platform were already tracked in the lock file",
            };
            format!("- Obtained {} checksums for {platform}; {what}", provider.for_display())
        }
    });
}
