//! Matching of the objects of a set before and after a change. Such objects have neither a key nor a position, so they are recognized by
//! their configured values.

use cty::{Type, Value};

use crate::schema::{CompiledMember, Nesting};
use crate::type_rules::Compared;

/// Positions of the configured and the prior object that match one planned object of a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pair {
    pub config: Option<usize>,
    pub prior: Option<usize>,
}

/// Finds the configured and the prior object of each planned object of a set. Each configured or prior object is used at most once.
pub(crate) fn pair(members: &[CompiledMember], planned: &[Value], config: &[Value], prior: &[Value]) -> Vec<Pair> {
    let configured = assign(planned, config, |planned, config| came_from(members, planned, config));
    let mut taken = vec![false; prior.len()];
    let mut pairs: Vec<Pair> = (configured.into_iter())
        .map(|config| Pair { config, prior: None })
        .collect();
    // If the host could match a planned object with a prior one, the two are equal. These pairs are found first, so that several objects
    // with the same configured values keep their own results.
    for (pair, planned) in pairs.iter_mut().zip(planned) {
        pair.prior = take(&mut taken, |i| prior[i] == *planned);
    }
    let specific = |pair: &Pair| pair.config.map_or(0, |c| specificity(&config[c]));
    let mut order: Vec<usize> = (0..pairs.len()).filter(|i| pairs[*i].prior.is_none()).collect();
    // Objects that set more values come first: an object that sets few values could take the only match of one that sets many.
    order.sort_by_key(|i| std::cmp::Reverse(specific(&pairs[*i])));
    for i in order {
        if let Some(config) = pairs[i].config.map(|c| &config[c]) {
            pairs[i].prior = take(&mut taken, |p| came_from(members, &prior[p], config));
        }
    }
    pairs
}

/// Finds the configured object for each object. Equal ones are matched first, then the configured objects that set the most values.
fn assign(objects: &[Value], config: &[Value], agree: impl Fn(&Value, &Value) -> bool) -> Vec<Option<usize>> {
    let mut taken = vec![false; config.len()];
    let mut found: Vec<Option<usize>> = (objects.iter())
        .map(|object| take(&mut taken, |i| config[i] == *object))
        .collect();
    let mut open: Vec<usize> = (0..config.len()).filter(|i| !taken[*i]).collect();
    open.sort_by_key(|i| std::cmp::Reverse(specificity(&config[*i])));
    for i in open {
        let free =
            (objects.iter().zip(&mut found)).find(|(object, found)| found.is_none() && agree(object, &config[i]));
        if let Some((_, found)) = free {
            *found = Some(i);
        }
    }
    found
}

/// Takes the first object that is free and fits, and marks it as taken.
fn take(taken: &mut [bool], fits: impl Fn(usize) -> bool) -> Option<usize> {
    let found = (0..taken.len()).find(|i| !taken[*i] && fits(*i))?;
    taken[found] = true;
    Some(found)
}

/// Returns the number of values that a configured object sets. An object that sets more values matches fewer results.
fn specificity(value: &Value) -> usize {
    if let Some(items) = value.as_seq() {
        return items.iter().map(specificity).sum();
    }
    match value.entries() {
        Some(entries) => entries.map(|(_, value)| specificity(value)).sum(),
        None => usize::from(!value.is_null()),
    }
}

/// Returns true if an object can be the result of a configured one: the two differ only in write-only attributes, in computed ones that the
/// configuration leaves out, and in the form of values that mean the same.
pub fn came_from(members: &[CompiledMember], object: &Value, config: &Value) -> bool {
    object.is_present()
        && config.is_present()
        && members.iter().all(|member| {
            let (result, configured) = (inside(object, member.name()), inside(config, member.name()));
            if result == configured {
                return true;
            }
            match member.attribute() {
                // Prior objects have no write-only values, and a result does not show which of its values are computed.
                Some(a) if a.write_only || a.computed && configured.is_null() => true,
                // The service may have answered another form of the same value.
                Some(a)
                    if !a.rules.is_empty() && a.rules.settled(Compared::Result, &configured, &result) == configured =>
                {
                    true
                }
                None if member.is_computed_block() && configured.is_null() => true,
                _ => member
                    .inside()
                    .is_some_and(|(nesting, members)| all_came_from(nesting, members, &result, &configured)),
            }
        })
}

