//! Leftover objects of tests: state files for objects that could not be destroyed, and for those of killed runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use addrs::{AbsProviderConfig, AbsResourceInstance};
use async_trait::async_trait;
use engine::results::ResultSink;
use state::journal::{Answers, Base, Intent, Outcome, Writer, left};
use state::{Codec, InstanceState, State};
use syntax::{Diagnostic, Diagnostics};
use testing::suite::{Leftovers, Recorder};

use crate::core_version;
use crate::session::Session;

/// Limit of the leftover state files of one test file and key.
const MOST_LEFTOVERS: usize = 100;

/// Limit of the objects that a message names.
const NAMED: usize = 20;

/// Storage of leftover states beside the configuration, and of the journals of running tests in the data
/// directory.
pub(super) struct Beside {
    journals: PathBuf,
    codec: Codec,
}

/// Returns the directory of the journals of tests.
fn journals(session: &Session) -> PathBuf {
    Path::new(session.env.data_dir()).join("test_journals")
}

/// Builds the common first part of the file names of a state.
fn stem(file: &str, key: &str) -> String {
    let name = |text: &str| -> String {
        // Run keys and paths may contain separators, or characters with a meaning for a shell.
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        text.chars().map(|c| if fits(c) { c } else { '_' }).collect()
    };
    let mut stem = format!("errored_test.{}", name(file));
    if !key.is_empty() {
        stem.push_str(&format!(".{}", name(key)));
    }
    stem
}

/// Writes a leftover state file whose name begins with `stem`, and returns its path. It is an error if all [`MOST_LEFTOVERS`] names
/// are taken.
fn keep(stem: &str, state: &State, codec: &Codec) -> Result<PathBuf, Diagnostics> {
    // Leftovers of earlier suites must not be overwritten.
    let free = (1..=MOST_LEFTOVERS)
        .map(|n| match n {
            1 => format!("{stem}.tfstate"),
            n => format!("{stem}.{n}.tfstate"),
        })
        .find(|path| !Path::new(path).exists());
    let Some(path) = free else {
        return Err(Diagnostic::error(
            "Failed to save the state of leftover objects",
            format!(
                "There are {MOST_LEFTOVERS} state files already whose names begin with {stem}: see what is in them."
            ),
        )
        .into());
    };
    // A state that was never stored has no lineage.
    let mut state = state.clone();
    if state.lineage.is_empty() {
        state.lineage = uuid::Uuid::new_v4().to_string();
    }
    state::store::write_copy(Path::new(&path), &state, codec).map_err(|e| {
        Diagnostics::from(Diagnostic::error(
            "Failed to save the state of leftover objects",
            format!("The state file {path} cannot be written: {e}."),
        ))
    })?;
    Ok(path.into())
}

impl Beside {
    pub fn new(session: &Session) -> Result<Beside, Diagnostics> {
        Ok(Beside {
            journals: journals(session),
            codec: session.state_codec()?,
        })
    }
}

impl Leftovers for Beside {
    fn record(&self, file: &str, key: &str) -> Result<Arc<dyn Recorder>, Diagnostic> {
        // A unique name, because several test runs may use the directory at the same time.
        let name = format!("{}.{}.journal", stem(file, key), uuid::Uuid::new_v4());
        let path = self.journals.join(name);
        let begun = left::prepare(&self.journals).and_then(|()| {
            Writer::create(
                &path,
                Base::default(),
                &format!("test of {file}"),
                core_version(),
                &self.codec,
            )
        });
        match begun {
            Ok(writer) => Ok(Arc::new(Journal(writer))),
            Err(e) => Err(Diagnostic::warning(
                "Test without a journal",
                format!(
                    "The objects of this test cannot be recorded while it runs: {e}. If this program is killed, leftover objects \
                     are in no record."
                ),
            )),
        }
    }

    fn keep(&self, file: &str, key: &str, state: &State) -> Result<PathBuf, Diagnostics> {
        keep(&stem(file, key), state, &self.codec)
    }
}

