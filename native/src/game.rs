//! One match: RocketSim's arena, and what the module remembers beside it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use fastrand::Rng;
use rocketsim::consts;
use rocketsim::{Arena, ArenaEvent, BallState, BoostPadState, CarBodyConfig, MutatorConfig, PhysState, Team};

use crate::bounce::{self, Surroundings};
use crate::controls::{ControlQueue, as_rocketsim};
use crate::errors::Result;
use crate::events::{Event, Kind};
use crate::layout::{Layout, MOST_TEAM_SIZE, PADS};
use crate::mutators::Mutators;
use crate::panics;
use crate::statistics::Statistics;
use crate::view::{self, CarClocks, ReadCar};

const HITBOXES: [CarBodyConfig; 7] = [
    CarBodyConfig::OCTANE,
    CarBodyConfig::DOMINUS,
    CarBodyConfig::PLANK,
    CarBodyConfig::BREAKOUT,
    CarBodyConfig::HYBRID,
    CarBodyConfig::MERC,
    CarBodyConfig::PSYCLOPS,
];

/// uu/s along the field's normal from which a contact of the ball is a bounce.
const SLOWEST_BOUNCE: f32 = 10.0;

/// s that a pad shows where the rules have none: it never comes back.
const NEVER: f32 = 1e6;

/// What `put` was asked for, read and checked.
pub struct Desired {
    config: MutatorConfig,
    deadzone: f32,
    ball: PhysState,
    pads: [f32; PADS],
    cars: Vec<ReadCar>,
}

