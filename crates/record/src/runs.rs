//! The runs of a store: listing them, and what each is doing.

use loopwright_core::batch::Head;
use loopwright_core::ids::{EffectId, LoopName, RunId};
use loopwright_core::kernel::{Basis, ParentRun};
use loopwright_core::machine::Ending;
use loopwright_core::time::Micros;
use rusqlite::Row;

use crate::error::{ReadError, StorageError};
use crate::lease::{LeaseRow, driver, newest_lease};
use crate::read::{digest, natural};
use crate::store::Store;

/// A run as listings show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSummary {
    /// Its id.
    pub run: RunId,
    /// The loop's name.
    pub loop_name: LoopName,
    /// The loop's kind.
    pub kind: String,
    /// When it started.
    pub started_at: Micros,
    /// When its newest event was recorded.
    pub last_at: Micros,
    /// The run this one is a role of.
    pub parent: Option<ParentRun>,
    /// What it was forked from.
    pub basis: Option<Basis>,
    /// Where its chain ends.
    pub head: Head,
    /// The open invocation.
    pub invocation: Option<u64>,
    /// How the last ended invocation ended.
    pub last_ending: Option<Ending>,
    /// How the run ended.
    pub ended: Option<Ending>,
}

/// What a run is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunState {
    /// It is over for good.
    Ended(Ending),
    /// Somebody drives it.
    Driven(Box<LeaseRow>),
    /// An invocation is open and nobody drives it.
    Interrupted,
    /// No invocation is open; how the last one ended.
    Idle(Option<Ending>),
}

const COLUMNS: &str = "id, loop, kind, started_us, head_us, parent_run, parent_effect,
    basis_run, basis_event, basis_seq, head_n, head_digest, head_seq, head_event,
    invocation, last_reason, last_words, ended_reason, ended_words";

impl Store {
    /// All runs, the oldest first.
    pub fn runs(&self) -> Result<Vec<RunSummary>, ReadError> {
        self.select_runs("ORDER BY number", [])
    }

    /// The newest run of a loop that is not a role of another run.
    pub fn latest_run(&self, loop_name: &LoopName) -> Result<Option<RunSummary>, ReadError> {
        let found = self.select_runs(
            "WHERE loop = ?1 AND parent_run IS NULL ORDER BY number DESC LIMIT 1",
            [loop_name.as_str()],
        )?;
        Ok(found.into_iter().next())
    }

    /// One run.
    pub fn run(&self, run: &RunId) -> Result<Option<RunSummary>, ReadError> {
        let found = self.select_runs("WHERE id = ?1", [run.as_str()])?;
        Ok(found.into_iter().next())
    }

    /// The newest lease of a run; none where nobody ever drove it.
    pub fn lease_of(&self, run: &RunId) -> Result<Option<LeaseRow>, StorageError> {
        newest_lease(self.connection(), run)
    }

    /// What a run is doing, at `now`.
    pub fn state_of(&self, run: &RunSummary, now: Micros) -> Result<RunState, StorageError> {
        if let Some(ending) = &run.ended {
            return Ok(RunState::Ended(ending.clone()));
        }
        if let Some(lease) = driver(self, &run.run, now)? {
            return Ok(RunState::Driven(Box::new(lease)));
        }
        Ok(match run.invocation {
            Some(_) => RunState::Interrupted,
            None => RunState::Idle(run.last_ending.clone()),
        })
    }

    fn select_runs<const N: usize>(
        &self,
        rest: &str,
        values: [&str; N],
    ) -> Result<Vec<RunSummary>, ReadError> {
        let sql = format!("SELECT {COLUMNS} FROM run {rest}");
        let mut statement = self.connection().prepare_cached(&sql)?;
        let rows = statement.query_map(rusqlite::params_from_iter(values), summary)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

fn summary(row: &Row<'_>) -> rusqlite::Result<RunSummary> {
    let bad = |column: usize, error: loopwright_core::ids::BadName| {
        rusqlite::Error::FromSqlConversionFailure(
            column,
            rusqlite::types::Type::Text,
            Box::new(error),
        )
    };
    let run_id = |column: usize| -> rusqlite::Result<Option<RunId>> {
        let text: Option<String> = row.get(column)?;
        text.map(|text| RunId::new(&text).map_err(|error| bad(column, error)))
            .transpose()
    };
    let ending = |column: usize| -> rusqlite::Result<Option<Ending>> {
        let (reason, words): (Option<String>, Option<String>) =
            (row.get(column)?, row.get(column + 1)?);
        Ok(reason.map(|reason| Ending {
            reason,
            words: words.unwrap_or_default(),
        }))
    };
    let missing = |column| {
        rusqlite::Error::InvalidColumnType(
            column,
            "it is missing".to_owned(),
            rusqlite::types::Type::Null,
        )
    };
    let loop_name: String = row.get(1)?;
    let parent = match run_id(5)? {
        None => None,
        Some(run) => Some(ParentRun {
            run,
            effect: EffectId::new(row.get::<_, String>(6)?),
        }),
    };
    let basis = match run_id(7)? {
        None => None,
        Some(run) => Some(Basis {
            run,
            event: digest(row, 8)?,
            seq: natural(row, 9)?,
        }),
    };
    let invocation: Option<i64> = row.get(14)?;
    Ok(RunSummary {
        run: run_id(0)?.ok_or_else(|| missing(0))?,
        loop_name: LoopName::new(&loop_name).map_err(|error| bad(1, error))?,
        kind: row.get(2)?,
        started_at: Micros(row.get(3)?),
        last_at: Micros(row.get(4)?),
        parent,
        basis,
        head: Head {
            n: natural(row, 10)?,
            digest: digest(row, 11)?,
            seq: natural(row, 12)?,
            event: digest(row, 13)?,
        },
        invocation: invocation.map(i64::cast_unsigned),
        last_ending: ending(15)?,
        ended: ending(17)?,
    })
}
