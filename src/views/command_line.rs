//! Command lines for display.

/// Joins words to a line that a shell would split into the same words.
#[must_use]
pub fn joined(words: &[String]) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:@%+,".contains(c);
    let one = |word: &String| {
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    };
    words.iter().map(one).collect::<Vec<_>>().join(" ")
}
