//! Parser of addresses in command line arguments and state files.

use std::sync::Arc;

pub use crate::names::{ParseError, is_identifier};
use crate::names::{RESERVED, provider_type};

use crate::{
    AbsActionInstance, AbsProviderConfig, AbsResource, AbsResourceInstance, Action, InstanceKey, Mode, Module,
    ModuleInstance, Provider, Resource, Target,
};

/// One step of an address: a name or a key.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Name(Arc<str>),
    Key(InstanceKey),
}

fn steps(text: &str) -> Result<Vec<Step>, ParseError> {
    let mut out = Vec::new();
    let mut rest = text;
    let mut first = true;
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            if first {
                return Err(ParseError::address("An address must begin with a name."));
            }
            let (key, after) = key(inside)?;
            out.push(Step::Key(key));
            rest = after;
        } else {
            if !first {
                rest = rest
                    .strip_prefix('.')
                    .ok_or_else(|| ParseError::address(format!("A dot or a bracket is expected before \"{rest}\".")))?;
            }
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let name = &rest[..end];
            if !is_identifier(name) {
                return Err(ParseError::address(format!("\"{name}\" is not a valid name.")));
            }
            out.push(Step::Name(name.into()));
            rest = &rest[end..];
        }
        first = false;
    }
    Ok(out)
}

/// Parses an instance key after its opening bracket. Returns the key and the text after the closing bracket.
fn key(text: &str) -> Result<(InstanceKey, &str), ParseError> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text
            .find(']')
            .ok_or_else(|| ParseError::address("A closing bracket is missing."))?;
        let digits = &text[..end];
        let index = digits.parse::<u64>().map_err(|_| {
            ParseError::address(format!(
                "The key \"{digits}\" must be a whole number or a quoted string."
            ))
        })?;
        return Ok((InstanceKey::Int(index), &text[end + 1..]));
    };
    let bad = || ParseError::address("A quoted key is not closed, or has an escape that is not valid.");
    let mut out = String::new();
    let mut chars = quoted.char_indices().peekable();
    while let Some((i, c)) = chars.next() {
        match c {
            '"' => {
                let rest = quoted[i + 1..].strip_prefix(']').ok_or_else(bad)?;
                return Ok((InstanceKey::String(out.into()), rest));
            }
            // The escapes of quoted strings in HCL, which `text::quoted` writes.
            '\\' => match chars.next().ok_or_else(bad)?.1 {
                'n' => out.push('\n'),
                'r' => out.push('\r'),
                't' => out.push('\t'),
                '"' => out.push('"'),
                '\\' => out.push('\\'),
                u @ ('u' | 'U') => {
                    let width = if u == 'u' { 4 } else { 8 };
                    let mut code = 0;
                    for _ in 0..width {
                        let digit = chars.next().and_then(|(_, c)| c.to_digit(16)).ok_or_else(bad)?;
                        code = code * 16 + digit;
                    }
                    out.push(char::from_u32(code).ok_or_else(bad)?);
                }
                _ => return Err(bad()),
            },
            '$' | '%' if quoted[i + 1..].starts_with(c) && quoted[i + 2..].starts_with('{') => {
                out.push(c);
                chars.next();
            }
            '$' | '%' if quoted[i + 1..].starts_with('{') => {
                return Err(ParseError::address("An instance key cannot contain a template."));
            }
            c => out.push(c),
        }
    }
    Err(bad())
}

/// Splits off the module path at the beginning.
fn module_prefix(steps: &[Step]) -> Result<(ModuleInstance, &[Step]), ParseError> {
    let mut module = ModuleInstance::root();
    let mut rest = steps;
    while let [Step::Name(word), after @ ..] = rest {
        if &**word != "module" {
            break;
        }
        let [Step::Name(name), after @ ..] = after else {
            return Err(ParseError::address(
                "The word \"module\" must be followed by a module name.",
            ));
        };
        let (key, after) = match after {
            [Step::Key(key), after @ ..] => (key.clone(), after),
            after => (InstanceKey::None, after),
        };
        module = module.child(name.clone(), key);
        rest = after;
    }
    Ok((module, rest))
}

