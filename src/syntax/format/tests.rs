use proptest::prelude::*;

use super::*;
use crate::ast::Expr;
use crate::{Pos, lexer, parse_file};

fn format(text: &str) -> String {
    String::from_utf8(format_file("f", text.as_bytes()).unwrap()).unwrap()
}

#[test]
fn files_have_one_canonical_form() {
    for (text, expected) in [
        ("", ""),
        ("\u{feff}a=1\n", "a = 1\n"),
        ("a=1\r\nbb  =  2 # c\r\n", "a  = 1\r\nbb = 2 # c\r\n"),
        // Blanks after the last line break belong to no line.
        ("a = 1\n   ", "a = 1\n   "),
        ("a = 1   ", "a = 1   "),
        // Assignments and comments of consecutive lines are aligned; values over several lines are not.
        (
            "a = 1 # x\nbcd = 22 // y\n\ne = [\n1,\n]\nfg=2\n",
            "a   = 1  # x\nbcd = 22 // y\n\ne = [\n  1,\n]\nfg = 2\n",
        ),
        (
            "ä = 1\nbb = \"日本\" # x\nc = 1 # y\n",
            "ä  = 1\nbb = \"日本\" # x\nc  = 1    # y\n",
        ),
        // Several brackets that are opened in one line add one step of indentation.
        ("a = f({\nb = [[\n1]]\n})\n", "a = f({\n  b = [[\n  1]]\n})\n"),
        ("a {\n# x\nb {}\n}\n", "a {\n  # x\n  b {}\n}\n"),
        // Spaces around operators, signs, functions, indexes and keywords.
        (
            "a = - 1 +- b*!c [0] . d -e ( f , g ... )\n",
            "a = -1 + -b * !c[0].d - e(f, g...)\n",
        ),
        ("a = provider :: x :: f (1)\n", "a = provider::x::f(1)\n"),
        (
            "a = [ for x in [ 1 ] : x if x!=2 ]\n",
            "a = [for x in [1] : x if x != 2]\n",
        ),
        ("a = {b=1}\nc = { }\nd {e=1}\n", "a = { b = 1 }\nc = {}\nd { e = 1 }\n"),
        // Text stays unchanged, and the code in it is formatted.
        (
            "a = \" ${ b  +c } %{ if d } x %{ endif }\"\n",
            "a = \" ${b + c} %{if d} x %{endif}\"\n",
        ),
        ("a = \"x${{b=1}}\"\n", "a = \"x${ { b = 1 } }\"\n"),
        (
            "a {\nb=<<-E\n  x ${ y }\n    E\nccc=1\n}\n",
            "a {\n  b   = <<-E\n  x ${y}\n    E\n  ccc = 1\n}\n",
        ),
        ("a = [<<E\nx\nE\n,1\n]\n", "a = [<<E\nx\nE\n  , 1\n]\n"),
        ("a = /* x */ 1 /* y */\n", "a = /* x */ 1 /* y */\n"),
    ] {
        assert_eq!(format(text), expected, "{text}");
    }
}

#[test]
fn old_spellings_are_replaced() {
    for (text, expected) in [
        ("a = \"${b}\"\n", "a = b\n"),
        ("a {\n  b = \"${ f(\"${c}\") }\"\n}\n", "a {\n  b = f(\"${c}\")\n}\n"),
        ("a = [\"${b}\"]\n", "a = [\"${b}\"]\n"),
        ("a = \"${b}${c}\"\n", "a = \"${b}${c}\"\n"),
        ("a = \"${b} \"\n", "a = \"${b} \"\n"),
        ("a = \"${\n  b\n}\"\n", "a = b\n"),
        ("a = \"${b ?\n  c : d}\"\n", "a = (b ?\nc : d)\n"),
        ("a = \"${(b ?\n  c : d)}\"\n", "a = (b ?\nc : d)\n"),
        // Without parentheses, the comment would end the argument.
        ("a = \"${ # x\n b}\"\n", "a = ( # x\nb)\n"),
        ("resource a b {}\n", "resource \"a\" \"b\" {}\n"),
        ("r /* x */ a \"b\\\"$${c}\" {}\n", "r \"a\" \"b\\\"$${c}\" {}\n"),
        (
            "variable \"a\" {\n  type = \"list\"\n}\nvariable \"b\" {\n  type = map\n}\nvariable \"c\" {\n  type = \"string\"\n}\n",
            "variable \"a\" {\n  type = list(string)\n}\nvariable \"b\" {\n  type = map(any)\n}\nvariable \"c\" {\n  type = string\n}\n",
        ),
        // Applies only in the declaration of a variable.
        (
            "output \"a\" {\n  type = \"list\"\n}\n",
            "output \"a\" {\n  type = \"list\"\n}\n",
        ),
        (
            "a {\n  variable \"b\" {\n    type = list\n  }\n}\n",
            "a {\n  variable \"b\" {\n    type = list\n  }\n}\n",
        ),
    ] {
        assert_eq!(format(text), expected, "{text}");
    }
}

