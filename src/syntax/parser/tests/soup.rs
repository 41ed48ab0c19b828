//! Properties of arbitrary text: the lexer loses nothing, the parser does not panic, and takes linear time.

use proptest::prelude::*;

use crate::lexer::{lex, lex_template};
use crate::{Pos, parse_expression, parse_file, parse_template, parse_traversal};

const PIECES: &[&str] = &[
    "a",
    "b-c",
    "é",
    "for",
    "in",
    "if",
    "else",
    "endif",
    "endfor",
    "true",
    "null",
    "1",
    "1.5e3",
    "1.2.3",
    "\"",
    "\"",
    "\"x\"",
    "${",
    "%{",
    "${~",
    "%{~",
    "}",
    "~}",
    "{",
    "[",
    "]",
    "(",
    ")",
    ".",
    "...",
    ",",
    ":",
    "::",
    "?",
    "=>",
    "=",
    "==",
    "!=",
    "<",
    "<=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "!",
    "&&",
    "||",
    "&",
    "|",
    "^",
    "~",
    "'",
    "`",
    ";",
    "\\",
    "\\n",
    "\\u00e9",
    "$",
    "$$",
    "$${",
    "%%",
    "<<E\n",
    "<<-E\n",
    "E\n",
    "\nE\n",
    "  E\n",
    "\n",
    "\r\n",
    "\r",
    " ",
    "\t",
    "  ",
    "# c\n",
    "// c\n",
    "/*",
    "*/",
    "/* c */",
    "\u{feff}",
    "👨‍👩‍👧",
    "a = 1\n",
    "b \"c\" {\n",
    "a.b",
    "a[0]",
    "a[*]",
    ".*",
    "f(",
    "}\n",
];

fn soup() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(PIECES), 0..60).prop_map(|pieces| pieces.concat())
}

fn everything(text: &str) {
    for tokens in [
        lex(&"t".into(), text, Pos::default()),
        lex_template(&"t".into(), text, Pos::default()),
    ] {
        let joined: String = (0..tokens.list.len()).map(|i| tokens.text(i)).collect();
        assert_eq!(joined, text);
        assert!(
            tokens
                .list
                .windows(2)
                .all(|pair| pair[0].start.byte < pair[1].start.byte)
        );
    }
    let (_, diagnostics) = parse_file("t", text.as_bytes());
    for d in &diagnostics {
        let range = d.subject.as_ref().expect("every diagnostic has a place");
        assert!(range.start.byte <= range.end.byte && range.end.byte as usize <= text.len());
    }
    let _ = parse_expression("t", text, Pos::default());
    let _ = parse_template("t", text, Pos::default());
    let _ = parse_traversal("t", text, Pos::default());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn token_soup(text in soup()) {
        everything(&text);
    }

    #[test]
    fn character_soup(text in any::<String>()) {
        everything(&text);
    }

    #[test]
    fn byte_soup(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse_file("t", &bytes);
    }
}

/// Texts in which every line may make recovery skip far ahead, or search far back.
#[test]
fn recovery_takes_linear_time() {
    for line in [
        "a = [\n",
        "a = {\n",
        "a = \"${\n",
        "a = \"\n",
        "a {\n",
        "}\n",
        "a = <<E\n",
        "x = f(1 2\n",
        "\"\n",
        "${\n",
        "b \"c\n",
        "a = {b = [\n",
        "\\",
        "$",
        "%{",
        "a[",
    ] {
        let text = line.repeat(200_000 / line.len());
        let begin = std::time::Instant::now();
        let _ = parse_file("t", text.as_bytes());
        let _ = parse_template("t", &text, Pos::default());
        let _ = parse_expression("t", &text, Pos::default());
        assert!(begin.elapsed().as_secs() < 5, "{line:?} took {:?}", begin.elapsed());
    }
}
