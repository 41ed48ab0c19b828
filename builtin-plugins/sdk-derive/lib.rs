//! `#[derive(Model)]` and `#[derive(Cty)]` of the plugin SDK, which generate a schema and conversions of values from a Rust type.
//!
//! Use them through `monoform_sdk`, where they are documented; no other crate depends on this one, and it depends on no crate of this
//! repository. The generated code is short: it calls ordinary functions of the SDK for every decision.

mod text;

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Expr, Field, Fields, Ident, LitStr, Meta, Result, Token, Type};

/// Derives `Model` for a struct with named fields. See `monoform_sdk::Model`.
#[proc_macro_derive(Model, attributes(member))]
pub fn derive_model(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    syn::parse(input)
        .and_then(|input| model(&input))
        .unwrap_or_else(Error::into_compile_error)
        .into()
}

/// Derives `Cty` for an enum without data, or for a struct with one unnamed field. See `monoform_sdk::Cty`.
#[proc_macro_derive(Cty, attributes(member))]
pub fn derive_cty(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    syn::parse(input)
        .and_then(|input| text::cty(&input))
        .unwrap_or_else(Error::into_compile_error)
        .into()
}

/// A field of the struct.
struct Member<'a> {
    ident: &'a Ident,
    ty: &'a Type,
    /// The name in the configuration.
    name: String,
    /// Lines of the doc comment, which become the description.
    docs: Vec<&'a Expr>,
    /// Expression in `#[member(…)]`; `None` for a flattened model.
    what: Option<Expr>,
}

