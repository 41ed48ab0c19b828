//! Shared reads: in a plan, data sources with equal arguments are read once.
//!
//! Users must not notice the sharing, so it has limits:
//!
//! - Only while planning, when no objects change. An apply reads a data source because an object that it depends on has changed, and other
//!   objects change at the same time, so even an answer from the same apply could be outdated.
//! - Only between data sources that wait for the same resources. A data source may read what these resources have written, such as a file,
//!   which an earlier answer would lack. A data source with `depends_on`, its own or that of a module call, is read separately.
//! - Only answers that are known to repeat. Some data sources answer differently each time on purpose: a random password, the output of a
//!   program, the time. An answer counts as repeatable if it equals the one that the state has from an earlier run, or if two reads of this
//!   plan have returned it. If the state has no answer, two reads are made before one is shared.
//! - Not for data sources of check blocks, which report on the current time, nor for those that a mock or an override
//!   answers.
//! - Failures are not shared: each data source reports its own.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use addrs::{AbsProviderConfig, ConfigResource};
use cty::{Type, Value};
use provider::Answer;
use syntax::Diagnostics;
use tokio::sync::OnceCell;

use crate::blocks::{Block, Blocks};

/// Answer of a provider to the read of a data source, or the errors.
pub(crate) type ReadAnswer = Result<Answer<Value>, Diagnostics>;

/// Identity of a read. Data sources with equal identities may share an answer, if they depend on the same resources.
#[derive(PartialEq, Eq, Hash)]
struct Subject {
    provider: AbsProviderConfig,
    ty: Arc<str>,
    /// Arguments as JSON.
    arguments: String,
    /// Value of `provider_meta` as JSON; `None` if there is none.
    meta: Option<String>,
}

#[derive(Default)]
struct Reads {
    by_resource: HashMap<ConfigResource, Arc<SharedRead>>,
    /// Shared reads, by the set of resources that the data source depends on. Empty until a second data source has the same arguments.
    by_before: HashMap<Arc<BTreeSet<ConfigResource>>, Arc<SharedRead>>,
}

pub(crate) struct DataRead<'r> {
    pub(crate) resource: &'r ConfigResource,
    pub(crate) provider: &'r AbsProviderConfig,
    /// Type of the arguments.
    pub(crate) ty: Type,
    /// Arguments, wholly known and without marks.
    pub(crate) config: &'r Value,
    pub(crate) meta: Option<&'r Value>,
    /// Answer in the state, from an earlier run.
    pub(crate) stored: Option<Value>,
}

/// Reads of data sources in one plan. Equal data sources share them.
#[derive(Default)]
pub(crate) struct DataReads {
    reads: Mutex<HashMap<Subject, Reads>>,
    /// Cache of the resources that each data source depends on.
    before: Mutex<HashMap<ConfigResource, Arc<BTreeSet<ConfigResource>>>>,
}

