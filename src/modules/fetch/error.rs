//! Errors of fetching a module package.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use archive::{InvalidLimit, Limits, UnknownFormat};
use files::io_reason;
use net::Url;

use crate::tree::SubdirectoryError;

/// Reason why a package cannot be fetched. The text is a clause without a full stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    #[error("{} cannot be written to", .0.display())]
    NoTarget(PathBuf),
    #[error("{action} failed for {}: {}", path.display(), io_reason(source))]
    File {
        /// Operation, as a noun.
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("a temporary file cannot be created: {}", io_reason(.0))]
    Temporary(#[source] io::Error),
    /// Addresses led to other addresses more often than the limit.
    #[error("the address leads to others more than {0} times")]
    Redirects(usize),
    #[error("its address cannot be read ({0})")]
    Url(#[source] <Url as FromStr>::Err),
    /// Address of a service such as S3 that has the wrong form.
    #[error("{0}")]
    AddressForm(&'static str),
    #[error("the request for it cannot be signed: {0}")]
    Signature(http::aws::SignError),
    /// Location in a response that is not a module address.
    #[error("{address} says that the module is at \"{location}\", which cannot be used: {reason}")]
    Location {
        /// Address that was requested.
        address: String,
        location: String,
        reason: LocationError,
    },
    /// A web page does not name a module.
    #[error(
        "{0} is no archive by its name, and the server does not say where a module is, neither by the header X-Terraform-Get nor \
         by an element <meta name=\"terraform-get\">. If it is an archive, add its format to the address, like ?archive=zip"
    )]
    NoLocation(String),
    /// `archive` or `checksum` in the address of a repository, to which they do not apply.
    #[error("the arguments \"archive\" and \"checksum\" are for files, not for repositories")]
    ArgumentOfFiles,
    /// Format of the file is unknown.
    #[error(
        "it is a single file that is not an archive of a known format. If it is one without the usual extension, add the \
         argument \"archive\", like ?archive=zip. The argument \"checksum\" is for archives only"
    )]
    NotAnArchive,
    /// Unsupported scheme.
    #[error("modules cannot be fetched by \"{0}\"")]
    Scheme(String),
    /// The argument `archive` or the extension names no supported format.
    #[error(transparent)]
    Format(#[from] UnknownFormat),
    /// An environment variable with a limit is invalid.
    #[error(transparent)]
    Limit(#[from] InvalidLimit),
    #[error("{address} {}", limits.too_long())]
    DownloadTooLarge { address: String, limits: Limits },
    /// The size of a download is not the declared one.
    #[error("{address} announced {announced} bytes, and sent {received}")]
    Incomplete {
        address: String,
        /// Declared size.
        announced: u64,
        received: u64,
    },
    /// A directory in a bucket exceeds the limits, or the name of an object leads out of it.
    #[error("{0}")]
    Directory(archive::Error),
    #[error("the archive {name} cannot be unpacked: {source}")]
    Unpack {
        /// Address of the archive.
        name: String,
        source: archive::Error,
    },
    /// The argument `checksum` is invalid or does not match.
    #[error(transparent)]
    Checksum(#[from] ChecksumError),
    #[error(transparent)]
    Subdirectory(#[from] SubdirectoryError),
    #[error(transparent)]
    Oci(#[from] oci::OciError),
    #[error("{error}{hint}")]
    Request {
        error: net::Error,
        /// Advice, as the end of the sentence.
        hint: String,
    },
    #[error("the answer of {address} cannot be read: {reason}")]
    Response {
        address: String,
        /// Text of the parser.
        reason: String,
    },
    #[error("the bucket \"{bucket}\" has neither an object nor a directory \"{object}\"")]
    NoObject { bucket: String, object: String },
    #[error("the AWS profile \"{0}\" has no access key in the shared files")]
    AwsProfile(String),
    #[error("the Google credentials in {} cannot be used: {reason}", path.display())]
    GoogleCredentials { path: PathBuf, reason: GoogleError },
    #[error("\"{0}\" is not the address of a file of this machine")]
    NotLocal(Url),
    #[error(
        "{} is a file. A module is a directory, or an archive whose name has the extension of its format", .0.display()
    )]
    NotADirectory(PathBuf),
    #[error(
        "it is in a {repository} repository, and there is no program \"{program}\" on the PATH. Install it, and try again"
    )]
    NoProgram {
        /// Kind of the repository, for messages.
        repository: &'static str,
        program: &'static str,
    },
    #[error("{program} cannot be run: {}", io_reason(source))]
    Program { program: &'static str, source: io::Error },
    /// `git` or `hg` failed.
    #[error("{action}: {output}")]
    Repository {
        /// Operation that failed.
        action: String,
        /// Error output of the program.
        output: String,
    },
    /// A revision that the program would take for an option.
    #[error("\"{0}\" cannot be a revision")]
    Revision(String),
    #[error("the repository {repository} has no {kinds} \"{reference}\"{hint}")]
    NoRevision {
        repository: String,
        /// Kinds of names that were searched, such as "branch or tag".
        kinds: &'static str,
        reference: String,
        /// Advice, as the end of the sentence.
        hint: &'static str,
    },
    #[error("the argument \"sshkey\" is not a key in base64")]
    SshKey,
    #[error("the mirror {} does not have it; where it can be fetched, \"modules mirror\" adds it", .0.display())]
    NotInMirror(PathBuf),
    #[error("this executable does not carry it")]
    NotCarried,
    #[error("{0}")]
    Pack(pack::PackError),
    #[error("{0}")]
    Manifest(String),
    /// The installation ended before the package was fetched.
    #[error("it was canceled")]
    Canceled,
}

/// Reason why the argument `checksum` cannot be used, or a file does not match it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChecksumError {
    #[error("\"{0}\" is not a kind of checksum; there are md5, sha1, sha256, sha512, and file")]
    Algorithm(String),
    #[error("\"{0}\" has not the length of any kind of checksum")]
    Length(String),
    #[error("\"{text}\" is not a checksum of {digits} hexadecimal digits")]
    Digits { text: String, digits: usize },
    #[error("the list of checksums that the argument \"checksum\" names: {0}")]
    List(#[source] Box<FetchError>),
    #[error("the list of checksums that the argument \"checksum\" names: it has none for \"{0}\"")]
    NotInList(String),
    #[error("{} cannot be read: {}", path.display(), io_reason(source))]
    Read { path: PathBuf, source: io::Error },
    #[error(
        "the checksum of {name} does not match: expected {expected}, got {actual}. The file is not used. If its owner has \
         replaced it on purpose, change the argument \"checksum\" of the address"
    )]
    Mismatch {
        name: String,
        /// Checksum in the address or in the list.
        expected: String,
        actual: String,
    },
}

