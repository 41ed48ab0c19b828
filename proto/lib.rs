//! The plugin protocol: messages, clients and servers generated from the `.proto` files of this folder.
//!
//! A plugin is a gRPC server on a local socket. It serves one of two protocols, [`tfplugin5`] or [`tfplugin6`] (nearly the same messages;
//! the comment at the top of `tfplugin6.proto` lists the differences), and the auxiliary services of [`go_plugin`]. The crate `plugins`
//! uses the clients, and the SDK the servers.
//!
//! Most of this crate is generated. The comments of the `.proto` files document the messages. The directory `generated` is committed, so
//! that a build needs no protobuf compiler; a test generates the files again with `protox`, and compares them.

mod batched;

// The generated code does not follow the lints of this project.
#[allow(missing_docs, unused_qualifications, clippy::all, clippy::pedantic)]
mod generated {
    pub(crate) mod tfplugin5 {
        include!("generated/tfplugin5.rs");
    }
    pub(crate) mod tfplugin6 {
        include!("generated/tfplugin6.rs");
    }
    pub(crate) mod go_plugin {
        include!("generated/plugin.rs");
    }
    pub(crate) mod calls {
        include!("generated/monoform.rs");
    }
    pub(crate) mod health {
        include!("generated/grpc.health.v1.rs");
    }
}

/// Protocol 5: providers and provisioners.
pub mod tfplugin5 {
    pub use crate::generated::tfplugin5::*;
}

/// Protocol 6: providers.
pub mod tfplugin6 {
    pub use crate::generated::tfplugin6::*;
}

/// Auxiliary services of the library go-plugin: broker, controller, standard streams.
pub mod go_plugin {
    pub use crate::generated::go_plugin::*;
}

/// Calls of a provider in batches, between a provider of the SDK and this program.
pub mod calls {
    pub use crate::generated::calls::*;
}

/// The standard health service of gRPC. A plugin reports the status of the service `plugin`.
pub mod health {
    pub use crate::generated::health::*;
}

/// Metadata of an answer to GetProviderSchema, beside the protocol: the managed resource types, separated by commas, whose
/// objects are all in the state. Reading such an object returns the stored one, and a stored object of the current schema
/// version is up to date.
pub const STATE_ONLY: &str = "monoform-state-only";

/// Metadata of an answer to GetProviderSchema, beside the protocol: the version of the service [`calls`] that is served on the same
/// connection. The only version so far is [`STREAM_OF_CALLS_VERSION`].
pub const STREAM_OF_CALLS: &str = "monoform-stream-of-calls";

/// See [`STREAM_OF_CALLS`].
pub const STREAM_OF_CALLS_VERSION: &str = "1";

/// Metadata of a request LockState, beside the protocol: the holder of the requested lock, in the JSON form that Terraform and
/// related programs use. With it, a store of this project writes the same lock as they do. A plugin that does not know this
/// metadata names itself as the holder.
pub const STATE_LOCK_INFO: &str = "monoform-state-lock-info-bin";

/// Metadata of an answer to LockState that is an error, beside the protocol: the current holder of the lock, in the form of
/// [`STATE_LOCK_INFO`]. The core repeats a request only if its error has this metadata. Without it, the request has failed for another
/// reason than a held lock.
pub const STATE_LOCK_HOLDER: &str = "monoform-state-lock-holder-bin";

/// Metadata of an answer to ConfigureStateStore, beside the protocol: the workspaces that the store can have. `single`: one
/// state only. `named`: any number; the default workspace exists if it is listed, which is also the meaning of a missing
/// value. `default`: any number; the default workspace always exists. `by-state`: like `default`, but a workspace without a
/// state gets an empty one when it is opened. `no-default`: any number, but none with the name `default`; a workspace can
/// exist without a state, and is created by writing none.
pub const STATE_WORKSPACES: &str = "monoform-state-workspaces";

/// Metadata of an answer to ConfigureStateStore, beside the protocol: the version of the inquiries ([`STATE_INQUIRY`]) that the store
/// answers, which is always `1`. Such a store stores each object of a state separately, with its history, so it cannot store encrypted
/// states.
pub const STATE_INQUIRIES: &str = "monoform-state-inquiries";

