//! Writer: state → text.

use addrs::{AbsProviderConfig, AbsResource, AbsResourceInstance, InstanceKey, Mode};
use base64::Engine as _;
use cty::msgpack::CodecError;
use cty::{Kind, Path, Step, Type};

use crate::attributes::{indent, line};
use crate::{
    Attributes, CheckResult, DeposedKey, Identity, InstanceState, Object, ObjectStatus, OutputValue, RawJson,
    ResourceState, State, StateError,
};

/// Encodes a state.
pub(crate) fn write(state: &State) -> Result<Vec<u8>, StateError> {
    let mut out = Vec::with_capacity(expected_length(state));
    write_to(state, &mut out, &mut |_| ())?;
    Ok(out)
}

/// Size in bytes at which a part of the text is passed on.
const PART: usize = 64 << 10;

/// Encodes a state, and passes on the text in parts of about [`PART`] bytes.
pub(crate) fn write_in_parts(state: &State, part: &mut dyn FnMut(&[u8])) -> Result<(), StateError> {
    let mut out = Vec::with_capacity(2 * PART);
    write_to(state, &mut out, &mut |out| {
        if out.len() >= PART {
            part(out);
            out.clear();
        }
    })?;
    part(&out);
    Ok(())
}

/// Appends the text of a state to `out`. `written` is called after each object, and may pass the text on and clear `out`.
fn write_to(state: &State, out: &mut Vec<u8>, written: &mut dyn FnMut(&mut Vec<u8>)) -> Result<(), StateError> {
    out.extend_from_slice(b"{\n  \"version\": 4,\n  \"terraform_version\": ");
    json_string(&state.terraform_version, out);
    out.extend_from_slice(format!(",\n  \"serial\": {},\n  \"lineage\": ", state.serial).as_bytes());
    json_string(&state.lineage, out);

    out.extend_from_slice(b",\n  \"outputs\": ");
    // Objects are written in compact form first, and `indent` then breaks the lines, so that the code that writes fields need not know its
    // depth.
    let mut scratch = Vec::new();
    scratch.push(b'{');
    for (name, output) in &state.outputs {
        separate(&mut scratch);
        json_string(name, &mut scratch);
        scratch.push(b':');
        write_output(name, output, &mut scratch)?;
    }
    scratch.push(b'}');
    indent(&scratch, 1, out);

    out.extend_from_slice(b",\n  \"resources\": ");
    write_resources(state, out, written)?;

    out.extend_from_slice(b",\n  \"check_results\": ");
    scratch.clear();
    write_checks(state.check_results.as_deref(), &mut scratch);
    indent(&scratch, 1, out);
    out.extend_from_slice(b"\n}\n");
    Ok(())
}

/// Returns the approximate size of a state's text in bytes. The text of a large state is the largest allocation of an apply, and a buffer
/// that has to grow takes half as much again or more.
fn expected_length(state: &State) -> usize {
    let attributes = |object: &Object| match &object.attributes {
        // The factor accounts for line breaks and indentation.
        Attributes::Json(json) => json.as_str().len() * 3 / 2,
        Attributes::Flat(flat) => flat.iter().map(|(name, value)| name.len() + value.len() + 24).sum(),
    };
    let instances = state
        .resources
        .values()
        .flat_map(|resource| resource.instances.values());
    let objects = instances.flat_map(|instance| instance.current.iter().chain(instance.deposed.values()));
    let lengths = objects.map(|object| {
        // 320 bytes account for the field names of an object. Private data is in base64.
        attributes(object) + object.private.len() * 4 / 3 + object.dependencies.len() * 48 + 320
    });
    1024 + lengths.sum::<usize>()
}

fn write_output(name: &str, output: &OutputValue, out: &mut Vec<u8>) -> Result<(), StateError> {
    let ty = output.value.ty();
    let value = cty::json::to_json_text(&output.value, ty).map_err(|e| StateError::Value {
        what: format!("The output \"{name}\""),
        message: e.to_string(),
    })?;
    out.extend_from_slice(b"{\"value\":");
    out.extend_from_slice(value.as_bytes());
    out.extend_from_slice(b",\"type\":");
    json_value(&cty::json::type_to_json(ty), out);
    if output.sensitive {
        out.extend_from_slice(b",\"sensitive\":true");
    }
    out.push(b'}');
    Ok(())
}