/// One match of a group.
#[derive(Clone)]
pub struct Game {
    /// RocketSim's world.
    pub arena: Arena,
    /// The rules.
    pub mutators: Mutators,
    /// Restitution of ball and field in force since the latest `put`.
    pub bounciness: f32,
    /// Control vectors of each car.
    queues: Vec<ControlQueue>,
    /// The tick at which the latest step began, and the vectors then, to report a panic.
    began: (u64, Vec<ControlQueue>),
    /// What the random stream began with.
    seed: u64,
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
            bounciness: bounce::OWN,
            queues: vec![ControlQueue::default(); layout.cars()],
            began: (0, vec![ControlQueue::default(); layout.cars()]),
            seed,
            statistics: Statistics::default(),
            events: Vec::new(),
            dead: Some("it has no state yet".to_owned()),
            random: Rng::with_seed(seed),
            clocks: [CarClocks::default(); 2 * MOST_TEAM_SIZE],
            ticks: 0,
            panics_next: false,
        }
    }

    /// Begin the random streams anew, that of kickoffs and that of respawns.
    pub fn seed(&mut self, seed: u64) {
        self.seed = seed;
        self.random = Rng::with_seed(seed);
        self.arena.rng = Rng::with_seed(!seed);
    }

    /// Return the seed, the ticks of the latest step that were simulated, and each car's vectors up to and
    /// with the tick that came next, `(cars, ticks + 1, 8)`.
    pub fn latest_step(&self) -> (u64, u64, Vec<f32>) {
        let (begin, mut queues) = self.began.clone();
        let mut vectors = Vec::new();
        for queue in &mut queues {
            (begin..=self.ticks).for_each(|tick| vectors.extend(queue.at(tick)));
        }
        (self.seed, self.ticks - begin, vectors)
    }

    /// Let the next step panic, so that a caller can test what it does then.
    pub fn panic_next(&mut self) {
        self.panics_next = true;
    }

    /// Read and check a row of numbers for `place`.
    pub fn read(&self, layout: &Layout, desired: &[f32]) -> Result<Desired> {
        let mut config = self.mutators.config;
        let of = &layout.of_match;
        config.gravity.z *= view::number(desired, of.gravity, "gravity", (-1e3, 1e3), 1.0)?;
        config.boost_used_per_second *=
            view::number(desired, of.boost_consumption, "boost_consumption", (0.0, 1e3), 1.0)?;
        let deadzone = view::number(desired, of.dodge_deadzone, "dodge_deadzone", (0.0, 4.0), 0.5)?;
        let mut cars = Vec::with_capacity(layout.cars());
        for car in 0..layout.cars() {
            let read = view::read_car(&layout.of_car, layout.part(desired, car), config.car_max_boost_amount);
            cars.push(read.map_err(|error| error.within(&format!("car {car}: ")))?);
        }
        Ok(Desired {
            config,
            deadzone,
            ball: view::read_body(desired, view::ball_columns(layout), "ball_", &view::NOWHERE)?,
            pads: view::read_pads(layout, desired)?,
            cars,
        })
    }

    /// Make the match anew.
    pub fn place(&mut self, template: &Arena, layout: &Layout, desired: Desired) {
        let bodies = desired.cars.iter().enumerate().map(|(car, read)| {
            let team = if car < layout.blue { Team::Blue } else { Team::Orange };
            (team, CarBodyConfig { dodge_deadzone: desired.deadzone, ..HITBOXES[read.hitbox] })
        });
        let mut arena = fresh(template, desired.config, bodies, self.random.fork());
        place_ball(&mut arena, desired.ball);
        for (car, read) in desired.cars.iter().enumerate() {
            arena.set_car_state_full(car, read.state);
        }
        for car in 0..desired.cars.len() {
            arena.refresh_car_contacts(car);
        }
        for (pad, &cooldown) in desired.pads.iter().enumerate().filter(|(_, cooldown)| **cooldown > 0.0) {
            arena.set_boost_pad_state(pad, BoostPadState { cooldown, touching_car_idxs: Vec::new() });
        }
        self.arena = arena;
        self.bounciness = self.mutators.ball_bounciness;
        self.dead = None;
        self.panics_next = false;
        self.statistics = Statistics::default();
        self.events.clear();
        self.ticks = 0;
        for (car, read) in desired.cars.iter().enumerate() {
            self.queues[car].begin(read.held);
            self.clocks[car] = read.clocks;
        }
    }

    /// Read and check the bodies of a row for `nudge`: the ball's, then the cars'.
    pub fn read_bodies(&self, layout: &Layout, desired: &[f32]) -> Result<Vec<PhysState>> {
        let (columns, now) = (view::car_columns(&layout.of_car), &self.arena.get_ball_state().phys);
        let mut bodies = vec![view::read_body(desired, view::ball_columns(layout), "ball_", now)?];
        for car in 0..layout.cars() {
            let now = &self.arena.get_car_state(car).phys;
            let body = view::read_body(layout.part(desired, car), columns, "", now);
            bodies.push(body.map_err(|error| error.within(&format!("car {car}: ")))?);
        }
        Ok(bodies)
    }

    /// Move bodies and keep all that is remembered; what is shown there already is left alone.
    pub fn nudge(&mut self, bodies: &[PhysState], ball: bool, cars: &[bool]) {
        let (now, speed) = (self.arena.get_ball_state().phys, self.arena.mutator_config().ball_max_speed);
        let new = view::changed(&now, &bodies[0], speed, consts::ball::MAX_ANG_SPEED);
        if ball && new != now {
            place_ball(&mut self.arena, new);
            self.statistics.ball_was_set();
        }
        for (car, body) in bodies[1..].iter().enumerate().filter(|(car, _)| cars[*car]) {
            let now = self.arena.get_car_state(car).phys;
            let new = view::changed(&now, body, consts::car::MAX_SPEED, consts::car::MAX_ANG_SPEED);
            if new != now {
                self.arena.edit_car_state_full(car, |state| state.phys = new);
            }
        }
    }

    /// Put the cars on kickoff spots with the ball asleep.
    pub fn kickoff(&mut self, layout: &Layout, template: &Arena) {
        let (seed, old) = (self.random.u64(..), &self.arena);
        let infos = (0..old.num_cars()).map(|car| old.get_car_info(car));
        let bodies = infos.map(|info| (info.team, info.config));
        self.arena = fresh(template, *old.mutator_config(), bodies, self.random.fork());
        self.arena.reset_to_random_kickoff(Some(seed));
        self.arena.sleep_ball();
        for car in 0..layout.cars() {
            self.arena.refresh_car_contacts(car);
            self.queues[car].begin([0.0; 8]);
        }
        self.clocks = [CarClocks::default(); 2 * MOST_TEAM_SIZE];
        self.statistics.kickoff();
    }

    /// Take the control vectors of a step, one a tick or one in all for each car.
    pub fn take(&mut self, vectors: &[f32], per_car: usize, delays: impl Fn(usize) -> u64) {
        let width = per_car * crate::controls::CONTROLS;
        for (car, queue) in self.queues.iter_mut().enumerate() {
            queue.add(self.ticks + delays(car), &vectors[car * width..(car + 1) * width]);
            self.began.1[car].copy_from(queue);
        }
        self.began.0 = self.ticks;
        // Events and touches are those of one step.
        self.events.clear();
        self.clocks.iter_mut().for_each(|clocks| clocks.touches = 0);
    }

    /// Simulate some ticks; a panic kills the match. `from` is the step's tick that comes first.
    pub fn advance(&mut self, layout: &Layout, from: u32, ticks: u32) {
        if self.dead.is_none() {
            self.dead = guarded(|| (from..from + ticks).for_each(|tick| self.tick(layout, tick))).err();
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
        if bounced {
            correct_bounce(&mut self.arena, &before, self.bounciness);
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
        // A ball that lies or rolls meets the field in each tick and is as slow as one tick of gravity makes it.
        if before.vel.dot(normal).abs() > SLOWEST_BOUNCE {
            let numbers = [at.x, at.y, at.z, normal.x, normal.y, normal.z];
            self.events.push(Event { tick, ..Event::new(Kind::Bounce, None, None, numbers) });
        }
        !touched.contains(&true)
    }
}

/// Simulate a tick of a match whose cars were taken off.
pub fn tick_ball(arena: &mut Arena, bounciness: f32) {
    let before = arena.get_ball_state().phys;
    let events = arena.step_tick();
    if events.iter().any(|event| matches!(event, ArenaEvent::BallHitWorld(_))) {
        correct_bounce(arena, &before, bounciness);
    }
}

/// Make a bounce off the field in the latest tick one of another restitution.
fn correct_bounce(arena: &mut Arena, before: &PhysState, bounciness: f32) {
    if bounciness == bounce::OWN {
        return;
    }
    let config = arena.mutator_config();
    let around =
        Surroundings { gravity: config.gravity.z, drag: config.ball_drag, radius: config.ball_radius };
    let seen = view::settled(before, config.ball_max_speed, consts::ball::MAX_ANG_SPEED);
    let new = bounce::corrected(&seen, &arena.get_ball_state().phys, bounciness, around);
    arena.edit_ball_state(|state| state.phys = new);
}

/// Return a new arena with cars, a clone of a template: hidden state of the old one cannot remain.
fn fresh(
    template: &Arena,
    config: MutatorConfig,
    bodies: impl Iterator<Item = (Team, CarBodyConfig)>,
    random: Rng,
) -> Arena {
    let mut arena = template.clone();
    arena.set_mutator_config(config);
    bodies.for_each(|(team, body)| _ = arena.add_car(team, body));
    arena.rng = random;
    arena
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
