//! Data sources: read during planning if possible, otherwise during apply.

use cty::{Type, Value};
use engine::plan::{Mode, Reason};

use crate::support::remote::{assert_before, with};
use crate::support::{Case, actions, change};

#[test]
fn data_source_is_read_during_planning() {
    let mut case = Case::new(
        r#"
        data "fake_lookup" "d" { query = "q" }
        resource "fake_thing" "a" {
          name  = "a"
          value = data.fake_lookup.d.result
        }
        "#,
    );
    let plan = case.plan();
    assert_eq!(actions(&plan), ["+ fake_thing.a"]);
    assert_eq!(
        change(&plan, "fake_thing.a").after.get("value").unwrap().as_str(),
        Some("result of q")
    );
    case.remote.changes();
    let diagnostics = case.try_apply(&plan);
    assert!(!diagnostics.has_errors());
    assert_eq!(case.remote.changes(), ["create a"], "apply reads nothing again");
    assert_eq!(case.addresses(), ["data.fake_lookup.d", "fake_thing.a"]);
    case.assert_settled();
}

#[test]
fn read_is_deferred_while_configuration_is_unknown() {
    let mut case = Case::new(
        r#"
        resource "fake_thing" "a" { name = "a" }
        data "fake_lookup" "d" { query = fake_thing.a.name == "a" ? fake_thing.a.id : "" }
        resource "fake_thing" "b" {
          name  = "b"
          value = data.fake_lookup.d.result
        }
        output "o" { value = data.fake_lookup.d.result }
        "#,
    );
    let plan = case.plan();
    assert_eq!(
        actions(&plan),
        ["<= data.fake_lookup.d", "+ fake_thing.a", "+ fake_thing.b"]
    );
    assert_eq!(
        change(&plan, "data.fake_lookup.d").reason,
        Reason::ReadBecauseConfigUnknown
    );
    case.remote.take_log();
    case.apply();
    let log = case.remote.take_log();
    assert_before(&log, "create a", "data id-a-1");
    assert_before(&log, "data id-a-1", "create b");
    assert_eq!(case.output("o").unwrap().as_str(), Some("result of id-a-1"));
    case.assert_settled();
}

#[test]
fn read_is_deferred_if_depends_on_names_changed_resource() {
    let text = |value: &str| {
        format!(
            "resource \"fake_thing\" \"a\" {{\n name = \"a\"\n value = \"{value}\"\n}}\n\
             data \"fake_lookup\" \"d\" {{\n query = \"q\"\n depends_on = [fake_thing.a]\n}}"
        )
    };
    let mut case = Case::new(&text("1"));
    let plan = case.plan();
    assert_eq!(actions(&plan), ["<= data.fake_lookup.d", "+ fake_thing.a"]);
    assert_eq!(
        change(&plan, "data.fake_lookup.d").reason,
        Reason::ReadBecauseDependencyPending
    );
    case.apply().assert_settled();
    case.main(&text("2"));
    assert_eq!(actions(&case.plan()), ["<= data.fake_lookup.d", "~ fake_thing.a"]);
}

#[test]
fn read_is_deferred_if_module_depends_on_changed_resource() {
    let main = |value: &str| {
        format!(
            "resource \"fake_thing\" \"a\" {{\n name = \"a\"\n value = \"{value}\"\n}}\n\
             module \"m\" {{\n source = \"./m\"\n depends_on = [fake_thing.a]\n}}"
        )
    };
    let child = "data \"fake_lookup\" \"d\" { query = \"q\" }";
    let mut case = Case::with_files(&[("main.tf", &main("1")), ("m/main.tf", child)]);
    case.apply().assert_settled();
    case.files(&[("main.tf", &main("2")), ("m/main.tf", child)]);
    assert_eq!(
        actions(&case.plan()),
        ["~ fake_thing.a", "<= module.m.data.fake_lookup.d"]
    );
}

