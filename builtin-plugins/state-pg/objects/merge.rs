//! Writes of a run that has locked parts of a state.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::claims::{Claims, object_key, output_key};
use super::document::{Document, Head, array, elements};
use super::json::Json;
use super::locks::Held;
use super::rows::{self, Failure, Revision, StateRow, changes};
use super::tables::Schema;
use crate::session::Connection;

/// Objects and outputs that a run changes, before and after the change.
#[derive(Debug, Default)]
pub(super) struct Difference {
    pub before: Document,
    pub after: Document,
}

impl Difference {
    /// Returns the changes from the state that a run knows to the one that it wants to write.
    pub fn between(known: &Document, next: &Document) -> Difference {
        let mut difference = Difference::default();
        for (key, change) in changes(&known.objects, &next.objects) {
            let copy =
                |object: Option<&_>| object.map(|object: &super::document::Object| (key.clone(), object.clone()));
            difference.before.objects.extend(copy(change.before));
            difference.after.objects.extend(copy(change.after));
        }
        for (name, change) in changes(&known.outputs, &next.outputs) {
            let copy =
                |output: Option<&_>| output.map(|output: &super::document::Output| (name.clone(), output.clone()));
            difference.before.outputs.extend(copy(change.before));
            difference.after.outputs.extend(copy(change.after));
        }
        difference
    }

    pub fn is_empty(&self) -> bool {
        let objects = self.before.objects.is_empty() && self.after.objects.is_empty();
        objects && self.before.outputs.is_empty() && self.after.outputs.is_empty()
    }

    /// Applies the changes to the state that the run knows.
    pub fn apply_to(self, known: &mut Document) {
        known.objects.retain(|key, _| !self.before.objects.contains_key(key));
        known.objects.extend(self.after.objects);
        known.outputs.retain(|name, _| !self.before.outputs.contains_key(name));
        known.outputs.extend(self.after.outputs);
        known.head = self.after.head;
    }
}

/// A transaction of a run, in which the row of its state is locked.
pub(super) struct Transaction<'a> {
    pub connection: &'a Connection,
    pub schema: &'a Schema,
    pub row: &'a StateRow,
    pub held: &'a Held,
    pub run: i64,
}

impl Transaction<'_> {
    /// Writes changes as the next revision of the state; nothing if there are none. The serial of `head` is ignored. Returns the revision,
    /// and the changes that were written.
    pub async fn write(&self, mut difference: Difference, head: Head) -> Result<(i64, Difference), Failure> {
        self.drop_foreign(&mut difference).await?;
        let current = &self.row.head;
        let head = Head {
            serial: current.serial,
            ..head
        };
        if difference.is_empty() && (head == *current || self.row.revision == 0 && head.lineage.is_empty()) {
            difference.after.head = head;
            return Ok((self.row.revision, difference));
        }
        difference.before.head = current.clone();
        difference.after.head = Head {
            serial: current.serial + 1,
            ..head
        };
        let revision = Revision {
            connection: self.connection,
            schema: self.schema,
            state: self.row.id,
            run: self.run,
            number: self.row.revision + 1,
        };
        revision.write(&difference.before, &difference.after).await?;
        Ok((revision.number, difference))
    }

    /// Drops changes for which the run has no lock, if another run has changed the row since it was read, or holds a lock on it.
    async fn drop_foreign(&self, difference: &mut Difference) -> Result<(), Failure> {
        let claims: &Claims = &self.held.claims;
        let Difference { before, after } = difference;
        let objects: BTreeSet<_> = before.objects.keys().chain(after.objects.keys()).cloned().collect();
        let objects: Vec<_> = objects
            .into_iter()
            .map(|key| (object_key(&key), key))
            .filter(|(lock, _)| !claims.covers(lock))
            .collect();
        let outputs: BTreeSet<_> = before.outputs.keys().chain(after.outputs.keys()).cloned().collect();
        let outputs: Vec<_> = outputs
            .into_iter()
            .map(|name| (output_key(&name), name))
            .filter(|(lock, _)| !claims.covers(lock))
            .collect();
        if objects.is_empty() && outputs.is_empty() {
            return Ok(());
        }
        let keys: Vec<&str> = objects
            .iter()
            .map(|(lock, _)| lock)
            .chain(outputs.iter().map(|(lock, _)| lock))
            .map(String::as_str)
            .collect();
        let text = "SELECT DISTINCT c.key FROM {S}.lock_claims c JOIN {S}.locks l ON l.id = c.request WHERE c.state_id = $1 AND c.request \
                    <> $2 AND c.mode = 'exclusive' AND l.granted AND c.key = ANY($3)";
        let rows = self
            .connection
            .query(&self.schema.sql(text), &[&self.row.id, &self.held.ticket.number, &keys])
            .await?;
        let foreign: BTreeSet<String> = rows.iter().map(|row| row.get(0)).collect();
        let sums: Vec<String> = objects.iter().map(|(_, key)| key.sum()).collect();
        let there = rows::read_objects(self.connection, self.schema, self.row.id, Some(&sums)).await?;
        for (lock, key) in objects {
            if foreign.contains(&lock) || there.get(&key) != before.objects.get(&key) {
                before.objects.remove(&key);
                after.objects.remove(&key);
            }
        }
        let there = match outputs.is_empty() {
            true => BTreeMap::new(),
            false => rows::read_outputs(self.connection, self.schema, self.row.id).await?,
        };
        for (lock, name) in outputs {
            if foreign.contains(&lock) || there.get(&name) != before.outputs.get(&name) {
                before.outputs.remove(&name);
                after.outputs.remove(&name);
            }
        }
        Ok(())
    }
}