/// Reason why a location in a response is not a module address.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// The location cannot be joined with the address of the request.
    #[error("{0}")]
    Url(#[source] <Url as FromStr>::Err),
    #[error("{0}")]
    Address(String),
    /// The location is a file or directory of this machine.
    #[error("a server must not name files of this machine")]
    Local,
}

/// Reason why a file of Google credentials gives no token.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GoogleError {
    #[error("{}", io_reason(.0))]
    Read(#[source] io::Error),
    #[error("it is not JSON")]
    Json,
    #[error("its \"token_uri\" is not an address")]
    TokenUri,
    #[error("credentials of the type \"{0}\" are not supported")]
    Type(String),
    #[error("its private key cannot be used")]
    Key,
    #[error(transparent)]
    Request(#[from] net::Error),
    #[error("the answer is not JSON")]
    ResponseJson,
    #[error("the answer has no token")]
    NoToken,
}

/// Returns a function that wraps the error of a file operation.
pub(crate) fn file_error<'a>(action: &'static str, path: &'a Path) -> impl Fn(io::Error) -> FetchError + Copy + 'a {
    move |source| FetchError::File {
        action,
        path: path.to_owned(),
        source,
    }
}

impl From<net::Error> for FetchError {
    fn from(error: net::Error) -> FetchError {
        FetchError::Request {
            error,
            hint: String::new(),
        }
    }
}

impl FetchError {
    pub(super) fn request(error: net::Error, hint: impl fmt::Display) -> FetchError {
        FetchError::Request {
            error,
            hint: hint.to_string(),
        }
    }
}
