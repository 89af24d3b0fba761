//! Refs: movable names for events, with a log of every move.

use loopwright_core::digest::Digest;
use loopwright_core::ids::{BranchName, RunId};
use loopwright_core::time::Micros;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::crash_point;
use crate::error::{RefError, StorageError};
use crate::read::{digest, digest_or_none, natural};
use crate::schema::place;
use crate::store::Store;
use crate::transaction::Write;

/// The families of names there are.
pub const REF_FAMILIES: [&str; 3] = ["experiments", "promotions", "tags"];

/// What a ref names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefTarget {
    /// The run.
    pub run: RunId,
    /// The event's number.
    pub seq: u64,
    /// The event.
    pub event: Digest,
}

/// A ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ref {
    /// Its name: `tags/first-win`.
    pub name: String,
    /// What it names.
    pub target: RefTarget,
}

/// Who moves a ref, when and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefAct {
    /// Who.
    pub who: String,
    /// When.
    pub at: Micros,
    /// Why, in words.
    pub why: String,
}

/// One move in the log of refs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefMove {
    /// The ref's name.
    pub name: String,
    /// Who, when and why.
    pub act: RefAct,
    /// Where it was; none where it was made.
    pub old: Option<Digest>,
    /// Where it is since; none where it was removed.
    pub new: Option<Digest>,
}

/// Whether a ref may have that name: a family, and parts that could be branch names.
pub fn check_ref_name(name: &str) -> Result<(), RefError> {
    let refuse = |why: String| {
        Err(RefError::Name {
            name: name.to_owned(),
            why,
        })
    };
    let (family, rest) = name.split_once('/').unwrap_or((name, ""));
    if !REF_FAMILIES.contains(&family) {
        return refuse("it must begin with experiments/, promotions/ or tags/".to_owned());
    }
    match rest.split('/').find_map(|part| BranchName::new(part).err()) {
        Some(error) => refuse(error.why.to_owned()),
        None => Ok(()),
    }
}

impl Store {
    /// Moves a ref from where it is expected (none: it doesn't exist) to `target` (none: removes
    /// it), and notes that in the log. Fails where it is elsewhere.
    pub fn move_ref(
        &self,
        name: &str,
        expected: Option<Digest>,
        target: Option<&RefTarget>,
        act: &RefAct,
    ) -> Result<(), RefError> {
        check_ref_name(name)?;
        crash_point!("ref.begin");
        let connection = self.connection();
        let write = Write::begin(connection)?;
        let found = read_ref(connection, name)?;
        let at = found.as_ref().map(|found| found.event);
        if at != expected {
            return Err(RefError::Moved {
                name: name.to_owned(),
                expected,
                found: at,
            });
        }
        match target {
            Some(target) => put(connection, name, target)?,
            None => {
                connection
                    .prepare_cached("DELETE FROM ref WHERE name = ?1")?
                    .execute([name])?;
            }
        }
        log_move(connection, name, found.as_ref(), target, act)?;
        crash_point!("ref.moved");
        write.commit()?;
        crash_point!("ref.committed");
        Ok(())
    }

    /// What a ref names.
    pub fn find_ref(&self, name: &str) -> Result<Option<RefTarget>, StorageError> {
        read_ref(self.connection(), name)
    }

    /// The refs whose names begin with `prefix`, by name.
    pub fn refs(&self, prefix: &str) -> Result<Vec<Ref>, StorageError> {
        let mut statement = self.connection().prepare_cached(
            "SELECT name, run, seq, event FROM ref
             WHERE substr(name, 1, length(?1)) = ?1 ORDER BY name",
        )?;
        let rows = statement.query_map([prefix], |row| {
            Ok(Ref {
                name: row.get(0)?,
                target: target(row, 1)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The moves of a ref, the newest first.
    pub fn reflog(&self, name: &str) -> Result<Vec<RefMove>, StorageError> {
        let mut statement = self.connection().prepare_cached(
            "SELECT name, who, at_us, why, old_event, new_event FROM reflog
             WHERE name = ?1 ORDER BY number DESC",
        )?;
        let rows = statement.query_map([name], |row| {
            Ok(RefMove {
                name: row.get(0)?,
                act: RefAct {
                    who: row.get(1)?,
                    at: Micros(row.get(2)?),
                    why: row.get(3)?,
                },
                old: digest_or_none(row, 4)?,
                new: digest_or_none(row, 5)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

fn target(row: &Row<'_>, from: usize) -> rusqlite::Result<RefTarget> {
    let run: String = row.get(from)?;
    let run = RunId::new(&run).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(
            from,
            rusqlite::types::Type::Text,
            Box::new(error),
        )
    })?;
    Ok(RefTarget {
        run,
        seq: natural(row, from + 1)?,
        event: digest(row, from + 2)?,
    })
}

fn read_ref(connection: &Connection, name: &str) -> Result<Option<RefTarget>, StorageError> {
    Ok(connection
        .prepare_cached("SELECT run, seq, event FROM ref WHERE name = ?1")?
        .query_row([name], |row| target(row, 0))
        .optional()?)
}

fn put(connection: &Connection, name: &str, target: &RefTarget) -> Result<(), RefError> {
    let number: Option<i64> = connection
        .prepare_cached("SELECT number FROM run WHERE id = ?1")?
        .query_row([target.run.as_str()], |row| row.get(0))
        .optional()?;
    let found = match number {
        None => None,
        Some(number) => connection
            .prepare_cached("SELECT id FROM event WHERE place = ?1")?
            .query_row([place(number, target.seq)], |row| digest(row, 0))
            .optional()?,
    };
    if found != Some(target.event) {
        return Err(RefError::NoSuchEvent {
            run: target.run.clone(),
            event: target.event,
        });
    }
    connection
        .prepare_cached(
            "INSERT INTO ref (name, run, seq, event) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (name) DO UPDATE SET run = excluded.run, seq = excluded.seq,
                 event = excluded.event",
        )?
        .execute(params![
            name,
            target.run.as_str(),
            target.seq.cast_signed(),
            target.event.as_bytes().as_slice()
        ])?;
    Ok(())
}

fn log_move(
    connection: &Connection,
    name: &str,
    old: Option<&RefTarget>,
    new: Option<&RefTarget>,
    act: &RefAct,
) -> Result<(), StorageError> {
    connection
        .prepare_cached(
            "INSERT INTO reflog
                 (name, at_us, who, why, old_run, old_event, new_run, new_event)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![
            name,
            act.at.0,
            act.who,
            act.why,
            old.map(|target| target.run.as_str()),
            old.map(|target| target.event.as_bytes().as_slice()),
            new.map(|target| target.run.as_str()),
            new.map(|target| target.event.as_bytes().as_slice()),
        ])?;
    Ok(())
}