/// Splits off the resource at the beginning.
fn resource(steps: &[Step]) -> Result<(Resource, &[Step]), ParseError> {
    let (mode, rest) = match steps {
        [Step::Name(w), rest @ ..] if &**w == "data" => (Mode::Data, rest),
        [Step::Name(w), rest @ ..] if &**w == "ephemeral" => (Mode::Ephemeral, rest),
        [Step::Name(w), rest @ ..] if &**w == "resource" => (Mode::Managed, rest),
        [Step::Name(w), ..] if RESERVED.contains(&&**w) => {
            return Err(ParseError::address(format!(
                "The word \"{w}\" is reserved and cannot begin the address of a resource. Of a resource whose type has this name, \
                 write \"resource.{w}\"."
            )));
        }
        rest => (Mode::Managed, rest),
    };
    let [Step::Name(ty), Step::Name(name), rest @ ..] = rest else {
        return Err(ParseError::address(
            "A resource address must be a resource type, a dot, and a resource name.",
        ));
    };
    Ok((
        Resource {
            mode,
            ty: ty.clone(),
            name: name.clone(),
        },
        rest,
    ))
}

/// Parses the address of a resource instance. An address without a key is that of the single instance.
pub fn resource_instance(text: &str) -> Result<AbsResourceInstance, ParseError> {
    let steps = steps(text)?;
    let (module, rest) = module_prefix(&steps)?;
    let (resource, rest) = resource(rest)?;
    let key = match rest {
        [] => InstanceKey::None,
        [Step::Key(key)] => key.clone(),
        _ => return Err(ParseError::address("Nothing may follow a resource instance.")),
    };
    Ok(AbsResourceInstance {
        module,
        resource: resource.instance(key),
    })
}

/// Parses the address of a module instance in the state file's format; the empty text is the root.
pub fn module_instance(text: &str) -> Result<ModuleInstance, ParseError> {
    let steps = steps(text)?;
    match module_prefix(&steps)? {
        (module, []) => Ok(module),
        _ => Err(ParseError::address(format!(
            "\"{text}\" is not the address of a module."
        ))),
    }
}

/// Parses the address of a resource of the configuration, as in `dependencies` of the state file. Keys of modules are
/// dropped.
pub fn config_resource(text: &str) -> Result<crate::ConfigResource, ParseError> {
    let steps = steps(text)?;
    let (module, rest) = module_prefix(&steps)?;
    match resource(rest)? {
        (resource, []) => Ok(resource.in_module(&module.module())),
        _ => Err(ParseError::address(format!(
            "\"{text}\" is not the address of a resource."
        ))),
    }
}

/// Parses an argument of `-target` and similar options. An address without any key selects all instances.
pub fn target(text: &str) -> Result<Target, ParseError> {
    let steps = steps(text)?;
    let keyed = |m: &ModuleInstance| m.0.iter().any(|s| !s.key.is_none());
    let (module, rest) = module_prefix(&steps)?;
    if rest.is_empty() {
        if module.is_root() {
            return Err(ParseError::address("An address is required."));
        }
        // If any step has a key, the address means one instance, so steps without a key mean the instance without a key.
        return Ok(if keyed(&module) {
            Target::ModuleInstance(module)
        } else {
            Target::Module(module.module())
        });
    }
    let (resource, rest) = resource(rest)?;
    match rest {
        [] if keyed(&module) => Ok(Target::Resource(AbsResource { module, resource })),
        [] => Ok(Target::ConfigResource(resource.in_module(&module.module()))),
        [Step::Key(key)] => Ok(Target::ResourceInstance(AbsResourceInstance {
            module,
            resource: resource.instance(key.clone()),
        })),
        _ => Err(ParseError::address("Nothing may follow a resource instance.")),
    }
}

/// Parses the address of an action for `-invoke`. An address without a key means all instances.
pub fn action(text: &str) -> Result<AbsActionInstance, ParseError> {
    let steps = steps(text)?;
    let (module, rest) = module_prefix(&steps)?;
    let (ty, name, rest) = match rest {
        [] => {
            return Err(ParseError::address(
                "An action must be named, after its module if it is in one.",
            ));
        }
        [Step::Name(word), Step::Name(ty), Step::Name(name), rest @ ..] if &**word == "action" => (ty, name, rest),
        [Step::Name(word), ..] if &**word == "action" => {
            return Err(ParseError::address(
                "After \"action\" come two names, each with a dot before it: the type and the name of the action.",
            ));
        }
        _ => return Err(ParseError::address("The address of an action begins with \"action\".")),
    };
    let key = match rest {
        [] => InstanceKey::None,
        [Step::Key(key)] => key.clone(),
        [Step::Name(_)] => {
            return Err(ParseError::address(
                "The key of an action instance stands in square brackets.",
            ));
        }
        _ => return Err(ParseError::address("Nothing may follow an action instance.")),
    };
    let action = Action {
        ty: ty.clone(),
        name: name.clone(),
    };
    Ok(action.instance(key).absolute(&module))
}

