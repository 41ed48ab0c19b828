//! Tests of the texts of plans and states, compared with the output of Terraform 1.11.4 for the same plans (`plans/`: the plan as
//! JSON and its text, some also in colours), and against texts written by hand where there is no record.

mod recorded;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use ::state::{Attributes, Object, OutputValue, State};
use addrs::AbsProviderConfig;
use cty::{Marks, Type, Value};
use engine::plan::{Action, OutputChange, Reason, ResourceChange};
use provider::ProviderSchema;
use schema::{AttributeSchema, AttributeType, BlockSchema, Schema};

use recorded::PlanDocument;

use super::*;
use crate::wrap::wrap;

const TERRAFORM: Names = Names {
    tool: "Terraform",
    command: "terraform",
};
const PLAIN: Style = Style {
    colour: false,
    width: 78,
    revealed: false,
    short: false,
    unchanged: false,
    program: addrs::Program::MONOFORM,
};

#[test]
fn plans_look_as_terraform_shows_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("diff/tests/plans");
    let read = |name: &str| std::fs::read_to_string(root.join(name)).unwrap();
    let schemas = recorded::schemas(&serde_json::from_str(&read("schemas.json")).unwrap());
    let mut compared = 0;
    for entry in std::fs::read_dir(&root).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let (name, extension) = file.split_once('.').unwrap();
        if extension == "json" {
            continue;
        }
        let json = serde_json::from_str(&read(&format!("{name}.json"))).unwrap();
        let style = Style {
            colour: extension == "ansi",
            ..PLAIN
        };
        let text = plan::write(recorded::plan(&json, &schemas).view(), &schemas, style, TERRAFORM);
        // Terraform does not show outputs of which only the sensitivity changes.
        let own = |line: &&str| line.contains(" = (sensitive value) # becomes ");
        let lines = crate::terminal::shown(&text);
        let shared: String = lines.split_inclusive('\n').filter(|line| !own(line)).collect();
        assert_eq!(shared, explained(&read(&file)), "{file}");
        compared += 1;
    }
    assert!(compared > 60, "only {compared} records found");
}

/// Beginnings of Terraform's explanations in the records, with our own explanations that replace them.
const EXPLANATIONS: [(&str, &str); 7] = [
    (
        "Terraform detected the following",
        "These objects are not as the last \"terraform apply\" left them, which may affect this plan:",
    ),
    (
        "This is a refresh-only plan, so",
        "This is a refresh-only plan. If these changes are intended, apply it: the Terraform state then has the new values, and no \
         object is changed.",
    ),
    (
        "Unless you have made",
        "The plan below may revert these changes or react to them. To accept them instead, write them into the configuration, or \
         name the attributes in ignore_changes.",
    ),
    (
        "You can apply this plan",
        "Applying this plan saves the new output values in the Terraform state. It changes no object.",
    ),
    ("Terraform has checked that", "Every object is as the last run left it."),
    (
        "Either you have not",
        "The state has no objects: nothing was created yet, or everything is deleted already.",
    ),
    (
        "Terraform has compared",
        "Terraform compared every object with its configuration, and found no differences.",
    ),
];

/// Returns a record with our own explanations.
fn explained(record: &str) -> String {
    let mut out = String::new();
    let mut lines = record.split_inclusive('\n');
    while let Some(line) = lines.next() {
        // With colours, the end of the previous paragraph may precede the text.
        let plain = line.trim_start_matches("\u{1b}[0m");
        let begins = |(words, _): &&(&str, &str)| plain.starts_with(*words);
        match EXPLANATIONS.iter().find(begins) {
            Some((_, own)) => {
                out.push_str(line.strip_suffix(plain).unwrap_or_default());
                for line in wrap(own, PLAIN.width) {
                    out.push_str(&line);
                    out.push('\n');
                }
                // Skip the rest of the paragraph, up to the empty line after it, which may begin the colour of a rule.
                let is_end = |line: &&str| matches!(line.trim_end(), "" | "\u{1b}[90m");
                out.extend(lines.by_ref().find(is_end));
            }
            None => out.push_str(line),
        }
    }
    out
}

