//! The repository template of an OCI mirror, which maps a provider to its repository.

use std::fmt;

use addrs::Provider;
use oci::{OciError, Repository};

use crate::provider_pattern::Pattern;

/// Text with `${hostname}`, `${namespace}` and `${type}`, which gives `HOST/REPOSITORY` for every provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryTemplate {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Symbol(Symbol),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Symbol {
    Hostname,
    Namespace,
    Type,
}

/// Reason why a template is not valid. The text is a clause without a full stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    #[error("the repository template \"{template}\" has a \"{open}\" without a \"}}\"")]
    Open {
        template: String,
        /// Opening of a sequence: `${` or `{`.
        open: &'static str,
    },
    /// Name in a sequence that is not one of the three symbols.
    #[error(
        "the repository template may refer to {open}hostname}}, {open}namespace}} and {open}type}}, and not to {open}{symbol}}}"
    )]
    Symbol {
        symbol: String,
        /// Opening of a sequence: `${` or `{`.
        open: &'static str,
    },
    /// The template does not refer to a part of the address that differs between the providers.
    #[error(
        "the repository template must refer to ${{{symbol}}}, unless \"include\" selects exactly one {what}: otherwise several providers \
         would have the same repository"
    )]
    Missing {
        symbol: &'static str,
        /// Description of the missing part, for messages.
        what: &'static str,
    },
    /// The result is not the address of a repository.
    #[error("the repository template does not give the address of a repository: {0}")]
    Repository(#[from] OciError),
}

impl Symbol {
    const ALL: [Symbol; 3] = [Symbol::Hostname, Symbol::Namespace, Symbol::Type];

    fn name(self) -> &'static str {
        match self {
            Symbol::Hostname => "hostname",
            Symbol::Namespace => "namespace",
            Symbol::Type => "type",
        }
    }

    fn what(self) -> &'static str {
        match self {
            Symbol::Hostname => "host of registries",
            Symbol::Namespace => "namespace",
            Symbol::Type => "type of provider",
        }
    }

    fn value_in(self, provider: &Provider) -> &str {
        match self {
            Symbol::Hostname => &provider.host,
            Symbol::Namespace => &provider.namespace,
            Symbol::Type => &provider.ty,
        }
    }
}

impl RepositoryTemplate {
    /// Parses a template with `${hostname}`, `${namespace}` and `${type}`. `$${` is a literal `${`, as in HCL templates.
    ///
    /// # Errors
    ///
    /// A `${` is not closed, the template refers to another symbol, or its result is not the address of a repository.
    pub fn parse(text: &str) -> Result<RepositoryTemplate, TemplateError> {
        RepositoryTemplate::with_sequences(text, "${")
    }

    /// Parses a template with `{hostname}`, `{namespace}` and `{type}`, the form of the command line: a shell would expand `${hostname}`.
    ///
    /// # Errors
    /// A `{` is not closed, the template refers to another symbol, or its result is not the address of a repository.
    pub fn parse_argument(text: &str) -> Result<RepositoryTemplate, TemplateError> {
        RepositoryTemplate::with_sequences(text, "{")
    }

    fn with_sequences(text: &str, open: &'static str) -> Result<RepositoryTemplate, TemplateError> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once(open) {
            literal.push_str(before);
            if open == "${" && literal.ends_with('$') {
                literal.push('{');
                rest = after;
                continue;
            }
            let (inner, behind) = after.split_once('}').ok_or_else(|| TemplateError::Open {
                template: text.to_owned(),
                open,
            })?;
            let symbol = Symbol::ALL.into_iter().find(|symbol| symbol.name() == inner.trim());
            let symbol = symbol.ok_or_else(|| TemplateError::Symbol {
                symbol: inner.trim().to_owned(),
                open,
            })?;
            if !literal.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut literal)));
            }
            parts.push(Part::Symbol(symbol));
            rest = behind;
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Text(literal));
        }
        let template = RepositoryTemplate {
            text: text.to_owned(),
            parts,
        };
        // The template is filled for a sample provider, to find errors in the fixed parts.
        template.fill(|symbol| match symbol {
            Symbol::Hostname => "example.com",
            Symbol::Namespace | Symbol::Type => "a",
        })?;
        Ok(template)
    }

    /// Checks that providers that match these patterns get different repositories.
    ///
    /// # Errors
    ///
    /// The template does not refer to a part of the address that the patterns leave open.
    pub fn distinguishes(&self, include: &[Pattern]) -> Result<(), TemplateError> {
        for symbol in Symbol::ALL {
            let fixed = |pattern: &Pattern| match symbol {
                Symbol::Hostname => pattern.host.clone(),
                Symbol::Namespace => pattern.namespace.clone(),
                Symbol::Type => pattern.ty.clone(),
            };
            let first = include.first().and_then(fixed);
            // The template may omit a part if all patterns fix that part to the same text.
            let one = first.is_some() && include.iter().all(|pattern| fixed(pattern) == first);
            if !one && !self.parts.contains(&Part::Symbol(symbol)) {
                return Err(TemplateError::Missing {
                    symbol: symbol.name(),
                    what: symbol.what(),
                });
            }
        }
        Ok(())
    }

    /// Returns the repository of a provider.
    ///
    /// # Errors
    ///
    /// The parts of the address give no valid repository name.
    pub fn repository(&self, provider: &Provider) -> Result<Repository, OciError> {
        self.fill(|symbol| symbol.value_in(provider))
    }

    fn fill<'v>(&self, value: impl Fn(Symbol) -> &'v str) -> Result<Repository, OciError> {
        let filled: String = self
            .parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => text,
                Part::Symbol(symbol) => value(*symbol),
            })
            .collect();
        Repository::parse(&filled)
    }
}

