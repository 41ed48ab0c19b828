//! The resource `tls_self_signed_cert`.

use monoform_sdk::schema::{block, computed, optional, required};
use monoform_sdk::{Attr, Context, Plan, Resource, Result, Schema, Validator, async_trait};

use crate::alt_names::{AltNames, Texts};
use crate::certificate::Issuer;
use crate::key::Key;
use crate::subject::{self, Subject, names, names_of_some_length, pem_input};
use crate::terms::{self, Certified, Parties, certificate_model};
use crate::{Proxying, failed};

certificate_model! {
    /// A certificate that is signed with the key it is for.
    pub struct Model {
        /// The private key that the certificate is for, as PEM, in PKCS#1, SEC 1 or PKCS#8.
        pub private_key_pem: Attr<String> = pem_input(required().sensitive()),
        /// Subject of the certificate.
        pub subject: Attr<Vec<Subject>> = block().validate(Validator::Size(0, 1)).requires_replace(),
        /// Names of hosts.
        pub dns_names: Texts = names(),
        /// IP addresses.
        pub ip_addresses: Texts = names_of_some_length(),
        /// URIs.
        pub uris: Texts = names_of_some_length(),
        /// True if the certificate names the key that signed it. That is the certificate's own key, so it must be named too.
        pub set_authority_key_id: Attr<bool> = optional().computed().default(false).requires_replace(),
        /// The algorithm of the key: `RSA`, `ECDSA` or `ED25519`.
        pub key_algorithm: Attr<String> = computed().keep(),
    }
}

pub(crate) struct SelfSignedCert;

#[async_trait]
impl Resource for SelfSignedCert {
    type Model = Model;
    type Client = Proxying;

    fn schema(&self) -> Schema {
        crate::plain_but(
            Schema::of::<Model>()
                .describe("A certificate that is signed with the key it is for: to begin a chain with, or for tests."),
            &["subject"],
        )
    }

    async fn plan(&self, plan: &mut Plan<'_, Model>, _cx: &mut Context<Proxying>) -> Result<()> {
        terms::plan(plan)
    }

    async fn create(&self, mut plan: Model, _cx: &mut Context<Proxying>) -> Result<Model> {
        let key = Key::from_pem(plan.private_key_pem.text())
            .map_err(|e| failed("Failed to parse private key PEM", format!("{e}.")))?;
        let with_authority = plan.set_authority_key_id.clone().or(false);
        let issued = terms::issue(
            plan.terms(),
            Parties {
                subject: subject::name(&plan.subject)?,
                names: AltNames::configured(&plan.dns_names, &plan.ip_addresses, &plan.uris)?,
                public: key.public(),
                issuer: &|template| {
                    let key_id = template.key_id();
                    if with_authority && key_id.is_none() {
                        return Err(failed(
                            "Invalid Certificate Authority",
                            "Could not determine Authority Key Identifier: it is the certificate's own key identifier, so \
                             set set_subject_key_id too.",
                        ));
                    }
                    Ok(Issuer {
                        name: template.subject.der(),
                        key_id: key_id.filter(|_| with_authority),
                    })
                },
                key: &key,
            },
        )?;
        plan.key_algorithm = key.algorithm().into();
        Ok(plan.with(issued))
    }

    async fn read(&self, state: Model, _cx: &mut Context<Proxying>) -> Result<Option<Model>> {
        terms::read(state)
    }
}
