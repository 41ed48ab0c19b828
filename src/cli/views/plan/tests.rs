//! Whole plans, compared with what Terraform 1.11 writes for the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use addrs::AbsProviderConfig;
use cty::{Type, Value};
use engine::execgraph::ExecGraph;
use lang::schema::{AttributeSchema, AttributeType, BlockSchema, Schema};
use plugins::provider::ProviderSchema;
use state::State;

use super::*;

fn schemas() -> Schemas {
    let attribute = AttributeSchema {
        ty: AttributeType::Plain(Type::String),
        optional: true,
        ..AttributeSchema::default()
    };
    let block = BlockSchema {
        attributes: BTreeMap::from([("id".into(), attribute)]),
        ..BlockSchema::default()
    };
    let schema = ProviderSchema {
        resources: BTreeMap::from([("terraform_data".into(), Schema::new(0, block))]),
        ..ProviderSchema::default()
    };
    Schemas {
        providers: BTreeMap::from([(addrs::Provider::builtin("terraform"), Arc::new(schema))]),
        ..Schemas::default()
    }
}

fn change(address: &str, action: Action, reason: Reason) -> ResourceChange {
    let object = |id: Value| Value::object([("id", id)]);
    let nothing = Value::null(object("x".into()).ty().clone());
    let (before, after) = match action {
        Action::Create => (nothing, object(Value::unknown(Type::String))),
        Action::Delete => (object("x".into()), nothing),
        Action::DeleteThenCreate | Action::CreateThenDelete => {
            (object("x".into()), object(Value::unknown(Type::String)))
        }
        _ => (object("x".into()), object("x".into())),
    };
    ResourceChange {
        address: addrs::parse::resource_instance(address).unwrap(),
        previous_address: None,
        deposed: None,
        provider: AbsProviderConfig::root(addrs::Provider::builtin("terraform")),
        action,
        reason,
        before,
        after,
        replace_paths: Vec::new(),
        private: Vec::new(),
        config_known: true,
        importing: None,
    }
}

fn plan(changes: Vec<ResourceChange>) -> Plan {
    Plan {
        mode: Mode::Normal,
        timestamp: String::new(),
        variables: BTreeMap::new(),
        targets: Vec::new(),
        force_replace: Vec::new(),
        changes,
        drift: Vec::new(),
        outputs: BTreeMap::new(),
        previous_state: State::new(),
        prior_state: State::new(),
        graph: ExecGraph::default(),
        relevant_attributes: Vec::new(),
        errored: false,
    }
}

fn shown(plan: &Plan) -> String {
    text(plan, &schemas(), Style::PLAIN, 78)
}

#[test]
fn a_plan_from_legend_to_outputs() {
    let mut plan = plan(vec![
        change("terraform_data.a[1]", Action::Delete, Reason::DeleteBecauseCountIndex),
        change(
            "terraform_data.b",
            Action::DeleteThenCreate,
            Reason::ReplaceBecauseTainted,
        ),
        change("terraform_data.c", Action::NoOp, Reason::None),
        change("module.m.terraform_data.d", Action::Create, Reason::None),
    ]);
    let output = |action, before, after, sensitive| OutputChange {
        action,
        before,
        after,
        sensitive,
    };
    let null = || Value::null(Type::Dynamic);
    plan.outputs = BTreeMap::from([
        ("n".into(), output(Action::Create, null(), Value::number(1), false)),
        ("secret".into(), output(Action::Create, null(), "s".into(), true)),
    ]);
    assert_eq!(
        shown(&plan),
        r#"
Terraform used the selected providers to generate the following execution
plan. Resource actions are indicated with the following symbols:
  + create
  - destroy
-/+ destroy and then create replacement

Terraform will perform the following actions:

  # terraform_data.a[1] will be destroyed
  # (because index [1] is out of range for count)
  - resource "terraform_data" "a" {
      - id = "x" -> null
    }

  # terraform_data.b is tainted, so must be replaced
-/+ resource "terraform_data" "b" {
      ~ id = "x" -> (known after apply)
    }

  # module.m.terraform_data.d will be created
  + resource "terraform_data" "d" {
      + id = (known after apply)
    }

Plan: 2 to add, 0 to change, 2 to destroy.

Changes to Outputs:
  + n      = 1
  + secret = (sensitive value)
"#
    );
}

#[test]
fn nothing_to_do_is_said_for_each_mode() {
    let mut plan = plan(vec![change("terraform_data.c", Action::NoOp, Reason::None)]);
    let normal = "
No changes. Your infrastructure matches the configuration.

Terraform has compared your real infrastructure against your configuration
and found no differences, so no changes are needed.
";
    assert_eq!(shown(&plan), normal);
    plan.mode = Mode::Destroy;
    assert!(shown(&plan).starts_with("\nNo changes. No objects need to be destroyed.\n"));
    plan.mode = Mode::RefreshOnly;
    assert!(shown(&plan).starts_with("\nNo changes. Your infrastructure still matches the configuration.\n"));
}

#[test]
fn moved_and_forgotten_objects_are_told() {
    let mut moved = change("terraform_data.new", Action::NoOp, Reason::None);
    moved.previous_address = Some(addrs::parse::resource_instance("terraform_data.old").unwrap());
    let forgotten = change("terraform_data.z", Action::Forget, Reason::None);
    let text = shown(&plan(vec![moved, forgotten]));
    assert!(
        text.contains(
            r#"
  # terraform_data.old has moved to terraform_data.new
    resource "terraform_data" "new" {
        id = "x"
    }

 # terraform_data.z will no longer be managed by Terraform, but will not be destroyed
 # (destroy = false is set in the configuration)
 . resource "terraform_data" "z" {
        id = "x"
    }

Plan: 0 to add, 0 to change, 0 to destroy.
"#
        ),
        "{text}"
    );
}