impl fmt::Display for RepositoryTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories_of_providers() {
        let of = |template: &str, provider: &str| {
            let template = RepositoryTemplate::parse(template).unwrap();
            template
                .repository(&Provider::parse(provider).unwrap())
                .map(|repository| repository.to_string())
                .map_err(|error| error.to_string())
        };
        assert_eq!(
            of("r.example:5000/p/${hostname}/${ namespace }-${type}", "a.com/ns/net"),
            Ok("r.example:5000/p/a.com/ns-net".to_owned())
        );
        for (bad, why) in [
            ("r.example/${namespace", "without a \"}\""),
            ("r.example/${name}", "not to ${name}"),
            ("r.example/${upper(type)}", "not to ${upper(type)}"),
            ("r.example", "HOST/REPOSITORY"),
            ("r.example/$${type}", "lower-case"),
            ("r.example/P/${type}", "lower-case"),
            ("", "HOST/REPOSITORY"),
        ] {
            let error = RepositoryTemplate::parse(bad).unwrap_err().to_string();
            assert!(error.contains(why), "{bad}: {error}");
        }
    }

    #[test]
    fn the_form_of_the_command_line() {
        let template = RepositoryTemplate::parse_argument("r.example/{namespace}/{type}").unwrap();
        let provider = Provider::parse("a.com/ns/net").unwrap();
        assert_eq!(template.repository(&provider).unwrap().to_string(), "r.example/ns/net");
        for (bad, why) in [
            (
                "r.example/{name}",
                "refer to {hostname}, {namespace} and {type}, and not to {name}",
            ),
            ("r.example/{type", "a \"{\" without a \"}\""),
            ("r.example/${type}", "lower-case"),
        ] {
            let error = RepositoryTemplate::parse_argument(bad).unwrap_err().to_string();
            assert!(error.contains(why), "{bad}: {error}");
        }
    }

    #[test]
    fn what_patterns_leave_open_must_be_in_the_template() {
        let check = |template: &str, include: &[&str]| {
            let include: Vec<Pattern> = include.iter().map(|text| Pattern::parse(text).unwrap()).collect();
            let checked = RepositoryTemplate::parse(template).unwrap().distinguishes(&include);
            checked.map_err(|error| error.to_string())
        };
        let (all, two, one) = (
            "r.example/${hostname}/${namespace}/${type}",
            "r.example/${namespace}/${type}",
            "r.example/${type}",
        );
        assert!(check(all, &[]).is_ok());
        assert!(check(two, &[]).unwrap_err().contains("${hostname}"));
        assert!(check(two, &["a.com/*/*"]).is_ok());
        assert!(check(two, &["a.com/*/*", "a.com/x/*"]).is_ok());
        assert!(
            check(two, &["a.com/*/*", "b.com/*/*"])
                .unwrap_err()
                .contains("${hostname}")
        );
        assert!(check(one, &["a.com/*/*"]).unwrap_err().contains("${namespace}"));
        assert!(check(one, &["a.com/x/*"]).is_ok());
        assert!(check("r.example/one", &["a.com/x/*"]).unwrap_err().contains("${type}"));
        assert!(check("r.example/one", &["a.com/x/y"]).is_ok());
    }
}
