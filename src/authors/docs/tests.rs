//! Pages of a provider with every kind of nesting.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use cty::Type;
use provider::{FunctionSchema, ParameterSchema, ProviderSchema};
use schema::{
    AttributeSchema, AttributeType, BlockSchema, Description, IdentityAttribute, IdentitySchema, NestedBlock,
    NestedObject, Nesting, Schema,
};

use super::*;

const SCHEMA: &str = include_str!("tests/schema.md");

fn described(text: &str) -> Description {
    Description {
        text: text.to_owned(),
        markdown: true,
    }
}

fn required(ty: Type, text: &str) -> AttributeSchema {
    AttributeSchema {
        ty: AttributeType::Plain(ty),
        required: true,
        description: described(text),
        ..AttributeSchema::default()
    }
}

fn computed(ty: Type) -> AttributeSchema {
    AttributeSchema {
        ty: AttributeType::Plain(ty),
        computed: true,
        ..AttributeSchema::default()
    }
}

fn optional(ty: AttributeType) -> AttributeSchema {
    AttributeSchema {
        ty,
        optional: true,
        ..AttributeSchema::default()
    }
}

fn of<T>(all: impl IntoIterator<Item = (&'static str, T)>) -> BTreeMap<Arc<str>, T> {
    all.into_iter().map(|(name, one)| (Arc::from(name), one)).collect()
}

fn nested(nesting: Nesting, min_items: u64, max_items: u64, block: BlockSchema) -> NestedBlock {
    NestedBlock {
        block,
        nesting,
        min_items,
        max_items,
    }
}

fn leaf() -> BlockSchema {
    BlockSchema {
        attributes: of([("port", required(Type::Number, "The port."))]),
        ..BlockSchema::default()
    }
}

fn objects(nesting: Nesting, inner: Option<NestedObject>) -> NestedObject {
    let name = ("name", required(Type::String, ""));
    let deeper = inner.map(|inner| ("deeper", optional(AttributeType::Nested(inner))));
    NestedObject {
        attributes: of([name].into_iter().chain(deeper)),
        nesting,
    }
}

fn everything() -> BlockSchema {
    let object = Type::object([
        ("a", Type::String),
        ("b", Type::list(Type::object([("c", Type::Bool)]))),
    ]);
    let kinds = [Nesting::Single, Nesting::List, Nesting::Set, Nesting::Map];
    let names = ["one", "list", "set", "map"];
    let attributes = names.into_iter().zip(kinds).map(|(name, nesting)| {
        let inner = (nesting == Nesting::List).then(|| objects(Nesting::Map, None));
        (name, optional(AttributeType::Nested(objects(nesting, inner))))
    });
    let mut attributes = of(attributes);
    attributes.extend(of([
        ("id", computed(Type::String)),
        ("name", required(Type::String, "The name.\n\n- unique\n- short")),
        ("numbers", required(Type::map(Type::list(Type::Number)), "")),
        ("found", computed(Type::set(object))),
        ("anything", optional(AttributeType::Plain(Type::Dynamic))),
    ]));
    let secret = AttributeSchema {
        sensitive: true,
        write_only: true,
        ..optional(AttributeType::Plain(Type::String))
    };
    let old = AttributeSchema {
        deprecated: true,
        deprecation_message: "Use name.".to_owned(),
        ..optional(AttributeType::Plain(Type::Bool))
    };
    attributes.extend(of([("secret", secret), ("old", old)]));
    let read_only = BlockSchema {
        attributes: of([("since", computed(Type::String))]),
        ..BlockSchema::default()
    };
    let outer = BlockSchema {
        blocks: of([("inner", nested(Nesting::Set, 1, 2, leaf()))]),
        description: described("Rules."),
        ..BlockSchema::default()
    };
    BlockSchema {
        attributes,
        blocks: of([
            ("block_group", nested(Nesting::Group, 0, 0, leaf())),
            ("block_list", nested(Nesting::List, 0, 3, outer)),
            ("block_map", nested(Nesting::Map, 0, 0, leaf())),
            ("block_set", nested(Nesting::Set, 1, 0, leaf())),
            ("block_single", nested(Nesting::Single, 0, 0, leaf())),
            ("status", nested(Nesting::List, 0, 0, read_only)),
        ]),
        description: described("A *pet*."),
        ..BlockSchema::default()
    }
}

fn provider() -> ProviderSchema {
    let identity = |optional: bool| IdentityAttribute {
        ty: Type::String,
        required_for_import: !optional,
        optional_for_import: optional,
        description: "Part of the key.".to_owned(),
    };
    let mut pet = Schema::new(0, everything());
    let attributes = of([("name", identity(false)), ("region", identity(true))]);
    pet.identity = Some(Arc::new(IdentitySchema::new(0, attributes)));
    let parameter = |name: &str, ty: Type| ParameterSchema {
        name: name.into(),
        ty,
        allow_null: name == "text",
        allow_unknown: false,
        description: described("An argument."),
    };
    let join = FunctionSchema {
        parameters: vec![parameter("text", Type::String)],
        variadic: Some(parameter("rest", Type::list(Type::Bool))),
        result: Some(Type::map(Type::Number)),
        summary: "Joins `texts`".to_owned(),
        description: described("Joins texts."),
        deprecation_message: String::new(),
    };
    ProviderSchema {
        provider: Schema::new(0, leaf()),
        resources: of([("zoo_pet", pet)]).into(),
        data_sources: of([("zoo_pet", Schema::new(0, leaf()))]).into(),
        functions: of([("join", join)]).into(),
        ..ProviderSchema::default()
    }
}

fn project(files: &[(&str, &str)]) -> (tempfile::TempDir, Project) {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let project = Project {
        root: dir.path().to_owned(),
        name: "zoo".to_owned(),
    };
    (dir, project)
}

#[test]
fn every_kind_of_nesting_has_a_section_and_an_anchor() {
    let text = schema_text::block(&everything());
    assert_eq!(text, SCHEMA, "{text}");
    for (at, _) in text.match_indices("](#") {
        let anchor = text[at + 3..].split(')').next().unwrap();
        assert!(text.contains(&format!("<a id=\"{anchor}\"></a>")), "{anchor}");
    }
}

#[test]
fn examples_and_imports_are_shown() {
    let (_dir, project) = project(&[
        ("examples/provider/provider.tf", "provider \"zoo\" {}\n"),
        ("examples/resources/zoo_pet/resource.tf", "first\n"),
        ("examples/resources/zoo_pet/resource_b.tf", "second\n"),
        ("examples/resources/zoo_pet/other.tf", "not shown\n"),
        ("examples/resources/zoo_pet/import.sh", "terraform import zoo_pet.a a\n"),
        ("examples/resources/zoo_pet/import-by-identity.tf", "identity\n"),
        ("examples/functions/join/function.tf", "joined\n"),
    ]);
    let pages = pages(&project, &provider()).unwrap();
    let paths: Vec<&str> = pages.keys().map(String::as_str).collect();
    assert_eq!(
        paths,
        [
            "docs/data-sources/pet.md",
            "docs/functions/join.md",
            "docs/index.md",
            "docs/resources/pet.md"
        ]
    );
    let pet = &pages["docs/resources/pet.md"];
    let begin = "---\npage_title: \"zoo_pet Resource - zoo\"\nsubcategory: \"\"\ndescription: |-\n  A pet.\n---\n\n# zoo_pet (Resource)\n\n\
                 A *pet*.\n\n## Example Usage\n\n```terraform\nfirst\n```\n\n```terraform\nsecond\n```\n\n<!-- schema generated";
    assert!(pet.starts_with(begin), "{pet}");
    let end = "## Import\n\nBy identity, in an `import` block of Terraform 1.12 or a later release:\n\n```terraform\nidentity\n```\n\n\
               ### Identity Schema\n\n#### Required\n\n- `name` (String) Part of the key.\n\n#### Optional\n\n- `region` (String) Part of \
               the key.\n\nBy identifier, with the command `terraform import`:\n\n```shell\nterraform import zoo_pet.a a\n```\n";
    assert!(pet.ends_with(end), "{pet}");
    assert!(!pages["docs/data-sources/pet.md"].contains("## Import") && !pet.contains("not shown"));
    let join = &pages["docs/functions/join.md"];
    for part in [
        "page_title: \"join function - zoo\"",
        "description: |-\n  Joins texts\n---\n\n# function: join\n\nJoins texts.\n\n## Example Usage\n\n```terraform\njoined\n```\n\n## Signature",
        "```text\njoin(text string, rest list of bool...) map of number\n```",
        "1. `text` (String, Nullable) An argument.\n1. `rest` (Variadic, List of Boolean) An argument.\n",
    ] {
        assert!(join.contains(part), "{join}");
    }
}

#[test]
fn templates_of_the_project_take_the_place_of_the_default() {
    let (_dir, project) = project(&[
        ("templates/index.md.tmpl", "# {{ .ProviderShortName }}\n"),
        ("templates/resources.md", "all {{ .Name }}\n"),
        ("templates/data-sources/pet.md", "own {{ .Name }}\n"),
        ("templates/guides/start.md", "# Start\n{{ .ProviderName }}\n"),
    ]);
    let pages = pages(&project, &provider()).unwrap();
    assert_eq!(pages["docs/index.md"], "# zoo\n");
    assert_eq!(pages["docs/resources/pet.md"], "all zoo_pet\n");
    assert_eq!(pages["docs/data-sources/pet.md"], "own zoo_pet\n");
    assert_eq!(pages["docs/guides/start.md"], "# Start\nterraform-provider-zoo\n");
}

#[test]
fn pages_of_removed_types_are_removed_unless_written_by_hand() {
    let (dir, project) = project(&[
        ("docs/resources/old.md", &format!("x\n{MARKER}\n")),
        ("docs/resources/own.md", "written by hand\n"),
    ]);
    let pages = pages(&project, &provider()).unwrap();
    let found = compare(&project, &pages).unwrap();
    assert_eq!(found.left_over, ["docs/resources/old.md"]);
    assert_eq!(found.missing.len(), pages.len());
    write(&project, &pages).unwrap();
    assert!(compare(&project, &pages).unwrap().is_empty());
    assert!(!dir.path().join("docs/resources/old.md").exists());
    assert!(dir.path().join("docs/resources/own.md").exists());
    fs::write(dir.path().join("docs/index.md"), "changed").unwrap();
    assert_eq!(compare(&project, &pages).unwrap().changed, ["docs/index.md"]);
}
