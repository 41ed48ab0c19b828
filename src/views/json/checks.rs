//! Check results in the documents of plans and states.

use serde_json::{Map, Value as Json, json};
use state::{CheckResult, CheckedObject};

use super::{Object, instance_key};

/// Returns the results, sorted by the address of the checked object.
#[must_use]
pub fn checks(results: &[CheckResult]) -> Json {
    let mut sorted: Vec<&CheckResult> = results.iter().collect();
    sorted.sort_by(|a, b| a.config_addr.cmp(&b.config_addr));
    sorted.into_iter().map(result).collect()
}

fn result(result: &CheckResult) -> Json {
    let mut objects: Vec<&CheckedObject> = result.objects.iter().collect();
    // Parsed addresses sort by number: [2] comes before [10].
    objects.sort_by_cached_key(|o| {
        (
            addrs::parse::resource_instance(&o.object_addr).ok(),
            o.object_addr.clone(),
        )
    });
    let instances: Vec<Json> = objects.into_iter().map(|o| instance(&result.object_kind, o)).collect();
    Object::default()
        .with("address", config_address(&result.object_kind, &result.config_addr))
        .with("status", result.status.as_str())
        .with_content("instances", instances)
        .into()
}

/// Returns the module of a variable, an output or a check: its address without the last two steps; `None` for the root module.
fn module_of(address: &str) -> Option<&str> {
    let (rest, _name) = address.rsplit_once('.')?;
    rest.rsplit_once('.').map(|(module, _kind)| module)
}

fn config_address(kind: &str, text: &str) -> Json {
    // In documents, this kind has another name than in states.
    let kind_shown = if kind == "output" { "output_value" } else { kind };
    let mut out = Map::new();
    out.insert("kind".into(), kind_shown.into());
    let resource = (kind == "resource")
        .then(|| addrs::parse::config_resource(text).ok())
        .flatten();
    let module = match &resource {
        Some(resource) => Some(resource.module.to_string()).filter(|m| !m.is_empty()),
        None => module_of(text).map(str::to_owned),
    };
    if let Some(resource) = &resource {
        out.insert("mode".into(), resource.resource.mode.as_str().into());
    }
    if let Some(module) = module {
        out.insert("module".into(), module.into());
    }
    let name = match &resource {
        Some(resource) => &*resource.resource.name,
        None => text.rsplit('.').next().unwrap_or(text),
    };
    out.insert("name".into(), name.into());
    out.insert("to_display".into(), text.into());
    if let Some(resource) = &resource {
        out.insert("type".into(), (*resource.resource.ty).into());
    }
    Json::Object(out)
}

fn instance(kind: &str, object: &CheckedObject) -> Json {
    let text = &*object.object_addr;
    let mut address = Map::new();
    let resource = (kind == "resource")
        .then(|| addrs::parse::resource_instance(text).ok())
        .flatten();
    let module = match &resource {
        Some(resource) => Some(resource.module.to_string()).filter(|m| !m.is_empty()),
        None => module_of(text).map(str::to_owned),
    };
    if let Some(key) = resource.as_ref().and_then(|r| instance_key(&r.resource.key)) {
        address.insert("instance_key".into(), key);
    }
    if let Some(module) = module {
        address.insert("module".into(), module.into());
    }
    address.insert("to_display".into(), text.into());
    let problems: Vec<Json> = object
        .failure_messages
        .iter()
        .map(|m| json!({"message": &**m}))
        .collect();
    Object::default()
        .with("address", address)
        .with("status", object.status.as_str())
        .with_content("problems", problems)
        .into()
}

#[cfg(test)]
mod tests {
    use state::CheckStatus;

    use super::*;

    fn checked(kind: &str, config: &str, object: &str, failures: &[&str]) -> CheckResult {
        let status = if failures.is_empty() {
            CheckStatus::Pass
        } else {
            CheckStatus::Fail
        };
        CheckResult {
            object_kind: kind.into(),
            config_addr: config.into(),
            status,
            objects: vec![CheckedObject {
                object_addr: object.into(),
                status,
                failure_messages: failures.iter().map(|f| (*f).into()).collect(),
            }],
        }
    }

    #[test]
    fn results_have_the_shape_of_terraforms() {
        let results = [
            checked("var", "module.m.var.v", "module.m[\"a b\"].var.v", &[]),
            checked("check", "check.c", "check.c", &["bad z"]),
            checked(
                "resource",
                "module.m.terraform_data.r",
                "module.m[\"a.b\"].terraform_data.r[0]",
                &[],
            ),
        ];
        let expected = json!([
            {
                "address": {"kind": "check", "name": "c", "to_display": "check.c"},
                "status": "fail",
                "instances": [
                    {"address": {"to_display": "check.c"}, "status": "fail", "problems": [{"message": "bad z"}]}
                ]
            },
            {
                "address": {
                    "kind": "resource", "mode": "managed", "module": "module.m", "name": "r",
                    "to_display": "module.m.terraform_data.r", "type": "terraform_data"
                },
                "status": "pass",
                "instances": [{
                    "address": {
                        "instance_key": 0, "module": "module.m[\"a.b\"]",
                        "to_display": "module.m[\"a.b\"].terraform_data.r[0]"
                    },
                    "status": "pass"
                }]
            },
            {
                "address": {"kind": "var", "module": "module.m", "name": "v", "to_display": "module.m.var.v"},
                "status": "pass",
                "instances": [
                    {"address": {"module": "module.m[\"a b\"]", "to_display": "module.m[\"a b\"].var.v"}, "status": "pass"}
                ]
            },
        ]);
        assert_eq!(checks(&results), expected);
    }
}
