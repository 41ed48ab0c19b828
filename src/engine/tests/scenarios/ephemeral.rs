//! Ephemeral resources, ephemeral values and write-only attributes: used and never stored.

use cty::Value;
use engine::events::{EphemeralAction, Event};
use engine::plan::Mode;

use crate::support::remote::assert_before;
use crate::support::{Case, actions, change};

const TICKET: &str = r#"
    ephemeral "fake_ticket" "t" { name = "t" }
    provider "fake" { token = "plain" }
    provider "other" { token = ephemeral.fake_ticket.t.secret }
    resource "other_thing" "a" { name = "a" }
    resource "fake_thing" "b" {
      name  = "b"
      value = other_thing.a.id
    }
"#;

#[test]
fn ephemeral_resource_is_closed_after_last_use() {
    let mut case = Case::new(TICKET);
    let plan = case.plan();
    let log = case.remote.take_log();
    assert_before(&log, "configure plain", "open t");
    assert_before(&log, "open t", "plan a");
    assert_before(&log, "plan a", "close t");
    assert!(!case.try_apply(&plan).has_errors());
    let log = case.remote.take_log();
    assert_before(&log, "open t", "create a");
    assert_before(&log, "create a", "close t");
    // Only the provider of `other_thing.a` uses the ticket, and `fake_thing.b` depends only on that object, so the ticket is closed
    // before `b` is created.
    assert_before(&log, "close t", "create b");
    assert_eq!(log.iter().filter(|l| **l == "> open t").count(), 1, "{log:?}");
    // The plan and the apply each open a ticket. The state records only the dependency of the object on it.
    assert_eq!(case.attribute("other_thing.a", "token"), "secret-t-2");
    assert_eq!(case.addresses(), ["fake_thing.b", "other_thing.a"]);
    let dependencies = case.object("fake_thing.b").unwrap().dependencies.clone();
    let names: Vec<String> = dependencies.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["ephemeral.fake_ticket.t", "other_thing.a"]);
}

#[test]
fn ephemeral_actions_have_events() {
    let case = Case::new(TICKET);
    case.plan();
    let events = case.events.0.lock().unwrap();
    let of_it: Vec<(EphemeralAction, bool)> = events
        .iter()
        .filter_map(|e| match e {
            Event::EphemeralStart { address, action } if address.to_string() == "ephemeral.fake_ticket.t" => {
                Some((*action, false))
            }
            Event::EphemeralComplete { action, .. } => Some((*action, true)),
            _ => None,
        })
        .collect();
    assert_eq!(
        of_it,
        [
            (EphemeralAction::Open, false),
            (EphemeralAction::Open, true),
            (EphemeralAction::Close, false),
            (EphemeralAction::Close, true)
        ]
    );
}

#[test]
fn ephemeral_resource_with_unknown_configuration_is_deferred() {
    let mut case = Case::new(
        r#"
        resource "fake_thing" "first" { name = "first" }
        ephemeral "fake_ticket" "t" { name = fake_thing.first.id }
        resource "fake_thing" "second" {
          name     = "second"
          password = ephemeral.fake_ticket.t.secret
        }
        "#,
    );
    let plan = case.plan();
    let log = case.remote.take_log();
    assert!(!log.iter().any(|l| l.contains("open")), "nothing is known yet: {log:?}");
    assert!(!case.try_apply(&plan).has_errors());
    let log = case.remote.take_log();
    assert_before(&log, "create first", "open id-first-1");
    assert_before(&log, "open id-first-1", "create second");
    assert_before(&log, "create second", "close id-first-1");
    let note = case.attribute("fake_thing.second", "note");
    assert!(note.as_str().unwrap().contains("with secret-id-first-1"), "{note}");
    assert!(case.attribute("fake_thing.second", "password").is_null());
    case.assert_settled();
}

