//! Trees of valid texts.

use super::dump;
use crate::ast::Expr;
use crate::{Pos, parse_expression, parse_file, parse_template, parse_traversal};

/// Returns the tree of an expression without errors.
fn tree(text: &str) -> String {
    let (expr, diagnostics) = parse_expression("test", text, Pos::default());
    assert!(diagnostics.is_empty(), "{text}: {diagnostics:?}");
    dump::expr(&expr)
}

/// Returns the tree of a file without errors.
fn file(text: &str) -> String {
    let (body, diagnostics) = parse_file("test.tf", text.as_bytes());
    assert!(diagnostics.is_empty(), "{text}: {diagnostics:?}");
    dump::body(&body)
}

/// Returns the tree of a template without errors.
fn template(text: &str) -> String {
    let (expr, diagnostics) = parse_template("test", text, Pos::default());
    assert!(diagnostics.is_empty(), "{text}: {diagnostics:?}");
    dump::expr(&expr)
}

#[test]
fn operators_bind_as_documented() {
    assert_eq!(tree("1 + 2 * 3 - 4"), "(- (+ 1 (* 2 3)) 4)");
    assert_eq!(
        tree("a || b && c == d < e + f % -g"),
        "(|| a (&& b (== c (< d (+ e (% f (neg g)))))))"
    );
    assert_eq!(tree("!a == b"), "(== (! a) b)");
    assert_eq!(tree("-a.b[0]"), "(neg a.b[0])");
    assert_eq!(tree("!!-a"), "(! (! (neg a)))");
    assert_eq!(tree("a ? b : c ? d : e"), "(? a b (? c d e))");
    assert_eq!(tree("a ? b ? 1 : 2 : 3"), "(? a (? b 1 2) 3)");
    assert_eq!(tree("(a + b) * c"), "(* (paren (+ a b)) c)");
    assert_eq!(tree("a-1"), "a-1");
    assert_eq!(tree("a\n+\nb"), "(+ a b)");
}

#[test]
fn steps_are_static_where_they_can_be() {
    assert_eq!(tree("a.b[0][\"c\"].0.d"), "a.b[0][\"c\"][0].d");
    assert_eq!(tree("a.0[0]"), "a[0][0]");
    assert_eq!(tree("a[b].c"), "<(index a b)>.c");
    assert_eq!(tree("a[-1]"), "(index a (neg 1))");
    assert_eq!(tree("a[\"x${y}\"]"), "(index a (text \"x\" $y))");
    assert_eq!(tree("f(x).y[1]"), "<(call f x)>.y[1]");
    assert_eq!(tree("[1, 2][0]"), "<[1 2]>[0]");
}

#[test]
fn splats_take_what_follows() {
    assert_eq!(tree("a[*].b[0].c"), "(splat a <@>.b[0].c)");
    assert_eq!(tree("a.*.b.c[0]"), "<(splat a <@>.b.c)>[0]");
    assert_eq!(tree("a.*.0.b"), "(splat a <@>[0].b)");
    assert_eq!(tree("a[*][*].b"), "(splat a (splat @ <@>.b))");
    assert_eq!(tree("a[*].b[k]"), "(splat a (index <@>.b k))");
    assert_eq!(tree("a[*]"), "(splat a @)");
    assert_eq!(tree("a.*"), "(splat a @)");
}

#[test]
fn calls() {
    assert_eq!(tree("f()"), "(call f)");
    assert_eq!(tree("f(1,\n 2,\n)"), "(call f 1 2)");
    assert_eq!(tree("f(a...)"), "(call f a ...)");
    assert_eq!(tree("provider::x::f(1)"), "(call provider::x::f 1)");
}

