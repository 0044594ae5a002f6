//! Where balls go while nobody touches them, from the numbers that a match shows of them.
//!
//! A ball's next tick is a function of its shown numbers alone. So equal numbers give equal flights to the bit,
//! in any process and whatever was asked before, and a flight of an earlier call is continued where a ball is on
//! it. Over open floor the tick is computed here, elsewhere it is RocketSim's.

use std::collections::HashMap;

use glam::{Mat3A, Vec3A};
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray2, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rocketsim::consts::{BT_TO_UU, TICK_TIME, UU_TO_BT, ball};
use rocketsim::{Arena, ArenaEvent, BallState, MutatorConfig, PhysState};

use crate::arguments::{CHECKED, Object, Whole, busy, readable};
use crate::bounce;
use crate::errors::{Error, Result, refuse};
use crate::forecast::FRAME;
use crate::matches::{Frames, new_arena};
use crate::panics::guarded;
use crate::view;

/// Numbers of a ball: times the game's gravity, then a frame.
const BALL: usize = 1 + FRAME;
/// Ticks of a flight, at most: 10 s.
const MOST_TICKS: usize = 1200;
/// Most of what a ball may have: times gravity, uu, uu/s, rad/s.
const MOST: [f32; 4] = [1e3, 2e4, 1e5, 1e3];
/// Calls with as many balls share flights; more kinds of calls than this begin anew.
const MOST_GROUPS: usize = 8;
/// uu of the ball's height below which it meets the floor.
const CONTACT_Z: f32 = 93.155;
/// Share of what the ball is too deep in the floor by which a tick lifts it.
const LIFT: f32 = 0.8;

/// Position (uu), velocity (uu/s) and spin (rad/s) as a match shows them.
type Frame = [f32; FRAME];

/// A ball's frames of the ticks to come, the present one first.
#[derive(Clone)]
struct Flight {
    gravity: f32,
    frames: Vec<Frame>,
    first: usize,
}

impl Flight {
    fn at(&self, tick: usize) -> &Frame {
        &self.frames[(self.first + tick) % self.frames.len()]
    }

    /// Return after how many ticks of the flight a ball is shown, if it is on it.
    fn find(&self, ball: &Frame) -> Option<usize> {
        (0..self.frames.len()).find(|&tick| self.at(tick) == ball)
    }
}

/// Forecasts of balls from their numbers, some ticks ahead.
#[pyclass(module = "rocketsim_batch")]
pub struct BallFlights {
    ticks: Vec<usize>,
    physics: Physics,
    groups: HashMap<usize, Vec<Flight>>,
}

#[pymethods]
impl BallFlights {
    /// Prepare for forecasts of these numbers of ticks, each 1 to 1200.
    #[new]
    fn new(ticks: Vec<Whole>) -> Result<Self> {
        let ticks = ticks.iter().map(|ticks| ticks.within("a number in ticks", 1..=MOST_TICKS));
        let ticks = ticks.collect::<Result<Vec<_>>>()?;
        if ticks.is_empty() {
            refuse!("ticks is empty, expected numbers from 1 to {MOST_TICKS}");
        }
        Ok(Self { ticks, physics: Physics::new()?, groups: HashMap::new() })
    }

    /// Return where untouched balls will be: float32 `(n, len(ticks), 9)`.
    ///
    /// `balls` is float32 `(n, 10)`: times the game's gravity, position (uu), velocity (uu/s), spin (rad/s). A ball
    /// without any speed stays where it is. Raises ValueError where a number is not finite or absurd.
    fn forecast<'py>(slf: &Bound<'py, Self>, balls: &Object<'py>) -> Result<Frames<'py>> {
        let (py, this) = (slf.py(), &mut *slf.try_borrow_mut().map_err(busy)?);
        let count = balls.cast::<PyUntypedArray>().map_or(0, |balls| balls.shape().first().map_or(0, |n| *n));
        let balls: PyReadonlyArray2<'py, f32> = readable("balls", balls, &[&[count, BALL]])?;
        let balls = balls.as_slice().expect(CHECKED);
        check(balls)?;
        let mut numbers = vec![0.0f32; count * this.ticks.len() * FRAME];
        let done = py.detach(|| guarded(|| this.fill(balls, &mut numbers)));
        done.map_err(|text| {
            this.groups.clear();
            Error::Python(PyRuntimeError::new_err(format!("RocketSim panicked in a forecast: {text}")))
        })?;
        Ok(PyArray1::from_vec(py, numbers).reshape([count, this.ticks.len(), FRAME])?)
    }
}

impl BallFlights {
    fn fill(&mut self, balls: &[f32], numbers: &mut [f32]) {
        let (count, longest) = (balls.len() / BALL, self.ticks.iter().copied().max().unwrap_or(1));
        if self.groups.len() >= MOST_GROUPS && !self.groups.contains_key(&count) {
            self.groups.clear();
        }
        let none = Flight { gravity: f32::NAN, frames: vec![[f32::NAN; FRAME]; longest + 1], first: 0 };
        let flights = self.groups.entry(count).or_insert_with(|| vec![none; count]);
        let answers = numbers.chunks_exact_mut(self.ticks.len() * FRAME);
        for ((ball, flight), answer) in balls.chunks_exact(BALL).zip(flights).zip(answers) {
            let mut now = [0.0; FRAME];
            now.copy_from_slice(&ball[1..]);
            self.physics.follow(flight, ball[0], now);
            for (frame, &tick) in answer.chunks_exact_mut(FRAME).zip(&self.ticks) {
                frame.copy_from_slice(flight.at(tick));
            }
        }
    }
}