#[test]
fn ephemeral_resource_can_depend_on_another() {
    let mut case = Case::new(
        r#"
        ephemeral "fake_ticket" "inner" { name = "inner" }
        ephemeral "fake_ticket" "outer" {
          for_each = toset(["x", "y"])
          name     = "${each.key} of ${ephemeral.fake_ticket.inner.name}"
        }
        resource "fake_thing" "a" {
          name     = "a"
          password = ephemeral.fake_ticket.outer["x"].secret
        }
        "#,
    );
    case.apply();
    let log = case.remote.take_log();
    assert_before(&log, "open inner", "open x of inner");
    assert_before(&log, "close x of inner", "close inner");
    assert_before(&log, "close y of inner", "close inner");
    // There are three instances, each opened once by the plan and once by apply.
    assert_eq!(log.iter().filter(|l| l.starts_with("> open")).count(), 6, "{log:?}");
    assert_eq!(log.iter().filter(|l| l.starts_with("> close")).count(), 6, "{log:?}");
}

#[test]
fn ephemeral_resource_is_closed_after_errors() {
    let mut case = Case::new(TICKET);
    case.remote.fail("plan a");
    case.plan_errors();
    assert!(case.remote.changes().contains(&"close t".to_owned()));
    case.remote.heal();
    case.remote.fail("create a");
    case.apply_errors();
    let log = case.remote.changes();
    // The ticket is opened once by the plan and once by apply.
    assert_eq!(log.iter().filter(|l| *l == "open t").count(), 2, "{log:?}");
    assert_eq!(log.iter().filter(|l| *l == "close t").count(), 2, "{log:?}");
}

#[test]
fn ephemeral_resource_is_closed_after_interrupt() {
    let mut case = Case::new(TICKET);
    let plan = case.plan();
    case.remote.take_log();
    let stop = case.stop.clone();
    case.remote.hook("create a", move || stop.request());
    assert!(case.try_apply(&plan).has_errors());
    let log = case.remote.changes();
    assert_eq!(log.last().map(String::as_str), Some("close t"), "{log:?}");
    assert!(!log.contains(&"create b".to_owned()), "{log:?}");
}

#[test]
fn failed_open_skips_dependents() {
    let mut case = Case::new(TICKET);
    case.remote.fail("open t");
    let text = case.plan_errors();
    assert!(
        text.contains("Cannot open [ephemeral.fake_ticket.t]: It is locked."),
        "{text}"
    );
    let log = case.remote.changes();
    assert!(!log.iter().any(|l| l.starts_with("close")), "nothing is open: {log:?}");
    case.remote.heal();
    let plan = case.plan();
    case.remote.fail("open t");
    assert!(case.try_apply(&plan).has_errors());
    assert!(case.remote.names().is_empty());
}

#[test]
fn failed_close_is_an_error() {
    let mut case = Case::new(TICKET);
    let plan = case.plan();
    case.remote.fail("close t");
    let problems = case.try_apply(&plan);
    let text = crate::support::errors(&problems);
    assert!(text.contains("Cannot close [ephemeral.fake_ticket.t]"), "{text}");
    assert_eq!(case.remote.names(), ["a", "b"], "what was done is done");
}

#[test]
fn renewal_happens_in_time_and_close_gets_renewed_private_data() {
    let mut case = Case::new(TICKET);
    let plan = case.plan();
    case.remote.take_log();
    case.remote.lock().renew = true;
    // The creation is slow, so that a renewal falls due during it.
    case.remote.lock().turns.insert("create a".into(), 200);
    assert!(!case.try_apply(&plan).has_errors());
    let log = case.remote.take_log();
    assert_before(&log, "open t", "renew t");
    assert_before(&log, "renew t", "close t+");
    case.destroy();
    case.remote.heal();
    case.remote.fail("renew t");
    // The plan is slow, so that the renewal fails while it runs.
    case.remote.lock().turns.insert("plan a".into(), 200);
    let text = case.plan_errors();
    assert!(text.contains("Cannot renew"), "{text}");
}

