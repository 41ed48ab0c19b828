//! The resource `tls_locally_signed_cert`.

use monoform_sdk::schema::{computed, optional, required};
use monoform_sdk::{Attr, Context, Plan, Resource, Result, Schema, async_trait};
use x509_parser::prelude::{FromDer, ParsedExtension, X509Certificate, X509CertificationRequest};

use crate::alt_names::AltNames;
use crate::certificate::Issuer;
use crate::key::Key;
use crate::key::public::Public;
use crate::name::Name;
use crate::pem::whole;
use crate::problem::CertificateError;
use crate::subject::pem_input;
use crate::terms::{self, Certified, Parties, certificate_model};
use crate::{Proxying, failed, pem};

certificate_model! {
    /// A certificate that is signed with the key of an authority.
    pub struct Model {
        /// The certificate of the authority, as PEM.
        pub ca_cert_pem: Attr<String> = pem_input(required()),
        /// The private key of the authority, as PEM, in PKCS#1, SEC 1 or PKCS#8.
        pub ca_private_key_pem: Attr<String> = pem_input(required().sensitive()),
        /// The request, as PEM.
        pub cert_request_pem: Attr<String> = pem_input(required()),
        /// The algorithm of the authority's key: `RSA`, `ECDSA` or `ED25519`.
        pub ca_key_algorithm: Attr<String> = computed().keep(),
    }
}

/// Parts of a certificate request that become parts of the certificate.
struct Requested {
    subject: Name,
    names: AltNames,
    public: Public,
}

impl Requested {
    fn read(text: &str) -> std::result::Result<Requested, CertificateError> {
        let der = pem::first_with_label(text, pem::REQUEST)?;
        let request = whole(X509CertificationRequest::from_der(&der), "certificate request")?;
        let info = &request.certification_request_info;
        Ok(Requested {
            subject: Name::read(&info.subject)?,
            names: AltNames::requested(&request)?,
            public: Public::read(&info.subject_pki)?,
        })
    }
}

/// The authority that signs, as described by its certificate.
struct Authority {
    is_ca: bool,
    name: Vec<u8>,
    key_id: Option<Vec<u8>>,
    public: Public,
}

impl Authority {
    fn read(text: &str) -> std::result::Result<Authority, CertificateError> {
        let der = pem::first_with_label(text, pem::CERTIFICATE)?;
        let certificate = whole(X509Certificate::from_der(&der), "certificate")?;
        let key_id = certificate.iter_extensions().find_map(|e| match e.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0.to_vec()),
            _ => None,
        });
        Ok(Authority {
            is_ca: certificate.is_ca(),
            name: certificate.subject().as_raw().to_vec(),
            key_id,
            public: Public::read(certificate.public_key())?,
        })
    }
}

pub(crate) struct LocallySignedCert;

#[async_trait]
impl Resource for LocallySignedCert {
    type Model = Model;
    type Client = Proxying;

    fn schema(&self) -> Schema {
        crate::plain_but(
            Schema::of::<Model>().describe(
                "A certificate for a request, signed with the key of an authority, which is an argument too.",
            ),
            &[],
        )
    }

    async fn plan(&self, plan: &mut Plan<'_, Model>, _cx: &mut Context<Proxying>) -> Result<()> {
        terms::plan(plan)
    }

    async fn create(&self, mut plan: Model, cx: &mut Context<Proxying>) -> Result<Model> {
        let problem = |what: &str, error: &dyn std::fmt::Display| {
            failed(&format!("Failed to parse {what} PEM"), format!("{error}."))
        };
        let requested =
            Requested::read(plan.cert_request_pem.text()).map_err(|e| problem("certificate request", &e))?;
        let key = Key::from_pem(plan.ca_private_key_pem.text()).map_err(|e| problem("CA private key", &e))?;
        let authority = Authority::read(plan.ca_cert_pem.text()).map_err(|e| problem("CA certificate", &e))?;
        if !authority.is_ca {
            cx.warn(
                "Potentially Invalid Certificate Authority",
                "The certificate in ca_cert_pem is not one that may sign others. Those who verify the new certificate may \
                 refuse it.",
            );
        }
        if authority.public != key.public() {
            return Err(failed(
                "Failed to create certificate",
                "The key in ca_private_key_pem does not match the certificate in ca_cert_pem, which holds another public \
                 key.",
            ));
        }
        let issued = terms::issue(
            plan.terms(),
            Parties {
                subject: requested.subject,
                names: requested.names,
                public: requested.public,
                // As in Go's library, the certificate has no authority key identifier if its subject is the name of the authority.
                issuer: &|template| {
                    Ok(Issuer {
                        name: authority.name.clone(),
                        key_id: authority
                            .key_id
                            .clone()
                            .filter(|_| template.subject.der() != authority.name),
                    })
                },
                key: &key,
            },
        )?;
        plan.ca_key_algorithm = key.algorithm().into();
        Ok(plan.with(issued))
    }

    async fn read(&self, state: Model, _cx: &mut Context<Proxying>) -> Result<Option<Model>> {
        terms::read(state)
    }
}
