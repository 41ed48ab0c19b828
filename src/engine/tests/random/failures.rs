//! Property tests with failures: operations that fail before or after they took effect, plugins that crash, and requests to stop.

use std::collections::BTreeSet;

use engine::plan::{Action, Mode, Plan};
use engine::stop::Stop;
use state::ObjectStatus;

use crate::generate::Random;
use crate::support::{Case, actions, attributes, texts};
use crate::{Size, Trace, case_of, check, record_model, write};

pub fn property(seed: u64, size: Size, trace: &mut Trace) -> Result<(), String> {
    let mut r = Random::new(seed ^ 0xfa11);
    let mut model = crate::model(&mut r, size);
    let mut case = case_of(&model, seed);
    case.parallelism = [1, 3, 10][r.below(3)];
    // Remote objects that the state cannot know, because the response to their creation was lost.
    let mut orphans: BTreeSet<String> = BTreeSet::new();
    for i in 0..1 + r.below(size.steps + 1) {
        if i > 0 {
            model.moved.clear();
            for _ in 0..1 + r.below(3) {
                let what = model.change(&mut r, false);
                trace.record(&format!("changed: {what}"));
            }
            write(&mut case, &model);
        }
        record_model(trace, &model);
        if r.percent(20) {
            case.options.mode = Mode::Destroy;
            trace.record("destroying");
        }
        // One or two failing runs.
        for _ in 0..1 + r.below(2) {
            failing_run(&mut case, &mut r, &mut orphans, trace)?;
        }
        case.options.mode = Mode::Normal;
        if r.percent(40) {
            continue;
        }
        if !run(&mut case, trace)? {
            continue;
        }
        check::truth(&case, &[orphans.clone(), BTreeSet::new(), BTreeSet::new()])?;
        check::complete(&case, &model, &orphans)?;
        check::settled(&case)?;
    }
    case.options.mode = Mode::Destroy;
    run(&mut case, trace)?;
    let left: BTreeSet<String> = case.remote.lock().objects.keys().cloned().collect();
    if !case.state.is_empty() || left != orphans {
        return Err(format!("left after destroy: {:?}, {left:?}", case.addresses()));
    }
    Ok(())
}

/// Runs without failures, which must succeed. Returns false if planning failed because recorded and configured
/// dependencies contradict one another, so that no order exists.
fn run(case: &mut Case, trace: &mut Trace) -> Result<bool, String> {
    case.remote.heal();
    case.remote.lock().failing.clear();
    let (plan, problems) = case.try_plan();
    let plan = match plan {
        Some(plan) if !problems.has_errors() => plan,
        _ => {
            let problems = texts(problems.iter());
            let turned = trace.0.contains("turned around") && case.options.mode == Mode::Normal;
            if turned && problems.contains("Error: Cycle: ") {
                return Ok(false);
            }
            return Err(format!("planning failed: {problems}"));
        }
    };
    trace.record(&format!("run without failures: {:?}", actions(&plan)));
    let problems = case.try_apply(&plan);
    if problems.has_errors() {
        return Err(format!("applying failed: {}", texts(problems.iter())));
    }
    Ok(true)
}

