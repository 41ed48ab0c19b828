//! Random changes of a model.

use super::{Dialect, Model, Moved, Random, Reference, Repetition};

impl Model {
    /// Makes a random change. Returns its description.
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
        let what = r.below(17);
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
                let address = self.config_address(&self.blocks[at]);
                let managed = !self.blocks[at].data;
                self.remove(number);
                if !(moves && managed && self.moved.is_empty() && r.percent(50)) {
                    return about("removal");
                }
                let destroy = r.percent(50);
                self.removed.push((address, destroy));
                about("removal, told,")
            }
            6 => {
                self.blocks[at].repetition = Repetition::random(r);
                about("repetition")
            }
            7 if !self.modules.is_empty() => {
                let m = r.below(self.modules.len());
                self.modules[m].repetition = Repetition::random(r);
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
                let from = self.local_name(&self.blocks[at]);
                self.next += 1;
                self.blocks[at].label = format!("r{}m{}", number, self.next);
                let to = self.local_name(&self.blocks[at]);
                let module = self.blocks[at].module;
                self.moved.push(Moved { module, from, to });
                about("name")
            }
            12 if self.dialect == Dialect::Fake => {
                // Objects of the other type are new objects, so they get new names.
                self.blocks[at].provider ^= 1;
                self.renumber(at);
                about("type")
            }
            13 => {
                // Objects in another module are new objects, so they get new names.
                let module = if self.modules.is_empty() || r.percent(40) {
                    None
                } else {
                    Some(r.below(self.modules.len()))
                };
                let number = self.renumber(at);
                self.move_to_module(number, module);
                about("module")
            }
            16 if self.dialect == Dialect::Fake => {
                self.draw_token(r);
                "configuration of the second provider".into()
            }
            14 if n > 1 && at > 0 => {
                // Reverses the direction of possible dependencies: the earlier block may now refer to the later one.
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

    /// Changes keys, the module of a block, the name of a module or the type of a block, with `moved` blocks. It must be the last change
    /// of a step, because later changes could remove the targets of the moves.
    pub fn relocate(&mut self, r: &mut Random) -> String {
        let before = self.clone();
        let what = self.try_relocate(r);
        if !self.has_circle() {
            return what;
        }
        *self = before;
        "nothing".into()
    }

    fn try_relocate(&mut self, r: &mut Random) -> String {
        let nothing = String::from("nothing");
        if !(self.moved.is_empty() && self.removed.is_empty()) || self.blocks.is_empty() {
            return nothing;
        }
        let at = r.below(self.blocks.len());
        let m = r.below(self.modules.len());
        let number = self.blocks[at].number;
        match r.below(6) {
            0 | 1 if !self.blocks[at].data => {
                let new = Repetition::random(r);
                let place = self.local_name(&self.blocks[at]);
                let module = self.blocks[at].module;
                let old = std::mem::replace(&mut self.blocks[at].repetition, new);
                self.moved = rekeyed(module, &place, &old, &self.blocks[at].repetition);
                format!("keys of r{number}, which move")
            }
            2 if !self.modules.is_empty() => {
                let new = Repetition::random(r);
                let old = std::mem::replace(&mut self.modules[m].repetition, new);
                let place = format!("module.{}", self.modules[m].name);
                self.moved = rekeyed(None, &place, &old, &self.modules[m].repetition);
                format!("keys of {place}, which move")
            }
            3 if !self.modules.is_empty() => {
                self.next += 1;
                let from = format!("module.{}", self.modules[m].name);
                self.modules[m].name = format!("m{m}n{}", self.next);
                let to = format!("module.{}", self.modules[m].name);
                let what = format!("name of {from}");
                self.moved.push(Moved { module: None, from, to });
                what
            }
            4 if !self.blocks[at].data => {
                let module = if r.percent(50) && !self.modules.is_empty() {
                    Some(m)
                } else {
                    None
                };
                if module == self.blocks[at].module {
                    return nothing;
                }
                let from = self.one_place(at);
                self.move_to_module(number, module);
                if let (Some(from), Some(to)) = (from, self.one_place(at)) {
                    self.moved.push(Moved { module: None, from, to });
                }
                format!("module of r{number}, which moves")
            }
            5 if !self.blocks[at].data && self.dialect == Dialect::Fake => {
                let from = self.local_name(&self.blocks[at]);
                self.blocks[at].provider ^= 1;
                let to = self.local_name(&self.blocks[at]);
                let module = self.blocks[at].module;
                self.moved.push(Moved { module, from, to });
                format!("type of r{number}, which moves")
            }
            _ => nothing,
        }
    }

    /// Returns the address of a resource in the first instance of its module; `None` if the module has no instance.
    fn one_place(&self, at: usize) -> Option<String> {
        let block = &self.blocks[at];
        let local = self.local_name(block);
        let Some(m) = block.module else { return Some(local) };
        let call = self.modules.get(m)?;
        let key = call.repetition.keys().into_iter().next()?;
        Some(format!("module.{}{key}.{local}", call.name))
    }

    /// Moves a block to another module, and removes the `depends_on` and trigger references from and to it, which are valid only within a
    /// module.
    fn move_to_module(&mut self, number: u32, module: Option<usize>) {
        if self.token == Some(number) {
            self.token = None;
        }
        for block in &mut self.blocks {
            if block.number == number {
                block.module = module;
                block.depends_on.clear();
                block.triggers.clear();
            }
            block.depends_on.retain(|n| *n != number);
            block.triggers.retain(|n| *n != number);
        }
    }

    /// Gives a block another number, which makes it another resource.
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
        if self.token == Some(old) {
            self.token = Some(new);
        }
        new
    }

    fn remove(&mut self, number: u32) {
        if self.token == Some(number) {
            self.token = None;
        }
        self.blocks.retain(|b| b.number != number);
        for block in &mut self.blocks {
            block.refs.retain(|x| x.to != number);
            block.forced_refs.retain(|x| x.to != number);
            block.depends_on.retain(|x| *x != number);
            block.triggers.retain(|x| *x != number);
        }
    }
}

/// Returns moves from the removed instance keys to the added ones, in order.
fn rekeyed(module: Option<usize>, place: &str, old: &Repetition, new: &Repetition) -> Vec<Moved> {
    let (old, new) = (old.keys(), new.keys());
    let gone = old.iter().filter(|k| !new.contains(k));
    let come = new.iter().filter(|k| !old.contains(k));
    gone.zip(come)
        .map(|(from, to)| Moved {
            module,
            from: format!("{place}{from}"),
            to: format!("{place}{to}"),
        })
        .collect()
}
