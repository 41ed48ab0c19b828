//! Source addresses and configurations of providers.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::names::{self, ParseError};
use crate::program::Mode;
use crate::{InstanceKey, Module};

/// The public registry of Terraform.
pub const TERRAFORM_HOST: &str = "registry.terraform.io";
/// The public registry of OpenTofu.
pub const OPENTOFU_HOST: &str = "registry.opentofu.org";
/// The host of providers that are part of Terraform itself.
pub const BUILTIN_HOST: &str = "terraform.io";

/// Returns the registry host of source addresses without a host, of providers and of modules.
#[must_use]
pub fn default_host() -> &'static str {
    match Mode::current().is_opentofu() {
        true => OPENTOFU_HOST,
        false => TERRAFORM_HOST,
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Provider {
    pub host: Arc<str>,
    pub namespace: Arc<str>,
    /// The provider's name in its namespace, called its type.
    pub ty: Arc<str>,
}

impl Provider {
    /// Returns a provider with the namespace `hashicorp` in the default registry, which is what a bare name means.
    pub fn default_for(ty: impl Into<Arc<str>>) -> Provider {
        Provider {
            host: default_host().into(),
            namespace: "hashicorp".into(),
            ty: ty.into(),
        }
    }

    /// Returns a built-in provider: `terraform.io/builtin/NAME`.
    pub fn builtin(ty: impl Into<Arc<str>>) -> Provider {
        Provider {
            host: BUILTIN_HOST.into(),
            namespace: "builtin".into(),
            ty: ty.into(),
        }
    }

    /// Returns the provider that a local name means if `required_providers` has no entry for it.
    #[must_use]
    pub fn implied(local_name: &str) -> Provider {
        if local_name == "terraform" {
            Provider::builtin("terraform")
        } else {
            Provider::default_for(local_name)
        }
    }

    /// Returns true if the provider is built into Terraform: its address is `terraform.io/builtin/NAME`.
    #[must_use]
    pub fn is_builtin(&self) -> bool {
        &*self.host == BUILTIN_HOST && &*self.namespace == "builtin"
    }

    /// Returns true if both addresses mean the same packages. Both public registries offer the providers of the namespace `hashicorp`.
    #[must_use]
    pub fn is_same_package(&self, other: &Provider) -> bool {
        let public = |host: &str| host == TERRAFORM_HOST || host == OPENTOFU_HOST;
        self == other
            || (public(&self.host)
                && public(&other.host)
                && (&self.namespace, &self.ty) == (&other.namespace, &other.ty)
                && &*self.namespace == "hashicorp")
    }

    /// Returns the short form of the address: without the host if it is the default registry.
    #[must_use]
    pub fn for_display(&self) -> String {
        if &*self.host == default_host() {
            format!("{}/{}", self.namespace, self.ty)
        } else {
            self.to_string()
        }
    }

    /// Parses a source address of one, two or three parts.
    pub fn parse(text: &str) -> Result<Provider, ParseError> {
        let parts: Vec<&str> = text.split('/').collect();
        let (host, namespace, ty) = match parts.as_slice() {
            [ty] => (default_host(), "hashicorp", *ty),
            [namespace, ty] => (default_host(), *namespace, *ty),
            [host, namespace, ty] => (*host, *namespace, *ty),
            _ => {
                return Err(ParseError::new(
                    "Invalid provider source string",
                    "The \"source\" attribute must be in the format \"[hostname/][namespace/]name\"",
                ));
            }
        };
        let host = names::host(host)?;
        // States from before provider namespaces have the namespace "-".
        let namespace = if namespace == "-" {
            "-".to_owned()
        } else {
            names::provider_namespace(namespace)?
        };
        let ty = names::provider_type(ty)?;
        // Repositories and executables have these prefixes in their names, and users often include them in the type by mistake.
        if let Some(short) = ty
            .strip_prefix("terraform-provider-")
            .or_else(|| ty.strip_prefix("terraform-"))
        {
            return Err(ParseError::new(
                "Invalid provider type",
                format!(
                    "Provider source \"{text}\" has a type with the prefix \"terraform-\", which isn't valid. If you are \
                     the author of this provider, rename it to not include the prefix; otherwise you may have meant \
                     \"{namespace}/{short}\"."
                ),
            ));
        }
        Ok(Provider {
            host: host.into(),
            namespace: namespace.into(),
            ty: ty.into(),
        })
    }
}

/// `host/namespace/type`, always with the host.
impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.host, self.namespace, self.ty)
    }
}

/// A reference to a provider configuration in a module: `aws`, `aws.west`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocalProviderConfig {
    pub name: Arc<str>,
    /// The alias; `None` for the default configuration of the provider.
    pub alias: Option<Arc<str>>,
}

impl fmt::Display for LocalProviderConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if let Some(alias) = &self.alias {
            write!(f, ".{alias}")?;
        }
        Ok(())
    }
}

/// A provider configuration and the module that declares it. Clones share one allocation, because every resource instance of a plan has
/// such an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AbsProviderConfig(Arc<ProviderConfigParts>);

/// The parts of an [`AbsProviderConfig`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProviderConfigParts {
    pub module: Module,
    pub provider: Provider,
    /// The alias; `None` for the default configuration of the provider.
    pub alias: Option<Arc<str>>,
    /// The instance key, if the configuration has `for_each`. `None` means the block.
    pub key: Option<Arc<str>>,
}

impl From<ProviderConfigParts> for AbsProviderConfig {
    fn from(parts: ProviderConfigParts) -> AbsProviderConfig {
        AbsProviderConfig(Arc::new(parts))
    }
}

impl Deref for AbsProviderConfig {
    type Target = ProviderConfigParts;

    fn deref(&self) -> &ProviderConfigParts {
        &self.0
    }
}

impl AbsProviderConfig {
    /// Returns a provider configuration without an instance key.
    #[must_use]
    pub fn new(module: Module, provider: Provider, alias: Option<Arc<str>>) -> AbsProviderConfig {
        ProviderConfigParts {
            module,
            provider,
            alias,
            key: None,
        }
        .into()
    }

    /// Returns the default configuration of the root module.
    #[must_use]
    pub fn root(provider: Provider) -> AbsProviderConfig {
        AbsProviderConfig::new(Module::root(), provider, None)
    }

    /// Returns the same configuration for another provider.
    #[must_use]
    pub fn with_provider(&self, provider: Provider) -> AbsProviderConfig {
        ProviderConfigParts {
            provider,
            ..(*self.0).clone()
        }
        .into()
    }

    /// Returns the address without the instance key.
    #[must_use]
    pub fn block(&self) -> AbsProviderConfig {
        self.instance(None)
    }

    /// Returns the address of an instance of the same block.
    #[must_use]
    pub fn instance(&self, key: Option<Arc<str>>) -> AbsProviderConfig {
        if key == self.key {
            return self.clone();
        }
        ProviderConfigParts {
            key,
            ..(*self.0).clone()
        }
        .into()
    }
}

/// `module.x.provider["host/namespace/type"].alias["key"]`, as the state file has it.
impl fmt::Display for AbsProviderConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.module.is_root() {
            write!(f, "{}.", self.module)?;
        }
        write!(f, "provider[\"{}\"]", self.provider)?;
        if let Some(alias) = &self.alias {
            write!(f, ".{alias}")?;
        }
        if let Some(key) = &self.key {
            InstanceKey::String(key.clone()).fmt(f)?;
        }
        Ok(())
    }
}
