//! Bodies: arguments and blocks.

use std::collections::HashMap;
use std::sync::Arc;

use crate::ast::{Attribute, Block, Body, Label};
use crate::token::TokenKind;
use crate::{Diagnostic, Edit, Range, lexer};

use super::{Abort, Parsed, Parser};

const NO_ITEM: &str = "Argument or block definition required";
const NO_ITEM_DETAIL: &str = "Only arguments and blocks can stand here.";
const USE_EQUALS: &str = "Only arguments and blocks can stand here. An argument is written as a name, an equals sign \
                          and a value.";
const NO_BLOCK: &str = "Invalid block definition";
const NO_SINGLE: &str = "Invalid single-argument block definition";

/// Items of a body that have been read so far.
#[derive(Default)]
struct Items {
    attributes: Vec<Attribute>,
    blocks: Vec<Block>,
    /// Attribute names, with their ranges.
    names: HashMap<Arc<str>, Range>,
}

enum Item {
    Attribute(Attribute),
    Block(Block),
    /// An argument in the form of another language. It has been reported.
    Foreign,
}

impl Parser<'_> {
    pub(super) fn file_body(&mut self) -> Body {
        let mut items = Items::default();
        loop {
            self.items(&mut items);
            if self.peek() != TokenKind::CloseBrace || self.too_many_errors() {
                break;
            }
            // This is a closing brace without an opening one. After an error, it likely means that recovery skipped an
            // opening brace.
            if !self.in_doubt {
                self.error(NO_ITEM, NO_ITEM_DETAIL);
            }
            let brace = self.take();
            self.skip_body_item(brace);
        }
        let end = self.tokens.list.len() - 1;
        let range = Range {
            end: self.tokens.end(end),
            ..self.range_of(0)
        };
        let begin = Range {
            end: range.start,
            ..range.clone()
        };
        Body {
            attributes: items.attributes,
            blocks: items.blocks,
            range,
            end: begin,
        }
    }

    /// Reads items up to a closing brace, or the end of the file.
    fn items(&mut self, items: &mut Items) {
        while !self.too_many_errors() {
            let start = self.next();
            match self.peek() {
                TokenKind::Newline => {
                    self.take();
                }
                TokenKind::CloseBrace | TokenKind::Eof => return,
                TokenKind::Ident => {
                    let errors = self.furthest_error;
                    let column = self.tokens.start(start).column;
                    // An item that begins at the column of the doubtful item, or left of it, is outside of that item.
                    // Errors after it are not consequences.
                    if self.doubt.is_some_and(|(_, doubtful)| column <= doubtful) {
                        self.doubt = None;
                    }
                    let outer = std::mem::replace(&mut self.item_column, column);
                    let result = self.item();
                    self.item_column = outer;
                    if self.furthest_error != errors {
                        self.in_doubt = true;
                    } else if column == 1 && matches!(result, Ok(Item::Block(_))) {
                        // A whole block at the left margin without errors shows that the braces before it are balanced.
                        self.in_doubt = false;
                    }
                    if result.is_err() {
                        self.skip_body_item(start);
                    }
                    match result {
                        Ok(Item::Attribute(attribute)) => self.add_attribute(items, attribute),
                        Ok(Item::Block(block)) => items.blocks.push(block),
                        Ok(Item::Foreign) | Err(_) => {}
                    }
                }
                TokenKind::OpenQuote => {
                    let edit = self.unquoted_name();
                    self.mended_by(edit, |parser| {
                        parser.error("Invalid argument name", "Argument names must not be quoted.")
                    });
                    self.skip_body_item(start);
                }
                _ => {
                    self.error(NO_ITEM, NO_ITEM_DETAIL);
                    self.skip_body_item(start);
                }
            }
        }
    }

    fn add_attribute(&mut self, items: &mut Items, attribute: Attribute) {
        match items.names.get(&attribute.name) {
            Some(existing) => self.report(
                Diagnostic::error(
                    "Attribute redefined",
                    format!(
                        "The argument \"{}\" already has a value, set at {existing}. Remove one of the two.",
                        attribute.name
                    ),
                )
                .at(&attribute.name_range),
            ),
            None => {
                items.names.insert(attribute.name.clone(), attribute.name_range.clone());
                items.attributes.push(attribute);
            }
        }
    }

    /// Reads an argument or a block, with the line break that ends it.
    fn item(&mut self) -> Parsed<Item> {
        let name = self.take();
        match self.peek() {
            TokenKind::Assign => {
                let errors = self.furthest_error;
                let attribute = self.attribute(name)?;
                match self.peek() {
                    TokenKind::Newline => {
                        self.take();
                    }
                    TokenKind::Eof => {}
                    // Recovery may have stopped before the end of a broken value.
                    _ if self.furthest_error != errors => self.skip_body_item(name),
                    TokenKind::Comma => {
                        let comma = self.next();
                        let is_last = self.is_last_of_line(comma);
                        let edit = is_last.then(|| Edit::stretch(&self.range_of(comma), ""));
                        self.mended_by(edit, |parser| {
                            parser.error_in(
                                name,
                                "Unexpected comma after argument",
                                "In a block, each argument stands on its own line, with no comma after it.",
                            )
                        });
                        self.skip_body_item(name);
                    }
                    _ => {
                        self.error_in(
                            name,
                            "Missing newline after argument",
                            "Begin a new line after the value.",
                        );
                        self.skip_body_item(name);
                    }
                }
                Ok(Item::Attribute(attribute))
            }
            TokenKind::OpenQuote | TokenKind::OpenBrace | TokenKind::Ident => {
                // Nested blocks call this function recursively, so the depth is limited here.
                self.enter().inspect_err(|_| self.too_deep = true)?;
                let block = self.block(name);
                self.leave();
                block.map(Item::Block)
            }
            _ if super::hints::for_argument(self.tokens, name, self.next()).is_some() => {
                let _: Abort = self.misplaced_name(name);
                self.skip_line(name);
                Ok(Item::Foreign)
            }
            _ => Err(self.misplaced_name(name)),
        }
    }

    fn misplaced_name(&mut self, name: usize) -> Abort {
        let range = self.range_of(name);
        let hint = super::hints::for_argument(self.tokens, name, self.next());
        let detail = hint.map_or_else(|| USE_EQUALS.to_owned(), |hint| format!("{NO_ITEM_DETAIL} {hint}"));
        let mut problem = Diagnostic::error(NO_ITEM, detail).at(&range);
        problem.edit = super::hints::mend_argument(self.tokens, name, self.next());
        self.error_at(name, problem)
    }

    /// Edit for an argument that looks like the header of a block because its equals sign is missing.
    fn missing_equals(&self, name: usize, labels: &[Label]) -> Option<Edit> {
        let is_value = matches!(
            self.peek(),
            TokenKind::Newline | TokenKind::Eof | TokenKind::Dot | TokenKind::OpenParen
        );
        // At depth 1, the block is at the top of the file, where no arguments are allowed.
        let is_argument = self.depth > 1 && labels.len() == 1 && is_value;
        is_argument.then(|| Edit::stretch(&self.range_of(name), format!("{} =", self.text_of(name))))
    }

    /// Edit for an argument name in quotes, with the colon that follows it in JSON.
    fn unquoted_name(&self) -> Option<Edit> {
        let (open, close) = (self.next(), self.next() + 2);
        let name = self.tokens.text(open + 1);
        let is_name = lexer::is_name(name) && self.tokens.kind(close) == TokenKind::CloseQuote;
        let (end, new) = match self.tokens.kind(close + 1) {
            TokenKind::Colon => (close + 1, format!("{name} =")),
            _ => (close, name.to_owned()),
        };
        is_name.then(|| Edit::stretch(&self.range_of(open).to(&self.range_of(end)), new))
    }

    fn is_last_of_line(&self, token: usize) -> bool {
        let mut after = token + 1;
        while self.tokens.kind(after) == TokenKind::Blank {
            after += 1;
        }
        self.tokens.kind(after) == TokenKind::Eof || self.tokens.ends_line(after)
    }

    fn attribute(&mut self, name: usize) -> Parsed<Attribute> {
        self.take();
        let expr = self.expression()?;
        Ok(Attribute {
            name: self.text_of(name).into(),
            name_range: self.range_of(name),
            expr,
            range: self.since(name),
        })
    }

    fn block(&mut self, name: usize) -> Parsed<Block> {
        let mut labels = Vec::new();
        let complete = self.labels(name, &mut labels);
        let header = self.since(name);
        let open = match complete {
            Ok(()) => self.take(),
            // Parsing continues inside of the block. Otherwise its arguments would be added to the body around
            // it.
            Err(Abort) if self.skip_to_headless_body(name) => self.last,
            Err(Abort) => return Err(Abort),
        };
        let mut items = Items::default();
        match self.peek() {
            _ if complete.is_err() => self.items(&mut items),
            TokenKind::Newline | TokenKind::CloseBrace | TokenKind::Eof => self.items(&mut items),
            _ => self.single_line_body(open, &mut items)?,
        }
        if self.eat(TokenKind::CloseBrace).is_none() && !self.too_many_errors() {
            let nearer = match self.last_unclosed(open) {
                Some(opener) if opener != open => format!(
                    " Judging by the indentation, it is the \"{}\" at {} that is not closed.",
                    self.text_of(opener),
                    self.range_of(opener)
                ),
                _ => String::new(),
            };
            let problem = Diagnostic::error(
                "Unclosed configuration block",
                format!("The file ends before this block is closed by \"}}\".{nearer}"),
            );
            let end = self.next();
            self.error_at(
                end,
                problem
                    .at(&self.range_of(open))
                    .within(&self.range_of(name).to(&self.range_of(open))),
            );
        }
        let range = self.since(name);
        let open_range = self.range_of(open);
        let body = Body {
            attributes: items.attributes,
            blocks: items.blocks,
            range: Range {
                file: range.file.clone(),
                start: open_range.end,
                end: self.tokens.start(self.last),
            },
            end: Range {
                end: open_range.start,
                ..open_range.clone()
            },
        };
        match self.peek() {
            TokenKind::Newline => {
                self.take();
            }
            TokenKind::Eof => {}
            _ => {
                self.error_in(
                    name,
                    "Missing newline after block definition",
                    "Begin a new line after the block.",
                );
                self.skip_body_item(self.last);
            }
        }
        Ok(Block {
            ty: self.text_of(name).into(),
            type_range: self.range_of(name),
            labels,
            body,
            header,
            open: open_range,
            range,
        })
    }

    /// Reads the labels of a block, up to the opening brace.
    fn labels(&mut self, name: usize, labels: &mut Vec<Label>) -> Parsed<()> {
        loop {
            let detail = match self.peek() {
                TokenKind::OpenBrace => return Ok(()),
                TokenKind::OpenQuote => {
                    labels.push(self.quoted_label()?);
                    continue;
                }
                TokenKind::Ident => {
                    let label = self.take();
                    labels.push(Label {
                        text: self.text_of(label).into(),
                        range: self.range_of(label),
                    });
                    continue;
                }
                TokenKind::Assign => "A block has no equals sign after its labels; only an argument has one.",
                TokenKind::Newline => {
                    "The \"{\" that opens a block's content must stand on the line of its type and labels."
                }
                _ => "After the type of a block come its labels, in quotes, and then \"{\".",
            };
            let edit = self.missing_equals(name, labels);
            return Err(self.mended_by(edit, |parser| parser.error_in(name, NO_BLOCK, detail)));
        }
    }

    /// Reads the content of `b { a = 1 }`. On success, the closing brace is next.
    fn single_line_body(&mut self, open: usize, items: &mut Items) -> Parsed<()> {
        let result = self.single_argument();
        let complete = result.is_ok();
        if let Ok(attribute) = result {
            self.add_attribute(items, attribute);
        }
        if complete {
            let detail = match self.peek() {
                TokenKind::CloseBrace => return Ok(()),
                TokenKind::Comma => {
                    "A block on one line holds one argument at most. Write this block over several lines, one for \
                     each argument."
                }
                TokenKind::Newline => {
                    "A block whose argument stands on the line of its \"{\" must be closed on that line too. Put \
                     \"}\" after the argument, or move the argument to the next line."
                }
                _ => "In a block on one line, \"}\" must follow the argument.",
            };
            self.error(NO_SINGLE, detail);
        }
        if !self.skip_to_closer(open) {
            return Err(Abort);
        }
        // The parser goes back to the closing brace, which the caller consumes.
        self.at = self.last;
        Ok(())
    }

    fn single_argument(&mut self) -> Parsed<Attribute> {
        if self.peek() != TokenKind::Ident {
            return Err(self.error(NO_ITEM, NO_ITEM_DETAIL));
        }
        let name = self.take();
        match self.peek() {
            TokenKind::Assign => self.attribute(name),
            TokenKind::OpenQuote | TokenKind::OpenBrace | TokenKind::Ident => {
                let range = self.range_of(name).to(&self.range_of(self.next()));
                let detail = format!(
                    "A block on one line can hold one argument and no blocks. If \"{}\" is an argument, put an equals \
                     sign before its value; if it is a block, give it a line of its own.",
                    self.text_of(name)
                );
                Err(self.error_at(
                    name,
                    Diagnostic::error("Argument definition required", detail).at(&range),
                ))
            }
            _ => Err(self.misplaced_name(name)),
        }
    }

    fn quoted_label(&mut self) -> Parsed<Label> {
        let open = self.take();
        let text = self.plain_string(open)?;
        Ok(Label {
            text: text.into(),
            range: self.since(open),
        })
    }
}
