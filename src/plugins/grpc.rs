//! Common parts of the gRPC clients of both protocols, for providers and provisioners.
//!
//! The two protocols differ in the names of six requests and in the form of one answer, the schema. Everything else is the same bytes: same
//! numbers, same types. So one client ([`crate::grpc_provider`]) speaks both, in the messages of version 6, and a table of names
//! ([`Methods`]) has the names of the requests to send. A test in the crate `proto` verifies this for both `.proto` files.
//!
//! Of the services that go-plugin serves beside the plugin itself, two are used: the one for standard streams, which carries what a plugin
//! prints, and the controller, which is asked to end the plugin. The third, the broker, is for connections that a plugin asks for itself;
//! neither protocol has a request that needs one, so none is opened.

use std::sync::Arc;
use std::time::Duration;

use cty::{Type, Value};
use proto::{go_plugin, tfplugin6 as pb};
use syntax::{Diagnostic, Diagnostics};
use tonic::transport::Channel;

use crate::connection::PluginConnection;
pub use crate::methods::Methods;
use crate::process::Process;
use crate::{convert, logs};

/// Time limit for a plugin to end on request, before it is killed.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time to wait for the last lines that a plugin prints.
const LAST_LINES: Duration = Duration::from_millis(50);

/// Returns the name of a request, the last part of its path.
pub(crate) fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Encodes a value for a request. An error is a bug of this program: values are converted to their type before.
pub(crate) fn encode(
    connection: &PluginConnection,
    method: &str,
    value: &Value,
    ty: &Type,
) -> Result<pb::DynamicValue, Diagnostics> {
    convert::encode(value, ty).map_err(|error| {
        let what = format!(
            "A value for the request {method} to the {} cannot be sent: {error}. This is a bug in this tool; please report it.",
            connection.title()
        );
        Diagnostic::error("Value cannot be sent to plugin", what).into()
    })
}

/// Relays the output of the plugin's code to the log and the exit report, if the plugin's library captures it.
pub(crate) fn relay_stdio(channel: Channel, connection: &Arc<PluginConnection>) {
    // A weak reference, because the task must not keep the connection, and with it the process, alive.
    let name = logs::name(connection.title(), connection.process().map(Process::program));
    let connection = Arc::downgrade(connection);
    tokio::spawn(async move {
        let mut client = go_plugin::grpc_stdio_client::GrpcStdioClient::new(channel);
        let Ok(response) = client.stream_stdio(()).await else {
            // The output is not captured: the process writes it to its own standard error.
            return;
        };
        let mut stream = response.into_inner();
        while let Ok(Some(data)) = stream.message().await {
            for line in String::from_utf8_lossy(&data.data).lines() {
                logs::relay(&name, line);
                if let Some(process) = connection.upgrade().as_deref().and_then(PluginConnection::process) {
                    process.remember(line);
                }
            }
        }
    });
}

/// Requests the end of the plugin's process, and kills it after [`PATIENCE`].
pub(crate) async fn shut_down(connection: &PluginConnection, channel: Channel) {
    // Only the user may end a process that the user started.
    if connection.process().is_none_or(|process| process.exit().is_some()) {
        return;
    }
    if logs::wanted() {
        // The last lines pass through a pipe inside of the plugin, and would be lost when the plugin ends.
        tokio::time::sleep(LAST_LINES).await;
    }
    let mut client = go_plugin::grpc_controller_client::GrpcControllerClient::new(channel);
    // The result does not matter, because a plugin may end before it has answered.
    let _ = tokio::time::timeout(PATIENCE, client.shutdown(go_plugin::Empty {})).await;
    connection.end(PATIENCE).await;
}