#[test]
fn collections() {
    assert_eq!(tree("[1,\n2,\n]"), "[1 2]");
    assert_eq!(
        tree("{a = 1, \"b\" : 2\n c = 3 # why\n (d) = 4\n 5 = 6, }"),
        "{a=1 (text \"b\")=2 c=3 (paren d)=4 5=6}"
    );
    assert_eq!(tree("{true = 1, null = 2, true.x = 3}"), "{true=1 null=2 <true>.x=3}");
    assert_eq!(tree("{a = 1, a = 2}"), "{a=1 a=2}");
    assert_eq!(tree("{\n\n}"), "{}");
    assert_eq!(tree("[for x in y : x]"), "(for x y x)");
    assert_eq!(tree("{for k, v in m : k => v... if v}"), "(for k v m k => v... if v)");
    // A for expression needs no parentheses for line breaks, not even as an object.
    assert_eq!(
        tree("{\nfor k, v in m :\nk =>\na\n&& b\n? 1\n: 2\n}"),
        "(for k v m k => (? (&& a b) 1 2))"
    );
    assert_eq!(tree("{\"for\" = 1}"), "{(text \"for\")=1}");
}

#[test]
fn bodies() {
    assert_eq!(
        file("a = 1\nb \"x\" y {\n  c = 2 // end\n  d { e = 3 }\n  f {}\n}"),
        "a = 1; b \"x\" \"y\" { c = 2; d { e = 3 }; f {  } }"
    );
    assert_eq!(file("\u{feff}a = 1\r\nb = [\r\n1\r\n]\r\n"), "a = 1; b = [1]");
    assert_eq!(file("/* x\n */ a = /* y */ 1 # z"), "a = 1");
    assert_eq!(file(""), "");
    assert_eq!(file("größe-2 = ähnlich"), "größe-2 = ähnlich");
    assert_eq!(file("a = 07\nb = 1.5e3"), "a = 7; b = 1500");
}

