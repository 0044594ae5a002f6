//! One match: RocketSim's arena, and what the module remembers beside it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use fastrand::Rng;
use rocketsim::consts::ball;
use rocketsim::{Arena, ArenaEvent, BallState, BoostPadState, CarBodyConfig, PhysState, Team};

use crate::bounce::{self, Surroundings};
use crate::controls::{ControlQueue, as_rocketsim};
use crate::errors::{Error, Result};
use crate::events::{Event, Kind};
use crate::layout::{Layout, MOST_TEAM_SIZE};
use crate::mutators::Mutators;
use crate::panics;
use crate::statistics::Statistics;
use crate::view::{self, CarClocks};

const HITBOXES: [CarBodyConfig; 7] = [
    CarBodyConfig::OCTANE,
    CarBodyConfig::DOMINUS,
    CarBodyConfig::PLANK,
    CarBodyConfig::BREAKOUT,
    CarBodyConfig::HYBRID,
    CarBodyConfig::MERC,
    CarBodyConfig::PSYCLOPS,
];

/// s that a pad shows where the rules have none: it never comes back.
const NEVER: f32 = 1e6;

/// One match of a group.
#[derive(Clone)]
pub struct Game {
    /// RocketSim's world.
    pub arena: Arena,
    /// The rules.
    pub mutators: Mutators,
    /// Control vectors of each car.
    pub queues: Vec<ControlQueue>,
    /// Shots, saves and what else is counted.
    pub statistics: Statistics,
    /// Events of the latest step.
    pub events: Vec<Event>,
    /// Why the match is dead, if it is.
    pub dead: Option<String>,
    /// Where kickoffs and respawns come from.
    random: Rng,
    clocks: [CarClocks; 2 * MOST_TEAM_SIZE],
    ticks: u64,
    panics_next: bool,
}

impl Game {
    /// Return a match without cars; it needs a `put` before it can be stepped.
    pub fn new(template: &Arena, layout: &Layout, seed: u64) -> Self {
        Self {
            arena: template.clone(),
            mutators: Mutators::default(),
            queues: vec![ControlQueue::default(); layout.cars()],
            statistics: Statistics::default(),
            events: Vec::new(),
            dead: Some("it has no state yet".to_owned()),
            random: Rng::with_seed(seed),
            clocks: [CarClocks::default(); 2 * MOST_TEAM_SIZE],
            ticks: 0,
            panics_next: false,
        }
    }

    /// Begin the random stream anew.
    pub fn seed(&mut self, seed: u64) {
        self.random = Rng::with_seed(seed);
    }

    /// Let the next step panic, so that a caller can test what it does then.
    pub fn panic_next(&mut self) {
        self.panics_next = true;
    }

    /// Make the match anew from a row of numbers, and write what a packet would show into `row`.
    ///
    /// Hidden state of the old arena cannot remain: the new one is a clone of a template.
    pub fn put(&mut self, template: &Arena, layout: &Layout, desired: &[f32], row: &mut [f32]) -> Result<()> {
        let mut config = self.mutators.config;
        let of = &layout.of_match;
        config.gravity.z *= view::number(desired, of.gravity, "gravity", (-1e3, 1e3), 1.0)?;
        config.boost_used_per_second *=
            view::number(desired, of.boost_consumption, "boost_consumption", (0.0, 1e3), 1.0)?;
        let deadzone = view::number(desired, of.dodge_deadzone, "dodge_deadzone", (0.0, 4.0), 0.5)?;
        let ball = view::read_body(desired, view::ball_columns(layout), "ball_")?;
        let pads = view::read_pads(layout, desired)?;
        let mut cars = Vec::with_capacity(layout.cars());
        for car in 0..layout.cars() {
            let part = &desired[layout.car_start + car * layout.car_stride..][..layout.car_stride];
            let read = view::read_car(&layout.of_car, part, config.car_max_boost_amount);
            cars.push(read.map_err(|error| within(error, &format!("car {car}: ")))?);
        }
        let random = self.random.fork();
        let arena = guarded(|| {
            let mut arena = template.clone();
            arena.set_mutator_config(config);
            for (car, read) in cars.iter().enumerate() {
                let team = if car < layout.blue { Team::Blue } else { Team::Orange };
                let body = CarBodyConfig { dodge_deadzone: deadzone, ..HITBOXES[read.hitbox] };
                arena.add_car(team, body);
            }
            arena.rng = random;
            place_ball(&mut arena, ball);
            for (car, read) in cars.iter().enumerate() {
                arena.set_car_state_full(car, read.state);
            }
            for car in 0..cars.len() {
                arena.refresh_car_contacts(car);
            }
            for (pad, &cooldown) in pads.iter().enumerate().filter(|(_, cooldown)| **cooldown > 0.0) {
                arena.set_boost_pad_state(pad, BoostPadState { cooldown, touching_car_idxs: Vec::new() });
            }
            arena
        });
        self.arena = arena.map_err(|text| Error::Panicked(vec![(0, text)]))?;
        self.dead = None;
        self.statistics = Statistics::default();
        self.events.clear();
        self.ticks = 0;
        for (car, read) in cars.iter().enumerate() {
            self.queues[car].begin(read.held);
            self.clocks[car] = read.clocks;
        }
        row.copy_from_slice(desired);
        self.show(layout, row);
        Ok(())
    }

