//! Output of commands, in the form for provisioners: split into lines, with the last bytes kept for error messages.

use std::collections::VecDeque;

/// The maximum length of a line. Longer lines are split.
const LONGEST: usize = 64 * 1024;

/// A splitter of pieces of output into lines.
#[derive(Debug, Default)]
pub struct Lines {
    begun: Vec<u8>,
}

impl Lines {
    /// Creates a splitter without input.
    #[must_use]
    pub fn new() -> Lines {
        Lines::default()
    }

    /// Adds a piece of output. Returns the lines that end in it, without their line ends.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|b| *b == b'\n') {
            self.begun.extend_from_slice(&rest[..end]);
            lines.extend(Some(text(&std::mem::take(&mut self.begun))));
            rest = &rest[end + 1..];
        }
        self.begun.extend_from_slice(rest);
        if self.begun.len() > LONGEST {
            lines.extend(self.rest());
        }
        lines
    }

    /// Returns true if a line has begun and is not complete.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        !self.begun.is_empty()
    }

    /// Takes the text of a line that has not ended; `None` if there is none. If the last character is incomplete, its bytes stay in the
    /// buffer, unless the buffer has nothing else.
    pub fn rest(&mut self) -> Option<String> {
        if self.begun.is_empty() {
            return None;
        }
        let whole = match std::str::from_utf8(&self.begun) {
            Err(e) if e.error_len().is_none() && e.valid_up_to() > 0 => e.valid_up_to(),
            _ => self.begun.len(),
        };
        let rest = self.begun.split_off(whole);
        let begun = std::mem::replace(&mut self.begun, rest);
        Some(text(&begun))
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The last bytes of an output.
#[derive(Debug)]
pub struct Tail {
    bytes: VecDeque<u8>,
    limit: usize,
}

impl Tail {
    /// Creates a tail of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Tail {
        Tail {
            bytes: VecDeque::new(),
            limit,
        }
    }

    /// Adds a piece of output, and drops the oldest bytes beyond the limit.
    pub fn push(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(self.limit)..];
        let over = (self.bytes.len() + bytes.len()).saturating_sub(self.limit);
        self.bytes.drain(..over);
        self.bytes.extend(bytes);
    }

    /// Returns the kept bytes as text.
    #[must_use]
    pub fn text(&self) -> String {
        let (a, b) = self.bytes.as_slices();
        text(&[a, b].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_become_lines() {
        let mut lines = Lines::new();
        assert_eq!(lines.push(b"a\nb"), ["a"]);
        assert!(lines.is_waiting());
        assert_eq!(lines.push(b"c\n\nd\r\n"), ["bc", "", "d\r"]);
        assert_eq!(lines.rest(), None);
        assert_eq!(lines.push("x\u{20ac}".as_bytes().split_at(2).0), [""; 0]);
        assert_eq!(lines.rest().as_deref(), Some("x"));
        assert_eq!(lines.push(b"\x82\xac\n"), ["\u{20ac}"]);
        assert_eq!(lines.push(&vec![b'x'; LONGEST + 1]).len(), 1);
    }

    #[test]
    fn the_tail_is_the_end() {
        let mut tail = Tail::new(4);
        tail.push(b"ab");
        tail.push(b"cde");
        assert_eq!(tail.text(), "bcde");
        tail.push(b"0123456789");
        assert_eq!(tail.text(), "6789");
    }
}
