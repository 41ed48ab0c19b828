//! The logs of plans and applies, read while they are written.
//!
//! A log is read in pieces, from its URL with an offset and a limit. Servers put the control characters STX before its
//! first byte and ETX after its last, so that a complete log is recognized. Older servers send neither; there the log
//! ends when the plan or apply has ended and no more bytes come.

use std::time::Duration;

use crate::api::ApiError;
use crate::{Connection, RunPlan};

const STX: u8 = 2;
const ETX: u8 = 3;

/// Number of bytes that are requested at a time.
const LIMIT: usize = 64 * 1024;

/// First pause while there are no new bytes.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// Longest pause while there are no new bytes.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Number of empty reads after which the status of the plan or apply is requested, once its log has begun.
const GIVING_UP: u32 = 10;

/// Operation that a log belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogOf {
    Plan,
    Apply,
}

/// A log that is being read.
#[derive(Debug)]
pub struct Log {
    of: LogOf,
    id: String,
    address: String,
    text: Text,
    /// Number of consecutive empty reads.
    idle: u32,
    /// Beginning of a line that is not complete yet.
    begun: Vec<u8>,
    ended: bool,
}

/// Read position in a log, and the state of its start and end marks.
#[derive(Debug, Default)]
struct Text {
    offset: usize,
    started: bool,
    ended: bool,
}

impl Text {
    /// Removes STX and ETX from a piece.
    fn take<'b>(&mut self, mut piece: &'b [u8]) -> &'b [u8] {
        // The marks count for the offset, because they are part of the log on the server.
        self.offset += piece.len();
        if !self.started
            && let [STX, rest @ ..] = piece
        {
            self.started = true;
            piece = rest;
        }
        if self.started
            && let [rest @ .., ETX] = piece
        {
            self.ended = true;
            piece = rest;
        }
        piece
    }

    /// Returns true if the plan or apply may have ended, after this number of empty reads.
    fn is_doubtful(&self, idle: u32) -> bool {
        match (self.started, self.ended) {
            // Nothing follows the end mark, so the status is requested at once.
            (true, true) => true,
            // The process that writes the log may have died before it wrote the end mark.
            (true, false) => idle.is_multiple_of(GIVING_UP),
            // Either an older server writes no marks, or the log has not begun.
            (false, _) => idle > 1,
        }
    }
}

impl Connection {
    /// Opens the log of a plan or an apply.
    ///
    /// # Errors
    /// There is no log, or the request failed.
    pub async fn log(&self, of: LogOf, id: &str) -> Result<Log, ApiError> {
        let subject = self.subject(of, id).await?;
        let address = subject
            .log
            .ok_or_else(|| ApiError::Failed(format!("{id} has no address of a log")))?;
        Ok(Log {
            of,
            id: id.to_owned(),
            address,
            text: Text::default(),
            idle: 0,
            begun: Vec::new(),
            ended: false,
        })
    }

    async fn subject(&self, of: LogOf, id: &str) -> Result<RunPlan, ApiError> {
        match of {
            LogOf::Plan => self.run_plan(id).await,
            LogOf::Apply => self.run_apply(id).await,
        }
    }

    /// Returns the next lines of a log, without their ends; waits until there are any. `None` at the end of the log.
    ///
    /// # Errors
    /// A request failed.
    pub async fn log_lines(&self, log: &mut Log) -> Result<Option<Vec<String>>, ApiError> {
        if log.ended {
            return Ok(None);
        }
        loop {
            let joint = if log.address.contains('?') { '&' } else { '?' };
            let address = format!("{}{joint}limit={LIMIT}&offset={}", log.address, log.text.offset);
            let piece = self.api.download(&address).await?;
            let new = log.text.take(&piece);
            if !new.is_empty() {
                log.idle = 0;
                log.begun.extend_from_slice(new);
                let lines = lines(&mut log.begun);
                if !lines.is_empty() {
                    return Ok(Some(lines));
                }
                // A part of a line was read, so the rest is probably available already, and there is no pause.
                continue;
            }
            // STX may come alone, before the first bytes of the log.
            let only_marks = !piece.is_empty() && !log.text.ended;
            if !only_marks && log.text.is_doubtful(log.idle) && self.subject(log.of, &log.id).await?.is_finished() {
                log.ended = true;
                let last = std::mem::take(&mut log.begun);
                return Ok((!last.is_empty()).then(|| vec![String::from_utf8_lossy(&last).into_owned()]));
            }
            log.idle += 1;
            tokio::time::sleep(pause(log.idle)).await;
        }
    }
}

/// Returns the pause after this number of empty reads.
fn pause(idle: u32) -> Duration {
    // The exponent is limited so that the power stays finite; the pause has reached its longest long before.
    FIRST_PAUSE
        .mul_f64(2_f64.powf(f64::from(idle.min(20)) / 5.0))
        .min(LONGEST_PAUSE)
}

/// Removes the complete lines from the buffer and returns them.
fn lines(begun: &mut Vec<u8>) -> Vec<String> {
    // Lines are split as bytes, and decoded only when they are complete, because a piece may end inside a
    // character.
    let Some(end) = begun.iter().rposition(|b| *b == b'\n') else {
        return Vec::new();
    };
    let rest = begun.split_off(end + 1);
    let whole = std::mem::replace(begun, rest);
    let text = String::from_utf8_lossy(&whole).into_owned();
    text.lines().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_taken_off_and_counted() {
        let mut text = Text::default();
        assert_eq!(text.take(b"\x02"), b"");
        assert!(text.started && !text.is_doubtful(1) && text.is_doubtful(10));
        assert_eq!(text.take(b"ab\n"), b"ab\n");
        assert_eq!(text.take(b"c\x03"), b"c");
        assert_eq!((text.offset, text.ended), (6, true));
        let mut old = Text::default();
        assert_eq!(old.take(b"no marks\x03"), b"no marks\x03");
        assert!(!old.is_doubtful(1) && old.is_doubtful(2));
    }

    #[test]
    fn lines_are_whole() {
        let mut begun = b"a\r\nb\n\nrest".to_vec();
        assert_eq!(lines(&mut begun), ["a", "b", ""]);
        assert_eq!(begun, b"rest");
        assert!(lines(&mut begun).is_empty());
    }

    #[test]
    fn pauses_grow_to_two_seconds() {
        assert!(pause(1) > FIRST_PAUSE && pause(4) < LONGEST_PAUSE);
        assert_eq!(pause(1000), LONGEST_PAUSE);
    }
}
