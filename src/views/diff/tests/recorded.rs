//! Plans and schemas read from the JSON that Terraform writes of them, so that what it showed of a plan can be compared
//! with what we show of the same plan.

use provider::Schemas;
use serde_json::Value as Json;

pub(super) use crate::json::read::PlanDocument;

/// The schemas in the document of `providers schema -json`.
pub(super) fn schemas(document: &Json) -> Schemas {
    crate::json::read::schemas(document).unwrap()
}

/// The plan in the document of `show -json`.
pub(super) fn plan(json: &Json, schemas: &Schemas) -> PlanDocument {
    crate::json::read::plan(json, schemas).unwrap()
}
