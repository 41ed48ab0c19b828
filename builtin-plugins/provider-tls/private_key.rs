//! `tls_private_key`, as a managed and as an ephemeral resource.

use monoform_sdk::schema::{Attribute, computed, optional, required};
use monoform_sdk::{
    Attr, Context, EphemeralResource, Opened, Resource, Result, Schema, Upgrader, Validator, async_trait, blocking,
};

use crate::key::curve::Curve;
use crate::key::{ALGORITHMS, Key, KeyError};
use crate::{Proxying, failed};

const RSA_BITS: i64 = 2048;
const CURVE: &str = "P224";

fn algorithm() -> Attribute {
    required().validate(Validator::OneOf(ALGORITHMS))
}

fn rsa_bits() -> Attribute {
    optional().computed().default(RSA_BITS)
}

fn curve() -> Attribute {
    optional()
        .computed()
        .default(CURVE.to_owned())
        .validate(Validator::OneOf(Curve::NAMES))
}

// Defines a model whose last attributes are the key in all formats.
macro_rules! key_model {
    ($(#[$meta:meta])* $vis:vis struct $name:ident { $($fields:tt)* }) => {
        monoform_sdk::model! {
            $(#[$meta])*
            $vis struct $name {
                $($fields)*
                /// The private key as PEM, in the format usual for its algorithm: PKCS#1 for RSA, SEC 1 for ECDSA, PKCS#8 for
                /// ED25519.
                pub private_key_pem: Attr<String> = computed().sensitive(),
                /// The private key as PEM, in PKCS#8.
                pub private_key_pem_pkcs8: Attr<String> = computed().sensitive(),
                /// The private key as PEM, in OpenSSH's format. Empty for the curve P224, which OpenSSH does not know.
                pub private_key_openssh: Attr<String> = computed().sensitive(),
                /// The public key as PEM. It ends with a line break.
                pub public_key_pem: Attr<String> = computed(),
                /// The public key as a line for `authorized_keys`, line break included. Empty for the curve P224.
                pub public_key_openssh: Attr<String> = computed(),
                /// The fingerprint of the public key that older SSH programs show: MD5, as `aa:bb:cc:...`. Empty for the
                /// curve P224.
                pub public_key_fingerprint_md5: Attr<String> = computed(),
                /// The fingerprint of the public key that SSH programs show: `SHA256:...`. Empty for the curve P224.
                pub public_key_fingerprint_sha256: Attr<String> = computed(),
            }
        }

        impl $name {
            /// Generates a key as configured.
            async fn generate(&self) -> Result<Key> {
                let (algorithm, curve) = (self.algorithm.text().to_owned(), self.ecdsa_curve.clone().or(CURVE.into()));
                let bits = self.rsa_bits.clone().or(RSA_BITS);
                // On a separate thread: the search for large primes takes seconds, and would block a thread of the runtime.
                blocking(move || Key::generate(&algorithm, bits, &curve))
                    .await
                    .map_err(|e| failed("Unable to generate Key from configuration", format!("{e}.")))
            }

            fn with(self, key: &Key) -> Result<$name> {
                let failed = |e: KeyError| failed("Unable to encode key to PEM", format!("{e}."));
                let public = key.public();
                Ok($name {
                    private_key_pem: key.pem().map_err(failed)?.into(),
                    private_key_pem_pkcs8: key.pkcs8_pem().map_err(failed)?.into(),
                    private_key_openssh: key.openssh_pem().map_err(failed)?.into(),
                    public_key_pem: public.pem().into(),
                    public_key_openssh: public.openssh().into(),
                    public_key_fingerprint_md5: public.fingerprint_md5().into(),
                    public_key_fingerprint_sha256: public.fingerprint_sha256().into(),
                    ..self
                })
            }
        }
    };
}

key_model! {
    /// A private key.
    pub struct Model {
        /// Algorithm of the key: `RSA`, `ECDSA` or `ED25519`.
        pub algorithm: Attr<String> = algorithm().requires_replace(),
        /// The size of an RSA key in bits.
        pub rsa_bits: Attr<i64> = rsa_bits().requires_replace(),
        /// The curve of an ECDSA key: `P224`, `P256`, `P384` or `P521`.
        pub ecdsa_curve: Attr<String> = curve().requires_replace(),
        /// A hash of the public key.
        pub id: Attr<String> = computed(),
    }
}

key_model! {
    /// A private key that is not kept.
    pub struct Ephemeral {
        /// Algorithm of the key: `RSA`, `ECDSA` or `ED25519`.
        pub algorithm: Attr<String> = algorithm(),
        /// The size of an RSA key in bits.
        pub rsa_bits: Attr<i64> = rsa_bits(),
        /// The curve of an ECDSA key: `P224`, `P256`, `P384` or `P521`.
        pub ecdsa_curve: Attr<String> = curve(),
    }
}

pub(crate) struct PrivateKey;

#[async_trait]
impl Resource for PrivateKey {
    type Model = Model;
    type Client = Proxying;

    const STATE_ONLY: bool = true;

    fn schema(&self) -> Schema {
        crate::plain_but(Schema::of::<Model>().version(1).describe(
            "A private key and its public key, in every usual form. The key is stored in the state, unencrypted: where \
             whatever uses it takes write-only arguments, use the ephemeral resource of the same name.",
        ), &["id", "ecdsa_curve", "private_key_openssh", "private_key_pem", "private_key_pem_pkcs8", "public_key_fingerprint_md5", "public_key_fingerprint_sha256", "public_key_openssh", "public_key_pem", "rsa_bits"])
    }

    fn upgraders(&self) -> Vec<Upgrader<Model>> {
        // States of older versions of the provider have fewer formats of the key. The others are computed.
        let upgrade = |old: Model| {
            let key = Key::from_pem(old.private_key_pem.text())
                .map_err(|e| failed("Unable to parse key from PEM", format!("The state holds no key: {e}.")))?;
            let before = old.clone();
            let id = key.public().id().into();
            let model = Model { id, ..old.with(&key)? };
            // The formats that are already in the state stay as they are.
            Ok(Model {
                private_key_pem: before.private_key_pem,
                private_key_openssh: match before.private_key_openssh.text() {
                    "" => model.private_key_openssh.clone(),
                    _ => before.private_key_openssh,
                },
                ..model
            })
        };
        vec![Upgrader::from::<Model>(0, upgrade)]
    }

    async fn create(&self, plan: Model, _cx: &mut Context<Proxying>) -> Result<Model> {
        let key = plan.generate().await?;
        let id = key.public().id().into();
        Ok(Model { id, ..plan.with(&key)? })
    }
}

pub(crate) struct EphemeralPrivateKey;

#[async_trait]
impl EphemeralResource for EphemeralPrivateKey {
    type Model = Ephemeral;
    type Client = Proxying;

    fn schema(&self) -> Schema {
        crate::plain_but(Schema::of::<Ephemeral>().describe(
            "A private key and its public key, in every usual form, made for one run and not stored: for write-only arguments.",
        ), &["ecdsa_curve", "private_key_openssh", "private_key_pem", "private_key_pem_pkcs8", "public_key_fingerprint_md5", "public_key_fingerprint_sha256", "public_key_openssh", "public_key_pem", "rsa_bits"])
    }

    async fn open(&self, config: Ephemeral, _cx: &mut Context<Proxying>) -> Result<Opened<Ephemeral>> {
        let key = config.generate().await?;
        Ok(config.with(&key)?.into())
    }
}
