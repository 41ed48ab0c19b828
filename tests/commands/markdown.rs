//! Plans as Markdown: `show -format=markdown PLAN`.

use support::Workspace;

pub const TESTS: &[(&str, fn())] = &[
    ("markdown::plan_is_a_comment_for_reviews", plan_is_a_comment_for_reviews),
    (
        "markdown::large_plan_stays_below_the_limit",
        large_plan_stays_below_the_limit,
    ),
    ("markdown::other_forms_are_refused", other_forms_are_refused),
    ("markdown::plan_prints_markdown_alone", plan_prints_markdown_alone),
];

/// Returns the saved plan `p` as Markdown.
fn markdown(w: &Workspace) -> String {
    w.run(&["plan", "-out=p"]).ok();
    w.run(&["show", "-format=markdown", "p"]).ok().stdout
}

fn plan_is_a_comment_for_reviews() {
    let w = Workspace::with(&[(
        "main.tf",
        "resource \"terraform_data\" \"kept\" {\n  input = \"a\"\n}\n\nresource \"terraform_data\" \"replaced\" {\n  \
         triggers_replace = \"a\"\n}\n\nresource \"terraform_data\" \"gone\" {}\n",
    )]);
    w.run(&["apply", "-auto-approve"]).ok();
    w.write(
        "main.tf",
        "variable \"secret\" {\n  default   = \"hidden word\"\n  sensitive = true\n}\n\nresource \"terraform_data\" \"kept\" {\n  \
         input = \"b\"\n}\n\nresource \"terraform_data\" \"replaced\" {\n  triggers_replace = \"b\"\n}\n\nresource \
         \"terraform_data\" \"new\" {\n  input = var.secret\n}\n\noutput \"o\" {\n  value = 1\n}\n",
    );
    let text = markdown(&w);
    assert!(
        text.starts_with("### Plan: 2 to add, 1 to change, 2 to destroy.\n"),
        "{text}"
    );
    for part in [
        "\n**Replaced** (1)\n\n- `terraform_data.replaced` because of `triggers_replace`\n",
        "\n**Destroyed** (1)\n\n- `terraform_data.gone`\n",
        "\n| module | type | create | update | replace | destroy |\n| --- | --- | ---: | ---: | ---: | ---: |\n| - | `terraform_data` | 1 \
         | 1 | 1 | 1 |\n",
        "\nAlso: 1 output changes.\n",
        "<summary><code>terraform_data.kept</code> (update)</summary>\n\n```diff\n",
        "\n! ",
        "(sensitive value)",
    ] {
        assert!(text.contains(part), "{part:?} is missing:\n{text}");
    }
    assert!(!text.contains("hidden word"), "{text}");
    // Changes that remove objects come first.
    let at = |name: &str| text.find(&format!("<code>terraform_data.{name}</code>"));
    assert!(at("gone") < at("kept") && at("replaced") < at("new"), "{text}");
    assert_eq!(text.matches("<details>").count(), 4, "{text}");
    w.run(&["apply", "p"]).ok();
    assert_eq!(markdown(&w), "### No changes\n");
}

fn large_plan_stays_below_the_limit() {
    let w = Workspace::with(&[(
        "main.tf",
        &format!(
            "resource \"terraform_data\" \"a\" {{\n  for_each = toset([for i in range(400) : \"{}${{i}}\"])\n  input = \"\
             ${{each.key}}\"\n}}\n",
            "long".repeat(60)
        ),
    )]);
    let text = markdown(&w);
    assert!(text.len() <= 60_000, "{}", text.len());
    assert!(
        text.contains("more changes are counted above and not shown here"),
        "{text}"
    );
    assert_eq!(text.matches("<details>").count(), text.matches("</details>").count());
    assert_eq!(text.matches("```").count() % 2, 0);
    w.run(&["apply", "-auto-approve"]).ok();
    w.write("main.tf", "");
    // Even the names alone exceed the limit.
    let text = markdown(&w);
    assert!(text.len() <= 60_000, "{}", text.len());
    assert!(
        text.contains("**Destroyed** (400)") && text.contains("- and "),
        "{text}"
    );
}

fn other_forms_are_refused() {
    let w = Workspace::with(&[("main.tf", "resource \"terraform_data\" \"a\" {}\n")]);
    w.run(&["plan", "-out=p"]).ok();
    for arguments in [
        &["show", "-format=html", "p"][..],
        &["show", "-format=markdown", "-json", "p"],
        &["show", "-format=markdown"],
        &["plan", "-format=json"],
        &["plan", "-format=markdown", "-json"],
    ] {
        let ran = w.run(arguments);
        assert!(ran.status == 1 && ran.all().contains("-format"), "{}", ran.all());
    }
}

fn plan_prints_markdown_alone() {
    let text = "variable \"v\" {\n  default = 1\n}\n\nresource \"terraform_data\" \"a\" {\n  input = var.v\n}\n\ncheck \"c\" \
                {\n  assert {\n    condition     = var.v == 0\n    error_message = \"A warning.\"\n  }\n}\n";
    let w = Workspace::with(&[("main.tf", text)]);
    w.run(&["apply", "-auto-approve"]).ok();
    let planned = w.run(&["plan", "-var=v=2", "-format=markdown", "-out=p"]).ok();
    assert!(
        planned
            .stdout
            .starts_with("### Plan: 0 to add, 1 to change, 0 to destroy.\n"),
        "{}",
        planned.all()
    );
    assert!(planned.stdout.ends_with("</details>\n"), "{}", planned.all());
    assert!(planned.stderr.contains("A warning."), "{}", planned.all());
    assert_eq!(w.run(&["show", "-format=markdown", "p"]).ok().stdout, planned.stdout);
    // The summary contains the table, but not the single changes.
    let summary = w.run(&["plan", "-var=v=2", "-format=markdown", "-summary"]).ok().stdout;
    assert!(
        summary.contains("| - | `terraform_data` | 1 |") && planned.stdout.starts_with(&summary),
        "{summary}"
    );
    assert!(!summary.contains("<details>"), "{summary}");
    assert_eq!(
        w.run(&["show", "-format=markdown", "-summary", "p"]).ok().stdout,
        summary
    );
}
