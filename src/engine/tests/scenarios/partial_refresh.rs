//! Partial refresh: plans that read only the objects that change, or those that were not read recently.

use std::collections::BTreeSet;
use std::sync::Arc;

use cty::Value;
use engine::inputs::{PartialRefresh, RefreshPart};
use engine::last_reads::LastReads;
use engine::plan::{Action, Plan};

use crate::support::remote::with;
use crate::support::{Case, actions, change};

/// Makes a plan with this partial refresh. Returns the plan and the names of the objects that were read.
fn plan_of(case: &mut Case, part: RefreshPart, last_reads: &LastReads) -> (Plan, Vec<String>) {
    case.options.partial_refresh = Some(PartialRefresh {
        part,
        last_reads: Arc::new(last_reads.clone()),
    });
    case.remote.take_log();
    let plan = case.plan();
    case.options.partial_refresh = None;
    let log = case.remote.take_log();
    let reads = log.iter().filter_map(|line| line.strip_prefix("> "));
    let reads = reads.filter(|call| call.starts_with("read ") || call.starts_with("data "));
    let mut reads: Vec<String> = reads.map(str::to_owned).collect();
    let distinct: BTreeSet<_> = reads.iter().cloned().collect();
    assert_eq!(distinct.len(), reads.len(), "each is read once: {reads:?}");
    reads.sort();
    (plan, reads)
}

fn changed(case: &mut Case) -> (Plan, Vec<String>) {
    plan_of(case, RefreshPart::Changed, &LastReads::default())
}

fn unread(plan: &Plan) -> Vec<String> {
    let unread = plan.unread.as_ref().expect("the plan says what it has not read");
    unread.instances.iter().map(|one| one.address.to_string()).collect()
}

/// Returns a configuration with a network, machines that refer to it, and resources that do not.
fn network(value: &str) -> String {
    format!(
        r#"
        data "fake_lookup" "image" {{ query = "image" }}
        data "fake_lookup" "other" {{ query = "other" }}
        resource "fake_thing" "network" {{ name = "network" }}
        resource "fake_thing" "zone" {{ name = "zone" }}
        resource "fake_thing" "machine" {{
          count  = 3
          name   = "machine-${{count.index}}"
          value  = count.index == 1 ? "{value}" : "same"
          forced = fake_thing.network.id
          tags   = {{ image = data.fake_lookup.image.result }}
        }}
        resource "fake_thing" "record" {{
          name  = "record"
          value = data.fake_lookup.other.result
        }}
        "#
    )
}

#[test]
fn plan_without_changes_reads_nothing() {
    let mut case = Case::new(&network("one"));
    case.apply();
    let (plan, reads) = changed(&mut case);
    assert!(!plan.has_changes());
    assert!(reads.is_empty(), "{reads:?}");
    assert_eq!(unread(&plan).len(), 8);
    assert_eq!(plan.unread.unwrap().read, 0);
}

#[test]
fn changed_object_is_read_with_the_data_sources_that_it_uses() {
    let mut case = Case::new(&network("one"));
    case.apply();
    case.main(&network("two"));
    let (plan, reads) = changed(&mut case);
    assert_eq!(actions(&plan), ["~ fake_thing.machine[1]"]);
    assert_eq!(reads, ["data image", "read machine-1"]);
    assert_eq!(
        unread(&plan),
        [
            "data.fake_lookup.other",
            "fake_thing.machine[0]",
            "fake_thing.machine[2]",
            "fake_thing.network",
            "fake_thing.record",
            "fake_thing.zone"
        ]
    );
    let diagnostics = case.try_apply(&plan);
    assert!(!diagnostics.has_errors());
    case.assert_settled();
}

#[test]
fn drift_of_a_changed_object_is_found_and_that_of_others_is_not() {
    let mut case = Case::new(&network("one"));
    case.apply();
    case.remote.drift("machine-1", "secret", Value::string("drifted"));
    case.remote.drift("zone", "value", Value::string("drifted"));
    case.main(&network("two"));
    let (plan, _) = changed(&mut case);
    let drifted: Vec<_> = plan.drift.iter().map(|d| d.address.to_string()).collect();
    assert_eq!(drifted, ["fake_thing.machine[1]"]);
    assert!(
        change(&plan, "fake_thing.machine[1]")
            .after
            .get("secret")
            .unwrap()
            .is_null()
    );
    assert!(!case.try_apply(&plan).has_errors());
    assert_eq!(
        actions(&case.plan()),
        ["~ fake_thing.zone"],
        "a full plan finds the rest"
    );
}

#[test]
fn changed_object_that_is_gone_is_created_again() {
    let mut case = Case::new(&network("one"));
    case.apply();
    case.remote.vanish("machine-1");
    case.main(&network("two"));
    let (plan, _) = changed(&mut case);
    assert_eq!(actions(&plan), ["+ fake_thing.machine[1]"]);
}

