//! Splitting of `TF_CLI_ARGS` into words, as a shell does.

/// Splits text into words as a shell does with quotes and backslashes, without expansion.
pub fn split(text: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\n' | '\r' => words.extend(word.take()),
            '\\' => word
                .get_or_insert_default()
                .push(chars.next().ok_or("invalid command line string")?),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next().ok_or("invalid command line string")? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next().ok_or("invalid command line string")? {
                        '"' => break,
                        '\\' => match chars.next().ok_or("invalid command line string")? {
                            // In double quotes, a backslash escapes only these characters.
                            c @ ('"' | '\\' | '$' | '`') => word.push(c),
                            c => {
                                word.push('\\');
                                word.push(c);
                            }
                        },
                        c => word.push(c),
                    }
                }
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use views::command_line::joined;

    #[test]
    fn words_are_split_as_a_shell_does() {
        assert_eq!(
            split(r#"-a 'b c'  -var="x=\"y\" z" e\ f ''"#).unwrap(),
            ["-a", "b c", "-var=x=\"y\" z", "e f", ""]
        );
        assert!(split("'a").is_err());
        assert!(split("a\\").is_err());
        assert!(split("\"a").is_err());
    }

    proptest::proptest! {
        #[test]
        fn joined_words_are_split_into_the_same(words in proptest::collection::vec("[ -~äß\n]{0,12}", 0..5)) {
            proptest::prop_assert_eq!(split(&joined(&words)).unwrap(), words);
        }
    }
}
