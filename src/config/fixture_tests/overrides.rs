//! Override files: merged arguments and refused blocks.

use addrs::Resource;
use cty::{Type, Value};

use super::{check_files, config};

#[test]
fn arguments_are_replaced_one_by_one_and_blocks_by_type() {
    let config = config(&[
        (
            "main.tf",
            "resource \"x_y\" \"a\" {\n one = 1\n two = 2\n b {}\n b {}\n c {}\n dynamic \"d\" {\n  for_each = []\n  content {}\n }\n \
             lifecycle {\n  prevent_destroy = true\n }\n provisioner \"p\" {}\n}\nvariable \"v\" {\n default = 1\n sensitive = \
             true\n}\nlocals {\n l = 1\n}\noutput \"o\" {\n value = 1\n description = \"d\"\n}\nmodule \"m\" {\n source = \"./m\"\n \
             i = 1\n}\nterraform {\n backend \"local\" {}\n}\n",
        ),
        (
            "x_override.tf",
            "resource \"x_y\" \"a\" {\n two = 3\n b {}\n d {}\n lifecycle {\n  create_before_destroy = true\n }\n provisioner \"q\" \
             {}\n provisioner \"r\" {}\n}\nvariable \"v\" {\n type = string\n}\nlocals {\n l = 2\n}\noutput \"o\" {\n sensitive = \
             true\n}\nmodule \"m\" {\n i = 2\n j = 3\n}\nterraform {\n cloud {}\n}\nprovider \"x\" {}\n",
        ),
        ("m/main.tf", "variable \"i\" {}\nvariable \"j\" {}\n"),
    ]);
    let module = &config.root.module;
    let a = &module.resources[&Resource::managed("x_y", "a")];
    assert_eq!(a.body.attributes.len(), 2);
    let blocks: Vec<&str> = a.body.blocks.iter().map(|b| &*b.ty).collect();
    assert_eq!(blocks, ["c", "b", "d"]);
    assert_eq!(
        (a.lifecycle.prevent_destroy, a.lifecycle.create_before_destroy),
        (Some(true), Some(true))
    );
    assert_eq!(a.provisioners.iter().map(|p| &*p.ty).collect::<Vec<_>>(), ["q", "r"]);
    let v = &module.variables["v"];
    assert_eq!(
        (&v.ty, &v.default, v.sensitive),
        (&Type::String, &Some(Value::string("1")), true)
    );
    let o = &module.outputs["o"];
    assert!(o.sensitive && o.description.is_some() && o.expr.range().file.as_ref() == "main.tf");
    assert_eq!(module.module_calls["m"].inputs.attributes.len(), 2);
    assert!(module.backend.is_none() && module.cloud.is_some());
    assert_eq!(module.provider_configs.len(), 1);
}

#[test]
fn overridden_blocks_must_exist() {
    check_files(
        &[
            ("main.tf", ""),
            (
                "override.tf",
                "resource \"x_y\" \"b\" {}\nvariable \"x\" {}\noutput \"o\" {}\nlocals {\n l = 1\n}\nmodule \"m\" {}\nprovider \"x\" { \
                 alias = \"y\" }\nmoved {}\ncheck \"c\" {}\nimport {}\n",
            ),
        ],
        "error override.tf:1,1-19 Missing resource to override
         error override.tf:2,1-13 Missing base variable declaration to override
         error override.tf:3,1-11 Missing base output definition to override
         error override.tf:5,2-7 Missing base local value definition to override
         error override.tf:7,1-11 Missing module call to override
         error override.tf:8,1-13 Missing base provider configuration for override
         error override.tf:9,1-6 Cannot override 'moved' blocks
         error override.tf:10,1-10 Can't override check blocks
         error override.tf:11,1-7 Cannot override 'import' blocks",
    );
}

#[test]
fn conditions_and_depends_on_cannot_be_overridden() {
    check_files(
        &[
            (
                "main.tf",
                "resource \"x_y\" \"a\" {}\nvariable \"v\" {\n default = 1\n}\n",
            ),
            (
                "x_override.tf",
                "resource \"x_y\" \"a\" {\n depends_on = [x_y.b]\n lifecycle {\n  precondition {}\n }\n}\nvariable \"v\" {\n type = \
                 list(string)\n validation {}\n}\n",
            ),
        ],
        "error x_override.tf:2,16-21 Unsupported override
         error x_override.tf:4,3-15 Can't override precondition blocks
         error x_override.tf:7,1-13 Invalid default value for variable
         error x_override.tf:9,2-12 Can't override validation blocks",
    );
}

#[test]
fn deprecation_in_an_override_file_has_no_effect_and_is_warned_of() {
    let files = [
        (
            "main.tf",
            "variable \"v\" {\n default = 1\n}\noutput \"o\" {\n value = 1\n deprecated = \"base\"\n}\n",
        ),
        (
            "override.tf",
            "variable \"v\" {\n deprecated = \"no\"\n}\noutput \"o\" {\n deprecated = \"no\"\n}\n",
        ),
    ];
    check_files(
        &files,
        "warning override.tf:2,2-19 Argument in override file ignored
         warning override.tf:5,2-19 Argument in override file ignored",
    );
    let config = super::loaded(&files).config;
    let module = &config.root.module;
    assert!(module.variables["v"].deprecated.is_none());
    let kept = module.outputs["o"].deprecated.as_ref().map(|notice| &*notice.message);
    assert_eq!(kept, Some("base"));
}