#[test]
fn conditions_of_ephemeral_resources_are_evaluated() {
    let main = |pre: &str, post: &str| {
        format!(
            r#"
            ephemeral "fake_ticket" "t" {{
              name = "t"
              lifecycle {{
                precondition {{
                  condition     = {pre}
                  error_message = "Not before."
                }}
                postcondition {{
                  condition     = {post}
                  error_message = "Not after."
                }}
              }}
            }}
            variable "x" {{ default = 1 }}
            resource "fake_thing" "a" {{ password = ephemeral.fake_ticket.t.secret }}
            "#
        )
    };
    let case = Case::new(&main("var.x == 1", "self.name == \"t\""));
    case.plan();
    assert_eq!(case.remote.changes(), ["open t", "close t"]);
    let case = Case::new(&main("var.x == 2", "self.name == \"t\""));
    let text = case.plan_errors();
    assert!(
        text.contains("Resource precondition failed [ephemeral.fake_ticket.t]: Not before."),
        "{text}"
    );
    // The precondition fails before the resource is opened.
    assert!(case.remote.changes().is_empty());
    let case = Case::new(&main("var.x == 1", "self.name == \"q\""));
    let text = case.plan_errors();
    assert!(
        text.contains("Resource postcondition failed [ephemeral.fake_ticket.t]: Not after."),
        "{text}"
    );
    // The resource was opened before its postcondition failed, so it must be closed.
    assert_eq!(case.remote.changes(), ["open t", "close t"]);
}

#[test]
fn invalid_open_responses_are_errors() {
    let case = Case::new(TICKET);
    case.remote.mutate("open t", |v| {
        crate::support::remote::with(&v, "name", Value::string("other"))
    });
    let text = case.plan_errors();
    assert!(
        text.contains("Provider produced invalid ephemeral resource instance [ephemeral.fake_ticket.t]")
            && text.contains("inconsistent result: name: planned value does not match config value"),
        "{text}"
    );
    assert!(
        case.remote.changes().contains(&"close t".to_owned()),
        "it is open all the same"
    );
}

#[test]
fn destroy_plan_opens_only_dependencies_of_providers() {
    let mut case = Case::new(&format!(
        "{TICKET}
        ephemeral \"fake_ticket\" \"unused\" {{ name = \"unused\" }}
        resource \"fake_thing\" \"c\" {{ password = ephemeral.fake_ticket.unused.secret }}"
    ));
    case.apply();
    case.remote.take_log();
    case.options.mode = Mode::Destroy;
    // The refresh pass of a destroy plan opens the same resources as any plan.
    case.options.refresh = false;
    let plan = case.plan();
    let log = case.remote.take_log();
    assert!(
        log.contains(&"> open t".to_owned()) && !log.contains(&"> open unused".to_owned()),
        "{log:?}"
    );
    assert!(!case.try_apply(&plan).has_errors());
    let log = case.remote.take_log();
    assert_before(&log, "open t", "delete a");
    assert_before(&log, "delete a", "close t");
    assert!(!log.contains(&"> open unused".to_owned()), "{log:?}");
    assert!(case.addresses().is_empty());
}

#[test]
fn provisioners_can_use_ephemeral_resources() {
    let mut case = Case::new(
        r#"
        ephemeral "fake_ticket" "t" { name = "t" }
        resource "fake_thing" "a" {
          name = "a"
          provisioner "note" { text = ephemeral.fake_ticket.t.secret }
        }
        "#,
    );
    case.apply();
    let log = case.remote.changes();
    assert_eq!(
        log,
        [
            "open t",
            "close t",
            "open t",
            "create a",
            "provision secret-t-2",
            "close t"
        ]
    );
    let events = case.events.0.lock().unwrap();
    let output = events.iter().find_map(|e| match e {
        Event::ProvisionOutput { output, .. } => Some(output.as_str()),
        _ => None,
    });
    assert_eq!(output, Some("(output suppressed due to ephemeral value in config)"));
}

