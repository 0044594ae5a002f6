//! Panics inside RocketSim: kept off the console, and written into files that replay them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use pyo3::prelude::*;

use crate::errors::Death;
use crate::layout::Layout;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static MESSAGE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Run what may panic inside RocketSim; return the panic's message as the error.
pub fn guarded<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if DEPTH.get() > 0 {
                MESSAGE.set(info.to_string().replace('\n', " "));
            } else {
                before(info);
            }
        }));
    });
    DEPTH.set(DEPTH.get() + 1);
    let done = catch_unwind(AssertUnwindSafe(run));
    DEPTH.set(DEPTH.get() - 1);
    done.map_err(|_| MESSAGE.take())
}

/// A call in which a match panicked; `rocketsim_batch.crashes` writes it into a file, a dict by these names.
#[derive(Clone, Debug, IntoPyObject)]
pub struct Report {
    /// What the panic said.
    pub message: String,
    /// Name of the method; "step" stands for `play` and `step_groups` too.
    pub call: &'static str,
    /// Of the random streams as the call began: that of kickoffs, and that of respawns.
    pub seeds: [u64; 2],
    /// Of the rows.
    pub layout: Layout,
    /// By name.
    pub mutators: BTreeMap<&'static str, f32>,
    /// The match's row as the call began, in bits, since a frame may look like NaN.
    pub state_bits: Vec<u32>,
    /// The row that the call was given, in bits; empty where it takes none.
    pub given_bits: Vec<u32>,
    /// The call's other numbers: see `Change` and `forecast_ball`.
    pub arguments: Vec<usize>,
    /// Of a step: each car's vectors of the ticks that were simulated, then of the one that failed. Of a forecast:
    /// of all its ticks.
    pub controls: Vec<Vec<[f32; 8]>>,
}

/// Write a file for each match that panicked in a call.
pub fn write_files(py: Python<'_>, deaths: &[Death]) -> PyResult<()> {
    let reports: Vec<_> =
        deaths.iter().filter_map(|death| Some((death.number, (**death.report.as_ref()?).clone()))).collect();
    py.import("rocketsim_batch.crashes")?.call_method1("write", (reports,)).map(drop)
}
