//! Goals, assists, shots and saves, by the definitions of RocketSim 2.2's game event tracker.

use rocketsim::{Arena, BallState, Team};

use crate::events::{Event, Kind};
use crate::layout::MOST_TEAM_SIZE;

const SHOT_SPEED: f32 = 1750.0; // uu/s [RocketSim 2.2, GameEventTracker]
const SHOT_DELAY: u64 = 36; // ticks, 0.3 s [same]
const SHOT_COOLDOWN: u64 = 120; // ticks, 1 s [same]
const LOOK_AHEAD: f32 = 2.0; // s [same]
const GOAL_TOUCH: u64 = 480; // ticks, 4 s [same]
const PASS: u64 = 240; // ticks, 2 s [same]
const GOAL_Y: f32 = 5124.25; // uu, without the ball's radius [same]
const GOAL_HALF_WIDTH: f32 = 892.755; // uu [same]
const GOAL_HEIGHT: f32 = 642.775; // uu [same]
const RADIUS_SHARE: f32 = 0.1; // of the ball's radius, a tolerance at post and bar [same]

/// The tracker of one match.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// Goals, assists, saves, shots, demolitions and touches of each car since the latest `put`.
    pub counts: [[i32; 6]; 2 * MOST_TEAM_SIZE],
    touched: [Option<u64>; 2 * MOST_TEAM_SIZE],
    shot_at: Option<Team>,
    cooldown: u64,
    scored: bool,
}

impl Statistics {
    /// Note that somebody set the ball: a shot on its way is none any more.
    pub fn ball_was_set(&mut self) {
        self.shot_at = None;
        self.cooldown = 0;
        self.scored = false;
    }

    /// Note a kickoff: touches before it lead to no goal, shot or save after it.
    pub fn kickoff(&mut self) {
        self.ball_was_set();
        self.touched = Default::default();
    }

    /// Note that a car touched the ball in a tick.
    pub fn touch(&mut self, car: usize, tick: u64) {
        self.touched[car] = Some(tick);
        self.counts[car][5] += 1;
    }

    /// Note a demolition.
    pub fn demolition(&mut self, car: usize) {
        self.counts[car][4] += 1;
    }

    /// Judge a tick after it was simulated.
    ///
    /// `now` counts the ticks, this one included; `blue` cars come first.
    pub fn update(&mut self, arena: &Arena, now: u64, blue: usize, mut emit: impl FnMut(Event)) {
        let (ball, scored, cars) = (arena.get_ball_state(), arena.is_ball_scored(), arena.num_cars());
        if !std::mem::replace(&mut self.scored, scored) && scored {
            let team = if ball.phys.pos.y > 0.0 { Team::Blue } else { Team::Orange };
            let scorers = self::team(team == Team::Blue, blue, cars);
            let scorer = self.latest(scorers, now.saturating_sub(GOAL_TOUCH));
            let passer = scorer.and_then(|car| self.passer(car, blue, cars));
            self.count(scorer, 0);
            self.count(passer, 1);
            emit(Event::new(Kind::Goal, scorer, passer, &[team as u8 as f32, ball.phys.vel.length()]));
            return;
        }
        let config = arena.mutator_config();
        let goal = goal_ahead(ball, config.gravity.z, config.ball_radius);
        if let Some(at) = self.shot_at {
            if goal != Some(at) {
                let saver = self.latest(team(at == Team::Blue, blue, cars), now - 1);
                if saver.is_some() {
                    self.count(saver, 2);
                    emit(Event::new(Kind::Save, saver, None, &[]));
                }
                self.shot_at = None;
            }
        } else if self.cooldown > 0 {
            self.cooldown -= 1;
        } else if let Some(at) = goal.filter(|_| ball.phys.vel.length() >= SHOT_SPEED) {
            let shooter = self
                .latest(team(at != Team::Blue, blue, cars), now.saturating_sub(SHOT_DELAY + 1))
                .filter(|&car| self.touched[car].is_some_and(|tick| now - tick >= SHOT_DELAY));
            if let Some(car) = shooter {
                let passer = self.passer(car, blue, cars);
                self.count(shooter, 3);
                emit(Event::new(Kind::Shot, shooter, passer, &[ball.phys.vel.length()]));
                self.shot_at = Some(at);
                self.cooldown = SHOT_COOLDOWN;
            }
        }
    }

    fn count(&mut self, car: Option<usize>, number: usize) {
        if let Some(car) = car {
            self.counts[car][number] += 1;
        }
    }

    /// Return the one of some cars that touched the ball last, in tick `since` or later.
    fn latest(&self, cars: impl Iterator<Item = usize>, since: u64) -> Option<usize> {
        let touches = cars.filter_map(|car| self.touched[car].map(|tick| (tick, car)));
        let recent = touches.filter(|(tick, _)| *tick >= since);
        recent.reduce(|best, new| if new.0 > best.0 { new } else { best }).map(|(_, car)| car)
    }

    /// Return the team mate that touched the ball last, not long before a car did.
    fn passer(&self, car: usize, blue: usize, cars: usize) -> Option<usize> {
        let since = self.touched[car]?.saturating_sub(PASS);
        self.latest(team(car < blue, blue, cars).filter(|&mate| mate != car), since)
    }
}

/// Return the numbers of a team's cars.
fn team(is_blue: bool, blue: usize, cars: usize) -> std::ops::Range<usize> {
    if is_blue { 0..blue } else { blue..cars }
}

/// Return whose goal the ball would fly into without drag or bounce, within 2 s.
fn goal_ahead(ball: &BallState, gravity: f32, radius: f32) -> Option<Team> {
    let (pos, vel) = (ball.phys.pos, ball.phys.vel);
    if vel.y.abs() < f32::EPSILON {
        return None;
    }
    let side = vel.y.signum();
    let time = (pos.y - side * GOAL_Y).abs() / vel.y.abs();
    let margin = RADIUS_SHARE * radius;
    let x = pos.x + vel.x * time;
    let z = pos.z + vel.z * time + gravity * time * time / 2.0;
    let inside = z <= GOAL_HEIGHT + margin && x.abs() <= GOAL_HALF_WIDTH + margin;
    (inside && time <= LOOK_AHEAD).then_some(if side > 0.0 { Team::Orange } else { Team::Blue })
}