#[test]
fn invalid_utf8_in_comments_is_preserved() {
    assert_eq!(format_file("f", b"a=1 # \xff\n").unwrap(), b"a = 1 # \xff\n");
}

#[test]
fn file_with_an_error_is_refused_at_its_place() {
    for (text, summary, column) in [
        (&b"a = \n"[..], "Invalid expression", 5),
        (b"a = \"\xff\"\n", "Invalid character encoding", 6),
    ] {
        let problems = format_file("f", text).unwrap_err();
        let found: Vec<_> = problems
            .iter()
            .map(|d| (&*d.summary, d.subject.as_ref().map(|range| range.start.column)))
            .collect();
        assert_eq!(found, [(summary, Some(column))]);
    }
}

/// Expressions on one line, and some over several lines.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("1".to_owned()),
        Just("\"x  y\"".to_owned()),
        Just("null".to_owned()),
        Just("a .b[ 0 ]".to_owned()),
        Just("x[*].y".to_owned()),
        Just("\"日本 ${ a }%{if b}c%{ endif }\"".to_owned()),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            (two.clone(), "(\\+|-|&&|==|<=|%)").prop_map(|((a, b), op)| format!("{a} {op}{b}")),
            two.clone().prop_map(|(a, b)| format!("[{a} ,\n  {b}]")),
            two.clone().prop_map(|(a, b)| format!("{{ k={a}\n(\"l\")  = {b} }}")),
            two.clone().prop_map(|(a, b)| format!("f( {a},{b} )")),
            two.clone().prop_map(|(a, b)| format!("(c?{a}:\n{b})")),
            inner.clone().prop_map(|a| format!("-{a}")),
            inner.clone().prop_map(|a| format!("[for  v in {a}:v /* c */ if! v]")),
            inner.prop_map(|a| format!("[ <<E\n t ${{ {a} }}\nE\n ]")),
        ]
    })
}

fn blanks() -> impl Strategy<Value = String> {
    "[ \t]{0,3}"
}

fn items() -> impl Strategy<Value = String> {
    let line_end = prop_oneof![
        4 => Just("\n".to_owned()),
        1 => Just("\r\n".to_owned()),
        1 => Just("\n\n".to_owned()),
        1 => "[ ]{0,3}(#|//) [a-zé ]{0,6}\n",
        1 => Just(" /* é */ \n".to_owned()),
    ];
    let attribute = ("[a-z]{1,6}", blanks(), expression(), blanks());
    let attribute = attribute.prop_map(|(name, a, value, b)| format!("{name}{a}={b}{value}"));
    let line = (blanks(), attribute, line_end.clone()).prop_map(|(a, x, end)| format!("{a}{x}{end}"));
    let comment = (blanks(), Just("# alone\n")).prop_map(|(a, x)| format!("{a}{x}"));
    let leaf = prop_oneof![3 => line, 1 => comment].boxed();
    let body = leaf.prop_recursive(3, 24, 6, move |inner| {
        let labels = prop::collection::vec(prop_oneof![Just(" a"), Just("\"b\""), Just(" \"c d\" ")], 0..3);
        (labels, prop::collection::vec(inner, 0..6), line_end.clone())
            .prop_map(|(labels, items, end)| format!("block{} {{\n{}}}{end}", labels.concat(), items.concat()))
    });
    prop::collection::vec(body, 0..6).prop_map(|items| rename(&items.concat()))
}

/// Numbers the names of arguments, because an argument may be set only once.
fn rename(text: &str) -> String {
    let mut out = String::new();
    for (n, line) in text.split_inclusive('\n').enumerate() {
        let name = line.trim_start_matches([' ', '\t']);
        match name.find(|c: char| !c.is_ascii_lowercase()) {
            Some(end) if end > 0 && name[end..].trim_start_matches([' ', '\t']).starts_with('=') => {
                out.push_str(&line[..line.len() - name.len()]);
                out.push_str(&format!("{}{n}{}", &name[..end], &name[end..]));
            }
            _ => out.push_str(line),
        }
    }
    out
}

