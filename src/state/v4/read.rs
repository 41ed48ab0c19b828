//! Parser: text → state.

use std::borrow::Cow;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use addrs::{AbsProviderConfig, AbsResource, ConfigResource, InstanceKey, Mode, ModuleInstance, Resource};
use base64::Engine as _;
use cty::{Path, Step, Type, Value};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::shared::SharedMap;
use crate::syntax::parse;
use crate::{
    Attributes, CheckResult, CheckStatus, CheckedObject, ContentError, DeposedKey, FormatError, Identity,
    InstanceState, Object, ObjectStatus, OutputValue, RawJson, ResourceState, State,
};

#[derive(Deserialize)]
struct FileV4<'a> {
    #[serde(borrow, default)]
    version: Option<&'a RawValue>,
    #[serde(default)]
    terraform_version: Option<String>,
    #[serde(default)]
    serial: Option<u64>,
    #[serde(default)]
    lineage: Option<String>,
    #[serde(borrow, default)]
    outputs: Option<BTreeMap<Cow<'a, str>, OutputV4<'a>>>,
    #[serde(borrow, default)]
    resources: Option<Vec<ResourceV4<'a>>>,
    #[serde(borrow, default)]
    check_results: Option<Vec<CheckV4<'a>>>,
}

#[derive(Deserialize)]
struct OutputV4<'a> {
    #[serde(borrow, default)]
    value: Option<&'a RawValue>,
    #[serde(borrow, rename = "type", default)]
    ty: Option<&'a RawValue>,
    #[serde(default)]
    sensitive: Option<bool>,
}

#[derive(Deserialize)]
struct ResourceV4<'a> {
    #[serde(borrow, default)]
    module: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    mode: Cow<'a, str>,
    #[serde(borrow, rename = "type", default)]
    ty: Cow<'a, str>,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    provider: Cow<'a, str>,
    #[serde(borrow, default)]
    instances: Option<Vec<InstanceV4<'a>>>,
}

#[derive(Deserialize)]
struct InstanceV4<'a> {
    #[serde(borrow, default)]
    index_key: Option<&'a RawValue>,
    #[serde(borrow, default)]
    status: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    deposed: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    provider: Option<Cow<'a, str>>,
    #[serde(default)]
    schema_version: Option<u64>,
    #[serde(borrow, default, deserialize_with = "even_null")]
    attributes: Option<&'a RawValue>,
    #[serde(default)]
    attributes_flat: Option<BTreeMap<String, String>>,
    #[serde(borrow, default)]
    sensitive_attributes: Option<Vec<Vec<StepV4<'a>>>>,
    #[serde(default)]
    identity_schema_version: Option<u64>,
    #[serde(borrow, default)]
    identity: Option<&'a RawValue>,
    #[serde(borrow, default)]
    private: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    dependencies: Option<Vec<Text<'a>>>,
    #[serde(default)]
    create_before_destroy: Option<bool>,
    #[serde(default)]
    skip_destroy: Option<bool>,
    #[serde(default)]
    destroy_provisioners: Option<Vec<String>>,
}

/// Distinguishes an explicit null from a missing property.
fn even_null<'de: 'a, 'a, D: serde::Deserializer<'de>>(from: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// Text that is borrowed from the input where possible, even inside lists. Serde would always copy a plain `Cow` there.
#[derive(Deserialize, PartialEq)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize)]
struct StepV4<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    value: &'a RawValue,
}

#[derive(Deserialize)]
struct CheckV4<'a> {
    #[serde(borrow, default)]
    object_kind: Cow<'a, str>,
    #[serde(borrow, default)]
    config_addr: Cow<'a, str>,
    #[serde(borrow, default)]
    status: Cow<'a, str>,
    #[serde(borrow, default)]
    objects: Option<Vec<CheckedObjectV4<'a>>>,
}

#[derive(Deserialize)]
struct CheckedObjectV4<'a> {
    #[serde(borrow, default)]
    object_addr: Cow<'a, str>,
    #[serde(borrow, default)]
    status: Cow<'a, str>,
    #[serde(default)]
    failure_messages: Option<Vec<String>>,
}

