//! Tests of errors in schemas: each case has one mistake and the message for it.

use super::*;
use crate::schema::{block, computed, nested, optional, required};
use crate::{Any, Attr, Model, Set, Validator, model};

fn problems(used: Use, schema: &Schema) -> Vec<String> {
    of_schema(used, "x_thing", schema, &[])
        .into_iter()
        .map(|p| p.split_once(": ").map(|(_, rest)| rest.to_owned()).unwrap_or(p))
        .collect()
}

/// Asserts that a schema has one problem, at this path.
macro_rules! found {
    ($($member:expr => $ty:ty, $problem:literal;)*) => {$({
        #[derive(Clone, Default, Model)]
        struct Inner {
            #[member($member)]
            it: $ty,
            #[member(optional())]
            other: Attr<String>,
        }
        #[derive(Clone, Default, Model)]
        struct Outer {
            #[member(block())]
            part: Vec<Inner>,
        }
        let found = problems(Use::Resource, &Schema::of::<Outer>());
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("part.it: ") && found[0].contains($problem), "{found:?}");
    })*};
}

#[test]
fn attributes_that_cannot_work_are_found_with_their_path() {
    found! {
        optional().computed().default("x".to_owned()) => Attr<i64>, "its default is of type string";
        optional().computed().default(vec![1i64]) => Attr<Vec<String>>, "its default is of type list(number)";
        optional().computed().default(Attr::<i64>::Null) => Attr<i64>, "not null";
        optional().default(1i64) => Attr<i64>, "needs computed()";
        required().default(1i64) => Attr<i64>, "needs no default";
        required().computed() => Attr<i64>, "cannot be computed";
        computed().write_only() => Attr<i64>, "cannot be computed";
        optional().write_only().requires_replace() => Attr<i64>, "null in every plan";
        optional().keep() => Attr<i64>, "needs computed()";
        optional().requires_replace_if_values_change() => Attr<i64>, "is for maps";
        optional().validate(Validator::OneOf(&["a"])) => Attr<i64>, "is for strings";
        optional().validate(Validator::AtLeast(1)) => Attr<String>, "is for numbers";
        optional().validate(Validator::Size(0, 1)) => Attr<String>, "is for lists, sets and maps";
        optional().validate(Validator::Size(2, 1)) => Attr<Vec<String>>, "nothing can be so long";
        optional().validate(Validator::OneOf(&[])) => Attr<String>, "no value is allowed";
        optional().validate(Validator::each(Validator::LengthAtLeast(1))) => Attr<Vec<i64>>, "is for strings";
        optional().validate(Validator::each(Validator::AtLeast(1))) => Attr<i64>, "is for lists, sets and maps";
        optional().validate(Validator::ConflictsWith(&["othr"])) => Attr<i64>, "\"othr\", which is not there";
        nested(optional()) => Attr<Vec<Open>>, "cannot have attributes of any type";
        block() => Set<Open>, "cannot have attributes of any type";
        block().min_items(1) => Open, "is for blocks that form a list or a set";
        block().min_items(1).computed() => Attr<Vec<crate::Empty>>, "cannot have min_items";
        block().max_items(1).computed() => Attr<Vec<crate::Empty>>, "or max_items";
        block().max_items(1) => Attr<crate::Empty>, "is for blocks that form a list or a set";
        block().min_items(2).max_items(1) => Vec<crate::Empty>, "less than min_items";
    }
}

#[test]
fn all_in_a_computed_block_is_computed() {
    #[derive(Clone, Default, Model)]
    struct Whole {
        #[member(block().computed())]
        part: Attr<Vec<Open>>,
    }
    assert_eq!(
        problems(Use::Resource, &Schema::of::<Whole>()),
        ["part.any: it stands in a computed block, so that it needs computed()"]
    );
}

#[derive(Clone, Default, Model)]
struct Open {
    #[member(optional())]
    any: Any,
}