#[test]
fn read_is_deferred_if_named_module_depends_on_changed_resource() {
    let main = |call: &str| {
        format!(
            "resource \"fake_thing\" \"a\" {{\n name = \"a\"\n}}\n\
             module \"m\" {{\n source = \"./m\"\n {call}\n}}\n\
             data \"fake_lookup\" \"d\" {{\n query = \"q\"\n depends_on = [module.m]\n}}"
        )
    };
    let child = "variable \"v\" {\n default = 0\n}\noutput \"o\" {\n value = 1\n}";
    for call in ["depends_on = [fake_thing.a]", "v = fake_thing.a.id"] {
        let mut case = Case::with_files(&[("main.tf", &main(call)), ("m/main.tf", child)]);
        assert_eq!(
            actions(&case.plan()),
            ["<= data.fake_lookup.d", "+ fake_thing.a"],
            "{call}"
        );
        case.apply().assert_settled();
    }
    let case = Case::with_files(&[("main.tf", &main("")), ("m/main.tf", child)]);
    assert_eq!(actions(&case.plan()), ["+ fake_thing.a"]);
}

#[test]
fn deferred_data_source_delays_no_other_read() {
    let mut case = Case::new(
        r#"
        resource "fake_thing" "a" { name = "a" }
        data "fake_lookup" "e" {
          query      = "e"
          depends_on = [fake_thing.a]
        }
        data "fake_lookup" "f" {
          query      = "f"
          depends_on = [data.fake_lookup.e]
        }
        resource "fake_thing" "n" {
          for_each = toset([data.fake_lookup.f.result])
          name     = "n"
        }
        "#,
    );
    assert_eq!(
        actions(&case.plan()),
        [
            "<= data.fake_lookup.e",
            "+ fake_thing.a",
            "+ fake_thing.n[\"result of f\"]"
        ]
    );
    case.apply().assert_settled();
}

#[test]
fn named_output_of_a_module_delays_a_read_for_managed_resources_behind_it() {
    let main = r#"
        resource "fake_thing" "a" { name = "a" }
        module "m" {
          source = "./m"
          wait   = fake_thing.a.name
        }
        data "fake_lookup" "f" {
          query      = "f"
          depends_on = [module.m.e]
        }
    "#;
    let child = r#"
        variable "wait" {}
        data "fake_lookup" "e" {
          query      = var.wait
          depends_on = [fake_thing.own]
        }
        output "e" { value = data.fake_lookup.e.result }
    "#;
    let own = "resource \"fake_thing\" \"own\" { name = \"own\" }";
    let case = Case::with_files(&[("main.tf", main), ("m/main.tf", &format!("{child}{own}"))]);
    let deferred = |case: &Case| actions(&case.plan()).contains(&"<= data.fake_lookup.f".to_owned());
    assert!(deferred(&case), "a managed resource of the module changes");
    let child = child.replace("depends_on = [fake_thing.own]", "");
    let case = Case::with_files(&[("main.tf", main), ("m/main.tf", &child)]);
    assert!(
        deferred(&case),
        "a managed resource that the output is made from changes"
    );
    // The output does not depend on the other data source in the module.
    let child = child.replace("query      = var.wait", "query      = \"e\"");
    let case = Case::with_files(&[("main.tf", main), ("m/main.tf", &format!("{child}{own}"))]);
    assert!(!deferred(&case));
}

#[test]
fn read_waits_for_the_resources_behind_a_named_value() {
    let case = Case::new(
        r#"
        resource "fake_thing" "a" { name = "a" }
        locals { name = fake_thing.a.name }
        data "fake_lookup" "f" {
          query      = "f"
          depends_on = [local.name]
        }
        "#,
    );
    assert_eq!(actions(&case.plan()), ["<= data.fake_lookup.f", "+ fake_thing.a"]);
}

#[test]
fn failures_in_planning_and_in_apply() {
    let case = Case::new("data \"fake_lookup\" \"d\" { query = \"q\" }");
    case.remote.fail("data q");
    assert!(case.plan_errors().contains("Cannot look up [data.fake_lookup.d]"));
    let mut case = Case::new(
        r#"
        resource "fake_thing" "a" { name = "a" }
        data "fake_lookup" "d" { query = fake_thing.a.id }
        resource "fake_thing" "b" { name = data.fake_lookup.d.result }
        "#,
    );
    case.remote.fail("data id-a-1");
    case.apply_errors();
    assert_eq!(case.addresses(), ["fake_thing.a"]);
}

