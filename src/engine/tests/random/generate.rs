//! Configurations made at random, and changes of them.
//!
//! A [`Model`] is a list of blocks, in the root or in modules, each of which refers to earlier ones only. It can write
//! itself as configuration files in two dialects, knows which instances there must be and who depends on whom, and changes
//! step by step as people change configurations.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Numbers that depend on a seed alone.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, which is not zero.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    /// True in so many of a hundred cases.
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

/// What resources are called, and their arguments.
#[derive(Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "two tests share this file, and each speaks one of them")]
pub enum Dialect {
    /// The provider in memory of the engine's tests.
    Fake,
    /// `terraform_data`.
    Builtin,
}

/// Whether there are many, and which.
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
                let keys = ["x", "y", "z w", "\u{e4}"];
                Repetition::Each(keys.into_iter().filter(|_| r.percent(50)).collect())
            }
            _ => Repetition::One,
        }
    }

    /// The keys as addresses have them.
    pub fn keys(&self) -> Vec<String> {
        match self {
            Repetition::One => vec![String::new()],
            Repetition::Count(n) => (0..*n).map(|i| format!("[{i}]")).collect(),
            Repetition::Each(keys) => keys.iter().map(|k| format!("[\"{k}\"]")).collect(),
        }
    }

    fn write(&self, out: &mut String) {
        match self {
            Repetition::One => {}
            Repetition::Count(n) => {
                let _ = writeln!(out, "  count = {n}");
            }
            Repetition::Each(keys) => {
                let keys: Vec<&str> = keys.iter().copied().collect();
                let _ = writeln!(out, "  for_each = toset({keys:?})");
            }
        }
    }

    /// The instance's own part of its name.
    fn own_key(&self) -> &'static str {
        match self {
            Repetition::One => "",
            Repetition::Count(_) => "${count.index}",
            Repetition::Each(_) => "${each.key}",
        }
    }

    /// All instances in one text.
    fn all(&self, what: &str, attribute: &str) -> String {
        match self {
            Repetition::One => format!("{what}.{attribute}"),
            Repetition::Count(_) => format!("join(\",\", {what}[*].{attribute})"),
            Repetition::Each(_) => format!("join(\",\", values({what})[*].{attribute})"),
        }
    }
}

/// A reference from one block to another, by number, to one of its attributes.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    pub to: u32,
    pub stable: bool,
}

/// A resource.
#[derive(Clone, Debug)]
pub struct Block {
    /// Its number, which it keeps for life: objects are known by it.
    pub number: u32,
    pub label: String,
    /// Where it is; `None` is the root.
    pub module: Option<usize>,
    pub data: bool,
    /// Which of the providers.
    pub provider: usize,
    pub repetition: Repetition,
    pub cbd: bool,
    pub literal: u64,
    pub forced: u64,
    /// What its value refers to.
    pub refs: Vec<Reference>,
    /// What its replacement depends on.
    pub forced_refs: Vec<Reference>,
    pub depends_on: Vec<u32>,
    pub triggers: Vec<u32>,
    pub ignore: bool,
}

/// A configuration.
#[derive(Clone)]
pub struct Model {
    pub dialect: Dialect,
    /// In an order in which references lead back.
    pub blocks: Vec<Block>,
    /// The module calls `m0`, `m1`, ….
    pub modules: Vec<Repetition>,
    /// `from`, `to` of moved blocks.
    pub moved: Vec<(String, String)>,
    next: u32,
}

