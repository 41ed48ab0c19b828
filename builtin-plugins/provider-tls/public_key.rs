//! `tls_public_key`, as a data source and as an ephemeral resource.

use monoform_sdk::schema::{Attribute, computed, optional};
use monoform_sdk::{
    Attr, Context, DataSource, EphemeralResource, Opened, Result, Schema, Validator, async_trait, model,
};

use crate::key::Key;
use crate::{Proxying, failed};

fn given() -> Attribute {
    optional()
        .sensitive()
        .validate(Validator::ExactlyOneOf(&["private_key_pem", "private_key_openssh"]))
}

model! {
    /// The public key of a private key.
    pub struct Model {
        /// The private key as PEM, in PKCS#1, SEC 1 or PKCS#8.
        pub private_key_pem: Attr<String> = given(),
        /// The private key as PEM, in OpenSSH's format, without a passphrase.
        pub private_key_openssh: Attr<String> = given(),
        /// The algorithm of the key: `RSA`, `ECDSA` or `ED25519`.
        pub algorithm: Attr<String> = computed(),
        /// The public key as PEM. It ends with a line break.
        pub public_key_pem: Attr<String> = computed(),
        /// The public key as a line for `authorized_keys`, line break included. Empty for the curve P224, which SSH does not
        /// know.
        pub public_key_openssh: Attr<String> = computed(),
        /// The fingerprint that older SSH programs show: MD5, as `aa:bb:cc:...`. Empty for the curve P224.
        pub public_key_fingerprint_md5: Attr<String> = computed(),
        /// The fingerprint that SSH programs show: `SHA256:...`. Empty for the curve P224.
        pub public_key_fingerprint_sha256: Attr<String> = computed(),
        /// A hash of the public key.
        pub id: Attr<String> = computed(),
    }
}

impl Model {
    fn complete(self) -> Result<Model> {
        let key = match self.private_key_pem.as_str() {
            Some(text) => Key::from_pem(text),
            None => Key::from_openssh(self.private_key_openssh.text()),
        };
        let key = key.map_err(|e| failed("Unable to parse private key", format!("{e}.")))?;
        let public = key.public();
        Ok(Model {
            algorithm: key.algorithm().into(),
            public_key_pem: public.pem().into(),
            public_key_openssh: public.openssh().into(),
            public_key_fingerprint_md5: public.fingerprint_md5().into(),
            public_key_fingerprint_sha256: public.fingerprint_sha256().into(),
            id: public.id().into(),
            ..self
        })
    }
}

pub(crate) struct PublicKey;

#[async_trait]
impl DataSource for PublicKey {
    type Model = Model;
    type Client = Proxying;

    fn schema(&self) -> Schema {
        crate::plain_but(Schema::of::<Model>().describe("The public key of a private key."), &[])
    }

    async fn read(&self, config: Model, _cx: &mut Context<Proxying>) -> Result<Model> {
        config.complete()
    }
}

pub(crate) struct EphemeralPublicKey;

#[async_trait]
impl EphemeralResource for EphemeralPublicKey {
    type Model = Model;
    type Client = Proxying;

    fn schema(&self) -> Schema {
        crate::plain_but(
            Schema::of::<Model>().describe("The public key of a private key; neither is stored."),
            &[],
        )
    }

    async fn open(&self, config: Model, _cx: &mut Context<Proxying>) -> Result<Opened<Model>> {
        Ok(config.complete()?.into())
    }
}
