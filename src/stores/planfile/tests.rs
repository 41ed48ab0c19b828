//! Tests of saved plans.

use addrs::{AbsProviderConfig, AbsResourceInstance, Provider};
use cty::{Marks, Type, Value};
use engine::execgraph::{ExecGraph, Operation};
use engine::invocation::{ActionInvocation, InvocationTrigger, LifecycleTrigger};
use engine::plan::{
    Action, IdentityChange, ImportedBy, Mode, OutputChange, Reason, ResourceChange, Unread, UnreadInstance,
};

use state::{CheckResult, CheckStatus, CheckedObject, Codec};

use super::*;

fn invocation(trigger: InvocationTrigger) -> ActionInvocation {
    ActionInvocation {
        address: addrs::parse::action("module.m[\"k\"].action.t.a[1]").unwrap(),
        provider: AbsProviderConfig::root(Provider::default_for("t")),
        config: Value::object([("secret", Value::string("x").with_marks(Marks::SENSITIVE))]),
        trigger: Arc::new(trigger),
    }
}

fn address(text: &str) -> AbsResourceInstance {
    addrs::parse::resource_instance(text).unwrap()
}

fn sample() -> SavedPlan {
    let secret = Value::object([
        ("id", Value::unknown_not_null(Type::String)),
        ("token", Value::string("t0ken").with_marks(Marks::SENSITIVE)),
        ("n", Value::number(3)),
    ]);
    let change = ResourceChange {
        address: address("module.m[\"k\"].t.a[0]"),
        previous_address: None,
        deposed: Some("0a1b2c3d".into()),
        provider: AbsProviderConfig::root(Provider::default_for("t")),
        action: Action::DeleteThenCreate,
        reason: Reason::ReplaceByRequest,
        before: Value::null(Type::Dynamic),
        after: secret.clone(),
        replace_paths: vec![cty::Path::root().attribute("n").index(Value::number(0))],
        private: vec![0, 255, 7],
        config_known: true,
        importing: Some(ImportedBy::Identity(Value::object([("id", Value::string("x"))]))),
        identity: IdentityChange::new(None, Some(Value::object([("id", Value::string("x"))]))),
    };
    let moved = ResourceChange {
        previous_address: Some(address("t.old")),
        deposed: None,
        action: Action::NoOp,
        reason: Reason::None,
        replace_paths: Vec::new(),
        private: Vec::new(),
        importing: Some(ImportedBy::Sensitive),
        identity: None,
        ..change.clone()
    };
    let graph = ExecGraph {
        nodes: vec![Operation::Destroy(0), Operation::Change(0)],
        edges: vec![(0, 1)],
    };
    let entry = config::manifest::ManifestEntry {
        source: String::new(),
        version: None,
        dir: ".".into(),
    };
    let files = BTreeMap::from([("main.tf".to_owned(), Arc::from(&b"# empty"[..]))]);
    let modules = BTreeMap::from([(String::new(), SnapshotModule { entry, files })]);
    SavedPlan {
        plan: Plan {
            mode: Mode::Normal,
            timestamp: "2026-01-01T00:00:00Z".into(),
            variables: BTreeMap::from([
                ("v".into(), Value::string("x")),
                ("e".into(), Value::null(Type::String).with_marks(Marks::EPHEMERAL)),
            ]),
            given_variables: BTreeMap::from([("v".into(), Value::string("x"))]),
            targets: vec![addrs::parse::target("module.m").unwrap()],
            excludes: vec![addrs::parse::target("t.x").unwrap()],
            force_replace: vec![address("t.a[0]")],
            invocations: vec![
                invocation(InvocationTrigger::Lifecycle(LifecycleTrigger {
                    resource: address("t.a[0]"),
                    event: config::ActionEvent::AfterUpdate,
                    block: 1,
                    action: 2,
                    on_failure: config::ActionFailure::Taint,
                })),
                invocation(InvocationTrigger::Invoke {
                    caller: Some(address("t.b")),
                }),
            ],
            invoke: Some(addrs::parse::action("action.t.a").unwrap()),
            changes: vec![change.clone(), moved],
            drift: vec![change],
            unread: Some(Unread {
                option: "older-than=1h".into(),
                read: 2,
                instances: vec![UnreadInstance {
                    address: address("t.c"),
                    last_read: Some("2026-01-01T00:00:00Z".into()),
                }],
            }),
            reads: Vec::new(),
            outputs: BTreeMap::from([(
                "o".into(),
                OutputChange {
                    action: Action::Update,
                    before: Value::number(1),
                    after: Value::unknown(Type::Number),
                    sensitive: true,
                },
            )]),
            previous_state: State::default(),
            prior_state: State::default(),
            graph,
            relevant_attributes: vec![(address("t.b"), cty::Path::root().attribute("n"))],
            function_results: BTreeMap::from([("00ff".into(), "ff00".into())]),
            checks: vec![CheckResult {
                object_kind: "output".into(),
                config_addr: "output.o".into(),
                status: CheckStatus::Fail,
                objects: vec![CheckedObject {
                    object_addr: "output.o".into(),
                    status: CheckStatus::Fail,
                    failure_messages: vec!["No.".into()],
                }],
            }],
            generated_config: BTreeMap::from([(address("t.g"), "resource \"t\" \"g\" {}\n".into())]),
            queries: Vec::new(),
            dropped_data: vec![address("data.t.d")],
            errored: true,
            saved: false,
        },
        snapshot: Snapshot { modules },
        lock_file: Some(b"# lock".to_vec()),
        workspace: "default".into(),
        backend: None,
        schemas: None,
    }
}

