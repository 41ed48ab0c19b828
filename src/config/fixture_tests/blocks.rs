//! Decoding of each kind of block, and diagnostics of invalid ones.

use addrs::{Mode, Resource};
use cty::{Type, Value};

use super::{check, module};
use crate::{IgnoreChanges, MoveSubject, OnFailure, ProvisionerWhen};

#[test]
fn all_errors_of_a_file_are_reported_together() {
    check(
        "resorce \"a\" \"b\" {}\nfoo = 1\nresource \"a\" {}\nresource \"a\" \"b\" \"c\" {}\nlocals \"x\" {}\nvariable {}\n",
        "error main.tf:1,1-8 Unsupported block type
         error main.tf:2,1-4 Unsupported argument
         error main.tf:3,14-15 Missing name for resource
         error main.tf:4,18-21 Extraneous label for resource
         error main.tf:5,8-11 Extraneous label for locals
         error main.tf:6,10-11 Missing name for variable",
    );
}

#[test]
fn names_are_declared_once() {
    check(
        "variable \"a\" {}\nvariable \"a\" {}\noutput \"a\" { value = 1 }\noutput \"a\" { value = 1 }\nlocals {\n a = 1\n}\nlocals {\n \
         a = 2\n}\nresource \"x_y\" \"a\" {}\nresource \"x_y\" \"a\" {}\ndata \"x_y\" \"a\" {}\nprovider \"x\" {}\nprovider \"x\" \
         {}\nprovider \"x\" { alias = \"y\" }\nprovider \"x\" { alias = \"y\" }\n",
        "error main.tf:2,1-13 Duplicate variable declaration
         error main.tf:4,1-11 Duplicate output definition
         error main.tf:9,2-7 Duplicate local value definition
         error main.tf:12,1-19 Duplicate resource \"x_y\" configuration
         error main.tf:15,1-13 Duplicate provider configuration
         error main.tf:17,1-13 Duplicate provider configuration",
    );
}

#[test]
fn names_follow_the_rule() {
    check(
        "resource \"terraform_data\" \"1a\" {}\nvariable \"a.b\" {}\noutput \"a b\" { value = 1 }\nprovider \"a b\" {}\nvariable \"count\" \
         {}\n",
        "error main.tf:1,27-31 Invalid resource name
         error main.tf:2,10-15 Invalid variable name
         error main.tf:3,8-13 Invalid output name
         error main.tf:4,1-15 Invalid provider local name
         error main.tf:5,10-17 Invalid variable name",
    );
}

#[test]
fn a_variable_has_a_type_and_a_default_that_fits() {
    let module = module(
        "variable \"a\" {\n type = list(number)\n default = [\"1\"]\n description = \"d\"\n sensitive = true\n nullable = \
         false\n}\nvariable \"b\" {\n default = null\n}\nvariable \"c\" {}\n",
    );
    let a = &module.variables["a"];
    assert_eq!(a.ty, Type::list(Type::Number));
    assert_eq!(a.default, Some(Value::list(Type::Number, vec![Value::number(1_i64)])));
    assert!(a.sensitive && !a.nullable && !a.is_required() && !a.takes_literal_text());
    assert_eq!(a.description.as_deref(), Some("d"));
    assert!(module.variables["b"].default.as_ref().is_some_and(Value::is_null));
    assert!(module.variables["c"].is_required() && module.variables["c"].takes_literal_text());
}

#[test]
fn bad_variables() {
    check(
        "variable \"b\" {\n type = string\n default = []\n}\nvariable \"d\" {\n type = \"string\"\n}\nvariable \"e\" {\n type = \
         \"foo\"\n}\nvariable \"g\" {\n description = upper(\"x\")\n}\nvariable \"h\" {\n nullable = false\n default = \
         null\n}\nvariable \"k\" {\n validation {\n  condition = var.b != 1\n  error_message = \"x\"\n }\n}\n",
        "error main.tf:3,12-14 Invalid default value for variable
         error main.tf:6,9-17 Invalid quoted type constraints
         error main.tf:9,9-14 Invalid legacy variable type hint
         error main.tf:12,16-26 Function calls not allowed
         error main.tf:16,12-16 Invalid default value for variable
         error main.tf:20,15-25 Invalid variable validation condition",
    );
}

