//! Transactions that end however their scope is left: by an error, by unwinding, or on purpose.

use rusqlite::Connection;

use crate::error::StorageError;

/// An open write transaction; rolled back unless it is committed.
pub struct Write<'a> {
    connection: &'a Connection,
}

impl<'a> Write<'a> {
    /// Begins, and takes the write lock at once, so that what is read within stays true.
    pub fn begin(connection: &'a Connection) -> Result<Self, StorageError> {
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        Ok(Self { connection })
    }

    /// Commits; on return the transaction is durable.
    pub fn commit(self) -> Result<(), StorageError> {
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }
}

impl Drop for Write<'_> {
    fn drop(&mut self) {
        // Some errors roll back by themselves; a commit that failed may have left it open.
        if !self.connection.is_autocommit() {
            roll_back(self.connection);
        }
    }
}

/// One state of the database for several reads, however much others commit meanwhile.
pub struct View<'a> {
    connection: &'a Connection,
}

impl<'a> View<'a> {
    /// Begins; what is read first fixes the state.
    pub fn begin(connection: &'a Connection) -> Result<Self, StorageError> {
        connection.prepare_cached("BEGIN DEFERRED")?.execute([])?;
        Ok(Self { connection })
    }
}

impl Drop for View<'_> {
    fn drop(&mut self) {
        if !self.connection.is_autocommit() {
            roll_back(self.connection);
        }
    }
}

/// What can't be rolled back now is so at the connection's end.
fn roll_back(connection: &Connection) {
    if let Ok(mut statement) = connection.prepare_cached("ROLLBACK") {
        let _ = statement.execute([]);
    }
}
