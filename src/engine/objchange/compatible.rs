//! What a provider may answer after applying: everything that was planned and known must be as planned.

use cty::{Kind, Path, Type, Value};
use schema::BlockSchema;

use super::{Problem, at_index, at_key};

/// The places where an applied object contradicts the planned one.
pub fn applied_problems(schema: &BlockSchema, planned: &Value, actual: &Value) -> Vec<Problem> {
    let mut out = Vec::new();
    if planned.is_null() && !actual.is_null() {
        out.push(Problem::new(&Path::root(), "was absent, but now present"));
    } else if actual.is_null() && !planned.is_null() {
        out.push(Problem::new(&Path::root(), "was present, but now absent"));
    } else if planned.is_present() && actual.is_present() {
        for (name, p) in planned.entries().into_iter().flatten() {
            let path = Path::root().attribute(name.clone());
            let Some(a) = actual.get(name) else {
                out.push(Problem::new(&path, "attribute is missing"));
                continue;
            };
            let sensitive = schema.attributes.get(name).is_some_and(|s| s.sensitive);
            compare(p, a, &path, schema.blocks.contains_key(name), sensitive, &mut out);
        }
    }
    out
}

fn compare(planned: &Value, actual: &Value, path: &Path, is_block: bool, sensitive: bool, out: &mut Vec<Problem>) {
    if planned == actual {
        return;
    }
    if let Kind::Unknown(refinements) = planned.kind() {
        // Only a promise that goes beyond the type can be broken.
        if refinements.as_ref().is_some_and(|r| r.not_null) && actual.is_null() {
            out.push(Problem::new(path, "was known not to be null, but is null now"));
        }
        return;
    }
    if planned.is_null() {
        // Blocks that were not there may not appear; null and empty mean the same for collections of blocks.
        if !(is_block && actual.len() == Some(0)) {
            out.push(Problem::new(
                path,
                changed("was null, but now has a value", "was null, but now", actual, sensitive),
            ));
        }
        return;
    }
    if actual.is_null() {
        out.push(Problem::new(
            path,
            changed("had a value, but is null now", "was", planned, sensitive)
                + if sensitive { "" } else { ", but now null" },
        ));
        return;
    }
    if planned.ty() != actual.ty() && !planned.ty().has_dynamic() && planned.ty().is_primitive() {
        out.push(Problem::new(
            path,
            format!(
                "wrong final value type: {} was planned, {} came",
                planned.ty().friendly_name(),
                actual.ty().friendly_name()
            ),
        ));
        return;
    }
    if let (Some(p), Some(a)) = (planned.entries(), actual.entries()) {
        let p: Vec<_> = p.collect();
        for (key, p) in &p {
            let path = if matches!(planned.ty(), Type::Object(_)) {
                path.attribute((*key).clone())
            } else {
                at_key(path, key)
            };
            match actual.get(key) {
                Some(a) => compare(p, a, &path, false, sensitive, out),
                None => out.push(Problem::new(&path, "element has vanished")),
            }
        }
        for (key, _) in a {
            if planned.get(key).is_none() {
                out.push(Problem::new(&at_key(path, key), "new element has appeared"));
            }
        }
        return;
    }
    match (planned.as_seq(), actual.as_seq()) {
        (Some(p), Some(a)) if matches!(planned.ty(), Type::Set(_)) => {
            if planned.is_wholly_known() {
                let lost = p.iter().filter(|v| !a.contains(v)).count();
                if lost > 0 || p.len() != a.len() {
                    out.push(Problem::new(
                        path,
                        format!(
                            "the set does not contain the planned elements (planned: {}, present: {})",
                            p.len(),
                            a.len()
                        ),
                    ));
                }
            } else if a.len() > p.len() {
                out.push(Problem::new(
                    path,
                    format!("length changed from {} to {}", p.len(), a.len()),
                ));
            }
        }
        (Some(p), Some(a)) => {
            for (i, (p, a)) in p.iter().zip(a).enumerate() {
                compare(p, a, &at_index(path, i), is_block, sensitive, out);
            }
            if p.len() > a.len() {
                out.push(Problem::new(&at_index(path, a.len()), "element has vanished"));
            } else if a.len() > p.len() {
                out.push(Problem::new(&at_index(path, p.len()), "new element has appeared"));
            }
        }
        _ if sensitive => out.push(Problem::new(path, "inconsistent values for sensitive attribute")),
        _ => out.push(Problem::new(path, format!("was {planned:?}, but now {actual:?}"))),
    }
}

fn changed(hidden: &str, shown: &str, value: &Value, sensitive: bool) -> String {
    if sensitive {
        hidden.into()
    } else {
        format!("{shown} {value:?}")
    }
}