#[test]
fn resource_arguments_of_the_schema_stay_in_its_body() {
    let module = module(
        "resource \"x_thing\" \"a\" {\n count = 2\n size = 1\n depends_on = [x_thing.b, module.m, var.v]\n nested {}\n _ {\n  count \
         = 7\n }\n lifecycle {\n  create_before_destroy = true\n  prevent_destroy = false\n  ignore_changes = [tags[\"a\"], \
         size]\n  replace_triggered_by = [x_thing.b[count.index].id]\n }\n connection {\n  host = self.ip\n }\n provisioner \
         \"local-exec\" {\n  when = destroy\n  on_failure = continue\n  command = self.id\n }\n}\nresource \"x_thing\" \"b\" {\n \
         lifecycle {\n  ignore_changes = all\n }\n}\n",
    );
    let a = &module.resources[&Resource::managed("x_thing", "a")];
    let names: Vec<&str> = a.body.attributes.iter().map(|a| &*a.name).collect();
    assert_eq!(
        names,
        ["size", "count"],
        "count of the escape block belongs to the schema"
    );
    assert_eq!(a.body.blocks.len(), 1);
    assert!(a.count.is_some() && a.for_each.is_none() && a.connection.is_some());
    assert_eq!(a.provider.to_string(), "registry.terraform.io/hashicorp/x");
    let depends: Vec<String> = a.depends_on.iter().map(|r| r.subject.to_string()).collect();
    assert_eq!(depends, ["x_thing.b", "module.m", "var.v"]);
    assert_eq!(a.lifecycle.create_before_destroy, Some(true));
    assert_eq!(a.lifecycle.prevent_destroy, Some(false));
    assert_eq!(a.lifecycle.replace_triggered_by.len(), 1);
    let IgnoreChanges::Paths(paths) = &a.lifecycle.ignore_changes else {
        panic!("paths expected")
    };
    let paths: Vec<String> = paths.iter().map(|(p, _)| p.to_string()).collect();
    assert_eq!(paths, [".tags[\"a\"]", ".size"]);
    let provisioner = &a.provisioners[0];
    assert_eq!(
        (provisioner.when, provisioner.on_failure),
        (ProvisionerWhen::Destroy, OnFailure::Continue)
    );
    assert_eq!(provisioner.body.attributes.len(), 1);
    let b = &module.resources[&Resource::managed("x_thing", "b")];
    assert_eq!(b.lifecycle.ignore_changes, IgnoreChanges::All);
}

#[test]
fn bad_meta_arguments() {
    check(
        "resource \"x_y\" \"a\" {\n count = 1\n for_each = {}\n depends_on = [x_y.b.id, 1]\n}\nresource \"x_y\" \"b\" {\n depends_on = \
         \"x\"\n provider = x.y.z\n locals {}\n}\nresource \"x_y\" \"c\" {\n lifecycle {\n  foo = 1\n  ignore_changes = [\"*\"]\n \
         }\n lifecycle {}\n}\ndata \"x_y\" \"d\" {\n lifecycle {\n  prevent_destroy = true\n }\n}\n",
        "error main.tf:3,2-10 Invalid combination of \"count\" and \"for_each\"
         error main.tf:4,21-24 Invalid depends_on reference
         error main.tf:4,26-27 Invalid expression
         error main.tf:7,16-17 Invalid expression
         error main.tf:8,13-18 Invalid provider configuration reference
         error main.tf:9,2-8 Reserved block type name in resource block
         error main.tf:13,3-6 Unsupported argument
         error main.tf:14,20-25 Invalid ignore_changes wildcard
         error main.tf:16,2-11 Duplicate lifecycle block
         error main.tf:20,3-18 Invalid data resource lifecycle argument",
    );
}