/// Journal of a state that exists in memory only.
struct Journal(Writer);

impl Recorder for Journal {
    fn forget(&self) {
        if let Err(e) = self.0.clone().remove() {
            tracing::warn!("the journal of a test stays: {e}");
        }
    }
}

#[async_trait]
impl ResultSink for Journal {
    fn instance(
        &self,
        address: &AbsResourceInstance,
        provider: &AbsProviderConfig,
        objects: Option<InstanceState>,
        answers: Answers,
    ) {
        self.0.outcome(Outcome {
            address: address.clone(),
            provider: provider.clone(),
            objects,
            answers,
        });
    }

    async fn begin(&self, intent: &Intent) -> Result<(), Diagnostic> {
        stores::persist::begin(&self.0, intent).await
    }

    fn end(&self, intent: &Intent) {
        self.0.end(intent.key());
    }

    async fn settled(&self) {
        if let Err(why) = self.0.sync().await {
            tracing::warn!("{why}");
        }
    }
}

/// Removes the directory of journals if no test uses it any more, and the data directory if it is empty then.
pub(super) fn tidy(session: &Session) {
    // Removing fails if a directory has entries, which is no error here.
    if std::fs::remove_dir(journals(session)).is_ok() {
        drop(std::fs::remove_dir(session.env.data_dir()));
    }
}

/// Reports leftover objects of killed tests, and keeps them in state files.
pub(super) fn recover(session: &Session) {
    // If the settings of the encryption are not valid, the tests report it.
    let Ok(codec) = session.state_codec() else {
        return;
    };
    let found = match left::left_in(&journals(session), &codec) {
        Ok(found) => found,
        Err(e) => {
            // This is only a warning, because the tests of this run do not depend on leftovers of an earlier
            // one.
            tracing::warn!("the journals of earlier tests cannot be read: {e}");
            return;
        }
    };
    for left in found {
        if let Some(problem) = recovered(&left, &codec) {
            session.warn_now(problem);
        }
    }
}

fn recovered(left: &left::Left, codec: &Codec) -> Option<Diagnostic> {
    let name = left.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let stem = name.strip_suffix(".journal").unwrap_or(&name);
    // The last part of the name is a UUID, which only keeps the journals of one state apart.
    let stem = stem.rsplit_once('.').map_or(stem, |(stem, _)| stem);
    let objects = testing::events::objects(&left.state);
    let mut text = match &left.run {
        Some((operation, since)) => {
            format!("An earlier run ({operation}, begun at {since}) was killed before its end.")
        }
        None => "An earlier run was killed before its end.".to_owned(),
    };
    if !objects.is_empty() {
        match keep(stem, &left.state, codec) {
            Ok(path) => text.push_str(&format!(
                " It left these objects, which need to be cleaned up manually. They are recorded in the state file {}:",
                path.display()
            )),
            Err(problems) => {
                // The journal stays, so the next run tries again.
                let why = problems.0.first().map(|p| p.detail.clone()).unwrap_or_default();
                return Some(Diagnostic::warning(
                    "Objects of an earlier test exist",
                    format!("{text} {why}"),
                ));
            }
        }
        for (address, deposed) in objects.iter().take(NAMED) {
            text.push_str(&format!("\n  - {address}"));
            if let Some(key) = deposed {
                text.push_str(&format!(" (deposed object {})", key.0));
            }
        }
        if let Some(more) = objects.len().checked_sub(NAMED).filter(|more| *more > 0) {
            text.push_str(&format!("\n  - and {more} more"));
        }
    }
    text.push_str(&left.in_flight_text());
    match left.forget() {
        Ok(Some(path)) => text.push_str(&format!(
            "\nA part of its journal cannot be read. It is kept in {}.",
            path.display()
        )),
        Ok(None) => {}
        Err(e) => tracing::warn!("{e}"),
    }
    let is_nothing = objects.is_empty() && left.in_flight.is_empty() && !left.damaged;
    (!is_nothing).then(|| Diagnostic::warning("Objects of an earlier test may still exist", text))
}
