//! Backend types: finding the type of a block or of a record, and configuring a backend.

use std::sync::Arc;

use config::Config;
use config::model::Backend;
use cty::Value;
use schema::Schema;
use syntax::ast::Body;
use syntax::{Diagnostic, Diagnostics, Range};

use super::local::{self, Local};
use super::location::StateBackend;
use super::owner::Owner;
use super::record::{CLOUD, Saved};
use super::store::StorePlugin;
use super::{settings, third_party};
use crate::Context;

pub(super) enum Kind {
    Local,
    Store(StorePlugin),
}

/// Backend types of earlier Terraform versions.
const REMOVED: &[&str] = &["artifactory", "atlas", "azure", "etcd", "etcdv3", "manta", "swift"];

/// Returns an error if the type of the `backend` block does not exist. Starts no plugin. The type of a `state_store` block is not checked.
pub fn check_type(context: &Context<'_>, config: &Config) -> Option<Diagnostic> {
    let backend = config
        .root
        .module
        .backend
        .as_ref()
        .filter(|block| block.provider.is_none())?;
    let ty = &*backend.ty;
    let mut stores = context.builtin.iter();
    let exists = ty == "local" || ty != CLOUD && stores.any(|name| name == ty);
    (!exists).then(|| no_such_type(context.builtin, context.left_out, ty).at(&backend.type_range))
}

fn no_such_type(builtin: &[String], left_out: &[(&str, &str)], ty: &str) -> Diagnostic {
    let stores = builtin.iter().map(String::as_str);
    let mut known: Vec<&str> = stores.filter(|name| *name != CLOUD).collect();
    known.push("local");
    known.sort_unstable();
    let (summary, detail) = if ty == CLOUD {
        (
            "Unsupported backend type",
            "HCP Terraform is configured by a block of its own, \"cloud\", and not by a backend of that name."
                .to_owned(),
        )
    } else if REMOVED.contains(&ty) {
        (
            "Backend not supported",
            format!("The backend \"{ty}\" is not supported any more since Terraform 1.3."),
        )
    } else if let Some((_, feature)) = left_out.iter().find(|(name, _)| *name == ty) {
        (
            "Backend left out of this build",
            format!(
                "This executable was built without the backend \"{ty}\". Use a complete build, or one with the feature \
                 \"{feature}\"."
            ),
        )
    } else {
        let hint = syntax::content::did_you_mean(syntax::content::suggest(ty, known.iter().copied()));
        (
            "Unsupported backend type",
            format!(
                "There is no backend type named \"{ty}\". There are: {}.{hint}",
                known.join(", ")
            ),
        )
    };
    Diagnostic::error(summary, detail)
}

impl Kind {
    /// Finds the type of a block.
    pub(super) fn of_block(context: &Context<'_>, config: &Config, block: &Backend) -> Result<Kind, Diagnostics> {
        match &block.provider {
            Some(provider) => third_party::of_block(context, config, block, provider).map(Kind::Store),
            None => Kind::find(context, &block.ty, Some(&block.type_range)),
        }
    }

    /// Finds the type of a record or a saved plan.
    pub(super) fn of_saved(context: &Context<'_>, saved: &Saved) -> Result<Kind, Diagnostics> {
        match &saved.provider {
            Some(provider) => third_party::of_saved(context, saved, provider).map(Kind::Store),
            None => Kind::find(context, &saved.ty, None),
        }
    }

    /// Returns the third-party provider of the store; `None` for built-in stores.
    pub(super) fn owner(&self) -> Option<&Owner> {
        match self {
            Kind::Local => None,
            Kind::Store(plugin) => plugin.owner(),
        }
    }

    /// Computes the hash of a block of this type with these settings.
    pub(super) fn hash(&self, ty: &str, config: &Value) -> u32 {
        match self.owner() {
            Some(owner) => owner.hash(ty, config),
            None => settings::hash(ty, config),
        }
    }

    /// Describes how the third-party provider differs from the recorded one; `None` if it does not, or if one of the two is missing.
    pub(super) fn change(&self, saved: &Saved) -> Option<String> {
        self.owner()?.change(saved.provider.as_ref()?)
    }

    pub(super) fn find(context: &Context<'_>, ty: &str, range: Option<&Range>) -> Result<Kind, Diagnostics> {
        if ty == "local" {
            return Ok(Kind::Local);
        }
        if context.builtin.iter().any(|name| name == ty) {
            return StorePlugin::start(context, ty).map(Kind::Store);
        }
        let mut problem = no_such_type(context.builtin, context.left_out, ty);
        Err(match range {
            Some(range) => problem.at(range),
            None => {
                problem.detail.push_str(&format!(
                    " The state of this working directory is in it, so it cannot be migrated. Migrate the state with a program \
                     that has this backend, or continue without it: \"{} init -reconfigure\".",
                    context.program.command
                ));
                problem
            }
        }
        .into())
    }

    pub(super) fn schema(&self) -> Arc<Schema> {
        match self {
            Kind::Local => local::schema(),
            Kind::Store(plugin) => plugin.schema().clone(),
        }
    }

    /// Configures the backend. If the settings come from a body, problems are located in it.
    pub(super) fn configure(self, config: Value, body: Option<&Body>) -> Result<StateBackend, Diagnostics> {
        match self {
            Kind::Local => {
                let problems = local::problems(&config).into_iter();
                let parts = problems.map(|(name, problem)| (problem, cty::Path::root().attribute(name)));
                let problems = settings::located(parts, body, &local::schema());
                problems.into_result(StateBackend::Local(Local::from_config(&config)))
            }
            Kind::Store(plugin) => plugin
                .configure(config, body)
                .map(|store| StateBackend::Store(Arc::new(store))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backend_of_another_build_is_named_with_its_feature() {
        let builtin = ["http".to_owned(), "s3".to_owned()];
        let left_out = [("gcs", "cloud-stores")];
        let detail = |ty| no_such_type(&builtin, &left_out, ty).detail.clone();
        assert!(detail("gcs").contains("\"cloud-stores\""), "{}", detail("gcs"));
        assert!(detail("htp").contains("Did you mean \"http\"?"), "{}", detail("htp"));
    }
}