#[test]
fn quoted_references_and_keywords_are_understood_with_a_warning() {
    check(
        "resource \"x_y\" \"a\" {\n depends_on = [\"x_y.b\"]\n provisioner \"local-exec\" {\n  when = \"destroy\"\n  command = \"x\"\n \
         }\n}\n",
        "warning main.tf:2,16-23 Quoted references are deprecated
         warning main.tf:4,10-19 Quoted keywords are deprecated",
    );
}

#[test]
fn destroy_provisioners_refer_to_their_object_only() {
    check(
        "resource \"x_y\" \"a\" {\n provisioner \"local-exec\" {\n  when = destroy\n  command = \"${x_y.b.id} ${self.id}\"\n }\n \
         provisioner \"local-exec\" {\n  when = foo\n  on_failure = bar\n }\n provisioner \"chef\" {}\n}\n",
        "error main.tf:4,13-37 Invalid reference from destroy provisioner
         error main.tf:7,10-13 Invalid \"when\" keyword
         error main.tf:8,16-19 Invalid \"on_failure\" keyword
         error main.tf:10,14-20 The \"chef\" provisioner has been removed",
    );
}

#[test]
fn checks_have_assertions_and_perhaps_a_data_source() {
    let module = module(
        "check \"c\" {\n data \"x_y\" \"d\" {}\n assert {\n  condition = data.x_y.d.id != \"\"\n  error_message = \"no\"\n }\n}\n",
    );
    let data = Resource::data("x_y", "d");
    assert_eq!(module.checks["c"].data, Some(data.clone()));
    assert_eq!(module.resources[&data].check.as_deref(), Some("c"));
    assert_eq!(module.resources[&data].mode(), Mode::Data);
    check(
        "check \"a\" {}\ncheck \"b\" {\n assert {\n  condition = true\n  error_message = \"x\"\n }\n}\n",
        "error main.tf:1,1-10 Zero assert blocks
         error main.tf:4,15-19 Invalid assert expression",
    );
}

#[test]
fn moved_removed_and_import_have_addresses() {
    let module = module(
        "moved {\n from = x_y.a\n to = module.m.x_y.a[\"k\"]\n}\nmoved {\n from = module.a\n to = module.b[0]\n}\nremoved {\n from = \
         module.m.x_y.z\n lifecycle {\n  destroy = false\n }\n}\nimport {\n to = x_y.b\n id = \"i\"\n}\nimport {\n for_each = \
         {}\n to = x_y.c[each.key]\n id = each.value\n}\n",
    );
    assert!(matches!(module.moved[0].from.subject, MoveSubject::Resource(_)));
    assert!(
        matches!(&module.moved[0].to.subject, MoveSubject::Instance(i) if i.to_string() == "module.m.x_y.a[\"k\"]")
    );
    assert!(matches!(&module.moved[1].to.subject, MoveSubject::Module(m) if m.to_string() == "module.b[0]"));
    assert_eq!(
        (module.removed[0].from.to_string(), module.removed[0].destroy),
        ("module.m.x_y.z".into(), Some(false))
    );
    assert_eq!(
        module.imports[0]
            .to_instance
            .as_ref()
            .map(ToString::to_string)
            .as_deref(),
        Some("x_y.b")
    );
    assert_eq!(
        (
            module.imports[1].to_instance.is_none(),
            module.imports[1].to_resource.to_string()
        ),
        (true, "x_y.c".into())
    );
}

