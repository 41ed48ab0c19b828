//! Errors of fetching a module package.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use archive::{InvalidLimit, Limits, UnknownFormat};
use files::io_reason;
use net::Url;

use crate::tree::SubdirectoryError;

/// Why a package cannot be fetched. The text is a clause without a full stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The path of the package has no name.
    #[error("{} cannot be written to", .0.display())]
    NoTarget(PathBuf),
    /// A file or directory operation failed.
    #[error("{action} failed for {}: {}", path.display(), io_reason(source))]
    File {
        /// The operation, as a noun.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A temporary file cannot be created.
    #[error("a temporary file cannot be created: {}", io_reason(.0))]
    Temporary(#[source] io::Error),
    /// An address referred to another one too often.
    #[error("the address leads to others more than {0} times")]
    Redirects(usize),
    /// The address is not a URL.
    #[error("its address cannot be read ({0})")]
    Url(#[source] <Url as FromStr>::Err),
    /// The address of another service than a web server has the wrong form.
    #[error("{0}")]
    AddressForm(&'static str),
    /// A request to S3 cannot be signed.
    #[error("the request for it cannot be signed: {0}")]
    Signature(http::aws::SignError),
    /// A location that a server named is not a module address.
    #[error("{address} says that the module is at \"{location}\", which cannot be used: {reason}")]
    Location {
        /// The address that was requested.
        address: String,
        /// The location in the response.
        location: String,
        reason: LocationError,
    },
    /// A web page does not name a module.
    #[error(
        "{0} is no archive by its name, and the server does not say where a module is, neither by the header X-Terraform-Get nor \
         by an element <meta name=\"terraform-get\">. If it is an archive, add its format to the address, like ?archive=zip"
    )]
    NoLocation(String),
    /// `archive` or `checksum` in the address of a repository.
    #[error("the arguments \"archive\" and \"checksum\" are for files, not for repositories")]
    ArgumentOfFiles,
    /// The address of a file whose format is not known.
    #[error(
        "it is a single file that is not an archive of a known format. If it is one without the usual extension, add the \
         argument \"archive\", like ?archive=zip. The argument \"checksum\" is for archives only"
    )]
    NotAnArchive,
    /// No such way to fetch.
    #[error("modules cannot be fetched by \"{0}\"")]
    Scheme(String),
    /// The argument `archive` or the extension names no supported format.
    #[error(transparent)]
    Format(#[from] UnknownFormat),
    /// An environment variable with a limit is invalid.
    #[error(transparent)]
    Limit(#[from] InvalidLimit),
    /// A download exceeds the limit.
    #[error("{address} {}", limits.too_long())]
    DownloadTooLarge { address: String, limits: Limits },
    /// The size of a download is not the declared one.
    #[error("{address} announced {announced} bytes, and sent {received}")]
    Incomplete {
        address: String,
        /// The declared size.
        announced: u64,
        /// The size.
        received: u64,
    },
    /// A directory in a bucket exceeds the limits, or the name of an object leads out of it.
    #[error("{0}")]
    Directory(archive::Error),
    /// An archive cannot be unpacked.
    #[error("the archive {name} cannot be unpacked: {source}")]
    Unpack {
        /// Its address.
        name: String,
        /// The reason.
        source: archive::Error,
    },
    /// The argument `checksum` is invalid or does not match.
    #[error(transparent)]
    Checksum(#[from] ChecksumError),
    /// The package does not have the subdirectory.
    #[error(transparent)]
    Subdirectory(#[from] SubdirectoryError),
    /// An OCI registry does not give the package.
    #[error(transparent)]
    Oci(#[from] oci::OciError),
    /// A request failed.
    #[error("{error}{hint}")]
    Request {
        error: net::Error,
        /// What to do about it.
        hint: String,
    },
    /// A response is not of the expected format.
    #[error("the answer of {address} cannot be read: {reason}")]
    Response {
        address: String,
        /// What the parser reports.
        reason: String,
    },
    /// A bucket has no object of the name.
    #[error("the bucket \"{bucket}\" has neither an object nor a directory \"{object}\"")]
    NoObject {
        bucket: String,
        /// The name.
        object: String,
    },
    /// A profile of the shared AWS files has no access key.
    #[error("the AWS profile \"{0}\" has no access key in the shared files")]
    AwsProfile(String),
    /// A file of Google credentials cannot be used.
    #[error("the Google credentials in {} cannot be used: {reason}", path.display())]
    GoogleCredentials {
        /// The file.
        path: PathBuf,
        reason: GoogleError,
    },
    /// A `file:` address is not a path of this system.
    #[error("\"{0}\" is not the address of a file of this machine")]
    NotLocal(Url),
    /// A `file:` address is that of a file.
    #[error(
        "{} is a file. A module is a directory, or an archive whose name has the extension of its format", .0.display()
    )]
    NotADirectory(PathBuf),
    /// `git` or `hg` is not installed.
    #[error(
        "it is in a {repository} repository, and there is no program \"{program}\" on the PATH. Install it, and try again"
    )]
    NoProgram {
        /// The kind of repository.
        repository: &'static str,
        program: &'static str,
    },
    /// `git` or `hg` cannot be started.
    #[error("{program} cannot be run: {}", io_reason(source))]
    Program {
        program: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// `git` or `hg` failed.
    #[error("{action}: {output}")]
    Repository {
        /// Which operation failed.
        action: String,
        /// The errors that the program printed.
        output: String,
    },
    /// A revision that the program would take for an option.
    #[error("\"{0}\" cannot be a revision")]
    Revision(String),
    /// A repository has no such revision.
    #[error("the repository {repository} has no {kinds} \"{reference}\"{hint}")]
    NoRevision {
        repository: String,
        /// What the reference could have been.
        kinds: &'static str,
        reference: String,
        /// What to do about it.
        hint: &'static str,
    },
    /// The argument `sshkey` is not base64.
    #[error("the argument \"sshkey\" is not a key in base64")]
    SshKey,
    /// The mirror does not have the package.
    #[error("the mirror {} does not have it; where it can be fetched, \"modules mirror\" adds it", .0.display())]
    NotInMirror(PathBuf),
    /// The pack does not have the package.
    #[error("this executable does not carry it")]
    NotCarried,
    /// The pack cannot be read.
    #[error("{0}")]
    Pack(pack::PackError),
    /// The manifest cannot be written.
    #[error("{0}")]
    Manifest(String),
    /// The installation ended before.
    #[error("it was cancelled")]
    Canceled,
}

/// Why the argument `checksum` cannot be used, or a file does not match it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChecksumError {
    /// The name of no hash algorithm.
    #[error("\"{0}\" is not a kind of checksum; there are md5, sha1, sha256, sha512, and file")]
    Algorithm(String),
    /// No algorithm has checksums of this length.
    #[error("\"{0}\" has not the length of any kind of checksum")]
    Length(String),
    /// The checksum does not have the digits of its algorithm.
    #[error("\"{text}\" is not a checksum of {digits} hexadecimal digits")]
    Digits {
        /// The checksum.
        text: String,
        /// The number of digits.
        digits: usize,
    },
    /// The list of checksums cannot be fetched.
    #[error("the list of checksums that the argument \"checksum\" names: {0}")]
    List(#[source] Box<FetchError>),
    /// The list of checksums does not name the file.
    #[error("the list of checksums that the argument \"checksum\" names: it has none for \"{0}\"")]
    NotInList(String),
    /// A file cannot be read.
    #[error("{} cannot be read: {}", path.display(), io_reason(source))]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The checksum of a file is another one.
    #[error(
        "the checksum of {name} does not match: expected {expected}, got {actual}. The file is not used. If its owner has \
         replaced it on purpose, change the argument \"checksum\" of the address"
    )]
    Mismatch {
        /// The file.
        name: String,
        /// The checksum in the address or in the list.
        expected: String,
        /// The checksum of the file.
        actual: String,
    },
}

