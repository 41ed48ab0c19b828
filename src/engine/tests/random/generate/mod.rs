//! Random configurations and random changes of them. A [`Model`] is a list of blocks in the root module or in called modules. References
//! lead to earlier blocks only. A model can be written as configuration files in both dialects, and predicts the instances and
//! dependencies.

use std::collections::{BTreeMap, BTreeSet};

mod change;
mod text;

/// Generator of pseudo-random numbers from a seed.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    pub fn next(&mut self) -> u64 {
        // SplitMix64, so that a seed gives the same numbers on every platform and with every version.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number from 0 to `n - 1`. `n` must not be zero.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    /// Returns true with this probability in percent.
    pub fn percent(&mut self, n: u64) -> bool {
        self.next() % 100 < n
    }

    pub fn pick<'t, T>(&mut self, list: &'t [T]) -> Option<&'t T> {
        if list.is_empty() {
            return None;
        }
        let at = self.below(list.len());
        list.get(at)
    }
}

/// Kind of the generated resources.
#[derive(Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "two tests share this file, and each speaks one of them")]
pub enum Dialect {
    /// The in-memory provider of the engine's tests.
    Fake,
    /// `terraform_data`.
    Builtin,
}

/// The repetition argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Repetition {
    One,
    Count(usize),
    Each(BTreeSet<&'static str>),
}

impl Repetition {
    fn random(r: &mut Random) -> Repetition {
        match r.below(6) {
            0 => Repetition::Count(r.below(4)),
            1 => {
                // Some keys have a space or a letter beyond ASCII, which addresses must quote.
                let keys = ["x", "y", "z w", "\u{e4}"];
                Repetition::Each(keys.into_iter().filter(|_| r.percent(50)).collect())
            }
            _ => Repetition::One,
        }
    }

    /// Returns the instance keys in the form of addresses.
    pub fn keys(&self) -> Vec<String> {
        match self {
            Repetition::One => vec![String::new()],
            Repetition::Count(n) => (0..*n).map(|i| format!("[{i}]")).collect(),
            Repetition::Each(keys) => keys.iter().map(|k| format!("[\"{k}\"]")).collect(),
        }
    }
}

/// A reference to an attribute of the block with this number. If it is stable and the block is managed, it is to `id`, which updates do
/// not change.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    pub to: u32,
    pub stable: bool,
}

/// A resource.
#[derive(Clone, Debug)]
pub struct Block {
    /// The number of the block. It is part of the names of its objects.
    pub number: u32,
    pub label: String,
    /// Index of the module; `None` for the root module.
    pub module: Option<usize>,
    pub data: bool,
    /// Index of the provider: 0 for `fake`, 1 for `more`.
    pub provider: usize,
    pub repetition: Repetition,
    pub cbd: bool,
    pub literal: u64,
    pub forced: u64,
    /// References in the argument `value` (`query` of a data source, `input` of `terraform_data`).
    pub refs: Vec<Reference>,
    /// References in the argument `forced` (`triggers_replace` of `terraform_data`).
    pub forced_refs: Vec<Reference>,
    pub depends_on: Vec<u32>,
    pub triggers: Vec<u32>,
    pub ignore: bool,
}

/// A module call.
#[derive(Clone, Debug)]
pub struct Call {
    pub name: String,
    pub repetition: Repetition,
}

/// A `moved` block.
#[derive(Clone, Debug)]
pub struct Moved {
    /// The declaring module; `None` is the root module.
    pub module: Option<usize>,
    pub from: String,
    pub to: String,
}

/// A configuration as data: resources, module calls, moves and removals.
#[derive(Clone)]
pub struct Model {
    pub dialect: Dialect,
    /// Blocks. References lead to earlier ones.
    pub blocks: Vec<Block>,
    /// Module calls. Module `i` has its files in the directory `m<i>`.
    pub modules: Vec<Call>,
    /// Number of the resource to which the configuration of the second provider refers.
    pub token: Option<u32>,
    /// The moves of this step.
    pub moved: Vec<Moved>,
    /// Addresses of `removed` blocks, each with its argument `destroy`.
    pub removed: Vec<(String, bool)>,
    next: u32,
}

/// An expected instance: its address, and the name of its remote object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Expected {
    pub address: String,
    pub name: String,
}

