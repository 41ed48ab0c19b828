//! Computed nested blocks, which the provider may set if the configuration has none (protocol 6).

use crate::{BlockSchema, Nesting};

impl BlockSchema {
    /// Returns true if this block or a nested one is computed.
    #[must_use]
    pub fn has_computed_blocks(&self) -> bool {
        self.computed || self.blocks.values().any(|nested| nested.block.has_computed_blocks())
    }

    /// Returns a description of the first invalid computed block; `None` if there is none. Schemas without computed blocks are not checked.
    #[must_use]
    pub fn computed_problem(&self) -> Option<String> {
        if self.has_computed_blocks() {
            self.problem_within()
        } else {
            None
        }
    }

    fn problem_within(&self) -> Option<String> {
        if self.computed
            && let Some((name, _)) = self.attributes.iter().find(|(_, a)| !a.computed)
        {
            return Some(format!("attribute \"{name}\" is not computed, but its block is"));
        }
        self.blocks.iter().find_map(|(name, nested)| {
            let inner = &nested.block;
            let what = if self.computed && !inner.computed {
                "it is not computed, but the block around it is"
            } else if inner.computed && nested.nesting == Nesting::Group {
                "a block that is always there cannot be computed"
            } else if inner.computed && nested.min_items > 0 {
                "a computed block cannot have a least number of blocks"
            } else {
                return inner
                    .problem_within()
                    .map(|problem| format!("block \"{name}\": {problem}"));
            };
            Some(format!("block \"{name}\": {what}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use cty::Type;

    use crate::{AttributeSchema, AttributeType, BlockSchema, NestedBlock, Nesting};

    fn nested(computed: (bool, bool), nesting: Nesting, min_items: u64) -> BlockSchema {
        let attribute = AttributeSchema {
            ty: AttributeType::Plain(Type::String),
            optional: true,
            computed: computed.1,
            ..AttributeSchema::default()
        };
        let block = BlockSchema {
            attributes: [("a".into(), attribute)].into(),
            computed: computed.0,
            ..BlockSchema::default()
        };
        let block = NestedBlock {
            block,
            nesting,
            min_items,
            max_items: 0,
        };
        BlockSchema {
            blocks: [("b".into(), block)].into(),
            ..BlockSchema::default()
        }
    }

    #[test]
    fn only_schemas_with_computed_blocks_are_checked() {
        assert_eq!(nested((false, false), Nesting::Group, 1).computed_problem(), None);
        assert_eq!(nested((true, true), Nesting::List, 0).computed_problem(), None);
    }

    #[test]
    fn what_is_inside_of_a_computed_block_is_computed() {
        let problem = nested((true, false), Nesting::List, 0).computed_problem().unwrap();
        assert!(problem.contains("\"a\" is not computed"), "{problem}");
        let problem = nested((true, true), Nesting::Group, 0).computed_problem().unwrap();
        assert!(problem.contains("always there"), "{problem}");
        let problem = nested((true, true), Nesting::Set, 1).computed_problem().unwrap();
        assert!(problem.contains("least number"), "{problem}");
    }
}
