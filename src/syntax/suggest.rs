//! Suggestions for misspelt names.

use crate::edit::Edit;
use crate::source::Range;

/// Formats ` Did you mean "x"?`, or nothing.
#[must_use]
pub fn did_you_mean(hint: Option<&str>) -> String {
    hint.map(|h| format!(" Did you mean \"{h}\"?")).unwrap_or_default()
}

/// Returns the candidate nearest to a name, if it is near enough to be a likely typing error.
pub fn suggest<'c>(misspelt: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    nearest(misspelt, candidates).map(|(name, _)| name)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Near {
    pub name: String,
    /// True if no other name is near, and the difference is a typing error.
    pub is_certain: bool,
}

impl Near {
    /// Returns the edit that replaces the misspelt name in a range, if the intended name is certain.
    #[must_use]
    pub fn edit(&self, misspelt: &str, range: &Range) -> Option<Edit> {
        self.is_certain.then(|| Edit::word(range, misspelt, &*self.name))
    }
}

/// Finds the nearest candidate as [`suggest`] does, and says if it is certain enough for an automatic correction.
pub fn near<'c>(misspelt: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<Near> {
    nearest(misspelt, candidates).map(|(name, is_only)| Near {
        name: name.to_owned(),
        is_certain: is_only && is_slip(misspelt, name),
    })
}

/// Formats ` Did you mean "x"?`, or nothing.
#[must_use]
pub fn hint(near: Option<&Near>) -> String {
    did_you_mean(near.map(|near| &*near.name))
}

/// Returns the nearest candidate, and true if no other one is near.
fn nearest<'c>(misspelt: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<(&'c str, bool)> {
    let length = misspelt.chars().count();
    let mut best: Option<(usize, &str, bool)> = None;
    for candidate in candidates {
        // An identical name is not suggested, because the error then has another cause.
        if candidate == misspelt {
            continue;
        }
        // The distance is at least the difference in length, so a large difference need not be computed.
        if candidate.chars().count().abs_diff(length) >= 3 {
            continue;
        }
        let distance = edit_distance(misspelt, candidate);
        best = match best {
            _ if distance >= 3 => best,
            None => Some((distance, candidate, true)),
            Some((_, name, _)) if name == candidate => best,
            Some((least, _, _)) if distance < least => Some((distance, candidate, false)),
            Some((least, name, _)) => Some((least, name, false)),
        };
    }
    best.map(|(_, name, is_only)| (name, is_only))
}

/// Returns true if two names differ by a typing error: at most one change for every three characters, where a swap of
/// neighbours is one change. Names that differ only in digits are different names.
fn is_slip(misspelt: &str, name: &str) -> bool {
    let letters = |text: &str| text.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
    if letters(misspelt) == letters(name) {
        return false;
    }
    let changes = match swaps_neighbours(misspelt, name) {
        true => 1,
        false => edit_distance(misspelt, name),
    };
    changes * 3 <= misspelt.chars().count()
}

/// Returns true if two names differ only by a swap of neighbouring characters.
fn swaps_neighbours(a: &str, b: &str) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let differ: Vec<usize> = (0..a.len()).filter(|i| a.get(*i) != b.get(*i)).collect();
    match differ.as_slice() {
        [i, j] if a.len() == b.len() && i + 1 == *j => a.get(*i) == b.get(*j) && a.get(*j) == b.get(*i),
        _ => false,
    }
}

/// Returns the least number of insertions, deletions and replacements that turn one word into the other.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    // Only one row of the Levenshtein matrix is kept at a time.
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let replace = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = replace.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested() {
        assert_eq!(suggest("tpye", ["name", "type"]), Some("type"));
        assert_eq!(suggest("zzz", ["name", "type"]), None);
    }

    #[test]
    fn a_name_is_certain_only_if_it_is_alone_and_a_slip() {
        let certain = |misspelt, names: &[&'static str]| near(misspelt, names.iter().copied()).map(|n| n.is_certain);
        assert_eq!(certain("tpye", &["name", "type"]), Some(true));
        assert_eq!(certain("conten", &["content", "filename"]), Some(true));
        assert_eq!(certain("filename", &["content", "content"]), None);
        assert_eq!(certain("typ", &["type", "type"]), Some(true));
        // No suggestion is certain if two names are near, if half of the name changes, or if only a number differs.
        assert_eq!(certain("subnet", &["subnets", "subnet_a"]), Some(false));
        assert_eq!(certain("ip", &["id"]), Some(false));
        assert_eq!(certain("zone1", &["zone2"]), Some(false));
    }
}
