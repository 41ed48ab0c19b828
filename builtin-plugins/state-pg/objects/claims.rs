//! Claims of a run on parts of a state, and the decision which run may begin.
//!
//! A run changes some objects and outputs, and depends on others. It makes one request, with all its claims, after its plan was approved
//! and before it changes anything. Requests on a state are numbered. A request waits for every conflicting request with a lower number,
//! whether that is granted or waiting. No request waits for a higher number, so there are no deadlocks. No request is overtaken by a
//! conflicting one, so there is no starvation.
//!
//! Each claim is on a key, in one of three modes. Two claims on one key are compatible only if both are shared or both are within:
//!
//! | mode | key | meaning |
//! | --- | --- | --- |
//! | exclusive | an object, an output, the whole state | it is changed |
//! | within | a resource, the whole state | something in it is changed |
//! | shared | a resource | something else depends on it, including instances that do not exist yet |
//!
//! The unit of dependencies is the resource, as in the configuration. In modules with several instances, a resource has a key for each
//! depth at which the instance may be fixed: a dependency inside a module instance claims that instance, and one that leads through
//! an outer module claims the resource in all instances of the inner ones.
//!
//! A run without locks (`-lock=false`) makes a request without claims. It waits for nobody, and others can tell from the request that
//! the run is alive. Its writes compare each object with the one that it has read.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::document::Key;
use super::json::Json;

/// Key of the whole state.
const WHOLE: &str = "";

/// Mode of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mode {
    Exclusive,
    Shared,
    Within,
}

impl Mode {
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Exclusive => "exclusive",
            Mode::Shared => "shared",
            Mode::Within => "within",
        }
    }

    /// Reads the result of [`Mode::as_str`].
    pub fn parse(text: &str) -> Mode {
        match text {
            "shared" => Mode::Shared,
            "within" => Mode::Within,
            _ => Mode::Exclusive,
        }
    }

    pub fn conflicts_with(self, other: Mode) -> bool {
        self == Mode::Exclusive || self != other
    }
}

/// Claims of two requests on the same key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overlap {
    pub own: Mode,
    /// Number of the other request.
    pub request: i32,
    pub other: Mode,
}

/// Returns the index of the overlap for which the request `own` must wait: of the conflicts with requests of lower numbers, that with the
/// lowest number. `None` if there is no such conflict.
pub(super) fn blocker(own: i32, overlaps: &[Overlap]) -> Option<usize> {
    let conflicts = |overlap: &Overlap| overlap.request < own && overlap.own.conflicts_with(overlap.other);
    let found = overlaps.iter().enumerate().filter(|(_, overlap)| conflicts(overlap));
    found.min_by_key(|(_, overlap)| overlap.request).map(|(at, _)| at)
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Claim {
    pub key: String,
    pub mode: Mode,
    /// Address of the claimed resource, instance or output, for messages; empty for the whole state.
    pub address: String,
}

fn key_of(parts: &[&str]) -> String {
    let texts: Vec<String> = parts.iter().map(|part| Json::string(part).into_text()).collect();
    store_client::sum::sha256_hex(format!("[{}]", texts.join(",")).as_bytes())
}

/// Returns the claim key of a resource instance. Deposed objects have the key of their instance.
pub(super) fn object_key(key: &Key) -> String {
    key_of(&["object", &key.module, &key.mode, &key.ty, &key.name, &key.instance])
}

pub(super) fn output_key(name: &str) -> String {
    key_of(&["output", name])
}

/// Parts of an instance's address, as in the text of a state.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Instance {
    module: String,
    mode: String,
    #[serde(rename = "type")]
    ty: String,
    name: String,
    instance_key: String,
}

impl Instance {
    /// Returns the key of the current object of the instance.
    pub fn key(self) -> Key {
        Key {
            module: self.module,
            mode: self.mode,
            ty: self.ty,
            name: self.name,
            instance: self.instance_key,
            deposed: String::new(),
        }
    }
}

/// A resource in all instances below one module instance: the address of that module instance, and the path of the resource's module.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Resource {
    instance: String,
    module: String,
    mode: String,
    #[serde(rename = "type")]
    ty: String,
    name: String,
}

impl Resource {
    fn claim(&self, mode: Mode) -> Claim {
        let key = key_of(&[
            "resource",
            &self.instance,
            &self.module,
            &self.mode,
            &self.ty,
            &self.name,
        ]);
        let of_resource = Key {
            module: self.module.clone(),
            mode: self.mode.clone(),
            ty: self.ty.clone(),
            name: self.name.clone(),
            instance: String::new(),
            deposed: String::new(),
        };
        Claim {
            key,
            mode,
            address: of_resource.address(),
        }
    }
}

fn yes() -> bool {
    true
}

/// Request for locks, as `proto::STATE_REQUEST` describes it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Wanted {
    /// ID that the lock will have.
    pub lock: String,
    /// False for a run without locks (`-lock=false`): other runs may change the same objects.
    #[serde(default = "yes")]
    locked: bool,
    objects: Vec<Instance>,
    outputs: Vec<String>,
    within: Vec<Resource>,
    shared: Vec<Resource>,
}

/// Claims of a request.
#[derive(Clone, Debug, Default)]
pub(super) struct Claims {
    pub list: Vec<Claim>,
    /// Keys of the subjects that the run changes.
    exclusive: BTreeSet<String>,
    /// Set for a run without locks: `list` is empty.
    is_unlocked: bool,
}

impl Claims {
    /// Returns the claim on the whole state.
    pub fn whole() -> Claims {
        Claims::new(BTreeSet::from([Claim {
            key: WHOLE.to_owned(),
            mode: Mode::Exclusive,
            address: String::new(),
        }]))
    }

    fn new(list: BTreeSet<Claim>) -> Claims {
        let exclusive = list.iter().filter(|claim| claim.mode == Mode::Exclusive);
        Claims {
            exclusive: exclusive.map(|claim| claim.key.clone()).collect(),
            list: list.into_iter().collect(),
            is_unlocked: false,
        }
    }

    /// Returns true if others can change the subject with this key, which the run changes, too.
    pub fn is_optimistic(&self, key: &str) -> bool {
        self.is_unlocked && self.exclusive.contains(key)
    }

    /// Returns true if everything is claimed.
    pub fn is_whole(&self) -> bool {
        self.exclusive.contains(WHOLE)
    }

    /// Returns true if the request has the object or output with this key exclusively.
    pub fn covers(&self, key: &str) -> bool {
        !self.is_unlocked && (self.is_whole() || self.exclusive.contains(key))
    }
}

impl From<Wanted> for Claims {
    fn from(wanted: Wanted) -> Claims {
        let mut list = BTreeSet::from([Claim {
            key: WHOLE.to_owned(),
            mode: Mode::Within,
            address: String::new(),
        }]);
        list.extend(wanted.objects.into_iter().map(|instance| {
            let key = instance.key();
            Claim {
                key: object_key(&key),
                mode: Mode::Exclusive,
                address: key.address(),
            }
        }));
        list.extend(wanted.outputs.iter().map(|name| Claim {
            key: output_key(name),
            mode: Mode::Exclusive,
            address: format!("output.{name}"),
        }));
        list.extend(wanted.within.iter().map(|resource| resource.claim(Mode::Within)));
        list.extend(wanted.shared.iter().map(|resource| resource.claim(Mode::Shared)));
        let claims = Claims::new(list);
        match wanted.locked {
            true => claims,
            false => Claims {
                list: Vec::new(),
                is_unlocked: true,
                ..claims
            },
        }
    }
}
