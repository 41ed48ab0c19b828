//! Hints for syntax errors that come from other languages (`and`, `not`, `??`, `key: value`): each names the form of this
//! language.

use crate::Edit;
use crate::token::{TokenKind, Tokens};

/// Returns a hint to add to an error at this token, if the token is a part of a form from another language.
pub(super) fn for_token(tokens: &Tokens<'_>, token: usize) -> Option<&'static str> {
    let after_not = || tokens.kind(token) != TokenKind::Assign && is_word(tokens, before(tokens, token), "not");
    match tokens.kind(token) {
        TokenKind::Ident => match tokens.text(token) {
            "and" => Some("Both of two conditions are asked for with \"&&\"; there is no operator \"and\"."),
            "or" => Some("One of two conditions is asked for with \"||\"; there is no operator \"or\"."),
            "if" => Some("To choose between two values, write \"condition ? value : other_value\"."),
            "in" => Some("Whether a collection has a value is asked with the function \"contains\"."),
            _ if after_not() => Some(NOT),
            _ => None,
        },
        TokenKind::Question if before(tokens, token).is_some_and(|b| tokens.kind(b) == TokenKind::Question) => Some(
            "There is no operator \"??\". The function \"coalesce\" gives the first of its arguments that is neither null nor an \
             empty string, and \"try\" the first without an error.",
        ),
        _ if after_not() => Some(NOT),
        _ => None,
    }
}

const NOT: &str = "The opposite of a condition is written with \"!\"; there is no operator \"not\".";

/// Returns a hint about the name of an argument that is followed by the token `next` instead of an equals sign.
pub(super) fn for_argument(tokens: &Tokens<'_>, name: usize, next: usize) -> Option<String> {
    let name = tokens.text(name);
    let then_assign = || {
        let kind = tokens.kind(next + 1);
        matches!(kind, TokenKind::Assign | TokenKind::Equal)
    };
    match tokens.kind(next) {
        TokenKind::Colon => Some(format!(
            "An argument is set with an equals sign, not with a colon: write \"{name} = ...\"."
        )),
        TokenKind::Plus | TokenKind::Minus | TokenKind::Star | TokenKind::Slash if then_assign() => Some(format!(
            "There is no \"{}=\": an argument is set once, with \"{name} = ...\", and cannot be changed afterwards. To add to a \
             value, write the whole expression, or use \"concat\" or \"merge\".",
            tokens.text(next)
        )),
        TokenKind::Equal => Some(format!(
            "Two equals signs compare values. An argument is set with one: write \"{name} = ...\"."
        )),
        TokenKind::Dot | TokenKind::OpenBracket => Some(
            "The left side of an argument is a plain name. To set a nested value, set the whole argument, or write a nested \
             block."
                .to_owned(),
        ),
        _ => None,
    }
}

/// Returns the edit that puts `=` after the name of an argument, if the sign is missing, or if `:`, `:=` or `==` is in
/// its place. If another kind of quote follows the name, returns the edit of [`mend_quotes`].
pub(super) fn mend_argument(tokens: &Tokens<'_>, name: usize, next: usize) -> Option<Edit> {
    let end = match tokens.kind(next) {
        TokenKind::Colon if tokens.kind(next + 1) == TokenKind::Assign => next + 1,
        TokenKind::Colon | TokenKind::Equal => next,
        // A number or a heredoc can only begin the value of an argument.
        TokenKind::Number | TokenKind::OpenHeredoc => name,
        // A quote of another kind begins a block's label.
        TokenKind::Invalid => return mend_quotes(tokens, next),
        _ => return None,
    };
    let written = tokens.range(name).to(&tokens.range(end));
    Some(Edit::stretch(&written, format!("{} =", tokens.text(name))))
}

/// Edit for a text in quotes that are not double quotes; `open` is the opening one. The text must end in its line and
/// need no escapes.
pub(super) fn mend_quotes(tokens: &Tokens<'_>, open: usize) -> Option<Edit> {
    let closing: &[&str] = match tokens.text(open) {
        "'" => &["'"],
        "“" | "„" => &["”", "“"],
        "‘" => &["’"],
        _ => return None,
    };
    let mut text = String::new();
    for token in open + 1..tokens.list.len() {
        let part = tokens.text(token);
        if closing.contains(&part) {
            let whole = tokens.range(open).to(&tokens.range(token));
            return Some(Edit::stretch(&whole, format!("\"{text}\"")));
        }
        if part.contains(['\n', '"', '\\', '$', '%', '\'', '‘', '“', '„']) {
            return None;
        }
        text.push_str(part);
    }
    None
}

/// Returns the last significant token before this one.
fn before(tokens: &Tokens<'_>, token: usize) -> Option<usize> {
    (0..token)
        .rev()
        .find(|i| !matches!(tokens.kind(*i), TokenKind::Blank | TokenKind::BlockComment))
}

fn is_word(tokens: &Tokens<'_>, token: Option<usize>, word: &str) -> bool {
    token.is_some_and(|t| tokens.kind(t) == TokenKind::Ident && tokens.text(t) == word)
}
