//! Resolution of the provider configurations of resources.

use super::{check_files, config};
use crate::Config;

fn provider_of(config: &Config, resource: &str) -> String {
    config
        .provider_for(&addrs::parse::config_resource(resource).unwrap())
        .to_string()
}

#[test]
fn default_configurations_flow_down() {
    let config = config(&[
        (
            "main.tf",
            "terraform {\n required_providers {\n  x = { source = \"acme/x\" }\n }\n}\nprovider \"x\" {\n a = 1\n}\nmodule \"m\" { \
             source = \"./m\" }\nresource \"x_r\" \"a\" {}\nresource \"y_r\" \"a\" {}\nresource \"terraform_data\" \"a\" {}\n",
        ),
        (
            "m/main.tf",
            "terraform {\n required_providers {\n  other = { source = \"acme/x\" }\n }\n}\nresource \"other_r\" \"a\" {}\nresource \
             \"x_r\" \"b\" {}\n",
        ),
    ]);
    let acme = "provider[\"registry.terraform.io/acme/x\"]";
    assert_eq!(provider_of(&config, "x_r.a"), acme);
    assert_eq!(
        provider_of(&config, "y_r.a"),
        "provider[\"registry.terraform.io/hashicorp/y\"]"
    );
    assert_eq!(
        provider_of(&config, "terraform_data.a"),
        "provider[\"terraform.io/builtin/terraform\"]"
    );
    assert_eq!(
        provider_of(&config, "module.m.other_r.a"),
        acme,
        "the same provider by another name"
    );
    assert_eq!(
        provider_of(&config, "module.m.x_r.b"),
        "provider[\"registry.terraform.io/hashicorp/x\"]"
    );
    let all: Vec<(String, bool)> = config
        .provider_configs()
        .iter()
        .map(|p| (p.address.to_string(), p.block.is_some()))
        .collect();
    assert_eq!(all.len(), 4);
    assert_eq!(
        all.iter()
            .filter(|(_, block)| *block)
            .map(|(a, _)| &**a)
            .collect::<Vec<_>>(),
        [acme]
    );
}

#[test]
fn configurations_are_handed_over_by_name() {
    let required = "terraform {\n required_providers {\n  x = {\n   source = \"acme/x\"\n   configuration_aliases = [x.one, \
                    x.two]\n  }\n }\n}\n";
    let root_required = "terraform {\n required_providers {\n  x = {\n   source = \"acme/x\"\n  }\n }\n}\n";
    let config = config(&[
        (
            "main.tf",
            &format!(
                "{root_required}provider \"x\" {{\n a = 1\n}}\nprovider \"x\" {{\n alias = \"w\"\n}}\nmodule \"m\" {{\n source = \
                 \"./m\"\n providers = {{\n  x.one = x.w\n  x.two = x\n }}\n}}\n"
            ),
        ),
        (
            "m/main.tf",
            &format!(
                "{required}module \"n\" {{\n source = \"../n\"\n providers = {{\n  x = x.one\n }}\n}}\nresource \"x_r\" \"a\" {{\n \
                 provider = x.one\n}}\nresource \"x_r\" \"b\" {{\n provider = x.two\n}}\nresource \"x_r\" \"c\" {{}}\n"
            ),
        ),
        ("n/main.tf", &format!("{root_required}resource \"x_r\" \"a\" {{}}\n")),
    ]);
    let acme = "provider[\"registry.terraform.io/acme/x\"]";
    assert_eq!(provider_of(&config, "module.m.x_r.a"), format!("{acme}.w"));
    assert_eq!(provider_of(&config, "module.m.x_r.b"), acme);
    assert_eq!(provider_of(&config, "module.m.x_r.c"), acme);
    assert_eq!(provider_of(&config, "module.m.module.n.x_r.a"), format!("{acme}.w"));
}

