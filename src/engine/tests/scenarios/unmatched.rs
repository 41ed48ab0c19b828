//! `-target`, `-exclude` and `-replace` with addresses that match nothing.

use engine::plan::Mode;

use crate::support::{Case, actions, instance};

const CONFIG: &str = r#"
    resource "fake_thing" "one" { name = "one" }
    resource "fake_thing" "many" {
      count = 3
      name  = "m${count.index}"
    }
    module "net" {
      source = "./net"
      for_each = toset(["a", "b"])
    }
"#;

fn case() -> Case {
    let net = r#"resource "fake_thing" "t" { name = "t" }"#;
    Case::with_files(&[("main.tf", CONFIG), ("net/main.tf", net)])
}

/// Returns the errors of a plan with strict addresses.
fn refused(case: &mut Case) -> String {
    case.options.strict_addresses = true;
    case.plan_errors()
}

#[test]
fn unmatched_target_with_strict_addresses_is_an_error_with_nearest_address() {
    for (target, near) in [
        ("fake_thing.oen", "fake_thing.one"),
        ("fake_thing.many[7]", "fake_thing.many[0]"),
        ("module.nat", "module.net"),
        ("module.net[\"c\"]", "module.net[\"a\"]"),
        ("module.net[\"a\"].fake_thing.x", "module.net.fake_thing.t"),
        ("module.net[\"c\"].fake_thing.t", "module.net[\"a\"]"),
    ] {
        let mut case = case();
        case.target(&[target]);
        let errors = refused(&mut case);
        assert!(errors.contains("No match for -target"), "{target}: {errors}");
        assert!(errors.contains(&format!("Did you mean {near}?")), "{target}: {errors}");
    }
}

#[test]
fn unmatched_target_without_similar_address_has_no_hint() {
    let mut case = case();
    case.target(&["other_thing.quite_different"]);
    let errors = refused(&mut case);
    assert!(
        errors.contains("No match") && !errors.contains("Did you mean"),
        "{errors}"
    );
}

#[test]
fn target_matches_address_of_the_state() {
    let mut case = case();
    case.apply();
    case.main(r#"resource "fake_thing" "other" { name = "x" }"#);
    // The objects are only in the state, so the matched ones are destroyed.
    case.options.strict_addresses = true;
    for target in ["fake_thing.many[1]", "module.net[\"a\"].fake_thing.t"] {
        case.target(&[target]);
        assert_eq!(actions(&case.plan()), [format!("- {target}")]);
    }
    case.options.mode = Mode::Destroy;
    case.target(&["fake_thing.one"]);
    assert_eq!(actions(&case.plan()), ["- fake_thing.one"]);
}

#[test]
fn unmatched_exclude_is_an_error() {
    let mut case = case();
    case.options.excludes = vec![addrs::parse::target("fake_thing.on").unwrap()];
    let errors = case.plan_errors();
    assert!(
        errors.contains("No match for -exclude") && errors.contains("fake_thing.one"),
        "{errors}"
    );
}

#[test]
fn replace_option_must_name_one_instance() {
    for (address, near) in [
        ("fake_thing.many", "fake_thing.many[0]"),
        ("fake_thing.many[3]", "fake_thing.many[0]"),
        ("fake_thing.ones", "fake_thing.one"),
    ] {
        let mut case = case();
        case.options.force_replace = vec![instance(address)];
        let errors = refused(&mut case);
        assert!(errors.contains("No match for -replace"), "{address}: {errors}");
        assert!(errors.contains(&format!("Did you mean {near}?")), "{address}: {errors}");
    }
    let mut case = case();
    case.options.force_replace = vec![instance("fake_thing.many[2]")];
    case.plan();
}
