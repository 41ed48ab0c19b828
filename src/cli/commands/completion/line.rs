//! A command line that is being typed: its words as a shell splits them, and the open quote of the last one.

/// Quote that is open at the cursor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quote {
    #[default]
    None,
    Single,
    Double,
}

/// Line up to the cursor, without the program's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// Words before the last one.
    pub words: Vec<String>,
    /// Word that is being typed, without quotes; empty after a blank.
    pub last: String,
    pub quote: Quote,
    /// Offset in the last word of the part that bash replaces: after the open quote, else after the last `=` or `:`.
    pub part: usize,
}

impl Line {
    /// Splits a line as a shell does, including quotes that are not closed yet.
    #[must_use]
    pub fn parse(text: &str) -> Line {
        let mut line = Line::default();
        let mut word: Option<String> = None;
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match (line.quote, c) {
                (Quote::None, ' ' | '\t' | '\n') => {
                    line.words.extend(word.take());
                    line.part = 0;
                }
                (Quote::None, '\'' | '"') => {
                    line.quote = if c == '"' { Quote::Double } else { Quote::Single };
                    line.part = word.get_or_insert_default().len();
                }
                (Quote::Single, '\'') | (Quote::Double, '"') => line.quote = Quote::None,
                (Quote::None, '\\') => word.get_or_insert_default().extend(chars.next()),
                (Quote::Double, '\\') => {
                    let word = word.get_or_insert_default();
                    match chars.next() {
                        Some(c @ ('"' | '\\' | '$' | '`')) => word.push(c),
                        other => word.extend(Some('\\').into_iter().chain(other)),
                    }
                }
                (quote, c) => {
                    let word = word.get_or_insert_default();
                    word.push(c);
                    if quote == Quote::None && matches!(c, '=' | ':') {
                        line.part = word.len();
                    }
                }
            }
        }
        line.last = word.unwrap_or_default();
        if !line.words.is_empty() {
            line.words.remove(0);
        } else {
            // The line has only the program's name so far.
            line.last.clear();
            line.part = 0;
        }
        line
    }
}

/// Quotes text for insertion at the cursor, in a Bourne shell.
#[must_use]
pub fn quoted(text: &str, quote: Quote) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match quote {
            Quote::Single if c == '\'' => out.push_str("'\\''"),
            Quote::Double if matches!(c, '"' | '$' | '`' | '\\') => out.extend(['\\', c]),
            Quote::None if !(c.is_alphanumeric() || "-_./=:@%+,~".contains(c)) => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> (Vec<String>, String, Quote, usize) {
        let line = Line::parse(text);
        (line.words, line.last, line.quote, line.part)
    }

    #[test]
    fn words_are_split_as_a_shell_does() {
        assert_eq!(parsed("monoform"), (vec![], String::new(), Quote::None, 0));
        assert_eq!(
            parsed("m plan -var 'a b' "),
            (
                ["plan", "-var", "a b"].map(str::to_owned).to_vec(),
                String::new(),
                Quote::None,
                0
            )
        );
        assert_eq!(parsed("m s 'a[\"x").1, "a[\"x");
        assert_eq!(parsed("m s 'a[\"x").2, Quote::Single);
        assert_eq!(parsed(r#"m s a\[\"x"#).1, "a[\"x");
        assert_eq!(
            parsed(r#"m s "a[\"x"#),
            (vec!["s".into()], "a[\"x".into(), Quote::Double, 0)
        );
        assert_eq!(parsed("m -target='mo"), (vec![], "-target=mo".into(), Quote::Single, 8));
        assert_eq!(parsed("m -target=mo").3, 8);
        assert_eq!(parsed("m -target= x").3, 0);
    }

    proptest! {
        #[test]
        fn quoted_text_is_one_word(text in "[ -~äß]{1,12}") {
            let bare = format!("m {}", quoted(&text, Quote::None));
            prop_assert_eq!(Line::parse(&bare).last, text.clone());
            let single = format!("m '{}", quoted(&text, Quote::Single));
            prop_assert_eq!(Line::parse(&single).last, text.clone());
            let double = format!("m \"{}", quoted(&text, Quote::Double));
            prop_assert_eq!(Line::parse(&double).last, text);
        }

        #[test]
        fn any_line_is_read(text in ".{0,40}") {
            let line = Line::parse(&text);
            prop_assert!(line.last.is_char_boundary(line.part));
        }
    }
}