#[test]
fn a_module_may_have_its_own() {
    let config = config(&[
        (
            "main.tf",
            "provider \"x\" {\n a = 1\n}\nmodule \"m\" { source = \"./m\" }\n",
        ),
        (
            "m/main.tf",
            "provider \"x\" {\n a = 2\n}\nmodule \"n\" { source = \"../n\" }\n",
        ),
        ("n/main.tf", "resource \"x_r\" \"a\" {}\n"),
    ]);
    assert_eq!(
        provider_of(&config, "module.m.module.n.x_r.a"),
        "module.m.provider[\"registry.terraform.io/hashicorp/x\"]"
    );
    assert_eq!(config.provider_configs().len(), 2);
}

#[test]
fn mismatched_provider_configurations_are_reported() {
    check_files(
        &[
            (
                "main.tf",
                "resource \"x_r\" \"a\" {\n provider = x.nope\n}\nmodule \"c\" {\n source = \"./c\"\n providers = {\n  x = x.nope\n  y = \
                 x\n }\n}\nmodule \"d\" { source = \"./d\" }\nmodule \"e\" {\n source = \"./e\"\n count = 1\n}\n",
            ),
            (
                "c/main.tf",
                "terraform {\n required_providers {\n  x = {}\n  y = {}\n }\n}\n",
            ),
            (
                "d/main.tf",
                "terraform {\n required_providers {\n  x = {\n   configuration_aliases = [x.z]\n  }\n }\n}\nresource \"x_r\" \"a\" {\n \
                 provider = x.z\n}\n",
            ),
            ("e/main.tf", "provider \"x\" {\n a = 1\n}\n"),
        ],
        "error main.tf:2,13-19 Provider configuration not present
         error main.tf:7,7-13 Provider configuration not present
         error main.tf:8,3-4 Provider type mismatch
         warning main.tf:8,7-8 Reference to undefined provider
         error main.tf:11,1-11 Missing required provider configuration
         error main.tf:14,10-11 Module is incompatible with count, for_each, and depends_on",
    );
}

#[test]
fn requirements_of_all_modules_come_together() {
    let config = config(&[
        (
            "main.tf",
            "terraform {\n required_providers {\n  x = \"~> 1.0\"\n }\n}\nmodule \"m\" { source = \"./m\" }\nresource \"y_r\" \"a\" {}\n",
        ),
        (
            "m/main.tf",
            "terraform {\n required_providers {\n  x = {\n   source = \"hashicorp/x\"\n   version = \">= 1.2\"\n  }\n }\n}\n",
        ),
    ]);
    let said: Vec<String> = config
        .provider_requirements()
        .into_iter()
        .flat_map(|(p, rs)| {
            rs.into_iter()
                .map(move |r| format!("{} {} {:?}", p.ty, r.module, r.constraint.map(|c| c.text)))
        })
        .collect();
    assert_eq!(said, ["x  Some(\"~> 1.0\")", "x module.m Some(\">= 1.2\")", "y  None"]);
}

#[test]
fn redundant_empty_provider_blocks_are_reported_at_the_first() {
    let child = format!(
        "{}provider \"x\" {{}}\nprovider \"x\" {{\n alias = \"y\"\n}}\n",
        "\n".repeat(8)
    );
    check_files(
        &[
            ("main.tf", "module \"m\" {\n source = \"./m\"\n}\n"),
            ("m/main.tf", &child),
        ],
        "warning m/main.tf:9,1-13 Redundant empty provider block",
    );
}

/// Two modules, one below the other, that get an instance of a provider configuration.
const NESTED: &[(&str, &str)] = &[
    (
        "main.tf",
        "provider \"x\" {\n alias = \"by\"\n for_each = toset([\"eu\"])\n}\nresource \"x_r\" \"a\" {\n provider = x.by[\"eu\"]\n}\n\
         module \"m\" {\n source = \"./m\"\n for_each = toset([\"eu\", \"us\"])\n providers = {\n  x = x.by[each.key]\n }\n}\n",
    ),
    (
        "m/main.tf",
        "terraform {\n required_providers {\n  x = {\n   source = \"hashicorp/x\"\n  }\n }\n}\nmodule \"n\" {\n source = \"../n\"\n \
         providers = {\n  x = x\n }\n}\n",
    ),
    (
        "n/main.tf",
        "terraform {\n required_providers {\n  x = {\n   source = \"hashicorp/x\"\n  }\n }\n}\nresource \"x_r\" \"a\" {}\n",
    ),
];

