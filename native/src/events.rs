//! What happened in a step, as records of a structured array.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arguments::Object;

/// The kinds of events; their numbers are the module's constants of the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A car touched the ball: place in the world, then relative to the ball's centre before the tick, uu.
    Touch = 0,
    /// `car` bumped `other`: place in the world, uu.
    Bump = 1,
    /// `car` demolished `other`: place in the world, uu.
    Demolition = 2,
    /// `car` took pad `other` (the layout's number).
    Pad = 3,
    /// `car` landed on its wheels: how many touch.
    Landing = 4,
    /// The ball met the field at 10 uu/s or more: place, uu, and normal.
    Bounce = 5,
    /// The ball is in a goal: team that scored, speed in uu/s; `car` scored, `other` passed, -1 for nobody.
    Goal = 6,
    /// `car` shot at the goal, `other` passed: speed in uu/s.
    Shot = 7,
    /// `car` saved a shot.
    Save = 8,
}

/// Names of all kinds, in the order of their numbers.
pub const KINDS: [&str; 9] =
    ["TOUCH", "BUMP", "DEMOLITION", "PAD", "LANDING", "BOUNCE", "GOAL", "SHOT", "SAVE"];

/// One event of a match.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// Tick of the step, from 0.
    pub tick: u32,
    /// What happened.
    pub kind: Kind,
    /// The car, -1 for none.
    pub car: i16,
    /// The other car or pad, -1 for none.
    pub other: i16,
    /// What else there is to say, see `Kind`.
    pub numbers: [f32; 6],
}

impl Event {
    /// Return an event; the caller stamps its tick. At most 6 numbers.
    pub fn new(kind: Kind, car: Option<usize>, other: Option<usize>, some: &[f32]) -> Self {
        let number = |car: Option<usize>| car.map_or(-1, |car| car as i16);
        let mut numbers = [0.0; 6];
        numbers[..some.len()].copy_from_slice(some);
        Self { tick: 0, kind, car: number(car), other: number(other), numbers }
    }
}

/// Return events as one numpy array of the dtype `EVENT`, ordered by match and tick.
pub fn as_array<'py>(py: Python<'py>, all: impl Iterator<Item = (usize, Event)>) -> PyResult<Object<'py>> {
    let mut bytes = Vec::new();
    for (number, event) in all {
        bytes.extend([number as u32, event.tick].into_iter().flat_map(u32::to_le_bytes));
        let shorts = [event.kind as u8 as i16, event.car, event.other];
        bytes.extend(shorts.into_iter().flat_map(i16::to_le_bytes));
        bytes.extend(event.numbers.into_iter().flat_map(f32::to_le_bytes));
    }
    let dtype = py.import("rocketsim_batch")?.getattr("EVENT")?;
    py.import("numpy")?.call_method1("frombuffer", (PyBytes::new(py, &bytes), dtype))
}
