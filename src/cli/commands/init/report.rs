//! Reports of `init` about providers: the steps for each, and the result.

use std::collections::BTreeMap;

use addrs::Provider;
use packages::install::{Installation, Outcome, Provenance, Step};
use packages::metadata::Authentication;
use packages::selection::Selection;
use packages::signature::Standing;
use versions::Constraints;

use super::{note, say, space};
use crate::downloads;
use crate::session::Session;
use views::wrap::wrapped;

/// Prints a step of the installation of providers.
pub(super) fn print_step(session: &Session, step: &Step<'_>) {
    match step {
        Step::Finding(provider, constraints) => {
            let name = provider.for_display();
            note(
                session,
                match constraints.is_any() {
                    true => format!("- Finding latest version of {name}..."),
                    false => format!("- Finding {name} versions matching \"{constraints}\"..."),
                },
            );
            // Without the flush, the line would stay in the output buffer until the registry has answered.
            session.ui.flush();
        }
        Step::Reusing(provider) => note(
            session,
            format!(
                "- Reusing previous version of {} from the dependency lock file",
                provider.for_display()
            ),
        ),
        Step::Installing(provider, version) => {
            // Without the flush, earlier lines would stay in the output buffer until the download ends.
            session.ui.flush();
            tracing::debug!(%provider, %version, "installing");
        }
        Step::Downloading(overall) => downloads::show(session, overall),
        Step::Done(provider, outcome) => done(session, provider, outcome),
    }
}

fn done(session: &Session, provider: &Provider, outcome: &Outcome) {
    let name = provider.for_display();
    let version = outcome.selection.version().map(ToString::to_string).unwrap_or_default();
    match &outcome.how {
        Some(Provenance::AlreadyInstalled) => {
            return note(session, format!("- Using previously-installed {name} v{version}"));
        }
        Some(Provenance::Cached) => {
            return note(
                session,
                format!("- Using {name} v{version} from the shared cache directory"),
            );
        }
        Some(Provenance::Installed(authentication)) => {
            note(session, format!("- Installing {name} v{version}..."));
            return note(session, format!("- Installed {name} v{version} ({authentication})"));
        }
        None => {}
    }
    match &outcome.selection {
        Selection::Builtin { version: None, .. } => {
            note(session, format!("- {name} is built in to {}", session.ui.program.tool))
        }
        Selection::Builtin {
            version: Some(version),
            in_place_of,
            ..
        } => {
            let instead = match in_place_of {
                Some(other) => format!(", in place of v{other}"),
                None => String::new(),
            };
            note(
                session,
                format!(
                    "- {name} v{version} is built in to {}{instead}",
                    session.ui.program.tool
                ),
            );
        }
        Selection::External(found) | Selection::Installed(found) => match (&outcome.locked, outcome.new) {
            (Some(_), false) => {
                note(
                    session,
                    format!("- Reusing previous version of {name} from the dependency lock file"),
                );
                note(session, format!("- Using previously-installed {name} v{version}"));
            }
            (_, false) => note(session, format!("- Using previously-installed {name} v{version}")),
            (_, true) => {
                // Wrappers of Terraform search the output for both of these lines.
                note(session, format!("- Installing {name} v{version}..."));
                let from = found.executable.display();
                note(session, format!("- Installed {name} v{version} (from {from})"));
            }
        },
        Selection::Packed(_) => note(session, format!("- {name} v{version} is carried by this executable")),
        Selection::DevOverride(path) => {
            note(
                session,
                format!("- {name} is under development, and taken from {}", path.display()),
            );
        }
        Selection::Reattached => note(session, format!("- {name} is running already")),
    }
}

/// Suggests version constraints for providers that were just selected without any.
pub(super) fn suggest(session: &Session, needed: &BTreeMap<Provider, Constraints>, installation: &Installation) {
    let chosen = |provider: &Provider| {
        let outcome = installation.providers.get(provider)?;
        let here = matches!(
            outcome.selection,
            Selection::External(_) | Selection::Installed(_) | Selection::Packed(_)
        );
        outcome.selection.version().filter(|_| here && outcome.locked.is_none())
    };
    let unconstrained = needed.iter().filter(|(_, constraints)| constraints.is_any());
    let lines: Vec<String> = unconstrained
        .filter_map(|(provider, _)| Some((provider, chosen(provider)?)))
        .map(|(provider, version)| {
            let text = version.to_string();
            // Leaves the last part of the version open, as Terraform's documentation recommends.
            let constraint = match text.rsplit_once('.') {
                Some((minor, _)) if !version.is_prerelease() => format!("~> {minor}"),
                _ => text,
            };
            format!("\n  {}: version = \"{constraint}\"", provider.for_display())
        })
        .collect();
    if !lines.is_empty() {
        space(session);
        let text = format!(
            "No module says which versions of these providers it needs, so the newest were chosen. Suggested constraints for \
             required_providers, which keep out new major versions with breaking changes:\n{}",
            lines.concat()
        );
        note(session, wrapped(&text, session.ui.width()));
    }
}

/// Reports the result of the installation.
pub(super) fn print_installation(session: &Session, installation: &Installation) {
    let by_its_authors = |o: &Outcome| match &o.how {
        Some(Provenance::Installed(Authentication::Signed(signer))) => signer.standing != Standing::Vendor,
        _ => false,
    };
    if installation.providers.values().any(by_its_authors) {
        let text = "The packages of partners and of the community are signed with keys of their authors. How much each kind of \
                    signature says is described here:\nhttps://www.terraform.io/docs/cli/plugins/signing.html";
        note(session, wrapped(text, session.ui.width()));
    }
    if installation.lock_created {
        space(session);
        let text = format!(
            "The selected versions and the checksums of their packages are in the new lock file .terraform.lock.hcl. Commit it \
             together with the configuration: with it, \"{command} init\" selects the same versions everywhere.",
            command = session.ui.program.command
        );
        say(session, "lock_info", wrapped(&text, session.ui.width()));
    } else if installation.lock_changed {
        space(session);
        let text = "The lock file .terraform.lock.hcl has changed, because other versions or packages of providers were selected. \
             Look at the difference before you commit it.";
        say(
            session,
            "dependencies_lock_changes_info",
            wrapped(text, session.ui.width()),
        );
    }
}
