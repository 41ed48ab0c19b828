//! Selection of the objects and data sources that a plan reads, and a record of those it has read.
//!
//! With a [partial refresh](crate::inputs::PartialRefresh) of the objects that change, a plan is made in passes. A pass plans with the
//! stored objects, and reads an object only when it is found to change. The objects from which the changed values come were visited earlier
//! in the same pass, so another pass reads them. The results of reads are cached, so each read is made once. The passes end when all
//! required objects have been read. They always end, because each pass reads more objects than the one before.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use addrs::AbsResourceInstance;
use cty::Value;
use provider::{Answer, ObjectRead, ReadRequest};
use schema::Schema;
use state::{DeposedKey, Object, ObjectStatus};
use syntax::Diagnostics;

use super::value_sources::{Search, Sources};
use super::{PlannedResource, Planner};
use crate::data_reads::{DataReads, ReadAnswer};
use crate::inputs::RefreshPart;
use crate::instance::StoredObject;
use crate::last_reads::{ReadInstance, digest};
use crate::plan::{Action, Plan, Unread, UnreadInstance};

/// Answers of reads, by object.
type ObjectAnswers = HashMap<(AbsResourceInstance, Option<DeposedKey>), Answer<ObjectRead>>;

/// State that the passes of one plan share.
#[derive(Default)]
pub(crate) struct Reading {
    /// Objects and data sources that must be read, because changed values come from them.
    pub(super) required: Sources,
    pub(super) data_reads: DataReads,
    /// Answers of earlier passes. Empty in plans with only one pass.
    objects: Mutex<ObjectAnswers>,
    data: Mutex<HashMap<AbsResourceInstance, (Value, Answer<Value>)>>,
}