fn failing_run(
    case: &mut Case,
    r: &mut Random,
    orphans: &mut BTreeSet<String>,
    trace: &mut Trace,
) -> Result<(), String> {
    case.remote.heal();
    let stored = check::identities(case);
    if r.percent(25) {
        // A plan that fails must change nothing.
        let names: Vec<String> = case.remote.names();
        if let Some(name) = r.pick(&names) {
            let call = format!("{} {name}", if r.percent(50) { "read" } else { "plan" });
            trace.record(&format!("fails: {call}"));
            let mut w = case.remote.lock();
            if r.percent(50) {
                w.failing.insert(call)
            } else {
                w.unreachable.insert(call)
            };
        }
    }
    let (plan, problems) = case.try_plan();
    let Some(plan) = plan.filter(|_| !problems.has_errors()) else {
        trace.record("planning failed");
        if stored != check::identities(case) {
            return Err("planning changed the state".into());
        }
        return Ok(());
    };
    case.remote.heal();
    case.remote.take_log();
    trace.record(&format!("run with failures: {:?}", actions(&plan)));
    let half = draw(case, &plan, r, trace);
    let before: BTreeSet<String> = case.remote.lock().objects.keys().cloned().collect();
    let known: BTreeSet<String> = check::identities(case).into_keys().collect();
    let problems = case.try_apply(&plan);
    case.stop = Stop::new();
    for call in check::operations(&case.remote.take_log()) {
        trace.record(&format!("  {} {} {}-{}", call.verb, call.name, call.start, call.end));
    }
    trace.record(&format!("  {}", texts(problems.iter()).replace('\n', "\n  ")));
    // Operations that took effect, but whose response was lost.
    let lost = std::mem::take(&mut case.remote.lock().lost_effects);
    let mut untold = [orphans.clone(), BTreeSet::new(), BTreeSet::new()];
    for (verb, id) in lost {
        match verb.as_str() {
            "create" => {
                orphans.insert(id.clone());
                untold[0].insert(id);
            }
            "delete" => {
                // The response was lost, so the state may still have the object.
                untold[1].insert(id);
            }
            _ => {
                untold[2].insert(id);
            }
        }
    }
    check::truth(case, &untold)?;
    // Exactly the objects of failed creations are tainted.
    for (resource, _, key, instance) in case.state.instances() {
        let Some(object) = &instance.current else { continue };
        let name = attributes(object)["name"].as_str().unwrap_or_default().to_owned();
        let id = attributes(object)["id"].as_str().unwrap_or_default().to_owned();
        let is_new = !before.contains(&id);
        if is_new && half.contains(&format!("create {name}")) && object.status != ObjectStatus::Tainted {
            return Err(format!("{}{key} was half created, and is not tainted", resource));
        }
        if is_new && !half.contains(&format!("create {name}")) && object.status == ObjectStatus::Tainted {
            return Err(format!("{}{key} was created well, and is tainted", resource));
        }
    }
    // Every object that the state had and that still exists must still be in the state.
    let now: BTreeSet<String> = check::identities(case).into_keys().collect();
    let remote = case.remote.lock();
    if let Some(forgotten) = known
        .iter()
        .find(|id| remote.objects.contains_key(*id) && !now.contains(*id))
    {
        return Err(format!("{forgotten} exists, and was forgotten"));
    }
    Ok(())
}

/// Chooses which planned operations fail, and how. Returns the calls that take effect but return an error.
fn draw(case: &mut Case, plan: &Plan, r: &mut Random, trace: &mut Trace) -> BTreeSet<String> {
    let mut half = BTreeSet::new();
    let mut calls = Vec::new();
    for change in &plan.changes {
        let name = |value: &cty::Value| value.get("name").and_then(cty::Value::as_str).unwrap_or("?").to_owned();
        match change.action {
            Action::Create | Action::CreateThenForget => calls.push(format!("create {}", name(&change.after))),
            Action::Update => calls.push(format!("update {}", name(&change.after))),
            Action::Delete => calls.push(format!("delete {}", name(&change.before))),
            Action::DeleteThenCreate | Action::CreateThenDelete => {
                calls.push(format!("delete {}", name(&change.before)));
                calls.push(format!("create {}", name(&change.after)));
            }
            Action::NoOp | Action::Read | Action::Forget => {}
        }
    }
    let often = [5, 20, 50][r.below(3)];
    for call in &calls {
        if !r.percent(often) {
            continue;
        }
        let mut w = case.remote.lock();
        let how = match r.below(4) {
            0 => {
                w.failing.insert(call.clone());
                "fails"
            }
            1 if !call.starts_with("delete") => {
                w.half.insert(call.clone());
                half.insert(call.clone());
                "is half done"
            }
            2 => {
                w.lost.insert(call.clone());
                "is done, but the answer is lost"
            }
            _ => {
                w.unreachable.insert(call.clone());
                "does not arrive"
            }
        };
        drop(w);
        trace.record(&format!("{call} {how}"));
    }
    if r.percent(20)
        && let Some(call) = r.pick(&calls)
    {
        trace.record(&format!("stopped at {call}"));
        let stop = case.stop.clone();
        case.remote.hook(call, move || stop.request());
    }
    half
}