#[test]
fn keys_of_instances_are_passed_down_with_the_call_they_stand_in() {
    let config = config(NESTED);
    let by = "provider[\"registry.terraform.io/hashicorp/x\"].by";
    assert_eq!(provider_of(&config, "x_r.a"), by);
    assert_eq!(provider_of(&config, "module.m.module.n.x_r.a"), by);
    let node = config.node(&addrs::Module::root().child("m").child("n")).unwrap();
    let local = node.module.resources.values().next().unwrap().local_provider();
    let key = node.passed_key(&local).unwrap();
    assert_eq!((key.caller.is_root(), &*key.call), (true, "m"));
    assert!(config.expanded_provider(&node.provider(&local)).is_some());
}

#[test]
fn references_need_a_key_if_and_only_if_there_are_instances() {
    let blocks = "provider \"x\" {\n alias = \"by\"\n for_each = var.all\n}\nprovider \"x\" {\n alias = \"one\"\n}\nvariable \
                  \"all\" {\n type = set(string)\n}\n";
    let uses = "resource \"x_r\" \"a\" {\n provider = x.by\n}\nresource \"x_r\" \"b\" {\n provider = x.one[\"k\"]\n}\nresource \"x_r\" \
                \"d\" {\n for_each = (var.all)\n provider = x.by[each.key]\n}\nmodule \"m\" {\n source = \"./m\"\n providers = {\n  x \
                = x.by\n }\n}\n";
    let called = "terraform {\n required_providers {\n  x = {\n   source = \"hashicorp/x\"\n  }\n }\n}\nresource \"x_r\" \"a\" {}\n";
    check_files(
        &[("main.tf", blocks), ("uses.tf", uses), ("m/main.tf", called)],
        "error uses.tf:2,13-17 Invalid resource provider configuration
         error uses.tf:5,13-23 Invalid resource provider configuration
         warning uses.tf:8,13-22 Provider configuration for_each matches resource
         error uses.tf:14,7-11 Invalid module provider configuration",
    );
}

#[test]
fn keys_stand_behind_an_alias_and_on_the_right_hand_side() {
    let text = "provider \"x\" {\n for_each = toset([])\n}\nresource \"x_r\" \"c\" {\n provider = x[\"k\"]\n}\nmodule \"m\" {\n source = \
                \"./m\"\n providers = {\n  x.y[0] = x.one\n }\n}\n";
    check_files(
        &[("main.tf", text), ("m/main.tf", "")],
        "error main.tf:2,13-22 Alias required when using \"for_each\"
         error main.tf:5,13-19 Invalid provider configuration reference
         error main.tf:10,3-9 Invalid module provider configuration",
    );
}

#[test]
fn provider_names_that_are_literals_elsewhere_and_the_json_syntax_take_keys() {
    let block = "provider \"null\" {\n alias = \"by\"\n for_each = toset([\"a\"])\n}\n";
    let uses = "resource \"null_r\" \"a\" {\n provider = null.by[\"a\"]\n}\nresource \"null_r\" \"b\" {\n for_each = toset([])\n provider = \
                null.by[each.key]\n}\n";
    let json = r#"{ "resource": { "null_r": { "c": { "provider": "null.by[\"a\"]" }, "d": { "count": 1, "provider": "null.by[count.index]" } } } }"#;
    let config = config(&[("main.tf", &format!("{block}{uses}")), ("json.tf.json", json)]);
    let resources = config.root.module.resources.values();
    let keyed = resources.filter(|r| r.provider_ref.as_ref().is_some_and(|p| p.key.is_some()));
    assert_eq!(keyed.count(), 4);
}