/// Why a location in a response is not a module address.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// It cannot be joined with the address of the request.
    #[error("{0}")]
    Url(#[source] <Url as FromStr>::Err),
    /// It is no address of a module package.
    #[error("{0}")]
    Address(String),
    /// It is a file or a directory of this machine.
    #[error("a server must not name files of this machine")]
    Local,
}

/// Why a file of Google credentials gives no token.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GoogleError {
    /// The file cannot be read.
    #[error("{}", io_reason(.0))]
    Read(#[source] io::Error),
    /// The file is not JSON.
    #[error("it is not JSON")]
    Json,
    /// `token_uri` is not a URL.
    #[error("its \"token_uri\" is not an address")]
    TokenUri,
    /// `type` is not supported.
    #[error("credentials of the type \"{0}\" are not supported")]
    Type(String),
    /// `private_key` is not a key that signs.
    #[error("its private key cannot be used")]
    Key,
    /// The token request failed.
    #[error(transparent)]
    Request(#[from] net::Error),
    /// The response to the token request is not JSON.
    #[error("the answer is not JSON")]
    ResponseJson,
    /// The response to the token request has no token.
    #[error("the answer has no token")]
    NoToken,
}

/// An error of a file operation.
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
    /// An error of a request, with what to do about it.
    pub(super) fn request(error: net::Error, hint: impl fmt::Display) -> FetchError {
        FetchError::Request {
            error,
            hint: hint.to_string(),
        }
    }
}
