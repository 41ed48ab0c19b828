//! The pages of a provider, and the fields that their templates are filled in with.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use provider::{FunctionSchema, ProviderSchema};
use schema::Schema;

use super::template::{Field, Fields, render};
use super::{DocsError, Project, examples, schema_text, sections};

/// Folders below `docs` whose pages are generated.
pub const FOLDERS: [&str; 6] = [
    "actions",
    "data-sources",
    "ephemeral-resources",
    "functions",
    "list-resources",
    "resources",
];

const TYPE_PAGE: &str = include_str!("type.md");
const PROVIDER_PAGE: &str = include_str!("provider.md");
const FUNCTION_PAGE: &str = include_str!("function.md");

/// Kind of types, each of which has a page.
struct Kind {
    folder: &'static str,
    /// Name in titles.
    title: &'static str,
    /// Name of the example's file without its extension.
    example: &'static str,
    extensions: &'static [&'static str],
}

/// Returns the generated pages.
pub fn generated(project: &Project, schema: &ProviderSchema) -> Result<BTreeMap<String, String>, DocsError> {
    let mut pages = BTreeMap::new();
    let fields = provider_fields(project, schema);
    let text = filled(project, "index", None, PROVIDER_PAGE, &fields)?;
    pages.insert("docs/index.md".to_owned(), text);
    let kind = |folder, title, example, extensions| Kind {
        folder,
        title,
        example,
        extensions,
    };
    let plain: &[&str] = &[".tf"];
    let resource = kind("resources", "Resource", "resource", plain);
    for (name, schema) in schema.resources.iter() {
        type_page(project, &resource, name, schema, &mut pages)?;
    }
    let data = kind("data-sources", "Data Source", "data-source", plain);
    for (name, schema) in schema.data_sources.iter() {
        type_page(project, &data, name, schema, &mut pages)?;
    }
    let ephemeral = kind("ephemeral-resources", "Ephemeral Resource", "ephemeral-resource", plain);
    for (name, schema) in schema.ephemeral.iter() {
        type_page(project, &ephemeral, name, schema, &mut pages)?;
    }
    let action = kind("actions", "Action", "action", plain);
    for (name, schema) in schema.actions.iter() {
        type_page(project, &action, name, schema, &mut pages)?;
    }
    let queries: &[&str] = &[".tfquery.hcl", ".tf"];
    let list = kind("list-resources", "List Resource", "list-resource", queries);
    for (name, schema) in schema.lists.iter() {
        type_page(project, &list, name, &schema.config, &mut pages)?;
    }
    for (name, function) in schema.functions.iter() {
        let fields = function_fields(project, name, function);
        let text = filled(project, "functions", Some(name), FUNCTION_PAGE, &fields)?;
        pages.insert(format!("docs/functions/{name}.md"), text);
    }
    Ok(pages)
}

/// Adds the pages of `templates/guides`.
pub fn guides(
    project: &Project,
    schema: &ProviderSchema,
    pages: &mut BTreeMap<String, String>,
) -> Result<(), DocsError> {
    let dir = project.root.join("templates/guides");
    let Ok(entries) = fs::read_dir(&dir) else {
        return Ok(());
    };
    let fields = provider_fields(project, schema);
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(stem) = name.strip_suffix(".md.tmpl").or_else(|| name.strip_suffix(".md")) else {
            continue;
        };
        let template = fs::read_to_string(&path).map_err(DocsError::read(&path))?;
        let text = render(&path, &template, &project.root, &fields)?;
        pages.insert(format!("docs/guides/{stem}.md"), text);
    }
    Ok(())
}

/// Returns the name of a type without the provider's prefix. It is also the name of the type's page.
fn short<'n>(project: &Project, name: &'n str) -> &'n str {
    let rest = name.strip_prefix(&*project.name);
    rest.and_then(|rest| rest.strip_prefix('_')).unwrap_or(name)
}

fn type_page(
    project: &Project,
    kind: &Kind,
    name: &str,
    schema: &Schema,
    pages: &mut BTreeMap<String, String>,
) -> Result<(), DocsError> {
    let short = short(project, name);
    let fields = type_fields(project, kind, name, schema);
    let text = filled(project, kind.folder, Some(short), TYPE_PAGE, &fields)?;
    pages.insert(format!("docs/{}/{short}.md", kind.folder), text);
    Ok(())
}

