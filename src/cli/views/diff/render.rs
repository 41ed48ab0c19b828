//! Writing differences down.
//!
//! Every line is indented by four columns a level; the last two of them hold the symbol of what happens there. The
//! functions here give the text behind the symbol, and whatever lines follow, without a final line break.

use std::collections::BTreeMap;

use cty::{Kind as ValueKind, Value};
use unicode_width::UnicodeWidthStr as _;

use crate::ui::Style;
use crate::views::diff::{Blocks, Change, Diff, Kind};

/// Attributes that identify an object: shown even if they do not change.
const IDENTIFYING: &[&str] = &["id", "name", "tags"];

/// How a difference is written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Without `-> null` behind what goes.
    pub no_null: bool,
    /// With what does not change.
    pub show_unchanged: bool,
}

/// Writes differences.
#[derive(Clone, Copy, Debug, Default)]
pub struct Writer {
    /// Colours.
    pub style: Style,
    /// Without symbols: nothing is about to happen.
    pub no_symbols: bool,
}

/// Text in quotes, as the language writes it.
pub(super) fn quoted(text: &str) -> String {
    addrs::module::quoted(text)
}

impl Writer {
    pub(super) fn indent(&self, level: usize) -> String {
        " ".repeat(4 * level)
    }

    /// The columns before a symbol at this level.
    pub(super) fn indent_for_symbol(&self, level: usize) -> String {
        " ".repeat(if self.no_symbols {
            4 * level
        } else {
            (4 * level).saturating_sub(2)
        })
    }

    /// The symbol of a change, with a blank behind it.
    pub(crate) fn symbol(&self, change: Change) -> String {
        if self.no_symbols {
            return String::new();
        }
        match change {
            Change::None => "  ".into(),
            Change::Create => format!("{} ", self.style.green("+")),
            Change::Update => format!("{} ", self.style.yellow("~")),
            Change::Delete => format!("{} ", self.style.red("-")),
        }
    }

    pub(super) fn forces_replacement(&self) -> String {
        format!(" {}", self.style.red("# forces replacement"))
    }

    pub(super) fn note(&self, note: &str) -> String {
        if note.is_empty() {
            String::new()
        } else {
            format!(" {}", self.style.dim(note.trim_start()))
        }
    }

    /// Text inside a heredoc: what would begin a template is written so that it does not.
    pub(super) fn escaped(&self, line: &str) -> String {
        line.replace("${", "$${").replace("%{", "%%{")
    }

    fn arrow(&self) -> String {
        self.style.yellow("->")
    }

    fn null_suffix(&self, change: Change, options: Options) -> String {
        if change == Change::Delete && !options.no_null {
            format!(" {}", self.style.dim("-> null"))
        } else {
            String::new()
        }
    }

    fn replacement(&self, diff: &Diff) -> String {
        if diff.replace && diff.change != Change::None {
            self.forces_replacement()
        } else {
            String::new()
        }
    }

    /// The text of a difference that stands at this level.
    #[must_use]
    pub fn render(&self, diff: &Diff, indent: usize, options: Options) -> String {
        match &diff.kind {
            Kind::Primitive(before, after) => self.primitive(diff, before.as_ref(), after.as_ref(), indent, options),
            Kind::Unknown(before) => {
                let known_later = "(known after apply)";
                match before {
                    Some(before) => {
                        let before = self.render(
                            before,
                            indent,
                            Options {
                                no_null: true,
                                ..options
                            },
                        );
                        format!("{before} {} {known_later}{}", self.arrow(), self.replacement(diff))
                    }
                    None => format!("{known_later}{}", self.replacement(diff)),
                }
            }
            Kind::Sensitive { block: true, .. } => self.sensitive_block(diff, indent),
            Kind::Sensitive { .. } => {
                format!(
                    "(sensitive value){}{}",
                    self.null_suffix(diff.change, options),
                    self.replacement(diff)
                )
            }
            Kind::TypeChange(before, after) => {
                let inner = Options {
                    no_null: true,
                    ..options
                };
                let before = self.render(before, indent, inner);
                let after = self.render(after, indent, inner);
                format!("{before} {} {after}{}", self.arrow(), self.replacement(diff))
            }
            Kind::Object(attributes) => {
                let name = |n: &str| {
                    if addrs::parse::is_identifier(n) {
                        n.to_owned()
                    } else {
                        quoted(n)
                    }
                };
                self.named(diff, attributes, name, "attribute", indent, options)
            }
            Kind::Map(entries) => self.named(diff, entries, quoted, "element", indent, options),
            Kind::List(items, context) => self.list(diff, items, *context, indent, options),
            Kind::Set(items) => self.list(diff, items, false, indent, options),
            Kind::Block(attributes, blocks) => self.block(diff, attributes, blocks, indent, options),
        }
    }

