//! Computation of a plan: the proposed object, defaults, unknown values, and the modifiers of each attribute.
//!
//! The steps, in this order:
//! 1. Defaults are set for attributes that the configuration leaves out. Write-only attributes become null. A value that means the same as
//!    the prior value is replaced by the latter ([`CustomType`](crate::CustomType)).
//! 2. If the result differs from the prior object (or there is none), every computed attribute or block that the configuration
//!    leaves out and that has no default becomes unknown.
//! 3. Each attribute's [`Modifier`]s run, in the order they were declared.
//! 4. The resource's own hook ([`Resource::plan`](crate::Resource::plan)) runs last, and can change everything.
//!
//! Steps 1 to 3 work on plain values with the compiled schema: no model is built for them.

use std::collections::BTreeMap;

use cty::{Path, Step, Type, Value};

use crate::diag::{Diagnostic, Diagnostics, Result};
use crate::model::Model;
pub use crate::modifier::{Change, Modifier};
use crate::pairing::{Pair, pair};
use crate::schema::{Attribute, Compiled, CompiledMember, Nesting};
use crate::type_rules::Compared;

/// A plan before the resource's own [`Resource::plan`](crate::Resource::plan).
#[derive(Debug)]
pub struct Planned {
    /// The planned object so far.
    pub state: Value,
    /// Attributes whose change requires replacement.
    pub requires_replace: Vec<Path>,
    /// Errors and warnings found while planning.
    pub diagnostics: Diagnostics,
}

/// Computes the plan for an object that is created (`prior` is `None`), updated or left unchanged.
#[must_use]
pub fn construct(schema: &Compiled, config: &Value, prior: Option<&Value>, proposed: &Value) -> Planned {
    let place = Position {
        config: Some(config),
        prior,
        planned: proposed,
    };
    // A separate pass, because only after all defaults are set can the object be compared with the prior one.
    let with_defaults = walk(&schema.members, &place, &Path::root(), &mut Defaults);
    let place = Position {
        planned: &with_defaults,
        ..place
    };
    let mut results = Results {
        change: prior.is_none_or(|prior| *prior != with_defaults),
        requires_replace: Vec::new(),
        diagnostics: Diagnostics::new(),
    };
    let state = walk(&schema.members, &place, &Path::root(), &mut results);
    Planned {
        state,
        requires_replace: results.requires_replace,
        diagnostics: results.diagnostics,
    }
}

/// Step 1: defaults, and null for write-only attributes.
struct Defaults;

impl Pass for Defaults {
    fn enter(&self, _member: &CompiledMember, _at: &Position<'_>) -> Option<Value> {
        None
    }

    fn leave(&mut self, member: &CompiledMember, at: &Position<'_>, _parent: &Parent<'_>) -> Value {
        match member.attribute() {
            Some(a) if a.write_only => Value::null(a.ty.clone()),
            Some(a) => {
                let value = match (&a.default, at.config) {
                    (Some(default), Some(config)) if config.is_null() => default,
                    _ => at.planned,
                };
                // A value that means the same as the prior one is no change.
                at.prior
                    .map_or_else(|| value.clone(), |prior| a.rules.settled(Compared::Plan, prior, value))
            }
            None => at.planned.clone(),
        }
    }
}

/// Steps 2 and 3, in one pass: an object of a set can no longer be matched with the prior objects after a part of it has become unknown. So
/// each object is matched once, in its proposed form.
struct Results {
    /// True if the object is new, or differs from the prior one.
    change: bool,
    requires_replace: Vec<Path>,
    diagnostics: Diagnostics,
}

impl Pass for Results {
    fn enter(&self, member: &CompiledMember, at: &Position<'_>) -> Option<Value> {
        // Without a change, computed attributes keep their prior values. Otherwise every plan would have a difference.
        if !self.change {
            return None;
        }
        match member.attribute() {
            Some(a) if becomes_unknown(a, at.config) => Some(Value::unknown(a.ty.clone())),
            None if member.is_computed_block() && at.config.is_none_or(Value::is_null) => {
                Some(Value::unknown(member.ty()))
            }
            _ => None,
        }
    }