/// Metadata of a request ReadStateBytes, beside the protocol: an inquiry as JSON. The bytes of the answer are then not the state, but the
/// result of the inquiry. Sent only to stores that announced [`STATE_INQUIRIES`].
///
/// - `{"history": {"address": {"module", "mode", "type", "name", "instance_key"}}}`: the runs that have written the state, or an
///   object of it, the newest first, as a JSON array. Without an address all runs; without a key all instances.
/// - `{"state_at": {"run": N}}`: the document of the state as it was after a run.
/// - `{"unfinished": {}}`: a JSON array of operations of earlier runs that have begun and have no result, the oldest first, each with
///   its number `operation`, the operation of its run (`run`), `who`, `started_at`, and the `intent` that was recorded.
/// - `{"query": {"sql": "SELECT …"}}`: `{"columns": […], "rows": [[…]]}`, from a read-only transaction.
pub const STATE_INQUIRY: &str = "monoform-state-inquiry-bin";

/// Metadata of a request WriteStateBytes, beside the protocol: its bytes are not a state, but a request about single objects, as JSON.
/// The value is always `1`. Sent only to stores that announced [`STATE_INQUIRIES`].
///
/// - `{"record": [RECORD, …]}`: the operations of a run, which are recorded in this order in one transaction. A record is one of
///   `{"begin": {"intent": {"address", "deposed", "action", "by", "planned", "since"}, "object": OBJECT}}` (an operation is about to
///   begin), `{"outcome": {"address", "object": OBJECT, "answers", "document": STATE}}` (all objects of an instance, as a state with
///   nothing else; `answers` is `current` or the key of a deposed object if the operation on it has ended) and
///   `{"end": {"address", "deposed", "provision"}}` (an operation has ended and changed nothing). OBJECT has the parts of an address
///   as the document of a state has them: `module`, `mode`, `type`, `name`, `instance_key`.
/// - `{"claim": {"lock": ID, "locked": BOOL, "objects": [OBJECT, …], "outputs": [NAME, …], "within": [RESOURCE, …], "shared": [RESOURCE, …]}}`: the
///   lock that the next LockState with this ID requests is not on the whole state, but on objects and outputs that a run changes, on the
///   resources within which it changes something, and on those that it depends on. RESOURCE is `{"instance", "module", "mode", "type",
///   "name"}`: a resource by the path of its module, in all instances of it that are inside of a module instance. A request that waits
///   is withdrawn by UnlockState. If `locked` is false, the request is granted at once and keeps nobody away; an outcome is refused if
///   others have changed its objects since this run has read them.
/// - `{"forget": {"operations": [N, …]}}`: the user knows of these operations without a result.
pub const STATE_REQUEST: &str = "monoform-state-request";

/// `@module` of a log line that plugins of this project write at every log level: a server has not answered for a while. The
/// message is the server's host, which the command shows to its user.
pub const WAITING: &str = "monoform.waiting";

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::{tfplugin5, tfplugin6};

    /// Field numbers in which the two protocols differ. With a wrong number, a message would still be decoded, but its field would have
    /// another meaning.
    #[test]
    fn attributes_differ_from_number_ten_on() {
        let five = tfplugin5::schema::Attribute {
            write_only: true,
            ..Default::default()
        };
        assert_eq!(five.encode_to_vec(), [10 << 3, 1]);
        let six = tfplugin6::schema::Attribute {
            write_only: true,
            ..Default::default()
        };
        assert_eq!(six.encode_to_vec(), [11 << 3, 1]);
        let nested = tfplugin6::schema::Object {
            nesting: 2,
            ..Default::default()
        };
        let six = tfplugin6::schema::Attribute {
            nested_type: Some(nested),
            ..Default::default()
        };
        assert_eq!(six.encode_to_vec(), [10 << 3 | 2, 2, 3 << 3, 2]);
    }

    /// `Stop` and `Error` are spelled oddly in the protocol; messages contain only their numbers.
    #[test]
    fn the_error_of_stop_is_field_one() {
        let five = tfplugin5::stop::Response { error: "x".into() };
        let six = tfplugin6::stop_provider::Response { error: "x".into() };
        assert_eq!(five.encode_to_vec(), six.encode_to_vec());
        assert_eq!(five.encode_to_vec(), [1 << 3 | 2, 1, b'x']);
    }
}