    fn primitive(
        &self,
        diff: &Diff,
        before: Option<&Value>,
        after: Option<&Value>,
        indent: usize,
        options: Options,
    ) -> String {
        let side = |value: Option<&Value>, change: Change| match value.map(Value::kind) {
            Some(ValueKind::String(text)) => self.one_text(text, change, indent, options),
            Some(ValueKind::Number(n)) => n.to_string(),
            Some(ValueKind::Bool(b)) => b.to_string(),
            Some(ValueKind::Unknown(_)) => "(known after apply)".into(),
            _ => self.style.dim("null"),
        };
        let end = self.replacement(diff);
        match diff.change {
            Change::None | Change::Create => format!("{}{end}", side(after.or(before), diff.change)),
            Change::Delete => format!(
                "{}{}{end}",
                side(before, diff.change),
                self.null_suffix(diff.change, options)
            ),
            Change::Update => {
                if let (Some(old), Some(new)) = (before.and_then(Value::as_str), after.and_then(Value::as_str))
                    && let Some(text) = self.changed_text(old, new, diff.replace, indent, options)
                {
                    return text;
                }
                format!(
                    "{} {} {}{end}",
                    side(before, Change::Delete),
                    self.arrow(),
                    side(after, Change::Create)
                )
            }
        }
    }

    /// What must be said before a line: that its sensitivity changes.
    fn warnings(&self, diff: &Diff, indent: usize) -> String {
        let Kind::Sensitive {
            before,
            after,
            same,
            block,
        } = diff.kind
        else {
            return String::new();
        };
        if before == after || matches!(diff.change, Change::Create | Change::Delete) {
            return String::new();
        }
        let what = if block { "this block" } else { "this attribute value" };
        let pad = self.indent_for_symbol(indent);
        let mut text = format!("{pad}# {} {what} will ", self.style.yellow("Warning:"));
        if before {
            text.push_str("no longer be marked as sensitive\n");
            text.push_str(&format!("{pad}# after applying this change."));
        } else {
            text.push_str(&format!(
                "be marked as sensitive and will not\n{pad}# display in UI output after applying this change."
            ));
        }
        if same {
            text.push_str(" The value is unchanged.");
        }
        text + "\n"
    }

    fn hidden(&self, what: &str, number: usize) -> String {
        let plural = if number == 1 { "" } else { "s" };
        self.style.dim(format!("# ({number} unchanged {what}{plural} hidden)"))
    }

    fn sensitive_block(&self, diff: &Diff, indent: usize) -> String {
        format!(
            "{{{}\n{pad}# At least one attribute in this block is (or was) sensitive,\n{pad}# so its contents will not be \
             displayed.\n{}}}",
            self.replacement(diff),
            self.indent(indent),
            pad = self.indent(indent + 1),
        )
    }

    fn named(
        &self,
        diff: &Diff,
        parts: &BTreeMap<String, Diff>,
        name: impl Fn(&str) -> String,
        what: &str,
        indent: usize,
        options: Options,
    ) -> String {
        let end = self.null_suffix(diff.change, options);
        if parts.is_empty() {
            return format!("{{}}{end}{}", self.replacement(diff));
        }
        let shown = |d: &&Diff| d.change != Change::None || options.show_unchanged || diff.change != Change::Update;
        // What is hidden counts, too: then a line looks the same whether its neighbours change or not.
        let width = parts.keys().map(|n| name(n).width()).max().unwrap_or(0);
        let mut out = format!("{{{}\n", self.replacement(diff));
        let mut unchanged = 0;
        let inner = self.inside(diff, options);
        for (key, part) in parts {
            if !shown(&part) {
                unchanged += 1;
                continue;
            }
            let key = name(key);
            let pad = " ".repeat(width - key.width());
            out.push_str(&self.warnings(part, indent + 1));
            out.push_str(&format!(
                "{}{}{key}{pad} = {}\n",
                self.indent_for_symbol(indent + 1),
                self.symbol(part.change),
                self.render(part, indent + 1, inner)
            ));
        }
        if unchanged > 0 {
            out.push_str(&format!(
                "{}{}\n",
                self.indent(indent + 1),
                self.hidden(what, unchanged)
            ));
        }
        format!("{out}{}}}{end}", self.indent(indent))
    }

