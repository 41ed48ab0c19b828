//! Tests of the time that statements take on large states. The results of moves are tested in `tests/scenarios`.

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
