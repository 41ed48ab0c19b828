//! Pairing of the elements of lists and sets by similarity, so that inserting, removing or changing an element is shown as one
//! difference.

use cty::{Kind, Value};

use super::sequence::{self, Item as _, Step};

/// Least similarity at which an old and a new element count as one element that changed.
const LEAST: f64 = 0.5;

/// Limit of the comparisons between two runs of elements. In longer runs, elements of lists are paired by position, and different
/// elements of sets are not paired.
const LIMIT: usize = 10_000;

/// Returns the steps from one list to the other. Equal elements are matched. Between them, similar elements are paired in order, with
/// the greatest sum of similarities; the others are removed or added.
pub(super) fn lists(before: &[Value], after: &[Value]) -> Vec<Step> {
    let mut steps = Vec::with_capacity(before.len().max(after.len()));
    // These steps pair equal elements only; between them, every element is on one side.
    let all = sequence::pair_up(before, after, |_| false);
    let (mut olds, mut news) = (Vec::new(), Vec::new());
    for step in all {
        match step {
            (Some(b), None) => olds.push(b),
            (None, Some(a)) => news.push(a),
            both => {
                align(before, after, &olds, &news, &mut steps);
                olds.clear();
                news.clear();
                steps.push(both);
            }
        }
    }
    align(before, after, &olds, &news, &mut steps);
    steps
}

/// Returns the steps from one set to the other. Each old element, in order, is paired with its equal, or else with the most similar
/// new element that is left, if that is similar enough. The other new elements follow.
pub(super) fn sets(before: &[Value], after: &[Value]) -> Vec<Step> {
    let mut steps = sequence::match_sets(before, after);
    let mut news: Vec<usize> = steps.iter().filter(|s| s.0.is_none()).filter_map(|s| s.1).collect();
    let olds = steps.iter().filter(|s| s.1.is_none()).count();
    if olds * news.len() > LIMIT {
        return steps;
    }
    for step in &mut steps {
        let (Some(b), None) = *step else { continue };
        let best = news
            .iter()
            .enumerate()
            .map(|(at, a)| (at, likeness(&before[b], &after[*a])))
            .max_by(|(_, x), (_, y)| x.total_cmp(y));
        if let Some((at, _)) = best.filter(|(_, like)| *like >= LEAST) {
            step.1 = Some(news.remove(at));
        }
    }
    steps.retain(|step| step.0.is_some() || step.1.is_some_and(|a| news.contains(&a)));
    steps
}

/// Adds the steps between two runs of elements that have none in common: the pairs with the greatest sum of similarities.
fn align(before: &[Value], after: &[Value], olds: &[usize], news: &[usize], steps: &mut Vec<Step>) {
    if olds.is_empty() || news.is_empty() || olds.len() * news.len() > LIMIT {
        let both = olds.iter().zip(news).map(|(b, a)| (Some(*b), Some(*a)));
        steps.extend(both);
        let common = olds.len().min(news.len());
        steps.extend(olds[common..].iter().map(|b| (Some(*b), None)));
        steps.extend(news[common..].iter().map(|a| (None, Some(*a))));
        return;
    }
    let width = news.len() + 1;
    // For each pair of positions, the greatest sum of similarities among the elements at and after these
    // positions.
    let mut sums = vec![0.0; (olds.len() + 1) * width];
    let mut alike = vec![0.0; olds.len() * news.len()];
    for (x, b) in olds.iter().enumerate().rev() {
        for (y, a) in news.iter().enumerate().rev() {
            let like = likeness(&before[*b], &after[*a]);
            alike[x * news.len() + y] = like;
            let skip = f64::max(sums[(x + 1) * width + y], sums[x * width + y + 1]);
            let both = match like >= LEAST {
                true => like + sums[(x + 1) * width + y + 1],
                false => 0.0,
            };
            sums[x * width + y] = f64::max(skip, both);
        }
    }
    let (mut x, mut y) = (0, 0);
    while x < olds.len() || y < news.len() {
        let here = sums[x * width + y];
        let like = match x < olds.len() && y < news.len() {
            true => alike[x * news.len() + y],
            false => 0.0,
        };
        // The sums were computed by the same operations, so equal ones are identical to the last bit.
        if like >= LEAST && here.total_cmp(&(like + sums[(x + 1) * width + y + 1])).is_eq() {
            steps.push((Some(olds[x]), Some(news[y])));
            (x, y) = (x + 1, y + 1);
        } else if x < olds.len() && (y == news.len() || here.total_cmp(&sums[(x + 1) * width + y]).is_eq()) {
            steps.push((Some(olds[x]), None));
            x += 1;
        } else {
            steps.push((None, Some(news[y])));
            y += 1;
        }
    }
}

/// Returns the similarity of two values, from 0 to 1: the share of their attributes or elements that are equal.
fn likeness(one: &Value, other: &Value) -> f64 {
    if one.same(other) {
        return 1.0;
    }
    let (Some(names), Some(others)) = (entries(one), entries(other)) else {
        return 0.0;
    };
    let (mut count, mut equal) = (0usize, 0usize);
    for name in &names {
        let (Some(x), Some(y)) = (one.get(name), other.get(name)) else {
            count += 1;
            continue;
        };
        // An attribute that is null on both sides is no sign of similarity.
        if x.is_null() && y.is_null() {
            continue;
        }
        count += 1;
        // An unknown value may turn out to be equal to the old one.
        equal += usize::from(x.same(y) || !y.is_known());
    }
    count += others.iter().filter(|name| one.get(name).is_none()).count();
    match count {
        0 => 0.0,
        count => equal as f64 / count as f64,
    }
}

/// Returns the names of an object's attributes or of a map's elements; `None` for other values, null and unknown ones
/// included.
fn entries(value: &Value) -> Option<Vec<&str>> {
    if matches!(value.kind(), Kind::Null | Kind::Unknown(_)) {
        return None;
    }
    Some(value.entries()?.map(|(name, _)| &**name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(port: &str, from: &str) -> Value {
        Value::object([
            ("port", Value::string(port)),
            ("from", Value::string(from)),
            ("protocol", Value::string("tcp")),
        ])
    }

    #[test]
    fn inserted_element_is_one_step() {
        let before = [rule("22", "a"), rule("80", "b"), rule("443", "c")];
        let after = [rule("21", "z"), rule("22", "a"), rule("80", "x"), rule("443", "c")];
        assert_eq!(
            lists(&before, &after),
            [
                (None, Some(0)),
                (Some(0), Some(1)),
                (Some(1), Some(2)),
                (Some(2), Some(3))
            ]
        );
        // An element without a similar counterpart is added or removed.
        let other = [Value::object([("name", Value::string("n"))])];
        assert_eq!(lists(&before[..1], &other), [(Some(0), None), (None, Some(0))]);
    }

    #[test]
    fn changed_element_of_a_set_is_paired() {
        let before = [rule("22", "a"), rule("80", "b")];
        let after = [rule("443", "q"), rule("80", "c"), rule("22", "a")];
        assert_eq!(
            sets(&before, &after),
            [(Some(0), Some(2)), (Some(1), Some(1)), (None, Some(0))]
        );
    }
}