#[test]
fn unknown_value_from_data_source_is_an_error() {
    let case = Case::new("data \"fake_lookup\" \"d\" { query = \"q\" }");
    case.remote
        .mutate("data q", |v| with(&v, "result", Value::unknown(Type::String)));
    assert!(case.plan_errors().contains("Provider produced invalid object"));
}

#[test]
fn removed_data_source_is_dropped_from_state() {
    let mut case =
        Case::new("data \"fake_lookup\" \"d\" { query = \"q\" }\nresource \"fake_thing\" \"a\" { name = \"a\" }");
    case.apply();
    case.main("resource \"fake_thing\" \"a\" { name = \"a\" }").apply();
    assert_eq!(case.addresses(), ["fake_thing.a"]);
}

#[test]
fn destroy_mode_drops_data_sources() {
    let mut case =
        Case::new("data \"fake_lookup\" \"d\" { query = \"q\" }\nresource \"fake_thing\" \"a\" { name = \"a\" }");
    case.apply();
    case.options.mode = Mode::Destroy;
    assert_eq!(actions(&case.plan()), ["- fake_thing.a"]);
    case.apply();
    assert!(case.state.is_empty(), "{:?}", case.addresses());
}

#[test]
fn instances_of_data_sources_are_dropped_with_their_keys() {
    let text = |n: usize| {
        format!(
            "data \"fake_lookup\" \"d\" {{\n count = {n}\n query = \"q${{count.index}}\"\n}}\nresource \"fake_thing\" \"a\" {{ name = \"a{n}\" }}"
        )
    };
    let mut case = Case::new(&text(2));
    case.apply();
    case.main(&text(1)).apply();
    assert_eq!(case.addresses(), ["data.fake_lookup.d[0]", "fake_thing.a"]);
}

#[test]
fn data_is_stored_without_the_version_of_its_schema() {
    let main = r#"
        data "fake_lookup" "now" { query = "q" }
        resource "fake_thing" "a" { name = "a" }
        data "fake_lookup" "late" { query = fake_thing.a.id }
    "#;
    let mut case = Case::new(main);
    case.apply();
    for address in ["data.fake_lookup.now", "data.fake_lookup.late"] {
        assert_eq!(case.object(address).unwrap().schema_version, 0, "{address}");
    }
    // An earlier release stored the result with a schema version. It is read again, and stored with version 0.
    let address = crate::support::instance("data.fake_lookup.now");
    let provider = case.state.resources[&address.containing_resource()].provider.clone();
    let older = state::Object {
        schema_version: 2,
        ..(*case.object("data.fake_lookup.now").unwrap()).clone()
    };
    case.state
        .set_current(&address, &provider, Some(std::sync::Arc::new(older)));
    case.apply();
    assert_eq!(case.object("data.fake_lookup.now").unwrap().schema_version, 0);
}

/// Returns a case with `calls` instances of a module that contains a data source, and with an output of all results.
fn modules_with_data(calls: usize, within: &str) -> Case {
    let main = format!(
        "module \"m\" {{\n source = \"./m\"\n count = {calls}\n}}\noutput \"o\" {{\n value = module.m[*].o\n}}"
    );
    let child = format!(
        "data \"fake_lookup\" \"d\" {{\n query = \"q\"\n {within}\n}}\noutput \"o\" {{\n value = data.fake_lookup.d.result\n}}"
    );
    Case::with_files(&[("main.tf", &main), ("m/main.tf", &child)])
}

/// Returns the number of reads of a data source since the last call of this function.
fn reads_of(case: &Case, query: &str) -> usize {
    let started = format!("> data {query}");
    case.remote.take_log().iter().filter(|line| **line == started).count()
}

