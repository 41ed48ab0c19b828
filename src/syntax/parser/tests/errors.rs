//! Diagnostics of invalid texts. Ranges and summaries are Terraform's, except where noted.

use crate::{Pos, parse_expression, parse_file, parse_template};

/// Lists every problem of a file as `line:column summary`.
fn errors(text: &str) -> Vec<String> {
    let (_, diagnostics) = parse_file("test.tf", text.as_bytes());
    diagnostics
        .iter()
        .map(|d| {
            let start = d.subject.as_ref().map(|r| r.start).unwrap_or_default();
            format!("{}:{} {}", start.line, start.column, d.summary)
        })
        .collect()
}

#[test]
fn every_error_of_a_file_is_reported_once() {
    let text = "
resource \"a\" \"b\" {
  x = [1 2]
  y = {
    a = 1
    b = 2 c = 3
    d = 4 +
    e = f(1 2)
    g = ok
  }
  z = \"unclosed
  w = 1
  v = 1, 2
}

output {
  value = }
}

variable \"v\"
  type = string
}

locals {
  a = a.
  b = ok
  b = twice
}
";
    assert_eq!(
        errors(text),
        [
            "3:10 Missing item separator",
            "6:11 Missing attribute separator",
            "7:12 Invalid expression",
            "8:13 Missing argument separator",
            "11:16 Invalid multi-line string",
            "13:8 Unexpected comma after argument",
            "17:11 Invalid expression",
            "20:13 Invalid block definition",
            "25:9 Invalid attribute name",
            "27:3 Attribute redefined",
        ]
    );
}

/// Each text has one error.
#[test]
fn one_error_is_one_diagnostic() {
    let cases = [
        ("a = <<E\nx\nE", "3:2 Unterminated template string"),
        ("a = <<E\nx\ry\nE\n", "2:2 Invalid character"),
        ("a = <<E x\nE\n", "1:5 Invalid expression"),
        ("a = \"x\ny\"\nb = 1\n", "1:7 Invalid multi-line string"),
        ("a = \"x\nb = \"y\"\nc = 1\n", "1:7 Invalid multi-line string"),
        (
            "l {\n  a = \"${x\"\n  b = \"y\"\n}\n",
            "2:8 Unclosed template interpolation sequence",
        ),
        (
            "l {\n  a = \"${x\n  b = \"y\"\n}\n",
            "3:3 Extra characters after interpolation expression",
        ),
        ("a = 'x'\n", "1:5 Invalid character"),
        ("a = `x`\n", "1:5 Invalid character"),
        ("a = “x”\n", "1:5 Invalid character"),
        ("a = 1; b = 2\n", "1:6 Invalid character"),
        ("a = 1 & 2\n", "1:7 Unsupported operator"),
        ("a = 2 ** 3\n", "1:7 Unsupported operator"),
        ("a = \"\\q\"\n", "1:6 Invalid escape sequence"),
        ("a = \"x\\u12\"\n", "1:7 Invalid escape sequence"),
        ("l {\n  a = [1, 2\n  b = 3\n}\n", "3:3 Missing item separator"),
        ("l {\n  a = (1 + 2\n  b = 3\n}\n", "3:3 Unbalanced parentheses"),
        ("l {\n  a = f(1, 2\n}\n", "3:1 Missing argument separator"),
        ("a = f(1..., 2)\n", "1:8 Missing closing parenthesis"),
        ("a = b.0.1\n", "1:7 Invalid legacy index syntax"),
        ("a = 1.2.3\n", "1:5 Invalid number literal"),
        ("a = b ? 1\n", "1:10 Missing false expression in conditional"),
        ("a =\n", "1:4 Invalid expression"),
        ("a\n", "1:1 Argument or block definition required"),
        ("\"a\" = 1\n", "1:1 Invalid argument name"),
        ("l\n{\n}\n", "1:1 Argument or block definition required"),
        ("r \"a\" = {\n}\n", "1:7 Invalid block definition"),
        ("r \"a\" 5 {\n}\n", "1:7 Invalid block definition"),
        ("r \"a ${b}\" {\n}\n", "1:6 Invalid string literal"),
        ("l { a = 1, b = 2 }\n", "1:10 Invalid single-argument block definition"),
        ("l { a = 1\n}\n", "1:10 Invalid single-argument block definition"),
        ("l { b {} }\n", "1:5 Argument definition required"),
        ("l {} x\n", "1:6 Missing newline after block definition"),
        ("l {\n  a = 1\n", "1:3 Unclosed configuration block"),
        ("l {\n  m {\n    a = 1\n", "2:5 Unclosed configuration block"),
        ("}\n", "1:1 Argument or block definition required"),
        ("l {\n}}\n", "2:2 Missing newline after block definition"),
        ("a = [for x in y: x => 1]\n", "1:18 Invalid 'for' expression"),
        ("a = {for x in y: x}\n", "1:18 Invalid 'for' expression"),
        ("a = [for x y: x]\n", "1:12 Invalid 'for' expression"),
        ("a = \"%{foo}\"\n", "1:8 Invalid template control keyword"),
        ("a = \"%{if}b%{endif}\"\n", "1:10 Invalid expression"),
        ("a = \"%{if b}\"\n", "1:13 Unexpected end of template"),
        ("a = \"%{else}\"\n", "1:6 Unexpected else directive"),
        ("a = \"%{if b}%{endfor}\"\n", "1:13 Unexpected endfor directive"),
        (
            "a = \"${b:c}\"\n",
            "1:9 Extra characters after interpolation expression",
        ),
        ("a = b::c\n", "1:9 Missing open parenthesis"),
        ("a = b.*.*\n", "1:9 Nested splat expression not allowed"),
        ("a = {b c}\n", "1:8 Missing key/value separator"),
        ("a = {b}\n", "1:7 Missing key/value separator"),
        ("a = {b\n}\n", "1:7 Missing attribute value"),
        ("a = {b = 1\n", "2:1 Missing expression"),
        ("a = 1 +\n  2\n", "1:8 Invalid expression"),
        ("a = 1\n  + 2\n", "2:3 Argument or block definition required"),
        // Terraform reports the position after the one that it recovered to.
        ("a = b[1 2]\n", "1:9 Missing close bracket on index"),
    ];
    for (text, expected) in cases {
        assert_eq!(errors(text), [expected], "{text:?}");
    }
}

