//! Validation of a configuration: for `validate`, and for commands that plan if its files have errors.

use engine::events::NoEvents;
use engine::inputs::{Inputs, Variables};
use engine::stop::Stop;
use state::State;
use syntax::Diagnostics;

use crate::interrupt;
use crate::session::Session;
use crate::workdir::{self, Project};

/// Validates a configuration as far as its files could be read. Problems that follow from those of loading are left out.
pub fn beyond_loading(session: &Session, project: &Project, loading: &Diagnostics) -> Diagnostics {
    if project.config.is_refused() {
        return Diagnostics::new();
    }
    let found = check(session, project).unwrap_or_else(|problems| problems);
    engine::validate::beyond_loading(&project.config, loading, found)
}

/// Validates a configuration with the schemas of its providers.
///
/// # Errors
/// The plugins cannot be selected, or no runtime can be started.
pub fn check(session: &Session, project: &Project) -> Result<Diagnostics, Diagnostics> {
    // Validation depends on the configuration only, so the state is empty.
    let nothing = State::new();
    let plugins = session.plugins()?;
    let mut problems = plugins.resolve_available(&project.config, &nothing);
    let runtime = session.runtime()?;
    let stop = Stop::new();
    let environment = workdir::environment(
        session,
        &stores::workspace::selected(&session.stores()).unwrap_or_default(),
    );
    // The variables have no values, because the configuration must be valid for all of them.
    let variables = Variables::default();
    problems.extend(runtime.block_on(async {
        interrupt::listen(session.ui.clone(), stop.clone());
        engine::validate::validate(Inputs {
            config: &project.config,
            state: &nothing,
            variables: &variables,
            environment: &environment,
            providers: &plugins,
            events: &NoEvents,
            stop: &stop,
            parallelism: 10,
            lanes: None,
        })
        .await
    }));
    Ok(problems)
}
