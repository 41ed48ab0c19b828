//! The one session of a run: locks belong to it.

use std::sync::Arc;

use monoform_sdk::{Diagnostic, Diagnostics, Result};
use store_client::waiting;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls};

use crate::settings::Settings;
use crate::tls::Encryption;

/// Connects.
pub(crate) async fn connect(settings: &Settings) -> Result<Client> {
    let failed = |e: tokio_postgres::Error| problem("Error connecting to PostgreSQL", &settings.title, &e);
    let encrypted = settings.config.get_ssl_mode() != tokio_postgres::config::SslMode::Disable;
    if !encrypted {
        let (client, connection) = waiting(&settings.host, settings.config.connect(NoTls))
            .await
            .map_err(failed)?;
        tokio::spawn(async move { drop(connection.await) });
        return Ok(client);
    }
    let mut tls = settings.tls.configuration().map_err(|e| {
        Diagnostic::error(
            "Invalid PostgreSQL backend configuration",
            format!("The certificates of the connection cannot be used: {e}."),
        )
    })?;
    // The protocol inside is not negotiated.
    tls.alpn_protocols.clear();
    let (client, connection) = waiting(&settings.host, settings.config.connect(Encryption(Arc::new(tls))))
        .await
        .map_err(failed)?;
    tokio::spawn(async move { drop(connection.await) });
    Ok(client)
}

/// What went wrong, and what to do about it.
pub(crate) fn problem(summary: &str, title: &str, error: &tokio_postgres::Error) -> Diagnostics {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let next = cause.to_string();
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
            "Grant the user this privilege; or have somebody else create the schema, the table and the index, and set \
             skip_schema_creation, skip_table_creation and skip_index_creation."
        }
        Some(code) if *code == SqlState::UNDEFINED_TABLE || *code == SqlState::INVALID_SCHEMA_NAME => {
            "Run init without skip_schema_creation and skip_table_creation, or check schema_name."
        }
        Some(code) if *code == SqlState::TOO_MANY_CONNECTIONS => "The server has no connection left: try again later.",
        Some(_) => "",
        None if text.contains("server does not support TLS") => {
            "To connect without encryption, add sslmode=disable to conn_str."
        }
        None if error.is_closed() => "The connection ended. The server's log may say why.",
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
