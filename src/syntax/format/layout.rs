//! Layout: indentation, blanks between tokens, and alignment with neighbouring lines.
//!
//! A line reaches from one line break of the code to the next: a heredoc belongs to the line in which it begins. A line
//! has up to three cells: the beginning, an assignment from its `=` on, and a comment at its end. In consecutive lines,
//! assignments begin in one column, and so do comments.

use unicode_segmentation::UnicodeSegmentation;

use super::Piece;
use crate::token::TokenKind;

/// Cells of a line, as token indexes: `start..assign`, `assign..comment`, `comment..end`.
struct Line {
    start: usize,
    assign: usize,
    comment: usize,
    end: usize,
}

impl Line {
    fn has_assignment(&self) -> bool {
        self.assign < self.comment
    }

    fn has_comment(&self) -> bool {
        self.comment < self.end
    }
}

/// Sets the number of blanks before each token.
pub(super) fn set_spaces(pieces: &mut [Piece<'_>]) {
    let lines = lines(pieces);
    indent(pieces, &lines);
    // Beginning and assignment are separated one by one: the blanks before the first token of each come from
    // indentation or alignment.
    for line in &lines {
        separate(&mut pieces[line.start..line.assign]);
        separate(&mut pieces[line.assign..line.comment]);
    }
    align(pieces, &lines, Line::has_assignment, |line| line.assign);
    align(pieces, &lines, Line::has_comment, |line| line.comment);
}

fn lines(pieces: &[Piece<'_>]) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut start = 0;
    for (index, piece) in pieces.iter().enumerate() {
        let at_end = piece.kind == TokenKind::Eof;
        if at_end && start < index {
            lines.push(line(pieces, start, index));
        }
        if !at_end && ends_line(piece) {
            lines.push(line(pieces, start, index + 1));
            start = index + 1;
        }
    }
    lines
}

fn ends_line(piece: &Piece<'_>) -> bool {
    match piece.kind {
        TokenKind::Newline => true,
        TokenKind::LineComment => piece.text.ends_with('\n'),
        _ => false,
    }
}

fn line(pieces: &[Piece<'_>], start: usize, end: usize) -> Line {
    let is_comment = matches!(pieces[end - 1].kind, TokenKind::LineComment | TokenKind::BlockComment);
    let comment = if is_comment && end - start > 1 { end - 1 } else { end };
    let equals = pieces[start..comment]
        .iter()
        .skip(1)
        .position(|p| p.kind == TokenKind::Assign)
        .map(|n| start + 1 + n);
    // A value that continues on the next line is not aligned.
    let whole = |at: &usize| pieces[*at..comment].iter().map(bracket_change).sum::<i64>() == 0;
    Line {
        start,
        assign: equals.filter(whole).unwrap_or(comment),
        comment,
        end,
    }
}

/// Returns 1 for a token that opens a bracket, -1 for one that closes a bracket.
fn bracket_change(piece: &Piece<'_>) -> i64 {
    use TokenKind as T;
    match piece.kind {
        T::OpenBrace | T::OpenBracket | T::OpenParen | T::OpenDirective | T::OpenInterpolation => 1,
        T::CloseBrace | T::CloseBracket | T::CloseParen | T::CloseSequence => -1,
        _ => 0,
    }
}

/// Indents the lines. A line that opens more brackets than it closes adds one step of indentation, even if it opens
/// several.
fn indent(pieces: &mut [Piece<'_>], lines: &[Line]) {
    // The number of open brackets that belong to each step.
    let mut steps: Vec<i64> = Vec::new();
    for line in lines {
        if pieces[line.start].kind == TokenKind::Newline {
            pieces[line.start].spaces = 0;
            continue;
        }
        let lead = &pieces[line.start..line.assign];
        // Brackets in the text of a heredoc are not code.
        let heredoc = lead.iter().position(|p| p.kind == TokenKind::OpenHeredoc);
        let lead = heredoc.and_then(|at| lead.get(..at)).unwrap_or(lead);
        let assigned = &pieces[line.assign..line.comment];
        let change: i64 = lead.iter().chain(assigned).map(bracket_change).sum();
        let mut closed = -change;
        while closed > 0 {
            let Some(step) = steps.last_mut() else { break };
            if closed < *step {
                *step -= closed;
                break;
            }
            closed -= *step;
            steps.pop();
        }
        pieces[line.start].spaces = 2 * steps.len();
        if change > 0 {
            steps.push(change);
        }
    }
}

/// Sets the blanks between the tokens of a cell.
fn separate(cell: &mut [Piece<'_>]) {
    for index in 1..cell.len() {
        let before = index.checked_sub(2).and_then(|i| cell.get(i)).map(|p| p.kind);
        let space = space_between(before, &cell[index - 1], &cell[index]);
        cell[index].spaces = usize::from(space);
    }
}

/// Returns true if a blank belongs between two tokens; `before` is the kind of the token before them.
fn space_between(before: Option<TokenKind>, subject: &Piece<'_>, after: &Piece<'_>) -> bool {
    use TokenKind as T;
    match (subject.kind, after.kind) {
        (_, T::Newline) => false,
        // These are names of functions and their namespaces.
        (T::Ident, T::OpenParen | T::DoubleColon) | (T::DoubleColon, T::Ident) => false,
        (T::Dot, _) | (_, T::Dot | T::Comma | T::Ellipsis) => false,
        (T::Comma, _) => true,
        // Blanks next to text would change the text.
        (T::QuotedText | T::Text | T::OpenQuote | T::OpenHeredoc, _) => false,
        (_, T::QuotedText | T::Text | T::CloseQuote | T::CloseHeredoc) => false,
        // In `for x in [a]`, the bracket is not an index.
        (T::Ident, _) if subject.text == "in" && before == Some(T::Ident) => true,
        (T::Ident | T::Number, T::OpenBracket) => false,
        (_, T::OpenBracket) if bracket_change(subject) < 0 => false,
        (T::Not, _) => false,
        // After a token that cannot end an operand, the minus is a sign.
        (T::Minus, _) => !matches!(
            before,
            None | Some(
                T::OpenParen
                    | T::OpenBrace
                    | T::OpenBracket
                    | T::Assign
                    | T::Colon
                    | T::Comma
                    | T::Question
                    | T::Plus
                    | T::Star
                    | T::Slash
                    | T::Percent
                    | T::Minus
                    | T::Equal
                    | T::NotEqual
                    | T::Greater
                    | T::GreaterOrEqual
                    | T::Less
                    | T::LessOrEqual
                    | T::And
                    | T::Or
                    | T::Not
            )
        ),
        (T::OpenBrace, T::CloseBrace) => false,
        (T::OpenBrace, _) | (_, T::CloseBrace) => true,
        // An object that is alone in a sequence, as in `${ {} }`.
        (T::OpenInterpolation | T::OpenDirective, T::OpenBrace) | (T::CloseBrace, T::CloseSequence) => true,
        (T::CloseSequence, T::OpenInterpolation | T::OpenDirective) => false,
        _ => bracket_change(subject) <= 0 && bracket_change(after) >= 0,
    }
}

/// Aligns the cells that begin at `at` in one column, for each run of lines that have such a cell.
fn align(pieces: &mut [Piece<'_>], lines: &[Line], has: fn(&Line) -> bool, at: fn(&Line) -> usize) {
    for run in lines.chunk_by(|a, b| has(a) == has(b)) {
        if !run.first().is_some_and(has) {
            continue;
        }
        let widths: Vec<usize> = run.iter().map(|line| columns(&pieces[line.start..at(line)])).collect();
        let widest = widths.iter().copied().max().unwrap_or_default();
        for (line, width) in run.iter().zip(widths) {
            pieces[at(line)].spaces = widest - width + 1;
        }
    }
}

fn columns(pieces: &[Piece<'_>]) -> usize {
    // The common case needs no search for grapheme clusters; "\r\n" is one cluster.
    let width = |text: &str| {
        if text.is_ascii() && !text.contains('\r') {
            text.len()
        } else {
            text.graphemes(true).count()
        }
    };
    pieces.iter().map(|p| p.spaces + width(&p.text)).sum()
}