/// Reads a state; `None` if the text is well-formed but has another version.
pub(crate) fn read(text: &str) -> Result<Option<State>, FormatError> {
    let file: FileV4 = parse(text)?;
    if file.version.is_none_or(|v| v.get() != "4") {
        return Ok(None);
    }
    let mut state = State {
        terraform_version: file.terraform_version.unwrap_or_default(),
        serial: file.serial.unwrap_or_default(),
        lineage: file.lineage.unwrap_or_default(),
        ..State::default()
    };
    for (name, output) in file.outputs.unwrap_or_default() {
        let value = output_value(&output).map_err(|error| content(format!("output \"{name}\""), error))?;
        state.outputs.insert(
            name.into(),
            OutputValue {
                value,
                sensitive: output.sensitive.unwrap_or_default(),
            },
        );
    }
    let mut shared = Shared::default();
    for resource in file.resources.unwrap_or_default() {
        read_resource(resource, &mut shared, &mut state)?;
    }
    state.check_results = file
        .check_results
        .map(|c| c.into_iter().map(check).collect())
        .filter(|c: &Arc<[_]>| !c.is_empty());
    Ok(Some(state))
}

fn content(place: impl Into<String>, error: ContentError) -> FormatError {
    FormatError::Content {
        place: place.into(),
        error,
    }
}

fn output_value(output: &OutputV4) -> Result<Value, ContentError> {
    let ty = output.ty.ok_or(ContentError::NoType)?;
    let ty: serde_json::Value =
        serde_json::from_str(ty.get()).map_err(|e| ContentError::Type(files::json_reason(e)))?;
    let ty = cty::json::type_from_json(&ty).map_err(|e| ContentError::Type(e.to_string()))?;
    let Some(value) = output.value else {
        return Ok(Value::null(ty));
    };
    let value = serde_json::from_str(value.get()).map_err(|e| ContentError::Value(files::json_reason(e)))?;
    cty::json::from_json(&value, &ty).map_err(|e| ContentError::TypeMismatch(e.to_string()))
}

/// Values that many instances share. They are parsed once, and shared in memory.
#[derive(Default)]
struct Shared<'a> {
    dependencies: HashMap<String, ConfigResource>,
    last_list: Option<(Vec<Text<'a>>, Arc<[ConfigResource]>)>,
    last_module: Option<(String, ModuleInstance)>,
}

fn read_resource<'a>(resource: ResourceV4<'a>, shared: &mut Shared<'a>, state: &mut State) -> Result<(), FormatError> {
    let module_text = resource.module.as_deref().unwrap_or_default();
    let named = || {
        let dot = if module_text.is_empty() { "" } else { "." };
        format!("{module_text}{dot}{}.{}", resource.ty, resource.name)
    };
    // Files are sorted by module, so consecutive resources share the parsed module address.
    let module = match &shared.last_module {
        Some((text, module)) if text == module_text => module.clone(),
        _ => {
            let module = addrs::parse::module_instance(module_text)
                .map_err(|e| content(named(), ContentError::Module(e.detail)))?;
            shared.last_module = Some((module_text.to_owned(), module.clone()));
            module
        }
    };
    let mode = match &*resource.mode {
        "managed" => Mode::Managed,
        "data" => Mode::Data,
        other => return Err(content(named(), ContentError::Mode(other.to_owned()))),
    };
    for name in [&resource.ty, &resource.name] {
        if !addrs::parse::is_identifier(name) {
            return Err(content(named(), ContentError::Name(name.to_string())));
        }
    }
    let address = AbsResource {
        module,
        resource: Resource {
            mode,
            ty: (&*resource.ty).into(),
            name: (&*resource.name).into(),
        },
    };
    let provider = of_resource(&resource).map_err(|error| content(address.to_string(), error))?;
    let block = provider.clone();
    let instances = match state.resources.entry(address.clone()) {
        Entry::Vacant(entry) => {
            &mut entry
                .insert(ResourceState {
                    provider,
                    instances: SharedMap::default(),
                })
                .instances
        }
        Entry::Occupied(entry) => {
            let existing = entry.into_mut();
            existing.provider = provider;
            &mut existing.instances
        }
    };
    for instance in resource.instances.unwrap_or_default() {
        let key = instance_key(instance.index_key).map_err(|error| content(address.to_string(), error))?;
        let place = |error| content(address.instance(key.clone()).to_string(), error);
        if let Some(text) = &instance.provider {
            let of_instance = addrs::parse::provider_config(text).map_err(|e| place(e.into()))?;
            if of_instance.block() != block {
                return Err(place(ContentError::ProviderConflict {
                    address: of_instance.to_string(),
                    other: block.to_string(),
                }));
            }
            instances.entry(key.clone()).or_default().provider_key = of_instance.key.clone();
        }
        add_object(instance, instances.entry(key.clone()).or_default(), shared).map_err(place)?;
    }
    Ok(())
}

