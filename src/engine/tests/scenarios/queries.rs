//! Queries: list blocks, their results, and the generated configuration.

use cty::Value;
use engine::inputs::QueryOptions;
use engine::plan::Plan;

use crate::support::remote::with;
use crate::support::{Case, errors, load_with_queries};

const ALL: &str = r#"
list "fake_thing" "all" {
  provider = fake
}
"#;

/// Returns a case with this configuration, these query blocks, and three remote objects.
fn case(main: &str, query: &str) -> Case {
    let mut case = Case::new("");
    let (config, problems) = load_with_queries(&[("main.tf", main), ("all.tfquery.hcl", query)]);
    assert!(!problems.has_errors(), "{}", errors(&problems));
    case.config = config;
    case.options.query = Some(QueryOptions::default());
    case.identities(1);
    let mut other = Case::new("resource \"fake_thing\" \"a\" {\n name = \"a\"\n value = \"v\"\n}");
    other.apply();
    let object = other.remote.named("a").unwrap();
    for (id, name) in [("1", "anna"), ("2", "bert"), ("3", "astrid")] {
        let object = with(&with(&object, "id", Value::string(id)), "name", Value::string(name));
        case.remote.lock().objects.insert(id.into(), object);
    }
    case
}

fn names(plan: &Plan) -> Vec<String> {
    let all = plan.queries.iter().flat_map(|q| {
        let at = q.address.to_string();
        q.results.iter().map(move |r| format!("{at}: {}", r.display_name))
    });
    all.collect()
}

#[test]
fn list_block_finds_objects() {
    let case = case("resource \"fake_thing\" \"never_planned\" { name = \"n\" }", ALL);
    let plan = case.plan();
    assert_eq!(
        names(&plan),
        [
            "list.fake_thing.all: ANNA",
            "list.fake_thing.all: BERT",
            "list.fake_thing.all: ASTRID"
        ]
    );
    assert!(plan.changes.is_empty(), "managed resources are not planned");
    let first = &plan.queries[0];
    assert_eq!(first.identity_version, 1);
    assert!(first.results[0].object.is_null());
    let (config, included, limit) = case.remote.lock().listed[0].clone();
    assert!(!config.is_null() && !included && limit == 100, "{config:?}");
}

#[test]
fn arguments_of_a_list_block_reach_the_provider() {
    let case = case(
        "locals {\n most = 1 + 1\n}",
        r#"
        variable "begin" { default = "a" }
        list "fake_thing" "some" {
          provider         = fake
          limit            = local.most
          include_resource = true
          config { prefix = var.begin }
        }
        "#,
    );
    let mut case = case;
    case.variable("begin", Value::string("a"));
    let plan = case.plan();
    assert_eq!(
        names(&plan),
        ["list.fake_thing.some: ANNA", "list.fake_thing.some: ASTRID"]
    );
    assert!(plan.queries[0].results[0].object.is_present());
    let (_, included, limit) = case.remote.lock().listed[0].clone();
    assert!(included && limit == 2);
}

#[test]
fn write_only_values_of_listed_objects_are_left_out() {
    let mut case = case(
        "",
        "list \"fake_thing\" \"b\" {\n provider = fake\n include_resource = true\n config { prefix = \"b\" }\n}",
    );
    for object in case.remote.lock().objects.values_mut() {
        *object = with(object, "password", Value::string("hunter2"));
    }
    case.options.query = Some(QueryOptions { generate_config: true });
    let plan = case.plan();
    let found = &plan.queries[0].results[0];
    assert!(found.object.get("password").unwrap().is_null());
    assert!(!format!("{:?}", found.generated).contains("hunter2"));
}

#[test]
fn lists_refer_to_other_lists_and_to_data() {
    let case = case(
        "data \"fake_lookup\" \"d\" { query = \"b\" }",
        r#"
        list "fake_thing" "first" {
          provider = fake
          config { prefix = data.fake_lookup.d.query }
        }
        list "fake_thing" "second" {
          provider = fake
          for_each = { for r in list.fake_thing.first.data : r.display_name => r.identity.id }
          config { prefix = "an" }
        }
        "#,
    );
    let plan = case.plan();
    assert_eq!(
        names(&plan),
        ["list.fake_thing.first: BERT", "list.fake_thing.second[\"BERT\"]: ANNA"]
    );
}

#[test]
fn configuration_is_generated_for_what_is_found() {
    let mut case = case(
        "",
        "list \"fake_thing\" \"b\" {\n provider = fake\n count = 1\n config { prefix = \"b\" }\n}",
    );
    case.options.query = Some(QueryOptions { generate_config: true });
    let plan = case.plan();
    let generated = plan.queries[0].results[0].generated.clone().unwrap();
    assert_eq!(
        generated.resource,
        "resource \"fake_thing\" \"b_0_0\" {\n  provider = fake\n  forced   = null\n  name     = \"bert\"\n  password = null\n  \
         secret   = null # sensitive\n  tags     = null\n  value    = \"v\"\n}"
    );
    assert_eq!(
        generated.import,
        "import {\n  to       = fake_thing.b_0_0\n  provider = fake\n  identity = {\n    id     = \"2\"\n    region = \"here\"\n  }\n}"
    );
    // A provider that generates configuration gets a request for it.
    case.remote.lock().generates = true;
    let plan = case.plan();
    let generated = plan.queries[0].results[0].generated.clone().unwrap();
    assert!(generated.resource.contains("value    = null"), "{}", generated.resource);
}

#[test]
fn mistakes_in_query_files() {
    for (query, summary) in [
        ("list \"fake_thing\" \"a\" {}", "Missing \"provider\" attribute"),
        (
            "list \"fake_thing\" \"a\" {\n provider = fake\n config {}\n config {}\n}",
            "Duplicate config block",
        ),
        (
            "list \"fake_thing\" \"a\" {\n provider = fake\n}\nlist \"fake_thing\" \"a\" {\n provider = fake\n}",
            "Duplicate \"list\" block names",
        ),
        ("resource \"fake_thing\" \"a\" {}", "Unsupported block type"),
    ] {
        let (_, problems) = load_with_queries(&[("q.tfquery.hcl", query)]);
        assert!(errors(&problems).contains(summary), "{query}: {}", errors(&problems));
    }
}

#[test]
fn arguments_that_cannot_be_used() {
    for (arguments, summary) in [
        ("limit = -1", "Invalid limit argument"),
        ("limit = null", "Invalid \"limit\" argument"),
        ("limit = \"many\"", "Invalid \"limit\" argument"),
        (
            "include_resource = \"perhaps\"",
            "Invalid \"include_resource\" argument",
        ),
        ("config { wrong = 1 }", "Unsupported argument"),
        ("config { prefix = fake_thing.n.id }", "config is not known"),
    ] {
        let query = format!("list \"fake_thing\" \"a\" {{\n provider = fake\n {arguments}\n}}");
        let case = case("resource \"fake_thing\" \"n\" { name = \"n\" }", &query);
        let found = case.plan_errors();
        assert!(found.contains(summary), "{arguments}: {found}");
    }
    let case = case("", "list \"fake_other\" \"a\" {\n provider = fake\n}");
    let found = case.plan_errors();
    assert!(found.contains("Invalid list resource"), "{found}");
}

#[test]
fn failing_list_is_an_error() {
    let case = case("", ALL);
    case.remote.fail("list ");
    assert!(case.plan_errors().contains("Cannot list"));
}
