//! Marks: facts that travel with a value.

use std::fmt;

/// A small set of marks. The empty set is the usual case and costs one byte.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Marks(u8);

impl Marks {
    /// No marks.
    pub const NONE: Marks = Marks(0);
    /// The value must not be shown.
    pub const SENSITIVE: Marks = Marks(1);
    /// The value must not be stored in a plan or a state.
    pub const EPHEMERAL: Marks = Marks(2);
    /// The value is the result of the console's `type` function.
    pub const TYPE: Marks = Marks(4);

    /// Both sets together.
    #[must_use]
    pub const fn union(self, other: Marks) -> Marks {
        Marks(self.0 | other.0)
    }

    /// What is in `self` and not in `other`.
    #[must_use]
    pub const fn without(self, other: Marks) -> Marks {
        Marks(self.0 & !other.0)
    }

    /// Whether every mark of `other` is in `self`.
    #[must_use]
    pub const fn contains(self, other: Marks) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the sensitive mark is present.
    #[must_use]
    pub const fn is_sensitive(self) -> bool {
        self.contains(Marks::SENSITIVE)
    }

    /// Whether the ephemeral mark is present.
    #[must_use]
    pub const fn is_ephemeral(self) -> bool {
        self.contains(Marks::EPHEMERAL)
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
        f.write_str(&names.join("+"))
    }
}