    /// Move bodies a little and keep all that is remembered; write what a packet would show into `row`.
    pub fn nudge(
        &mut self,
        layout: &Layout,
        desired: &[f32],
        ball: bool,
        cars: &[bool],
        row: &mut [f32],
    ) -> Result<()> {
        let new_ball = view::read_body(desired, view::ball_columns(layout), "ball_")?;
        let columns = view::car_columns(&layout.of_car);
        let mut bodies = Vec::with_capacity(cars.len());
        for car in 0..cars.len() {
            let part = &desired[layout.car_start + car * layout.car_stride..][..layout.car_stride];
            bodies.push(
                view::read_body(part, columns, "").map_err(|error| within(error, &format!("car {car}: ")))?,
            );
        }
        if ball && !self.shows_ball(new_ball) {
            place_ball(&mut self.arena, new_ball);
            self.statistics.ball_was_set();
        }
        for (car, body) in bodies.into_iter().enumerate().filter(|(car, _)| cars[*car]) {
            self.arena.edit_car_state_full(car, |state| state.phys = body);
        }
        self.show(layout, row);
        Ok(())
    }

    /// Put the cars on kickoff spots with the ball asleep, and show it.
    pub fn kickoff(&mut self, layout: &Layout, row: &mut [f32]) {
        let seed = self.random.u64(..);
        self.arena.reset_to_random_kickoff(Some(seed));
        self.arena.sleep_ball();
        for car in 0..layout.cars() {
            self.arena.refresh_car_contacts(car);
            self.queues[car].begin([0.0; 8]);
        }
        self.clocks = [CarClocks::default(); 2 * MOST_TEAM_SIZE];
        self.statistics.ball_was_set();
        self.show(layout, row);
    }

    /// Take the control vectors of a step, one a tick or one in all for each car.
    pub fn take(&mut self, vectors: &[f32], per_car: usize, delays: impl Fn(usize) -> u64) {
        let width = per_car * crate::controls::CONTROLS;
        for (car, queue) in self.queues.iter_mut().enumerate() {
            queue.add(self.ticks + delays(car), &vectors[car * width..(car + 1) * width]);
        }
    }

    /// Begin a step: events and touches are those of this step only.
    pub fn begin_step(&mut self) {
        self.events.clear();
        for clocks in &mut self.clocks {
            clocks.touches = 0;
        }
    }

    /// Simulate some ticks; a panic kills the match. `from` is the step's tick that comes first.
    pub fn advance(&mut self, layout: &Layout, from: u32, ticks: u32) {
        if self.dead.is_some() {
            return;
        }
        let done = guarded(|| {
            for tick in from..from + ticks {
                self.tick(layout, tick);
            }
        });
        if let Err(text) = done {
            self.dead = Some(text);
        }
    }

    /// Write the match into its row: what a packet would show now.
    pub fn show(&self, layout: &Layout, row: &mut [f32]) {
        let speed = self.arena.mutator_config().ball_max_speed;
        view::write_ball(layout, row, &self.arena.get_ball_state().phys, speed);
        let enabled = self.arena.mutator_config().boost_pads_enabled;
        view::write_pads(layout, row, |pad| {
            if enabled { self.arena.get_boost_pad_state(pad).cooldown } else { NEVER }
        });
        for (car, queue) in self.queues.iter().enumerate() {
            let part = &mut row[layout.car_start + car * layout.car_stride..][..layout.car_stride];
            view::write_car(
                &layout.of_car,
                part,
                self.arena.get_car_state(car),
                &self.clocks[car],
                &queue.held,
            );
        }
    }

    fn tick(&mut self, layout: &Layout, tick: u32) {
        assert!(!std::mem::take(&mut self.panics_next), "a test asked for this panic");
        for (car, queue) in self.queues.iter_mut().enumerate() {
            self.arena.set_car_controls(car, as_rocketsim(queue.at(self.ticks)));
        }
        let before = self.arena.get_ball_state().phys;
        self.arena.step_tick();
        self.ticks += 1;
        let bounced = self.note_events(layout, tick, &before);
        if bounced && self.mutators.ball_bounciness != bounce::OWN {
            self.correct_bounce(&before);
        }
        for (car, clocks) in self.clocks[..self.queues.len()].iter_mut().enumerate() {
            clocks.tick(self.arena.get_car_state(car));
        }
        let config = self.arena.mutator_config();
        let (events, scored) = (&mut self.events, self.arena.is_ball_scored());
        self.statistics.update(
            self.arena.get_ball_state(),
            scored,
            self.ticks,
            (layout.blue, layout.cars()),
            (config.gravity.z, config.ball_radius),
            |event| events.push(Event { tick, ..event }),
        );
    }

