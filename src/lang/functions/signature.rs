//! Signatures of functions, for tools: names, parameters, types, and a sentence about each.

use std::collections::BTreeMap;

use cty::Type;
use syntax::diag::CalledFunction;

use super::{LAZY, Parameter, Returns, TABLE};

/// Signature and description of a built-in function, for tools.
#[derive(Clone, Debug, PartialEq)]
pub struct Signature {
    pub description: &'static str,
    /// Result type; if it depends on the arguments, the part common to all results.
    pub returns: Type,
    pub parameters: Vec<SignatureParameter>,
    /// Parameter of all further arguments.
    pub variadic: Option<SignatureParameter>,
}

/// A parameter in a [`Signature`].
#[derive(Clone, Debug, PartialEq)]
pub struct SignatureParameter {
    pub name: &'static str,
    /// Purpose, if the name does not say it.
    pub description: Option<&'static str>,
    /// True if null is accepted.
    pub nullable: bool,
    /// Type that arguments are converted to.
    pub ty: Type,
}

/// Returns the signatures of all functions except the removed ones, `list` and `map`.
#[must_use]
pub fn all() -> BTreeMap<&'static str, Signature> {
    let eager = TABLE.keys().copied().filter(|name| !matches!(*name, "list" | "map"));
    eager
        .chain(LAZY.iter().copied())
        .filter_map(|name| Some((name, signature(name)?)))
        .collect()
}

/// Returns the signature of a built-in function for messages about a call; `None` if there is no function of this
/// name.
pub(crate) fn called(name: &str, called_as: &str) -> Option<CalledFunction> {
    let told = |name: &str, ty: Type| (name.to_owned(), ty);
    let (parameters, variadic, returns) = match LAZY.iter().find(|n| **n == name) {
        // Lazy functions take expressions, so their parameters have no types here.
        Some(lazy) => {
            let signature = signature(lazy)?;
            let told = |p: SignatureParameter| told(p.name, Type::Dynamic);
            let returns = if *lazy == "can" { Type::Bool } else { Type::Dynamic };
            (
                signature.parameters.into_iter().map(told).collect(),
                signature.variadic.map(told),
                returns,
            )
        }
        None => {
            let function = TABLE.get(name)?;
            let told = |p: &Parameter| told(p.name, p.ty());
            (
                function.parameters.iter().map(told).collect(),
                function.variadic.as_ref().map(told),
                returns(name, function.returns),
            )
        }
    };
    Some(CalledFunction {
        called_as: called_as.to_owned(),
        name: name.to_owned(),
        parameters,
        variadic,
        returns,
    })
}

fn signature(name: &'static str) -> Option<Signature> {
    let (_, description) = DESCRIPTIONS.iter().find(|(n, _)| *n == name)?;
    let described = |parameter: &str| {
        let found = PARAMETERS.iter().find(|(f, p, _)| *f == name && *p == parameter);
        found.map(|(.., text)| *text)
    };
    let plain = |parameter: &'static str| SignatureParameter {
        name: parameter,
        description: described(parameter),
        nullable: false,
        ty: Type::Dynamic,
    };
    let (returns, parameters, variadic) = match name {
        "can" => (Type::Bool, vec![plain("expression")], None),
        "convert" => {
            let value = SignatureParameter {
                nullable: true,
                ..plain("value")
            };
            (Type::Dynamic, vec![value, plain("type")], None)
        }
        "try" => (Type::Dynamic, Vec::new(), Some(plain("expressions"))),
        "templatestring" => {
            let template = SignatureParameter {
                ty: Type::String,
                ..plain("template")
            };
            (Type::String, vec![template, plain("vars")], None)
        }
        _ => {
            let function = TABLE.get(name)?;
            let told = |p: &Parameter| SignatureParameter {
                nullable: p.null,
                ty: p.ty(),
                ..plain(p.name)
            };
            (
                returns(name, function.returns),
                function.parameters.iter().map(told).collect(),
                function.variadic.as_ref().map(told),
            )
        }
    };
    Some(Signature {
        description,
        returns,
        parameters,
        variadic,
    })
}

