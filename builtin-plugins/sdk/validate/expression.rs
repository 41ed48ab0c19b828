//! Path expressions, by which a rule names other attributes.

use cty::{Path, Step, Type, Value};

/// A parsed path expression; see the [module](super) for its form.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Expression<'t> {
    pub origin: Origin,
    pub steps: Vec<Part<'t>>,
}

/// The block in which an expression begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The attribute's own block. If that has no member of this name, the outermost block.
    Near,
    Outermost,
    /// The block this many levels above the attribute's own block.
    Up(usize),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part<'t> {
    Name(&'t str),
    /// Any element: `[*]`.
    Any,
    Index(usize),
    Key(&'t str),
}

impl<'t> Expression<'t> {
    /// Parses an expression; `None` if the text is not valid.
    pub fn parse(text: &'t str) -> Option<Expression<'t>> {
        let (origin, mut rest) = if let Some(rest) = text.strip_prefix('/') {
            (Origin::Outermost, rest)
        } else if let Some(rest) = text.strip_prefix("./") {
            (Origin::Up(0), rest)
        } else {
            let (mut levels, mut rest) = (0, text);
            while let Some(after) = rest.strip_prefix("../") {
                (levels, rest) = (levels + 1, after);
            }
            let origin = if levels == 0 { Origin::Near } else { Origin::Up(levels) };
            (origin, rest)
        };
        let mut steps = Vec::new();
        loop {
            let length = rest.find(['.', '[']).unwrap_or(rest.len());
            let (name, after) = rest.split_at(length);
            let valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            if name.is_empty() || !name.chars().all(valid) {
                return None;
            }
            steps.push(Part::Name(name));
            rest = after;
            while let Some(inner) = rest.strip_prefix('[') {
                let (part, after) = inner.split_once(']')?;
                steps.push(match part {
                    "*" => Part::Any,
                    _ => match part.strip_prefix('"').and_then(|part| part.strip_suffix('"')) {
                        Some(key) => Part::Key(key),
                        None => Part::Index(part.parse().ok()?),
                    },
                });
                rest = after;
            }
            match rest.strip_prefix('.') {
                Some(after) => rest = after,
                None => break,
            }
        }
        rest.is_empty().then_some(Expression { origin, steps })
    }

    /// Finds the values that the expression names, in a configuration.
    pub fn find<'v>(&self, blocks: &[&'v Value]) -> Found<'v> {
        let mut found = Found::default();
        let own = blocks.last().copied();
        let begin = match self.origin {
            Origin::Near => {
                let is_near = |block: &&Value| match self.steps.first() {
                    Some(Part::Name(name)) => block.get(name).is_some(),
                    _ => false,
                };
                own.filter(is_near).or(blocks.first().copied())
            }
            Origin::Outermost => blocks.first().copied(),
            Origin::Up(levels) => blocks.iter().rev().nth(levels).copied(),
        };
        if let Some(begin) = begin {
            found.collect(begin, &self.steps);
        }
        found
    }
}

/// The values that an expression names.
#[derive(Debug, Default)]
pub(crate) struct Found<'v> {
    pub values: Vec<&'v Value>,
    /// True if a value on the path is unknown, so that the expression may name more values, or other ones.
    pub open: bool,
}

impl<'v> Found<'v> {
    fn collect(&mut self, at: &'v Value, steps: &[Part<'_>]) {
        let Some((step, rest)) = steps.split_first() else {
            self.values.push(at);
            return;
        };
        if !at.is_known() {
            self.open = true;
            return;
        }
        let single = match step {
            Part::Name(name) | Part::Key(name) => at.get(name),
            Part::Index(i) => at.as_seq().and_then(|items| items.get(*i)),
            Part::Any => {
                match (at.as_seq(), at.ty()) {
                    (Some(items), Type::List(_) | Type::Set(_) | Type::Tuple(_)) => {
                        items.iter().for_each(|item| self.collect(item, rest));
                    }
                    _ => {
                        let entries = at.entries().into_iter().flatten();
                        entries.for_each(|(_, item)| self.collect(item, rest));
                    }
                }
                return;
            }
        };
        if let Some(next) = single {
            self.collect(next, rest);
        }
    }
}

/// Returns the blocks around an attribute, from the outermost one to its own.
pub(crate) fn blocks_around<'v>(config: &'v Value, path: &Path) -> Vec<&'v Value> {
    let mut blocks = Vec::new();
    let mut at = Some(config);
    for step in &path.0 {
        let Some(value) = at else { break };
        if matches!(step, Step::Attribute(_)) {
            blocks.push(value);
        }
        at = step.get(value);
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_have_an_origin_and_steps() {
        let parts = |text| Expression::parse(text).map(|e| (e.origin, e.steps.len()));
        assert_eq!(parts("a"), Some((Origin::Near, 1)));
        assert_eq!(parts("/a.b"), Some((Origin::Outermost, 2)));
        assert_eq!(parts("./a"), Some((Origin::Up(0), 1)));
        assert_eq!(parts("../../a[*].b[0][\"k\"].c"), Some((Origin::Up(2), 6)));
        for wrong in ["", "/", "../", "a.", ".a", "a[", "a[]", "a[x]", "a[0]b", "A", "a b"] {
            assert_eq!(parts(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn blocks_around_an_attribute_in_a_set_are_found() {
        let item = Value::object([("x", "1".into())]);
        let ty = item.ty().clone();
        let config = Value::object([("set", Value::set(ty, vec![item.clone()]))]);
        let path = Path::root().attribute("set").index(item.clone()).attribute("x");
        assert_eq!(blocks_around(&config, &path), [&config, &item]);
    }
}
