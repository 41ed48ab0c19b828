//! Expressions: operators, steps after an operand, operands.

use cty::{Type, Value};

use crate::ast::{BinaryOp, Expr, Traversal, TraversalStep, UnaryOp};
use crate::token::TokenKind;
use crate::{Diagnostic, Range};

use super::{Abort, MAX_CHAIN, Parsed, Parser};

impl Parser<'_> {
    /// Reads an expression: operands and operators, and possibly `? … : …`.
    pub(super) fn expression(&mut self) -> Parsed<Expr> {
        self.enter()?;
        let first = self.next();
        let result = match self.operators() {
            Ok(condition) if self.peek() == TokenKind::Question => self.conditional(first, Box::new(condition)),
            alone => alone,
        };
        self.leave();
        result
    }

    /// Reads the two branches after a condition.
    fn conditional(&mut self, first: usize, condition: Box<Expr>) -> Parsed<Expr> {
        self.take();
        let yes = Box::new(self.expression()?);
        if self.eat(TokenKind::Colon).is_none() {
            return Err(self.error_in(
                first,
                "Missing false expression in conditional",
                "A conditional is written \"condition ? a : b\"; the part from the colon on is missing.",
            ));
        }
        let no = Box::new(self.expression()?);
        let range = self.extend(condition.range());
        Ok(Expr::Conditional {
            condition,
            yes,
            no,
            range,
        })
    }

    /// Reads operands with binary operators between them.
    fn operators(&mut self) -> Parsed<Expr> {
        match self.operand() {
            // Most expressions are a single operand, and need no stack.
            Ok(first) if binary_operator(self.peek()).is_some() => self.operators_after(vec![first]),
            alone => alone,
        }
    }

    fn operators_after(&mut self, mut operands: Vec<Expr>) -> Parsed<Expr> {
        // These are operators that wait for their right operand. Recursion for each level of precedence would need
        // six stack frames per operand.
        let mut waiting: Vec<(BinaryOp, u8, Range)> = Vec::new();
        let mut count = 0;
        while let Some((op, rank)) = binary_operator(self.peek()) {
            count += 1;
            if count > MAX_CHAIN {
                return Err(self.error(
                    "Expression too long",
                    &format!("An expression may have up to {MAX_CHAIN} operators. Split it up."),
                ));
            }
            // Operators of equal precedence are left-associative.
            while waiting.last().is_some_and(|(_, other, _)| *other >= rank) {
                join(&mut operands, &mut waiting);
            }
            let token = self.take();
            waiting.push((op, rank, self.range_of(token)));
            operands.push(self.operand()?);
        }
        while !waiting.is_empty() {
            join(&mut operands, &mut waiting);
        }
        operands.pop().ok_or(Abort)
    }

    /// Reads an operand with the signs before it and the steps after it.
    fn operand(&mut self) -> Parsed<Expr> {
        match self.peek() {
            TokenKind::Minus => self.signed(UnaryOp::Negate),
            TokenKind::Not => self.signed(UnaryOp::Not),
            _ => match self.term() {
                Ok(term) if matches!(self.peek(), TokenKind::Dot | TokenKind::OpenBracket) => self.steps(term),
                alone => alone,
            },
        }
    }

    fn signed(&mut self, op: UnaryOp) -> Parsed<Expr> {
        let sign = self.take();
        // Signs nest: `!!!a` is three levels deep.
        self.enter()?;
        let operand = self.operand();
        self.leave();
        let operand = operand?;
        Ok(Expr::Unary {
            op,
            operand: Box::new(operand),
            op_range: self.range_of(sign),
            range: self.since(sign),
        })
    }

    // ---- steps ------------------------------------------------------------------------------------------------

    /// Reads the steps after an operand: attributes, indexes, splats.
    fn steps(&mut self, from: Expr) -> Parsed<Expr> {
        let mut expr = from;
        // Static steps extend a list; indexes and splats wrap the expression, which makes the tree deeper.
        let mut wrapped = 0;
        loop {
            match self.peek() {
                TokenKind::Dot => {
                    let dot = self.take();
                    if let Some(star) = self.eat(TokenKind::Star) {
                        expr = self.attribute_splat(expr, dot, star)?;
                        wrapped += 1;
                    } else {
                        let step = self.dot_step(dot, None)?;
                        expr = self.add_step(expr, step);
                    }
                }
                TokenKind::OpenBracket => {
                    let open = self.take();
                    if self.peek() == TokenKind::Star {
                        return self.full_splat(expr, open);
                    }
                    expr = self.index(expr, open)?;
                    wrapped += usize::from(matches!(expr, Expr::Index { .. }));
                }
                _ => return Ok(expr),
            }
            if wrapped > MAX_CHAIN {
                return Err(self.error(
                    "Expression too long",
                    &format!("An expression may have up to {MAX_CHAIN} indexes in a row."),
                ));
            }
        }
    }

    /// Reads the key between brackets, and the closing one.
    fn index(&mut self, collection: Expr, open: usize) -> Parsed<Expr> {
        let before = self.set_newlines(false);
        let key = self.inside(open, TokenKind::CloseBracket);
        self.newlines = before;
        let key = key?;
        let brackets = self.since(open);
        // A constant key is a static step, so that references can be found without evaluation.
        if let Some(key) = static_key(&key) {
            return Ok(self.add_step(collection, TraversalStep::Index { key, range: brackets }));
        }
        let range = self.extend(collection.range());
        Ok(Expr::Index {
            collection: Box::new(collection),
            key: Box::new(key),
            brackets,
            range,
        })
    }

    /// Reads the step after a dot that no star follows: an attribute, or an index in the legacy form. Inside a splat,
    /// an error is reported at the star.
    fn dot_step(&mut self, dot: usize, star: Option<usize>) -> Parsed<TraversalStep> {
        match self.peek() {
            TokenKind::Ident => {
                let name = self.take();
                Ok(TraversalStep::Attribute {
                    name: self.text_of(name).into(),
                    range: self.since(dot),
                })
            }
            TokenKind::Number => {
                let number = self.take();
                let key = self.legacy_index(number, star)?;
                Ok(TraversalStep::Index {
                    key,
                    range: self.since(dot),
                })
            }
            _ => {
                let next = self.next();
                let problem = Diagnostic::error("Invalid attribute name", "An attribute name is required after a dot.");
                Err(self.error_at(next, problem.at(&self.range_of(star.unwrap_or(next)))))
            }
        }
    }

    fn legacy_index(&mut self, number: usize, star: Option<usize>) -> Parsed<Value> {
        let text = self.text_of(number);
        // The lexer reads `0.1` as one number.
        if let Some((first, second)) = text.split_once('.') {
            let detail = format!(
                "Two indexes with dots cannot follow each other, since they read as one number. Write them in \
                 brackets: [{first}][{}].",
                second.split('.').collect::<Vec<_>>().join("][")
            );
            let range = self.range_of(star.unwrap_or(number));
            return Err(self.error_at(
                number,
                Diagnostic::error("Invalid legacy index syntax", detail).at(&range),
            ));
        }
        self.number(number)
    }

    /// Appends a static step to an expression.
    fn add_step(&self, expr: Expr, step: TraversalStep) -> Expr {
        match expr {
            Expr::Traversal(mut traversal) => {
                traversal.steps.push(step);
                traversal.range.end = self.tokens.end(self.last);
                Expr::Traversal(traversal)
            }
            Expr::Relative {
                source,
                mut steps,
                mut range,
            } => {
                steps.push(step);
                range.end = self.tokens.end(self.last);
                Expr::Relative { source, steps, range }
            }
            // Steps are not added to a literal: `true.a` selects from a value that has no attributes.
            other => {
                let range = self.extend(other.range());
                Expr::Relative {
                    source: Box::new(other),
                    steps: vec![step],
                    range,
                }
            }
        }
    }

    /// Reads `.*`, which applies to the attributes and legacy indexes that follow, but not to brackets.
    fn attribute_splat(&mut self, source: Expr, dot: usize, star: usize) -> Parsed<Expr> {
        let marker = self.range_of(dot).to(&self.range_of(star));
        let mut each = Expr::SplatElement { range: marker.clone() };
        while let Some(dot) = self.eat(TokenKind::Dot) {
            if self.peek() == TokenKind::Star {
                return Err(self.error(
                    "Nested splat expression not allowed",
                    "After \".*\" a second \".*\" is not possible. Use \"[*]\" for both.",
                ));
            }
            let step = self.dot_step(dot, Some(star))?;
            each = self.add_step(each, step);
        }
        let range = self.extend(source.range());
        Ok(Expr::Splat {
            source: Box::new(source),
            each: Box::new(each),
            marker,
            range,
        })
    }

    /// Reads `[*]`, which applies to all steps that follow.
    fn full_splat(&mut self, source: Expr, open: usize) -> Parsed<Expr> {
        self.take();
        if self.eat(TokenKind::CloseBracket).is_none() {
            return Err(self.error(
                "Missing close bracket on splat index",
                "A splat is written \"[*]\": only \"]\" can follow the star.",
            ));
        }
        let marker = self.since(open);
        let element = Expr::SplatElement { range: marker.clone() };
        // Splats nest: in `a[*][*]`, the second is inside the first.
        self.enter()?;
        let each = self.steps(element);
        self.leave();
        let each = each?;
        let range = self.extend(source.range());
        Ok(Expr::Splat {
            source: Box::new(source),
            each: Box::new(each),
            marker,
            range,
        })
    }

    // ---- terms ------------------------------------------------------------------------------------------------

    fn term(&mut self) -> Parsed<Expr> {
        match self.peek() {
            TokenKind::Ident => {
                let name = self.take();
                match self.peek() {
                    TokenKind::OpenParen | TokenKind::DoubleColon => self.call(name),
                    _ => Ok(self.word(name)),
                }
            }
            TokenKind::Number => {
                let token = self.take();
                let value = self.number(token)?;
                Ok(Expr::Literal {
                    value,
                    range: self.range_of(token),
                })
            }
            TokenKind::OpenQuote => self.quoted_template(),
            TokenKind::OpenHeredoc => self.heredoc_template(),
            TokenKind::OpenParen => self.parentheses(),
            TokenKind::OpenBracket => self.tuple(),
            TokenKind::OpenBrace => self.object(),
            TokenKind::Eof => Err(self.error("Missing expression", "The file ends where an expression should begin.")),
            TokenKind::Less => Err(self.misplaced_less()),
            _ => Err(self.error("Invalid expression", "No expression can begin with this.")),
        }
    }

    /// Reports a `<` where an expression should begin, which is likely a misspelt heredoc.
    fn misplaced_less(&mut self) -> Abort {
        let next = self.next();
        let heredoc = self.tokens.kind(next + 1) == TokenKind::Less;
        self.error(
            "Invalid expression",
            if heredoc {
                "No expression begins with \"<\". If this is meant to be a heredoc, a marker without quotes must \
                 follow the \"<<\" or \"<<-\", and nothing may follow the marker in its line."
            } else {
                "No expression can begin with this."
            },
        )
    }

    /// Reads a single name: a literal, or the root of a reference.
    fn word(&self, token: usize) -> Expr {
        let range = self.range_of(token);
        match self.text_of(token) {
            "true" => Expr::Literal {
                value: Value::bool(true),
                range,
            },
            "false" => Expr::Literal {
                value: Value::bool(false),
                range,
            },
            "null" => Expr::Literal {
                value: Value::null(Type::Dynamic),
                range,
            },
            name => Expr::Traversal(Traversal {
                root: name.into(),
                root_range: range.clone(),
                steps: Vec::new(),
                range,
            }),
        }
    }

    fn parentheses(&mut self) -> Parsed<Expr> {
        let open = self.take();
        let before = self.set_newlines(false);
        let inner = self.inside(open, TokenKind::CloseParen);
        self.newlines = before;
        Ok(Expr::Parens {
            inner: Box::new(inner?),
            range: self.since(open),
        })
    }

    /// Reads an expression and the bracket that closes it.
    fn inside(&mut self, open: usize, closer: TokenKind) -> Parsed<Expr> {
        let inner = match self.expression() {
            Err(Abort) => {
                return if self.skip_to_closer(open) {
                    Ok(self.invalid(open))
                } else {
                    Err(Abort)
                };
            }
            inner => inner,
        };
        if self.eat(closer).is_none() {
            let (summary, detail) = if closer == TokenKind::CloseParen {
                (
                    "Unbalanced parentheses",
                    "Expected a closing parenthesis to terminate the expression.",
                )
            } else {
                (
                    "Missing close bracket on index",
                    "The \"]\" that ends this index is missing.",
                )
            };
            self.error_in(open, summary, detail);
            if !self.skip_to_closer(open) {
                return Err(Abort);
            }
        }
        inner
    }

    // ---- traversals by themselves -----------------------------------------------------------------------------

    /// Reads a traversal that is the whole text.
    pub(super) fn lone_traversal(&mut self) -> Parsed<Traversal> {
        let Some(root) = self.eat(TokenKind::Ident) else {
            return Err(self.error("Variable name required", "Must begin with a variable name."));
        };
        let mut steps = Vec::new();
        loop {
            match self.peek() {
                TokenKind::Eof => break,
                TokenKind::Dot => {
                    let dot = self.take();
                    if self.eat(TokenKind::Star).is_some() {
                        steps.push(TraversalStep::Splat { range: self.since(dot) });
                        continue;
                    }
                    if !matches!(self.peek(), TokenKind::Ident | TokenKind::Number) {
                        return Err(self.error_in(
                            root,
                            "Attribute name required",
                            "Dot must be followed by attribute name.",
                        ));
                    }
                    steps.push(self.dot_step(dot, None)?);
                }
                TokenKind::OpenBracket => {
                    let open = self.take();
                    steps.push(self.lone_index(open)?);
                }
                _ => {
                    return Err(self.error_in(
                        root,
                        "Invalid character",
                        "Expected an attribute access or an index operator.",
                    ));
                }
            }
        }
        Ok(Traversal {
            root: self.text_of(root).into(),
            root_range: self.range_of(root),
            steps,
            range: self.since(root),
        })
    }

    fn lone_index(&mut self, open: usize) -> Parsed<TraversalStep> {
        let key = match self.peek() {
            TokenKind::Star => {
                self.take();
                None
            }
            TokenKind::Number => {
                let token = self.take();
                Some(self.number(token)?)
            }
            TokenKind::Minus => {
                // A negative index is valid syntax; evaluation reports that it is out of range.
                let sign = self.take();
                let Some(token) = self.eat(TokenKind::Number) else {
                    return Err(self.error_in(sign, "Index value required", INDEX_VALUE));
                };
                let text = format!("-{}", self.text_of(token));
                match cty::Number::parse(&text) {
                    Some(number) => Some(Value::number(number)),
                    None => {
                        return Err(self.error(
                            "Invalid number literal",
                            "This is not a number in decimal notation, such as 12, 0.5 or 1e3.",
                        ));
                    }
                }
            }
            TokenKind::OpenQuote => {
                let quote = self.take();
                Some(Value::string(self.plain_string(quote)?))
            }
            _ => return Err(self.error_in(open, "Index value required", INDEX_VALUE)),
        };
        if self.eat(TokenKind::CloseBracket).is_none() {
            return Err(self.error_in(open, "Unclosed index brackets", "A \"]\" must follow the key."));
        }
        let range = self.since(open);
        Ok(match key {
            Some(key) => TraversalStep::Index { key, range },
            None => TraversalStep::Splat { range },
        })
    }
}

