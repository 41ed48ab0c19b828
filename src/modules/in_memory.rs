//! Modules of a pack that are installed in memory, because nothing can be written.

use std::path::PathBuf;
use std::sync::Arc;

use config::files::join;
use files::mounts::Mounts;

use crate::fetch::FetchError;
use crate::install::{Turn, Walk};

impl Walk<'_> {
    /// Mounts a package of the pack as the directory of a module.
    pub(crate) async fn mount(
        &self,
        mounts: &Mounts,
        key: &str,
        package: &str,
        turn: Turn,
    ) -> Result<PathBuf, Arc<FetchError>> {
        let place = join(&self.modules_dir, key);
        let read = || match &self.install.mirror {
            Some(mirror) => mirror.in_memory(package).map(Arc::new).map_err(Arc::new),
            None => Err(Arc::new(FetchError::NotCarried)),
        };
        match turn {
            Turn::Ours(sender) => {
                let mounted = read().map(|directory| mounts.mount(&place, directory));
                let mounted = mounted.map(|()| PathBuf::from(&place));
                drop(sender.send(Some(mounted.clone())));
                mounted
            }
            Turn::Theirs(mut other) => {
                let result = other.wait_for(Option::is_some).await.map(|r| (*r).clone());
                let from = result.ok().flatten().unwrap_or(Err(Arc::new(FetchError::Canceled)))?;
                // The calls share one directory in memory.
                let there = from.to_str().and_then(|from| mounts.mounted_at(from));
                let directory = there.map_or_else(read, Ok)?;
                mounts.mount(&place, directory);
                Ok(PathBuf::from(place))
            }
        }
    }
}
