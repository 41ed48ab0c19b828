//! A model of the locks. The tests explore all interleavings of small cases.

use std::collections::BTreeSet;

use super::claims::{Mode, Overlap, blocker};

/// Claims of a run in the model: pairs of key and mode.
type Wants = Vec<(u8, Mode)>;

const STATE: u8 = 0;

/// Claims of a run that changes objects and depends on others. Each object is the only one of its resource: objects 1, 2 and 3 have the
/// resources 11, 12 and 13.
fn run(changes: &[u8], depends: &[u8]) -> Wants {
    let mut wants = vec![(STATE, Mode::Within)];
    for object in changes {
        wants.extend([(*object, Mode::Exclusive), (object + 10, Mode::Within)]);
    }
    wants.extend(depends.iter().map(|object| (object + 10, Mode::Shared)));
    wants
}

fn whole() -> Wants {
    vec![(STATE, Mode::Exclusive)]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// The plan has not been made.
    Start,
    /// The plan has read the objects.
    Planned,
    Waiting,
    Granted,
    /// The locked objects are as the plan has read them. They are written one after the other.
    Writing(usize),
    Finished,
    /// The locked objects differ from what the plan has read, so nothing was changed.
    Stale,
    Killed,
    /// The lock was not free, and the run does not wait.
    Withdrawn,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Model {
    steps: Vec<Step>,
    /// Request number of each run.
    requests: Vec<Option<i32>>,
    next: i32,
    /// Value of each object, and the values that each run has read.
    values: [u8; 4],
    seen: Vec<[u8; 4]>,
}

struct Explored {
    /// Sets of runs that held their locks at the same time.
    together: BTreeSet<Vec<usize>>,
    /// Combinations of the final steps of all runs.
    ends: BTreeSet<Vec<Step>>,
}

fn objects(wants: &Wants, is_changed: bool) -> Vec<u8> {
    let all = wants.contains(&(STATE, Mode::Exclusive));
    (1..4)
        .filter(|object| match (all, is_changed) {
            (true, _) => true,
            (false, true) => wants.contains(&(*object, Mode::Exclusive)),
            (false, false) => wants.contains(&(object + 10, Mode::Shared)),
        })
        .collect()
}

impl Model {
    fn new(runs: usize) -> Model {
        Model {
            steps: vec![Step::Start; runs],
            requests: vec![None; runs],
            next: 1,
            values: [0; 4],
            seen: vec![[0; 4]; runs],
        }
    }

    fn must_wait(&self, at: usize, runs: &[Wants]) -> bool {
        let own = self.requests[at].expect("a request");
        let mut overlaps = Vec::new();
        for (key, mode) in &runs[at] {
            for (other, wants) in runs.iter().enumerate().filter(|(other, _)| *other != at) {
                let Some(request) = self.requests[other] else { continue };
                overlaps.extend(wants.iter().filter(|(k, _)| k == key).map(|(_, m)| Overlap {
                    own: *mode,
                    request,
                    other: *m,
                }));
            }
        }
        blocker(own, &overlaps).is_some()
    }

    fn holds(&self, at: usize) -> bool {
        matches!(self.steps[at], Step::Granted | Step::Writing(_))
    }

    /// Returns the models after each possible step of a run. There is none if the run has ended or must wait.
    fn after(&self, at: usize, runs: &[Wants], is_impatient: bool, may_die: bool) -> Vec<Model> {
        let mut out = Vec::new();
        let mut go = |step: Step, change: &dyn Fn(&mut Model)| {
            let mut next = self.clone();
            next.steps[at] = step;
            change(&mut next);
            out.push(next);
        };
        let release = |model: &mut Model| model.requests[at] = None;
        let changed = objects(&runs[at], true);
        match self.steps[at] {
            Step::Start => go(Step::Planned, &|model| model.seen[at] = model.values),
            Step::Planned => go(Step::Waiting, &|model| {
                model.requests[at] = Some(model.next);
                model.next += 1;
            }),
            Step::Waiting if self.must_wait(at, runs) => {
                if is_impatient {
                    go(Step::Withdrawn, &release);
                }
            }
            Step::Waiting => go(Step::Granted, &|_| {}),
            Step::Granted => {
                let mut used = changed
                    .iter()
                    .chain(&objects(&runs[at], false))
                    .copied()
                    .collect::<Vec<_>>();
                used.sort_unstable();
                match used
                    .iter()
                    .all(|o| self.values[usize::from(*o)] == self.seen[at][usize::from(*o)])
                {
                    true => go(Step::Writing(0), &|_| {}),
                    false => go(Step::Stale, &release),
                }
            }
            Step::Writing(done) => match changed.get(done) {
                Some(object) => {
                    let object = usize::from(*object);
                    let value = self.seen[at][object] + 1;
                    assert_eq!(
                        self.values[object], self.seen[at][object],
                        "an update is lost: {self:?}"
                    );
                    for dependency in objects(&runs[at], false).iter().map(|o| usize::from(*o)) {
                        let is_own = changed.contains(&u8::try_from(dependency).expect("small"));
                        assert!(
                            is_own || self.values[dependency] == self.seen[at][dependency],
                            "a dependency changes under a run: {self:?}"
                        );
                    }
                    go(Step::Writing(done + 1), &|model| model.values[object] = value);
                }
                None => go(Step::Finished, &release),
            },
            Step::Finished | Step::Stale | Step::Killed | Step::Withdrawn => {}
        }
        let lives = matches!(self.steps[at], Step::Waiting | Step::Granted | Step::Writing(_));
        if may_die && lives {
            // The locks of a killed run end with its session, and what it has written remains.
            go(Step::Killed, &release);
        }
        out
    }
}

/// Explores every interleaving.
fn explore(runs: &[Wants], is_impatient: bool, may_die: bool) -> Explored {
    let mut explored = Explored {
        together: BTreeSet::new(),
        ends: BTreeSet::new(),
    };
    let mut seen = BTreeSet::new();
    let mut open = vec![Model::new(runs.len())];
    while let Some(model) = open.pop() {
        if !seen.insert(model.clone()) {
            continue;
        }
        let holding: Vec<usize> = (0..runs.len()).filter(|at| model.holds(*at)).collect();
        for (i, one) in holding.iter().enumerate() {
            for other in &holding[i + 1..] {
                let conflict = |(key, mode): &(u8, Mode)| {
                    let theirs = runs[*other].iter().filter(|(k, _)| k == key);
                    theirs.into_iter().any(|(_, m)| mode.conflicts_with(*m))
                };
                assert!(!runs[*one].iter().any(conflict), "conflicting locks: {model:?}");
            }
        }
        explored.together.insert(holding);
        let next: Vec<Model> = (0..runs.len())
            .flat_map(|at| model.after(at, runs, is_impatient, may_die))
            .collect();
        if next.is_empty() {
            let ended = |step: &Step| matches!(step, Step::Finished | Step::Stale | Step::Killed | Step::Withdrawn);
            assert!(model.steps.iter().all(ended), "a deadlock: {model:?}");
            explored.ends.insert(model.steps);
        }
        open.extend(next);
    }
    explored
}

#[test]
fn no_schedule_of_two_or_three_runs_deadlocks_or_loses_an_update() {
    let kinds = [
        run(&[1], &[]),
        run(&[2], &[]),
        run(&[1, 2], &[]),
        run(&[2], &[1]),
        run(&[1], &[2]),
        run(&[3], &[1, 2]),
        whole(),
    ];
    // The order of the two runs in the list does not matter, because all interleavings are explored.
    for (i, a) in kinds.iter().enumerate() {
        for (j, b) in kinds.iter().enumerate().skip(i) {
            explore(&[a.clone(), b.clone()], true, true);
            for c in &kinds[j..] {
                explore(&[a.clone(), b.clone(), c.clone()], false, false);
            }
        }
    }
}

#[test]
fn three_runs_with_kills_and_withdrawals_keep_the_order() {
    for runs in [
        [run(&[1, 2], &[]), run(&[2], &[1]), run(&[1], &[2])],
        [run(&[1], &[]), whole(), run(&[1], &[])],
        [run(&[3], &[1]), run(&[3], &[2]), run(&[1, 2], &[])],
    ] {
        explore(&runs, true, true);
    }
}

#[test]
fn disjoint_runs_and_runs_with_equal_dependencies_hold_their_locks_at_once() {
    let disjoint = explore(&[run(&[1], &[]), run(&[2], &[]), run(&[3], &[])], false, false);
    assert!(disjoint.together.contains(&vec![0, 1, 2]));
    assert_eq!(disjoint.ends, BTreeSet::from([vec![Step::Finished; 3]]));
    let sharing = explore(&[run(&[1], &[3]), run(&[2], &[3])], false, false);
    assert!(sharing.together.contains(&vec![0, 1]));
    assert_eq!(sharing.ends, BTreeSet::from([vec![Step::Finished; 2]]));
}

#[test]
fn overlapping_runs_follow_each_other_and_the_later_plan_is_stale_or_new() {
    for runs in [
        [run(&[1], &[]), run(&[1], &[])],
        [run(&[1], &[]), run(&[2], &[1])],
        [run(&[1], &[]), whole()],
    ] {
        let explored = explore(&runs, false, false);
        assert!(!explored.together.contains(&vec![0, 1]));
        // If both planned before the first one ended, the second one is stale. If it planned afterwards, both finish.
        assert!(explored.ends.contains(&vec![Step::Finished; 2]));
        assert!(explored.ends.iter().any(|ends| ends.contains(&Step::Stale)));
        assert!(explored.ends.iter().all(|ends| ends.contains(&Step::Finished)));
    }
}
