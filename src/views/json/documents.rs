//! JSON Schemas of the documents that commands print, shown by `help json`.

use syntax::content::suggest;

/// Document with its schema.
#[derive(Clone, Copy, Debug)]
pub struct Document {
    /// Name, the NAME of `help json NAME`.
    pub name: &'static str,
    /// Command that prints the document.
    pub command: &'static str,
    /// Schema, as JSON.
    pub schema: &'static str,
}

macro_rules! document {
    ($name:literal, $command:literal) => {
        Document {
            name: $name,
            command: $command,
            schema: include_str!(concat!("documents/", $name, ".json")),
        }
    };
}

/// Documents, sorted by name.
pub const DOCUMENTS: &[Document] = &[
    document!("coverage", "test -coverage-json=PATH"),
    document!("doctor", "doctor -json"),
    document!("explain", "explain -json"),
    document!("fmt", "fmt -json"),
    document!("graph", "graph -json"),
    document!("metadata-functions", "metadata functions -json"),
    document!("modules", "modules -json"),
    document!("output", "output -json"),
    document!("pack-list", "pack -list -json"),
    document!("plan-summary", "show -summary -json PLAN"),
    document!("provider-check", "provider check -json"),
    document!("providers", "providers -json"),
    document!("providers-schema", "providers schema -json"),
    document!("self-check", "self-check -json"),
    document!("show", "show -json"),
    document!("state-history", "state history -json"),
    document!("state-identities", "state identities -json"),
    document!("state-list", "state list -json"),
    document!("state-query", "state query -json"),
    document!("state-show", "state show -json"),
    document!(
        "stream",
        "plan -json, apply -json, destroy -json, refresh -json, init -json, query -json, test -json, provider test -json"
    ),
    document!("validate", "validate -json"),
    document!("version", "version -json"),
    document!("workspace-list", "workspace list -json"),
];

/// Returns the document with this name, or with the name of this command; `None` if there
/// is none.
#[must_use]
pub fn find(name: &str) -> Option<&'static Document> {
    let name = name.replace(' ', "-");
    DOCUMENTS.iter().find(|document| document.name == name)
}

/// Returns the most similar name, if there is one.
#[must_use]
pub fn nearest(name: &str) -> Option<&'static str> {
    suggest(&name.replace(' ', "-"), DOCUMENTS.iter().map(|document| document.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_is_json_and_says_what_it_describes() {
        for document in DOCUMENTS {
            let schema: serde_json::Value = serde_json::from_str(document.schema).unwrap();
            let title = schema["title"].as_str().unwrap();
            let first = document.command.split([' ', ',']).next().unwrap();
            assert!(title.contains(first), "{}: {title}", document.name);
            assert_eq!(find(document.name).unwrap().name, document.name);
        }
        assert!(DOCUMENTS.is_sorted_by_key(|document| document.name));
        assert_eq!(find("state list").unwrap().name, "state-list");
        assert_eq!(nearest("validat"), Some("validate"));
    }
}