fn write_resources(state: &State, out: &mut Vec<u8>, written: &mut dyn FnMut(&mut Vec<u8>)) -> Result<(), StateError> {
    let mut scratch = Vec::new();
    // The file is sorted by text, so that `m[10]` comes before `m[2]`, but the map in memory is sorted by the key's number.
    let mut resources: Vec<(String, &AbsResource, &ResourceState)> = state
        .resources
        .iter()
        .map(|(address, resource)| (address.module.to_string(), address, resource))
        .collect();
    resources.sort_by(|(a_module, a, _), (b_module, b, _)| {
        let key = |r: &AbsResource| r.resource.mode.as_str();
        a_module
            .cmp(b_module)
            .then_with(|| key(a).cmp(key(b)))
            .then_with(|| a.resource.ty.cmp(&b.resource.ty))
            .then_with(|| a.resource.name.cmp(&b.resource.name))
    });
    out.push(b'[');
    let mut first = true;
    for (module, address, resource) in resources {
        // Ephemeral resources and list blocks are never stored.
        if matches!(address.resource.mode, Mode::Ephemeral | Mode::List) {
            continue;
        }
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        line(2, out);
        out.push(b'{');
        if !module.is_empty() {
            field("module", &module, out);
        }
        field("mode", address.resource.mode.as_str(), out);
        field("type", &address.resource.ty, out);
        field("name", &address.resource.name, out);
        // Like OpenTofu, writes the provider configuration at the resource, or at each object if one of them has a provider key.
        let keyed = resource.instances.values().any(|i| i.provider_key.is_some());
        if !keyed {
            field("provider", &resource.provider.to_string(), out);
        }
        line(3, out);
        out.extend_from_slice(b"\"instances\": [");
        let mut any = false;
        for (key, instance) in &resource.instances {
            let provider = keyed.then(|| resource.provider_of(key));
            let current = instance.current.iter().map(|object| (None, object));
            let deposed = instance.deposed.iter().map(|(key, object)| (Some(key), object));
            for (deposed, object) in current.chain(deposed) {
                if std::mem::replace(&mut any, true) {
                    out.push(b',');
                }
                line(4, out);
                scratch.clear();
                let place = Place {
                    key,
                    deposed,
                    provider: provider.as_ref(),
                };
                write_object(address, &place, object, &mut scratch)?;
                indent(&scratch, 4, out);
                written(out);
            }
        }
        if any {
            line(3, out);
        }
        out.push(b']');
        line(2, out);
        out.push(b'}');
    }
    if !first {
        line(1, out);
    }
    out.push(b']');
    Ok(())
}

/// Writes the objects of one instance in compact form, as a list.
pub(crate) fn write_objects(
    address: &AbsResourceInstance,
    instance: &InstanceState,
    out: &mut Vec<u8>,
) -> Result<(), StateError> {
    let resource = address.containing_resource();
    let current = instance.current.iter().map(|object| (None, object));
    let deposed = instance.deposed.iter().map(|(key, object)| (Some(key), object));
    out.push(b'[');
    for (i, (deposed, object)) in current.chain(deposed).enumerate() {
        if i > 0 {
            out.push(b',');
        }
        // The caller writes the address of the instance, which includes the key, and the provider.
        let place = Place {
            key: &InstanceKey::None,
            deposed,
            provider: None,
        };
        write_object(&resource, &place, object, out)?;
    }
    out.push(b']');
    Ok(())
}

/// Writes a string field of a resource on a line of its own.
fn field(name: &str, value: &str, out: &mut Vec<u8>) {
    line(3, out);
    json_string(name, out);
    out.extend_from_slice(b": ");
    json_string(value, out);
    out.push(b',');
}

