//! Determinism: equal inputs give equal plans, whatever the order of the provider's responses.

use cty::Value;

use crate::support::Case;

const MANY: &str = r#"
    resource "fake_thing" "a" {
      count = 100
      name  = "a${count.index}"
    }
    resource "fake_thing" "b" {
      for_each = { for i in range(100) : "k${i}" => i }
      name     = "b${each.key}"
      value    = fake_thing.a[each.value].id
      lifecycle {
        postcondition {
          condition     = self.name != "seven"
          error_message = "seven"
        }
      }
    }
    data "fake_lookup" "l" {
      count = 20
      query = fake_thing.a[count.index].name
    }
    check "c" {
      assert {
        condition     = fake_thing.a[3].name == "x"
        error_message = "not x"
      }
    }
    output "o" { value = fake_thing.b["k5"].value }
"#;

#[test]
fn plan_is_independent_of_parallelism_and_timing() {
    let mut case = Case::new(MANY);
    case.apply();
    for i in [3, 50, 99] {
        case.remote.drift(&format!("a{i}"), "value", Value::string("drifted"));
        case.remote.vanish(&format!("bk{i}"));
    }
    case.main(
        &MANY
            .replace("range(100)", "range(2, 102)")
            .replace("each.value]", "each.value % 100]"),
    );
    let mut first: Option<String> = None;
    for (parallelism, seed) in [(1, 0), (10, 1), (10, 77), (3, 5), (200, 9)] {
        case.parallelism = parallelism;
        case.remote.lock().seed = seed;
        let plan = format!("{:?}", case.plan());
        match &first {
            None => first = Some(plan),
            Some(first) => assert!(*first == plan, "parallelism {parallelism}, seed {seed}"),
        }
    }
}
