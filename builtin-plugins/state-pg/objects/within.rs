//! Running statements in transactions.

use super::rows::Failure;
use crate::session::Connection;

/// Statements that begin a transaction. `ROLLBACK` first ends a transaction that an abandoned request has left open. If there is none, the
/// server only gives a warning.
pub(super) const BEGIN: &str = "ROLLBACK; BEGIN";
/// Statements that begin a read-only transaction, which sees one snapshot of the database. `ROLLBACK` is as in [`BEGIN`].
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
            // A failure is ignored, because closing the connection also ends the transaction.
            drop(connection.batch_execute("ROLLBACK").await);
            Err(failure)
        }
    }
}
