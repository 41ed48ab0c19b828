//! Plans and schemas read from Terraform's JSON, so that its text for a plan can be compared with ours.

use provider::Schemas;
use serde_json::Value as Json;

pub(super) use crate::json::read::PlanDocument;

/// Reads the schemas from the document of `providers schema -json`.
pub(super) fn schemas(document: &Json) -> Schemas {
    crate::json::read::schemas(document).unwrap()
}

/// Reads the plan from the document of `show -json`.
pub(super) fn plan(json: &Json, schemas: &Schemas) -> PlanDocument {
    crate::json::read::plan(json, schemas).unwrap()
}
