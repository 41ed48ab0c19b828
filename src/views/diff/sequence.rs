//! Pairing of the elements of two sequences or sets.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};

use cty::{Kind, Value};

/// Pair of positions, in the first and in the second sequence; one may be missing.
pub(super) type Step = (Option<usize>, Option<usize>);

/// Element that can be compared with others.
pub(super) trait Item {
    /// Hashes the item. Equal items give equal hashes.
    fn digest(&self, hasher: &mut DefaultHasher);
    /// Returns true if both items have the same content.
    fn same(&self, other: &Self) -> bool;
}

impl Item for Value {
    fn digest(&self, hasher: &mut DefaultHasher) {
        match self.kind() {
            // Types are not part of the digest: equal values may have different ones. `same` compares fully.
            Kind::Unknown(_) | Kind::Null => 0u8.hash(hasher),
            Kind::Bool(b) => b.hash(hasher),
            Kind::Number(n) => n.to_string().hash(hasher),
            Kind::String(s) => s.hash(hasher),
            Kind::Seq(items) => items.iter().for_each(|i| i.digest(hasher)),
            Kind::Map(items) => items.iter().for_each(|(k, v)| {
                k.hash(hasher);
                v.digest(hasher);
            }),
        }
    }

    fn same(&self, other: &Value) -> bool {
        if self.deep_marks().is_empty() && other.deep_marks().is_empty() {
            return self == other;
        }
        self.clone().unmark_deep().0 == other.clone().unmark_deep().0
    }
}

impl Item for &str {
    fn digest(&self, hasher: &mut DefaultHasher) {
        self.hash(hasher);
    }

    fn same(&self, other: &&str) -> bool {
        self == other
    }
}

/// Table that assigns equal numbers to equal items, so that later comparisons are cheap.
struct Numbering<'i, I> {
    by_digest: HashMap<u64, Vec<(&'i I, u32)>>,
    next: u32,
}

impl<'i, I: Item> Numbering<'i, I> {
    fn new() -> Self {
        Numbering {
            by_digest: HashMap::new(),
            next: 0,
        }
    }

    fn number(&mut self, item: &'i I) -> u32 {
        let mut hasher = DefaultHasher::new();
        item.digest(&mut hasher);
        let known = self.by_digest.entry(hasher.finish()).or_default();
        if let Some((_, number)) = known.iter().find(|(other, _)| other.same(item)) {
            return *number;
        }
        let number = self.next;
        self.next += 1;
        known.push((item, number));
        number
    }

    fn all(&mut self, items: &'i [I]) -> Vec<u32> {
        items.iter().map(|i| self.number(i)).collect()
    }
}

/// Returns the steps from one sequence to the other. Common elements stay; between them the old elements are removed, then the
/// new ones are added. An old and a new object at the same position count as one that changed.
pub(super) fn pair_up<I: Item>(before: &[I], after: &[I], is_object: impl Fn(&I) -> bool) -> Vec<Step> {
    let mut numbering = Numbering::new();
    let (old, new) = (numbering.all(before), numbering.all(after));
    let common = longest_common_subsequence(&old, &new);
    let mut steps = Vec::with_capacity(old.len().max(new.len()));
    let (mut b, mut a) = (0, 0);
    let mut common = common.into_iter();
    loop {
        let next = common.next();
        while b < old.len() && Some(old[b]) != next {
            let changed = is_object(&before[b]) && a < new.len() && is_object(&after[a]) && Some(new[a]) != next;
            steps.push((Some(b), changed.then_some(a)));
            b += 1;
            a += usize::from(changed);
        }
        while a < new.len() && Some(new[a]) != next {
            steps.push((None, Some(a)));
            a += 1;
        }
        if next.is_none() {
            return steps;
        }
        steps.push((Some(b), Some(a)));
        b += 1;
        a += 1;
    }
}

/// Returns the steps for the elements of a list. In lists of equal length, elements at the same position belong together, unless
/// every old element is still in the list: then the order changed.
pub(super) fn elements<I: Item>(before: &[I], after: &[I], is_object: impl Fn(&I) -> bool) -> Vec<Step> {
    if before.len() != after.len() {
        return pair_up(before, after, is_object);
    }
    let mut numbering = Numbering::new();
    let (old, new) = (numbering.all(before), numbering.all(after));
    let kept: HashSet<u32> = new.into_iter().collect();
    if old.iter().all(|o| kept.contains(o)) {
        pair_up(before, after, is_object)
    } else {
        by_position(before.len(), after.len())
    }
}

/// Pairs elements at the same position.
pub(super) fn by_position(before: usize, after: usize) -> Vec<Step> {
    (0..before.max(after))
        .map(|i| ((i < before).then_some(i), (i < after).then_some(i)))
        .collect()
}