impl Model {
    pub fn random(r: &mut Random, dialect: Dialect, size: usize) -> Model {
        let mut model = Model {
            dialect,
            blocks: Vec::new(),
            modules: (0..r.below(3))
                .map(|m| Call {
                    name: format!("m{m}"),
                    repetition: Repetition::random(r),
                })
                .collect(),
            token: None,
            moved: Vec::new(),
            removed: Vec::new(),
            next: 0,
        };
        for _ in 0..1 + r.below(size) {
            let before = model.clone();
            model.add(r);
            // A reference into a module with several instances depends on all outputs of the module, which may close a cycle. Then the
            // reference is not used.
            if model.has_circle() {
                model = before;
            }
        }
        if r.percent(15) {
            model.draw_token(r);
        }
        model
    }

    /// Makes the configuration of the second provider refer to an object of the first, or to none.
    fn draw_token(&mut self, r: &mut Random) {
        let of_first = self
            .blocks
            .iter()
            .filter(|b| b.provider == 0 && !b.data && b.module.is_none());
        let candidates: Vec<u32> = of_first.map(|b| b.number).collect();
        let before = self.token;
        self.token = if self.dialect == Dialect::Fake && r.percent(70) {
            r.pick(&candidates).copied()
        } else {
            None
        };
        if self.has_circle() {
            self.token = before;
        }
    }

    fn add(&mut self, r: &mut Random) {
        // Most new blocks are inserted before the end, so that the order of blocks differs from that of their numbers.
        let at = if r.percent(60) {
            self.blocks.len()
        } else {
            r.below(self.blocks.len() + 1)
        };
        let number = self.next;
        self.next += 1;
        let module = if r.percent(35) && !self.modules.is_empty() {
            Some(r.below(self.modules.len()))
        } else {
            None
        };
        // Configurations of the built-in provider have objects of `terraform_data` only.
        let data = self.dialect == Dialect::Fake && r.percent(12);
        let mut block = Block {
            number,
            label: format!("r{number}"),
            module,
            data,
            provider: r.below(2),
            repetition: Repetition::random(r),
            cbd: !data && r.percent(20),
            literal: r.next() % 1000,
            forced: r.next() % 1000,
            refs: Vec::new(),
            forced_refs: Vec::new(),
            depends_on: Vec::new(),
            triggers: Vec::new(),
            ignore: !data && r.percent(5),
        };
        self.draw_references(r, &mut block, at);
        self.blocks.insert(at, block);
    }

    /// Draws new references for a block at this position.
    fn draw_references(&self, r: &mut Random, block: &mut Block, at: usize) {
        let earlier: Vec<(u32, bool)> = self.blocks[..at]
            .iter()
            .map(|b| (b.number, b.module == block.module))
            .collect();
        let managed_here: Vec<u32> = self.blocks[..at]
            .iter()
            .filter(|b| b.module == block.module && !b.data)
            .map(|b| b.number)
            .collect();
        block.refs.clear();
        block.forced_refs.clear();
        block.depends_on.clear();
        block.triggers.clear();
        for _ in 0..r.below(3) {
            if let Some((to, _)) = r.pick(&earlier) {
                let reference = Reference {
                    to: *to,
                    stable: r.percent(60),
                };
                if r.percent(25) && !block.data {
                    block.forced_refs.push(reference);
                } else {
                    block.refs.push(reference);
                }
            }
        }
        if r.percent(12) {
            let here: Vec<u32> = earlier.iter().filter(|(_, here)| *here).map(|(n, _)| *n).collect();
            block.depends_on.extend(r.pick(&here));
        }
        if r.percent(10) && !block.data {
            block.triggers.extend(r.pick(&managed_here));
        }
    }

    pub fn block(&self, number: u32) -> Option<&Block> {
        self.blocks.iter().find(|b| b.number == number)
    }

