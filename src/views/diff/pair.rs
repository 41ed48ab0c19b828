//! Two sides of a part of a value, and the paths that apply to it.

use cty::{Path, Step, Value};

use super::tree::{Act, Body, Node};

/// Paths that apply to a part of a value and its contents.
#[derive(Clone, Debug)]
pub(super) enum Paths<'v> {
    All,
    /// Remaining steps of each path, from this part.
    Some(Vec<&'v [Step]>),
}

impl<'v> Paths<'v> {
    pub(super) fn none() -> Paths<'v> {
        Paths::Some(Vec::new())
    }

    pub(super) fn new(paths: impl IntoIterator<Item = &'v Path>) -> Paths<'v> {
        Paths::Some(paths.into_iter().map(|p| p.0.as_slice()).collect())
    }

    pub(super) fn ends_here(&self) -> bool {
        match self {
            Paths::All => true,
            Paths::Some(paths) => paths.iter().any(|p| p.is_empty()),
        }
    }

    pub(super) fn says_nothing(&self) -> bool {
        matches!(self, Paths::Some(paths) if paths.is_empty())
    }

    /// Returns the rest of the paths that begin with a matching step. With `inherit`, a path that ends here applies to everything
    /// inside.
    pub(super) fn child(&self, inherit: bool, matches: impl Fn(&Step) -> bool) -> Paths<'v> {
        let Paths::Some(paths) = self else { return Paths::All };
        if paths.is_empty() {
            return Paths::none();
        }
        if inherit && self.ends_here() {
            return Paths::All;
        }
        Paths::Some(
            paths
                .iter()
                .filter_map(|p| p.split_first())
                .filter(|(step, _)| matches(step))
                .map(|(_, rest)| rest)
                .collect(),
        )
    }
}

#[derive(Clone, Debug)]
pub(super) struct Pair<'v> {
    /// Old value. `None` if there is no such part; null is a value of its own.
    pub(super) before: Option<&'v Value>,
    /// New value. `None` and null have the same meanings as in `before`.
    pub(super) after: Option<&'v Value>,
    pub(super) was_sensitive: bool,
    pub(super) is_sensitive: bool,
    /// Paths whose change requires replacement.
    pub(super) replace: Paths<'v>,
    /// Paths that decide whether a part of drift is shown: those of attributes that may have led to planned changes.
    pub(super) relevant: Paths<'v>,
    /// Shows sensitive values.
    pub(super) revealed: bool,
    /// Pairs elements of lists and sets by similarity.
    pub(super) alike: bool,
    /// True if the values come from a provider with the legacy type system, which does not distinguish an empty string from null.
    pub(super) legacy: bool,
}

