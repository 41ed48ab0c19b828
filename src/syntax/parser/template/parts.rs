//! Parts of a template while its directives are matched.

use std::mem::take;
use std::sync::Arc;

use crate::Range;
use crate::ast::{Expr, TemplatePart};

/// A directive whose end has not been read yet.
pub(super) struct Directive {
    pub kind: DirectiveKind,
    /// Parts before the directive.
    pub outer: Parts,
    pub range: Range,
}

pub(super) enum DirectiveKind {
    If {
        condition: Expr,
        /// Parts if the condition is true, once the `else` has been read.
        yes: Option<Vec<TemplatePart>>,
    },
    For {
        key: Option<Arc<str>>,
        value: Arc<str>,
        collection: Expr,
    },
}

/// Parts of a template, or of the content of a directive.
#[derive(Default)]
pub(super) struct Parts {
    list: Vec<TemplatePart>,
    /// Text at the end, not a part yet: adjacent pieces of text become one literal.
    text: String,
    text_range: Option<Range>,
}

impl Parts {
    pub fn text(&mut self, text: &str, range: Range) {
        if text.is_empty() {
            return;
        }
        self.text.push_str(text);
        match &mut self.text_range {
            Some(whole) => whole.end = range.end,
            None => self.text_range = Some(range),
        }
    }

    pub fn push(&mut self, part: TemplatePart) {
        self.end_text();
        self.list.push(part);
    }

    fn end_text(&mut self) {
        if let Some(range) = self.text_range.take() {
            self.list.push(TemplatePart::Literal {
                text: take(&mut self.text).into(),
                range,
            });
        }
    }

    pub fn finish(mut self) -> Vec<TemplatePart> {
        self.end_text();
        self.list
    }

    /// Ends an `if` directive, whose last branch consists of these parts, and continues with the outer
    /// parts.
    pub fn close_if(&mut self, outer: Parts, condition: Expr, yes: Option<Vec<TemplatePart>>, range: Range) {
        let last = std::mem::replace(self, outer).finish();
        let (yes, no) = match yes {
            Some(yes) => (yes, last),
            None => (last, Vec::new()),
        };
        self.push(TemplatePart::If {
            condition,
            yes,
            no,
            range,
        });
    }
}