/// Merges the head that a run wants to write with the current one, which another run may have changed.
pub(super) fn merged_head(current: &Head, known: &Head, next: &Head) -> Head {
    Head {
        terraform_version: next.terraform_version.clone(),
        serial: current.serial,
        lineage: match current.lineage.is_empty() {
            true => next.lineage.clone(),
            false => current.lineage.clone(),
        },
        check_results: merged_checks(&current.check_results, &known.check_results, &next.check_results),
        rest: if known.rest == next.rest {
            &current.rest
        } else {
            &next.rest
        }
        .clone(),
    }
}

/// Merges the results of checks. They are a list with an entry for each block that has conditions.
fn merged_checks(current: &Json, known: &Json, next: &Json) -> Json {
    if current == known || known == next {
        return if known == next { current } else { next }.clone();
    }
    let (Some(mut merged), Some(known), Some(next)) = (checks(current), checks(known), checks(next)) else {
        return next.clone();
    };
    for (key, change) in changes(&known, &next) {
        match change.after {
            Some(result) => merged.insert(key.clone(), result.clone()),
            None => merged.remove(key),
        };
    }
    match merged.is_empty() {
        true => Json::compact("null"),
        false => Json::compact(&array(merged.values().map(Json::as_str))),
    }
}

/// Returns the results of checks by kind and address.
fn checks(list: &Json) -> Option<BTreeMap<(String, String), Json>> {
    #[derive(Deserialize)]
    struct Subject {
        object_kind: String,
        config_addr: String,
    }
    let entry = |text: Box<serde_json::value::RawValue>| {
        let subject: Subject = serde_json::from_str(text.get()).ok()?;
        Some(((subject.object_kind, subject.config_addr), Json::compact(text.get())))
    };
    elements(list.as_str(), "check_results")
        .ok()?
        .into_iter()
        .map(entry)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[(&str, &str)]) -> Json {
        let entry = |(address, status): &(&str, &str)| {
            format!(
                "{{\"object_kind\":\"check\",\"config_addr\":\"{address}\",\"status\":\"{status}\",\"objects\":null}}"
            )
        };
        Json::compact(&format!(
            "[{}]",
            entries.iter().map(entry).collect::<Vec<_>>().join(",")
        ))
    }

    #[test]
    fn results_of_checks_keep_those_of_other_runs() {
        let known = list(&[("check.a", "pass"), ("check.b", "pass"), ("check.c", "pass")]);
        let next = list(&[("check.a", "fail"), ("check.b", "pass")]);
        let current = list(&[
            ("check.a", "pass"),
            ("check.b", "fail"),
            ("check.c", "pass"),
            ("check.d", "pass"),
        ]);
        let merged = list(&[("check.a", "fail"), ("check.b", "fail"), ("check.d", "pass")]);
        assert_eq!(merged_checks(&current, &known, &next), merged);
        assert_eq!(merged_checks(&current, &known, &known), current);
        assert_eq!(merged_checks(&known, &known, &next), next);
        let none = Json::compact("null");
        assert_eq!(merged_checks(&current, &none, &none), current);
    }
}