#[test]
fn invalid_utf8_is_an_error_outside_comments_only() {
    let (_, diagnostics) = parse_file("test.tf", b"# caf\xe9\na = 1\n");
    assert!(diagnostics.is_empty());
    let (_, diagnostics) = parse_file("test.tf", b"# \xe9\n a = \"caf\xe9 \xff\"\n");
    let found: Vec<_> = diagnostics
        .iter()
        .map(|d| (d.summary.as_str(), d.subject.clone().unwrap().start.column))
        .collect();
    assert_eq!(found, [("Invalid character encoding", 10)]);
}

#[test]
fn nesting_is_limited_and_long_operator_chains_are_not() {
    let text = |text: String| {
        parse_expression("test", &text, Pos::default())
            .1
            .iter()
            .map(|d| d.summary.clone())
            .collect::<Vec<_>>()
    };
    let too_deep = ["Nesting too deep"];
    for (open, inner, close) in [
        ("(", "1", ")"),
        ("[", "", "]"),
        ("{a=", "1", "}"),
        ("f(", "", ")"),
        ("\"${", "1", "}\""),
        ("a[", "1", "]"),
        ("-", "1", ""),
        ("1?", "1", ":1"),
        ("[for a in ", "1", ": 1]"),
    ] {
        let nest = |n: usize| format!("{}{inner}{}", open.repeat(n), close.repeat(n));
        assert_eq!(text(nest(100_000)), too_deep, "{open}");
        assert!(text(nest(90)).is_empty(), "{open}");
    }
    assert_eq!(text(format!("a{}", "[*]".repeat(100_000))), too_deep);
    let (_, diagnostics) = parse_file("test.tf", "a {\n".repeat(100_000).as_bytes());
    let summaries: Vec<_> = diagnostics.iter().map(|d| d.summary.as_str()).collect();
    assert_eq!(summaries, too_deep);
    let (_, diagnostics) = parse_template("test", &"%{ if a }".repeat(100_000), Pos::default());
    assert_eq!(
        diagnostics.iter().next().map(|d| d.summary.as_str()),
        Some("Nesting too deep")
    );

    assert!(text(format!("1{}", " + 1".repeat(4000))).is_empty());
    assert_eq!(text(format!("1{}", " + 1".repeat(100_000))), ["Expression too long"]);
    assert!(text(format!("a{}", ".b[0]".repeat(100_000))).is_empty());
    assert!(text(format!("a{}", "[b]".repeat(1000))).is_empty());
}

#[test]
fn directive_without_condition_still_needs_its_end() {
    assert_eq!(
        errors("a = \"%{if}\"\n"),
        ["1:10 Invalid expression", "1:11 Unexpected end of template"]
    );
}