/// Returns the schemas of a provider with one resource type, `test_thing`, that has these attributes.
fn schemas(attributes: &[(&str, Type)]) -> Schemas {
    let attribute = |ty: &Type| AttributeSchema {
        ty: AttributeType::Plain(ty.clone()),
        optional: true,
        ..AttributeSchema::default()
    };
    let block = BlockSchema {
        attributes: attributes
            .iter()
            .map(|(name, ty)| ((*name).into(), attribute(ty)))
            .collect(),
        ..BlockSchema::default()
    };
    let provider = ProviderSchema {
        resources: [("test_thing".into(), Schema::new(0, block))].into_iter().collect(),
        ..ProviderSchema::default()
    };
    Schemas {
        providers: BTreeMap::from([(addrs::Provider::default_for("test"), Arc::new(provider))]),
        ..Schemas::default()
    }
}

fn thing(name: &str, action: Action, before: Value, after: Value) -> ResourceChange {
    ResourceChange {
        address: addrs::parse::resource_instance(&format!("test_thing.{name}")).unwrap(),
        previous_address: None,
        deposed: None,
        provider: AbsProviderConfig::root(addrs::Provider::default_for("test")),
        action,
        reason: Reason::None,
        before,
        after,
        replace_paths: Vec::new(),
        private: Vec::new(),
        config_known: true,
        importing: None,
        identity: None,
    }
}

#[test]
fn deposed_object_of_a_failed_replacement_is_shown() {
    let schemas = schemas(&[("id", Type::String)]);
    let object = Value::object([("id", Value::string("i"))]);
    let mut change = thing("a", Action::Delete, object, Value::null(Type::Dynamic));
    change.deposed = Some("0123abcd".into());
    let plan = PlanDocument {
        changes: vec![change],
        ..PlanDocument::default()
    };
    let text = plan_text(plan.view(), &schemas, PLAIN);
    assert!(
        text.contains(
            "
  # test_thing.a (deposed object 0123abcd) will be destroyed
  # (left over from a partially-failed replacement of this instance)
  - resource \"test_thing\" \"a\" {
      - id = \"i\" -> null
    }

Plan: 0 to add, 0 to change, 1 to destroy.
"
        ),
        "{text}"
    );
    assert!(text.contains("Monoform will perform the following actions:"), "{text}");
}

#[test]
fn a_plan_that_failed_says_so() {
    let plan = PlanDocument {
        errored: true,
        ..PlanDocument::default()
    };
    let text = plan_text(plan.view(), &Schemas::default(), PLAIN);
    assert_eq!(
        text,
        "\nPlanning failed. Monoform encountered an error while generating this plan.\n\n"
    );
}

#[test]
fn outputs_declared_sensitive_are_not_shown() {
    let change = OutputChange {
        action: Action::Update,
        before: Value::string("old"),
        after: Value::string("new"),
        sensitive: true,
    };
    let plan = PlanDocument {
        outputs: BTreeMap::from([("o".into(), change)]),
        ..PlanDocument::default()
    };
    let text = plan_text(plan.view(), &Schemas::default(), PLAIN);
    assert!(
        text.starts_with("\nChanges to Outputs:\n  ~ o = (sensitive value)\n"),
        "{text}"
    );
}

#[test]
fn a_state_is_shown_object_by_object() {
    let schemas = schemas(&[
        ("id", Type::String),
        ("text", Type::String),
        ("list", Type::list(Type::Number)),
    ]);
    let mut state = State::new();
    assert_eq!(
        state_text(&state, &schemas, PLAIN),
        "The state file is empty. No resources are represented.\n"
    );
    let address = addrs::parse::resource_instance("module.m.test_thing.a[0]").unwrap();
    let value = Value::object([
        ("id", Value::string("i")),
        ("text", Value::string("one\ntwo\n")),
        (
            "list",
            Value::list(Type::Number, vec![Value::number(1), Value::number(2)]),
        ),
    ]);
    let attributes = Attributes::encode(&value, value.ty()).unwrap();
    let object = Arc::new(Object::new(0, attributes).with_status(::state::ObjectStatus::Tainted));
    let provider = AbsProviderConfig::root(addrs::Provider::default_for("test"));
    state.set_current(&address, &provider, Some(object));
    state.outputs.insert(
        "longer".into(),
        OutputValue {
            value: Value::string("x"),
            sensitive: true,
        },
    );
    state.outputs.insert(
        "o".into(),
        OutputValue {
            value: Value::tuple(vec![Value::bool(true)]),
            sensitive: false,
        },
    );
    assert_eq!(
        state_text(&state, &schemas, PLAIN),
        "\
# module.m.test_thing.a[0]: (tainted)
resource \"test_thing\" \"a\" {
    id   = \"i\"
    list = [
        1,
        2,
    ]
    text = <<-EOT
        one
        two
    EOT
}


Outputs:

longer = (sensitive value)
o = [
    true,
]
"
    );
}