/// Returns the provider configuration of a resource, without its key. If the block has `for_each`, OpenTofu writes the configuration only
/// in the objects, with a key.
fn of_resource(resource: &ResourceV4<'_>) -> Result<AbsProviderConfig, ContentError> {
    let objects = resource.instances.iter().flatten();
    let text = match &*resource.provider {
        "" => objects.filter_map(|object| object.provider.as_deref()).next(),
        text => Some(text),
    };
    let Some(text) = text else {
        return Err(ContentError::NoProvider);
    };
    Ok(addrs::parse::provider_config(text)?.block())
}

/// Adds an object to its instance.
fn add_object<'a>(read: InstanceV4<'a>, slot: &mut InstanceState, shared: &mut Shared<'a>) -> Result<(), ContentError> {
    let deposed = read.deposed.as_deref().filter(|d| !d.is_empty()).map(str::to_owned);
    let object = Arc::new(read_object(read, shared)?);
    // Like Terraform, refuses deposed keys whose length is not eight.
    let previous = match deposed {
        None => slot.current.replace(object),
        Some(deposed) if deposed.len() == 8 => slot.deposed.insert(DeposedKey(deposed.into()), object),
        Some(deposed) => return Err(ContentError::DeposedKey(deposed)),
    };
    match previous {
        None => Ok(()),
        Some(_) => Err(ContentError::Duplicate),
    }
}

/// Parses the list of an instance's objects.
pub(crate) fn read_objects(text: &str) -> Result<InstanceState, ContentError> {
    let list: Vec<InstanceV4> = serde_json::from_str(text).map_err(|e| ContentError::Json(files::json_reason(e)))?;
    let (mut instance, mut shared) = (InstanceState::default(), Shared::default());
    for object in list {
        add_object(object, &mut instance, &mut shared)?;
    }
    Ok(instance)
}

fn instance_key(raw: Option<&RawValue>) -> Result<InstanceKey, ContentError> {
    let Some(text) = raw.map(RawValue::get) else {
        return Ok(InstanceKey::None);
    };
    if let Ok(index) = text.parse::<u64>() {
        return Ok(InstanceKey::Int(index));
    }
    match serde_json::from_str(text) {
        Ok(serde_json::Value::String(key)) => Ok(InstanceKey::String(key.into())),
        // Other programs may write whole numbers with a fraction, as in `1.0`.
        Ok(serde_json::Value::Number(n)) => match n.as_f64() {
            // Above 2^53 (9.007e15), a float cannot represent every whole number.
            Some(index) if index >= 0.0 && index.fract() == 0.0 && index < 9e15 => Ok(InstanceKey::Int(index as u64)),
            _ => Err(ContentError::FractionalKey(text.to_owned())),
        },
        _ => Err(ContentError::InstanceKey(text.to_owned())),
    }
}

