//! Installation of remote modules.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::RootVariables;
use config::files::clean;
use config::loader::MissingModule;
use config::manifest::{Manifest, ManifestEntry};
use config::source_address::ModuleSource;
use futures::future::{BoxFuture, FutureExt};
use syntax::Diagnostic;
use tokio::sync::mpsc::UnboundedSender;

use super::{Ancestor, Directory, Event, MAX_DEPTH, PARTIAL, Turn, Walk, below};
use crate::fetch::{FetchError, file_error};
use crate::moved::moved;
use crate::registry::Problem;
use crate::shown::public;
use crate::tree;

impl Walk<'_> {
    /// Installs one remote module, and all modules below it.
    pub(crate) fn remote<'a>(
        &'a self,
        call: &'a MissingModule,
        prefix: &'a addrs::Module,
        around: &'a [Ancestor],
        turn: Option<Turn>,
        events: UnboundedSender<Event>,
    ) -> BoxFuture<'a, ()> {
        async move {
            let path = below(prefix, &call.path);
            let key = Manifest::key(&path);
            self.see(&key);
            let (dir, version) = match self.kept(call, prefix) {
                Some(entry) => (entry.dir.clone(), entry.version.clone()),
                None => match self.fetched(call, &key, turn, &events).await {
                    Some(entry) => (entry.dir, entry.version),
                    None => return,
                },
            };
            let this = Ancestor {
                source: call.source.to_string(),
                version,
            };
            // Remote modules that call each other would be fetched for ever.
            if around.contains(&this) || around.len() >= MAX_DEPTH {
                self.report(
                    call,
                    "Module calls itself",
                    format!(
                        "The module \"{}\" calls itself, by way of {path}. Remove one of these calls.",
                        call.source
                    ),
                );
                return;
            }
            let mut around = around.to_vec();
            around.push(this);
            let inner = Directory {
                dir,
                path,
                variables: RootVariables::Known(&call.inputs),
            };
            self.package(inner, around, events).await;
        }
        .boxed()
    }

    /// Installs a module. Returns no entry if a problem was reported.
    async fn fetched(
        &self,
        call: &MissingModule,
        key: &str,
        turn: Option<Turn>,
        events: &UnboundedSender<Event>,
    ) -> Option<ManifestEntry> {
        let (package, subdir, version, turn) = self.located(call, key, turn, events).await?;
        let failed = |problem: &dyn std::fmt::Display| {
            let name = call.path.0.last().map_or("", |n| &**n);
            let detail = format!(
                "The module \"{name}\" could not be fetched from \"{}\": {problem}.",
                public(&package)
            );
            self.report(call, "Failed to download module", detail);
        };
        let entry = ManifestEntry {
            source: call.source.to_string(),
            version,
            dir: String::new(),
        };
        let place = match &self.install.in_memory {
            Some(mounts) => self.mount(mounts, key, &package, turn).await,
            None => self.place(call, key, &package, turn, &entry).await,
        };
        let place = match place {
            Ok(place) => place,
            Err(problem) => {
                failed(&problem);
                return None;
            }
        };
        let dir = match &subdir {
            None => place,
            Some(subdir) => match tree::subdirectory(&place, subdir, self.files.mounts.as_deref()) {
                Ok(dir) => dir,
                Err(problem) => {
                    self.report(
                        call,
                        "Unreadable module subdirectory",
                        format!("The package \"{}\" was fetched, but {problem}.", public(&package)),
                    );
                    return None;
                }
            },
        };
        let entry = ManifestEntry {
            dir: clean(&dir.to_string_lossy()),
            ..entry
        };
        self.written.note(key.to_owned(), entry.clone());
        if let Err(problem) = self.written.save() {
            self.found().0.push(problem);
            return None;
        }
        // The installation is reported after the manifest is written, so that a reported module stays
        // installed.
        drop(events.send(Event::Installed {
            key: key.to_owned(),
            dir: entry.dir.clone(),
        }));
        Some(entry)
    }

    /// Returns the package of a module, its subdirectory and version, and the role of the call in fetching it; `None` if a
    /// problem was reported.
    async fn located(
        &self,
        call: &MissingModule,
        key: &str,
        turn: Option<Turn>,
        events: &UnboundedSender<Event>,
    ) -> Option<(String, Option<String>, Option<String>, Turn)> {
        let emit = |package: String, version: Option<String>, carried: bool| {
            let key = key.to_owned();
            drop(events.send(Event::Downloading {
                key,
                package,
                version,
                carried,
            }));
        };
        let carried = self.install.carried.as_ref();
        match &call.source {
            // Local modules belong to the package around them, and are never missing.
            ModuleSource::Local(_) => None,
            ModuleSource::Remote(remote) => {
                let from_pack = carried.is_some_and(|carried| carried.has(&remote.package));
                emit(public(&remote.package), None, from_pack);
                let turn = turn.unwrap_or_else(|| self.turn(&remote.package));
                Some((remote.package.clone(), remote.subdir.clone(), None, turn))
            }
            ModuleSource::Registry(module) => {
                let located = async {
                    let version = self.registries.choose(module, call.version.as_ref()).await?;
                    let from_pack = carried.is_some_and(|carried| carried.location(module, &version.text).is_some());
                    emit(module.package(), Some(version.text.clone()), from_pack);
                    let location = self.registries.location(module, &version.text).await?;
                    Ok::<_, Problem>((version.text, location))
                };
                let (version, location) = match located.await {
                    Ok(located) => located,
                    Err(problem) => {
                        self.report(call, problem.summary, problem.detail);
                        return None;
                    }
                };
                let subdir = match (location.subdir, &module.subdir) {
                    (Some(outer), Some(inner)) => Some(format!("{outer}/{inner}")),
                    (outer, inner) => outer.or_else(|| inner.clone()),
                };
                let turn = self.turn(&location.package);
                Some((location.package, subdir, Some(version), turn))
            }
        }
    }

    /// Fetches or copies a package to the directory of a module.
    async fn place(
        &self,
        call: &MissingModule,
        key: &str,
        package: &str,
        turn: Turn,
        entry: &ManifestEntry,
    ) -> Result<PathBuf, Arc<FetchError>> {
        let modules_dir = Path::new(&self.modules_dir);
        let failed = file_error("writing the directory", modules_dir);
        std::fs::create_dir_all(modules_dir).map_err(failed)?;
        // The temporary directory is created in the modules directory, so that the rename of the finished
        // package stays within one file system.
        let made = tempfile::Builder::new().prefix(PARTIAL).tempdir_in(modules_dir);
        let partial = made.map_err(failed)?;
        let new = partial.path().join("package");
        let place = modules_dir.join(key);
        let ours = match turn {
            Turn::Ours(sender) => {
                // Only a download holds a permit. If a module kept its permit while its inner modules are installed, they
                // could not get one.
                let fetched = match self.permits.acquire().await {
                    Ok(_permit) => {
                        let carried = self.install.carried.as_ref().filter(|carried| carried.has(package));
                        match self.install.mirror.as_ref().or(carried) {
                            Some(mirror) => mirror.copy(package, &new),
                            None => self.fetcher.fetch(package, &new).await,
                        }
                    }
                    Err(_) => Err(FetchError::Canceled),
                };
                if let Err(problem) = fetched.map_err(Arc::new) {
                    drop(sender.send(Some(Err(problem.clone()))));
                    return Err(problem);
                }
                Some(sender)
            }
            Turn::Theirs(mut other) => {
                let result = other.wait_for(Option::is_some).await.map(|r| (*r).clone());
                match result.ok().flatten() {
                    Some(Ok(from)) => {
                        // In the manifest each call has a directory of its own, so packages are copied.
                        let to = new.clone();
                        let copied = tokio::task::spawn_blocking(move || tree::copy(&from, &to)).await;
                        let copied = copied.unwrap_or_else(|e| Err(std::io::Error::other(e)));
                        copied.map_err(file_error("copying the package of another call to", &new))?;
                    }
                    Some(Err(problem)) => return Err(problem),
                    None => return Err(Arc::new(FetchError::Canceled)),
                }
                None
            }
        };
        let before = self.before.modules.get(key);
        // The packages are compared before the old directory is replaced.
        let moved = moved(before, key, [&place, &new], package, entry).await;
        // From here until the module is complete, the manifest does not name it.
        self.written.forget(key);
        let put = match self.written.save() {
            Err(problem) => Err(FetchError::Manifest(problem.into_parts().detail)),
            Ok(()) => tree::remove(&place)
                .and_then(|()| system::rename(&new, &place))
                .map_err(file_error("replacing the directory", &place)),
        };
        let put = put.map_err(Arc::new);
        // The other calls copy from the final directory, because the partial one is removed when this function
        // returns.
        if let Some(sender) = ours {
            drop(sender.send(Some(put.clone().map(|()| place.clone()))));
        }
        put?;
        if let Some(what) = moved {
            let warning = Diagnostic::warning("Module source was changed under the same name", what);
            self.found().0.push(warning.at(&call.range));
        }
        Ok(place)
    }
}
