//! The session of a run, to which its locks belong.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use monoform_sdk::{Diagnostic, Diagnostics, Result};
use store_client::waiting;
use tokio::task::AbortHandle;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls};

use crate::settings::{SILENCE_VARIABLE, Settings};
use crate::tls::Encryption;

const CONNECTING: &str = "Error connecting to PostgreSQL";

/// A connection, and the task that transfers its data.
pub(crate) struct Connection {
    client: Client,
    task: AbortHandle,
}

impl Deref for Connection {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Connection {
    /// Waits until the connection is known to be closed, after the server has ended it. The connection is aborted if that takes more than a
    /// second.
    pub async fn closed(&self) {
        for _ in 0..100 {
            if self.client.is_closed() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.task.abort();
    }

    /// Awaits the result of statements on this connection. If the server does not answer in time, the connection is aborted, because its
    /// locks are not reliable any more. The next statement then makes a new connection.
    pub async fn answer<T>(&self, settings: &Settings, summary: &str, work: impl Future<Output = T>) -> Result<T> {
        let work = waiting(&settings.host, work);
        let Some(limit) = settings.silence else {
            return Ok(work.await);
        };
        match tokio::time::timeout(limit, work).await {
            Ok(done) => Ok(done),
            Err(_) => {
                self.task.abort();
                let how = format!("Set the environment variable {SILENCE_VARIABLE} to more seconds to wait longer.");
                Err(silent(summary, settings, limit, &how))
            }
        }
    }
}

fn silent(summary: &str, settings: &Settings, limit: Duration, how: &str) -> Diagnostics {
    let detail = format!(
        "PostgreSQL: {}: the server did not answer within {} seconds. Check whether it is overloaded, or whether a firewall or \
         proxy blocks the connection. {how}",
        settings.title,
        limit.as_secs()
    );
    Diagnostic::error(summary, detail).into()
}

/// Connects to the first server that accepts the user.
pub(crate) async fn connect(settings: &Settings) -> Result<Connection> {
    let connecting = waiting(&settings.host, open(settings));
    let Some(limit) = settings.connecting else {
        return connecting.await;
    };
    // The library's time limit covers only the TCP connection, but a server can also stop answering later. This limit covers the whole
    // process for all servers.
    let limit = limit.saturating_mul(u32::try_from(settings.config.get_hosts().len()).unwrap_or(u32::MAX));
    match tokio::time::timeout(limit, connecting).await {
        Ok(connected) => connected,
        Err(_) => {
            let how = "Set connect_timeout in conn_str (or PGCONNECT_TIMEOUT) to more seconds to wait longer.";
            Err(silent(CONNECTING, settings, limit, how))
        }
    }
}

async fn open(settings: &Settings) -> Result<Connection> {
    let failed = |e: tokio_postgres::Error| problem(CONNECTING, &settings.title, &e);
    let encrypted = settings.config.get_ssl_mode() != tokio_postgres::config::SslMode::Disable;
    if !encrypted {
        let (client, connection) = settings.config.connect(NoTls).await.map_err(failed)?;
        let task = tokio::spawn(async move { drop(connection.await) }).abort_handle();
        return Ok(Connection { client, task });
    }
    let mut tls = settings.tls.configuration().map_err(|e| {
        Diagnostic::error(
            "Invalid PostgreSQL backend configuration",
            format!("The certificates of the connection cannot be used: {e}."),
        )
    })?;
    // Connections that negotiate TLS inside PostgreSQL's protocol use no ALPN.
    tls.alpn_protocols.clear();
    let connecting = settings.config.connect(Encryption(Arc::new(tls)));
    let (client, connection) = connecting.await.map_err(failed)?;
    let task = tokio::spawn(async move { drop(connection.await) }).abort_handle();
    Ok(Connection { client, task })
}

/// Builds the diagnostic for an error, with advice for its code.
pub(crate) fn problem(summary: &str, title: &str, error: &tokio_postgres::Error) -> Diagnostics {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let next = cause.to_string();
        // Some errors repeat the text of their source, which is then not added.
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        source = cause.source();
    }
    let advice = match error.code() {
        Some(code) if *code == SqlState::INVALID_PASSWORD || *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            "Check the user and the password in conn_str (or PG_CONN_STR, PGUSER, PGPASSWORD), and whether pg_hba.conf of the \
             server lets this user in from this machine."
        }
        Some(code) if *code == SqlState::INVALID_CATALOG_NAME => {
            "Create it with \"CREATE DATABASE\", or name another one in conn_str."
        }
        Some(code) if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
            "Grant the user this privilege; or have another user create the schema, the table and the index, and set \
             skip_schema_creation, skip_table_creation and skip_index_creation."
        }
        Some(code) if *code == SqlState::UNDEFINED_TABLE || *code == SqlState::INVALID_SCHEMA_NAME => {
            "Run init without skip_schema_creation and skip_table_creation, or check schema_name."
        }
        Some(code) if *code == SqlState::UNDEFINED_COLUMN => {
            "The tables of this schema may be those of the other layout: set layout = \"objects\", or name another schema in \
             schema_name."
        }
        Some(code) if *code == SqlState::TOO_MANY_CONNECTIONS => "The server has no connection left: try again later.",
        Some(_) => "",
        None if text.contains("server does not support TLS") => {
            "To connect without encryption, add sslmode=disable to conn_str."
        }
        None if error.is_closed() => "The server closed the connection. Its log may say why.",
        None => "Check the host and the port in conn_str (or PGHOST, PGPORT), and whether the server is running.",
    };
    let advice = if advice.is_empty() {
        String::new()
    } else {
        format!(" {advice}")
    };
    Diagnostic::error(
        summary,
        format!("PostgreSQL: {title}: {}.{advice}", text.trim_end_matches('.')),
    )
    .into()
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    /// Server messages "AuthenticationOk" and "ReadyForQuery".
    const LET_IN: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";

    /// Starts a server that sends these bytes to each client, and then never answers.
    async fn silent_server(greeting: &'static [u8], words: &str) -> (Settings, tokio::task::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = tokio::spawn(async move {
            let mut kept: Vec<TcpStream> = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                if !greeting.is_empty() {
                    let mut startup = [0; 4];
                    stream.read_exact(&mut startup).await.unwrap();
                    let rest = u32::from_be_bytes(startup) as usize - 4;
                    stream.read_exact(&mut vec![0; rest]).await.unwrap();
                    stream.write_all(greeting).await.unwrap();
                }
                kept.push(stream);
            }
        });
        let text = format!("host=127.0.0.1 port={port} user=u sslmode=disable {words}");
        (Settings::new(&text).unwrap(), server)
    }

    fn text(problem: &Diagnostics) -> String {
        format!("{problem:?}")
    }

    #[tokio::test]
    async fn a_server_that_never_answers_ends_connecting_with_its_name() {
        let (settings, server) = silent_server(b"", "connect_timeout=1").await;
        assert_eq!(settings.connecting, Some(Duration::from_secs(1)));
        let error = connect(&settings).await.map(drop).unwrap_err();
        let text = text(&error);
        for part in [CONNECTING, "127.0.0.1", "within 1 seconds", "connect_timeout"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        server.abort();
    }

    #[tokio::test]
    async fn a_server_that_falls_silent_ends_statements_and_the_connection() {
        let (mut settings, server) = silent_server(LET_IN, "connect_timeout=0").await;
        assert_eq!(settings.connecting, None);
        settings.silence = Some(Duration::from_secs(1));
        let connection = connect(&settings).await.unwrap();
        let asked = connection.query_one("SELECT 1", &[]);
        let error = connection
            .answer(&settings, "Error reading", asked)
            .await
            .map(drop)
            .unwrap_err();
        let text = text(&error);
        for part in ["Error reading", "127.0.0.1", "within 1 seconds", SILENCE_VARIABLE] {
            assert!(text.contains(part), "{part}: {text}");
        }
        // The closed connection ensures that a late answer is not taken for the answer to the next statement.
        while !connection.is_closed() {
            tokio::task::yield_now().await;
        }
        server.abort();
    }
}