#[test]
fn strings() {
    assert_eq!(tree(r#""""#), "(text)");
    assert_eq!(tree(r#""a\n\t\"\\\u00e9\U0001F600""#), "(text \"a\\n\\t\\\"\\\\é😀\")");
    assert_eq!(tree(r#""$${a} %%{b} $$ %% $a 5%""#), "(text \"${a} %{b} $$ %% $a 5%\")");
    // In a run of signs before a brace, one sign is the escape.
    assert_eq!(tree(r#""$$${a}""#), "(text \"$${a}\")");
    assert_eq!(tree(r#""${a}""#), "(wrap a)");
    assert_eq!(tree(r#""${a}${b}""#), "(text $a $b)");
    assert_eq!(tree(r#""${"${a}"}""#), "(wrap (wrap a))");
    assert_eq!(
        tree("\"${ {\n\"a\" = \"}\"\n} }\""),
        "(wrap {(text \"a\")=(text \"}\")})"
    );
    // A strip marker makes a lone interpolation a string only if it stripped something.
    assert_eq!(tree(r#""${~ a ~}""#), "(wrap a)");
    assert_eq!(tree(r#"" ${~ a ~} ""#), "(text $a)");
}

#[test]
fn directives() {
    assert_eq!(
        tree(r#""%{ if a }x%{ else }y%{ endif }""#),
        "(text (if a \"x\" else \"y\"))"
    );
    assert_eq!(
        tree(r#""%{ for k, v in m }${k}%{ if v }!%{ endif }%{ endfor }""#),
        "(text (for k v m $k (if v \"!\" else)))"
    );
    assert_eq!(
        tree(r#""a %{~ if b ~} c %{~ endif ~} d""#),
        "(text \"a\" (if b \"c\" else) \"d\")"
    );
}

#[test]
fn heredocs() {
    assert_eq!(file("a = <<E\n x\\n $${y}\nE\n"), "a = (heredoc \" x\\\\n ${y}\\n\")");
    assert_eq!(file("a = <<E\n${x}\n  E  \n"), "a = (heredoc $x \"\\n\")");
    assert_eq!(file("a = [<<E\nx\nE\n, 2]\n"), "a = [(heredoc \"x\\n\") 2]");
    assert_eq!(file("a = <<E\r\nx\r\nE\r\n"), "a = (heredoc \"x\\r\\n\")");
    assert_eq!(file("a = <<E\nE\n"), "a = (heredoc)");
    assert_eq!(
        file("a = <<-E\n    a\n      b\n\n    c\n  E\n"),
        "a = (heredoc \"a\\n  b\\n\\nc\\n\")"
    );
}

/// Results of Terraform, determined by experiment.
#[test]
fn heredoc_indentation_and_strip_markers_as_terraform() {
    // A line that has only blanks does not count for the indentation, and keeps its blanks.
    assert_eq!(
        file("a = <<-E\n    a\n      \n      b\n  E\n"),
        "a = (heredoc \"a\\n      \\n  b\\n\")"
    );
    // A marker removes at most one line break, and the text after it is not a new line for the indentation.
    assert_eq!(
        file("a = <<-E\n    %{ if true ~}\n      a\n    %{ endif ~}\n    b\n  E\n"),
        "a = (heredoc (if true \"      a\\n\" else) \"    b\\n\")"
    );
    assert_eq!(
        file("a = <<-E\n    a\n    ${~ b ~}\n    c\n   E\n"),
        "a = (heredoc \"    a\\n\" $b \"    c\\n\")"
    );
    assert_eq!(
        file("a = <<E\na\n\n\n  ${~ b ~}\n\n\n  c\nE\n"),
        "a = (heredoc \"a\\n\\n\\n\" $b \"\\n\\n  c\\n\")"
    );
    assert_eq!(
        file("a = <<-E\n  ${1}\n\tx\n  E\n"),
        "a = (heredoc \" \" $1 \"\\nx\\n\")"
    );
}

#[test]
fn templates_without_quotes() {
    assert_eq!(template(""), "(text)");
    assert_eq!(template("a \"b\" \\n\n$${c}"), "(text \"a \\\"b\\\" \\\\n\\n${c}\")");
    assert_eq!(template("a\rb\r\n"), "(text \"a\\rb\\r\\n\")");
    assert_eq!(template("${a}"), "(wrap a)");
    assert_eq!(
        template("%{ for x in y ~}\n${x}\n%{ endfor ~}\n"),
        "(text (for x y $x \"\\n\"))"
    );
}

#[test]
fn traversals_by_themselves() {
    let text =
        |t: &str| parse_traversal("test", t, Pos::default()).map(|t| format!("{}{}", t.root, dump::steps(&t.steps)));
    assert_eq!(
        text("module.a[0].b[\"c\"].*.d[*]").unwrap(),
        "module.a[0].b[\"c\"][*].d[*]"
    );
    for bad in [
        "",
        "a.",
        "a[",
        "a[b]",
        "a[\"${b}\"]",
        "a b",
        "1",
        "a[0",
        "a[\"x",
        "a[1.2.3]",
    ] {
        assert!(text(bad).is_err(), "{bad}");
    }
}

#[test]
fn columns_count_grapheme_clusters() {
    let (body, _) = parse_file("test.tf", "\u{feff}a = \"é👨‍👩‍👧\" == b\r\nc = d\n".as_bytes());
    let Expr::Binary { op_range, right, .. } = &body.attributes[0].expr else {
        panic!("no operator")
    };
    assert_eq!(op_range.to_string(), "test.tf:1,10-12");
    assert_eq!(right.range().to_string(), "test.tf:1,13-14");
    assert_eq!(body.attributes[1].range.to_string(), "test.tf:2,1-6");
    assert_eq!(body.attributes[0].range.start.byte, 3);
}

#[test]
fn expression_inside_a_file_has_file_positions() {
    let start = Pos {
        line: 7,
        column: 5,
        byte: 100,
    };
    let (expr, _) = parse_expression("test.tf", "a +\n b", start);
    assert_eq!(expr.range().to_string(), "test.tf:7,5-8,3");
    assert_eq!(expr.range().end.byte, 106);
}