const INDEX_VALUE: &str = "Between these brackets only a number or a string in quotes can stand.";

/// Returns the binary operator of a token, and its precedence; `None` for other tokens.
fn binary_operator(kind: TokenKind) -> Option<(BinaryOp, u8)> {
    Some(match kind {
        TokenKind::Or => (BinaryOp::Or, 1),
        TokenKind::And => (BinaryOp::And, 2),
        TokenKind::Equal => (BinaryOp::Equal, 3),
        TokenKind::NotEqual => (BinaryOp::NotEqual, 3),
        TokenKind::Less => (BinaryOp::Less, 4),
        TokenKind::LessOrEqual => (BinaryOp::LessOrEqual, 4),
        TokenKind::Greater => (BinaryOp::Greater, 4),
        TokenKind::GreaterOrEqual => (BinaryOp::GreaterOrEqual, 4),
        TokenKind::Plus => (BinaryOp::Add, 5),
        TokenKind::Minus => (BinaryOp::Subtract, 5),
        TokenKind::Star => (BinaryOp::Multiply, 6),
        TokenKind::Slash => (BinaryOp::Divide, 6),
        TokenKind::Percent => (BinaryOp::Modulo, 6),
        _ => return None,
    })
}

/// Combines the last two operands by the last waiting operator.
fn join(operands: &mut Vec<Expr>, waiting: &mut Vec<(BinaryOp, u8, Range)>) {
    if let (Some((op, _, op_range)), Some(right), Some(left)) = (waiting.pop(), operands.pop(), operands.pop()) {
        let range = left.range().to(right.range());
        operands.push(Expr::Binary {
            op,
            left: Box::new(left),
            right: Box::new(right),
            op_range,
            range,
        });
    }
}

/// Returns the value of a key that is a number or plain text; `None` for a key that must be evaluated.
fn static_key(key: &Expr) -> Option<Value> {
    match key {
        Expr::Literal { value, .. } if value.ty() == &Type::Number => Some(value.clone()),
        _ => key.as_literal_text().map(Value::string),
    }
}