/// Refuse balls with numbers that no match shows.
fn check(balls: &[f32]) -> Result<()> {
    for (number, ball) in balls.chunks_exact(BALL).enumerate() {
        for (part, value) in ball.iter().enumerate() {
            let most = MOST[part.div_ceil(3)];
            if !(-most..=most).contains(value) {
                let name = ["gravity", "position", "velocity", "spin"][part.div_ceil(3)];
                refuse!("{name} of ball {number} has {value}, expected numbers from -{most} to {most}");
            }
        }
    }
    Ok(())
}

/// What a ball's ticks need.
struct Physics {
    arena: Arena,
    config: MutatorConfig,
    gravity: f32,
    damping: f32,
}

impl Physics {
    fn new() -> Result<Self> {
        let arena = new_arena(true)?;
        let config = *arena.mutator_config();
        Ok(Self { arena, config, gravity: 1.0, damping: (1.0 - config.ball_drag).powf(TICK_TIME) })
    }

    /// Let a flight begin with a ball as it is shown now, and go on to its end.
    fn follow(&mut self, flight: &mut Flight, gravity: f32, now: Frame) {
        let longest = flight.frames.len() - 1;
        let on_it = if flight.gravity == gravity { flight.find(&now) } else { None };
        let known = match on_it {
            Some(ticks) => {
                flight.first = (flight.first + ticks) % flight.frames.len();
                longest - ticks
            }
            None => {
                (flight.gravity, flight.first, flight.frames[0]) = (gravity, 0, now);
                0
            }
        };
        for tick in known..longest {
            let next = self.next(*flight.at(tick), gravity);
            let place = (flight.first + tick + 1) % flight.frames.len();
            flight.frames[place] = next;
        }
    }

    fn next(&mut self, frame: Frame, gravity: f32) -> Frame {
        if frame[3..] == [0.0; 6] {
            return frame;
        }
        let [x, y, z] = [frame[0].abs(), frame[1].abs(), frame[2]];
        // Away from ramps, walls and goals: nothing but the floor is near.
        let over_floor = x < 3830.0 && y < 4950.0 && x + y < 7510.0 && z > 80.0 && z < 1600.0;
        let below_ceiling = x < 3650.0 && y < 4700.0 && x + y < 7400.0 && z > 80.0 && z < 1935.0;
        let between_walls = x < 3985.0 && y < 5010.0 && x + y < 7730.0 && z > 240.0 && z < 1600.0;
        if over_floor || below_ceiling || between_walls {
            return self.fly(&frame, gravity);
        }
        self.simulate(&frame, gravity)
    }

    /// Return a ball's next tick over open floor, which it may meet.
    fn fly(&self, frame: &Frame, gravity: f32) -> Frame {
        let [mut pos, vel, mut spin] = parts(frame);
        // In RocketSim's own unit, so that rounding is the same.
        let slowed = vel * UU_TO_BT * self.damping;
        let pull = Vec3A::new(0.0, 0.0, self.config.gravity.z * gravity * UU_TO_BT) * TICK_TIME;
        let mut new = slowed + pull;
        let (radius, depth) = (self.config.ball_radius, self.config.ball_radius - pos.z);
        let push = -new.z + (-bounce::OWN * slowed.z).max(0.0);
        if pos.z < CONTACT_Z && push > 0.0 {
            let arm = Vec3A::new(0.0, 0.0, -radius);
            let slip = new.with_z(0.0) * BT_TO_UU + spin.cross(arm).with_z(0.0);
            let grip = (slip.length() * 2.0 / 7.0).min(bounce::FRICTION * push * BT_TO_UU);
            let rub = -slip.normalize_or_zero() * grip;
            new += Vec3A::new(0.0, 0.0, push) + rub * UU_TO_BT;
            spin += arm.cross(rub) / (bounce::INERTIA * radius * radius);
        }
        if depth > 0.0 {
            pos.z += LIFT * depth;
        }
        let pos = pos * UU_TO_BT + new * TICK_TIME;
        self.shown(pos * BT_TO_UU, new * BT_TO_UU, spin)
    }

    /// Return a ball's next tick by RocketSim.
    fn simulate(&mut self, frame: &Frame, gravity: f32) -> Frame {
        if gravity != self.gravity {
            let pull = self.config.gravity * gravity;
            self.arena.set_mutator_config(MutatorConfig { gravity: pull, ..self.config });
            self.gravity = gravity;
        }
        if self.tick(frame) > 1 {
            // The order of several contacts depends on where the ball was: let it always come from one place.
            self.tick(&[0.0, 0.0, 1000.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
            self.tick(frame);
        }
        let now = &self.arena.get_ball_state().phys;
        self.shown(now.pos, now.vel, now.ang_vel)
    }

    /// Simulate a tick of a ball, and return how often it met the field.
    fn tick(&mut self, frame: &Frame) -> usize {
        let [pos, vel, ang_vel] = parts(frame);
        let phys = PhysState { pos, rot_mat: Mat3A::IDENTITY, vel, ang_vel };
        self.arena.set_ball_state(BallState { phys, ..BallState::DEFAULT });
        self.arena.clear_persistent_manifolds();
        self.arena.step_tick().iter().filter(|event| matches!(event, ArenaEvent::BallHitWorld(_))).count()
    }

    fn shown(&self, pos: Vec3A, vel: Vec3A, spin: Vec3A) -> Frame {
        let seen = view::settled_motion([pos, vel, spin], self.config.ball_max_speed, ball::MAX_ANG_SPEED);
        let mut frame = [0.0; FRAME];
        for (part, vector) in frame.chunks_exact_mut(3).zip(seen) {
            part.copy_from_slice(&vector.to_array());
        }
        frame
    }
}

/// Return position, velocity and spin of a frame.
fn parts(frame: &Frame) -> [Vec3A; 3] {
    [0, 3, 6].map(|at| Vec3A::from_slice(&frame[at..at + 3]))
}
