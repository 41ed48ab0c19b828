//! Cost of statements on large states, and implied moves by mode. The scenarios test the results of moves.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use addrs::{AbsProviderConfig, InstanceKey, ModuleInstance, Resource};
use config::files::MemoryFiles;
use provider::NoProviders;
use state::{Attributes, InstanceState, Object, ResourceState, State};

use crate::providers::Providers;

fn resource(keys: impl Iterator<Item = InstanceKey>) -> ResourceState {
    let object = Arc::new(Object::new(0, Attributes::Flat(Arc::default())));
    let instance = InstanceState {
        current: Some(object),
        ..InstanceState::default()
    };
    ResourceState {
        provider: AbsProviderConfig::root(addrs::Provider::default_for("fake")),
        instances: keys.map(|key| (key, instance.clone())).collect(),
    }
}

/// Applies all moves of a configuration; returns their number and the time.
fn moved(main: &str, mut state: State) -> (usize, Duration) {
    let files: MemoryFiles = [("main.tf", main), ("m/main.tf", "")].into_iter().collect();
    let manifest = config::manifest::Manifest::default();
    let options = config::LoadOptions::new("1.11.4", &manifest);
    let config = config::load(&files, ".", &options).config;
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let source = NoProviders;
        let providers = Providers::start(&source, BTreeSet::new(), BTreeSet::new(), [])
            .await
            .unwrap();
        let began = Instant::now();
        let statements = super::statements(&config, &state);
        let moves = super::apply(&statements, &mut state, &providers).await.unwrap();
        (moves.from.len(), began.elapsed())
    })
}

#[test]
fn cost_of_moves_is_not_statements_times_instances() {
    let few_seconds = Duration::from_secs(20);
    // One resource of 100,000 instances; 2,000 of them get other keys.
    let mut state = State::new();
    state.resources.insert(
        Resource::managed("fake_thing", "a").absolute(&ModuleInstance::root()),
        resource((0..100_000).map(InstanceKey::Int)),
    );
    let main: String = (0..2000)
        .map(|i| format!("moved {{\n from = fake_thing.a[{i}]\n to = fake_thing.b[\"k{i}\"]\n}}\n"))
        .collect();
    let (count, time) = moved(&main, state);
    assert_eq!(count, 2000);
    assert!(time < few_seconds, "{time:?}");
    // 10,000 module instances of ten instances each; 2,000 of them get other names.
    let mut state = State::new();
    for i in 0..10_000 {
        state.resources.insert(
            Resource::managed("fake_thing", "a").absolute(&ModuleInstance::root().child("m", InstanceKey::Int(i))),
            resource((0..10).map(InstanceKey::Int)),
        );
    }
    let main: String = (0..2000)
        .map(|i| format!("moved {{\n from = module.m[{i}]\n to = module.n[\"k{i}\"]\n}}\n"))
        .collect();
    let (count, time) = moved(&main, state);
    assert_eq!(count, 20_000);
    assert!(time < few_seconds, "{time:?}");
}

/// Returns the moves of module calls that a configuration implies in a mode, for a state with one object in each of two modules.
fn implied(main: &str, mode: addrs::program::Mode) -> Vec<String> {
    let files: MemoryFiles = [("main.tf", main), ("m/main.tf", "")].into_iter().collect();
    let manifest = config::manifest::Manifest::default();
    let options = config::LoadOptions::new("1.11.4", &manifest);
    let config = config::load(&files, ".", &options).config;
    let mut state = State::new();
    for (name, key) in [("plain", InstanceKey::None), ("counted", InstanceKey::Int(0))] {
        let module = ModuleInstance::root().child(name, key);
        state.resources.insert(
            Resource::managed("fake_thing", "a").absolute(&module),
            resource([InstanceKey::None].into_iter()),
        );
    }
    let statements = super::implied::of_calls(&config, &state, &[], mode);
    statements.iter().map(|s| format!("{} {}", s.from, s.to)).collect()
}

#[test]
fn module_calls_move_in_opentofu_mode_or_if_they_have_enabled() {
    use addrs::program::Mode;

    let of_both = "module \"plain\" {\n source = \"./m\"\n count = 1\n}\nmodule \"counted\" {\n source = \"./m\"\n}\n";
    assert_eq!(implied(of_both, Mode::Monoform), [""; 0]);
    assert_eq!(
        implied(of_both, Mode::OpenTofu),
        ["module.counted[0] module.counted", "module.plain module.plain[0]"]
    );
    let enabled = "module \"counted\" {\n source = \"./m\"\n lifecycle {\n  enabled = true\n }\n}\n";
    assert_eq!(implied(enabled, Mode::Monoform), ["module.counted[0] module.counted"]);
}