#[test]
fn source_of_a_changed_value_is_read_and_its_drift_counts() {
    let text = |from: &str| {
        format!(
            r#"
            resource "fake_thing" "a" {{
              for_each = toset(["x", "y"])
              name     = each.key
            }}
            locals {{ picked = fake_thing.a["{from}"].id }}
            resource "fake_thing" "user" {{
              for_each = toset(["x", "y"])
              name     = "user-${{each.key}}"
              value    = each.key == "x" ? local.picked : "none"
            }}
            resource "fake_thing" "pair" {{
              for_each = toset(["x", "y"])
              name     = "pair-${{each.key}}"
              value    = "${{fake_thing.a[each.key].name}}{from}"
            }}
            "#
        )
    };
    let mut case = Case::new(&text("x"));
    case.apply();
    case.main(&text("y").replace("}y\"", "}x\""));
    let (plan, reads) = changed(&mut case);
    assert_eq!(actions(&plan), ["~ fake_thing.user[\"x\"]"]);
    assert_eq!(
        reads,
        ["read user-x", "read y"],
        "of the sources, only the instance that is named"
    );
    case.remote.vanish("y");
    let (plan, _) = changed(&mut case);
    assert_eq!(actions(&plan), ["+ fake_thing.a[\"y\"]", "~ fake_thing.user[\"x\"]"]);
    case.apply().assert_settled();
    // The value depends on the instance's own key.
    case.main(&text("y").replace("}y\"", "}${each.key == \"x\" ? \"new\" : \"x\"}\""));
    let (plan, reads) = changed(&mut case);
    assert_eq!(actions(&plan), ["~ fake_thing.pair[\"x\"]"]);
    assert_eq!(reads, ["read pair-x", "read x"]);
}

#[test]
fn sources_are_found_through_modules() {
    let main = |value: &str| {
        format!(
            "resource \"fake_thing\" \"a\" {{\n name = \"a\"\n}}\nresource \"fake_thing\" \"b\" {{\n name = \"b\"\n}}\n\
             module \"m\" {{\n source = \"./m\"\n count = 2\n v = {value}\n}}\n\
             resource \"fake_thing\" \"user\" {{\n name = \"user\"\n value = module.m[1].o\n}}"
        )
    };
    let child = "variable \"v\" {}\nresource \"fake_thing\" \"c\" {\n name = \"c\"\n}\n\
                 output \"o\" {\n value = var.v\n}";
    let mut case = Case::with_files(&[("main.tf", &main("fake_thing.a.name")), ("m/main.tf", child)]);
    case.apply();
    case.files(&[("main.tf", &main("fake_thing.b.name")), ("m/main.tf", child)]);
    let (_, reads) = changed(&mut case);
    assert_eq!(reads, ["read b", "read user"]);
}

#[test]
fn data_source_with_other_arguments_is_read() {
    let text = |query: &str| {
        format!(
            "data \"fake_lookup\" \"d\" {{ query = \"{query}\" }}\nresource \"fake_thing\" \"a\" {{\n name = \"a\"\n value = data.fake_lookup.d.result\n}}"
        )
    };
    let mut case = Case::new(&text("q"));
    case.apply();
    case.main(&text("r"));
    let (plan, reads) = changed(&mut case);
    assert_eq!(actions(&plan), ["~ fake_thing.a"]);
    assert_eq!(reads, ["data r", "read a"]);
}

#[test]
fn destroyed_replaced_tainted_and_deposed_objects_are_read() {
    let text = "resource \"fake_thing\" \"t\" {\n name = \"t\"\n}\nresource \"fake_thing\" \"r\" {\n name = \"r\"\n lifecycle {\n replace_triggered_by = [fake_thing.t]\n }\n}\n";
    let gone = "resource \"fake_thing\" \"gone\" {\n name = \"gone\"\n}\n";
    let mut case = Case::new(&format!("{text}{gone}"));
    case.apply();
    case.main(text).replace(&["fake_thing.t"]);
    let (plan, reads) = changed(&mut case);
    assert_eq!(
        actions(&plan),
        ["- fake_thing.gone", "-/+ fake_thing.r", "-/+ fake_thing.t"]
    );
    assert_eq!(reads, ["read gone", "read r", "read t"]);
    // A deposed object is always read, because it will be destroyed.
    let text = "resource \"fake_thing\" \"d\" {\n name = \"d\"\n forced = \"1\"\n lifecycle {\n create_before_destroy = true\n }\n}\n";
    let mut case = Case::new(text);
    case.apply();
    case.main(&text.replace("\"1\"", "\"2\""));
    case.remote.fail("delete d");
    case.apply_errors();
    case.remote.heal();
    let (plan, reads) = changed(&mut case);
    assert_eq!(actions(&plan), ["- fake_thing.d (deposed)"]);
    assert_eq!(reads, ["read d"]);
}

