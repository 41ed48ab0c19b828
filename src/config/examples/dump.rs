use std::collections::BTreeMap;
fn main() {
    let text = std::fs::read_to_string(std::env::args().nth(1).unwrap()).unwrap();
    let cases: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&text).unwrap();
    let mut out = BTreeMap::new();
    for (name, files) in cases {
        let files: config::files::MemoryFiles = files
            .as_object()
            .unwrap()
            .iter()
            .map(|(k, v)| (k.clone(), v.as_str().unwrap().to_owned()))
            .collect();
        let manifest = config::manifest::Manifest::default();
        let loaded = config::load(
            &files,
            ".",
            &config::LoadOptions {
                tool_version: "1.11.4",
                manifest: &manifest,
            },
        );
        let diags: Vec<_> = loaded
            .diagnostics
            .iter()
            .map(|d| {
                let at = d.subject.as_ref().map_or("-".to_owned(), |r| {
                    format!(
                        "{}:{},{}-{},{}",
                        r.file, r.start.line, r.start.column, r.end.line, r.end.column
                    )
                });
                (
                    if d.is_error() { "e" } else { "w" },
                    at,
                    d.summary.clone(),
                    d.detail.clone(),
                )
            })
            .collect();
        out.insert(name, diags);
    }
    println!("{}", serde_json::to_string(&out).unwrap());
}