#[test]
fn bad_addresses() {
    check(
        "moved {\n from = x_y.a\n to = module.x\n}\nmoved {\n from = foo\n to = 1\n}\nremoved {\n from = x_y.a[0]\n}\nremoved {\n from \
         = data.a.b\n}\nremoved {\n from = module.a[0]\n}\nimport {\n to = data.a.b\n id = \"x\"\n}\nimport {\n to = x_y.z\n id = \
         \"1\"\n}\nimport {\n to = x_y.z\n id = \"2\"\n}\n",
        "error main.tf:1,1-6 Invalid \"moved\" addresses
         error main.tf:6,9-12 Invalid address
         error main.tf:7,7-8 Invalid expression
         error main.tf:10,14-17 Resource instance keys not allowed
         error main.tf:13,9-17 Data source address not allowed
         error main.tf:16,17-20 Module instance keys not allowed
         error main.tf:19,2-15 Invalid import address
         error main.tf:27,7-12 Duplicate import configuration for \"x_y.z\"",
    );
}

#[test]
fn settings() {
    check(
        "terraform {\n required_providers {}\n required_providers {}\n backend \"local\" {}\n backend \"x\" {}\n cloud {}\n \
         experiments = [a]\n}\nrequired_providers {}\n",
        "error main.tf:3,2-20 Duplicate required providers configuration
         error main.tf:4,2-17 Both a backend and cloud configuration are present
         error main.tf:5,2-13 Duplicate 'backend' configuration block
         error main.tf:7,2-13 Module uses experimental features
         error main.tf:9,1-19 Invalid required_providers block",
    );
}

#[test]
fn unsupported_core_version_is_the_only_diagnostic() {
    check(
        "terraform {\n required_version = \">= 99\"\n}\nfoo {}\n",
        "error main.tf:2,2-28 Unsupported Terraform Core version",
    );
}

/// Builds configurations with an expression as count and trigger, as default and type, and as both
/// arguments of an import.
fn with_expression(expr: &str) -> [String; 3] {
    [
        format!(
            "resource \"x_y\" \"a\" {{\n count = {expr}\n lifecycle {{\n  replace_triggered_by = [{expr}]\n }}\n}}\n"
        ),
        format!("variable \"v\" {{\n default = {expr}\n type = {expr}\n}}\n"),
        format!("import {{\n to = {expr}\n id = {expr}\n}}\n"),
    ]
}

fn summaries(text: &str) -> Vec<String> {
    let loaded = super::loaded(&[("main.tf", text)]);
    loaded.diagnostics.iter().map(|d| d.summary.to_string()).collect()
}

#[test]
fn expression_that_is_too_deep_or_too_long_is_one_error_each_time() {
    let n = 10_000;
    let (long, deep) = ("Expression too long", "Nesting too deep");
    for (expr, summary) in [
        (format!("a{}", "[b]".repeat(n)), long),
        (format!("1{}", " + 1".repeat(n)), long),
        (format!("{}1{}", "(".repeat(n), ")".repeat(n)), deep),
        (format!("{}1{}", "[".repeat(n), "]".repeat(n)), deep),
        (format!("{}1", "!".repeat(n)), deep),
        (format!("a{}", "[*]".repeat(n)), deep),
        (format!("{}1", "true ? 1 : ".repeat(n)), deep),
        (format!("{}\"x\"{}", "\"${".repeat(n), "}\"".repeat(n)), deep),
    ] {
        for text in with_expression(&expr) {
            assert_eq!(summaries(&text), [summary; 2], "{}", &text[..60]);
        }
    }
    // The rest of the file is read as if the blocks had ended at the limit.
    assert_eq!(summaries(&"a {\n".repeat(n))[0], deep);
}

#[test]
fn reference_with_any_number_of_steps_is_accepted_where_references_are() {
    let [resource, variable, import] = with_expression(&format!("a{}", ".b".repeat(10_000)));
    assert_eq!(summaries(&resource), [""; 0]);
    assert_eq!(
        summaries(&variable),
        ["Invalid type specification", "Variables not allowed"]
    );
    assert_eq!(summaries(&import), ["Invalid address"]);
}
