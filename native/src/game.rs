//! One match: RocketSim's arena, and what the module remembers beside it.

use fastrand::Rng;
use rocketsim::consts;
use rocketsim::{
    Arena, ArenaEvent, BallState, BoostPadState, CarBodyConfig as Body, MutatorConfig, PhysState, Team,
};

use crate::bounce;
use crate::controls::{ControlQueue, as_rocketsim};
use crate::errors::{Death, Result};
use crate::events::{Event, Kind};
use crate::layout::{Layout, MOST_TEAM_SIZE, PADS};
use crate::mutators::Mutators;
use crate::panics::{Report, guarded};
use crate::statistics::Statistics;
use crate::view::{self, CarClocks, ReadCar};

const HITBOXES: [Body; 7] =
    [Body::OCTANE, Body::DOMINUS, Body::PLANK, Body::BREAKOUT, Body::HYBRID, Body::MERC, Body::PSYCLOPS];

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
    /// Tick, random streams and vectors as the latest step began, to report a panic.
    began: (u64, [u64; 2], Vec<ControlQueue>),
    /// Shots, saves and what else is counted.
    pub statistics: Statistics,
    /// Events of the latest step.
    pub events: Vec<Event>,
    /// Why the match is dead, if it is.
    pub dead: Option<String>,
    /// What a replay needs of the call in which it died.
    pub report: Option<Box<Report>>,
    /// Where kickoffs and respawns come from.
    random: Rng,
    clocks: [CarClocks; 2 * MOST_TEAM_SIZE],
    ticks: u64,
    /// The call that panics next, and the tick of it, for tests.
    panics_in: Option<(String, u64)>,
}

impl Game {
    /// Return a match without cars; it needs a `put` before it can be stepped.
    pub fn new(template: &Arena, layout: &Layout, seed: u64) -> Self {
        Self {
            arena: template.clone(),
            mutators: Mutators::default(),
            bounciness: bounce::OWN,
            queues: vec![ControlQueue::default(); layout.cars()],
            began: (0, [0; 2], vec![ControlQueue::default(); layout.cars()]),
            statistics: Statistics::default(),
            events: Vec::new(),
            dead: Some("it has no state yet".to_owned()),
            report: None,
            random: Rng::with_seed(seed),
            clocks: [CarClocks::default(); 2 * MOST_TEAM_SIZE],
            ticks: 0,
            panics_in: None,
        }
    }

    /// Begin the random streams anew, that of kickoffs and that of respawns.
    pub fn seed(&mut self, seed: u64) {
        self.random = Rng::with_seed(seed);
        self.arena.rng = Rng::with_seed(!seed);
    }

    /// Return seeds that repeat what comes next of the random streams, that of kickoffs and that of respawns.
    pub fn seeds(&self) -> [u64; 2] {
        [self.random.get_seed(), self.arena.rng.get_seed()]
    }

    /// Set what `seeds` returned.
    pub fn set_seeds(&mut self, [random, respawns]: [u64; 2]) {
        (self.random, self.arena.rng) = (Rng::with_seed(random), Rng::with_seed(respawns));
    }

    /// Return what a replay needs of a call that panicked: the match's row as it began, the row that was given.
    pub fn report(&self, layout: &Layout, call: &'static str, message: &str, rows: [&[f32]; 2]) -> Report {
        let [state_bits, given_bits] = rows.map(|row| row.iter().map(|number| number.to_bits()).collect());
        let (message, layout) = (message.to_owned(), layout.clone());
        let (seeds, mutators, arguments, controls) =
            (self.seeds(), self.mutators.by_name(), Vec::new(), Vec::new());
        Report { message, call, seeds, layout, mutators, state_bits, given_bits, arguments, controls }
    }

    /// Return the match as a dead one, if it is one.
    pub fn death(&self, group: usize, number: usize) -> Option<Death> {
        self.dead.clone().map(|text| Death { group, number, text, report: self.report.clone() })
    }

    /// Kill the match in a step, and keep what a replay needs; `row` is the match as the step began.
    pub fn die_in_step(&mut self, layout: &Layout, message: String, row: &[f32]) {
        let (begin, seeds, mut queues) = self.began.clone();
        let at = |tick| queues.iter_mut().map(|queue| *queue.at(tick)).collect();
        let controls = (begin..=self.ticks).map(at).collect();
        let report = self.report(layout, "step", &message, [row, &[]]);
        (self.dead, self.report) = (Some(message), Some(Box::new(Report { seeds, controls, ..report })));
    }

    /// Let the next call of a name panic, a step after some ticks, so that a caller can test what it does then.
    pub fn panic_next(&mut self, call: String, ticks: u64) {
        self.panics_in = Some((call, self.ticks.saturating_add(ticks)));
    }

    /// Panic where a test asked for it.
    pub fn may_panic(&self, call: &str, tick: u64) {
        let asked = self.panics_in.as_ref().is_some_and(|(name, at)| name == call && *at <= tick);
        assert!(!asked, "a test asked for this panic");
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
        let ball = view::read_body(desired, view::ball_columns(layout), "ball_", &view::NOWHERE)?;
        Ok(Desired { config, deadzone, ball, pads: view::read_pads(layout, desired)?, cars })
    }

