//! The modules in a pack: installed without `init` when a configuration calls them, or read from memory if nothing can be
//! written.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::TestFile;
use config::files::join;
use config::manifest::Manifest;
use files::mounts::Mounts;
use modules::{Install, Mirror};
use packages::packed::Carried;
use syntax::{Diagnostic, Diagnostics, SourceMap};

use crate::loading;
use crate::session::{Session, Surroundings};

/// Returns the modules in this executable; `None` if it carries no modules.
#[must_use]
pub fn mirror(surroundings: &Surroundings) -> Option<Mirror> {
    let pack = surroundings.builtins.carried.pack()?;
    (!pack.index().modules.is_empty()).then(|| Mirror::in_pack(pack.clone()))
}

/// Returns the warning that the pack cannot be used; `None` if it can, or if there is no pack. Commands that miss modules show it.
#[must_use]
pub fn unusable(surroundings: &Surroundings) -> Option<Diagnostic> {
    let Carried::Damaged(why) = &surroundings.builtins.carried else {
        return None;
    };
    let detail = format!("Nothing that this executable carries can be used: {why}.");
    Some(Diagnostic::warning("Pack not usable", detail))
}

/// Modules of the pack that were installed for the configuration in the working directory.
pub struct Installed {
    /// Manifest with the directories of the modules.
    pub manifest: Manifest,
    /// Errors of modules that could not be installed. They replace the errors about missing modules.
    pub problems: Diagnostics,
    /// Text of the files that the problems refer to.
    pub sources: SourceMap,
}

/// Installs the missing modules, including those of these test files, from the pack only. They are installed in the data directory; if it
/// cannot be written, in a directory of the user outside of the working directory; otherwise in memory ([`Session::mounts`]). Returns
/// `None` if this executable has no modules.
#[must_use]
pub fn install(session: &Session, tests: &[Arc<TestFile>]) -> Option<Installed> {
    let mirror = mirror(session)?;
    let installed = match data_dir(session) {
        Some(data_dir) => in_dir(session, mirror, &data_dir, tests),
        None => in_memory(session, mirror, tests),
    };
    Some(installed.unwrap_or_else(|problems| Installed {
        manifest: Manifest::default(),
        problems,
        sources: SourceMap::default(),
    }))
}

fn in_dir(
    session: &Session,
    mirror: Mirror,
    data_dir: &str,
    tests: &[Arc<TestFile>],
) -> Result<Installed, Diagnostics> {
    // If several commands run at the same time, one of them installs the modules, and the others find them installed. Without directory
    // locks, each installs the same content.
    let lock = File::open(join(data_dir, "modules"));
    let _locked = lock.as_ref().map(File::lock);
    run(session, mirror, data_dir, None, tests)
}

fn in_memory(session: &Session, mirror: Mirror, tests: &[Arc<TestFile>]) -> Result<Installed, Diagnostics> {
    tracing::info!("no directory can be written: modules are read from memory");
    let mounts = mounts(session);
    run(session, mirror, session.env.data_dir(), Some(mounts), tests)
}

fn mounts(surroundings: &Surroundings) -> Arc<Mounts> {
    let new = || Arc::new(Mounts::new(&surroundings.working_dir));
    surroundings.mounts.get_or_init(new).clone()
}

fn run(
    session: &Session,
    mirror: Mirror,
    data_dir: &str,
    in_memory: Option<Arc<Mounts>>,
    tests: &[Arc<TestFile>],
) -> Result<Installed, Diagnostics> {
    let (nothing, set) = (Manifest::default(), session.set_variables());
    let install = Install {
        client: session.net(),
        data_dir,
        in_memory,
        upgrade: false,
        load: loading::options(session, &nothing, &set),
        mirror: Some(mirror),
        carried: None,
        tests,
        // Few commands know all test files, so modules of other test files must stay.
        forget: false,
        program: session.ui.program,
    };
    let mut installed = |event| tracing::info!(?event, "a module that this executable carries");
    let outcome = session.runtime()?.block_on(install.run(".", &mut installed));
    Ok(Installed {
        manifest: outcome.manifest,
        problems: outcome.problems,
        sources: outcome.sources,
    })
}

/// Mounts the modules of a saved plan that are in the pack but not on disk. A saved plan contains only configuration files, but functions
/// such as `file` also read other files of modules.
pub fn mount_planned(surroundings: &Surroundings, manifest: &Manifest) {
    let Some(mirror) = mirror(surroundings) else { return };
    let missing = manifest.modules.values().any(|entry| !Path::new(&entry.dir).is_dir());
    if missing {
        mirror.mount(manifest, surroundings.env.data_dir(), &mounts(surroundings));
    }
}

/// Returns the directory in which modules are installed: the data directory or, if it cannot be written, a directory of the user; `None` if
/// neither can be written.
fn data_dir(surroundings: &Surroundings) -> Option<String> {
    let usual = surroundings.env.data_dir();
    if is_writable(usual) {
        return Some(usual.to_owned());
    }
    let pack = surroundings.builtins.carried.pack();
    let own =
        pack.and_then(|pack| packages::packed::place_of_modules(&surroundings.env, pack, &surroundings.working_dir));
    let own = own.filter(|dir| is_writable(dir))?;
    tracing::info!(
        dir = own,
        "the data directory cannot be written: modules are installed in a directory of the user"
    );
    Some(own)
}

/// Returns true if modules can be installed in a data directory, which is created if necessary.
fn is_writable(dir: &str) -> bool {
    let modules: PathBuf = Path::new(dir).join("modules");
    // The permissions do not show whether a file system is read-only, so a file is created as a test.
    std::fs::create_dir_all(&modules).is_ok() && tempfile::tempfile_in(&modules).is_ok()
}