/// Limit of the table's cells for the exact method: 16 MiB with four bytes for each cell.
const TABLE_LIMIT: usize = 1 << 22;

fn longest_common_subsequence(old: &[u32], new: &[u32]) -> Vec<u32> {
    // A common tail always belongs to the result. A common head is cut only if the table would be too large, because that can
    // select another one of several equally long results.
    let tail = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take_while(|(x, y)| x == y)
        .count();
    let (old, end) = old.split_at(old.len() - tail);
    let new = &new[..new.len() - tail];
    let mut common = if old.len().saturating_mul(new.len()) <= TABLE_LIMIT {
        by_table(old, new)
    } else {
        let head = old.iter().zip(new).take_while(|(x, y)| x == y).count();
        let (rest_old, rest_new) = (&old[head..], &new[head..]);
        let rest = if rest_old.len().saturating_mul(rest_new.len()) <= TABLE_LIMIT {
            by_table(rest_old, rest_new)
        } else {
            by_unique(rest_old, rest_new)
        };
        old[..head].iter().copied().chain(rest).collect()
    };
    common.extend_from_slice(end);
    common
}

/// Computes the longest common subsequence exactly. Of several equally long ones, it is the one found by walking back from the
/// end and preferring the second sequence.
fn by_table(old: &[u32], new: &[u32]) -> Vec<u32> {
    if old.is_empty() || new.is_empty() {
        return Vec::new();
    }
    let width = old.len() + 1;
    let mut table = vec![0u32; width * (new.len() + 1)];
    for (y, n) in new.iter().enumerate() {
        for (x, o) in old.iter().enumerate() {
            table[(y + 1) * width + x + 1] = if o == n {
                table[y * width + x] + 1
            } else {
                table[(y + 1) * width + x].max(table[y * width + x + 1])
            };
        }
    }
    let (mut x, mut y) = (old.len(), new.len());
    let mut found = Vec::new();
    while x > 0 && y > 0 {
        if old[x - 1] == new[y - 1] {
            found.push(old[x - 1]);
            x -= 1;
            y -= 1;
        } else if table[y * width + x - 1] > table[(y - 1) * width + x] {
            x -= 1;
        } else {
            y -= 1;
        }
    }
    found.reverse();
    found
}

/// Approximates the longest common subsequence of long sequences: it uses only the elements that occur exactly once on each side.
fn by_unique(old: &[u32], new: &[u32]) -> Vec<u32> {
    fn once(items: &[u32]) -> HashMap<u32, Option<usize>> {
        let mut places = HashMap::with_capacity(items.len());
        for (i, item) in items.iter().enumerate() {
            places.entry(*item).and_modify(|p| *p = None).or_insert(Some(i));
        }
        places
    }
    let (in_old, in_new) = (once(old), once(new));
    // These are the positions in `new` of the unique items of `old`, in the order of `old`. Their longest increasing
    // subsequence is the result.
    let places: Vec<usize> = old
        .iter()
        .filter(|o| matches!(in_old.get(o), Some(Some(_))))
        .filter_map(|o| in_new.get(o).copied().flatten())
        .collect();
    let mut ends: Vec<usize> = Vec::new();
    let mut previous = vec![usize::MAX; places.len()];
    for (i, place) in places.iter().enumerate() {
        let at = ends.partition_point(|e| places[*e] < *place);
        if at > 0 {
            previous[i] = ends[at - 1];
        }
        if at == ends.len() {
            ends.push(i);
        } else {
            ends[at] = i;
        }
    }
    let mut found = Vec::new();
    let mut at = ends.last().copied();
    while let Some(i) = at {
        found.push(new[places[i]]);
        at = Some(previous[i]).filter(|p| *p != usize::MAX);
    }
    found.reverse();
    found
}

/// Pairs up the elements of two sets: the old ones in order, each with its equal, then the new ones.
pub(super) fn match_sets(before: &[Value], after: &[Value]) -> Vec<Step> {
    let mut numbering = Numbering::new();
    let (old, new) = (numbering.all(before), numbering.all(after));
    // The elements are visited in reverse, so that the first of equal elements is used.
    let mut places: HashMap<u32, usize> = new.iter().enumerate().rev().map(|(i, n)| (*n, i)).collect();
    let mut steps: Vec<Step> = old
        .iter()
        .enumerate()
        .map(|(b, n)| (Some(b), places.remove(n)))
        .collect();
    let taken: HashSet<usize> = steps.iter().filter_map(|s| s.1).collect();
    steps.extend((0..new.len()).filter(|a| !taken.contains(a)).map(|a| (None, Some(a))));
    steps
}
