//! Transactions.

use super::rows::Failure;
use crate::session::Connection;

/// Begins a transaction. One that an abandoned request has left open is ended first; without one, that is a warning of the server.
pub(super) const BEGIN: &str = "ROLLBACK; BEGIN";
pub(super) const BEGIN_SNAPSHOT: &str = "ROLLBACK; BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// Runs statements in a transaction, which is rolled back after a failure.
pub(super) async fn within<T>(
    connection: &Connection,
    begin: &str,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    connection.batch_execute(begin).await?;
    match work.await {
        Ok(done) => {
            connection.batch_execute("COMMIT").await?;
            Ok(done)
        }
        Err(failure) => {
            // If the connection is closed, the transaction has ended, too.
            drop(connection.batch_execute("ROLLBACK").await);
            Err(failure)
        }
    }
}
