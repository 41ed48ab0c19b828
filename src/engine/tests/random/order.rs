//! Property tests without failures: an apply carries out its plan in a valid order, and the next plan is empty.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::plan::{Action, Mode};
use state::ObjectStatus;

use crate::generate::{Model, Random};
use crate::support::{Case, actions, texts};
use crate::{Size, Trace, case_of, check, record_model, write};

fn nothing() -> [BTreeSet<String>; 3] {
    [BTreeSet::new(), BTreeSet::new(), BTreeSet::new()]
}

pub fn property(seed: u64, size: Size, trace: &mut Trace) -> Result<(), String> {
    let mut r = Random::new(seed);
    let mut model = crate::model(&mut r, size);
    let mut case = case_of(&model, seed);
    case.parallelism = [1, 3, 10][r.below(3)];
    trace.record("begin");
    record_model(trace, &model);
    step(&mut case, &model, trace, true)?;
    for _ in 0..r.below(size.steps + 1) {
        if r.percent(10) {
            case.options.mode = Mode::Destroy;
            partly(&mut case, &model, &mut r, trace)?;
            case.options.mode = Mode::Normal;
        }
        // The moves and removals of the last step have been applied.
        model.moved.clear();
        model.removed.clear();
        for _ in 0..1 + r.below(3) {
            let what = model.change(&mut r, crate::MOVES);
            trace.record(&format!("changed: {what}"));
        }
        if r.percent(40) {
            let what = model.relocate(&mut r);
            trace.record(&format!("changed: {what}"));
        }
        write(&mut case, &model);
        record_model(trace, &model);
        let quiet = !outside(&mut case, &model, &mut r, trace);
        if r.percent(10) {
            trace.record("refresh only");
            case.options.mode = Mode::RefreshOnly;
            let done = apply(&mut case, &model, trace)?;
            if !done.is_empty() {
                return Err(format!("more than a refresh: {done:?}"));
            }
            check::truth(&case, &nothing())?;
            case.options.mode = Mode::Normal;
        }
        if r.percent(20) {
            partly(&mut case, &model, &mut r, trace)?;
        }
        if r.percent(30) {
            deterministic(&mut case, &mut r)?;
        }
        // A plan without refresh is correct only if nothing was changed outside.
        if quiet && r.percent(20) {
            trace.record("without refresh");
            case.options.refresh = false;
        }
        step(&mut case, &model, trace, true)?;
        case.options.refresh = true;
    }
    trace.record("destroy");
    case.options.mode = Mode::Destroy;
    case.options.refresh = r.percent(70);
    deterministic(&mut case, &mut r)?;
    step(&mut case, &model, trace, false)?;
    if !case.state.is_empty() || !case.remote.lock().objects.is_empty() {
        return Err(format!(
            "left after destroy: {:?} {:?}",
            case.addresses(),
            case.remote.names()
        ));
    }
    Ok(())
}

/// Asserts that plans are byte for byte equal, whatever the order of the provider's responses.
fn deterministic(case: &mut Case, r: &mut Random) -> Result<(), String> {
    let bytes = |case: &Case| match case.try_plan() {
        (Some(plan), problems) => format!("{plan:?}\n{}", texts(problems.iter())),
        (None, problems) => texts(problems.iter()),
    };
    let before = (case.parallelism, case.remote.lock().seed);
    let first = bytes(case);
    case.parallelism = 1 + r.below(20);
    case.remote.lock().seed = r.next();
    let second = bytes(case);
    (case.parallelism, case.remote.lock().seed) = before;
    if first == second {
        return Ok(());
    }
    let at = first.bytes().zip(second.bytes()).take_while(|(a, b)| a == b).count();
    let part = |text: &str| text.chars().skip(at.saturating_sub(200)).take(400).collect::<String>();
    Err(format!(
        "the plan depends on what finishes first:\n{}\n{}",
        part(&first),
        part(&second)
    ))
}

