//! Trees of lines, as people draw them.

/// A line, and what hangs below it.
pub struct Tree {
    pub text: String,
    pub below: Vec<Tree>,
}

/// Draws trees below what stands there already.
pub fn draw(trees: &[Tree], out: &mut String) {
    level(trees, "", out);
}

fn level(trees: &[Tree], before: &str, out: &mut String) {
    for (i, tree) in trees.iter().enumerate() {
        let (branch, next) = match i + 1 == trees.len() {
            true => ("└── ", "    "),
            false => ("├── ", "│   "),
        };
        out.push_str(&format!("{before}{branch}{}\n", tree.text));
        level(&tree.below, &format!("{before}{next}"), out);
    }
}
