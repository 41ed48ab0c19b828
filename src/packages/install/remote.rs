//! Installing packages from their sources.

use std::fmt::Write as _;

use addrs::Provider;
use addrs::platform::Platform;
use futures::StreamExt;
use net::Client;
use syntax::Diagnostic;
use versions::Version;

use super::{AT_ONCE, Needed, Outcome, Step, Work};
use crate::discovery::{self, Found, Package};
use crate::download::{Overall, Progress, watching};
use crate::fetch::{self, FetchError, Fetched, Provenance, Wanted};
use crate::lock_file::Locked;
use crate::metadata::SourceError;
use crate::newest::{Newest, newest};
use crate::not_available::incompatible;
use crate::selection::{Chooser, Selection};

impl Work<'_> {
    /// Fetches packages from their sources concurrently, and reports them in the order of the
    /// providers.
    pub(super) async fn fetch(
        &mut self,
        client: &Client,
        needed: Vec<Needed<'_>>,
        chooser: &Chooser<'_>,
        emit: &mut dyn FnMut(Step<'_>),
    ) {
        // A built-in provider may be selected in the end, so no download is announced for it.
        for one in needed.iter().filter(|one| one.fallback.is_none()) {
            match one.locked(&self.options) {
                Some(_) => emit(Step::Reusing(one.provider)),
                None => emit(Step::Finding(one.provider, one.constraints)),
            }
        }
        let options = self.options;
        let versions = futures::future::join_all(needed.iter().map(async |one| match one.locked(&options) {
            Some(locked) => Ok(Newest {
                version: locked.version.clone(),
                for_platform: None,
            }),
            None => {
                let here = one.here.as_ref().map(|found| found.version.clone());
                newest(
                    client,
                    one.provider,
                    one.constraints,
                    &one.sources,
                    here,
                    options.origins,
                )
                .await
            }
        }))
        .await;
        let mut chosen = Vec::new();
        for (one, found) in needed.into_iter().zip(versions) {
            match found {
                Ok(found) => match &one.here {
                    Some(here) if here.version >= found.version => {
                        let selection = Selection::External(here.clone());
                        self.take(one.provider, one.constraints, selection, one.old, emit);
                    }
                    _ => chosen.push((one, found)),
                },
                Err(why) if one.fallback.is_some() => {
                    tracing::debug!(provider = %one.provider, why = why.detail, "no source has the required version");
                    self.fall_back(one, emit);
                }
                Err(mut why) => {
                    let about = chooser
                        .nothing(one.provider, one.constraints, !options.upgrades(one.provider))
                        .into_parts()
                        .detail;
                    tracing::debug!(provider = %one.provider, about, "what is on this machine");
                    if let Some(hint) = chooser.near_name(one.provider) {
                        let _ = write!(why.detail, "\n\n{hint}");
                    }
                    why.detail.push_str(&one.without_network(why.unreachable, None));
                    self.errors.push(why.into());
                }
            }
        }
        // Errors are checked before anything is downloaded, so that an installation that cannot be completed
        // fails early.
        if self.errors.has_errors() {
            return;
        }
        self.fetch_chosen(client, chosen, chooser, emit).await;
    }

    /// Fetches the packages of the chosen versions.
    async fn fetch_chosen(
        &mut self,
        client: &Client,
        chosen: Vec<(Needed<'_>, Newest)>,
        chooser: &Chooser<'_>,
        emit: &mut dyn FnMut(Step<'_>),
    ) {
        let settings = self.catalog.settings();
        let order: Vec<(&Provider, Version)> = chosen
            .iter()
            .map(|(one, found)| (one.provider, found.version.clone()))
            .collect();
        let progress: Vec<Progress> = (chosen.iter())
            .map(|(one, found)| Progress::named(format!("{} v{}", one.provider.for_display(), found.version)))
            .collect();
        let mut fetches =
            futures::stream::iter(chosen.into_iter().zip(&progress).map(async |((one, found), progress)| {
                let version = found.version.clone();
                let wanted = Wanted {
                    provider: one.provider.clone(),
                    locked: one
                        .old
                        .filter(|old| old.version == version)
                        .map(|old| old.hashes.clone())
                        .unwrap_or_default(),
                    version,
                    sources: one.sources.clone(),
                };
                let fetched = fetch::fetch(settings, client, &wanted, progress).await;
                (one, found, wanted, fetched)
            }))
            .buffered(AT_ONCE);
        for (provider, version) in &order {
            emit(Step::Installing(provider, version));
            let fetched = watching(fetches.next(), || emit(Step::Downloading(Overall::sum(&progress)))).await;
            let Some((one, found, wanted, fetched)) = fetched else {
                break;
            };
            match fetched {
                Ok(fetched) => self.fetched(&one, wanted, fetched, emit),
                Err(why @ (FetchError::NoSource | FetchError::NotForPlatform(_) | FetchError::Source(_)))
                    if one.fallback.is_some() =>
                {
                    tracing::debug!(provider = %one.provider, why = why.text(), "no source has the required version");
                    self.fall_back(one, emit);
                }
                Err(FetchError::NotForPlatform(missing)) => {
                    let required = chooser.required_by(provider);
                    let older = found.for_platform.as_ref().filter(|older| **older != *version);
                    let platform = Platform::current();
                    self.errors
                        .push(incompatible(provider, version, &platform, &missing, older, &required));
                }
                Err(why) => {
                    let name = provider.for_display();
                    let mut text = format!("{name} v{version} cannot be installed: {}.", why.text());
                    // A damaged or forged package would be the same on a machine with a network, so this advice
                    // is given only if no source could be reached.
                    if matches!(
                        why,
                        FetchError::NoSource | FetchError::Source(SourceError::Unreachable(_))
                    ) {
                        let locked = one.locked(&self.options).map(|_| version);
                        let _ = write!(text, "\n{}", chooser.required_by(provider));
                        text.push_str(&one.without_network(true, locked));
                    }
                    self.errors.push(Diagnostic::error("Failed to install provider", text));
                }
            }
        }
    }

    /// Selects the built-in provider in place of a version that no source has.
    fn fall_back(&mut self, one: Needed<'_>, emit: &mut dyn FnMut(Step<'_>)) {
        if let Some(selection) = one.fallback {
            self.take(one.provider, one.constraints, selection, one.old, emit);
        }
    }

    fn fetched(&mut self, one: &Needed<'_>, wanted: Wanted, fetched: Fetched, emit: &mut dyn FnMut(Step<'_>)) {
        let mut hashes = wanted.locked;
        hashes.extend(fetched.hashes);
        let executable = discovery::executable_in(&fetched.dir, &one.provider.ty).unwrap_or_default();
        let entry = Locked {
            version: wanted.version.clone(),
            constraints: one.constraints.clone(),
            hashes,
        };
        let outcome = Outcome {
            selection: Selection::Installed(Found {
                version: wanted.version,
                package: Package::Directory(fetched.dir),
                executable,
                of_configuration: false,
            }),
            locked: one.old.map(|l| l.version.clone()),
            new: fetched.how != Provenance::AlreadyInstalled,
            how: Some(fetched.how),
        };
        self.finish(one.provider, Some(entry), outcome, emit);
    }
}