/// Makes a step with one `-target` or `-exclude` option.
fn partly(case: &mut Case, model: &Model, r: &mut Random, trace: &mut Trace) -> Result<(), String> {
    let all = model.instances();
    let Some(target) = r.pick(&all) else { return Ok(()) };
    let module = model.modules.first().map(|call| format!("module.{}", call.name));
    let target = match module {
        Some(module) if r.percent(20) => module,
        _ => target.address.clone(),
    };
    if r.percent(40) {
        trace.record(&format!("without {target}"));
        case.exclude(&[&target]);
    } else {
        trace.record(&format!("only {target}"));
        case.target(&[&target]);
    }
    // If a moved object is not among the targets, planning must fail. This holds for implied moves, too.
    let problems = texts(case.try_plan().1.iter());
    if problems.contains("Moved resource instances excluded by targeting") {
        trace.record("refused");
    } else {
        step(case, model, trace, false)?;
    }
    case.target(&[]);
    case.exclude(&[]);
    Ok(())
}

/// Makes changes that are not in the configuration: taints, `-replace` options, changes of remote objects. Returns true if remote objects
/// now differ from the state.
fn outside(case: &mut Case, model: &Model, r: &mut Random, trace: &mut Trace) -> bool {
    let mut changed = false;
    if r.percent(15) {
        let addresses = case.addresses();
        // Data sources cannot be tainted.
        let managed: Vec<&String> = addresses.iter().filter(|a| !a.contains("data.")).collect();
        if let Some(address) = r.pick(&managed) {
            trace.record(&format!("tainted {address}"));
            taint(case, address);
        }
    }
    if r.percent(15) {
        let names = case.remote.names();
        if let Some(name) = r.pick(&names) {
            changed = true;
            if r.percent(50) {
                trace.record(&format!("vanished: {name}"));
                case.remote.vanish(name);
            } else {
                trace.record(&format!("drifted: {name}"));
                case.remote.drift(name, "value", cty::Value::string("drifted"));
            }
        }
    }
    if r.percent(15) {
        let all = model.instances();
        if let Some(instance) = r.pick(&all) {
            trace.record(&format!("-replace={}", instance.address));
            case.replace(&[&instance.address]);
        }
    }
    changed
}

fn taint(case: &mut Case, address: &str) {
    let found = case
        .state
        .instances()
        .find(|(r, _, key, _)| r.instance((*key).clone()).to_string() == *address)
        .and_then(|(r, s, key, i)| Some((r.instance(key.clone()), s.provider.clone(), i.current.clone()?)));
    if let Some((address, provider, object)) = found {
        let mut tainted = (*object).clone();
        tainted.status = ObjectStatus::Tainted;
        case.state.set_current(&address, &provider, Some(Arc::new(tainted)));
    }
}

/// Plans and applies, checks the operations and their order, and returns them.
fn apply(case: &mut Case, model: &Model, trace: &mut Trace) -> Result<Vec<check::Operation>, String> {
    let (plan, problems) = case.try_plan();
    let plan = match plan {
        Some(plan) if !problems.has_errors() => plan,
        _ => return Err(format!("planning failed: {}", texts(problems.iter()))),
    };
    trace.record(&format!("plan: {:?}", actions(&plan)));
    let before = check::prior(case, &plan);
    let there: BTreeSet<String> = case.remote.names().into_iter().collect();
    case.remote.take_log();
    let problems = case.try_apply(&plan);
    let log = case.remote.take_log();
    let operations = check::operations(&log);
    for operation in &operations {
        trace.record(&format!(
            "  {} {} {}-{}",
            operation.verb, operation.name, operation.start, operation.end
        ));
    }
    if problems.has_errors() {
        return Err(format!("applying failed: {}", texts(problems.iter())));
    }
    check::as_planned(&plan, &operations)?;
    check::order(model, &plan, &before, &operations)?;
    // A forgotten object still exists in the remote but is not managed any more, so it is removed from there.
    for forgotten in plan.changes.iter().filter(|c| c.action == Action::Forget) {
        let name = forgotten.before.get("name").and_then(cty::Value::as_str).unwrap_or("?");
        let address = forgotten.address.to_string();
        if case.remote.named(name).is_none() && there.contains(name) || case.addresses().contains(&address) {
            return Err(format!("{address} was not just forgotten"));
        }
        case.remote.vanish(name);
    }
    Ok(operations)
}

fn step(case: &mut Case, model: &Model, trace: &mut Trace, everything: bool) -> Result<(), String> {
    apply(case, model, trace)?;
    if everything {
        check::truth(case, &nothing())?;
        check::complete(case, model, &BTreeSet::new())?;
        // With the option, the next plan would replace the objects again.
        case.replace(&[]);
        check::settled(case)?;
    }
    Ok(())
}