/// Returns the significant tokens, labels without their quotes.
fn tokens(text: &str) -> Vec<(TokenKind, String)> {
    let tokens = lexer::lex(&"f".into(), text, Pos::default());
    (0..tokens.list.len())
        .filter(|i| !is_blank(tokens.kind(*i)))
        .map(|i| (tokens.kind(i), tokens.text(i).to_owned()))
        .filter(|(_, text)| text != "\"")
        .map(|(kind, text)| match kind {
            TokenKind::QuotedText if lexer::is_name(&text) => (TokenKind::Ident, text),
            _ => (kind, text),
        })
        .collect()
}

proptest! {
    #[test]
    fn formatting_changes_blanks_only_and_is_idempotent(text in items()) {
        let (_, problems) = parse_file("f", text.as_bytes());
        prop_assert!(problems.is_empty(), "{text}\n{problems:?}");
        let once = format(&text);
        prop_assert_eq!(tokens(&text), tokens(&once));
        prop_assert_eq!(tree(&text), tree(&once));
        prop_assert_eq!(format(&once), once);
    }
}

/// Renders the tree of a text without ranges. Intended changes of the formatter are taken out: an interpolation that is
/// a whole argument, parentheses around an argument, the types of a variable.
fn tree(text: &str) -> String {
    fn plain(body: &Body, variable: bool) -> Body {
        let mut body = body.clone();
        for attribute in &mut body.attributes {
            while let Expr::Wrap { inner, .. } | Expr::Parens { inner, .. } = &attribute.expr {
                attribute.expr = (**inner).clone();
            }
        }
        body.attributes.retain(|a| !variable || &*a.name != "type");
        for block in &mut body.blocks {
            block.body = plain(&block.body, false);
        }
        body
    }
    let (body, _) = parse_file("f", text.as_bytes());
    let mut body = plain(&body, false);
    for block in body.blocks.iter_mut().filter(|b| &*b.ty == "variable") {
        block.body = plain(&block.body, true);
    }
    let mut rest = &*format!("{body:?}");
    let mut out = String::new();
    while let Some((before, after)) = rest.split_once("Range { file: ") {
        out.push_str(before);
        let end = after
            .find("end: Pos { ")
            .and_then(|at| Some(at + after[at..].find("} }")?));
        rest = end.map_or("", |end| &after[end + 3..]);
    }
    out + rest
}

/// Returns every valid configuration and expression in the repository's test collections.
fn collected() -> Vec<String> {
    let mut texts = Vec::new();
    let mut folders = vec![std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let kind = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
            if path.is_dir() {
                folders.push(path);
            } else if kind == "tf" {
                texts.push(std::fs::read_to_string(&path).unwrap());
            } else if kind == "txt" {
                let text = std::fs::read_to_string(&path).unwrap();
                // Expressions begin with a prompt; configurations are between lines with a marker.
                let expressions = text.lines().filter_map(|l| l.strip_prefix("> "));
                texts.extend(expressions.map(|e| format!("a {{\nb={e}\n}}\n")));
                let mut part = String::new();
                for line in text.lines().chain(["=="]) {
                    if ["==", "--", "$ "].iter().any(|marker| line.starts_with(marker)) {
                        texts.push(std::mem::take(&mut part));
                    } else {
                        part.push_str(line);
                        part.push('\n');
                    }
                }
            }
        }
    }
    texts.retain(|text| !text.trim().is_empty() && parse_file("f", text.as_bytes()).1.is_empty());
    texts
}

#[test]
fn formatting_preserves_the_tree_of_arbitrary_text() {
    let texts = collected();
    assert!(texts.len() > 2000, "{} texts", texts.len());
    for text in texts {
        // This removes the indentation. Inside of heredocs this changes the text, which may then be invalid.
        let flat: String = text.lines().map(|line| format!("{}\n", line.trim_start())).collect();
        for text in [text, flat] {
            if !parse_file("f", text.as_bytes()).1.is_empty() {
                continue;
            }
            let once = format(&text);
            assert_eq!(tree(&text), tree(&once), "{text}\nbecame\n{once}");
            // As in Terraform, each formatting removes the outermost of nested interpolations.
            if !text.contains("\"${\"${") {
                assert_eq!(format(&once), once, "{text}");
            }
        }
    }
}
