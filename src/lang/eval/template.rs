//! Templates: text with interpolations and directives.

use cty::refine::safe_prefix;
use cty::{Marks, Refinements, Type, Value};
use syntax::Diagnostic;
use syntax::ast::{Expr, TemplatePart};

use super::{Context, ExpressionEvaluator};

/// Text of a template up to the first unknown part, with the marks of all parts. Text after an unknown part is not
/// collected.
#[derive(Default)]
struct Text {
    known: String,
    open: bool,
    marks: Marks,
}

impl Text {
    fn push(&mut self, text: &str) {
        if !self.open {
            self.known.push_str(text);
        }
    }

    fn value(self) -> Value {
        let value = if self.open {
            Value::unknown_refined(
                Type::String,
                // A combining character after the known part could change its last character.
                Refinements {
                    not_null: true,
                    prefix: Some(safe_prefix(&self.known).into()),
                    ..Refinements::default()
                },
            )
        } else {
            Value::string(self.known)
        };
        value.with_marks(self.marks)
    }
}

impl ExpressionEvaluator {
    /// Evaluates the parts of a template to a string.
    pub(super) fn parts(&mut self, parts: &[TemplatePart], whole: &Expr, context: &Context<'_>) -> Value {
        let mut text = Text::default();
        let errors = self.errors();
        for part in parts {
            self.part(part, whole, &mut text, context);
        }
        if self.errors() > errors {
            return Value::unknown(Type::String).with_marks(text.marks);
        }
        text.value()
    }

    fn part(&mut self, part: &TemplatePart, whole: &Expr, text: &mut Text, context: &Context<'_>) {
        match part {
            TemplatePart::Literal { text: literal, .. } => text.push(literal),
            TemplatePart::Interpolation(expr) => {
                let value = self.expr(expr, context);
                self.append(&value, expr, whole, text, context);
            }
            TemplatePart::If { condition, yes, no, .. } => {
                let yes = self.apart(false, |e| e.parts(yes, whole, context));
                let no = self.apart(false, |e| e.parts(no, whole, context));
                let value = self.choose(condition, (whole, yes), (whole, no), whole, context);
                self.append(&value, whole, whole, text, context);
            }
            TemplatePart::For {
                key,
                value,
                collection,
                body,
                range,
            } => {
                let (elements, marks) = match self.elements(collection, whole, range, context) {
                    Ok(found) => found,
                    Err(unknown) => {
                        text.marks |= unknown.marks();
                        text.open = true;
                        return;
                    }
                };
                text.marks |= marks;
                // A part that is not wholly known is not used at all: it counts as one unknown part.
                let mut all = Text::default();
                for (k, v) in elements {
                    let mut variables = vec![(value.clone(), v)];
                    if let Some(name) = key {
                        variables.insert(0, (name.clone(), k));
                    }
                    let inner = context.with_variables(&variables);
                    for part in body {
                        self.part(part, whole, &mut all, &inner);
                    }
                }
                text.marks |= all.marks;
                if all.open {
                    text.open = true;
                } else {
                    text.push(&all.known);
                }
            }
        }
    }

    fn append(&mut self, value: &Value, expr: &Expr, whole: &Expr, text: &mut Text, context: &Context<'_>) {
        text.marks |= value.deep_marks();
        let problem = |detail: String| {
            Diagnostic::error("Invalid template interpolation value", detail)
                .at(expr.range())
                .within(whole.range())
        };
        if value.is_null() {
            self.report(
                problem("The value is null, and null has no text.".into()),
                expr,
                context,
            );
            return;
        }
        if !value.is_known() && !matches!(value.ty(), Type::String | Type::Number | Type::Bool) {
            // The conversion is checked when the value is known.
            text.open = true;
            return;
        }
        match cty::convert(value, &Type::String) {
            Ok(string) => match string.as_str() {
                Some(known) => text.push(known),
                None => {
                    // The known prefix of the first unknown part counts, too.
                    if let Some(prefix) = string.refinements().and_then(|r| r.prefix.clone()) {
                        text.push(&prefix);
                    }
                    text.open = true;
                }
            },
            Err(error) => self.report(
                problem(format!("This value has no text: {}.", error.message)),
                expr,
                context,
            ),
        }
    }
}