/// Parses the address of a provider configuration in the state file's format.
pub fn provider_config(text: &str) -> Result<AbsProviderConfig, ParseError> {
    let bad = || {
        ParseError::new(
            "Invalid provider configuration address",
            format!("\"{text}\" is not one."),
        )
    };
    // The form with brackets is tried first: in `module.provider.provider["…"]`, the form with a dot would match the module name.
    let at = text
        .find("provider[\"")
        .or_else(|| text.find("provider."))
        .ok_or_else(bad)?;
    let module = match text[..at].strip_suffix('.') {
        Some(module) => module_instance(module)?.module(),
        None if at == 0 => Module::root(),
        None => return Err(bad()),
    };
    let rest = &text[at..];
    let (provider, rest) = if let Some(rest) = rest.strip_prefix("provider[\"") {
        let (source, rest) = rest.split_once("\"]").ok_or_else(bad)?;
        (Provider::parse(source)?, rest)
    } else {
        // This is the format from before source addresses: `provider.aws.west`.
        let rest = rest.strip_prefix("provider.").ok_or_else(bad)?;
        let end = rest.find('.').unwrap_or(rest.len());
        (Provider::implied(&provider_type(&rest[..end])?), &rest[end..])
    };
    let (rest, instance) = match rest.split_once('[') {
        // Only a block with an alias can have `for_each`, whose keys are strings.
        Some((rest, text)) if rest.starts_with('.') => match key(text)? {
            (InstanceKey::String(key), "") => (rest, Some(key)),
            _ => return Err(bad()),
        },
        _ => (rest, None),
    };
    let alias = match rest.strip_prefix('.') {
        Some(alias) if is_identifier(alias) => Some(alias.into()),
        None if rest.is_empty() => None,
        _ => return Err(bad()),
    };
    Ok(AbsProviderConfig::new(module, provider, alias).instance(instance))
}

#[cfg(test)]
mod tests {
    #[test]
    fn addresses_of_actions_have_a_type_a_name_and_perhaps_a_key() {
        for text in [
            "action.local_command.a",
            "action.t.a[0]",
            "module.m[\"k\"].module.n.action.t.a[\"x.y\"]",
        ] {
            assert_eq!(action(text).map(|a| a.to_string()).as_deref(), Ok(text));
        }
        let unnamed = "An action must be named, after its module if it is in one.";
        let other = "The address of an action begins with \"action\".";
        for (text, why) in [
            ("", unnamed),
            ("module.m", unnamed),
            ("local_command.a", other),
            (
                "action.a",
                "After \"action\" come two names, each with a dot before it: the type and the name of the action.",
            ),
            (
                "action.t.a.b",
                "The key of an action instance stands in square brackets.",
            ),
            ("action.t.a[0].b", "Nothing may follow an action instance."),
            ("data.t.a", other),
        ] {
            assert_eq!(action(text), Err(ParseError::address(why)), "{text}");
        }
    }

    use super::*;
    use crate::names::provider_namespace;

    #[test]
    fn underscores_are_part_of_namespaces_and_not_of_types() {
        for text in ["a_b", "a__b", "a-_b", "A_1", "é"] {
            assert_eq!(provider_namespace(text), Ok(text.to_lowercase()));
        }
        for text in ["", "_a", "a_", "-a", "a-", "a--b", "a.b"] {
            let error = provider_namespace(text).unwrap_err().detail;
            assert!(error.contains("underscores and single dashes"), "{error}");
        }
        assert_eq!(provider_type("A-b").as_deref(), Ok("a-b"));
        for text in ["", "a_b", "-a", "a-", "a--b"] {
            let error = provider_type(text).unwrap_err().detail;
            assert!(!error.contains("underscore"), "{error}");
        }
    }