    /// Make the match anew.
    pub fn place(&mut self, template: &Arena, layout: &Layout, desired: &Desired) {
        let bodies = desired.cars.iter().enumerate().map(|(car, read)| {
            let team = if car < layout.blue { Team::Blue } else { Team::Orange };
            (team, Body { dodge_deadzone: desired.deadzone, ..HITBOXES[read.hitbox] })
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
        (self.dead, self.report, self.panics_in) = (None, None, None);
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
    ///
    /// `moves` is 1 for each body that moves, the ball first, and 0 for the others.
    pub fn nudge(&mut self, bodies: &[PhysState], moves: &[usize]) {
        let (now, speed) = (self.arena.get_ball_state().phys, self.arena.mutator_config().ball_max_speed);
        let new = view::changed(&now, &bodies[0], speed, consts::ball::MAX_ANG_SPEED);
        if moves[0] == 1 && new != now {
            place_ball(&mut self.arena, new);
            self.statistics.ball_was_set();
        }
        for (car, body) in bodies[1..].iter().enumerate().filter(|(car, _)| moves[car + 1] == 1) {
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
            self.began.2[car].copy_from(queue);
        }
        (self.began.0, self.began.1) = (self.ticks, self.seeds());
        // Events and touches are those of one step.
        self.events.clear();
        self.clocks.iter_mut().for_each(|clocks| clocks.touches = 0);
    }

    /// Simulate some ticks; return what a panic said. `from` is the step's tick that comes first.
    pub fn advance(&mut self, layout: &Layout, from: u32, ticks: u32) -> std::result::Result<(), String> {
        guarded(|| (from..from + ticks).for_each(|tick| self.tick(layout, tick)))
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
            let (state, clocks) = (self.arena.get_car_state(car), &self.clocks[car]);
            view::write_car(&layout.of_car, part, state, clocks, &queue.held);
        }
    }

    fn tick(&mut self, layout: &Layout, tick: u32) {
        self.may_panic("step", self.ticks);
        for (car, queue) in self.queues.iter_mut().enumerate() {
            self.arena.set_car_controls(car, as_rocketsim(queue.at(self.ticks)));
        }
        let before = self.arena.get_ball_state().phys;
        self.arena.step_tick();
        self.ticks += 1;
        if self.note_events(layout, tick, &before) {
            correct_bounce(&mut self.arena, &before, self.bounciness);
        }
        for (car, clocks) in self.clocks[..self.queues.len()].iter_mut().enumerate() {
            clocks.tick(self.arena.get_car_state(car));
        }
        let (arena, events) = (&self.arena, &mut self.events);
        self.statistics.update(arena, self.ticks, layout.blue, |event| events.push(Event { tick, ..event }));
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
                    Event::new(Kind::Touch, Some(hit.car_idx), None, &[at.x, at.y, at.z, arm.x, arm.y, arm.z])
                }
                ArenaEvent::CarHitCar(hit) => {
                    if hit.is_demo {
                        self.statistics.demolition(hit.bumper_car_idx);
                    }
                    let kind = if hit.is_demo { Kind::Demolition } else { Kind::Bump };
                    let (bumper, victim) = (Some(hit.bumper_car_idx), Some(hit.victim_car_idx));
                    Event::new(kind, bumper, victim, &hit.contact_point.to_array())
                }
                ArenaEvent::CarPickupBoost(taken) => {
                    let pad = layout.pads.iter().position(|&pad| pad == taken.boost_pad_idx);
                    Event::new(Kind::Pad, Some(taken.car_idx), pad, &[])
                }
                ArenaEvent::CarLanded(landing) => {
                    let wheels = landing.wheels.iter().flatten().count() as f32;
                    Event::new(Kind::Landing, Some(landing.car_idx), None, &[wheels])
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
        // A ball that lies or rolls meets the field in each tick, as slow as gravity makes it; one that leaves, once.
        if before.vel.dot(normal) < -SLOWEST_BOUNCE {
            let numbers = [at.x, at.y, at.z, normal.x, normal.y, normal.z];
            self.events.push(Event { tick, ..Event::new(Kind::Bounce, None, None, &numbers) });
        }
        !touched.contains(&true)
    }
}

/// Simulate a tick of a match whose cars were taken off.
pub fn tick_ball(arena: &mut Arena, bounciness: f32) {
    let before = arena.get_ball_state().phys;
    if arena.step_tick().iter().any(|event| matches!(event, ArenaEvent::BallHitWorld(_))) {
        correct_bounce(arena, &before, bounciness);
    }
}

/// Make a bounce off the field in the latest tick one of another restitution.
fn correct_bounce(arena: &mut Arena, before: &PhysState, bounciness: f32) {
    if bounciness == bounce::OWN {
        return;
    }
    let config = arena.mutator_config();
    let seen = view::settled(before, config.ball_max_speed, consts::ball::MAX_ANG_SPEED);
    let new = bounce::corrected(&seen, &arena.get_ball_state().phys, bounciness, config);
    arena.edit_ball_state(|state| state.phys = new);
}

/// Return a new arena with cars, a clone of a template: hidden state of the old one cannot remain.
fn fresh(
    template: &Arena,
    of: MutatorConfig,
    cars: impl Iterator<Item = (Team, Body)>,
    random: Rng,
) -> Arena {
    let mut arena = template.clone();
    arena.set_mutator_config(of);
    cars.for_each(|(team, body)| _ = arena.add_car(team, body));
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