/// The fields that identify an object in its resource.
struct Place<'a> {
    key: &'a InstanceKey,
    deposed: Option<&'a DeposedKey>,
    /// Provider configuration, if it is written at the object and not at the resource.
    provider: Option<&'a AbsProviderConfig>,
}

/// Writes an object in compact form.
fn write_object(
    address: &AbsResource,
    place: &Place<'_>,
    object: &Object,
    out: &mut Vec<u8>,
) -> Result<(), StateError> {
    out.push(b'{');
    match place.key {
        InstanceKey::None => {}
        InstanceKey::Int(index) => out.extend_from_slice(format!("\"index_key\":{index},").as_bytes()),
        InstanceKey::String(key) => {
            out.extend_from_slice(b"\"index_key\":");
            json_string(key, out);
            out.push(b',');
        }
    }
    if object.status == ObjectStatus::Tainted {
        out.extend_from_slice(b"\"status\":\"tainted\",");
    }
    if let Some(deposed) = place.deposed {
        out.extend_from_slice(b"\"deposed\":");
        json_string(&deposed.0, out);
        out.push(b',');
    }
    if let Some(provider) = place.provider {
        out.extend_from_slice(b"\"provider\":");
        json_string(&provider.to_string(), out);
        out.push(b',');
    }
    out.extend_from_slice(format!("\"schema_version\":{},", object.schema_version).as_bytes());
    match &object.attributes {
        Attributes::Json(json) => {
            out.extend_from_slice(b"\"attributes\":");
            out.extend_from_slice(json.as_str().as_bytes());
        }
        Attributes::Flat(flat) => {
            out.extend_from_slice(b"\"attributes_flat\":{");
            for (name, value) in flat.iter() {
                separate(out);
                json_string(name, out);
                out.push(b':');
                json_string(value, out);
            }
            out.push(b'}');
        }
    }
    out.extend_from_slice(b",\"sensitive_attributes\":[");
    for path in &object.sensitive_paths {
        separate(out);
        write_path(path, out).map_err(|error| StateError::Value {
            what: format!("A sensitive path of {}", address.instance(place.key.clone())),
            message: error.to_string(),
        })?;
    }
    out.push(b']');
    write_identity(object.identity.as_ref(), out);
    write_additions(object, out);
    out.push(b'}');
    Ok(())
}

/// Writes the identity. As in Terraform, its schema version is written even if there is no identity.
fn write_identity(identity: Option<&Identity>, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"identity_schema_version\":");
    match identity {
        None => out.push(b'0'),
        Some(identity) => {
            out.extend_from_slice(identity.schema_version.to_string().as_bytes());
            if let Some(value) = &identity.value {
                out.extend_from_slice(b",\"identity\":");
                out.extend_from_slice(value.as_str().as_bytes());
            }
        }
    }
}

/// Writes the fields that are left out if they are empty or false: private data, dependencies and flags.
fn write_additions(object: &Object, out: &mut Vec<u8>) {
    if !object.private.is_empty() {
        out.extend_from_slice(b",\"private\":\"");
        out.extend_from_slice(
            base64::engine::general_purpose::STANDARD
                .encode(&object.private)
                .as_bytes(),
        );
        out.push(b'"');
    }
    if !object.dependencies.is_empty() {
        out.extend_from_slice(b",\"dependencies\":[");
        for dependency in object.dependencies.iter() {
            separate(out);
            json_string(&dependency.to_string(), out);
        }
        out.push(b']');
    }
    if object.create_before_destroy {
        out.extend_from_slice(b",\"create_before_destroy\":true");
    }
    // OpenTofu has this field. Terraform ignores it when reading, and so drops it when it writes the state.
    if object.skip_destroy {
        out.extend_from_slice(b",\"skip_destroy\":true");
    }
    // Only this program writes this field. After the block is removed, it is the only record that a destroy-time provisioner should have
    // run.
    if !object.destroy_provisioners.is_empty() {
        out.extend_from_slice(b",\"destroy_provisioners\":[");
        for ty in object.destroy_provisioners.iter() {
            separate(out);
            json_string(ty, out);
        }
        out.push(b']');
    }
}

