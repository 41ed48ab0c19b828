//! Check that the path expressions of rules name a member of the schema.

use cty::Type;

use crate::schema::{Block, Nesting};
use crate::validate::{Expression, Group, Origin, Part};

/// Returns true if an expression names a member of the schema. `blocks` has the blocks around the attribute, from the outermost to its own.
pub(super) fn exists(text: &str, blocks: &[&Block]) -> bool {
    let Some(expression) = Expression::parse(text) else {
        return false;
    };
    let found = |block: Option<&&Block>| block.is_some_and(|block| in_block(block, &expression.steps));
    match expression.origin {
        Origin::Near => found(blocks.last()) || found(blocks.first()),
        Origin::Outermost => found(blocks.first()),
        Origin::Up(levels) => found(blocks.iter().rev().nth(levels)),
    }
}

/// Returns the reason why a group does not fit its schema.
pub(super) fn group_problem(group: &Group, root: &Block) -> Option<String> {
    let missing = group.paths.iter().find(|path| !exists(path, &[root]))?;
    Some(format!("{:?} names {missing:?}, which is not there", group.rule))
}

/// Returns true if these steps lead to a member of a block.
fn in_block(block: &Block, steps: &[Part<'_>]) -> bool {
    let Some((Part::Name(name), rest)) = steps.split_first() else {
        return false;
    };
    let nested = block.blocks.iter().find(|b| b.name == *name);
    if let Some(nested) = nested {
        return in_blocks(&nested.block, nested.nesting, rest);
    }
    match block.attributes.iter().find(|a| a.name == *name) {
        Some(a) => match &a.nested {
            Some(nested) => in_blocks(&nested.block, nested.nesting, rest),
            None => in_type(&a.ty, rest),
        },
        None => false,
    }
}

fn in_blocks(block: &Block, nesting: Nesting, steps: &[Part<'_>]) -> bool {
    let Some((step, rest)) = steps.split_first() else {
        return true;
    };
    let inside = |steps: &[Part<'_>]| steps.is_empty() || in_block(block, steps);
    match (nesting, step) {
        (Nesting::Single | Nesting::Group, Part::Name(_)) => in_block(block, steps),
        (Nesting::List | Nesting::Set | Nesting::Map, Part::Any) => inside(rest),
        (Nesting::List, Part::Index(_)) | (Nesting::Map, Part::Key(_)) => inside(rest),
        _ => false,
    }
}

fn in_type(ty: &Type, steps: &[Part<'_>]) -> bool {
    let Some((step, rest)) = steps.split_first() else {
        return true;
    };
    match (ty, step) {
        (Type::Dynamic, _) => true,
        (Type::List(e) | Type::Set(e) | Type::Map(e), Part::Any) => in_type(e, rest),
        (Type::List(e), Part::Index(_)) | (Type::Map(e), Part::Key(_)) => in_type(e, rest),
        (Type::Tuple(types), Part::Index(i)) => types.get(*i).is_some_and(|ty| in_type(ty, rest)),
        (Type::Object(object), Part::Name(name)) => object.get(name).is_some_and(|ty| in_type(ty, rest)),
        _ => false,
    }
}
