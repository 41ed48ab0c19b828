//! The data source `tls_cert_request`.

use monoform_sdk::schema::{block, computed, required};
use monoform_sdk::{Attr, Context, Resource, Result, Schema, Validator, async_trait, model};

use crate::alt_names::{AltNames, Texts};
use crate::key::Key;
use crate::key::public::identifier;
use crate::subject::{self, Subject, names, names_of_some_length, pem_input};
use crate::{Proxying, certificate, failed, pem};

model! {
    /// A request for a certificate.
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
        /// The algorithm of the key: `RSA`, `ECDSA` or `ED25519`.
        pub key_algorithm: Attr<String> = computed().keep(),
        /// The request, as PEM. It ends with a line break.
        pub cert_request_pem: Attr<String> = computed().keep(),
        /// A hash of the request.
        pub id: Attr<String> = computed().keep(),
    }
}

pub(crate) struct CertRequest;

#[async_trait]
impl Resource for CertRequest {
    type Model = Model;
    type Client = Proxying;

    const STATE_ONLY: bool = true;

    fn schema(&self) -> Schema {
        crate::plain_but(Schema::of::<Model>().describe(
            "A request for a certificate (PKCS#10), for an authority to sign: one that another provider talks to, or \
             tls_locally_signed_cert.",
        ), &["subject"])
    }

    async fn create(&self, plan: Model, _cx: &mut Context<Proxying>) -> Result<Model> {
        let key = Key::from_pem(plan.private_key_pem.text())
            .map_err(|e| failed("Failed to parse private key PEM", format!("{e}.")))?;
        let names = AltNames::configured(&plan.dns_names, &plan.ip_addresses, &plan.uris)?;
        let der = certificate::request(&subject::name(&plan.subject)?, &names, &key)
            .map_err(|e| failed("Error creating certificate request", format!("{e}.")))?;
        Ok(Model {
            key_algorithm: key.algorithm().into(),
            id: identifier(&der).into(),
            cert_request_pem: pem::encode(pem::REQUEST, der).into(),
            ..plan
        })
    }
}
