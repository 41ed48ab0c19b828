//! OCI registries as mirrors of provider packages and as sources of module packages.
//!
//! An OCI registry stores container images, and other artifacts in the same form: a manifest that names blobs by their
//! digests. The requests are those of the OCI Distribution specification 1.1, the manifests those of the OCI image
//! specification 1.1. OpenTofu 1.10 defined the artifacts of provider and module packages.
//!
//! - [`address`]: repositories, tags and digests, and the `oci://` addresses of modules.
//! - [`Registry`]: requests to one repository, with the login that its registry requires.
//! - `manifest`: the content of manifests. `provider` and `module`: the artifacts and their checks.
//! - `login`: the credentials for a repository: those of the CLI configuration ([`net::OciSettings`]), or those of
//!   other container tools (`docker`, `helper`).
//!
//! Start with [`provider_package`] and [`fetch_module`].

pub mod address;
mod challenge;
mod credentials;
mod docker;
mod error;
mod helper;
mod layout;
mod login;
mod manifest;
mod media_type;
mod module;
mod provider;
mod registry;
mod unfit;

pub use address::{Digest, ModuleAddress, Reference, Repository};
pub use error::OciError;
pub use layout::provider_layout;
pub use module::fetch as fetch_module;
pub use provider::{ProviderPackage, package as provider_package, versions as provider_versions};
pub use registry::{Authorization, Registry};
pub use unfit::UnfitManifest;