    fn leave(&mut self, member: &CompiledMember, at: &Position<'_>, parent: &Parent<'_>) -> Value {
        let modifiers = member.modifiers();
        // Most members have no modifiers.
        if modifiers.is_empty() {
            return at.planned.clone();
        }
        let null = Value::null(member.attribute().map_or(Type::Dynamic, |a| a.ty.clone()));
        let mut change = Change {
            path: parent.path.attribute(member.name()),
            config: at.config.unwrap_or(&null),
            prior: at.prior,
            planned: at.planned.clone(),
            replace: false,
            config_block: parent.config.unwrap_or(&null),
            diagnostics: &mut self.diagnostics,
        };
        for modifier in modifiers {
            change.apply(modifier);
        }
        if change.replace {
            self.requires_replace.push(change.path);
        }
        change.planned
    }
}

fn becomes_unknown(attribute: &Attribute, config: Option<&Value>) -> bool {
    attribute.computed && attribute.default.is_none() && config.is_none_or(Value::is_null)
}

/// One position: its values in the configuration, in the prior object and in the plan.
#[derive(Clone, Copy)]
struct Position<'a> {
    config: Option<&'a Value>,
    prior: Option<&'a Value>,
    planned: &'a Value,
}

/// Block that contains a member.
struct Parent<'a> {
    path: &'a Path,
    config: Option<&'a Value>,
}

/// One pass over the members of a planned object.
trait Pass {
    /// Called before the inner members are visited. A returned value replaces the planned value of the member.
    fn enter(&self, member: &CompiledMember, at: &Position<'_>) -> Option<Value>;
    /// Called after the inner members have been rebuilt. Returns the new value of the member.
    fn leave(&mut self, member: &CompiledMember, at: &Position<'_>, parent: &Parent<'_>) -> Value;
}

/// Rebuilds a block's planned object from the values that a pass returns for each member, innermost first.
fn walk(members: &[CompiledMember], place: &Position<'_>, path: &Path, pass: &mut dyn Pass) -> Value {
    // Null, unknown values and other types have no members to rebuild.
    let (Some(ty), Some(_)) = (place.planned.ty().as_object(), place.planned.entries()) else {
        return place.planned.clone();
    };
    let mut values = Vec::with_capacity(members.len());
    for (member, attribute) in members.iter().zip(ty.attributes()) {
        let name = &attribute.name;
        let Some(planned) = place.planned.get(name) else {
            return place.planned.clone();
        };
        let mut at = Position {
            config: place.config.and_then(|v| v.get(name)),
            prior: place.prior.and_then(|v| v.get(name)),
            planned,
        };
        let parent = Parent {
            path,
            config: place.config,
        };
        let decided = pass.enter(member, &at);
        // A value that the pass has returned replaces the planned one. If it is unknown, there are no inner members to visit.
        at.planned = decided.as_ref().unwrap_or(at.planned);
        let inner = match member.inside() {
            Some((nesting, members)) if at.planned.is_present() => {
                walk_block(nesting, members, &at, &path.attribute(name.clone()), pass)
            }
            _ => at.planned.clone(),
        };
        at.planned = &inner;
        values.push(pass.leave(member, &at, &parent));
    }
    Value::object_of(ty, values)
}

fn walk_block(
    nesting: Nesting,
    members: &[CompiledMember],
    at: &Position<'_>,
    path: &Path,
    pass: &mut dyn Pass,
) -> Value {
    match nesting {
        Nesting::Single | Nesting::Group => return walk(members, at, path, pass),
        Nesting::Map => return walk_map(members, at, path, pass),
        Nesting::List | Nesting::Set => {}
    }
    let Some(items) = at.planned.as_seq() else {
        return at.planned.clone();
    };
    let config = at.config.and_then(Value::as_seq).unwrap_or_default();
    let prior = at.prior.and_then(Value::as_seq).unwrap_or_default();
    let pairs = match nesting {
        // Elements of a list are matched by position. Elements of a set have none, so they are matched by content.
        Nesting::Set => pair(members, items, config, prior),
        _ => (0..items.len())
            .map(|i| Pair {
                config: Some(i),
                prior: Some(i),
            })
            .collect(),
    };
    let mut out = Vec::with_capacity(items.len());
    for (i, (planned, pair)) in items.iter().zip(pairs).enumerate() {
        let place = Position {
            config: pair.config.and_then(|i| config.get(i)),
            prior: pair.prior.and_then(|i| prior.get(i)),
            planned,
        };
        let key = match nesting {
            // The key of an element of a set is the element itself. The protocol cannot express such a key, so paths in answers end before
            // it.
            Nesting::Set => planned.clone(),
            _ => Value::number(i as i64),
        };
        out.push(walk(members, &place, &path.with(Step::Index(key)), pass));
    }
    match at.planned.ty() {
        Type::Set(element) => Value::set((**element).clone(), out),
        Type::List(element) => Value::list((**element).clone(), out),
        _ => Value::tuple(out),
    }
}

fn walk_map(members: &[CompiledMember], at: &Position<'_>, path: &Path, pass: &mut dyn Pass) -> Value {
    let Some(entries) = at.planned.entries() else {
        return at.planned.clone();
    };
    let mut out = BTreeMap::new();
    for (key, planned) in entries {
        let place = Position {
            config: at.config.and_then(|c| c.get(key)),
            prior: at.prior.and_then(|p| p.get(key)),
            planned,
        };
        let path = path.with(Step::Index(Value::shared_string(key.clone())));
        out.insert(key.clone(), walk(members, &place, &path, pass));
    }
    match at.planned.ty() {
        Type::Map(element) => Value::map((**element).clone(), out),
        _ => Value::object(out),
    }
}

/// The plan in the form for [`Resource::plan`](crate::Resource::plan), which can change it.
///
/// ```
/// use monoform_sdk::schema::{computed, optional, required};
/// use monoform_sdk::{Attr, Context, Diagnostic, Plan, Resource, Result, async_trait, model};
///
/// model! {
///     pub struct Disk {
///         pub gigabytes: Attr<i64> = required(),
///         pub fast: Attr<bool> = optional(),
///         pub price: Attr<i64> = computed(),
///     }
/// }
///
/// struct Disks;
///
/// #[async_trait]
/// impl Resource for Disks {
///     type Model = Disk;
///     type Client = ();
///
///     async fn plan(&self, plan: &mut Plan<'_, Disk>, _cx: &mut Context<()>) -> Result<()> {
///         let mut planned = plan.planned()?;
///         // Users see the price before they apply.
///         if let Some(size) = planned.gigabytes.known() {
///             planned.price = (size * 2).into();
///             plan.set(&planned);
///         }
///         if let Some(prior) = plan.prior()? {
///             // A disk can grow, but not shrink.
///             if prior.gigabytes.known() > planned.gigabytes.known() {
///                 plan.replace("gigabytes");
///                 plan.diagnose(Diagnostic::warning("Disk Is Replaced", "A disk cannot become smaller."));
///             }
///         }
///         Ok(())
///     }
///
///     async fn create(&self, plan: Disk, _cx: &mut Context<()>) -> Result<Disk> {
///         Ok(plan)
///     }
/// }
/// # let _ = Disks;
/// ```
pub struct Plan<'a, M> {
    pub(crate) schema: &'a Compiled,
    pub(crate) config: &'a Value,
    pub(crate) prior: Option<&'a Value>,
    pub(crate) planned: &'a mut Planned,
    pub(crate) model: std::marker::PhantomData<M>,
}