#[test]
fn a_saved_plan_comes_back_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p");
    let saved = sample();
    write(&path, &saved, "1.0.0", &Codec::PLAIN).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    let back = read(&path, "1.0.0", Program::MONOFORM, &Codec::PLAIN).unwrap();
    let (a, b) = (&saved.plan.changes[0], &back.plan.changes[0]);
    assert_eq!(
        (&a.address, &a.after, &a.private, &a.replace_paths),
        (&b.address, &b.after, &b.private, &b.replace_paths)
    );
    for (a, b) in saved.plan.invocations.iter().zip(&back.plan.invocations) {
        assert_eq!(
            (&a.address, &a.provider, &a.config, &a.trigger),
            (&b.address, &b.provider, &b.config, &b.trigger)
        );
    }
    assert_eq!(back.plan.invocations.len(), saved.plan.invocations.len());
    assert_eq!(back.plan.invoke, saved.plan.invoke);
    assert_eq!(back.snapshot, saved.snapshot);
    assert_eq!(back.plan.graph.edges, saved.plan.graph.edges);
    assert_eq!(back.lock_file.as_deref(), Some(&b"# lock"[..]));
    assert!(
        read(&path, "1.0.1", Program::MONOFORM, &Codec::PLAIN).is_err(),
        "another version must not apply it"
    );
    let other = dir.path().join("q");
    write(&other, &sample(), "1.0.0", &Codec::PLAIN).unwrap();
    assert_eq!(
        std::fs::read(&path).unwrap(),
        std::fs::read(&other).unwrap(),
        "the same plan is the same file"
    );
}

#[test]
fn damaged_and_foreign_files_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p");
    write(&path, &sample(), "1.0.0", &Codec::PLAIN).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    for cut in [0, 3, 100, bytes.len() / 2, bytes.len() - 1] {
        std::fs::write(&path, &bytes[..cut]).unwrap();
        assert!(
            read(&path, "1.0.0", Program::MONOFORM, &Codec::PLAIN).is_err(),
            "cut at {cut}"
        );
    }
    let mut zip = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
    zip.start_file("tfplan", SimpleFileOptions::default()).unwrap();
    zip.finish().unwrap();
    let Err(error) = read(&path, "1.0.0", Program::MONOFORM, &Codec::PLAIN) else {
        panic!("read")
    };
    assert!(error.detail.contains("saved by Terraform"), "{}", error.detail);
}

/// The document of a plan in format 3. If this test fails, older plans cannot be read any more, and `FORMAT` must be raised.
#[test]
fn document_has_the_form_of_its_format() {
    let document = serde_json::to_value(Document::new(&sample(), "1.0.0")).unwrap();
    let recorded: serde_json::Value = serde_json::from_str(include_str!("tests/format-3.json")).unwrap();
    assert_eq!(FORMAT, 3);
    assert_eq!(document, recorded);
}

#[test]
fn written_document_is_read_as_the_same_plan() {
    let document = serde_json::to_vec(&Document::new(&sample(), "1.0.0")).unwrap();
    let again = reread_document(&document).unwrap();
    assert_eq!(String::from_utf8(again).unwrap(), String::from_utf8(document).unwrap());
}