#[test]
fn a_sensitive_part_never_reaches_the_text() {
    let schemas = schemas(&[("text", Type::String), ("map", Type::map(Type::String))]);
    let secret = || Value::string("hidden!").with_marks(Marks::SENSITIVE);
    let of = |text: Value| {
        Value::object([
            ("text", text),
            (
                "map",
                Value::map(Type::String, BTreeMap::from([("k".into(), secret())])),
            ),
        ])
    };
    let plain = of(Value::string("seen")).unmark_deep().0;
    for (before, after) in [(plain, of(secret())), (of(secret()), of(Value::unknown(Type::String)))] {
        let plan = PlanDocument {
            changes: vec![thing("a", Action::Update, before, after)],
            ..PlanDocument::default()
        };
        let text = plan_text(plan.view(), &schemas, PLAIN);
        assert!(
            !text.contains("hidden!") && text.contains("(sensitive value)"),
            "{text}"
        );
    }
}

#[test]
fn sensitive_values_are_shown_where_they_are_asked_for() {
    const REVEALED: Style = Style {
        revealed: true,
        ..PLAIN
    };
    let schemas = schemas(&[("text", Type::String), ("map", Type::map(Type::String))]);
    let secret = |text: &str| Value::string(text).with_marks(Marks::SENSITIVE);
    let of = |text: Value, key: Value| {
        Value::object([
            ("text", text),
            ("map", Value::map(Type::String, BTreeMap::from([("k".into(), key)]))),
        ])
    };
    let plan = PlanDocument {
        changes: vec![
            thing(
                "changed",
                Action::Update,
                of(secret("old"), secret("same")),
                of(secret("new"), secret("same")),
            ),
            thing(
                "marked",
                Action::Update,
                of(Value::string("seen"), Value::string("k")),
                of(secret("seen"), Value::string("k")),
            ),
        ],
        outputs: BTreeMap::from([(
            "o".into(),
            OutputChange {
                action: Action::Update,
                before: Value::string("before"),
                after: Value::string("after"),
                sensitive: true,
            },
        )]),
        ..PlanDocument::default()
    };
    let text = plan_text(plan.view(), &schemas, REVEALED);
    for part in [
        "      ~ text = \"old\" -> \"new\"\n        # (1 unchanged attribute hidden)\n",
        // A value that becomes sensitive is a change, although the value itself stays.
        "      # Warning: this attribute value will be marked as sensitive and will not\n",
        "      ~ text = \"seen\"\n",
        "  ~ o = \"before\" -> \"after\"\n",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains("(sensitive value)"), "{text}");
    let mut state = State::new();
    state.outputs.insert(
        "o".into(),
        OutputValue {
            value: Value::string("x"),
            sensitive: true,
        },
    );
    assert!(state_text(&state, &schemas, REVEALED).contains("o = \"x\"\n"));
}

#[test]
fn long_lists_and_many_changes_take_no_long_time() {
    let schemas = schemas(&[("list", Type::list(Type::Number))]);
    let of = |numbers: Vec<i64>| {
        Value::object([(
            "list",
            Value::list(Type::Number, numbers.into_iter().map(Value::number).collect()),
        )])
    };
    let mut changes = vec![thing(
        "long",
        Action::Update,
        of((0..30_000).collect()),
        of((5..29_000).rev().collect()),
    )];
    changes.extend((0..5_000).map(|i| thing(&format!("a{i}"), Action::Update, of(vec![i]), of(vec![i + 1]))));
    let plan = PlanDocument {
        changes,
        ..PlanDocument::default()
    };
    let text = plan_text(plan.view(), &schemas, PLAIN);
    assert!(text.ends_with("Plan: 0 to add, 5001 to change, 0 to destroy.\n"));
}