fn model(input: &DeriveInput) -> Result<TokenStream> {
    let fields = match &input.data {
        Data::Struct(data) => match &data.fields {
            // Field names become the names in the configuration, so tuple structs are refused.
            Fields::Named(fields) => &fields.named,
            other => return Err(Error::new(other.span(), "a model has named fields")),
        },
        _ => return Err(Error::new(input.ident.span(), "a model is a struct")),
    };
    let members: Vec<Member<'_>> = fields.iter().map(member).collect::<Result<_>>()?;

    let description: Vec<&Expr> = input.attrs.iter().filter_map(doc).collect();
    let this = &input.ident;
    let title = this.to_string();
    let (generics, arguments, conditions) = input.generics.split_for_impl();
    // An absolute path, so that names in the author's module cannot shadow it.
    let sdk = quote!(::monoform_sdk);
    let (mut declared, mut types, mut rules, mut read, mut written, mut found, mut shown) =
        (vec![], vec![], vec![], vec![], vec![], vec![], vec![]);
    for Member {
        ident,
        ty,
        name,
        docs,
        what,
    } in &members
    {
        match what {
            Some(what) => {
                declared.push(quote! {
                    out.push(#sdk::schema::IntoMember::<#ty>::into_member(#what, #name, concat!(#(#docs, "\n"),*)));
                });
                types.push(quote!((Some(#name), <#ty as #sdk::model::Cty>::ty())));
                rules.push(quote!((Some(#name), <#ty as #sdk::model::Cty>::rules())));
                read.push(quote!(#ident: #sdk::model::read(value, #name)?));
                written.push(quote!((Some(#name), #sdk::model::Cty::to_cty(&self.#ident))));
                found.push(quote! {
                    if name == #name {
                        return Some(#sdk::model::Cty::to_cty(&self.#ident));
                    }
                });
                // Shown by name: the declaration, which exists only at run time, says whether the member is secret.
                shown.push(quote!(#sdk::model::show(&mut out, &members, #name, &self.#ident);));
            }
            None => {
                declared.push(quote!(out.extend(<#ty as #sdk::model::Model>::members());));
                types.push(quote!((None, <#ty as #sdk::model::Cty>::ty())));
                rules.push(quote!((None, <#ty as #sdk::model::Cty>::rules())));
                read.push(quote!(#ident: <#ty as #sdk::model::Cty>::from_cty(value)?));
                written.push(quote!((None, #sdk::model::Cty::to_cty(&self.#ident))));
                found.push(quote! {
                    if let Some(value) = #sdk::model::Model::field(&self.#ident, name) {
                        return Some(value);
                    }
                });
                shown.push(quote!(out.field(#name, &self.#ident);));
            }
        }
    }
    let mut ty = quote!(#sdk::model::object_type(::std::vec![#(#types),*]));
    // The type is computed once, because calls need the types of null blocks often. A generic model has a different type for each argument,
    // which one static cannot hold.
    if input.generics.params.is_empty() {
        ty = quote! {
            static TYPE: ::std::sync::OnceLock<#sdk::cty::Type> = ::std::sync::OnceLock::new();
            TYPE.get_or_init(|| #ty).clone()
        };
    }
    Ok(quote! {
        impl #generics #sdk::model::Cty for #this #arguments #conditions {
            fn ty() -> #sdk::cty::Type {
                #ty
            }
            fn from_cty(value: &#sdk::cty::Value) -> ::std::result::Result<Self, #sdk::model::ModelError> {
                Ok(Self { #(#read),* })
            }
            fn to_cty(&self) -> #sdk::cty::Value {
                #sdk::model::object(::std::vec![#(#written),*])
            }
            fn rules() -> #sdk::TypeRules {
                #sdk::model::object_rules(::std::vec![#(#rules),*])
            }
        }

        impl #generics #sdk::model::Model for #this #arguments #conditions {
            fn members() -> ::std::vec::Vec<#sdk::schema::Member> {
                let mut out = ::std::vec::Vec::new();
                #(#declared)*
                out
            }
            fn description() -> &'static str {
                concat!(#(#description, "\n"),*)
            }
            fn field(&self, name: &str) -> ::std::option::Option<#sdk::cty::Value> {
                #(#found)*
                None
            }
        }

        /// Omits the values of sensitive attributes, so that no log shows them.
        impl #generics ::std::fmt::Debug for #this #arguments #conditions {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                let members = <Self as #sdk::model::Model>::members();
                let mut out = f.debug_struct(#title);
                #(#shown)*
                let _ = &members;
                out.finish()
            }
        }
    })
}

fn member(field: &Field) -> Result<Member<'_>> {
    let Some(ident) = &field.ident else {
        return Err(Error::new(field.span(), "a model has named fields"));
    };
    let mut what = None;
    let mut name = None;
    let mut docs = Vec::new();
    for attribute in &field.attrs {
        if attribute.path().is_ident("member") {
            let (given, declaration) = attribute.parse_args_with(|input: ParseStream<'_>| {
                let given = text::setting(input, "name")?;
                if given.is_some() {
                    input.parse::<Token![,]>()?;
                }
                Ok((given, input.parse::<Expr>()?))
            })?;
            name = given.as_ref().map(LitStr::value);
            what = Some(declaration);
        } else if let Some(text) = doc(attribute) {
            docs.push(text);
        }
    }
    let Some(what) = what else {
        let text = "say what this is: #[member(required())], #[member(optional())], #[member(computed())], \
                    #[member(block())], or #[member(flatten)] for another model whose members are this one's, too";
        return Err(Error::new(ident.span(), text));
    };
    Ok(Member {
        ident,
        ty: &field.ty,
        // A field `r#type` is the attribute `type`.
        name: name.unwrap_or_else(|| ident.unraw().to_string()),
        docs,
        // `flatten` is a keyword of the attribute, not an expression.
        what: (!is_flatten(&what)).then_some(what),
    })
}

/// Returns the text of one line of the doc comment.
fn doc(attribute: &Attribute) -> Option<&Expr> {
    match &attribute.meta {
        Meta::NameValue(meta) if meta.path.is_ident("doc") => Some(&meta.value),
        _ => None,
    }
}

/// Returns true if the declaration is the single word `flatten`.
fn is_flatten(what: &Expr) -> bool {
    match what {
        // Declarative macros wrap the expressions that they pass on in groups without delimiters.
        Expr::Group(group) => is_flatten(&group.expr),
        Expr::Path(path) => path.path.is_ident("flatten"),
        _ => false,
    }
}