/// A planned instance: its address, and the name by which the world knows it.
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
            modules: (0..r.below(3)).map(|_| Repetition::random(r)).collect(),
            moved: Vec::new(),
            next: 0,
        };
        for _ in 0..1 + r.below(size) {
            let before = model.clone();
            model.add(r);
            if model.has_circle() {
                model = before;
            }
        }
        model
    }

    fn add(&mut self, r: &mut Random) {
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

    /// New references of a block that stands at a place.
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

    /// The name within its module, as references have it.
    fn local_name(&self, block: &Block) -> String {
        let data = if block.data { "data." } else { "" };
        format!("{data}{}.{}", self.ty(block), block.label)
    }

    /// The address of the block, without keys.
    pub fn config_address(&self, block: &Block) -> String {
        match block.module {
            None => self.local_name(block),
            Some(m) => format!("module.m{m}.{}", self.local_name(block)),
        }
    }

    /// All instances of managed resources there must be.
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
                let keys = self.modules.get(m).map(Repetition::keys).unwrap_or_default();
                keys.iter().map(|k| (format!("module.m{m}{k}."), plain(k))).collect()
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

    /// What each block refers to, by number. Who asks for something of a module of which there are many waits for all of
    /// its outputs.
    fn direct(&self) -> BTreeMap<u32, BTreeSet<u32>> {
        let mut outputs: BTreeMap<usize, BTreeSet<u32>> = BTreeMap::new();
        let mut of: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        let mut whole: Vec<(u32, usize)> = Vec::new();
        for block in &self.blocks {
            let to = of.entry(block.number).or_default();
            to.extend(block.depends_on.iter().chain(&block.triggers));
            for reference in block.refs.iter().chain(&block.forced_refs) {
                to.insert(reference.to);
                let Some(m) = self.block(reference.to).and_then(|b| b.module) else {
                    continue;
                };
                if block.module != Some(m) {
                    outputs.entry(m).or_default().insert(reference.to);
                    if self.modules.get(m) != Some(&Repetition::One) {
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

    /// All blocks that each block depends on, directly or not; itself is among them only where they form a circle.
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

    /// For each managed block the managed blocks it depends on, directly or not, by configuration address.
    pub fn dependencies(&self) -> BTreeMap<String, BTreeSet<String>> {
        let address = |n: &u32| self.block(*n).filter(|b| !b.data).map(|b| self.config_address(b));
        self.closure()
            .iter()
            .filter_map(|(n, of)| Some((address(n)?, of.iter().filter_map(address).collect())))
            .collect()
    }

    /// The managed blocks whose new objects come before the old ones go, by configuration address.
    pub fn creates_first(&self) -> BTreeSet<String> {
        let dependencies = self.dependencies();
        let mut out = BTreeSet::new();
        for block in self.blocks.iter().filter(|b| b.cbd && !b.data) {
            let address = self.config_address(block);
            out.extend(dependencies.get(&address).into_iter().flatten().cloned());
            out.insert(address);
        }
        out
    }

    // ---- text ------------------------------------------------------------------------------------------------------

    /// What a block in a module refers to outside of it becomes an argument of the call.
    fn reference(
        &self,
        from: Option<usize>,
        reference: &Reference,
        inputs: &mut BTreeMap<(usize, u32, bool), String>,
    ) -> String {
        let Some(target) = self.block(reference.to) else {
            return "\"\"".into();
        };
        let attribute = match (self.dialect, target.data, reference.stable) {
            (_, true, _) => "result",
            (Dialect::Fake, false, true) | (Dialect::Builtin, false, true) => "id",
            (Dialect::Fake, false, false) => "note",
            (Dialect::Builtin, false, false) => "output",
        };
        if target.module == from {
            return target.repetition.all(&self.local_name(target), attribute);
        }
        let outside = match target.module {
            None => target.repetition.all(&self.local_name(target), attribute),
            Some(m) => match self.modules.get(m) {
                Some(repetition) => repetition.all(&format!("module.m{m}"), &output_name(reference)),
                None => "\"\"".into(),
            },
        };
        match from {
            None => outside,
            Some(m) => {
                inputs.insert((m, reference.to, reference.stable), outside);
                format!("var.{}", input_name(reference))
            }
        }
    }

    fn write_block(&self, block: &Block, out: &mut String, inputs: &mut BTreeMap<(usize, u32, bool), String>) {
        let kind = if block.data { "data" } else { "resource" };
        let _ = writeln!(out, "{kind} \"{}\" \"{}\" {{", self.ty(block), block.label);
        block.repetition.write(out);
        let mut joined = |literal: String, refs: &[Reference]| {
            refs.iter().fold(literal, |text, r| {
                format!("{text}-${{{}}}", self.reference(block.module, r, inputs))
            })
        };
        let value = joined(block.literal.to_string(), &block.refs);
        let forced = joined(block.forced.to_string(), &block.forced_refs);
        let module_key = match block.module {
            None => "",
            Some(_) => "${var.key}",
        };
        let name = format!("n{}/{module_key}/{}", block.number, block.repetition.own_key());
        match (self.dialect, block.data) {
            (_, true) => {
                let _ = writeln!(out, "  query = \"{value}\"");
            }
            (Dialect::Fake, false) => {
                let _ = writeln!(
                    out,
                    "  name   = \"{name}\"\n  value  = \"{value}\"\n  forced = \"{forced}\""
                );
            }
            (Dialect::Builtin, false) => {
                let _ = writeln!(
                    out,
                    "  input            = \"{value}\"\n  triggers_replace = \"{name} {forced}\""
                );
            }
        }
        if !block.depends_on.is_empty() {
            let on: Vec<String> = block
                .depends_on
                .iter()
                .filter_map(|n| Some(self.local_name(self.block(*n)?)))
                .collect();
            let _ = writeln!(out, "  depends_on = [{}]", on.join(", "));
        }
        let mut lifecycle = String::new();
        if block.cbd {
            lifecycle.push_str("    create_before_destroy = true\n");
        }
        if !block.triggers.is_empty() {
            let by: Vec<String> = block
                .triggers
                .iter()
                .filter_map(|n| Some(self.local_name(self.block(*n)?)))
                .collect();
            let _ = writeln!(lifecycle, "    replace_triggered_by = [{}]", by.join(", "));
        }
        if block.ignore {
            let argument = if self.dialect == Dialect::Fake {
                "value"
            } else {
                "input"
            };
            let _ = writeln!(lifecycle, "    ignore_changes = [{argument}]");
        }
        if !lifecycle.is_empty() {
            let _ = writeln!(out, "  lifecycle {{\n{lifecycle}  }}");
        }
        out.push_str("}\n\n");
    }

    /// The configuration: files and their text.
    pub fn files(&self) -> Vec<(String, String)> {
        let mut inputs = BTreeMap::new();
        let mut texts: BTreeMap<Option<usize>, String> = BTreeMap::new();
        for block in &self.blocks {
            let mut text = String::new();
            self.write_block(block, &mut text, &mut inputs);
            texts.entry(block.module).or_default().push_str(&text);
        }
        // Outputs that others ask for; their references are within the module.
        let mut outputs: BTreeMap<(usize, String), String> = BTreeMap::new();
        for block in &self.blocks {
            for reference in block.refs.iter().chain(&block.forced_refs) {
                if let Some(target) = self.block(reference.to)
                    && let Some(m) = target.module
                    && target.module != block.module
                {
                    let value = self.reference(target.module, reference, &mut inputs);
                    outputs.insert((m, output_name(reference)), value);
                }
            }
        }
        let mut root = texts.remove(&None).unwrap_or_default();
        let mut out = Vec::new();
        for (m, repetition) in self.modules.iter().enumerate() {
            let mut text = texts.remove(&Some(m)).unwrap_or_default();
            text.push_str("variable \"key\" {}\n");
            let _ = writeln!(root, "module \"m{m}\" {{\n  source = \"./m{m}\"");
            repetition.write(&mut root);
            let _ = writeln!(root, "  key    = \"{}\"", repetition.own_key());
            for ((of, number, stable), value) in &inputs {
                if *of == m {
                    let name = input_name(&Reference {
                        to: *number,
                        stable: *stable,
                    });
                    let _ = writeln!(root, "  {name} = {value}");
                    let _ = writeln!(text, "variable \"{name}\" {{}}");
                }
            }
            root.push_str("}\n\n");
            for ((of, name), value) in &outputs {
                if *of == m {
                    let _ = writeln!(text, "output \"{name}\" {{\n  value = {value}\n}}");
                }
            }
            out.push((format!("m{m}/main.tf"), text));
        }
        for (from, to) in &self.moved {
            let _ = writeln!(root, "moved {{\n  from = {from}\n  to   = {to}\n}}");
        }
        let last = self.blocks.iter().rev().find(|b| b.module.is_none() && !b.data);
        if let Some(last) = last {
            let value = last.repetition.all(&self.local_name(last), "id");
            let _ = writeln!(root, "output \"last\" {{\n  value = {value}\n}}");
        }
        out.push(("main.tf".into(), root));
        out
    }

    // ---- change ----------------------------------------------------------------------------------------------------

    /// Changes something, as people do. Says what.
    pub fn change(&mut self, r: &mut Random, moves: bool) -> String {
        let before = self.clone();
        let what = self.try_change(r, moves);
        if !self.has_circle() {
            return what;
        }
        *self = before;
        "nothing".into()
    }

    fn try_change(&mut self, r: &mut Random, moves: bool) -> String {
        let n = self.blocks.len();
        let what = r.below(16);
        if n == 0 || what == 0 {
            self.add(r);
            return "added a block".into();
        }
        let at = r.below(n);
        let number = self.blocks[at].number;
        let about = |what: &str| format!("{what} of r{number}");
        match what {
            1 | 2 => {
                self.blocks[at].literal = r.next() % 1000;
                about("value")
            }
            3 | 4 => {
                self.blocks[at].forced = r.next() % 1000;
                about("replacement")
            }
            5 => {
                self.remove(number);
                about("removal")
            }
            6 => {
                self.blocks[at].repetition = Repetition::random(r);
                about("repetition")
            }
            7 if !self.modules.is_empty() => {
                let m = r.below(self.modules.len());
                self.modules[m] = Repetition::random(r);
                format!("repetition of m{m}")
            }
            8 | 9 => {
                let mut block = self.blocks[at].clone();
                self.draw_references(r, &mut block, at);
                self.blocks[at] = block;
                about("references")
            }
            10 if !self.blocks[at].data => {
                self.blocks[at].cbd ^= true;
                about("create_before_destroy")
            }
            11 if moves && !self.blocks[at].data => {
                let from = self.config_address(&self.blocks[at]);
                self.next += 1;
                self.blocks[at].label = format!("r{}m{}", number, self.next);
                let to = self.config_address(&self.blocks[at]);
                self.moved.push((from, to));
                about("name")
            }
            12 if self.dialect == Dialect::Fake => {
                // Another type, and another object.
                self.blocks[at].provider ^= 1;
                self.renumber(at);
                about("type")
            }
            13 => {
                // To another module, as another object.
                let module = if self.modules.is_empty() || r.percent(40) {
                    None
                } else {
                    Some(r.below(self.modules.len()))
                };
                let number = self.renumber(at);
                self.blocks[at].module = module;
                for block in &mut self.blocks {
                    if block.number == number {
                        block.depends_on.clear();
                        block.triggers.clear();
                    }
                    block.depends_on.retain(|n| *n != number);
                    block.triggers.retain(|n| *n != number);
                }
                about("module")
            }
            14 if n > 1 && at > 0 => {
                // Turned around: an earlier one may refer to a later one from now on.
                let mut moved = self.blocks.remove(at - 1);
                let mut other = self.blocks.remove(at - 1);
                other.refs.retain(|x| x.to != moved.number);
                other.forced_refs.retain(|x| x.to != moved.number);
                other.depends_on.retain(|x| *x != moved.number);
                other.triggers.retain(|x| *x != moved.number);
                self.blocks.insert(at - 1, other);
                moved.refs.push(Reference {
                    to: number,
                    stable: true,
                });
                self.blocks.insert(at, moved);
                about("turned around what was before")
            }
            _ => {
                self.add(r);
                "added a block".into()
            }
        }
    }

    /// The block is another one from now on.
    fn renumber(&mut self, at: usize) -> u32 {
        let old = self.blocks[at].number;
        let new = self.next;
        self.next += 1;
        self.blocks[at].number = new;
        self.blocks[at].label = format!("r{new}");
        for block in &mut self.blocks {
            for reference in block.refs.iter_mut().chain(&mut block.forced_refs) {
                if reference.to == old {
                    reference.to = new;
                }
            }
            for n in block.depends_on.iter_mut().chain(&mut block.triggers) {
                if *n == old {
                    *n = new;
                }
            }
        }
        new
    }

    fn remove(&mut self, number: u32) {
        self.blocks.retain(|b| b.number != number);
        for block in &mut self.blocks {
            block.refs.retain(|x| x.to != number);
            block.forced_refs.retain(|x| x.to != number);
            block.depends_on.retain(|x| *x != number);
            block.triggers.retain(|x| *x != number);
        }
    }
}

fn output_name(reference: &Reference) -> String {
    format!("out{}{}", reference.to, if reference.stable { "i" } else { "n" })
}

fn input_name(reference: &Reference) -> String {
    format!("in{}{}", reference.to, if reference.stable { "i" } else { "n" })
}
