//! Documents of `test -json -verbose`: the plan or the state of a run. Their keys differ from those of `show -json`, and they
//! include the provider schemas, so that a program can render them.

use engine::plan::PlanView;
use provider::Schemas;
use serde_json::{Map, Value as Json};

use super::{Object, PLAN_FORMAT, STATE_FORMAT, actions, plan as of_plan, schemas as of_schemas, state as of_state};

/// Format version of the schemas.
const SCHEMAS_FORMAT: &str = "1.0";

fn with_schemas(document: Object, schemas: &Schemas) -> Json {
    let all: Map<String, Json> = schemas
        .providers
        .iter()
        .map(|(provider, schema)| (provider.to_string(), of_schemas::provider(schema)))
        .collect();
    document
        .with("provider_format_version", SCHEMAS_FORMAT)
        .with_content("provider_schemas", all)
        .into()
}

/// Returns the plan of a run.
#[must_use]
pub fn plan(plan: PlanView<'_>, schemas: &Schemas) -> Json {
    let document = Object::default()
        .with("plan_format_version", PLAN_FORMAT)
        .with_content("output_changes", of_plan::output_changes(plan))
        .with_content("resource_changes", of_plan::resource_changes(plan))
        .with_content("resource_drift", of_plan::drift(plan))
        .with_content("relevant_attributes", of_plan::relevant_attributes(plan))
        .with_content("action_invocations", actions::invocations(plan));
    with_schemas(document, schemas)
}

/// Returns the state after a run.
#[must_use]
pub fn state(state: &::state::State, schemas: &Schemas) -> Json {
    // Unlike that of `show -json`, the document has no version of the tool.
    let mut shown = of_state::state_document(state, Some(schemas), "");
    let mut part = |name: &str| {
        shown
            .get_mut("values")
            .and_then(|values| values.get_mut(name))
            .map(Json::take)
    };
    let root = part("root_module").unwrap_or_else(|| Json::Object(Map::new()));
    let document = Object::default()
        .with("state_format_version", STATE_FORMAT)
        .with("root_module", root)
        .with_content("outputs", part("outputs").unwrap_or_default());
    with_schemas(document, schemas)
}
