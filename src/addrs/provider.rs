//! Providers: source addresses and configurations.

use std::fmt;
use std::sync::Arc;

use crate::parse::ParseError;
use crate::{Module, parse};

/// The registry that addresses without a host mean.
pub const DEFAULT_HOST: &str = "registry.terraform.io";
/// The host of providers that are part of the tool.
pub const BUILTIN_HOST: &str = "terraform.io";

/// The source address of a provider.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Provider {
    /// The registry's host name.
    pub host: Arc<str>,
    /// The namespace in the registry.
    pub namespace: Arc<str>,
    /// The type: the provider's name.
    pub ty: Arc<str>,
}

impl Provider {
    /// A provider of the default registry's `hashicorp` namespace: what a bare name means.
    pub fn default_for(ty: impl Into<Arc<str>>) -> Provider {
        Provider {
            host: DEFAULT_HOST.into(),
            namespace: "hashicorp".into(),
            ty: ty.into(),
        }
    }

    /// A provider that is part of the language: `terraform.io/builtin/NAME`.
    pub fn builtin(ty: impl Into<Arc<str>>) -> Provider {
        Provider {
            host: BUILTIN_HOST.into(),
            namespace: "builtin".into(),
            ty: ty.into(),
        }
    }

    /// The provider that a local name without a `required_providers` entry means.
    #[must_use]
    pub fn implied(local_name: &str) -> Provider {
        if local_name == "terraform" {
            Provider::builtin("terraform")
        } else {
            Provider::default_for(local_name)
        }
    }

    /// Whether this is part of the language.
    #[must_use]
    pub fn is_builtin(&self) -> bool {
        &*self.host == BUILTIN_HOST && &*self.namespace == "builtin"
    }

    /// The address in its short form: without the host if it is the default one.
    #[must_use]
    pub fn for_display(&self) -> String {
        if &*self.host == DEFAULT_HOST {
            format!("{}/{}", self.namespace, self.ty)
        } else {
            self.to_string()
        }
    }

    /// Reads a source address of one, two or three parts.
    pub fn parse(text: &str) -> Result<Provider, ParseError> {
        let parts: Vec<&str> = text.split('/').collect();
        let (host, namespace, ty) = match parts.as_slice() {
            [ty] => (DEFAULT_HOST, "hashicorp", *ty),
            [namespace, ty] => (DEFAULT_HOST, *namespace, *ty),
            [host, namespace, ty] => (*host, *namespace, *ty),
            _ => {
                return Err(ParseError::new(
                    "Invalid provider source string",
                    "The \"source\" attribute must be in the format \"[hostname/][namespace/]name\"",
                ));
            }
        };
        let host = parse::host(host)?;
        // The namespace "-" stands in states from before namespaces existed.
        let namespace = if namespace == "-" {
            "-".to_owned()
        } else {
            parse::provider_part(namespace, "namespace")?
        };
        let ty = parse::provider_part(ty, "type")?;
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

/// A provider configuration as a module speaks of it: `aws`, `aws.west`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocalProviderConfig {
    /// The local name.
    pub name: Arc<str>,
    /// The alias, for additional configurations.
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

/// A provider configuration in the module that declares it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AbsProviderConfig {
    pub module: Module,
    pub provider: Provider,
    /// The alias, for additional configurations.
    pub alias: Option<Arc<str>>,
}

impl AbsProviderConfig {
    /// The root module's default configuration of a provider.
    #[must_use]
    pub fn root(provider: Provider) -> AbsProviderConfig {
        AbsProviderConfig {
            module: Module::root(),
            provider,
            alias: None,
        }
    }
}

/// `module.x.provider["host/namespace/type"].alias`, as the state file has it.
impl fmt::Display for AbsProviderConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.module.is_root() {
            write!(f, "{}.", self.module)?;
        }
        write!(f, "provider[\"{}\"]", self.provider)?;
        if let Some(alias) = &self.alias {
            write!(f, ".{alias}")?;
        }
        Ok(())
    }
}
