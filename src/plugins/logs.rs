//! Output of plugins: relayed to the log at its level, with the last lines kept for exit reports.

use std::collections::VecDeque;
use std::sync::Mutex;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};
use tracing::Level;

/// Maximum length of a line in bytes; longer ones are split.
const LINE_LIMIT: usize = 64 << 10;
/// Number of lines that are kept for an exit report.
const KEPT_LINES: usize = 20;
/// Number of lines that are kept of a Go panic: its message and the top of the stack.
const KEPT_PANIC: usize = 40;

/// Last lines of a plugin's standard error, and the beginning of its panic if there was one.
#[derive(Debug, Default)]
pub struct Tail(Mutex<TailLines>);

#[derive(Debug, Default)]
struct TailLines {
    last: VecDeque<String>,
    panic: Vec<String>,
}

impl Tail {
    pub fn push(&self, line: &str) {
        let mut lines = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let starts = line.starts_with("panic: ") || line.starts_with("fatal error: ");
        if (starts || !lines.panic.is_empty()) && lines.panic.len() < KEPT_PANIC {
            lines.panic.push(line.to_owned());
        }
        // Entries of go-plugin's own log that are less severe than a warning do not explain a crash.
        let chatter = line.starts_with("{\"@") && !line.contains(":\"error\"") && !line.contains(":\"warn\"");
        if chatter {
            return;
        }
        if lines.last.len() == KEPT_LINES {
            lines.last.pop_front();
        }
        lines.last.push_back(line.to_owned());
    }

    /// Returns the lines that explain a crash best: the panic, or else the last lines.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let lines = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if lines.panic.is_empty() {
            lines
                .last
                .iter()
                .map(|line| Entry::read(line).message.into_owned())
                .collect()
        } else {
            lines.panic.clone()
        }
    }
}

/// Parsed log line of a plugin.
#[derive(Debug, PartialEq)]
struct Entry<'l> {
    level: Level,
    module: String,
    message: std::borrow::Cow<'l, str>,
    /// Further fields as JSON; empty if there are none.
    fields: String,
}

