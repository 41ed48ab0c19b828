//! The nearest name to a misspelt one.

use crate::edit::Edit;
use crate::source::Range;

/// ` Did you mean "x"?`, or nothing.
#[must_use]
pub fn did_you_mean(hint: Option<&str>) -> String {
    hint.map(|h| format!(" Did you mean \"{h}\"?")).unwrap_or_default()
}

/// The candidate nearest to what was written, if one is near enough to be a likely typing error.
pub fn suggest<'c>(misspelt: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    nearest(misspelt, candidates).map(|(name, _)| name)
}

/// The name nearest to a misspelt one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Near {
    pub name: String,
    /// Whether no other name is near, and the difference is a slip of the keyboard.
    pub is_certain: bool,
}

impl Near {
    /// The change that puts this name in the place of the misspelt one in a stretch, if it is certain.
    #[must_use]
    pub fn edit(&self, misspelt: &str, range: &Range) -> Option<Edit> {
        self.is_certain.then(|| Edit::word(range, misspelt, &*self.name))
    }
}

/// As [`suggest`], with whether the name is certain enough to replace the misspelt one.
pub fn near<'c>(misspelt: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<Near> {
    nearest(misspelt, candidates).map(|(name, is_only)| Near {
        name: name.to_owned(),
        is_certain: is_only && is_slip(misspelt, name),
    })
}

/// ` Did you mean "x"?`, or nothing.
#[must_use]
pub fn hint(near: Option<&Near>) -> String {
    did_you_mean(near.map(|near| &*near.name))
}

/// The nearest candidate, and whether it is the only one that is near.
fn nearest<'c>(misspelt: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<(&'c str, bool)> {
    let length = misspelt.chars().count();
    let mut best: Option<(usize, &str, bool)> = None;
    for candidate in candidates {
        // What has the very name is not what was meant: something else is wrong with it.
        if candidate == misspelt {
            continue;
        }
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

/// Whether two names differ by a slip of the keyboard: one change in each three characters at most, where two neighbours that
/// changed places are one change. Names that differ by their digits only are different names.
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

/// Whether the names are the same but for two neighbours that changed places.
fn swaps_neighbours(a: &str, b: &str) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let differ: Vec<usize> = (0..a.len()).filter(|i| a.get(*i) != b.get(*i)).collect();
    match differ.as_slice() {
        [i, j] if a.len() == b.len() && i + 1 == *j => a.get(*i) == b.get(*j) && a.get(*j) == b.get(*i),
        _ => false,
    }
}

/// The number of insertions, deletions and replacements between two words.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
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
        // Two names are near, the change is half of the name, or another number is a name of its own.
        assert_eq!(certain("subnet", &["subnets", "subnet_a"]), Some(false));
        assert_eq!(certain("ip", &["id"]), Some(false));
        assert_eq!(certain("zone1", &["zone2"]), Some(false));
    }
}
