//! Without failures.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::plan::Mode;
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
        model.moved.clear();
        for _ in 0..1 + r.below(3) {
            let what = model.change(&mut r, crate::MOVES);
            story.tell(&format!("changed: {what}"));
        }
        write(&mut case, &model);
        tell(story, &model);
        outside(&mut case, &model, &mut r, story);
        if r.percent(20) {
            let all = model.instances();
            if let Some(target) = r.pick(&all) {
                story.tell(&format!("only {}", target.address));
                case.target(&[&target.address]);
                // Objects that move must be among the targets; without them there is no plan, which is right. The same goes for
                // those that move untold, when their resource gets or loses its count.
                let problems = texts(case.try_plan().1.iter());
                if problems.contains("Moved resource instances excluded by targeting") {
                    story.tell("refused");
                } else {
                    step(&mut case, &model, story, false)?;
                }
                case.target(&[]);
            }
        }
        step(&mut case, &model, story, true)?;
        case.replace(&[]);
    }
    story.tell("destroy");
    case.options.mode = Mode::Destroy;
    let before = check::prior(&case);
    let operations = apply(&mut case, story)?;
    check::order(&model, true, &before, &operations)?;
    if !case.state.is_empty() || !case.world.lock().objects.is_empty() {
        return Err(format!(
            "left after destroy: {:?} {:?}",
            case.addresses(),
            case.world.names()
        ));
    }
    Ok(())
}

/// What people do beside changing the configuration: taint, ask for replacement, change objects behind our back.
fn outside(case: &mut Case, model: &Model, r: &mut Random, story: &mut Story) {
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

/// Plans and applies; gives what was done.
fn apply(case: &mut Case, story: &mut Story) -> Result<Vec<check::Operation>, String> {
    let (plan, problems) = case.try_plan();
    let plan = match plan {
        Some(plan) if !problems.has_errors() => plan,
        _ => return Err(format!("planning failed: {}", texts(problems.iter()))),
    };
    story.tell(&format!("plan: {:?}", actions(&plan)));
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
    Ok(operations)
}

fn step(case: &mut Case, model: &Model, story: &mut Story, everything: bool) -> Result<(), String> {
    let before = check::prior(case);
    let operations = apply(case, story)?;
    check::order(model, false, &before, &operations)?;
    if everything {
        check::truth(case, &nothing())?;
        check::complete(case, model, &BTreeSet::new())?;
        case.replace(&[]);
        check::settled(case)?;
    }
    Ok(())
}