    /// Simulate a tick of a match whose cars were taken off.
    pub fn tick_ball(&mut self) {
        let before = self.arena.get_ball_state().phys;
        let events = self.arena.step_tick();
        if events.iter().any(|event| matches!(event, ArenaEvent::BallHitWorld(_))) {
            self.correct_bounce(&before);
        }
    }

    /// Note the events of a tick, one touch a car at most; return whether the ball met the field alone.
    fn note_events(&mut self, layout: &Layout, tick: u32, before: &PhysState) -> bool {
        let (mut touched, mut bounce) = ([false; 2 * MOST_TEAM_SIZE], None);
        for event in self.arena.get_last_step_events() {
            let new = match event {
                ArenaEvent::CarHitBall(hit) if !std::mem::replace(&mut touched[hit.car_idx], true) => {
                    self.statistics.touch(hit.car_idx, self.ticks - 1);
                    self.clocks[hit.car_idx].touches += 1;
                    let (at, arm) = (hit.contact_point, hit.contact_point - before.pos);
                    let numbers = [at.x, at.y, at.z, arm.x, arm.y, arm.z];
                    Event::new(Kind::Touch, Some(hit.car_idx), None, numbers)
                }
                ArenaEvent::CarHitCar(hit) => {
                    let at = hit.contact_point;
                    if hit.is_demo {
                        self.statistics.demolition(hit.bumper_car_idx);
                    }
                    let kind = if hit.is_demo { Kind::Demolition } else { Kind::Bump };
                    let numbers = [at.x, at.y, at.z, 0.0, 0.0, 0.0];
                    Event::new(kind, Some(hit.bumper_car_idx), Some(hit.victim_car_idx), numbers)
                }
                ArenaEvent::CarPickupBoost(taken) => {
                    let pad = layout.pads.iter().position(|&pad| pad == taken.boost_pad_idx);
                    Event::new(Kind::Pad, Some(taken.car_idx), pad, [0.0; 6])
                }
                ArenaEvent::CarLanded(landing) => {
                    let wheels = landing.wheels.iter().flatten().count() as f32;
                    Event::new(Kind::Landing, Some(landing.car_idx), None, [wheels, 0.0, 0.0, 0.0, 0.0, 0.0])
                }
                ArenaEvent::BallHitWorld(hit) => {
                    bounce.get_or_insert(hit);
                    continue;
                }
                ArenaEvent::CarHitBall(_) | ArenaEvent::CarHitWorld(_) => continue,
            };
            self.events.push(Event { tick, ..new });
        }
        let Some(hit) = bounce else { return false };
        let (at, normal) = (hit.contact_point, hit.contact_normal);
        let numbers = [at.x, at.y, at.z, normal.x, normal.y, normal.z];
        self.events.push(Event { tick, ..Event::new(Kind::Bounce, None, None, numbers) });
        !touched.contains(&true)
    }

    fn correct_bounce(&mut self, before: &PhysState) {
        let config = self.arena.mutator_config();
        let around =
            Surroundings { gravity: config.gravity.z, drag: config.ball_drag, radius: config.ball_radius };
        let seen = view::settled(before, config.ball_max_speed, ball::MAX_ANG_SPEED);
        let after = &self.arena.get_ball_state().phys;
        let new = bounce::corrected(&seen, after, self.mutators.ball_bounciness, around);
        self.arena.edit_ball_state(|state| state.phys = new);
    }

    /// Return whether the ball is shown like this already.
    fn shows_ball(&self, body: PhysState) -> bool {
        let speed = self.arena.mutator_config().ball_max_speed;
        let seen = view::settled(&self.arena.get_ball_state().phys, speed, ball::MAX_ANG_SPEED);
        seen.pos == body.pos && seen.vel == body.vel && seen.ang_vel == body.ang_vel
    }
}

/// Set the ball; one without any speed stays where it is until something touches it, as in the game.
fn place_ball(arena: &mut Arena, body: PhysState) {
    arena.set_ball_state(BallState { phys: body, ..BallState::DEFAULT });
    if body.vel == glam::Vec3A::ZERO && body.ang_vel == glam::Vec3A::ZERO {
        arena.sleep_ball();
    }
}

/// Run what may panic inside RocketSim; return the panic's message as the error.
pub fn guarded<T>(run: impl FnOnce() -> T) -> std::result::Result<T, String> {
    let _quiet = panics::Quiet::begin();
    catch_unwind(AssertUnwindSafe(run)).map_err(|_| panics::last_message())
}

/// Put words before an argument's error.
pub fn within(error: Error, words: &str) -> Error {
    match error {
        Error::Argument(text) => Error::Argument(format!("{words}{text}")),
        other => other,
    }
}
