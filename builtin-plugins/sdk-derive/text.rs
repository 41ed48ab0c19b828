//! `#[derive(Cty)]`: enums without data, and structs with one unnamed field.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::spanned::Spanned;
use syn::{Data, DataEnum, DeriveInput, Error, Fields, Ident, LitStr, Result, Token};

/// Parses `NAME = "text"`; `None` if something else comes next.
pub(crate) fn setting(input: ParseStream<'_>, name: &str) -> Result<Option<LitStr>> {
    // `NAME == …` is an expression, not a setting.
    if !(input.peek(Ident::peek_any) && input.peek2(Token![=]) && !input.peek2(Token![==])) {
        return Ok(None);
    }
    let found = input.call(Ident::parse_any)?;
    if found != name {
        return Err(Error::new(
            found.span(),
            format!("the only setting here is `{name} = \"…\"`"),
        ));
    }
    input.parse::<Token![=]>()?;
    input.parse().map(Some)
}

/// Reads `#[member(NAME = "text")]`, if there is one.
fn member_setting(attributes: &[syn::Attribute], name: &str) -> Result<Option<LitStr>> {
    let Some(attribute) = attributes.iter().find(|a| a.path().is_ident("member")) else {
        return Ok(None);
    };
    attribute.parse_args_with(|input: ParseStream<'_>| match setting(input, name)? {
        Some(text) => Ok(Some(text)),
        None => Err(input.error(format!("the only setting here is `{name} = \"…\"`"))),
    })
}

pub(crate) fn cty(input: &DeriveInput) -> Result<TokenStream> {
    match &input.data {
        Data::Enum(data) => names(input, data),
        Data::Struct(data) => match &data.fields {
            Fields::Unnamed(fields) if fields.unnamed.len() == 1 => Ok(around(input, &fields.unnamed[0].ty)),
            other => Err(Error::new(
                other.span(),
                "Cty is derived for a struct around one value, such as `struct Port(u16);`; a struct with named fields is a Model",
            )),
        },
        Data::Union(_) => Err(Error::new(input.ident.span(), "Cty is derived for enums and structs")),
    }
}

/// Implements `Cty` for a struct with one unnamed field, as the type of the field.
fn around(input: &DeriveInput, inner: &syn::Type) -> TokenStream {
    let (this, sdk) = (&input.ident, quote!(::monoform_sdk));
    let (generics, arguments, conditions) = input.generics.split_for_impl();
    quote! {
        impl #generics #sdk::model::Cty for #this #arguments #conditions {
            fn ty() -> #sdk::cty::Type {
                <#inner as #sdk::model::Cty>::ty()
            }
            fn from_cty(value: &#sdk::cty::Value) -> ::std::result::Result<Self, #sdk::model::ModelError> {
                <#inner as #sdk::model::Cty>::from_cty(value).map(#this)
            }
            fn to_cty(&self) -> #sdk::cty::Value {
                #sdk::model::Cty::to_cty(&self.0)
            }
            fn rules() -> #sdk::TypeRules {
                <#inner as #sdk::model::Cty>::rules()
            }
        }
    }
}

/// Implements `CustomType`, and with it `Cty`, for an enum, as a string with the name of a variant.
fn names(input: &DeriveInput, data: &DataEnum) -> Result<TokenStream> {
    let (this, sdk) = (&input.ident, quote!(::monoform_sdk));
    let case = member_setting(&input.attrs, "case")?;
    let case_text = case.as_ref().map_or_else(|| "snake".to_owned(), LitStr::value);
    let Some(style) = style(&case_text) else {
        let text = "the cases are \"snake\", \"kebab\", \"upper\" and \"verbatim\"";
        return Err(Error::new(case.span(), text));
    };
    let (mut variants, mut texts): (Vec<&Ident>, Vec<String>) = (vec![], vec![]);
    for variant in &data.variants {
        if !matches!(variant.fields, Fields::Unit) {
            return Err(Error::new(variant.span(), "a variant is a name only, without fields"));
        }
        let name = member_setting(&variant.attrs, "name")?;
        let text = name
            .as_ref()
            .map_or_else(|| style(&variant.ident.unraw().to_string()), LitStr::value);
        if texts.contains(&text) {
            return Err(Error::new(
                variant.span(),
                format!("another variant has the name {text:?}"),
            ));
        }
        variants.push(&variant.ident);
        texts.push(text);
    }
    if texts.is_empty() {
        return Err(Error::new(this.span(), "an enum without variants has no values"));
    }
    Ok(quote! {
        impl #this {
            /// The names of all variants in the configuration.
            #[allow(dead_code, reason = "generated for those who need it")]
            pub const NAMES: &'static [&'static str] = &[#(#texts),*];

            /// Returns the name in the configuration.
            #[must_use]
            #[allow(dead_code, reason = "generated for those who need it")]
            pub const fn name(&self) -> &'static str {
                match self {
                    #(Self::#variants => #texts,)*
                }
            }
        }

        impl #sdk::CustomType for #this {
            type Base = ::std::string::String;

            fn from_base(base: ::std::string::String) -> ::std::result::Result<Self, #sdk::model::ModelError> {
                match base.as_str() {
                    #(#texts => ::std::result::Result::Ok(Self::#variants),)*
                    other => ::std::result::Result::Err(#sdk::model::not_one_of(Self::NAMES, other)),
                }
            }

            fn to_base(&self) -> ::std::string::String {
                self.name().to_owned()
            }
        }
    })
}

/// Returns the function that converts the name of a variant to the name in the configuration; `None` if there is no such case.
fn style(case: &str) -> Option<fn(&str) -> String> {
    Some(match case {
        "snake" => |name| words(name, '_'),
        "kebab" => |name| words(name, '-'),
        "upper" => |name| words(name, '_').to_ascii_uppercase(),
        "verbatim" => str::to_owned,
        _ => return None,
    })
}

/// Returns the words of a name in lower case, with a separator between them. A word begins at an upper-case letter that follows any
/// character but an upper-case letter.
fn words(name: &str, separator: char) -> String {
    let mut out = String::new();
    let mut after_small = false;
    for c in name.chars() {
        if c.is_uppercase() && after_small {
            out.push(separator);
        }
        after_small = !c.is_uppercase();
        out.extend(c.to_lowercase());
    }
    out
}
