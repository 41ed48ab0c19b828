//! Trees of lines, drawn with branches.

/// Line with its subtrees.
pub struct Tree {
    pub text: String,
    pub below: Vec<Tree>,
}

/// Appends the drawing of trees to a text.
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