fn returns(name: &str, declared: Returns) -> Type {
    match (name, declared) {
        ("format" | "formatlist" | "contains" | "index", _) => Type::Dynamic,
        ("chunklist", _) => Type::list(Type::list(Type::Dynamic)),
        ("distinct" | "matchkeys" | "regexall" | "tolist", _) => Type::list(Type::Dynamic),
        ("setintersection" | "setsubtract" | "setunion" | "toset", _) => Type::set(Type::Dynamic),
        ("tomap", _) => Type::map(Type::Dynamic),
        ("tostring", _) | (_, Returns::String) => Type::String,
        ("tonumber", _) | (_, Returns::Number) => Type::Number,
        ("tobool", _) | (_, Returns::Bool) => Type::Bool,
        (_, Returns::ListOfString) => Type::list(Type::String),
        (_, Returns::ListOfNumber) => Type::list(Type::Number),
        (_, Returns::SetOfString) => Type::set(Type::String),
        (_, Returns::MapOfListOfString) => Type::map(Type::list(Type::String)),
        (_, Returns::Any | Returns::By(_)) => Type::Dynamic,
    }
}

const DESCRIPTIONS: &[(&str, &str)] = &[
    (
        "abs",
        "The absolute value of a number: itself, or its negation if it is negative.",
    ),
    (
        "abspath",
        "The absolute form of a path. A relative path is taken to begin at the working directory; links are not followed.",
    ),
    (
        "alltrue",
        "Whether all elements are true; true for an empty list. A null element counts as false.",
    ),
    (
        "anytrue",
        "Whether at least one element is true; false for an empty list. A null element counts as false.",
    ),
    (
        "assumeequal",
        "The second argument, under the assumption that the first one will be equal to it.",
    ),
    (
        "assumelistlength",
        "A list that is assumed to have a length between two bounds.",
    ),
    (
        "assumelistlengthmax",
        "A list that is assumed to have at most a number of elements.",
    ),
    (
        "assumelistlengthmin",
        "A list that is assumed to have at least a number of elements.",
    ),
    (
        "assumemaplength",
        "A map that is assumed to have a length between two bounds.",
    ),
    (
        "assumemaplengthmax",
        "A map that is assumed to have at most a number of elements.",
    ),
    (
        "assumemaplengthmin",
        "A map that is assumed to have at least a number of elements.",
    ),
    ("assumenotnull", "A value that is assumed not to be null."),
    (
        "assumesetlength",
        "A set that is assumed to have a length between two bounds.",
    ),
    (
        "assumesetlengthmax",
        "A set that is assumed to have at most a number of elements.",
    ),
    (
        "assumesetlengthmin",
        "A set that is assumed to have at least a number of elements.",
    ),
    ("assumestringprefix", "A string that is assumed to begin with a prefix."),
    (
        "base64decode",
        "The text that a base64 string encodes, which must be UTF-8.",
    ),
    ("base64encode", "The bytes of a string in UTF-8, as base64."),
    ("base64gunzip", "The string that base64 of a gzip archive holds."),
    ("base64gzip", "A string packed by gzip, as base64."),
    (
        "base64sha256",
        "The SHA-256 digest of a string, as base64 of its raw bytes.",
    ),
    (
        "base64sha512",
        "The SHA-512 digest of a string, as base64 of its raw bytes.",
    ),
    ("basename", "The last part of a path."),
    (
        "bcrypt",
        "A salted hash of a password by bcrypt, another one each time it is called.",
    ),
    ("can", "Whether an expression can be evaluated without an error."),
    ("ceil", "The nearest whole number that is not smaller."),
    ("chomp", "A string without the line breaks at its end."),
    (
        "chunklist",
        "A list cut into lists of a given length; the last one may be shorter.",
    ),
    (
        "cidrcontains",
        "Whether an address or a network lies in another network.",
    ),
    ("cidrhost", "The address of a host in a network, by its number."),
    ("cidrnetmask", "The mask of an IPv4 network in dotted form."),
    (
        "cidrsubnet",
        "The address range of one subnet of a network, by its number.",
    ),
    (
        "cidrsubnets",
        "The address ranges of several subnets of a network, one behind the other.",
    ),
    (
        "coalesce",
        "The first argument that is neither null nor an empty string.",
    ),
    ("coalescelist", "The first argument that is a list with elements."),
    ("compact", "A list of strings without those that are empty or null."),
    ("concat", "Several lists put together, one behind the other."),
    (
        "contains",
        "Whether a list, set or tuple has an element equal to a value.",
    ),
    (
        "convert",
        "A value converted to a type, which is written as the type of a variable is.",
    ),
    (
        "csvdecode",
        "The records of a CSV text as objects, named by its first line.",
    ),
    ("dirname", "A path without its last part."),
    ("distinct", "A list without elements that equal an earlier one."),
    (
        "element",
        "The element of a list at an index, which starts again from 0 where the list ends.",
    ),
    ("endswith", "Whether a string ends with another."),
    (
        "ephemeralasnull",
        "A value in which everything ephemeral is replaced by null.",
    ),
    ("file", "The text of a file, which must be UTF-8."),
    ("filebase64", "The bytes of a file, as base64."),
    (
        "filebase64sha256",
        "The SHA-256 digest of a file, as base64 of its raw bytes.",
    ),
    (
        "filebase64sha512",
        "The SHA-512 digest of a file, as base64 of its raw bytes.",
    ),
    ("fileexists", "Whether there is a file at a path."),
    ("filemd5", "The MD5 digest of a file, in hexadecimal digits."),
    (
        "fileset",
        "The paths of the files below a directory that match a pattern.",
    ),
    ("filesha1", "The SHA-1 digest of a file, in hexadecimal digits."),
    ("filesha256", "The SHA-256 digest of a file, in hexadecimal digits."),
    ("filesha512", "The SHA-512 digest of a file, in hexadecimal digits."),
    (
        "flatten",
        "A list in which lists among the elements are replaced by their own elements, at any depth.",
    ),
    ("floor", "The nearest whole number that is not greater."),
    (
        "format",
        "A string made from a pattern, in which verbs are replaced by the other arguments.",
    ),
    ("formatdate", "A time written in a format of your choice."),
    (
        "formatlist",
        "A list of strings made from a pattern, one for each element of the list arguments.",
    ),
    ("indent", "A string with blanks before every line but the first."),
    ("index", "The index of the first element of a list that equals a value."),
    ("issensitive", "Whether a value is marked as sensitive."),
    ("join", "Strings put together, with a separator between them."),
    ("jsondecode", "The value of a JSON text."),
    ("jsonencode", "A value as JSON text."),
    (
        "keys",
        "The keys of a map or the attribute names of an object, in lexical order.",
    ),
    (
        "length",
        "The number of elements of a collection, or of characters of a string.",
    ),
    ("log", "The logarithm of a number to a base."),
    (
        "lookup",
        "The element of a map with a key, or a default where there is none.",
    ),
    ("lower", "A string in lower case."),
    (
        "matchkeys",
        "Those elements of a list whose counterparts in another list are in a third.",
    ),
    ("max", "The greatest of several numbers."),
    ("md5", "The MD5 digest of a string, in hexadecimal digits."),
    (
        "merge",
        "Several maps or objects put together; of equal keys the last one counts.",
    ),
    ("min", "The smallest of several numbers."),
    (
        "nonsensitive",
        "A value that is no longer marked as sensitive. Use it only where the value discloses nothing.",
    ),
    ("one", "The only element of a collection, or null if it is empty."),
    ("parseint", "The whole number of a string in a base between 2 and 62."),
    (
        "pathexpand",
        "A path with the home directory in place of a leading \"~\".",
    ),
    ("plantimestamp", "The time of planning, in UTC as RFC 3339 writes it."),
    ("pow", "A number raised to a power."),
    ("range", "Numbers from a start up to a limit, a step apart."),
    (
        "regex",
        "The first part of a string that a regular expression matches, or the parts its groups match.",
    ),
    ("regexall", "All parts of a string that a regular expression matches."),
    (
        "replace",
        "A string with every occurrence of a part replaced; the part may be a regular expression between slashes.",
    ),
    ("reverse", "A sequence in the opposite order."),
    (
        "rsadecrypt",
        "The text of an RSA ciphertext, decrypted with a private key.",
    ),
    ("sensitive", "A value marked as sensitive, so that it is not shown."),
    ("setintersection", "The elements that several sets have in common."),
    ("setproduct", "All combinations of elements of several sets or lists."),
    ("setsubtract", "The elements of a set that are not in another."),
    ("setunion", "The elements that are in any of several sets."),
    ("sha1", "The SHA-1 digest of a string, in hexadecimal digits."),
    ("sha256", "The SHA-256 digest of a string, in hexadecimal digits."),
    ("sha512", "The SHA-512 digest of a string, in hexadecimal digits."),
    ("signum", "The sign of a whole number: -1, 0 or 1."),
    (
        "slice",
        "The elements of a list from one index up to another, which is not included.",
    ),
    ("sort", "A list of strings in the order of their bytes."),
    ("split", "The parts of a string between occurrences of a separator."),
    ("startswith", "Whether a string begins with another."),
    ("strcontains", "Whether a string has another as a part."),
    ("strrev", "A string with its characters in the opposite order."),
    ("substr", "A part of a string, by offset and length in characters."),
    ("sum", "The sum of several numbers."),
    ("templatefile", "The result of a template that is kept in a file."),
    (
        "templatestring",
        "The result of a template that is the value of a reference.",
    ),
    (
        "textdecodebase64",
        "The text that base64 encodes in a character encoding.",
    ),
    ("textencodebase64", "A text in a character encoding, as base64."),
    ("timeadd", "A time some duration later, or earlier."),
    ("timecmp", "How two times compare: -1, 0 or 1."),
    ("timestamp", "The present time, in UTC as RFC 3339 writes it."),
    ("title", "A string with the first letter of each word in upper case."),
    ("tobool", "A value converted to a bool."),
    ("tolist", "A value converted to a list."),
    ("tomap", "A value converted to a map."),
    ("tonumber", "A value converted to a number."),
    (
        "toset",
        "A value converted to a set, without duplicates and without order.",
    ),
    ("tostring", "A value converted to a string."),
    (
        "transpose",
        "A map of lists of strings with keys and elements exchanged.",
    ),
    (
        "trim",
        "A string without any of some characters at its beginning and end.",
    ),
    ("trimprefix", "A string without a part it may begin with."),
    ("trimspace", "A string without white space at its beginning and end."),
    ("trimsuffix", "A string without a part it may end with."),
    (
        "try",
        "The value of the first expression that can be evaluated without an error.",
    ),
    ("upper", "A string in upper case."),
    ("urldecode", "The string that the query of a URL encodes."),
    ("urlencode", "A string encoded for the query of a URL."),
    ("uuid", "A random identifier, another one each time it is called."),
    ("uuidv5", "An identifier that depends only on a namespace and a name."),
    (
        "values",
        "The elements of a map or the attribute values of an object, in the order of their keys.",
    ),
    ("yamldecode", "The value of a YAML document."),
    ("yamlencode", "A value as a YAML document."),
    ("zipmap", "A map made from a list of keys and a list of values."),
];

