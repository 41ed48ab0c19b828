//! Provisioners of creation and of destruction.

use engine::apply::Recorded;
use engine::plan::Reason;

use crate::support::{Case, actions, change, texts};

const TWO: &str = r#"
    resource "fake_thing" "a" {
      name = "a"
      provisioner "note" {
        text = "first of ${self.id}"
      }
      provisioner "note" {
        text = "second"
      }
      provisioner "note" {
        when = destroy
        text = "bye ${self.name}"
      }
      provisioner "note" {
        when = destroy
        text = "bye bye"
      }
    }
    resource "fake_thing" "b" {
      name  = "b"
      value = fake_thing.a.id
    }
"#;

#[test]
fn provisioners_run_in_order_after_creation_and_before_destruction() {
    let mut case = Case::new(TWO);
    case.apply();
    assert_eq!(
        case.remote.changes(),
        ["create a", "provision first of id-a-1", "provision second", "create b"]
    );
    case.destroy();
    assert_eq!(
        case.remote.changes(),
        ["delete b", "provision bye a", "provision bye bye", "delete a"]
    );
}

#[test]
fn provisioners_do_not_run_on_updates() {
    let mut case = Case::new(TWO);
    case.apply();
    case.remote.changes();
    case.main(&TWO.replace("name = \"a\"", "name = \"a\"\n value = \"new\""))
        .apply();
    assert_eq!(case.remote.changes(), ["update a"]);
}

#[test]
fn failed_create_provisioner_taints_object_and_next_plan_replaces_it() {
    let mut case = Case::new(TWO);
    case.remote.fail("provision second");
    let errors = case.apply_errors();
    assert!(errors.contains("Provisioner failed"), "{errors}");
    assert!(case.is_tainted("fake_thing.a"));
    assert_eq!(case.addresses(), ["fake_thing.a"], "the dependent is left alone");
    case.remote.heal();
    let plan = case.plan();
    assert_eq!(actions(&plan), ["-/+ fake_thing.a", "+ fake_thing.b"]);
    assert_eq!(change(&plan, "fake_thing.a").reason, Reason::ReplaceBecauseTainted);
    case.remote.changes();
    case.apply();
    // A tainted object is destroyed without its destroy-time provisioners.
    assert_eq!(
        case.remote.changes(),
        [
            "delete a",
            "create a",
            "provision first of id-a-2",
            "provision second",
            "create b"
        ]
    );
    assert!(!case.is_tainted("fake_thing.a"));
    case.assert_settled();
}

#[test]
fn failed_destroy_provisioner_keeps_object() {
    let mut case = Case::new(TWO);
    case.apply();
    case.remote.fail("provision bye a");
    case.options.mode = engine::plan::Mode::Destroy;
    case.remote.changes();
    case.apply_errors();
    assert_eq!(case.remote.changes(), ["delete b", "provision bye a"]);
    assert_eq!(case.addresses(), ["fake_thing.a"]);
    assert!(!case.is_tainted("fake_thing.a"));
}

#[test]
fn on_failure_continue_ignores_failures() {
    let text = r#"
        resource "fake_thing" "a" {
          name = "a"
          provisioner "note" {
            text       = "try"
            on_failure = continue
          }
          provisioner "note" {
            when       = destroy
            text       = "try again"
            on_failure = continue
          }
        }
    "#;
    let mut case = Case::new(text);
    case.remote.fail("provision try");
    case.remote.fail("provision try again");
    case.apply();
    assert!(!case.is_tainted("fake_thing.a"));
    case.destroy();
    assert!(case.state.is_empty());
}

#[test]
fn sensitive_configuration_hides_the_output() {
    let mut case = Case::new(
        r#"
        variable "secret" {
          default   = "hush"
          sensitive = true
        }
        resource "fake_thing" "a" {
          name = "a"
          provisioner "note" {
            text = var.secret
          }
        }
        "#,
    );
    case.apply();
    let events = format!("{:?}", case.events.0.lock().unwrap());
    assert!(
        events.contains("output suppressed due to sensitive value in config"),
        "{events}"
    );
    assert!(!events.contains("hush"), "{events}");
}

#[test]
fn replacement_runs_both_kinds() {
    let text = |forced: &str, cbd: bool| {
        format!(
            "resource \"fake_thing\" \"a\" {{\n name = \"a\"\n forced = \"{forced}\"\n\
             provisioner \"note\" {{\n text = \"hello\"\n }}\n\
             provisioner \"note\" {{\n when = destroy\n text = \"bye\"\n }}\n\
             lifecycle {{ create_before_destroy = {cbd} }}\n}}"
        )
    };
    let mut case = Case::new(&text("1", false));
    case.apply();
    case.remote.changes();
    case.main(&text("2", false)).apply();
    assert_eq!(
        case.remote.changes(),
        ["provision bye", "delete a", "create a", "provision hello"]
    );
    // A deposed object is destroyed without its destroy-time provisioners.
    case.main(&text("3", true)).apply();
    assert_eq!(case.remote.changes(), ["create a", "provision hello", "delete a"]);
}

#[test]
fn destroy_provisioners_see_instance_keys() {
    let text = |keys: &str| {
        format!(
            "resource \"fake_thing\" \"n\" {{\n for_each = toset([{keys}])\n name = each.key\n\
             provisioner \"note\" {{\n when = destroy\n text = \"bye ${{each.key}}\"\n }}\n}}"
        )
    };
    let mut case = Case::new(&text("\"x\", \"y\""));
    case.apply();
    case.remote.changes();
    case.main(&text("\"x\"")).apply();
    assert_eq!(case.remote.changes(), ["provision bye y", "delete y"]);
}