#[test]
fn equal_data_sources_are_read_once_if_the_answer_repeats() {
    let mut case = modules_with_data(20, "");
    case.plan();
    assert_eq!(
        reads_of(&case, "q"),
        2,
        "without a stored answer, the second read is the evidence"
    );
    case.apply();
    reads_of(&case, "q");
    case.assert_settled();
    assert_eq!(reads_of(&case, "q"), 1);
    // If the answer differs from the stored one but repeats, all readers share it.
    case.remote
        .mutate("data q", |v| with(&v, "result", Value::string("another")));
    let plan = case.plan();
    assert_eq!(reads_of(&case, "q"), 2);
    let shown = format!("{:?}", plan.outputs["o"].after);
    assert_eq!(shown.matches("another").count(), 20, "{shown}");
}

#[test]
fn data_source_that_answers_differently_each_time_is_read_for_each_address() {
    let mut case = modules_with_data(6, "");
    let count = std::sync::atomic::AtomicUsize::new(0);
    case.remote.mutate("data q", move |v| {
        let n = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        with(&v, "result", Value::string(format!("password {n}")))
    });
    for _ in 0..2 {
        case.apply();
        assert_eq!(reads_of(&case, "q"), 6);
        let results: std::collections::BTreeSet<_> = (0..6)
            .map(|i| {
                case.attribute(&format!("module.m[{i}].data.fake_lookup.d"), "result")
                    .to_string()
            })
            .collect();
        assert_eq!(results.len(), 6);
    }
}

#[test]
fn data_sources_that_wait_for_other_resources_share_no_read() {
    // `late` depends on `writes`, and may read what `writes` has changed, so it does not share the answer of `early`.
    let mut case = Case::new(
        r#"
        data "fake_lookup" "early" { query = "q" }
        data "fake_lookup" "again" { query = "q" }
        data "fake_lookup" "writes" { query = "w" }
        data "fake_lookup" "late" { query = data.fake_lookup.writes.result == "" ? "" : "q" }
        "#,
    );
    case.apply();
    case.remote.take_log();
    case.assert_settled();
    let log = case.remote.take_log();
    let last = log.iter().rposition(|line| line == "> data q");
    assert!(last > log.iter().position(|line| line == "< data w"), "{log:?}");
    assert_eq!(log.iter().filter(|line| *line == "> data q").count(), 2);
}

#[test]
fn data_source_with_depends_on_has_a_read_of_its_own() {
    let mut case = Case::new(
        r#"
        resource "fake_thing" "a" { name = "a" }
        data "fake_lookup" "d" {
          count      = 3
          query      = "q"
          depends_on = [fake_thing.a]
        }
        "#,
    );
    case.apply();
    case.remote.take_log();
    case.assert_settled();
    assert_eq!(reads_of(&case, "q"), 3);
}

#[test]
fn reads_of_an_apply_are_not_shared() {
    let mut case = Case::new(
        r#"
        resource "fake_thing" "a" { name = "a" }
        data "fake_lookup" "d" {
          count = 3
          query = fake_thing.a.id
        }
        "#,
    );
    case.apply();
    assert_eq!(reads_of(&case, "id-a-1"), 3);
    case.assert_settled();
    assert_eq!(reads_of(&case, "id-a-1"), 1);
}

#[test]
fn failed_read_of_equal_data_sources_is_reported_for_each() {
    let case = modules_with_data(3, "");
    case.remote.fail("data q");
    let problems = case.plan_errors();
    for i in 0..3 {
        assert!(
            problems.contains(&format!("module.m[{i}].data.fake_lookup.d")),
            "{problems}"
        );
    }
}

#[test]
fn provider_configurations_share_no_read() {
    let mut case = Case::new(
        r#"
        provider "fake" { token = "one" }
        provider "fake" {
          alias = "other"
          token = "two"
        }
        data "fake_lookup" "a" { query = "q" }
        data "fake_lookup" "b" {
          query    = "q"
          provider = fake.other
        }
        "#,
    );
    case.apply();
    case.remote.take_log();
    case.assert_settled();
    assert_eq!(reads_of(&case, "q"), 2);
}