#[test]
fn ephemeral_values_in_stored_arguments_are_errors() {
    let case = Case::with_files(&[
        (
            "main.tf",
            r#"
            variable "e" {
              type      = string
              ephemeral = true
            }
            locals { made = "x${var.e}" }
            resource "fake_thing" "a" { value = local.made }
            resource "fake_thing" "b" { count = length(var.e) }
            resource "fake_thing" "c" { for_each = toset([var.e]) }
            data "fake_lookup" "d" { query = var.e }
            output "o" { value = [var.e] }
            module "m" {
              source = "./m"
              in     = { a = var.e }
            }
            resource "fake_thing" "fine" { password = var.e }
            output "fine" { value = ephemeralasnull(var.e) }
            "#,
        ),
        (
            "m/m.tf",
            "variable \"in\" {}\noutput \"not\" {\n value = 1\n ephemeral = true\n}\noutput \"in\" { value = var.in }",
        ),
    ]);
    let mut case = case;
    case.variable("e", Value::string("secret"));
    let text = case.plan_errors();
    for expected in [
        "Invalid use of ephemeral value [fake_thing.a]: The value for \"value\" is ephemeral",
        "Invalid use of ephemeral value [data.fake_lookup.d]: The value for \"query\" is ephemeral",
        "Invalid count argument",
        "Invalid for_each argument",
        "Ephemeral value not allowed: The output values of the root module are stored",
        "Ephemeral value not allowed: The argument depends on an ephemeral value, and the input variable \"in\"",
    ] {
        assert!(text.contains(expected), "{expected}\nin\n{text}");
    }
    assert_eq!(text.matches("Error: ").count(), 6, "{text}");
    assert!(!text.contains("secret"), "{text}");
}

#[test]
fn terraform_applying_is_true_during_apply() {
    let main =
        "resource \"fake_thing\" \"a\" {\n name = \"a\"\n password = terraform.applying ? \"now\" : \"later\"\n}";
    let mut case = Case::new(main);
    case.apply();
    assert_eq!(case.attribute("fake_thing.a", "note"), "note-1 with now");
}

#[test]
fn write_only_attributes_reach_the_provider_only() {
    let mut case = Case::new(
        "variable \"p\" {\n ephemeral = true\n}\nresource \"fake_thing\" \"a\" {\n name = \"a\"\n password = var.p\n}",
    );
    case.variable("p", Value::string("sesame"));
    let plan = case.plan();
    let planned = change(&plan, "fake_thing.a");
    assert!(planned.after.get("password").unwrap().is_null());
    assert!(!format!("{plan:?}").contains("sesame"));
    assert!(plan.variables.get("p").unwrap().clone().unmark_deep().0.is_null());
    assert!(!case.try_apply(&plan).has_errors());
    assert_eq!(case.attribute("fake_thing.a", "note"), "note-1 with sesame");
    assert!(case.attribute("fake_thing.a", "password").is_null());
    // A changed write-only value does not cause a change, because the state has no prior value to compare it with.
    case.variable("p", Value::string("other"));
    assert!(actions(&case.plan()).is_empty());
}

#[test]
fn returned_write_only_values_are_errors() {
    let main = "resource \"fake_thing\" \"a\" {\n name = \"a\"\n password = \"sesame\"\n}";
    let leak = |v: Value| crate::support::remote::with(&v, "password", Value::string("sesame"));
    let mut case = Case::new(main);
    case.remote.mutate("plan a", leak);
    let text = case.plan_errors();
    assert!(
        text.contains("Provider produced invalid plan")
            && text.contains("the write-only attribute \"fake_thing.a.password\" while planning"),
        "{text}"
    );
    case.remote.heal();
    case.remote.mutate("create a", leak);
    let text = case.apply_errors();
    assert!(
        text.contains("Provider produced invalid object")
            && text.contains("the write-only attribute \"fake_thing.a.password\" after applying"),
        "{text}"
    );
    assert!(case.attribute("fake_thing.a", "password").is_null(), "it is not kept");
    case.remote.heal();
    case.apply();
    case.remote.drift("a", "password", Value::string("sesame"));
    let text = case.plan_errors();
    assert!(
        text.contains("\"fake_thing.a.password\" while reading the object"),
        "{text}"
    );
}