    #[test]
    fn resource_instances_round_trip() {
        for text in [
            "aws_x.a",
            "data.aws_x.a[3]",
            "module.m[\"k.[x]\\\"\"].module.n.aws_x.a[\"z\"]",
            "module.m[0].ephemeral.t.n",
        ] {
            assert_eq!(resource_instance(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn bad_address_is_refused_with_the_part_that_is_wrong() {
        let incomplete = "A resource address must be a resource type, a dot, and a resource name.";
        let more = "Nothing may follow a resource instance.";
        for (text, why) in [
            ("", incomplete),
            ("a", incomplete),
            ("module.m", incomplete),
            ("a.b.c", more),
            ("a.b[0][1]", more),
            ("a.b[", "A closing bracket is missing."),
            ("a.b[x]", "The key \"x\" must be a whole number or a quoted string."),
            (
                "a.b[\"x]",
                "A quoted key is not closed, or has an escape that is not valid.",
            ),
            ("[0]", "An address must begin with a name."),
            ("a..b", "\"\" is not a valid name."),
            ("1a.b", "\"1a\" is not a valid name."),
        ] {
            assert_eq!(resource_instance(text), Err(ParseError::address(why)), "{text}");
        }
    }

    #[test]
    fn targets_select_by_what_is_written() {
        let all = target("module.m").unwrap();
        let one = target("module.m[1]").unwrap();
        let instance = resource_instance("module.m[1].module.n.t.a[0]").unwrap();
        assert!(all.selects(&instance) && one.selects(&instance));
        assert!(!target("module.m[0]").unwrap().selects(&instance));
        assert!(target("module.m.module.n.t.a").unwrap().selects(&instance));
        assert!(!target("t.a").unwrap().selects(&instance));
    }

    #[test]
    fn types_with_the_name_of_something_else_round_trip() {
        for text in [
            "resource.module.a",
            "module.m.resource.data.b[0]",
            "resource.resource.c",
            "resource.local.d",
        ] {
            assert_eq!(resource_instance(text).unwrap().to_string(), text);
        }
        assert_eq!(
            resource_instance("resource.null_resource.a").unwrap().to_string(),
            "null_resource.a"
        );
    }

    #[test]
    fn provider_configurations_round_trip() {
        for text in [
            "provider[\"registry.terraform.io/hashicorp/aws\"]",
            "module.a.module.b.provider[\"example.com/x/aws\"].west",
            "provider[\"example.com/x/aws\"].west[\"a.b\\\"]\"]",
        ] {
            assert_eq!(provider_config(text).unwrap().to_string(), text);
        }
        assert_eq!(
            provider_config("provider.aws.west").unwrap().to_string(),
            "provider[\"registry.terraform.io/hashicorp/aws\"].west"
        );
        assert_eq!(
            provider_config("provider.Aws").unwrap(),
            provider_config("provider.aws").unwrap()
        );
        for text in ["[\"k\"]", ".west[0]", ".west[\"k\"].x", ".west[\"k"] {
            let text = format!("provider[\"example.com/x/aws\"]{text}");
            assert!(provider_config(&text).is_err(), "{text}");
        }
        for (text, part) in [
            ("provider.-.west", "-"),
            ("provider.", ""),
            ("provider.a b", "a b"),
            ("provider.a\"b", "a\"b"),
        ] {
            let refused = provider_config(text).unwrap_err();
            assert_eq!(refused.summary, "Invalid provider type", "{text}");
            assert!(
                refused.detail.starts_with(&format!("\"{part}\" is not a valid")),
                "{refused}"
            );
        }
    }

    #[test]
    fn provider_sources() {
        assert_eq!(
            Provider::parse("Foo/bar").unwrap().to_string(),
            "registry.terraform.io/foo/bar"
        );
        assert_eq!(Provider::parse("bar").unwrap().for_display(), "hashicorp/bar");
        for (text, summary) in [
            ("", "Invalid provider type"),
            ("a/b/c/d", "Invalid provider source string"),
            ("a--b/c", "Invalid provider namespace"),
            ("-a/b", "Invalid provider namespace"),
            ("x/terraform-provider-y", "Invalid provider type"),
            ("ho st/a/b", "Invalid provider source hostname"),
        ] {
            assert_eq!(Provider::parse(text).unwrap_err().summary, summary, "{text}");
        }
    }
}