fn read_object<'a>(instance: InstanceV4<'a>, shared: &mut Shared<'a>) -> Result<Object, ContentError> {
    let status = match instance.status.as_deref() {
        None | Some("") => ObjectStatus::Ready,
        Some("tainted") => ObjectStatus::Tainted,
        Some(other) => return Err(ContentError::Status(other.to_owned())),
    };
    // In a state upgraded from an old version, attributes are in the flat form until a provider has read the object.
    let attributes = match (instance.attributes_flat, instance.attributes) {
        (Some(flat), _) => Attributes::Flat(Arc::new(flat)),
        (None, Some(raw)) => Attributes::Json(RawJson::compact(raw.get()).ok_or(ContentError::TooDeep)?),
        (None, None) => Attributes::Json(RawJson::compact("{}").ok_or(ContentError::TooDeep)?),
    };
    let mut sensitive_paths = Vec::new();
    for path in instance.sensitive_attributes.unwrap_or_default() {
        sensitive_paths.push(Path(path.iter().map(step).collect::<Result<_, _>>()?));
    }
    let private = match instance.private {
        None => Vec::new(),
        Some(text) => base64::engine::general_purpose::STANDARD.decode(text.as_bytes())?,
    };
    let identity = match (instance.identity_schema_version, instance.identity) {
        (None | Some(0), None) => None,
        (version, value) => Some(Identity {
            schema_version: version.unwrap_or_default(),
            value: value
                .map(|v| RawJson::compact(v.get()).ok_or(ContentError::TooDeep))
                .transpose()?,
        }),
    };
    Ok(Object {
        status,
        schema_version: instance.schema_version.unwrap_or_default(),
        attributes,
        sensitive_paths,
        private,
        dependencies: dependencies(instance.dependencies.unwrap_or_default(), shared)?,
        create_before_destroy: instance.create_before_destroy.unwrap_or_default(),
        skip_destroy: instance.skip_destroy.unwrap_or_default(),
        destroy_provisioners: match instance.destroy_provisioners {
            Some(types) => types.into_iter().map(Arc::from).collect(),
            None => Arc::default(),
        },
        identity,
    })
}

fn dependencies<'a>(list: Vec<Text<'a>>, shared: &mut Shared<'a>) -> Result<Arc<[ConfigResource]>, ContentError> {
    // The instances of a resource mostly have the same dependencies, so the list is parsed once and shared in memory.
    if let Some((last, addresses)) = &shared.last_list
        && *last == list
    {
        return Ok(addresses.clone());
    }
    let mut addresses = Vec::with_capacity(list.len());
    for Text(text) in &list {
        let address = match shared.dependencies.get(&**text) {
            Some(address) => address.clone(),
            None => {
                let address = addrs::parse::config_resource(text).map_err(|e| ContentError::Dependency {
                    address: text.clone().into_owned(),
                    reason: e.detail,
                })?;
                shared.dependencies.insert(text.clone().into_owned(), address.clone());
                address
            }
        };
        addresses.push(address);
    }
    let addresses: Arc<[ConfigResource]> = addresses.into();
    shared.last_list = Some((list, addresses.clone()));
    Ok(addresses)
}

fn step(step: &StepV4) -> Result<Step, ContentError> {
    let bad = ContentError::SensitivePath;
    match &*step.kind {
        "get_attr" => {
            let name: Cow<str> = serde_json::from_str(step.value.get()).map_err(|e| bad(files::json_reason(e)))?;
            Ok(Step::Attribute(name.into()))
        }
        "index" => {
            let json = serde_json::from_str(step.value.get()).map_err(|e| bad(files::json_reason(e)))?;
            let key = cty::json::from_json(&json, &Type::Dynamic).map_err(|e| bad(e.to_string()))?;
            Ok(Step::Index(key))
        }
        other => Err(bad(format!("\"{other}\" is not a kind of step"))),
    }
}

fn check(check: CheckV4) -> CheckResult {
    let objects = check
        .objects
        .unwrap_or_default()
        .into_iter()
        .map(|object| CheckedObject {
            object_addr: object.object_addr.into(),
            status: status(&object.status),
            failure_messages: object
                .failure_messages
                .unwrap_or_default()
                .into_iter()
                .map(Arc::from)
                .collect(),
        });
    CheckResult {
        object_kind: check.object_kind.into(),
        config_addr: check.config_addr.into(),
        status: status(&check.status),
        objects: objects.collect(),
    }
}

/// Parses the status of a check. Results are only displayed, so an unknown status is not an error.
fn status(text: &str) -> CheckStatus {
    match text {
        "pass" => CheckStatus::Pass,
        "fail" => CheckStatus::Fail,
        "error" => CheckStatus::Error,
        _ => CheckStatus::Unknown,
    }
}
