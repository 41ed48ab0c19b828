//! Marks: sensitivity, ephemerality and deprecations that accompany a value.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// A small set of marks. The empty set is the common case and costs two bytes.
///
/// The low bits are flags; the others are the number of a set of deprecations in [`SETS`], 0 for none.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Marks(u16);

/// Number of bits that are flags.
const FLAG_BITS: u32 = 3;
const FLAGS: u16 = (1 << FLAG_BITS) - 1;
const MAX_SETS: usize = (u16::MAX >> FLAG_BITS) as usize;

/// A deprecation of a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Deprecation {
    /// Advice on what to do instead.
    pub message: Arc<str>,
    /// Address of the object that declares the deprecation, for messages; empty if `message` names it.
    pub origin: Arc<str>,
}

type Set = Arc<[Deprecation]>;

/// Every set of deprecations in use, so that [`Marks`] are small and cheap to copy. A configuration declares few
/// deprecations, and few combinations of them occur; the sets live as long as the process. When all numbers are in use,
/// a new set gets none. Its first deprecation that has a number of its own then stands for the whole set.
#[derive(Default)]
struct Sets {
    all: Vec<Set>,
    numbers: HashMap<Set, u16>,
}

static SETS: LazyLock<Mutex<Sets>> = LazyLock::new(Mutex::default);

impl Sets {
    fn get(&self, number: u16) -> &[Deprecation] {
        let index = usize::from(number).checked_sub(1);
        index
            .and_then(|i| self.all.get(i))
            .map(|set| &**set)
            .unwrap_or_default()
    }

    fn number(&mut self, mut set: Vec<Deprecation>) -> u16 {
        // Sorted and without duplicates, so that equal sets have one number.
        set.sort();
        set.dedup();
        if set.is_empty() {
            return 0;
        }
        let set: Set = set.into();
        if let Some(number) = self.numbers.get(&set) {
            return *number;
        }
        match u16::try_from(self.all.len() + 1) {
            Ok(number) if self.all.len() < MAX_SETS => {
                self.all.push(set.clone());
                self.numbers.insert(set, number);
                number
            }
            _ => {
                let alone = |one: &Deprecation| self.numbers.get(std::slice::from_ref(one)).copied();
                set.iter().find_map(alone).unwrap_or(0)
            }
        }
    }
}

fn combined(a: u16, b: u16, combine: impl FnOnce(&[Deprecation], &[Deprecation]) -> Vec<Deprecation>) -> u16 {
    let mut sets = SETS.lock().unwrap_or_else(PoisonError::into_inner);
    // A panic elsewhere leaves the sets consistent: they only grow.
    let set = combine(sets.get(a), sets.get(b));
    sets.number(set)
}

impl Marks {
    const fn new(flags: u16, deprecations: u16) -> Marks {
        Marks(flags | deprecations << FLAG_BITS)
    }

    const fn flags(self) -> u16 {
        self.0 & FLAGS
    }

    /// Number of the set of deprecations.
    const fn set(self) -> u16 {
        self.0 >> FLAG_BITS
    }

    /// The empty set of marks.
    pub const NONE: Marks = Marks(0);
    /// The value must not be displayed.
    pub const SENSITIVE: Marks = Marks(1);
    /// The value must not be stored in a plan or a state.
    pub const EPHEMERAL: Marks = Marks(2);
    /// The value is the result of the console's `type` function.
    pub const TYPE: Marks = Marks(4);

    /// Returns the mark for a value that should not be used any more.
    #[must_use]
    pub fn deprecated(message: impl Into<Arc<str>>, origin: impl Into<Arc<str>>) -> Marks {
        let deprecation = Deprecation {
            message: message.into(),
            origin: origin.into(),
        };
        Marks::new(0, combined(0, 0, |_, _| vec![deprecation]))
    }

    /// Returns the union of both sets.
    #[must_use]
    pub fn union(self, other: Marks) -> Marks {
        let deprecations = match (self.set(), other.set()) {
            (a, 0) => a,
            (0, b) => b,
            (a, b) if a == b => a,
            (a, b) => combined(a, b, |a, b| [a, b].concat()),
        };
        Marks::new(self.flags() | other.flags(), deprecations)
    }

    /// Returns the marks of `self` that are not in `other`.
    #[must_use]
    pub fn without(self, other: Marks) -> Marks {
        let deprecations = match (self.set(), other.set()) {
            (a, 0) => a,
            (a, b) if a == 0 || a == b => 0,
            (a, b) => combined(a, b, |a, b| a.iter().filter(|d| !b.contains(d)).cloned().collect()),
        };
        Marks::new(self.flags() & !other.flags(), deprecations)
    }

    /// Returns true if every mark of `other` is in `self`.
    #[must_use]
    pub fn contains(self, other: Marks) -> bool {
        other.without(self).is_empty()
    }

    /// Returns true if there are no marks.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns true if the value is sensitive.
    #[must_use]
    pub const fn is_sensitive(self) -> bool {
        self.0 & Marks::SENSITIVE.0 != 0
    }

    /// Returns true if the value is ephemeral.
    #[must_use]
    pub const fn is_ephemeral(self) -> bool {
        self.0 & Marks::EPHEMERAL.0 != 0
    }

    /// Returns true if there is a deprecation.
    #[must_use]
    pub const fn is_deprecated(self) -> bool {
        self.set() != 0
    }

    /// Returns the deprecations, sorted.
    #[must_use]
    pub fn deprecations(self) -> Vec<Deprecation> {
        let sets = SETS.lock().unwrap_or_else(PoisonError::into_inner);
        sets.get(self.set()).to_vec()
    }

    #[must_use]
    pub const fn without_deprecations(self) -> Marks {
        Marks(self.flags())
    }
}

impl std::ops::BitOr for Marks {
    type Output = Marks;
    fn bitor(self, other: Marks) -> Marks {
        self.union(other)
    }
}

impl std::ops::BitOrAssign for Marks {
    fn bitor_assign(&mut self, other: Marks) {
        *self = self.union(other);
    }
}

impl fmt::Debug for Marks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names = Vec::new();
        for (mark, name) in [
            (Marks::SENSITIVE, "sensitive"),
            (Marks::EPHEMERAL, "ephemeral"),
            (Marks::TYPE, "type"),
        ] {
            if self.contains(mark) {
                names.push(name);
            }
        }
        let deprecations = self.deprecations();
        let names: Vec<String> = names
            .into_iter()
            .map(str::to_owned)
            .chain(deprecations.iter().map(|d| format!("deprecated({})", d.message)))
            .collect();
        f.write_str(&names.join("+"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deprecations_are_a_set_beside_the_other_marks() {
        let one = Marks::deprecated("use b", "module.m.a");
        let two = Marks::deprecated("use d", "module.m.c");
        assert_eq!(one, Marks::deprecated("use b", "module.m.a"));
        let both = one | two | one | Marks::SENSITIVE;
        assert_eq!(both, two | Marks::SENSITIVE | one);
        assert!(both.contains(one) && both.contains(Marks::SENSITIVE) && !one.contains(two));
        assert_eq!(both.without(one), two | Marks::SENSITIVE);
        assert_eq!(both.without_deprecations(), Marks::SENSITIVE);
        let messages: Vec<Arc<str>> = both.deprecations().into_iter().map(|d| d.message).collect();
        assert_eq!(messages, [Arc::from("use b"), Arc::from("use d")]);
        assert!(Marks::NONE.deprecations().is_empty() && !Marks::SENSITIVE.is_deprecated());
    }
}
