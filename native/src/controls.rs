//! Control vectors that wait for their tick.

use std::collections::VecDeque;

use rocketsim::CarControls;

use crate::errors::{Result, refuse};

/// Numbers of a control vector: throttle, steer, pitch, yaw, roll, jump, boost, handbrake.
pub const CONTROLS: usize = 8;

/// A control vector as the caller gave it.
pub type Vector = [f32; CONTROLS];

const NAMES: [&str; CONTROLS] = ["throttle", "steer", "pitch", "yaw", "roll", "jump", "boost", "handbrake"];

/// Return a control vector as RocketSim has it; a button is pressed above 0.
pub fn as_rocketsim(vector: &Vector) -> CarControls {
    let [throttle, steer, pitch, yaw, roll, jump, boost, handbrake] = *vector;
    let [jump, boost, handbrake] = [jump, boost, handbrake].map(|button| button > 0.0);
    CarControls { throttle, steer, pitch, yaw, roll, jump, boost, handbrake }
}

fn is_outside(number: &f32) -> bool {
    !(-1.0..=1.0).contains(number)
}

/// Refuse numbers outside -1 to 1; NaN too.
///
/// `vectors` holds `per_car` vectors a car and `cars` cars a match.
pub fn check(vectors: &[f32], cars: usize, per_car: usize) -> Result<()> {
    // Without a branch inside, this is one pass of vector instructions.
    let bad = vectors.iter().fold(false, |bad, number| bad | is_outside(number));
    if !bad {
        return Ok(());
    }
    let at = vectors.iter().position(is_outside).unwrap_or(0);
    let (car, name, value) = (at / (per_car * CONTROLS), NAMES[at % CONTROLS], vectors[at]);
    let (number, car) = (car / cars, car % cars);
    refuse!("controls of match {number}, car {car}: {name} is {value}, expected a number from -1 to 1")
}

/// The control vectors of one car: the one that acts, and those that act later.
#[derive(Clone, Debug, Default)]
pub struct ControlQueue {
    /// The vector of the latest tick.
    pub held: Vector,
    waiting: VecDeque<(u64, Vector)>,
}

impl ControlQueue {
    /// Forget what waits, and hold a vector.
    pub fn begin(&mut self, held: Vector) {
        self.held = held;
        self.waiting.clear();
    }

    /// Become equal to another queue, without new memory.
    pub fn copy_from(&mut self, other: &Self) {
        self.held = other.held;
        self.waiting.clear();
        self.waiting.extend(&other.waiting);
    }

    /// Add vectors, one a tick from tick `begins` on; what waits for that tick or a later one is dropped.
    pub fn add(&mut self, begins: u64, vectors: &[f32]) {
        while self.waiting.back().is_some_and(|(tick, _)| *tick >= begins) {
            self.waiting.pop_back();
        }
        let mut last: Option<Vector> = None;
        for (tick, vector) in vectors.chunks_exact(CONTROLS).enumerate() {
            let mut new = Vector::default();
            new.copy_from_slice(vector);
            if last != Some(new) {
                self.waiting.push_back((begins + tick as u64, new));
                last = Some(new);
            }
        }
    }

    /// Return the vector that acts in a tick.
    pub fn at(&mut self, tick: u64) -> &Vector {
        while self.waiting.front().is_some_and(|(begins, _)| *begins <= tick) {
            if let Some((_, vector)) = self.waiting.pop_front() {
                self.held = vector;
            }
        }
        &self.held
    }
}