    /// The options for the parts of something. Only the elements of a map say that they become null, and only if the map
    /// stays.
    fn inside(&self, diff: &Diff, options: Options) -> Options {
        let says_null = matches!(diff.kind, Kind::Map(_)) && diff.change != Change::Delete;
        Options {
            no_null: options.no_null || !says_null,
            show_unchanged: options.show_unchanged || diff.change == Change::None,
        }
    }

    fn list(&self, diff: &Diff, items: &[Diff], context: bool, indent: usize, options: Options) -> String {
        let end = self.null_suffix(diff.change, options);
        if items.is_empty() {
            return format!("[]{end}{}", self.replacement(diff));
        }
        let inner = self.inside(diff, options);
        let whole = Options {
            show_unchanged: true,
            ..inner
        };
        let line = |item: &Diff| {
            let options = if item.change == Change::None { whole } else { inner };
            format!(
                "{}{}{}{},\n",
                self.warnings(item, indent + 1),
                self.indent_for_symbol(indent + 1),
                self.symbol(item.change),
                self.render(item, indent + 1, options)
            )
        };
        let hidden = |number: usize| format!("{}{}\n", self.indent(indent + 1), self.hidden("element", number));
        let mut out = format!("[{}\n", self.replacement(diff));
        let mut waiting: Vec<&Diff> = Vec::new();
        let mut show_next = false;
        for item in items {
            if item.change == Change::None && !show_next && !inner.show_unchanged {
                waiting.push(item);
                continue;
            }
            if context {
                if waiting.len() > 1 {
                    out.push_str(&hidden(waiting.len() - 1));
                }
                if let Some(last) = waiting.last() {
                    out.push_str(&line(last));
                }
                waiting.clear();
                show_next = item.change != Change::None;
            }
            out.push_str(&line(item));
        }
        if !waiting.is_empty() {
            out.push_str(&hidden(waiting.len()));
        }
        format!("{out}{}]{end}", self.indent(indent))
    }

    fn block(
        &self,
        diff: &Diff,
        attributes: &BTreeMap<String, Diff>,
        blocks: &BTreeMap<String, Blocks>,
        indent: usize,
        options: Options,
    ) -> String {
        let name = |n: &str| {
            if addrs::parse::is_identifier(n) {
                n.to_owned()
            } else {
                quoted(n)
            }
        };
        let all = options.show_unchanged;
        let shown = |n: &str, d: &Diff| d.change != Change::None || all || IDENTIFYING.contains(&n);
        let width = attributes.keys().map(|n| name(n).width()).max().unwrap_or(0);
        let mut out = format!("{{{}\n", self.replacement(diff));
        let mut unchanged = 0;
        for (key, part) in attributes {
            if !shown(key, part) {
                unchanged += 1;
                continue;
            }
            let show_unchanged = all || part.change == Change::None;
            let key = name(key);
            let pad = " ".repeat(width - key.width());
            out.push_str(&self.warnings(part, indent + 1));
            out.push_str(&format!(
                "{}{}{key}{pad} = {}\n",
                self.indent_for_symbol(indent + 1),
                self.symbol(part.change),
                self.render(
                    part,
                    indent + 1,
                    Options {
                        show_unchanged,
                        ..options
                    }
                )
            ));
        }
        if unchanged > 0 {
            out.push_str(&format!(
                "{}{}\n",
                self.indent(indent + 1),
                self.hidden("attribute", unchanged)
            ));
        }
        let mut unchanged = 0;
        let mut first = true;
        for (name, nested) in blocks {
            for (label, item) in &nested.items {
                if item.change == Change::None && !all {
                    unchanged += 1;
                    continue;
                }
                if first && !attributes.is_empty() {
                    out.push('\n');
                }
                first = false;
                let label = label.as_deref().map(|l| format!(" {}", quoted(l))).unwrap_or_default();
                out.push_str(&self.warnings(item, indent + 1));
                out.push_str(&format!(
                    "{}{}{name}{label} {}\n",
                    self.indent_for_symbol(indent + 1),
                    self.symbol(item.change),
                    self.render(item, indent + 1, options)
                ));
            }
        }
        if unchanged > 0 {
            out.push_str(&format!(
                "\n{}{}\n",
                self.indent(indent + 1),
                self.hidden("block", unchanged)
            ));
        }
        format!("{out}{}}}", self.indent(indent))
    }
}