#[test]
fn moved_object_is_not_read() {
    let mut case = Case::new("resource \"fake_thing\" \"a\" {\n name = \"a\"\n}");
    case.apply();
    case.main(
        "resource \"fake_thing\" \"b\" {\n name = \"a\"\n}\nmoved {\n from = fake_thing.a\n to = fake_thing.b\n}",
    );
    let (plan, reads) = changed(&mut case);
    assert!(plan.has_changes() && reads.is_empty());
    assert_eq!(change(&plan, "fake_thing.b").action, Action::NoOp);
}

#[test]
fn what_a_provider_configuration_is_made_of_is_read() {
    let mut case = Case::new(
        r#"
        resource "fake_thing" "cluster" { name = "cluster" }
        data "fake_lookup" "token" { query = fake_thing.cluster.name }
        provider "other" { token = data.fake_lookup.token.result }
        resource "other_thing" "a" { name = "a" }
        "#,
    );
    case.apply();
    let (plan, reads) = changed(&mut case);
    assert_eq!(reads, ["data cluster", "read cluster"]);
    assert_eq!(unread(&plan), ["other_thing.a"]);
}

#[test]
fn data_source_of_a_check_is_read() {
    let mut case = Case::new(
        r#"
        resource "fake_thing" "a" { name = "a" }
        check "c" {
          data "fake_lookup" "d" { query = "health" }
          assert {
            condition     = data.fake_lookup.d.result == "result of health"
            error_message = "Ill."
          }
        }
        "#,
    );
    case.apply();
    case.remote
        .mutate("data health", |v| with(&v, "result", Value::string("ill")));
    let (_, reads) = changed(&mut case);
    assert_eq!(reads, ["data health"]);
}

#[test]
fn targets_limit_what_counts_as_unread() {
    let mut case = Case::new(&network("one"));
    case.apply();
    case.target(&["fake_thing.zone"]);
    let (plan, _) = changed(&mut case);
    assert_eq!(unread(&plan), ["fake_thing.zone"]);
}

#[test]
fn only_what_was_not_read_since_a_time_is_read() {
    let mut case = Case::new(&network("one"));
    case.apply();
    let mut last = LastReads::default();
    let part = |since: &str| RefreshPart::OlderThan {
        since: format!("2026-01-01T{since}:00Z"),
        age: "1h".into(),
    };
    // No reads are recorded yet, so everything is read.
    let (plan, reads) = plan_of(&mut case, part("10:00"), &last);
    assert_eq!(reads.len(), 8);
    last.record_reads(&plan.reads, &plan.prior_state, "2026-01-01T11:00:00Z");
    let (plan, reads) = plan_of(&mut case, part("10:30"), &last);
    assert!(reads.is_empty(), "{reads:?}");
    assert!(
        plan.unread
            .unwrap()
            .instances
            .iter()
            .all(|one| one.last_read.as_deref() == Some("2026-01-01T11:00:00Z"))
    );
    let (_, reads) = plan_of(&mut case, part("11:30"), &last);
    assert_eq!(reads.len(), 8);
    // Drift that was found but not applied must be found again.
    case.remote.drift("zone", "value", Value::string("drifted"));
    let (plan, _) = plan_of(&mut case, part("11:30"), &last);
    assert_eq!(plan.drift.len(), 1);
    last.record_reads(&plan.reads, &plan.prior_state, "2026-01-01T12:00:00Z");
    let (plan, reads) = plan_of(&mut case, part("11:30"), &last);
    assert_eq!((plan.drift.len(), reads), (1, vec!["read zone".to_owned()]));
    assert!(!case.try_apply(&plan).has_errors());
    last.record_applied(
        [&change(&plan, "fake_thing.zone").address],
        &case.state,
        "2026-01-01T12:01:00Z",
    );
    let (_, reads) = plan_of(&mut case, part("11:30"), &last);
    assert!(reads.is_empty(), "{reads:?}");
    // With new arguments, the data source counts as never read.
    case.main(&network("one").replace("\"other\" }", "\"another\" }"));
    let (_, reads) = plan_of(&mut case, part("11:30"), &last);
    assert_eq!(reads, ["data another"]);
}

#[test]
fn objects_in_the_state_alone_do_not_count() {
    let mut case = Case::new("resource \"fake_thing\" \"a\" {\n name = \"a\"\n}");
    case.remote.lock().state_only = true;
    case.apply();
    let (plan, reads) = changed(&mut case);
    assert!(reads.is_empty() && unread(&plan).is_empty());
}