fn write_path(path: &Path, out: &mut Vec<u8>) -> Result<(), CodecError> {
    out.push(b'[');
    for step in &path.0 {
        separate(out);
        match step {
            Step::Attribute(name) => {
                out.extend_from_slice(b"{\"type\":\"get_attr\",\"value\":");
                json_string(name, out);
            }
            Step::Index(key) => {
                out.extend_from_slice(b"{\"type\":\"index\",\"value\":");
                match key.kind() {
                    Kind::String(key) => {
                        out.extend_from_slice(b"{\"value\":");
                        json_string(key, out);
                        out.extend_from_slice(b",\"type\":\"string\"}");
                    }
                    _ => {
                        let key = cty::json::to_json_text(key, &Type::Dynamic)?;
                        out.extend_from_slice(key.as_bytes());
                    }
                }
            }
        }
        out.push(b'}');
    }
    out.push(b']');
    Ok(())
}

/// Writes the results of checks in compact form.
fn write_checks(checks: Option<&[CheckResult]>, out: &mut Vec<u8>) {
    let Some(checks) = checks.filter(|c| !c.is_empty()) else {
        out.extend_from_slice(b"null");
        return;
    };
    out.push(b'[');
    for check in checks {
        separate(out);
        out.extend_from_slice(b"{\"object_kind\":");
        json_string(&check.object_kind, out);
        out.extend_from_slice(b",\"config_addr\":");
        json_string(&check.config_addr, out);
        out.extend_from_slice(format!(",\"status\":\"{}\",\"objects\":", check.status.as_str()).as_bytes());
        // Go's encoder writes `null` for an empty list.
        if check.objects.is_empty() {
            out.extend_from_slice(b"null}");
            continue;
        }
        out.push(b'[');
        for object in &check.objects {
            separate(out);
            out.extend_from_slice(b"{\"object_addr\":");
            json_string(&object.object_addr, out);
            out.extend_from_slice(format!(",\"status\":\"{}\"", object.status.as_str()).as_bytes());
            if !object.failure_messages.is_empty() {
                out.extend_from_slice(b",\"failure_messages\":[");
                for message in &object.failure_messages {
                    separate(out);
                    json_string(message, out);
                }
                out.push(b']');
            }
            out.push(b'}');
        }
        out.extend_from_slice(b"]}");
    }
    out.push(b']');
}

/// Writes a comma, unless the compact text ends with an opening bracket or a colon.
fn separate(out: &mut Vec<u8>) {
    if !matches!(out.last(), None | Some(b'{' | b'[' | b':')) {
        out.push(b',');
    }
}

fn json_value(value: &serde_json::Value, out: &mut Vec<u8>) {
    out.extend_from_slice(RawJson::from_value(value).as_str().as_bytes());
}

/// Writes text as a JSON string, with the escapes of Go's encoder, which Terraform uses.
pub(crate) fn json_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut from = 0;
    for (i, &byte) in bytes.iter().enumerate() {
        let escape: &[u8] = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            0x08 => b"\\b",
            0x0c => b"\\f",
            // Go escapes these characters, so that JSON can be embedded in HTML.
            b'<' => b"\\u003c",
            b'>' => b"\\u003e",
            b'&' => b"\\u0026",
            // JavaScript did not allow these line separators in strings.
            0xe2 if bytes[i..].starts_with("\u{2028}".as_bytes()) => b"\\u2028",
            0xe2 if bytes[i..].starts_with("\u{2029}".as_bytes()) => b"\\u2029",
            0..0x20 => {
                out.extend_from_slice(&bytes[from..i]);
                out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
                from = i + 1;
                continue;
            }
            _ => continue,
        };
        out.extend_from_slice(&bytes[from..i]);
        out.extend_from_slice(escape);
        from = i + if byte == 0xe2 { 3 } else { 1 };
    }
    out.extend_from_slice(&bytes[from..]);
    out.push(b'"');
}
