//! Tests of plan documents, totals and views.

use addrs::Provider;
use cty::Type;

use super::*;

fn change(address: &str, action: Action) -> ResourceChange {
    ResourceChange {
        address: addrs::parse::resource_instance(address).unwrap(),
        previous_address: None,
        deposed: None,
        provider: AbsProviderConfig::root(Provider::default_for("t")),
        action,
        reason: Reason::None,
        before: Value::null(Type::Dynamic),
        after: Value::null(Type::Dynamic),
        replace_paths: Vec::new(),
        private: Vec::new(),
        config_known: true,
        importing: None,
        identity: None,
    }
}

fn totals(changes: &[ResourceChange]) -> Totals {
    let plan = PlanView {
        mode: Mode::Normal,
        changes,
        drift: &[],
        invocations: &[],
        outputs: &BTreeMap::new(),
        unread: None,
        relevant_attributes: &[],
        generated_config: &BTreeMap::new(),
        errored: false,
    };
    plan.totals()
}

#[test]
fn totals_count_both_steps_of_a_replacement() {
    let count = |action| totals(&[change("t.a", action)]).to_string();
    let both = "1 to add, 0 to change, 1 to destroy.";
    assert_eq!(count(Action::DeleteThenCreate), both);
    assert_eq!(count(Action::CreateThenDelete), both);
    assert_eq!(count(Action::CreateThenForget), "1 to add, 0 to change, 0 to destroy.");
    assert_eq!(count(Action::Update), "0 to add, 1 to change, 0 to destroy.");
}

#[test]
fn totals_leave_out_what_changes_no_object() {
    let changes = [
        change("t.a", Action::NoOp),
        change("t.b", Action::Forget),
        change("data.t.c", Action::Read),
        change("data.t.d", Action::Delete),
    ];
    let forgotten = Totals {
        forgotten: 1,
        ..Totals::default()
    };
    assert_eq!(totals(&changes), forgotten);
    // OpenTofu adds the number of forgotten objects.
    assert_eq!(forgotten.to_string(), "0 to add, 0 to change, 0 to destroy.");
}

#[test]
fn totals_name_imports_and_invocations_only_if_there_are_any() {
    let imported = ResourceChange {
        importing: Some(ImportedBy::Sensitive),
        ..change("t.a", Action::NoOp)
    };
    let totals = Totals {
        invoked: 2,
        ..totals(&[imported])
    };
    assert_eq!(
        totals.to_string(),
        "1 to import, 0 to add, 0 to change, 0 to destroy. Actions: 2 to invoke."
    );
}