    fn ty(&self, block: &Block) -> &'static str {
        match (self.dialect, block.data, block.provider) {
            (Dialect::Builtin, ..) => "terraform_data",
            (_, false, 0) => "fake_thing",
            (_, false, _) => "more_thing",
            (_, true, 0) => "fake_lookup",
            (_, true, _) => "more_lookup",
        }
    }

    /// Returns the name of the block in references within its module.
    fn local_name(&self, block: &Block) -> String {
        let data = if block.data { "data." } else { "" };
        format!("{data}{}.{}", self.ty(block), block.label)
    }

    pub fn config_address(&self, block: &Block) -> String {
        match block.module {
            None => self.local_name(block),
            Some(m) => format!("module.{}.{}", self.call_name(m), self.local_name(block)),
        }
    }

    fn call_name(&self, m: usize) -> &str {
        self.modules.get(m).map_or("", |call| &call.name)
    }

    /// Returns the managed instances that are expected after an apply.
    pub fn instances(&self) -> Vec<Expected> {
        let mut out: Vec<Expected> = self
            .blocks
            .iter()
            .filter(|b| !b.data)
            .flat_map(|b| self.instances_of(b))
            .collect();
        out.sort();
        out
    }

    pub fn instances_of(&self, block: &Block) -> Vec<Expected> {
        let local = self.local_name(block);
        let plain = |key: &str| key.trim_matches(|c| "[]\"".contains(c)).to_owned();
        let mut out = Vec::new();
        let modules = match block.module {
            None => vec![(String::new(), String::new())],
            Some(m) => {
                let keys = self.modules.get(m).map(|c| c.repetition.keys()).unwrap_or_default();
                let name = self.call_name(m);
                keys.iter().map(|k| (format!("module.{name}{k}."), plain(k))).collect()
            }
        };
        for (module, module_key) in modules {
            for key in block.repetition.keys() {
                out.push(Expected {
                    address: format!("{module}{local}{key}"),
                    name: format!("n{}/{module_key}/{}", block.number, plain(&key)),
                });
            }
        }
        out
    }

    /// Returns the direct dependencies of each block, by number. A reference into a module with several instances depends on all outputs of
    /// the module.
    fn direct(&self) -> BTreeMap<u32, BTreeSet<u32>> {
        let mut outputs: BTreeMap<usize, BTreeSet<u32>> = BTreeMap::new();
        let mut of: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        let mut whole: Vec<(u32, usize)> = Vec::new();
        for block in &self.blocks {
            let to = of.entry(block.number).or_default();
            to.extend(block.depends_on.iter().chain(&block.triggers));
            if block.provider == 1 {
                to.extend(self.token);
            }
            for reference in block.refs.iter().chain(&block.forced_refs) {
                to.insert(reference.to);
                let Some(m) = self.block(reference.to).and_then(|b| b.module) else {
                    continue;
                };
                if block.module != Some(m) {
                    outputs.entry(m).or_default().insert(reference.to);
                    if self.modules.get(m).is_some_and(|c| c.repetition != Repetition::One) {
                        whole.push((block.number, m));
                    }
                }
            }
        }
        for (number, m) in whole {
            let all = outputs.get(&m).cloned().unwrap_or_default();
            of.entry(number).or_default().extend(all);
        }
        of
    }

    /// Returns the direct and indirect dependencies of each block. A block on a cycle depends on itself.
    fn closure(&self) -> BTreeMap<u32, BTreeSet<u32>> {
        let mut all = self.direct();
        loop {
            let mut grown = false;
            let before = all.clone();
            for of in all.values_mut() {
                let size = of.len();
                let more: Vec<u32> = of.iter().filter_map(|n| before.get(n)).flatten().copied().collect();
                of.extend(more);
                grown |= of.len() != size;
            }
            if !grown {
                return all;
            }
        }
    }

    fn has_circle(&self) -> bool {
        self.closure().iter().any(|(n, of)| of.contains(n))
    }

    /// Returns the direct and indirect dependencies between managed blocks, by configuration address.
    pub fn dependencies(&self) -> BTreeMap<String, BTreeSet<String>> {
        let address = |n: &u32| self.block(*n).filter(|b| !b.data).map(|b| self.config_address(b));
        self.closure()
            .iter()
            .filter_map(|(n, of)| Some((address(n)?, of.iter().filter_map(address).collect())))
            .collect()
    }

    /// Returns the configuration addresses of managed blocks that are replaced with create_before_destroy: the selected ones that set it,
    /// and their dependencies.
    pub fn creates_first(&self, worked_on: impl Fn(&str) -> bool) -> BTreeSet<String> {
        let dependencies = self.dependencies();
        let mut out = BTreeSet::new();
        for block in self.blocks.iter().filter(|b| b.cbd && !b.data) {
            let address = self.config_address(block);
            if !worked_on(&address) {
                continue;
            }
            out.extend(dependencies.get(&address).into_iter().flatten().cloned());
            out.insert(address);
        }
        out
    }
}
