//! The `template` provider: text from templates, files from templates, and user data for cloud-init. It is the predecessor of the function
//! `templatefile` and of the `cloudinit` provider. It is archived, but still in use.
//!
//! Templates are written in the configuration language, and [`render`][] evaluates them. User data is rendered by the crate of the
//! `cloudinit` provider, because the messages are the same. No other plugin depends on the crate of another one.
//!
//! - [`file`][]: `template_file`.
//! - [`cloudinit`][]: `template_cloudinit_config`.
//! - [`dir`][]: `template_dir`, which recognizes its directories by a checksum ([`image`]).
//!
//! It implements version 2.2.0 of the official provider. Templates have the functions of the current Terraform language; in the official
//! provider, they have those of an early release of Terraform 0.12.

mod cloudinit;
mod dir;
mod file;
mod image;
mod render;

use std::collections::BTreeMap;

use monoform_sdk::{Attr, Diagnostic, Diagnostics, Empty, Members, Model, Plan, Provider, Result, async_trait};

/// Name of the provider in addresses and in the names of executables.
pub const NAME: &str = "template";

/// Version of the official provider that this one implements.
pub const VERSION: &str = "2.2.0";

/// Earlier releases with the same major version, which this provider also implements.
pub const RELEASED: &[&str] = &["2.0.0", "2.1.0", "2.1.1", "2.1.2"];

/// Constructs the provider for the plugin server.
#[must_use]
pub fn provider() -> impl Provider {
    Template
}

struct Template;

#[async_trait]
impl Provider for Template {
    type Config = Empty;
    type Client = ();

    fn members(&self, members: &mut Members<()>) {
        members.plain();
        members.resource("template_cloudinit_config", cloudinit::CloudInitResource);
        members.resource("template_dir", dir::TemplateDir);
        members.resource("template_file", file::FileResource);
        members.data_source("template_cloudinit_config", cloudinit::CloudInitData);
        members.data_source("template_file", file::FileData);
    }

    async fn configure(&self, _config: Empty, _terraform_version: &str) -> Result<()> {
        Ok(())
    }
}

/// Variables of a template.
type Vars = Attr<BTreeMap<String, Attr<String>>>;

/// Returns the values of the variables; null ones are omitted.
fn values(vars: &Vars) -> BTreeMap<String, String> {
    let vars = vars.known().into_iter().flatten();
    vars.filter_map(|(name, value)| Some((name.clone(), value.known()?.clone())))
        .collect()
}

/// Plans no change if `agrees` returns true for the configuration and the state.
fn keep_if_same<M: Model>(plan: &mut Plan<'_, M>, agrees: impl Fn(&M, &M) -> bool) -> Result<()> {
    let planned = plan.planned()?;
    if let Some(prior) = plan.prior()?
        && agrees(&planned, &prior)
    {
        plan.set(&prior);
    }
    Ok(())
}

/// Returns the warning that a resource type is deprecated.
fn deprecated(name: &str) -> Diagnostics {
    Diagnostic::warning(
        format!("using {name} as a resource is deprecated; consider using the data source instead"),
        "The data source of the same name gives the same result and keeps no state.",
    )
    .into()
}

/// Returns true if both texts are known and equal. As in the official provider, an empty text equals an absent one.
fn same(one: &Attr<String>, other: &Attr<String>) -> bool {
    !one.is_unknown() && !other.is_unknown() && one.text() == other.text()
}

#[cfg(test)]
mod tests {
    use monoform_sdk_testing::Harness;

    #[test]
    fn the_schema_is_the_official_one() {
        let cloudinit = "  base64_encode bool optional\n  gzip bool optional\n  id string optional computed\n  \
                         rendered string computed\n";
        let file = "  filename string optional\n  id string optional computed\n  rendered string computed\n  \
                    template string optional\n  vars map(string) optional\n";
        let dir = "  destination_dir string required\n  id string optional computed\n  source_dir string required\n  \
                   vars map(string) optional\n";
        let harness = Harness::new(crate::provider());
        assert_eq!(
            harness.schema_text(),
            format!(
                "resource template_cloudinit_config v0\n{cloudinit}resource template_dir v0\n{dir}resource template_file \
                 v0\n{file}data template_cloudinit_config v0\n{cloudinit}data template_file v0\n{file}"
            )
        );
    }
}