impl<'l> Entry<'l> {
    /// Parses a line: JSON as HashiCorp's logger writes it, `[LEVEL] text`, or any other text.
    fn read(line: &'l str) -> Entry<'l> {
        if line.starts_with('{')
            && let Ok(serde_json::Value::Object(mut json)) = serde_json::from_str(line)
            && let Some(serde_json::Value::String(message)) = json.remove("@message")
        {
            let mut text = |name: &str| match json.remove(name) {
                Some(serde_json::Value::String(text)) => text,
                _ => String::new(),
            };
            let level = level(&text("@level")).unwrap_or(Level::DEBUG);
            let module = text("@module");
            let timestamp = text("@timestamp");
            if !timestamp.is_empty() {
                json.insert("timestamp".into(), timestamp.into());
            }
            let fields = if json.is_empty() {
                String::new()
            } else {
                serde_json::Value::Object(json).to_string()
            };
            return Entry {
                level,
                module,
                message: message.into(),
                fields,
            };
        }
        // A line in neither form was printed to standard error without the logger, often by a crash, so it is a
        // warning.
        let mut entry = Entry {
            level: Level::WARN,
            module: String::new(),
            message: line.into(),
            fields: String::new(),
        };
        if let Some((name, rest)) = line.strip_prefix('[').and_then(|l| l.split_once(']'))
            && let Some(level) = level(name)
        {
            entry.level = level;
            entry.message = rest.trim_start().into();
        }
        entry
    }
}

/// Returns the host that a built-in plugin waits for; `None` if the line is not its message about a wait.
#[must_use]
pub fn waiting_for(line: &str) -> Option<String> {
    // The marker is searched for first, because parsing every line as JSON would take more time.
    if !line.contains(proto::WAITING) {
        return None;
    }
    let entry = Entry::read(line);
    (entry.module == proto::WAITING).then(|| files::plain(&entry.message))
}

fn level(name: &str) -> Option<Level> {
    Some(match name.to_ascii_lowercase().as_str() {
        "trace" => Level::TRACE,
        "debug" => Level::DEBUG,
        "info" => Level::INFO,
        "warn" => Level::WARN,
        "error" | "err" => Level::ERROR,
        _ => return None,
    })
}

/// Returns true if logs of plugins are recorded. In most runs they are not.
pub fn wanted() -> bool {
    tracing::enabled!(target: "provider", Level::ERROR)
}

/// Returns a plugin's name in logs: that of its executable (`terraform-provider-null_v3.2.3`), or the part before the
/// version for a built-in plugin.
#[must_use]
pub fn name(title: &str, program: Option<&std::path::Path>) -> String {
    let file = program.and_then(|p| p.file_name()).map(|n| n.to_string_lossy());
    if let Some(file) = file.filter(|n| n.starts_with("terraform-")) {
        return file.into_owned();
    }
    // `provider "hashicorp/null"`.
    match title.trim_end_matches('"').split_once(" \"") {
        Some((kind, source)) => format!("terraform-{kind}-{}", source.rsplit('/').next().unwrap_or_default()),
        None => title.to_owned(),
    }
}

/// Writes a plugin's line to the log, under the target `provider`, with the plugin's name.
pub fn relay(plugin: &str, line: &str) {
    if !wanted() {
        return;
    }
    let Entry {
        level,
        module,
        message,
        fields,
    } = Entry::read(line);
    // The level of a tracing event is fixed at compile time, so each level needs its own.
    macro_rules! log {
        ($level:ident) => {
            tracing::event!(target: "provider", Level::$level, plugin, module, fields, "{message}")
        };
    }
    match level {
        Level::ERROR => log!(ERROR),
        Level::WARN => log!(WARN),
        Level::INFO => log!(INFO),
        Level::DEBUG => log!(DEBUG),
        Level::TRACE => log!(TRACE),
    }
}

/// Reads one line without its end, or the first [`LINE_LIMIT`] bytes of a longer one; `None` at the end of the stream.
pub async fn read_line(reader: &mut (impl AsyncBufRead + Unpin)) -> std::io::Result<Option<String>> {
    // tokio's `read_line` has no limit, and fails at bytes that are not UTF-8.
    let mut line = Vec::new();
    let mut any = false;
    loop {
        let available = reader.fill_buf().await?;
        if available.is_empty() {
            break;
        }
        any = true;
        let room = LINE_LIMIT - line.len();
        let end = available.iter().position(|&byte| byte == b'\n');
        let take = end.unwrap_or(available.len()).min(room);
        line.extend_from_slice(&available[..take]);
        let ended = end == Some(take);
        reader.consume(take + usize::from(ended));
        if ended || line.len() == LINE_LIMIT {
            break;
        }
    }
    if !any {
        return Ok(None);
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Ok(Some(String::from_utf8_lossy(&line).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_found_in_every_form() {
        let json = r#"{"@level":"warn","@message":"slow","@module":"sdk.proto","@timestamp":"2024-01-01","tries":2}"#;
        let entry = Entry::read(json);
        assert_eq!(
            (entry.level, &*entry.message, &*entry.module),
            (Level::WARN, "slow", "sdk.proto")
        );
        assert_eq!(entry.fields, r#"{"tries":2,"timestamp":"2024-01-01"}"#);
        let entry = Entry::read("[ERROR] broken");
        assert_eq!((entry.level, &*entry.message), (Level::ERROR, "broken"));
        for plain in ["hello", "[nonsense] x", "{\"a\":1}", "{", "["] {
            let entry = Entry::read(plain);
            assert_eq!((entry.level, &*entry.message), (Level::WARN, plain));
        }
    }

    #[test]
    fn a_panic_is_kept_whole_and_other_lines_from_the_end() {
        let tail = Tail::default();
        (0..100).for_each(|i| tail.push(&format!("line {i}")));
        assert_eq!(tail.lines().len(), KEPT_LINES);
        assert_eq!(tail.lines().last().map(String::as_str), Some("line 99"));
        tail.push(r#"{"@level":"debug","@message":"chatter"}"#);
        tail.push(r#"{"@level":"error","@message":"trouble"}"#);
        assert_eq!(tail.lines()[KEPT_LINES - 2..], ["line 99", "trouble"]);
        tail.push("panic: oh no");
        (0..100).for_each(|i| tail.push(&format!("frame {i}")));
        assert_eq!(tail.lines()[0], "panic: oh no");
        assert_eq!(tail.lines().len(), KEPT_PANIC);
    }

    #[tokio::test]
    async fn lines_of_any_length_and_encoding() {
        let mut text = b"one\r\n\ntw\xffo\n".to_vec();
        text.extend(std::iter::repeat_n(b'x', LINE_LIMIT + 5));
        let mut reader = &text[..];
        let mut lines = Vec::new();
        while let Some(line) = read_line(&mut reader).await.unwrap() {
            lines.push(line);
        }
        assert_eq!(lines[..3], ["one", "", "tw\u{fffd}o"]);
        assert_eq!((lines[3].len(), lines[4].len(), lines.len()), (LINE_LIMIT, 5, 5));
    }
}
