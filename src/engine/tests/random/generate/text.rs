//! Renders a model as configuration files.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Block, Call, Dialect, Model, Reference, Repetition};

impl Repetition {
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

    /// Returns a template whose value differs between the instances; empty for a single instance.
    fn own_key(&self) -> &'static str {
        match self {
            Repetition::One => "",
            Repetition::Count(_) => "${count.index}",
            Repetition::Each(_) => "${each.key}",
        }
    }

    /// Returns an expression that joins an attribute of all instances to one string.
    fn all(&self, what: &str, attribute: &str) -> String {
        match self {
            Repetition::One => format!("{what}.{attribute}"),
            Repetition::Count(_) => format!("join(\",\", {what}[*].{attribute})"),
            Repetition::Each(_) => format!("join(\",\", values({what})[*].{attribute})"),
        }
    }
}

impl Model {
    /// Renders a reference. References to blocks outside the module are passed in as arguments of the module call.
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
                Some(Call { name, repetition }) => repetition.all(&format!("module.{name}"), &output_name(reference)),
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

    /// Returns the names and texts of the configuration files.
    pub fn files(&self) -> Vec<(String, String)> {
        let mut inputs = BTreeMap::new();
        let mut texts: BTreeMap<Option<usize>, String> = BTreeMap::new();
        for block in &self.blocks {
            let mut text = String::new();
            self.write_block(block, &mut text, &mut inputs);
            texts.entry(block.module).or_default().push_str(&text);
        }
        // The outputs to which other modules refer, and the references from which they take their values.
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
        for (m, Call { name, repetition }) in self.modules.iter().enumerate() {
            let mut text = texts.remove(&Some(m)).unwrap_or_default();
            text.push_str("variable \"key\" {}\n");
            let _ = writeln!(root, "module \"{name}\" {{\n  source = \"./m{m}\"");
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
            self.write_moved(Some(m), &mut text);
            out.push((format!("m{m}/main.tf"), text));
        }
        self.write_moved(None, &mut root);
        for (from, destroy) in &self.removed {
            let _ = writeln!(
                root,
                "removed {{\n  from = {from}\n  lifecycle {{\n    destroy = {destroy}\n  }}\n}}"
            );
        }
        if let Some(token) = self.token.and_then(|n| self.block(n)) {
            let value = token.repetition.all(&self.local_name(token), "id");
            let _ = writeln!(root, "provider \"more\" {{\n  token = {value}\n}}");
        }
        let last = self.blocks.iter().rev().find(|b| b.module.is_none() && !b.data);
        if let Some(last) = last {
            let value = last.repetition.all(&self.local_name(last), "id");
            let _ = writeln!(root, "output \"last\" {{\n  value = {value}\n}}");
        }
        if self.dialect == Dialect::Builtin {
            self.write_conclusions(&mut root);
        }
        out.push(("main.tf".into(), root));
        out
    }

    /// Writes outputs and checks of the root module. Some outputs are null at times, depend on several objects and locals, or are known
    /// before apply.
    fn write_conclusions(&self, root: &mut String) {
        let managed: Vec<&Block> = self.blocks.iter().filter(|b| b.module.is_none() && !b.data).collect();
        for block in &managed {
            let (n, at, literal) = (block.number, self.local_name(block), block.literal);
            let asked = match block.repetition {
                Repetition::One => format!("{at}.id == null"),
                Repetition::Count(_) | Repetition::Each(_) => format!("[for o in {at} : o.id == null]"),
            };
            let all = block.repetition.all(&at, "output");
            let _ = writeln!(root, "output \"asked{n}\" {{\n  value = {asked}\n}}");
            let _ = writeln!(
                root,
                "output \"maybe{n}\" {{\n  value = {literal} % 2 == 0 ? \"even\" : null\n}}"
            );
            let _ = writeln!(
                root,
                "check \"c{n}\" {{\n  assert {{\n    condition     = {all} != \"x\"\n    error_message = \"It is x.\"\n  }}\n}}"
            );
        }
        if let [first, .., last] = managed.as_slice() {
            let all = |b: &Block| b.repetition.all(&self.local_name(b), "id");
            let _ = writeln!(
                root,
                "locals {{\n  prefix = \"p\"\n}}\noutput \"both\" {{\n  value = \"${{local.prefix}}-${{{}}}-${{{}}}\"\n}}",
                all(first),
                all(last)
            );
        }
    }

    fn write_moved(&self, module: Option<usize>, out: &mut String) {
        for moved in self.moved.iter().filter(|moved| moved.module == module) {
            let (from, to) = (&moved.from, &moved.to);
            let _ = writeln!(out, "moved {{\n  from = {from}\n  to   = {to}\n}}");
        }
    }
}

fn output_name(reference: &Reference) -> String {
    format!("out{}{}", reference.to, if reference.stable { "i" } else { "n" })
}

fn input_name(reference: &Reference) -> String {
    format!("in{}{}", reference.to, if reference.stable { "i" } else { "n" })
}