/// Fills in the template of a page: the project's template for this page, else its template for the
/// folder, else the default.
fn filled(
    project: &Project,
    folder: &str,
    name: Option<&str>,
    default: &str,
    fields: &Fields,
) -> Result<String, DocsError> {
    let own = name.map(|name| format!("templates/{folder}/{name}.md"));
    let names = own.into_iter().chain([format!("templates/{folder}.md")]);
    let paths = names.flat_map(|name| {
        let path = project.root.join(name);
        let mut with_extension = path.clone().into_os_string();
        with_extension.push(".tmpl");
        [path, PathBuf::from(with_extension)]
    });
    for path in paths {
        match fs::read_to_string(&path) {
            Ok(template) => return render(&path, &template, &project.root, fields),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(DocsError::read(&path)(error)),
        }
    }
    render("the built-in template".as_ref(), default, &project.root, fields)
}

/// Fields that all pages have.
fn common(project: &Project, name: &str, title: &str, description: &str, files: Vec<String>) -> Fields {
    let text = |text: &str| Field::Text(text.to_owned());
    Fields::from([
        ("Name", text(name)),
        ("Type", text(title)),
        (
            "ProviderName",
            Field::Text(format!("terraform-provider-{}", project.name)),
        ),
        ("ProviderShortName", text(&project.name)),
        ("RenderedProviderName", text(&project.name)),
        ("Description", text(description.trim())),
        ("HasExample", Field::Flag(!files.is_empty())),
        ("HasExamples", Field::Flag(!files.is_empty())),
        ("ExampleFile", Field::Text(files.first().cloned().unwrap_or_default())),
        ("ExampleFiles", Field::List(files)),
    ])
}

fn provider_fields(project: &Project, schema: &ProviderSchema) -> Fields {
    let files = examples::files(&project.root, "examples/provider", "provider", &[".tf"]);
    let block = &schema.provider.block;
    let mut fields = common(project, &project.name, "Provider", &block.description.text, files);
    fields.insert("SchemaMarkdown", Field::Text(schema_text::block(block)));
    fields
}

fn type_fields(project: &Project, kind: &Kind, name: &str, schema: &Schema) -> Fields {
    let dir = format!("examples/{}/{name}", kind.folder);
    let files = examples::files(&project.root, &dir, kind.example, kind.extensions);
    let description = &schema.block.description.text;
    let mut fields = common(project, name, kind.title, description, files);
    let file = |name: &str| examples::file(&project.root, format!("{dir}/{name}"));
    for (has, path, found) in [
        ("HasImport", "ImportFile", file("import.sh")),
        (
            "HasImportIDConfig",
            "ImportIDConfigFile",
            file("import-by-string-id.tf"),
        ),
        (
            "HasImportIdentityConfig",
            "ImportIdentityConfigFile",
            file("import-by-identity.tf"),
        ),
    ] {
        fields.insert(has, Field::Flag(found.is_some()));
        fields.insert(path, Field::Text(found.unwrap_or_default()));
    }
    let identity = schema.identity.as_ref();
    let identity = identity.map_or_else(String::new, |identity| schema_text::identity(identity));
    fields.insert("IdentitySchemaMarkdown", Field::Text(identity));
    fields.insert("SchemaMarkdown", Field::Text(schema_text::block(&schema.block)));
    fields
}

fn function_fields(project: &Project, name: &str, function: &FunctionSchema) -> Fields {
    let dir = format!("examples/functions/{name}");
    let files = examples::files(&project.root, &dir, "function", &[".tf"]);
    let mut fields = common(project, name, "function", &function.description.text, files);
    for (field, text) in [
        ("Summary", function.summary.trim().to_owned()),
        ("DeprecationMessage", function.deprecation_message.trim().to_owned()),
        ("FunctionSignatureMarkdown", sections::signature(name, function)),
        ("FunctionArgumentsMarkdown", sections::arguments(function)),
        ("FunctionVariadicArgumentMarkdown", sections::variadic(function)),
    ] {
        fields.insert(field, Field::Text(text));
    }
    fields.insert("HasVariadic", Field::Flag(function.variadic.is_some()));
    fields
}