#[test]
fn plan_of_another_version_or_format_names_the_version() {
    for (format, version) in [(3, "0.9.0"), (2, "1.0.0")] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p");
        let mut zip = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
        zip.start_file(DOCUMENT, SimpleFileOptions::default()).unwrap();
        write!(zip, r#"{{"format":{format},"tool_version":"{version}"}}"#).unwrap();
        zip.finish().unwrap();
        let Err(error) = read(&path, "1.0.0", Program::MONOFORM, &Codec::PLAIN) else {
            panic!("read")
        };
        let expected =
            format!("it was saved by version {version} of Monoform, and only that can apply it; this is 1.0.0.");
        assert!(error.detail.ends_with(&expected), "{}", error.detail);
    }
}

#[test]
fn graph_with_missing_change_is_refused() {
    let mut saved = sample();
    saved.plan.graph.nodes.push(Operation::Change(7));
    let document = serde_json::to_vec(&Document::new(&saved, "1.0.0")).unwrap();
    assert!(matches!(reread_document(&document), Err(PlanFileError::Graph)));
}

fn schemas() -> Schemas {
    use schema::{AttributeSchema, BlockSchema, Schema};
    let schema = |name: &str| {
        let block = BlockSchema {
            attributes: BTreeMap::from([(name.into(), AttributeSchema::default())]),
            ..BlockSchema::default()
        };
        Schema::new(1, block)
    };
    let types = ["t", "other"].map(|ty| (Arc::from(ty), schema(ty)));
    let provider = provider::ProviderSchema {
        provider: schema("token"),
        resources: BTreeMap::from(types.clone()).into(),
        data_sources: BTreeMap::from(types.clone()).into(),
        actions: BTreeMap::from(types).into(),
        ..provider::ProviderSchema::default()
    };
    Schemas {
        providers: BTreeMap::from([(Provider::default_for("t"), Arc::new(provider))]),
        provisioners: BTreeMap::from([("local-exec".into(), Arc::new(schema("command")))]),
    }
}

/// Writes the plan in a file again with other schemas, and reads it back.
fn rewritten(path: &Path, schemas: Option<&[u8]>) -> SavedPlan {
    let mut old = zip::ZipArchive::new(std::fs::File::open(path).unwrap()).unwrap();
    let new = path.with_extension("new");
    let mut zip = zip::ZipWriter::new(std::fs::File::create(&new).unwrap());
    for i in 0..old.len() {
        let entry = old.by_index(i).unwrap();
        if entry.name().unwrap() != SCHEMAS {
            zip.raw_copy_file(entry).unwrap();
        }
    }
    if let Some(content) = schemas {
        zip.start_file(SCHEMAS, SimpleFileOptions::default()).unwrap();
        zip.write_all(content).unwrap();
    }
    zip.finish().unwrap();
    read(&new, "1.0.0", Program::MONOFORM, &Codec::PLAIN).unwrap()
}

#[test]
fn schemas_of_the_types_in_a_plan_are_saved_with_it_and_others_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p");
    let mut saved = sample();
    let loaded = config::load(
        &files(&saved),
        ".",
        &config::LoadOptions::new("1.16.0", &saved.snapshot.manifest()),
    );
    saved.schemas = Some(schemas_of(&schemas(), &loaded.config, &saved.plan));
    write(&path, &saved, "1.0.0", &Codec::PLAIN).unwrap();
    let back = read(&path, "1.0.0", Program::MONOFORM, &Codec::PLAIN)
        .unwrap()
        .schemas
        .unwrap();
    let provider = &back.providers[&Provider::default_for("t")];
    let names = |map: &provider::SchemaMap<schema::Schema>| map.keys().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(names(&provider.resources), ["t"]);
    assert_eq!(names(&provider.actions), ["t"]);
    // The plan uses no types of these kinds.
    assert!(provider.data_sources.is_empty());
    let all = schemas();
    let expected = &all.providers[&Provider::default_for("t")];
    assert_eq!(provider.resources.get("t"), expected.resources.get("t"));
    assert_eq!(provider.provider, expected.provider);
    assert_eq!(back.provisioners, all.provisioners);

    assert!(rewritten(&path, None).schemas.is_none(), "a plan without them is read");
    let damaged = rewritten(&path, Some(&[0xff; 9]));
    assert!(damaged.schemas.is_none(), "schemas that cannot be read are asked for");
}
