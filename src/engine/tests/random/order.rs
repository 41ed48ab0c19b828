//! Without failures.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::plan::{Action, Mode};
use state::ObjectStatus;

use crate::generate::{Model, Random};
use crate::support::{Case, actions, texts};
use crate::{Size, Story, case_of, check, tell, write};

fn nothing() -> [BTreeSet<String>; 3] {
    [BTreeSet::new(), BTreeSet::new(), BTreeSet::new()]
}

pub fn property(seed: u64, size: Size, story: &mut Story) -> Result<(), String> {
    let mut r = Random::new(seed);
    let mut model = crate::model(&mut r, size);
    let mut case = case_of(&model, seed);
    case.parallelism = [1, 3, 10][r.below(3)];
    story.tell("begin");
    tell(story, &model);
    step(&mut case, &model, story, true)?;
    for _ in 0..r.below(size.steps + 1) {
        if r.percent(10) {
            case.options.mode = Mode::Destroy;
            partly(&mut case, &model, &mut r, story)?;
            case.options.mode = Mode::Normal;
        }
        model.moved.clear();
        model.removed.clear();
        for _ in 0..1 + r.below(3) {
            let what = model.change(&mut r, crate::MOVES);
            story.tell(&format!("changed: {what}"));
        }
        if r.percent(40) {
            let what = model.relocate(&mut r);
            story.tell(&format!("changed: {what}"));
        }
        write(&mut case, &model);
        tell(story, &model);
        let quiet = !outside(&mut case, &model, &mut r, story);
        if r.percent(10) {
            story.tell("refresh only");
            case.options.mode = Mode::RefreshOnly;
            let done = apply(&mut case, &model, story)?;
            if !done.is_empty() {
                return Err(format!("more than a refresh: {done:?}"));
            }
            check::truth(&case, &nothing())?;
            case.options.mode = Mode::Normal;
        }
        if r.percent(20) {
            partly(&mut case, &model, &mut r, story)?;
        }
        if r.percent(30) {
            deterministic(&mut case, &mut r)?;
        }
        if quiet && r.percent(20) {
            story.tell("without refresh");
            case.options.refresh = false;
        }
        step(&mut case, &model, story, true)?;
        case.options.refresh = true;
    }
    story.tell("destroy");
    case.options.mode = Mode::Destroy;
    case.options.refresh = r.percent(70);
    deterministic(&mut case, &mut r)?;
    step(&mut case, &model, story, false)?;
    if !case.state.is_empty() || !case.world.lock().objects.is_empty() {
        return Err(format!(
            "left after destroy: {:?} {:?}",
            case.addresses(),
            case.world.names()
        ));
    }
    Ok(())
}

/// The plan is the same, to the last byte, whatever finishes first.
fn deterministic(case: &mut Case, r: &mut Random) -> Result<(), String> {
    let bytes = |case: &Case| match case.try_plan() {
        (Some(plan), problems) => format!("{plan:?}\n{}", texts(problems.iter())),
        (None, problems) => texts(problems.iter()),
    };
    let before = (case.parallelism, case.world.lock().seed);
    let first = bytes(case);
    case.parallelism = 1 + r.below(20);
    case.world.lock().seed = r.next();
    let second = bytes(case);
    (case.parallelism, case.world.lock().seed) = before;
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

/// A step with one instance or module alone, or without it.
fn partly(case: &mut Case, model: &Model, r: &mut Random, story: &mut Story) -> Result<(), String> {
    let all = model.instances();
    let Some(target) = r.pick(&all) else { return Ok(()) };
    let module = model.modules.first().map(|call| format!("module.{}", call.name));
    let target = match module {
        Some(module) if r.percent(20) => module,
        _ => target.address.clone(),
    };
    if r.percent(40) {
        story.tell(&format!("without {target}"));
        case.exclude(&[&target]);
    } else {
        story.tell(&format!("only {target}"));
        case.target(&[&target]);
    }
    // Objects that move must be among the targets; without them there is no plan, which is right. The same goes for those
    // that move untold, when their resource gets or loses its count.
    let problems = texts(case.try_plan().1.iter());
    if problems.contains("Moved resource instances excluded by targeting") {
        story.tell("refused");
    } else {
        step(case, model, story, false)?;
    }
    case.target(&[]);
    case.exclude(&[]);
    Ok(())
}

/// What people do beside changing the configuration: taint, ask for replacement, change objects behind our back. Says whether objects are
/// no longer what the state says.
fn outside(case: &mut Case, model: &Model, r: &mut Random, story: &mut Story) -> bool {
    let mut changed = false;
    if r.percent(15) {
        let addresses = case.addresses();
        let managed: Vec<&String> = addresses.iter().filter(|a| !a.contains("data.")).collect();
        if let Some(address) = r.pick(&managed) {
            story.tell(&format!("tainted {address}"));
            taint(case, address);
        }
    }
    if r.percent(15) {
        let names = case.world.names();
        if let Some(name) = r.pick(&names) {
            changed = true;
            if r.percent(50) {
                story.tell(&format!("vanished: {name}"));
                case.world.vanish(name);
            } else {
                story.tell(&format!("drifted: {name}"));
                case.world.drift(name, "value", cty::Value::string("drifted"));
            }
        }
    }
    if r.percent(15) {
        let all = model.instances();
        if let Some(instance) = r.pick(&all) {
            story.tell(&format!("-replace={}", instance.address));
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

/// Plans and applies, and looks at what was done and in which order. Gives what was done.
fn apply(case: &mut Case, model: &Model, story: &mut Story) -> Result<Vec<check::Operation>, String> {
    let (plan, problems) = case.try_plan();
    let plan = match plan {
        Some(plan) if !problems.has_errors() => plan,
        _ => return Err(format!("planning failed: {}", texts(problems.iter()))),
    };
    story.tell(&format!("plan: {:?}", actions(&plan)));
    let before = check::prior(case, &plan);
    let there: BTreeSet<String> = case.world.names().into_iter().collect();
    case.world.take_log();
    let problems = case.try_apply(&plan);
    let log = case.world.take_log();
    let operations = check::operations(&log);
    for operation in &operations {
        story.tell(&format!(
            "  {} {} {}-{}",
            operation.verb, operation.name, operation.start, operation.end
        ));
    }
    if problems.has_errors() {
        return Err(format!("applying failed: {}", texts(problems.iter())));
    }
    check::as_planned(&plan, &operations)?;
    check::order(model, &plan, &before, &operations)?;
    // What was forgotten is there, and nobody's from now on.
    for forgotten in plan.changes.iter().filter(|c| c.action == Action::Forget) {
        let name = forgotten.before.get("name").and_then(cty::Value::as_str).unwrap_or("?");
        let address = forgotten.address.to_string();
        if case.world.named(name).is_none() && there.contains(name) || case.addresses().contains(&address) {
            return Err(format!("{address} was not just forgotten"));
        }
        case.world.vanish(name);
    }
    Ok(operations)
}

fn step(case: &mut Case, model: &Model, story: &mut Story, everything: bool) -> Result<(), String> {
    apply(case, model, story)?;
    if everything {
        check::truth(case, &nothing())?;
        check::complete(case, model, &BTreeSet::new())?;
        case.replace(&[]);
        check::settled(case)?;
    }
    Ok(())
}
