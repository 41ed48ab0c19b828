//! Errors of plan files.

use thiserror::Error;

/// Reason why a plan file cannot be read or written.
#[derive(Debug, Error)]
pub enum PlanFileError {
    /// File that is not a zip archive.
    #[error("it is not a saved plan, or it is damaged. Make a new one with \"plan -out=FILE\"")]
    NoArchive,
    /// Archive without the document of a plan.
    #[error("it is a zip archive, but not a saved plan")]
    NoPlan,
    /// The plan file is from Terraform or OpenTofu.
    #[error(
        "it was saved by Terraform or OpenTofu, whose plan files only they can read. Make the plan with \"{command} plan -out=FILE\" \
         instead"
    )]
    Foreign {
        /// Command name of this program.
        command: &'static str,
    },
    /// The plan is encrypted, and no encryption is configured.
    #[error(
        "it is encrypted, and needs a valid encryption configuration: the \"encryption\" block or the variable TF_ENCRYPTION \
         that it was made with"
    )]
    Encrypted,
    /// The plan cannot be decrypted.
    #[error(transparent)]
    Cipher(#[from] state::CipherError),
    /// The plan was saved by another version of this program.
    #[error("it was saved by version {saved} of Monoform, and only that can apply it; this is {this}")]
    OtherVersion { saved: String, this: String },
    /// An entry is larger than [`super::MAX_ENTRY`].
    #[error("an entry is larger than any plan")]
    TooLarge,
    /// Missing entry.
    #[error("the entry {0} is missing")]
    Missing(&'static str),
    /// Document that is not a plan, or a plan that cannot be serialized.
    #[error("{}", ::files::json_reason(.0))]
    Document(#[from] serde_json::Error),
    /// A state cannot be written.
    #[error(transparent)]
    State(#[from] state::StateError),
    /// A state cannot be read.
    #[error(transparent)]
    StateFormat(#[from] state::FormatError),
    /// The manifest of the modules cannot be read.
    #[error("{0}")]
    Manifest(String),
    /// A file does not belong to any module.
    #[error("the module {0:?} is not in the manifest")]
    UnknownModule(String),
    /// The execution graph does not fit the changes, or has a cycle.
    #[error("its execution graph is damaged")]
    Graph,
    /// The archive is damaged, or cannot be written.
    #[error(transparent)]
    Archive(#[from] zip::result::ZipError),
    /// The file cannot be read or written.
    #[error("{}", ::files::io_reason(.0))]
    Io(#[from] std::io::Error),
}