impl<'v> Pair<'v> {
    /// Returns the two sides of a whole object; null means that there is none.
    pub(super) fn of_object(before: &'v Value, after: &'v Value, replace: Paths<'v>, relevant: Paths<'v>) -> Pair<'v> {
        Pair::new(Some(before), Some(after), replace, relevant).implicit()
    }

    /// Returns two sides, each present or absent; null is present.
    pub(super) fn of_value(before: Option<&'v Value>, after: Option<&'v Value>) -> Pair<'v> {
        Pair::new(before, after, Paths::none(), Paths::All)
    }

    pub(super) fn new(
        before: Option<&'v Value>,
        after: Option<&'v Value>,
        replace: Paths<'v>,
        relevant: Paths<'v>,
    ) -> Pair<'v> {
        let sensitive = |side: Option<&Value>| side.is_some_and(|v| v.marks().is_sensitive());
        Pair {
            before,
            after,
            was_sensitive: sensitive(before),
            is_sensitive: sensitive(after),
            replace,
            relevant,
            revealed: false,
            alike: false,
            legacy: false,
        }
    }

    /// Treats null as absent.
    pub(super) fn implicit(mut self) -> Pair<'v> {
        self.before = self.before.filter(|v| !v.is_null());
        self.after = self.after.filter(|v| !v.is_null());
        self
    }

    /// Adds sensitivity that the marks of the values do not have.
    pub(super) fn sensitive(mut self, before: bool, after: bool) -> Pair<'v> {
        self.was_sensitive |= before;
        self.is_sensitive |= after;
        self
    }

    /// Sets whether sensitive values are shown.
    pub(super) fn revealed(self, revealed: bool) -> Pair<'v> {
        Pair { revealed, ..self }
    }

    /// Sets whether elements of lists and sets are paired by similarity.
    pub(super) fn alike(self, alike: bool) -> Pair<'v> {
        Pair { alike, ..self }
    }

    pub(super) fn like(self, whole: &Pair<'_>) -> Pair<'v> {
        Pair {
            revealed: whole.revealed,
            alike: whole.alike,
            legacy: whole.legacy,
            ..self
        }
    }

    pub(super) fn plain(mut self) -> Pair<'v> {
        self.was_sensitive = false;
        self.is_sensitive = false;
        self
    }

    pub(super) fn only_before(&self) -> Pair<'v> {
        Pair {
            after: None,
            is_sensitive: false,
            ..self.clone()
        }
    }

    pub(super) fn only_after(&self) -> Pair<'v> {
        Pair {
            before: None,
            was_sensitive: false,
            ..self.clone()
        }
    }

    /// Treats a part as unchanged if no path marks it as relevant.
    pub(super) fn if_relevant(mut self) -> Pair<'v> {
        if self.relevant.says_nothing() {
            self.after = self.before;
            self.is_sensitive = self.was_sensitive;
        }
        self
    }

    pub(super) fn has_before(&self) -> bool {
        self.before.is_some_and(|v| !v.is_null())
    }

    pub(super) fn has_after(&self) -> bool {
        self.after.is_some_and(|v| !v.is_null())
    }

    pub(super) fn is_nothing(&self) -> bool {
        !self.has_before() && !self.has_after()
    }

    /// Returns the action of a value before its parts are compared. Their actions are then combined with it ([`Act::with`]).
    pub(super) fn initial(&self) -> Act {
        match (self.has_before(), self.has_after()) {
            (false, true) => Act::Create,
            (true, false) => Act::Delete,
            _ => Act::Keep,
        }
    }

    pub(super) fn node(&self, act: Act, body: Body<'v>) -> Node<'v> {
        Node {
            act,
            replace: self.replace.ends_here(),
            body,
        }
    }

    /// Returns an attribute of both sides, or an element under this key.
    pub(super) fn part(&self, name: &str) -> Pair<'v> {
        fn side<'v>(value: Option<&'v Value>, name: &str) -> Option<&'v Value> {
            value.and_then(|v| v.get(name))
        }
        let matches = |step: &Step| match step {
            Step::Attribute(a) => **a == *name,
            Step::Index(key) => key.as_str() == Some(name),
        };
        Pair::new(
            side(self.before, name),
            side(self.after, name),
            // A replace path marks the part where it ends, while a relevant path makes all parts relevant.
            self.replace.child(false, matches),
            self.relevant.child(true, matches),
        )
        .like(self)
    }

    /// Returns elements of both sides by position. A sequence and its elements are relevant together.
    pub(super) fn element(
        &self,
        before: &'v [Value],
        after: &'v [Value],
        (b, a): (Option<usize>, Option<usize>),
    ) -> Pair<'v> {
        let position = b.or(a);
        let matches = |step: &Step| match step {
            Step::Index(key) => key.as_number().and_then(cty::Number::to_usize) == position,
            Step::Attribute(_) => false,
        };
        Pair::new(
            b.and_then(|i| before.get(i)),
            a.and_then(|i| after.get(i)),
            self.replace.child(false, matches),
            Paths::All,
        )
        .like(self)
    }

    pub(super) fn sequences(&self) -> (&'v [Value], &'v [Value]) {
        fn side(value: Option<&Value>) -> &[Value] {
            value.and_then(Value::as_seq).unwrap_or_default()
        }
        (side(self.before), side(self.after))
    }
}