fn all_came_from(nesting: Nesting, members: &[CompiledMember], result: &Value, config: &Value) -> bool {
    match nesting {
        Nesting::Single | Nesting::Group => came_from(members, result, config),
        Nesting::Map => match (result.entries(), config.entries()) {
            (Some(mut results), Some(configured)) => {
                configured.count() == result.entries().map_or(0, Iterator::count)
                    && results
                        .all(|(key, result)| config.get(key).is_some_and(|config| came_from(members, result, config)))
            }
            _ => false,
        },
        Nesting::List => match (result.as_seq(), config.as_seq()) {
            (Some(results), Some(configured)) => {
                results.len() == configured.len()
                    && (results.iter().zip(configured)).all(|(result, config)| came_from(members, result, config))
            }
            _ => false,
        },
        Nesting::Set => match (result.as_seq(), config.as_seq()) {
            (Some(results), Some(configured)) => {
                results.len() == configured.len()
                    && assign(results, configured, |result, config| came_from(members, result, config))
                        .iter()
                        .all(Option::is_some)
            }
            _ => false,
        },
    }
}

/// Returns the value of an attribute or block; null if there is none.
pub fn inside(object: &Value, name: &str) -> Value {
    object.get(name).cloned().unwrap_or_else(|| Value::null(Type::Dynamic))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Compiled, Schema, block, computed, nested, optional, required};
    use crate::{Attr, Model, Set, model};

    model! {
        pub struct Part {
            pub name: Attr<String> = required(),
            pub made: Attr<String> = computed().keep(),
        }
    }

    model! {
        pub struct Item {
            pub name: Attr<String> = required(),
            pub either: Attr<String> = optional().computed(),
            pub note: Attr<String> = optional(),
            pub one: Attr<Part> = nested(optional()),
            pub parts: Set<Part> = block(),
        }
    }

    fn item(name: &str, either: Option<&str>) -> Item {
        Item {
            name: name.into(),
            either: either.map(str::to_owned).into(),
            ..Item::default()
        }
    }

    fn part(name: &str, made: Option<&str>) -> Part {
        Part {
            name: name.into(),
            made: made.map(str::to_owned).into(),
        }
    }

    fn pairs(planned: &[Item], config: &[Item], prior: &[Item]) -> Vec<(Option<usize>, Option<usize>)> {
        let schema = Compiled::new(Schema::of::<Item>());
        let values = |items: &[Item]| -> Vec<Value> { items.iter().map(|i| i.to_object(&schema.object)).collect() };
        let found = pair(&schema.members, &values(planned), &values(config), &values(prior));
        found.into_iter().map(|pair| (pair.config, pair.prior)).collect()
    }

    #[test]
    fn objects_are_found_by_their_configured_parts() {
        // The proposal of a host that could merge the prior result into `a` only.
        let planned = [item("a", Some("1")), item("b", None)];
        let config = [item("b", None), item("a", None)];
        let prior = [item("c", Some("3")), item("b", Some("2")), item("a", Some("1"))];
        assert_eq!(
            pairs(&planned, &config, &prior),
            [(Some(1), Some(2)), (Some(0), Some(1))]
        );
    }

    #[test]
    fn what_is_not_configured_and_not_computed_tells_objects_apart() {
        let noted = Item {
            note: "n".into(),
            ..item("a", None)
        };
        let planned = [item("a", None), noted.clone()];
        let config = [noted, item("a", None)];
        assert_eq!(pairs(&planned, &config, &[]), [(Some(1), None), (Some(0), None)]);
    }

    #[test]
    fn an_object_that_sets_more_is_found_first() {
        let planned = [item("a", Some("x")), item("a", Some("y"))];
        let config = [item("a", None), item("a", Some("x"))];
        assert_eq!(
            pairs(&planned, &config, &planned),
            [(Some(1), Some(0)), (Some(0), Some(1))]
        );
    }

    #[test]
    fn results_further_in_do_not_hide_an_object() {
        let with = |made: Option<&str>| Item {
            one: part("o", made).into(),
            parts: Set(vec![part("p", made), part("q", made)]),
            ..item("a", made)
        };
        let other = Item {
            parts: Set(vec![part("p", None)]),
            ..with(None)
        };
        assert_eq!(
            pairs(&[with(None)], &[with(None)], &[other, with(Some("1"))]),
            [(Some(0), Some(1))]
        );
    }

    #[test]
    fn each_object_of_before_is_used_once() {
        let unknown = Item {
            name: Attr::Unknown,
            ..Item::default()
        };
        let planned = [item("a", None), item("a", Some("x")), unknown];
        let prior = [item("a", Some("y"))];
        assert_eq!(
            pairs(&planned, &planned, &prior),
            [(Some(0), Some(0)), (Some(1), None), (Some(2), None)]
        );
    }
}
