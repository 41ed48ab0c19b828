//! The same sequences of configurations and commands under Terraform must give the same plans, states and texts.

use serde_json::{Value, json};

use crate::generate::{Dialect, Model, Random};
use support::scenario::compare;
use support::scenario::parse::{Scenario, Step};
use support::scenario::play::Player;
use support::{Workspace, monoform};

/// Positions of known differences. Each program words problems itself, and Terraform warns of targeting even if it refuses the plan.
const KNOWN: [&str; 3] = ["plan.problems", "apply.problems", "done.problems"];

/// Differences that come from a fault of 1.16.0-rc2. In an apply, it also marks a resource as `create_before_destroy` if a recorded
/// dependency of the resource is destroyed and has that mark. Whether this happens depends on the order of a map. It may leave deposed
/// objects behind: see [`is_stuck`].
const FLAGS: [&str; 2] = [
    "apply.state.resources.*.instances.*.create_before_destroy",
    "done.state.resources.*.instances.*.create_before_destroy",
];

/// Differences while a flag of [`FLAGS`] is in Terraform's state: the next refresh removes the flag.
const KNOWN_OF_FLAGS: [&str; 1] = ["plan.json.applyable"];

/// Differences after a move. In Terraform, objects that were created together with the moved one depend on the old address, too; objects
/// that a partial plan does not change depend on the old address only.
const KNOWN_OF_MOVES: [&str; 5] = [
    "apply.state.resources.*.instances.*.dependencies",
    "plan.json.prior_state.values.root_module.resources.*.depends_on",
    "plan.json.prior_state.values.root_module.child_modules.*.resources.*.depends_on",
    "apply.shown.values.root_module.resources.*.depends_on",
    "apply.shown.values.root_module.child_modules.*.resources.*.depends_on",
];

pub fn the_same_as_terraform() {
    let mut failed = Vec::new();
    let mut shown = None;
    for seed in crate::seeds(4) {
        let scenario = scenario(seed);
        let play = |program: &str| Player::new(program, Workspace::new(), program != monoform()).play(&scenario);
        let (mut ours, mut theirs) = (play(monoform()), play("terraform-1.16"));
        if let Some(step) = theirs.iter().position(is_stuck) {
            ours.truncate(step);
            theirs.truncate(step);
        }
        let mut found = Vec::new();
        let (ours, theirs) = (json!(ours), json!(theirs));
        compare::steps(&ours, &theirs, &mut found);
        let moves = scenario.text.contains("\nmoved {");
        let flags = FLAGS
            .iter()
            .any(|place| found.iter().any(|difference| compare::is_at(difference, place)));
        let of_flags = || FLAGS.iter().chain(&KNOWN_OF_FLAGS).filter(|_| flags);
        let known = || {
            KNOWN
                .iter()
                .chain(KNOWN_OF_MOVES.iter().filter(|_| moves))
                .chain(of_flags())
        };
        found.retain(|difference| !known().any(|place| compare::is_at(difference, place)));
        // The recordings may be from a release candidate.
        found.retain(|difference| !difference.leaves_old_dependencies() && difference.name() != "terraform_version");
        if !found.is_empty() {
            failed.push(seed);
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            if shown.is_none() {
                shown = Some(format!("{}\n{}", scenario.text, found.join("\n")));
            }
        }
    }
    if let Some(shown) = shown {
        panic!("seeds that differ: {failed:?}\n\nMONOFORM_SEED={}:\n{shown}", failed[0]);
    }
}

/// Returns true if Terraform fails where Monoform continues, so that later steps cannot be compared. This happens in five cases:
///
/// - Its graph has a cycle, because it orders some destructions in both directions. Monoform's graph orders objects instead of blocks.
/// - It refuses to apply its own plan of a refresh, because that plan is empty.
/// - It fails at a trigger without an instance.
/// - Its own provider contradicts the plan.
/// - It has left a deposed object without a failure: see [`FLAGS`].
fn is_stuck(step: &Value) -> bool {
    let resources = step["apply"]["state"]["resources"].as_array();
    let mut instances = resources
        .into_iter()
        .flatten()
        .filter_map(|r| r["instances"].as_array())
        .flatten();
    if step["apply"]["status"] == 0 && instances.any(|instance| instance.get("deposed").is_some()) {
        return true;
    }
    ["plan", "apply", "done"].iter().any(|command| {
        let problems = step[command]["problems"].as_array();
        let reasons = [
            "Cycle",
            "Cannot apply non-applyable plan",
            "no change found for",
            "Provider produced inconsistent final plan",
        ];
        let stuck = |p: &str| reasons.iter().any(|r| p.contains(r));
        problems.is_some_and(|all| all.iter().any(|p| p.as_str().is_some_and(stuck)))
    })
}

/// Generates a random scenario: changes of the configuration, and the commands after each change.
fn scenario(seed: u64) -> Scenario {
    let mut r = Random::new(seed ^ 0xbe51de);
    let mut model = Model::random(&mut r, Dialect::Builtin, 6);
    let mut steps = Vec::new();
    let run = |steps: &mut Vec<Step>, words: &[&str]| {
        steps.push(Step::Run(words.iter().map(|w| (*w).to_owned()).collect()));
    };
    write(&model, &mut steps);
    run(&mut steps, &["apply"]);
    for _ in 0..1 + r.below(3) {
        let before = model.instances();
        model.moved.clear();
        model.removed.clear();
        for _ in 0..1 + r.below(3) {
            model.change(&mut r, true);
        }
        if r.percent(50) {
            model.relocate(&mut r);
        }
        if r.percent(20)
            && let Some(tainted) = r.pick(&before)
        {
            run(&mut steps, &["taint", &tainted.address]);
        }
        write(&model, &mut steps);
        let all = model.instances();
        match (r.below(8), r.pick(&all)) {
            (0, Some(one)) => run(&mut steps, &["apply", &format!("-target={}", one.address)]),
            (1, Some(one)) => run(&mut steps, &["apply", &format!("-replace={}", one.address)]),
            (2, _) => run(&mut steps, &["apply", "-refresh-only"]),
            (3, _) => run(&mut steps, &["plan", "-destroy"]),
            (4, Some(one)) => run(&mut steps, &["destroy", &format!("-target={}", one.address)]),
            (5, _) => run(&mut steps, &["plan", "-refresh=false"]),
            _ => {}
        }
        run(&mut steps, &["apply"]);
    }
    run(&mut steps, &["plan"]);
    run(&mut steps, &["destroy"]);
    Scenario {
        topic: "random".into(),
        name: seed.to_string(),
        text: told(&steps),
        steps,
    }
}

fn write(model: &Model, steps: &mut Vec<Step>) {
    steps.extend(model.files().into_iter().map(|(name, text)| Step::Write(name, text)));
}

/// Renders the steps in the form of scenario files.
fn told(steps: &[Step]) -> String {
    let lines = steps.iter().map(|step| match step {
        Step::Write(name, text) => format!("--- {name}\n{text}"),
        Step::Run(words) => format!("$ {}\n", words.join(" ")),
        Step::Remove(_) | Step::Shell(_) => String::new(),
    });
    lines.collect()
}