const PARAMETERS: &[(&str, &str, &str)] = &[
    (
        "bcrypt",
        "cost",
        "How much work a guess should cost: 4 to 31, by default 10.",
    ),
    (
        "chunklist",
        "size",
        "The greatest length of a chunk; 0 for a single chunk.",
    ),
    (
        "cidrcontains",
        "contained_ip_or_prefix",
        "The address, or the network in CIDR notation.",
    ),
    ("cidrcontains", "containing_prefix", "The network, in CIDR notation."),
    (
        "cidrhost",
        "hostnum",
        "The number of the host; a negative one counts from the end.",
    ),
    ("cidrhost", "prefix", "The network, in CIDR notation."),
    ("cidrnetmask", "prefix", "The network, in CIDR notation."),
    (
        "cidrsubnet",
        "netnum",
        "The number of the subnet, which must fit into those bits.",
    ),
    (
        "cidrsubnet",
        "newbits",
        "How many bits the prefix of the subnet is longer.",
    ),
    ("cidrsubnet", "prefix", "The network, in CIDR notation."),
    ("cidrsubnets", "prefix", "The network, in CIDR notation."),
    (
        "coalescelist",
        "vals",
        "Lists or tuples, of which the first that has elements counts.",
    ),
    ("indent", "spaces", "The number of blanks."),
    ("join", "lists", "Lists of strings, taken one behind the other."),
    ("join", "separator", "What stands between the strings."),
    ("keys", "inputMap", "A map or an object."),
    (
        "setproduct",
        "sets",
        "The sets, lists or tuples to combine; two at least.",
    ),
    ("templatestring", "template", "A reference to the text of the template."),
    ("templatestring", "vars", "What the template may refer to, by name."),
    ("trim", "cutset", "The characters that are cut off."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_is_described_and_nothing_else() {
        let signatures = all();
        let told: Vec<&str> = signatures.keys().copied().collect();
        let mut functions: Vec<&str> = crate::functions::names()
            .filter(|n| !matches!(*n, "list" | "map"))
            .collect();
        functions.sort_unstable();
        assert_eq!(told, functions);
        assert_eq!(DESCRIPTIONS.len(), functions.len());
        for (function, parameter, _) in PARAMETERS {
            let signature = &signatures[function];
            let mut all = signature.parameters.iter().chain(&signature.variadic);
            assert!(all.any(|p| p.name == *parameter), "{function} {parameter}");
        }
    }
}
