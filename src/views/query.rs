//! Results of a query: as lines of text, and as messages of the stream.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use addrs::AbsResourceInstance;
use cty::Value;
use engine::identity::identity_text;
use engine::plan::Plan;
use engine::query::{QueryInstance, QueryResult};
use serde_json::{Map, Value as Json};

use crate::json::Object;
use crate::json::values::known_part;
use crate::ui::Ui;
use crate::wrap;

/// Returns a line for each object with the list block, the identity and the name; empty if there are no objects.
#[must_use]
pub fn lines(found: &QueryInstance) -> String {
    let identities: Vec<String> = found.results.iter().map(|r| identity_text(&r.identity)).collect();
    let width = identities
        .iter()
        .map(|text| text.chars().count())
        .max()
        .unwrap_or_default();
    let mut out = String::new();
    for (identity, result) in identities.iter().zip(&found.results) {
        let name = &result.display_name;
        let _ = writeln!(out, "{}   {identity:width$}   {name}", found.address);
    }
    out
}

/// Warns of list blocks without results.
pub fn warn_of_empty(ui: &Ui, plan: &Plan) {
    let empty = plan.queries.iter().filter(|q| q.results.is_empty());
    let empty: Vec<String> = empty.map(|q| q.address.to_string()).collect();
    if empty.is_empty() {
        return;
    }
    let style = ui.style();
    let text = format!(" list block(s) [{}] returned 0 results.\n", empty.join(", "));
    let text = format!("{}{}", style.bold(style.yellow("Warning:")), style.bold(text));
    ui.line(wrap::wrap(&text, ui.width()).join("\n"));
}

/// Returns the content of a `list_start` message.
#[must_use]
pub fn started(address: &AbsResourceInstance, config: &Value) -> Json {
    let marked = config.paths_with_marks();
    let sensitive = marked.iter().filter(|(_, marks)| marks.is_sensitive());
    let sensitive: BTreeSet<String> = sensitive.map(|(path, _)| path.to_string()).collect();
    Object::default()
        .with("address", address.to_string())
        .with("resource_type", &*address.resource.resource.ty)
        .with_content("input_config", members(config))
        .with_content("sensitive_attribute_paths", sensitive.into_iter().collect::<Vec<_>>())
        .into()
}

/// Returns the content of a `list_resource_found` message.
#[must_use]
pub fn result(found: &QueryInstance, result: &QueryResult) -> Json {
    let (config, import) = match &result.generated {
        Some(generated) => (generated.resource.clone(), generated.import.clone()),
        None => (String::new(), String::new()),
    };
    Object::default()
        .with("address", found.address.to_string())
        .with("display_name", result.display_name.clone())
        .with("identity", members(&result.identity))
        .with("identity_version", found.identity_version)
        .with("resource_type", &*found.address.resource.resource.ty)
        .with_content("resource_object", members(&result.object))
        .with_content("config", config)
        .with_content("import_config", import)
        .into()
}

/// Returns the content of a `list_complete` message.
#[must_use]
pub fn completed(found: &QueryInstance) -> Json {
    Object::default()
        .with("address", found.address.to_string())
        .with("resource_type", &*found.address.resource.resource.ty)
        .with("total", found.results.len())
        .into()
}

/// Returns the attributes of an object; empty if it is null.
fn members(value: &Value) -> Map<String, Json> {
    let entries = value.entries().into_iter().flatten();
    entries
        .map(|(name, part)| (name.to_string(), known_part(part).unwrap_or(Json::Null)))
        .collect()
}

/// Returns the text of a file with the configuration that was generated for the results; `None` if none was generated.
#[must_use]
pub fn generated_file(plan: &Plan, tool: &str) -> Option<String> {
    let mut text = format!(
        "# __generated__ by {tool}\n# Please review these resources and move them into your main configuration files.\n"
    );
    let mut any = false;
    for query in &plan.queries {
        let generated: Vec<_> = query.results.iter().filter_map(|r| r.generated.as_ref()).collect();
        if generated.is_empty() {
            continue;
        }
        any = true;
        let _ = writeln!(text, "\n# __generated__ by {tool}");
        for one in generated {
            let _ = write!(text, "{}\n\n{}\n\n", one.resource, one.import);
        }
        text.push('\n');
    }
    any.then_some(text)
}