impl Reading {
    fn objects(&self) -> MutexGuard<'_, ObjectAnswers> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn data(&self) -> MutexGuard<'_, HashMap<AbsResourceInstance, (Value, Answer<Value>)>> {
        self.data.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Objects and data sources that one pass has read, and those that it has not read.
#[derive(Debug, Default)]
pub(super) struct ReadResults {
    pub(super) read: Vec<ReadInstance>,
    /// Number of reads, including deposed objects.
    pub(super) count: usize,
    pub(super) unread: Vec<UnreadInstance>,
}

impl Planner<'_> {
    /// Returns the part of the objects that a partial refresh reads. `None` if all objects are refreshed, or none.
    fn part(&self) -> Option<&RefreshPart> {
        let options = self.spec.options;
        let partial = options.partial_refresh.as_ref().filter(|_| options.refresh)?;
        Some(&partial.part)
    }

    /// Returns true if the plan is made in several passes.
    fn has_passes(&self) -> bool {
        self.part() == Some(&RefreshPart::Changed)
    }

    /// Returns true if an object is read before its change is planned. `changes` is true if it is certain that the plan changes the object.
    pub(super) fn reads(&self, address: &AbsResourceInstance, object: &Object, changes: bool) -> bool {
        match self.part() {
            None => self.spec.options.refresh,
            Some(_) if self.is_required(address) => true,
            Some(RefreshPart::Changed) => {
                changes
                    || object.status == ObjectStatus::Tainted
                    || self.spec.options.force_replace.contains(address)
                    || self.reading.objects().contains_key(&(address.clone(), None))
            }
            // Both times are in whole seconds. A read in the same second may have been before `since`, so it counts as too old.
            Some(RefreshPart::OlderThan { since, .. }) => self
                .last_read(address, object)
                .is_none_or(|last| last.as_str() <= since.as_str()),
        }
    }

    /// Returns true if an object that was skipped must be refreshed now, because it was found to change.
    pub(super) fn reads_changed(&self, action: Action) -> bool {
        action != Action::NoOp && self.has_passes()
    }

    /// Returns true if deposed objects are read. A partial refresh reads all of them, because they will be destroyed, and the times of
    /// their last reads are not recorded.
    pub(super) fn reads_deposed(&self) -> bool {
        self.spec.options.refresh
    }

    /// Returns true if there is a partial refresh.
    pub(super) fn is_partly_refreshed(&self) -> bool {
        self.part().is_some()
    }

    fn is_required(&self, address: &AbsResourceInstance) -> bool {
        self.of_providers.contains(address) || self.reading.required.contains(address)
    }

    fn last_read(&self, address: &AbsResourceInstance, object: &Object) -> Option<String> {
        let partial = self.spec.options.partial_refresh.as_ref()?;
        Some(partial.last_reads.of(address, object)?.at.clone())
    }

    /// Records that an object or a data source is not read.
    pub(super) fn note_unread(&self, address: &AbsResourceInstance, object: &Object) {
        let unread = UnreadInstance {
            address: address.clone(),
            last_read: self.last_read(address, object),
        };
        self.results().reads.unread.push(unread);
    }

    /// Returns the answer of an earlier pass for an object.
    pub(super) fn answered_before(
        &self,
        address: &AbsResourceInstance,
        deposed: Option<&DeposedKey>,
    ) -> Option<Answer<ObjectRead>> {
        if !self.has_passes() {
            return None;
        }
        self.reading
            .objects()
            .get(&(address.clone(), deposed.cloned()))
            .cloned()
    }

    pub(super) async fn read_object(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
        deposed: Option<&DeposedKey>,
        stored: &StoredObject,
    ) -> Result<Answer<ObjectRead>, Diagnostics> {
        let request = ReadRequest {
            current: stored.value.clone(),
            private: stored.private.clone(),
            identity: stored.identity.clone(),
            meta: match self.context.provider_meta(address, &p.provider_address.provider) {
                Ok(meta) => meta,
                // `provider_meta` has reported the problem.
                Err(_) => return Err(Diagnostics::new()),
            },
        };
        let answer = p.provider.read(&address.resource.resource.ty, request).await?;
        if self.has_passes() {
            let key = (address.clone(), deposed.cloned());
            self.reading.objects().insert(key, answer.clone());
        }
        Ok(answer)
    }

    pub(super) fn note_read(&self, address: &AbsResourceInstance, is_current: bool) {
        let mut results = self.results();
        results.reads.count += 1;
        if is_current {
            results.reads.read.push(ReadInstance {
                address: address.clone(),
                arguments: None,
            });
        }
    }

    /// Records that a data source was read with these arguments.
    pub(super) fn note_data_read(&self, address: &AbsResourceInstance, config: &Value, schema: &Schema) {
        let read = ReadInstance {
            address: address.clone(),
            arguments: arguments_of(config, schema),
        };
        let mut results = self.results();
        results.reads.count += 1;
        results.reads.read.push(read);
    }

    /// Returns the answer of an earlier pass for a data source with these arguments.
    pub(super) fn data_answered_before(&self, address: &AbsResourceInstance, config: &Value) -> Option<ReadAnswer> {
        let data = self.reading.data();
        let (read_with, answer) = data.get(address)?;
        (read_with == config).then(|| Ok(answer.clone()))
    }

    /// Records the answer for a data source, for later passes.
    pub(super) fn keep_data(&self, address: &AbsResourceInstance, config: &Value, answer: &ReadAnswer) {
        if let (true, Ok(answer)) = (self.has_passes(), answer) {
            let kept = (config.clone(), answer.clone());
            self.reading.data().insert(address.clone(), kept);
        }
    }

    /// Returns the stored result of a data source if a partial refresh need not read it: its arguments are those of the last read, no
    /// changed value requires it, and the read is recent enough.
    pub(super) fn unread_data(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
        config: &Value,
    ) -> Option<StoredObject> {
        let part = self.part()?;
        if self.is_required(address) {
            return None;
        }
        let object = self.context.inputs.state.current(address)?;
        let last_reads = &self.spec.options.partial_refresh.as_ref()?.last_reads;
        let last = last_reads.of(address, object);
        let digest = arguments_of(config, p.schema);
        let known = last
            .zip(digest.as_ref())
            .and_then(|(last, now)| last.had_arguments(now));
        let stored = self.stored_data(p, address)?;
        // If no arguments were recorded, they are compared with the stored result. A null argument for which the provider has set a value
        // then counts as changed.
        let same = known.unwrap_or_else(|| has_arguments(&stored.value, config, p.schema));
        let fresh = match part {
            RefreshPart::Changed => true,
            RefreshPart::OlderThan { since, .. } => last.is_some_and(|last| last.at.as_str() > since.as_str()),
        };
        (same && fresh).then_some(stored)
    }

    /// Returns the sources of changed values if some of them have not been read, so that another pass must read them.
    pub(super) fn sources_to_read(&self, plan: &Plan) -> Option<Sources> {
        if !self.has_passes() || plan.errored {
            return None;
        }
        let mut search = Search::new(self.context.inputs.config);
        plan.changes.iter().for_each(|change| search.change(change));
        let unread = plan.unread.iter().flat_map(|unread| &unread.instances);
        let found = search.found;
        let any = unread.into_iter().any(|one| found.contains(&one.address));
        any.then(|| {
            let mut all = self.reading.required.clone();
            all.instances.extend(found.instances);
            all.resources.extend(found.resources);
            all.everywhere.extend(found.everywhere);
            all
        })
    }

    /// Returns the objects and data sources that the plan has not read, for display. `None` without a partial refresh.
    pub(super) fn unread(&self, results: &mut ReadResults) -> Option<Unread> {
        let part = self.part()?;
        let mut instances = std::mem::take(&mut results.unread);
        instances.sort_by(|a, b| a.address.cmp(&b.address));
        Some(Unread {
            option: part.to_string(),
            read: results.count,
            instances,
        })
    }
}

/// Returns a digest of the arguments of a data source.
fn arguments_of(config: &Value, schema: &Schema) -> Option<String> {
    let text = cty::json::to_json_text(config, &schema.implied_type()).ok()?;
    Some(digest(&text))
}

/// Returns true if the stored result of a data source contains exactly these arguments.
fn has_arguments(stored: &Value, config: &Value, schema: &Schema) -> bool {
    let attributes = schema.block.attributes.iter();
    let arguments = attributes.filter(|(_, attribute)| attribute.required || attribute.optional);
    let names = arguments.map(|(name, _)| name).chain(schema.block.blocks.keys());
    names.into_iter().all(|name| stored.get(name) == config.get(name))
}
