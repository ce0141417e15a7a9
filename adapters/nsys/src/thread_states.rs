//! Why a thread was taken off its processor, as two columns of `SCHED_EVENTS` say it.
//!
//! `threadState` refers to `ENUM_SAMPLING_THREAD_STATE`, `threadBlock` to
//! `ENUM_SCHEDULING_THREAD_BLOCK`; the definitions of the columns in each export say so. Both tables
//! are in exports of schemas 3.16.1 to 3.24.14 with the same names under the same numbers, later
//! schemas only add some. They are read where they are there; where they are not, the numbers are
//! taken for what they are in those. The names cover several systems: the reasons are those of Linux
//! (`include/linux/sched.h`), Windows (`KWAIT_REASON` in its `wdm.h`) and QNX (`sys/states.h`).
//!
//! On Linux exports at hand have no state but "unknown" and "terminated", and no reason at all.

use lineage_core::observation::SwitchedOff;
use rustc_hash::FxHashMap;

use crate::ImportError;
use crate::database::Database;
use crate::tables::{Schema, Value, scan};

/// Names of `threadState`, by number, where the file does not give them.
const STATES: [&str; 11] = [
    "Unknown",
    "Running",
    "Interruptible",
    "Uninterruptible",
    "Stopped",
    "Terminated",
    "Unscheduled",
    "Waiting",
    "OSRuntime",
    "Initialized",
    "Transition",
];

/// Numbers of `threadBlock` with a meaning here, where the file does not give the names.
const BLOCKS: [(i64, &str); 34] = [
    (2, "SigSuspend"),
    (3, "Stopped"),
    (4, "Nanosleep"),
    (6, "Mutex"),
    (7, "CondVar"),
    (8, "Sem"),
    (9, "Join"),
    (10, "SigWaitInfo"),
    (12, "Send"),
    (13, "Receive"),
    (14, "Reply"),
    (16, "WaitThread"),
    (17, "WaitPage"),
    (18, "NetSend"),
    (19, "NetReply"),
    (20, "FreePage"),
    (21, "PageIn"),
    (23, "DelayExecution"),
    (24, "Suspended"),
    (25, "UserRequest"),
    (26, "EventPair"),
    (27, "Queue"),
    (31, "PageOut"),
    (33, "KeyedEvent"),
    (39, "Resource"),
    (40, "PushLock"),
    (41, "WindowsMutex"),
    (42, "QuantumEnd"),
    (43, "DispatchInt"),
    (44, "Preempted"),
    (45, "YieldExecution"),
    (46, "FastMutex"),
    (47, "GuardedMutex"),
    (51, "DeferredPreempt"),
];

/// More rows than such a table has.
const MOST_NAMES: usize = 1_024;

/// What the two columns mean in one file.
#[derive(Debug)]
pub(crate) struct ThreadStates {
    states: FxHashMap<i64, SwitchedOff>,
    blocks: FxHashMap<i64, SwitchedOff>,
}

impl ThreadStates {
    /// Reads the names of a file.
    pub(crate) fn read(database: &Database, schema: &Schema) -> Result<Self, ImportError> {
        let states = (0..).zip(STATES);
        let known_states: Vec<(i64, &str)> = states.collect();
        let states = of_table(database, schema, "ENUM_SAMPLING_THREAD_STATE", of_state)?;
        let blocks = of_table(database, schema, "ENUM_SCHEDULING_THREAD_BLOCK", of_block)?;
        Ok(Self {
            states: states.unwrap_or_else(|| meanings(&known_states, of_state)),
            blocks: blocks.unwrap_or_else(|| meanings(&BLOCKS, of_block)),
        })
    }

    /// Why a thread was taken off, if the columns say so and do not contradict each other.
    pub(crate) fn off(&self, state: Value<'_>, block: Value<'_>) -> Option<SwitchedOff> {
        let meaning = |of: &FxHashMap<i64, SwitchedOff>, value| match value {
            Value::Integer(number) => of.get(&number).copied(),
            _ => None,
        };
        match (meaning(&self.states, state), meaning(&self.blocks, block)) {
            (Some(state), Some(block)) if state != block => None,
            (state, block) => state.or(block),
        }
    }
}

/// The meanings of a table's numbers; `None` if the file has no such table.
fn of_table(
    database: &Database,
    schema: &Schema,
    name: &str,
    meaning: fn(&str) -> Option<SwitchedOff>,
) -> Result<Option<FxHashMap<i64, SwitchedOff>>, ImportError> {
    let Some(table) = schema.table(database, name)? else {
        return Ok(None);
    };
    let mut found = FxHashMap::default();
    scan(database, &table, ["id", "name"], |[id, name]| {
        if let (Value::Integer(id), Value::Text(name)) = (id, name)
            && found.len() < MOST_NAMES
            && let Some(off) = std::str::from_utf8(name).ok().and_then(meaning)
        {
            found.insert(id, off);
        }
        Ok(())
    })?;
    Ok(Some(found))
}

fn meanings(
    names: &[(i64, &str)],
    meaning: fn(&str) -> Option<SwitchedOff>,
) -> FxHashMap<i64, SwitchedOff> {
    let known = names.iter();
    known
        .filter_map(|(id, name)| Some((*id, meaning(name)?)))
        .collect()
}

/// What a state says: a thread that is left running could have gone on. One that is terminated does
/// neither, and the others do not tell.
fn of_state(name: &str) -> Option<SwitchedOff> {
    match name {
        "Running" => Some(SwitchedOff::Preempted),
        "Interruptible" | "Uninterruptible" | "Stopped" | "Waiting" => Some(SwitchedOff::Blocked),
        _ => None,
    }
}

/// What a reason says. Those that are not clear say nothing.
fn of_block(name: &str) -> Option<SwitchedOff> {
    match name {
        "QuantumEnd" | "DispatchInt" | "Preempted" | "YieldExecution" | "DeferredPreempt" => {
            Some(SwitchedOff::Preempted)
        }
        "SigSuspend" | "Stopped" | "Nanosleep" | "Mutex" | "CondVar" | "Sem" | "Join"
        | "SigWaitInfo" | "Send" | "Receive" | "Reply" | "WaitThread" | "WaitPage" | "NetSend"
        | "NetReply" | "FreePage" | "PageIn" | "DelayExecution" | "Suspended" | "UserRequest"
        | "EventPair" | "Queue" | "PageOut" | "KeyedEvent" | "Resource" | "PushLock"
        | "WindowsMutex" | "FastMutex" | "GuardedMutex" | "MqSend" | "MqReceive" | "MuonMutex"
        | "Barrier" | "RwlockRead" | "RwlockWrite" => Some(SwitchedOff::Blocked),
        _ => None,
    }
}