#[derive(Clone, Default, Model)]
struct Secret {
    #[member(optional().write_only())]
    secret: Attr<String>,
    #[member(block())]
    inside: Vec<Named>,
}

#[derive(Clone, Default, Model)]
struct Named {
    #[member(optional())]
    name: Attr<String>,
}

#[derive(Clone, Default, Model)]
#[allow(non_snake_case, reason = "that is what is to be found")]
struct Whole {
    #[member(flatten)]
    one: Named,
    #[member(flatten)]
    two: Named,
    #[member(block())]
    set: Set<Secret>,
    #[member(nested(optional().computed()))]
    attribute: Attr<Secret>,
    #[member(nested(optional().write_only()))]
    hidden: Attr<Named>,
    #[member(optional())]
    count: Attr<i64>,
    #[member(optional())]
    Big: Attr<i64>,
}

#[test]
fn what_does_not_fit_together_is_found() {
    let schema = Schema::of::<Whole>().version(-1).at_least_one_of(&["name", "nme"]);
    assert_eq!(
        problems(Use::Resource, &schema),
        [
            "the version of a schema cannot be negative",
            "name: there is more than one member by this name (members of flattened models count, too)",
            "Big: a name consists of lower-case letters, digits and underscores, and does not begin with a digit",
            "attribute.secret: it stands in a computed attribute, so that it cannot be write-only",
            "attribute.inside: an attribute cannot have blocks inside: make it nested(…), or the whole a block()",
            "hidden.name: it stands in a write-only attribute, so it must be write-only, too",
            "set.secret: an element of a set is told from others by its values, so that none can be write-only",
            "count: the language has its own use for this name here",
            "at_least_one_of names \"nme\", which is not there",
        ]
    );
}

model! {
    pub struct Planned {
        pub id: Attr<String> = computed().keep(),
        pub secret: Attr<String> = optional().write_only(),
        pub tags: Attr<Vec<String>> = optional(),
        pub names: Attr<std::collections::BTreeMap<String, String>> = optional(),
    }
}

#[test]
fn properties_of_resources_are_refused_in_other_schemas() {
    let schema = Schema::of::<Planned>();
    assert_eq!(problems(Use::Resource, &schema), [""; 0]);
    let data: Vec<String> = problems(Use::DataSource, &schema);
    assert_eq!(
        data,
        ["secret: a data source is never stored: only a resource has write-only attributes"]
    );
    let provider = problems(Use::Provider, &schema);
    assert_eq!(provider.len(), 3, "{provider:?}");
    assert_eq!(
        provider[0],
        "id: a provider configuration has no results: it cannot be computed"
    );
}

#[test]
fn identities_consist_of_simple_attributes_that_are_there() {
    let part = |name| IdentityAttribute {
        name,
        required_for_import: true,
        description: "",
    };
    let identity = [
        part("id"),
        part("tags"),
        part("names"),
        part("secret"),
        part("nme"),
        part("id"),
    ];
    assert_eq!(
        of_schema(Use::Resource, "x_thing", &Schema::of::<Planned>(), &identity),
        [
            "resource x_thing: identity: names: an identity consists of strings, numbers, bools, and lists of these",
            "resource x_thing: identity: secret: what is write-only is never stored, and cannot be an identity",
            "resource x_thing: identity: nme: there is no attribute by this name",
            "resource x_thing: identity: id: its name is a duplicate",
        ]
    );
}

#[test]
fn functions_have_names_and_parameters_apart() {
    use crate::{Arguments, Parameter};
    let text = |name| Parameter::new::<String>(name, "");
    let body = |arguments: Arguments<'_>| arguments.get::<String>(0);
    let function = Function::new("", "", vec![text("a"), text("a"), text("B")], body);
    let found = of_function("to-upper", &function);
    assert_eq!(found.len(), 3, "{found:?}");
    assert_eq!(found[1], "function to-upper: it has more than one parameter \"a\"");
}