impl DataReads {
    /// Returns the answer for a data source: the answer of an equal data source, or else the result of `read`.
    pub(crate) async fn answer<F>(&self, blocks: &Blocks, data: DataRead<'_>, read: impl Fn() -> F) -> ReadAnswer
    where
        F: Future<Output = ReadAnswer>,
    {
        let text = |value: &Value, ty: &Type| cty::json::to_json_text(value, ty).ok();
        let meta = match data.meta {
            Some(meta) => text(meta, meta.ty()).map(Some),
            None => Some(None),
        };
        // Arguments that have no JSON form cannot be compared, so the data source is read separately.
        let (Some(arguments), Some(meta)) = (text(data.config, &data.ty), meta) else {
            return read().await;
        };
        let subject = Subject {
            provider: data.provider.clone(),
            ty: data.resource.resource.ty.clone(),
            arguments,
            meta,
        };
        self.shared(blocks, subject, data.resource)
            .answer(data.stored.as_ref(), read)
            .await
    }

    fn shared(&self, blocks: &Blocks, subject: Subject, resource: &ConfigResource) -> Arc<SharedRead> {
        let mut reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        let Reads { by_resource, by_before } = reads.entry(subject).or_default();
        if let Some(read) = by_resource.get(resource) {
            return read.clone();
        }
        // A graph search finds the resources that a block depends on. It is skipped for the first data source with these arguments, because
        // most data sources have arguments of their own.
        if let Some((first, read)) = by_resource.iter().next() {
            if by_before.is_empty() {
                by_before.insert(self.before(blocks, first), read.clone());
            }
            let read = by_before.entry(self.before(blocks, resource)).or_default().clone();
            by_resource.insert(resource.clone(), read.clone());
            return read;
        }
        by_resource.entry(resource.clone()).or_default().clone()
    }

    // Computed once for each block, because all its instances depend on the same resources.
    fn before(&self, blocks: &Blocks, resource: &ConfigResource) -> Arc<BTreeSet<ConfigResource>> {
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        let found = before.entry(resource.clone());
        found
            .or_insert_with(|| Arc::new(blocks.resources_before(&Block::Resource(resource.clone()))))
            .clone()
    }
}

/// Answers of up to two reads for data sources with the same [`Subject`] and the same dependencies. If these answers are equal, or the
/// first one equals the stored result, the other data sources share the answer. Otherwise each of them is read.
#[derive(Default)]
struct SharedRead {
    /// Number of data sources that have requested an answer.
    readers: AtomicUsize,
    first: OnceCell<ReadAnswer>,
    second: OnceCell<ReadAnswer>,
}

impl SharedRead {
    /// Returns an answer for one data source. `stored` is its answer in the state.
    async fn answer<F>(&self, stored: Option<&Value>, read: impl Fn() -> F) -> ReadAnswer
    where
        F: Future<Output = ReadAnswer>,
    {
        // Each of the first two readers sends its own request, because only two equal answers show that the answer repeats. `OnceCell` lets
        // any reader make a request, so a reader that is dropped blocks no other.
        let reader = self.readers.fetch_add(1, Ordering::Relaxed);
        if reader == 0 {
            return self.first.get_or_init(&read).await.clone();
        }
        // If the state has an answer, the first read probably returns the same, which is enough to share it. So the second reader waits for
        // the first.
        if reader > 1 || stored.is_some() {
            let first = self.first.get_or_init(&read).await;
            if let Some(first) = repeatable(first)
                && stored == Some(&first.value)
            {
                return Ok(first.clone());
            }
        }
        let second = self.second.get_or_init(&read).await;
        if reader == 1 {
            return second.clone();
        }
        match (self.first.get().and_then(repeatable), repeatable(second)) {
            (Some(first), Some(second)) if first.value == second.value && first.diagnostics == second.diagnostics => {
                Ok(first.clone())
            }
            _ => read().await,
        }
    }
}

/// Returns an answer if it has no errors, so that another data source may share it.
fn repeatable(answer: &ReadAnswer) -> Option<&Answer<Value>> {
    let answer = answer.as_ref().ok()?;
    let failed = answer.diagnostics.iter().any(|d| d.diagnostic.is_error());
    (!failed).then_some(answer)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn answered(text: String) -> ReadAnswer {
        Ok(Answer {
            value: Value::string(text),
            diagnostics: Vec::new(),
        })
    }

    /// Simulates `readers` data sources with equal arguments that are read concurrently. Returns the number of reads that were sent, and
    /// the values.
    async fn read_by(
        readers: usize,
        stored: Option<&str>,
        answer: impl Fn(usize) -> ReadAnswer,
    ) -> (usize, Vec<Value>) {
        let (shared, count) = (SharedRead::default(), Cell::new(0));
        let stored = stored.map(Value::string);
        let read = || {
            count.set(count.get() + 1);
            let answer = answer(count.get());
            async {
                tokio::task::yield_now().await;
                answer
            }
        };
        let all = (0..readers).map(|_| shared.answer(stored.as_ref(), read));
        let answers = futures::future::join_all(all).await;
        (count.get(), answers.into_iter().map(|a| a.unwrap().value).collect())
    }

    #[tokio::test]
    async fn answer_of_two_equal_reads_is_shared() {
        let (reads, answers) = read_by(9, None, |_| answered("same".into())).await;
        assert_eq!((reads, answers.len()), (2, 9));
    }

    #[tokio::test]
    async fn answer_as_in_state_is_read_once() {
        assert_eq!(read_by(9, Some("same"), |_| answered("same".into())).await.0, 1);
        assert_eq!(read_by(2, Some("same"), |_| answered("same".into())).await.0, 1);
        assert_eq!(read_by(9, Some("before"), |_| answered("now".into())).await.0, 2);
    }

    #[tokio::test]
    async fn answers_that_differ_each_time_are_never_shared() {
        for stored in [None, Some("1"), Some("0")] {
            let (reads, answers) = read_by(9, stored.filter(|s| *s != "1"), |n| answered(n.to_string())).await;
            let distinct: BTreeSet<_> = answers.iter().map(|v| v.as_str().unwrap().to_owned()).collect();
            assert_eq!((reads, distinct.len()), (9, 9), "{stored:?}");
        }
    }

    #[tokio::test]
    async fn failures_are_not_shared() {
        let shared = SharedRead::default();
        let count = Cell::new(0);
        let read = || {
            count.set(count.get() + 1);
            async { ReadAnswer::Err(syntax::Diagnostic::error("No", "Not now.").into()) }
        };
        let answers = futures::future::join_all((0..5).map(|_| shared.answer(None, read))).await;
        assert!(answers.iter().all(Result::is_err));
        assert_eq!(count.get(), 5);
    }
}
