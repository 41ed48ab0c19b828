//! The spans of a log. Each span stores its own fields and those of the spans around it.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use monoform_sdk::Json;
use tracing::Metadata;
use tracing::span::{Attributes, Id, Record};

use super::Fields;

thread_local! {
    /// The spans that this thread is in, the innermost last.
    static ENTERED: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// The open spans, by ID.
#[derive(Default)]
pub(super) struct Spans {
    next: AtomicU64,
    all: Mutex<HashMap<u64, Span>>,
}

struct Span {
    metadata: &'static Metadata<'static>,
    fields: BTreeMap<String, Json>,
    handles: usize,
}

impl Spans {
    fn all(&self) -> MutexGuard<'_, HashMap<u64, Span>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn open(&self, span: &Attributes<'_>) -> Id {
        let around = match span.parent() {
            Some(parent) => Some(parent.into_u64()),
            None if span.is_root() => None,
            None => innermost(),
        };
        let mut all = self.all();
        // The fields are copied, since the outer span may end before this one.
        let around = around.and_then(|id| all.get(&id));
        let mut fields = Fields(around.map(|around| around.fields.clone()).unwrap_or_default());
        span.record(&mut fields);
        // One is added because an ID must not be zero.
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        all.insert(
            id,
            Span {
                metadata: span.metadata(),
                fields: fields.0,
                handles: 1,
            },
        );
        Id::from_u64(id)
    }

    pub fn record(&self, id: &Id, values: &Record<'_>) {
        if let Some(span) = self.all().get_mut(&id.into_u64()) {
            let mut fields = Fields(std::mem::take(&mut span.fields));
            values.record(&mut fields);
            span.fields = fields.0;
        }
    }

    pub fn clone_handle(&self, id: &Id) {
        if let Some(span) = self.all().get_mut(&id.into_u64()) {
            span.handles += 1;
        }
    }

    /// Drops a handle of a span. Returns true if it was the last one; the span has then ended.
    pub fn close_handle(&self, id: &Id) -> bool {
        let mut all = self.all();
        let Some(span) = all.get_mut(&id.into_u64()) else {
            return false;
        };
        span.handles -= 1;
        let last = span.handles == 0;
        if last {
            all.remove(&id.into_u64());
        }
        last
    }

    /// Returns the ID and the metadata of the innermost span that this thread is in.
    pub fn current(&self) -> Option<(Id, &'static Metadata<'static>)> {
        let id = innermost()?;
        let metadata = self.all().get(&id)?.metadata;
        Some((Id::from_u64(id), metadata))
    }

    /// Returns the fields of a span; without an ID, those of the innermost span of this thread.
    pub fn fields(&self, of: Option<&Id>) -> BTreeMap<String, Json> {
        let id = of.map(Id::into_u64).or_else(innermost);
        let all = self.all();
        id.and_then(|id| all.get(&id))
            .map(|span| span.fields.clone())
            .unwrap_or_default()
    }
}

fn innermost() -> Option<u64> {
    ENTERED.with_borrow(|entered| entered.last().copied())
}

pub(super) fn enter(id: &Id) {
    ENTERED.with_borrow_mut(|entered| entered.push(id.into_u64()));
}

pub(super) fn exit(id: &Id) {
    // Spans are not always left in the order in which they were entered.
    ENTERED.with_borrow_mut(|entered| {
        if let Some(at) = entered.iter().rposition(|entered| *entered == id.into_u64()) {
            entered.remove(at);
        }
    });
}
