//! The work of a call, match by match, on one thread or a pool of them.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use pyo3::prelude::*;
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::errors::{Error, Result};
use crate::game::Game;
use crate::layout::Layout;

/// Ticks times matches between two looks for Ctrl-C: about a tenth of a second.
pub const UNINTERRUPTED: usize = 30_000;

type Pools = HashMap<(u32, usize), Arc<ThreadPool>>;

static POOLS: LazyLock<Mutex<Pools>> = LazyLock::new(Mutex::default);

/// Return the pool with a number of threads; a forked process makes its own.
fn pool(threads: usize) -> Result<Arc<ThreadPool>> {
    let mut pools = POOLS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let key = (std::process::id(), threads);
    if let Some(pool) = pools.get(&key) {
        return Ok(Arc::clone(pool));
    }
    let made = ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = Arc::new(made.map_err(|error| Error::Argument(format!("threads is {threads}: {error}")))?);
    pools.insert(key, Arc::clone(&pool));
    Ok(pool)
}

/// Call `work` for each task, on one thread or on a pool of more.
pub fn for_each<T: Send>(threads: usize, tasks: &mut [T], work: impl Fn(&mut T) + Send + Sync) -> Result<()> {
    if threads <= 1 || tasks.len() <= 1 {
        tasks.iter_mut().for_each(work);
    } else {
        pool(threads)?.install(|| tasks.par_iter_mut().with_min_len(1).for_each(work));
    }
    Ok(())
}

/// One match's share of a step.
pub struct Task<'a> {
    /// The match.
    pub game: &'a mut Game,
    /// Of the row and the frames.
    pub layout: &'a Layout,
    /// The match's row of the buffer.
    pub row: &'a mut [f32],
    /// Where frames go, if the call has some.
    pub frames: Option<&'a mut [f32]>,
    /// Ticks that this match plays.
    pub ticks: usize,
    /// Ticks from frame to frame.
    pub every: usize,
    /// Ticks that the row shows.
    pub shown: usize,
    /// The row as the call began, kept once it shows a later tick that is not the last.
    pub before: Vec<f32>,
}

impl Task<'_> {
    /// Simulate the ticks from `from` to `to` of a call, as far as this match plays them.
    pub fn advance(&mut self, from: usize, to: usize) {
        let mut at = from;
        let end = to.min(self.ticks);
        while at < end && self.game.dead.is_none() {
            // Up to the next frame, or to the end.
            let stop = if self.frames.is_some() { (at / self.every + 1) * self.every } else { end };
            let stop = stop.min(end);
            if let Err(message) = self.game.advance(self.layout, at as u32, (stop - at) as u32) {
                let row = if self.before.is_empty() { &*self.row } else { &self.before };
                self.game.die_in_step(self.layout, message, row);
            } else if stop % self.every == 0 && self.frames.is_some() {
                self.show(stop);
                let size = self.layout.size;
                if let Some(frames) = &mut self.frames {
                    frames[(stop / self.every - 1) * size..][..size].copy_from_slice(self.row);
                }
            }
            at = stop;
        }
    }

    /// Show the match after `at` ticks of the call, or its last; the row of a dead one stays as it was.
    pub fn show(&mut self, at: usize) {
        let at = at.min(self.ticks);
        if self.game.dead.is_none() {
            if at < self.ticks && self.before.is_empty() {
                self.before = self.row.to_vec();
            }
            crate::view::count_frame(self.layout, self.row, (at - self.shown) as u64);
            self.game.show(self.layout, self.row);
            self.shown = at;
        }
    }
}

/// Simulate and show tasks; look for Ctrl-C between pieces of a long call.
pub fn run(py: Python<'_>, threads: usize, tasks: &mut [Task<'_>]) -> Result<()> {
    let most = tasks.iter().map(|task| task.ticks).max().unwrap_or(0);
    let piece = (UNINTERRUPTED * threads / tasks.len().max(1)).max(1);
    let mut at = 0;
    loop {
        let to = (at + piece).min(most);
        // Shown at once, a match is still in the caches of its core.
        py.detach(|| {
            for_each(threads, tasks, |task| {
                task.advance(at, to);
                task.show(to);
            })
        })?;
        if to == most {
            return Ok(());
        }
        py.check_signals()?;
        at = to;
    }
}
