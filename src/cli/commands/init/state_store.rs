//! The provider of a `state_store` block. `init` installs it before everything else: the state cannot be read without it, and the
//! state decides which other providers are needed.

use std::collections::BTreeMap;

use addrs::Provider;
use config::Config;
use packages::Catalog;
use packages::install::{InstallOptions, Installation, Outcome, Provenance};
use state::State;
use syntax::{Diagnostic, Diagnostics};
use versions::Constraints;
use views::prompt::{Answer, Echo};

use super::{Arguments, print_step, say, space};
use crate::plugin_source::{origins, requirements};
use crate::session::Session;

/// Returns the provider of the configuration's state store; `None` if there is no `state_store` block.
pub(super) fn provider(config: &Config) -> Option<&Provider> {
    let backend = config.root.module.backend.as_ref()?;
    backend.provider.as_ref().map(|store| &store.provider)
}

/// Installs the provider of the configuration's state store, if it has one.
///
/// # Errors
/// The provider cannot be installed, or the user refuses a new provider for the state.
pub(super) fn install(
    session: &Session,
    arguments: &Arguments,
    config: &Config,
    catalog: impl FnOnce() -> Result<Catalog, Diagnostics>,
    read_only_lock: bool,
) -> Result<Installation, Diagnostics> {
    let Some(provider) = provider(config) else {
        return Ok(Installation::default());
    };
    let ty = config.root.module.backend.as_ref().map_or("", |backend| &*backend.ty);
    let style = session.ui.style();
    let text = style.bold(format!("Initializing provider plugin for state store \"{ty}\"..."));
    say(session, "initializing_state_store_provider_plugin_message", text);
    let mut all = requirements(config, &State::new())?;
    let constraints = all.remove(provider).unwrap_or_else(Constraints::any);
    let needed = BTreeMap::from([(provider.clone(), constraints)]);
    let origins = origins(config, &State::new());
    let options = InstallOptions {
        // Another version may store states in another way, so a new one is selected only with -reconfigure, which
        // ignores the earlier record.
        upgrade: arguments.upgrade && arguments.reconfigure,
        read_only_lock,
        origins: Some(&origins),
        // The lock file keeps the entries of other providers.
        partial: true,
        keep: None,
    };
    let catalog = catalog()?;
    let may_be_remote = catalog.may_download(provider);
    // The question is asked before the lock file is written: a refused provider must not be locked.
    let mut agree = |chosen: &BTreeMap<Provider, Outcome>| match chosen.get(provider) {
        Some(outcome) if may_be_remote && is_new(outcome) => approve(session, arguments, provider, outcome),
        _ => Ok(()),
    };
    let mut installed = catalog.install_if(&needed, options, &mut |step| print_step(session, &step), &mut agree)?;
    let locked = installed.providers.values().any(|outcome| outcome.locked.is_some());
    if arguments.upgrade && !arguments.reconfigure && locked {
        installed.warnings.push(Diagnostic::warning(
            "State store provider is not upgraded",
            format!(
                "The provider {} keeps the state, and another version of it may do so in another way, so -upgrade leaves it as it \
                 is. To take a newer one, use -upgrade together with -reconfigure.",
                provider.for_display()
            ),
        ));
    }
    Ok(installed)
}

/// Returns true if the lock file had no entry for the provider, and its package was downloaded or linked from the plugin cache.
fn is_new(outcome: &Outcome) -> bool {
    outcome.locked.is_none() && matches!(outcome.how, Some(Provenance::Installed(_) | Provenance::Cached))
}

/// Asks the user whether a newly downloaded provider may receive the state.
fn approve(
    session: &Session,
    arguments: &Arguments,
    provider: &Provider,
    outcome: &Outcome,
) -> Result<(), Diagnostics> {
    let name = provider.for_display();
    let version = outcome.selection.version().map(ToString::to_string).unwrap_or_default();
    if !arguments.input || !session.env.input() || session.stream.is_some() {
        return Err(Diagnostic::error(
            "Missing lock for state store provider",
            format!(
                "The provider {name} v{version} is to keep the state, with all secrets in it. It was downloaded, is not in the \
                 dependency lock file yet, and nobody can be asked for approval now. Run \"{} init\" where \
                 questions can be answered, and commit the lock file .terraform.lock.hcl.",
                session.ui.program.command
            ),
        )
        .into());
    }
    let authentication = match &outcome.how {
        Some(Provenance::Installed(authentication)) => authentication.to_string(),
        _ => "from the shared cache directory".to_owned(),
    };
    let style = session.ui.style();
    let prompt = format!(
        "\n{}\n  The provider {name} v{version} ({authentication}) will keep the state of this configuration,\n  with all secrets that \
         are in it, and the dependency lock file does not have it yet.\n\n  Only 'yes' will be accepted to approve.\n\n  {} ",
        style.bold(format!("Do you want to use provider {name} for state storage?")),
        style.bold("Enter a value:")
    );
    let answer = session.ui.ask(&prompt, Echo::On);
    session.ui.line("");
    if matches!(&answer, Answer::Line(text) if text.trim() == "yes") {
        let text = style.bold("The state store provider was approved by the user.");
        say(session, "state_store_provider_interactive_approved_message", text);
        space(session);
        return Ok(());
    }
    let text = style.bold("The state store provider was rejected by the user.");
    say(session, "state_store_provider_interactive_rejected_message", text);
    Err(Diagnostic::error(
        "State store provider not approved",
        format!("Only the answer \"yes\" lets the provider {name} keep the state. Nothing was changed."),
    )
    .into())
}