impl<M: Model> Plan<'_, M> {
    /// Returns the configuration.
    ///
    /// # Errors
    /// A value is unknown, and the model cannot represent that. An example is the number of `dynamic` blocks that depends on another
    /// object: a `Vec` cannot represent it, an `Attr<Vec<_>>` can.
    pub fn config(&self) -> Result<M> {
        Ok(M::from_cty(self.config)?)
    }

    /// Returns the prior object; `None` if the plan creates one.
    pub fn prior(&self) -> Result<Option<M>> {
        Ok(self.prior.map(M::from_cty).transpose()?)
    }

    /// Returns the object as planned so far.
    pub fn planned(&self) -> Result<M> {
        Ok(M::from_cty(&self.planned.state)?)
    }

    /// Returns true if the plan creates an object.
    #[must_use]
    pub fn is_create(&self) -> bool {
        self.prior.is_none()
    }

    /// Replaces the planned object. Attributes that are the same as in [`Plan::planned`] keep their exact values, even those that a model
    /// cannot express, such as a list with one unknown element.
    pub fn set(&mut self, planned: &M) {
        let state = &self.planned.state;
        // Models are compared instead of values, since a model may be unable to represent the exact value.
        let before = M::from_cty(state).ok();
        let values = self.schema.object.attributes().iter().map(|a| {
            let new = planned.field(&a.name).unwrap_or_else(|| Value::null(a.ty.clone()));
            let unchanged = before
                .as_ref()
                .is_some_and(|before| before.field(&a.name).as_ref() == Some(&new));
            match state.get(&a.name) {
                Some(value) if unchanged => value.clone(),
                _ => new,
            }
        });
        self.planned.state = Value::object_of(&self.schema.object, values.collect());
    }

    /// Declares that an unknown attribute will not be null, so that comparisons with null can be evaluated before the object exists. Call
    /// this after [`Plan::set`]: an attribute that `set` changes loses the declaration.
    pub fn never_null(&mut self, attribute: &str) {
        self.planned.state = self.planned.state.map_parts(|part, value| match part {
            cty::value::Part::Attribute(name) if &**name == attribute && !value.is_known() => {
                value.clone().refine_not_null()
            }
            _ => value.clone(),
        });
    }

    /// Declares that a change of this attribute requires replacement.
    pub fn replace(&mut self, attribute: &str) {
        self.replace_at(Path::root().attribute(attribute));
    }

    /// Declares that a change at this path, such as an attribute of a nested block, requires replacement.
    pub fn replace_at(&mut self, path: Path) {
        self.planned.requires_replace.push(path);
    }

    /// Adds an error or a warning to the plan.
    pub fn diagnose(&mut self, diagnostic: Diagnostic) {
        self.planned.diagnostics.push(diagnostic);
    }

    /// Returns the configuration and the prior object as values instead of models, for resources with attributes of the dynamic type.
    #[must_use]
    pub fn values(&self) -> (&Value, Option<&Value>) {
        (self.config, self.prior)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Schema, block, computed, nested, optional, required};
    use crate::{Attr, Cty, Set, model};

    model! {
        pub struct Inner {
            pub given: Attr<String> = required(),
            pub made: Attr<String> = computed().keep(),
        }
    }

    model! {
        pub struct Outer {
            pub given: Attr<String> = optional().requires_replace(),
            pub default: Attr<i64> = optional().computed().default(7i64).requires_replace(),
            pub either: Attr<String> = optional().computed(),
            pub made: Attr<String> = computed(),
            pub kept: Attr<String> = computed().keep(),
            pub password: Attr<String> = optional().write_only(),
            pub list: Vec<Inner> = block(),
            pub set: Set<Inner> = block(),
            pub nested: Attr<Set<Inner>> = nested(optional()),
        }
    }

    fn inner(given: &str, made: Attr<String>) -> Inner {
        Inner {
            given: given.into(),
            made,
        }
    }

    fn plan(config: &Outer, prior: Option<&Outer>) -> (Outer, Vec<String>) {
        let schema = Compiled::new(Schema::of::<Outer>());
        let object = |m: &Outer| m.to_object(&schema.object);
        // The core's proposal: the configuration, with prior values for computed attributes.
        let mut proposed = config.clone();
        if let Some(prior) = prior {
            proposed.made = prior.made.clone();
            proposed.kept = prior.kept.clone();
            if proposed.either.is_null() {
                proposed.either = prior.either.clone();
            }
            if proposed.default.is_null() {
                proposed.default = prior.default.clone();
            }
            for (new, old) in proposed.list.iter_mut().zip(&prior.list) {
                new.made = old.made.clone();
            }
            let merge = |new: &mut Set<Inner>, old: &Set<Inner>| {
                for new in &mut new.0 {
                    let old = old.0.iter().find(|old| old.given == new.given);
                    new.made = old.map(|old| old.made.clone()).unwrap_or_default();
                }
            };
            merge(&mut proposed.set, &prior.set);
            if let (Attr::Known(new), Attr::Known(old)) = (&mut proposed.nested, &prior.nested) {
                merge(new, old);
            }
        }
        let prior = prior.map(object);
        let planned = construct(&schema, &object(config), prior.as_ref(), &object(&proposed));
        let paths = planned.requires_replace.iter().map(ToString::to_string).collect();
        (Outer::from_cty(&planned.state).unwrap(), paths)
    }

    fn config() -> Outer {
        Outer {
            given: "a".into(),
            password: "secret".into(),
            list: vec![inner("x", Attr::Null)],
            set: Set(vec![inner("y", Attr::Null)]),
            nested: Set(vec![inner("v", Attr::Null), inner("w", Attr::Null)]).into(),
            ..Outer::default()
        }
    }

    fn state() -> Outer {
        Outer {
            password: Attr::Null,
            default: 7.into(),
            either: "e".into(),
            made: "m".into(),
            kept: "k".into(),
            list: vec![inner("x", "1".into())],
            set: Set(vec![inner("y", "2".into())]),
            nested: Set(vec![inner("v", "3".into()), inner("w", "4".into())]).into(),
            ..config()
        }
    }

    #[test]
    fn a_new_object_has_defaults_and_unknowns() {
        let (planned, replace) = plan(&config(), None);
        let unknown = || Attr::Unknown;
        let expected = Outer {
            default: 7.into(),
            either: unknown(),
            made: unknown(),
            kept: unknown(),
            password: Attr::Null,
            list: vec![inner("x", unknown())],
            set: Set(vec![inner("y", unknown())]),
            nested: Set(vec![inner("v", unknown()), inner("w", unknown())]).into(),
            ..config()
        };
        assert_eq!((planned, replace), (expected, vec![]));
    }

    #[test]
    fn without_a_change_everything_stays() {
        assert_eq!(plan(&config(), Some(&state())), (state(), vec![]));
    }

    #[test]
    fn a_change_makes_open_what_is_not_kept() {
        let changed = Outer {
            given: "b".into(),
            ..config()
        };
        let (planned, replace) = plan(&changed, Some(&state()));
        let expected = Outer {
            given: "b".into(),
            either: Attr::Unknown,
            made: Attr::Unknown,
            ..state()
        };
        assert_eq!((planned, replace), (expected, vec![".given".to_owned()]));
    }

    #[test]
    fn a_changed_object_of_a_set_leaves_the_others_as_they_are() {
        let changed = Outer {
            set: Set(vec![inner("y", Attr::Null), inner("z", Attr::Null)]),
            nested: Set(vec![inner("w", Attr::Null), inner("x", Attr::Null)]).into(),
            ..config()
        };
        let (planned, _) = plan(&changed, Some(&state()));
        let set = Set(vec![inner("y", "2".into()), inner("z", Attr::Unknown)]);
        let nested = Set(vec![inner("w", "4".into()), inner("x", Attr::Unknown)]);
        assert_eq!((planned.set, planned.nested), (set, nested.into()));
    }

    model! {
        pub struct Conditions {
            pub other: Attr<String> = optional(),
            pub size: Attr<i64> = optional().requires_replace_if(|size| size.planned.is_null()),
            pub zone: Attr<String> = optional().computed().requires_replace_if_configured(),
            pub late: Attr<String> = computed().keep_non_null(),
        }
    }

    fn conditions(config: &Conditions, prior: &Conditions) -> (Conditions, Vec<String>) {
        let schema = Compiled::new(Schema::of::<Conditions>());
        let proposed = Conditions {
            zone: if config.zone.is_null() {
                prior.zone.clone()
            } else {
                config.zone.clone()
            },
            late: prior.late.clone(),
            ..config.clone()
        };
        let object = |m: &Conditions| m.to_object(&schema.object);
        let planned = construct(&schema, &object(config), Some(&object(prior)), &object(&proposed));
        let paths = planned.requires_replace.iter().map(ToString::to_string).collect();
        (Conditions::from_cty(&planned.state).unwrap(), paths)
    }

    #[test]
    fn replacement_and_results_depend_on_conditions() {
        let prior = Conditions {
            size: 2.into(),
            zone: "a".into(),
            late: "l".into(),
            ..Conditions::default()
        };
        let other = Conditions {
            other: "o".into(),
            size: 3.into(),
            ..Conditions::default()
        };
        let (planned, replace) = conditions(&other, &prior);
        assert!(
            planned.zone.is_unknown(),
            "a result that may change is no reason to replace"
        );
        assert_eq!((planned.late, replace), ("l".into(), vec![]));

        let moved = Conditions {
            size: Attr::Null,
            zone: "b".into(),
            ..other.clone()
        };
        assert_eq!(conditions(&moved, &prior).1, [".size", ".zone"]);
        let without = Conditions {
            late: Attr::Null,
            ..prior
        };
        let (planned, _) = conditions(&other, &without);
        assert!(planned.late.is_unknown(), "what was null may become a value");
    }

    #[test]
    fn a_default_that_returns_is_a_change() {
        let prior = Outer {
            default: 9.into(),
            ..state()
        };
        let (planned, replace) = plan(&config(), Some(&prior));
        assert_eq!((planned.default, replace), (7.into(), vec![".default".to_owned()]));
    }
}