/// Applies, and cancels when this provisioner call begins. The call never ends.
fn canceled_in(text: &str, call: &str) -> Case {
    let mut case = Case::new(text);
    let plan = case.plan();
    let stop = case.stop.clone();
    case.remote.hook(call, move || stop.cancel());
    case.remote.lock().turns.insert(call.into(), u64::MAX);
    assert!(case.try_apply(&plan).has_errors());
    // The results that the sink received must add up to the final state.
    assert!(case.results.0.lock().unwrap().same_content(&case.state));
    case.stop = engine::stop::Stop::new();
    case.remote.heal();
    case
}

#[test]
fn object_whose_provisioner_is_cut_short_is_tainted() {
    for call in ["provision first of id-a-1", "provision second"] {
        let mut case = canceled_in(TWO, call);
        assert!(case.is_tainted("fake_thing.a"), "{call}");
        let aborted = &case.completion.aborted;
        assert_eq!(aborted.len(), 1, "{aborted:?}");
        assert_eq!(aborted[0].recorded, Some(Recorded::Tainted));
        assert_eq!(actions(&case.plan()), ["-/+ fake_thing.a", "+ fake_thing.b"]);
        case.apply().assert_settled();
        assert!(!case.is_tainted("fake_thing.a"));
    }
}

#[test]
fn replacement_whose_provisioner_is_cut_short_is_tainted() {
    let text = |forced: &str| {
        format!(
            "resource \"fake_thing\" \"a\" {{\n name = \"a\"\n forced = \"{forced}\"\n\
             provisioner \"note\" {{\n text = \"hello\"\n }}\n\
             lifecycle {{ create_before_destroy = true }}\n}}"
        )
    };
    let mut case = Case::new(&text("1"));
    case.apply().main(&text("2"));
    let plan = case.plan();
    let stop = case.stop.clone();
    case.remote.hook("provision hello", move || stop.cancel());
    case.remote.lock().turns.insert("provision hello".into(), u64::MAX);
    case.try_apply(&plan);
    assert!(case.is_tainted("fake_thing.a"));
    assert_eq!(case.addresses(), ["fake_thing.a", "fake_thing.a (deposed)"]);
}

#[test]
fn provisioner_that_may_fail_does_not_taint_when_cut_short() {
    let text = r#"
        resource "fake_thing" "a" {
          name = "a"
          provisioner "note" {
            text = "must"
          }
          provisioner "note" {
            text       = "may"
            on_failure = continue
          }
        }
    "#;
    let case = canceled_in(text, "provision may");
    assert!(!case.is_tainted("fake_thing.a"));
    assert_eq!(case.completion.aborted[0].recorded, Some(Recorded::Object));
    case.assert_settled();
    assert!(canceled_in(text, "provision must").is_tainted("fake_thing.a"));
}

#[test]
fn destroy_provisioner_that_is_cut_short_does_not_taint() {
    let mut case = Case::new(TWO);
    case.apply();
    case.options.mode = engine::plan::Mode::Destroy;
    let plan = case.plan();
    let stop = case.stop.clone();
    case.remote.hook("provision bye a", move || stop.cancel());
    case.remote.lock().turns.insert("provision bye a".into(), u64::MAX);
    case.try_apply(&plan);
    assert!(!case.is_tainted("fake_thing.a"));
    assert_eq!(case.completion.aborted[0].recorded, Some(Recorded::Object));
}

#[test]
fn destroy_provisioners_of_a_block_that_is_gone_are_warned_about() {
    let warning = |case: &Case| {
        let (_, diagnostics) = case.try_plan();
        let all = texts(diagnostics.iter());
        all.contains("Destroy-time provisioners will not run")
            && all.contains("\n  - fake_thing.a: note, note\n")
            && !all.contains("- fake_thing.b")
    };
    let mut case = Case::new(TWO);
    case.apply().main("");
    assert!(warning(&case));
    case.options.mode = engine::plan::Mode::Destroy;
    assert!(warning(&case));
    case.options.mode = engine::plan::Mode::Normal;
    case.main(
        "removed {\n from = fake_thing.a\n lifecycle {\n destroy = true\n }\n provisioner \"note\" {\n when = destroy\n text = \"bye\"\n }\n}",
    );
    assert!(!warning(&case));
    // The state records that the block has no destroy-time provisioners any more, so that no warning follows.
    case.main("resource \"fake_thing\" \"a\" {\n name = \"a\"\n}\n").apply();
    case.main("");
    assert!(!warning(&case));
}

#[test]
fn provisioner_without_a_schema_is_closed_with_the_others() {
    let case = Case::new(
        r#"
        resource "fake_thing" "a" {
          name = "a"
          provisioner "good" { text = "x" }
          provisioner "bad" { text = "x" }
        }
        "#,
    );
    case.remote.lock().schemaless.insert("bad".into());
    assert_eq!(case.plan_errors(), "Error: No schema: The provisioner bad has none.");
    let mut closed = case.remote.lock().closed_provisioners.clone();
    closed.sort();
    assert_eq!(closed, ["bad", "good"]);
}
