//! Contexts of the crates `stores` and `hosted`, made of the session and its environment.

use std::sync::Arc;

use addrs::Provider;
use engine::stop::Stop;
use hosted::{migrate, remote};
use packages::selection::Selection;
use plugins::Host;
use stores::backend::StateBackend;
use stores::backend::migrate::{CloudMigration, Migration};
use stores::backend::record::{Saved, SupplyMode};
use stores::{Context, NoAnswer, Question, SelectedProvider, Tone};
use syntax::{Diagnostics, SourceMap};
use tokio::runtime::Runtime;
use versions::Constraints;
use views::prompt::{Answer, Echo};
use views::wrap::{indented, wrapped};

use crate::interrupt;
use crate::plugin_source::program_of;
use crate::session::{Session, Surroundings};

/// Message that the command waits for the lock of a state.
const LOCKING: &str = "Acquiring state lock. This may take a few moments...";

impl Session {
    /// Returns the context for functions of the crate `stores`.
    #[must_use]
    pub fn stores(&self) -> Context<'_> {
        let surroundings: &Surroundings = self;
        Context {
            data_dir: self.env.data_dir(),
            workspace: self.env.workspace(),
            builtin: &self.builtins.state_stores,
            left_out: &self.builtins.left_out,
            program: self.ui.program,
            console: surroundings,
            plugins: surroundings,
            cloud: self,
            encryption: self,
        }
    }

    /// Returns the context for functions of the crate `hosted`.
    #[must_use]
    pub fn hosted(&self) -> hosted::Context<'_> {
        let surroundings: &Surroundings = self;
        hosted::Context {
            stores: self.stores(),
            console: &self.console,
            environment: &self.env,
            working_dir: &self.working_dir,
            net: self.net(),
            interrupts: surroundings,
            shown: self.invocation.shown,
            concise: self.invocation.concise,
            in_automation: self.env.in_automation(),
        }
    }
}

impl stores::Console for Surroundings {
    fn ask(&self, question: &Question<'_>) -> Result<String, NoAnswer> {
        let style = self.ui.style();
        let title = match question.warns {
            true => format!("\n{}", style.bold(style.yellow(question.title))),
            false => style.bold(question.title),
        };
        let explanation = match question.explanation {
            "" => String::new(),
            text => format!("{}\n\n", indented(text, self.ui.width())),
        };
        let prompt = format!("{title}\n{explanation}  {} ", style.bold("Enter a value:"));
        let echo = if question.secret { Echo::Off } else { Echo::On };
        let answer = self.ui.ask(&prompt, echo);
        self.ui.line("");
        match answer {
            Answer::Line(line) => Ok(line),
            Answer::End => Err(NoAnswer::End),
            Answer::Interrupted => Err(NoAnswer::Interrupted),
        }
    }

    fn is_interactive(&self) -> bool {
        self.ui.is_interactive()
    }

    fn note(&self, tone: Tone, text: &str) {
        let style = self.ui.style();
        let plain = text;
        // The stream has no terminal width, so its text is not wrapped.
        let text = match self.stream {
            Some(_) => text.to_owned(),
            None => wrapped(text, self.ui.width()),
        };
        let text = match tone {
            Tone::Plain => text,
            Tone::Success => style.green(text),
            Tone::Titled => match text.split_once('\n') {
                Some((title, rest)) => format!("{}\n{rest}", style.bold(title)),
                None => style.bold(&text),
            },
        };
        if let Some(beside) = &self.beside {
            beside.log(plain.trim());
        }
        match &self.stream {
            Some(stream) => stream.log(text.trim()),
            None => self.ui.line(text),
        }
    }

    fn show(&self, problems: &Diagnostics) {
        self.show_now(problems, &SourceMap::default());
    }

    fn print(&self, document: &str) {
        self.ui.exact_line(document);
    }

    fn waits_for_lock(&self) {
        if let Some(beside) = &self.beside {
            beside.acquiring_lock(LOCKING);
        }
        match &self.stream {
            Some(stream) => stream.acquiring_lock(LOCKING),
            None if self.form.beside_results => self.ui.err(format!("{LOCKING}\n")),
            None => self.ui.line(LOCKING),
        }
        self.ui.flush();
    }

    fn flush(&self) {
        self.ui.flush();
    }
}

impl hosted::Interrupts for Surroundings {
    fn listen(&self, stop: Stop) {
        interrupt::listen_with_messages(self.ui.clone(), self.stream.clone(), stop, Arc::default());
    }
}

impl stores::Plugins for Surroundings {
    fn runtime(&self) -> Result<Runtime, Diagnostics> {
        Surroundings::runtime(self)
    }

    fn host(&self) -> Result<Host, Diagnostics> {
        self.plugin_host()
    }

    fn select(
        &self,
        provider: &Provider,
        constraints: Constraints,
        runtime: &Runtime,
    ) -> Result<SelectedProvider, Diagnostics> {
        let catalog = self.catalog()?;
        catalog.resolve(&[(provider.clone(), constraints)].into())?;
        let selection = runtime.block_on(catalog.select(provider))?;
        let supply_mode = match &selection {
            Selection::Builtin { version: None, .. } => SupplyMode::BuiltIn,
            Selection::DevOverride(_) => SupplyMode::DevOverride,
            Selection::Reattached => SupplyMode::Reattached,
            Selection::Builtin { .. } | Selection::External(_) | Selection::Installed(_) | Selection::Packed(_) => {
                SupplyMode::ManagedByTerraform
            }
        };
        // Overrides and reattached plugins run whatever version they are, so none is reported.
        let managed = supply_mode == SupplyMode::ManagedByTerraform;
        Ok(SelectedProvider {
            version: selection.version().filter(|_| managed).cloned(),
            program: program_of(selection, None),
            supply_mode,
        })
    }
}

impl stores::Cloud for Session {
    fn check(&self, settings: &Saved, workspace: &str) -> Result<(), Diagnostics> {
        remote::check(&self.hosted(), self.invocation.remote_version, settings, workspace)
    }

    fn tags(&self, settings: &Saved) -> Result<String, Diagnostics> {
        remote::tags(&self.hosted(), settings)
    }
}

impl CloudMigration for Session {
    fn migrate(&self, migration: &Migration<'_>, from: &StateBackend, to: &StateBackend) -> Result<bool, Diagnostics> {
        migrate::migrate(&self.hosted(), migration, from, to)
    }
}
