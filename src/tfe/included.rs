//! Objects that the server includes in a document besides the requested one.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::api;

/// The objects that were requested along with a run.
#[derive(Clone, Debug, Default)]
pub struct Included {
    pub(crate) objects: BTreeMap<(String, String), Json>,
}

impl Included {
    pub(crate) fn read(document: &Json) -> Included {
        let all = document.get("included").and_then(Json::as_array).into_iter().flatten();
        let keyed = all.filter_map(|data| {
            Some((
                (data.get("type")?.as_str()?.to_owned(), api::id(data).ok()?),
                data.clone(),
            ))
        });
        Included {
            objects: keyed.collect(),
        }
    }

    pub(crate) fn of_type(&self, ty: &str) -> impl Iterator<Item = &Json> {
        self.objects
            .iter()
            .filter(move |((t, _), _)| t == ty)
            .map(|(_, data)| data)
    }
}
