//! Rewards of whole batches: terms of a step for each car, and their weighted sum.
//!
//! A car's speed and facing count nothing while it is demolished. Sums go in the order of their parts, without
//! fused products, so that every machine gives the same bits.

use numpy::{PyReadonlyArray2, PyReadonlyArray3, PyReadwriteArray2, PyReadwriteArray3};
use pyo3::prelude::*;

use crate::arguments::{CHECKED, Object, Whole, readable, shape_of, writable};
use crate::errors::{Result, refuse};
use crate::layout::{Layout, MOST_TEAM_SIZE, vector};

const MOST_CARS: usize = 2 * MOST_TEAM_SIZE;
const CAR_MAX_SPEED: f32 = 2300.0; // uu/s
const BALL_MAX_SPEED: f32 = 6000.0; // uu/s
const BALL_RADIUS: f64 = 91.25; // uu
const BALL_REST_Z: f64 = 93.15; // uu
const CEILING_Z: f64 = 2044.0; // uu
const BACK_WALL_Y: f32 = 5120.0; // uu
const GOAL_BACK_Y: f32 = 6000.0; // uu
const GOAL_CENTRE_Z: f32 = 321.3875; // uu
const GOAL_WIDTH: f64 = 1785.51; // uu
const GOAL_HEIGHT: f64 = 642.775; // uu
const FULL_BOOST: f32 = 100.0;
/// uu and uu/s: the ball of a kickoff lies on the centre spot, and nothing else does for a step.
const STILL: f32 = 1.0;

/// Where the fields lie that rewards read.
struct Fields {
    ball: usize,
    ball_velocity: usize,
    goal_scored: usize,
    cars: Vec<CarFields>,
}

/// Where those of a car lie.
struct CarFields {
    position: usize,
    rotation: usize,
    velocity: usize,
    boost: usize,
    respawn_timer: usize,
    bump_victim: usize,
    touches: usize,
    on_ground: usize,
    is_demoed: usize,
}

/// One match at the last decision and now.
struct Step<'a> {
    fields: &'a Fields,
    blue: usize,
    before: &'a [f32],
    after: &'a [f32],
    /// 1 for cars that are not demolished now, else 0.
    alive: [f32; MOST_CARS],
    /// Unit vectors from the cars to the ball.
    aims: [[f32; 3]; MOST_CARS],
}

/// A term writes each car's reward; its number is an argument that it may have.
type Term = fn(&Step<'_>, f32, &mut [f32]);

/// All terms by name.
const TERMS: [(&str, Term); 16] = [
    ("goal", goal),
    ("touch", touch),
    ("touch_strength", touch_strength),
    ("velocity_to_ball", velocity_to_ball),
    ("speed", speed),
    ("velocity_ball_to_goal", velocity_ball_to_goal),
    ("face_ball", face_ball),
    ("boost_kept", boost_kept),
    ("boost_picked_up", boost_picked_up),
    ("save", save),
    ("demolition", demolition),
    ("mate_distance", mate_distance),
    ("air_touch", air_touch),
    ("fly_to_ball", fly_to_ball),
    ("in_air", in_air),
    ("kickoff_speed", kickoff_speed),
];

/// Terms of rewards, each with the row of an array that it fills.
#[pyclass(frozen, module = "rocketsim_batch")]
pub struct Rewards {
    size: usize,
    blue: usize,
    fields: Fields,
    terms: Vec<(usize, Term, f32)>,
}

#[pymethods]
impl Rewards {
    /// Make terms `(row, name, number)` for matches of a layout; see the stub for the names.
    #[new]
    fn new(layout: &Layout, terms: Vec<(Whole, String, f32)>) -> Result<Self> {
        let mut found = Vec::with_capacity(terms.len());
        for (row, name, number) in terms {
            let row = row.within("the row of a term", 0..=usize::from(u16::MAX))?;
            let Some((_, term)) = TERMS.iter().find(|(known, _)| *known == name) else {
                refuse!("a term is {name:?}, expected one of {}", TERMS.map(|(known, _)| known).join(", "));
            };
            found.push((row, *term, number));
        }
        Ok(Self { size: layout.size, blue: layout.blue, fields: Fields::of(layout)?, terms: found })
    }

    /// Write the terms of a step into their rows of `columns`, float32 `(rows, matches, cars)`.
    ///
    /// `before` and `after` are float32 `(matches, size)`.
    fn fill(
        &self,
        py: Python<'_>,
        before: &Object<'_>,
        after: &Object<'_>,
        columns: &Object<'_>,
    ) -> Result<()> {
        let (matches, cars) = (shape_of(after).first().copied().unwrap_or(0), self.fields.cars.len());
        let before: PyReadonlyArray2<'_, f32> = readable("before", before, &[&[matches, self.size]])?;
        let after: PyReadonlyArray2<'_, f32> = readable("after", after, &[&[matches, self.size]])?;
        let rows = shape_of(columns).first().copied().unwrap_or(0);
        if let Some((row, ..)) = self.terms.iter().find(|(row, ..)| *row >= rows) {
            refuse!("columns have {rows} rows, and a term fills row {row}");
        }
        let mut columns: PyReadwriteArray3<'_, f32> = writable("columns", columns, &[rows, matches, cars])?;
        let (before, after) = (before.as_slice().expect(CHECKED), after.as_slice().expect(CHECKED));
        let columns = columns.as_slice_mut().expect(CHECKED);
        py.detach(|| {
            let steps = before.chunks_exact(self.size).zip(after.chunks_exact(self.size));
            for (number, (before, after)) in steps.enumerate() {
                let step = Step::new(&self.fields, self.blue, before, after);
                for (row, term, argument) in &self.terms {
                    term(&step, *argument, &mut columns[(row * matches + number) * cars..][..cars]);
                }
            }
        });
        Ok(())
    }
}

/// Write the weighted sum of `columns`, float32 `(rows, matches, cars)`, into `total`, float32 `(matches, cars)`.
///
/// Then a team shares: own times `1 - team_spirit`, and its mean times `team_spirit`. Then, with `zero_sum` and
/// where both teams have cars, the mean of the other team is taken off. `blue` is the number of blue cars.
#[pyfunction]
pub fn add_rewards(
    py: Python<'_>,
    columns: &Object<'_>,
    weights: Vec<f32>,
    blue: Whole,
    team_spirit: f64,
    zero_sum: bool,
    total: &Object<'_>,
) -> Result<()> {
    let shape = shape_of(total);
    let &[matches, cars] = &shape[..] else {
        refuse!("total has the shape {shape:?}, expected (matches, cars)")
    };
    let blue = blue.within("blue", 0..=cars)?;
    let columns: PyReadonlyArray3<'_, f32> =
        readable("columns", columns, &[&[weights.len(), matches, cars]])?;
    let mut total: PyReadwriteArray2<'_, f32> = writable("total", total, &[matches, cars])?;
    let (columns, total) = (columns.as_slice().expect(CHECKED), total.as_slice_mut().expect(CHECKED));
    py.detach(|| {
        total.fill(0.0);
        for (column, weight) in columns.chunks_exact(total.len().max(1)).zip(weights) {
            for (sum, reward) in total.iter_mut().zip(column) {
                *sum += weight * reward;
            }
        }
        for cars in total.chunks_exact_mut(cars.max(1)) {
            share(cars, blue, team_spirit, zero_sum);
        }
    });
    Ok(())
}

/// Share the rewards of one match's cars.
fn share(cars: &mut [f32], blue: usize, team_spirit: f64, zero_sum: bool) {
    let (blues, oranges) = cars.split_at_mut(blue);
    if team_spirit != 0.0 {
        for team in [&mut *blues, &mut *oranges] {
            let mean = mean(team);
            for reward in team {
                *reward *= (1.0 - team_spirit) as f32;
                *reward += team_spirit as f32 * mean;
            }
        }
    }
    if zero_sum && !blues.is_empty() && !oranges.is_empty() {
        let (blue, orange) = (mean(blues), mean(oranges));
        blues.iter_mut().for_each(|reward| *reward -= orange);
        oranges.iter_mut().for_each(|reward| *reward -= blue);
    }
}

fn mean(team: &[f32]) -> f32 {
    team.iter().fold(0.0, |sum, reward| sum + reward) / team.len() as f32
}

impl Fields {
    /// Find the fields in a layout.
    fn of(layout: &Layout) -> Result<Self> {
        let of_match = &layout.of_match;
        let (of_car, start, stride) = (&layout.of_car, layout.car_start, layout.car_stride);
        let mut cars = Vec::with_capacity(layout.cars());
        for car in 0..layout.cars() {
            let column = |name, column: Option<usize>| -> Result<usize> {
                Ok(start + car * stride + needed(name, column)?)
            };
            cars.push(CarFields {
                position: column("position", of_car.position)?,
                rotation: column("rotation", of_car.rotation)?,
                velocity: column("linear_velocity", of_car.linear_velocity)?,
                boost: column("boost_amount", of_car.boost_amount)?,
                respawn_timer: column("demo_respawn_timer", of_car.demo_respawn_timer)?,
                bump_victim: column("bump_victim", of_car.bump_victim)?,
                touches: column("ball_touches", of_car.ball_touches)?,
                on_ground: column("on_ground", of_car.on_ground)?,
                is_demoed: column("is_demoed", of_car.is_demoed)?,
            });
        }
        Ok(Self {
            ball: needed("ball_position", of_match.ball_position)?,
            ball_velocity: needed("ball_linear_velocity", of_match.ball_linear_velocity)?,
            goal_scored: needed("goal_scored", of_match.goal_scored)?,
            cars,
        })
    }
}

/// Return the column of a field that a layout needs.
fn needed(name: &str, column: Option<usize>) -> Result<usize> {
    let Some(column) = column else { refuse!("the layout has no {name}, expected one with it") };
    Ok(column)
}

impl<'a> Step<'a> {
    fn new(fields: &'a Fields, blue: usize, before: &'a [f32], after: &'a [f32]) -> Self {
        let (mut alive, mut aims) = ([0.0; MOST_CARS], [[0.0; 3]; MOST_CARS]);
        let ball = vector(after, fields.ball);
        for (car, of_car) in fields.cars.iter().enumerate() {
            alive[car] = 1.0 - after[of_car.is_demoed];
            aims[car] = unit(between(vector(after, of_car.position), ball));
        }
        Self { fields, blue, before, after, alive, aims }
    }

    fn ball(&self) -> [f32; 3] {
        vector(self.after, self.fields.ball)
    }

    fn ball_velocity(&self) -> [f32; 3] {
        vector(self.after, self.fields.ball_velocity)
    }

    /// Return a car's speed towards the ball in uu/s, also while it is demolished.
    fn speed_to_ball(&self, car: usize) -> f32 {
        project(vector(self.after, self.fields.cars[car].velocity), self.aims[car])
    }

    fn touched(&self, car: usize) -> f32 {
        f32::from(self.after[self.fields.cars[car].touches] > 0.0)
    }

    fn flies(&self, car: usize) -> f32 {
        1.0 - self.after[self.fields.cars[car].on_ground]
    }

    /// Write what a function gives for each car.
    fn each(&self, rewards: &mut [f32], of: impl Fn(usize) -> f32) {
        for (car, reward) in rewards.iter_mut().enumerate() {
            *reward = of(car);
        }
    }

    /// Write the number of each car's team.
    fn by_team(&self, rewards: &mut [f32], [blue, orange]: [f32; 2]) {
        self.each(rewards, |car| if car < self.blue { blue } else { orange });
    }
}

fn goal(step: &Step<'_>, _: f32, rewards: &mut [f32]) {
    let scored = step.fields.goal_scored;
    let new = step.after[scored] > 0.0 && step.before[scored] == 0.0;
    let blue = if step.ball()[1] > 0.0 { 1.0 } else { -1.0 };
    step.by_team(rewards, if new { [blue, -blue] } else { [0.0; 2] });
}

fn touch(step: &Step<'_>, _: f32, rewards: &mut [f32]) {
    step.each(rewards, |car| step.touched(car));
}

fn touch_strength(step: &Step<'_>, _: f32, rewards: &mut [f32]) {
    let change = between(vector(step.before, step.fields.ball_velocity), step.ball_velocity());
    let strength = length(change) / BALL_MAX_SPEED;
    step.each(rewards, |car| step.touched(car) * strength);
}

fn velocity_to_ball(step: &Step<'_>, _: f32, rewards: &mut [f32]) {
    step.each(rewards, |car| step.speed_to_ball(car) * (step.alive[car] / CAR_MAX_SPEED));
}

fn speed(step: &Step<'_>, _: f32, rewards: &mut [f32]) {
    let velocity = |car: usize| vector(step.after, step.fields.cars[car].velocity);
    step.each(rewards, |car| length(velocity(car)) * (step.alive[car] / CAR_MAX_SPEED));
}

fn velocity_ball_to_goal(step: &Step<'_>, _: f32, rewards: &mut [f32]) {
    let to = |y: f32| unit(between(step.ball(), [0.0, y, GOAL_CENTRE_Z]));
    let share = |y: f32| project(step.ball_velocity(), to(y)) / BALL_MAX_SPEED;
    step.by_team(rewards, [share(GOAL_BACK_Y), share(-GOAL_BACK_Y)]);
}

fn face_ball(step: &Step<'_>, _: f32, rewards: &mut [f32]) {
    let forward = |car: usize| {
        let rotation = &step.after[step.fields.cars[car].rotation..][..9];
        [rotation[0], rotation[3], rotation[6]]
    };
    step.each(rewards, |car| project(forward(car), step.aims[car]) * step.alive[car]);
}

/// Return the square root of boost / 100.
fn boost_root(row: &[f32], car: &CarFields) -> f32 {
    (most(row[car.boost], 0.0) / FULL_BOOST).sqrt()
}

fn boost_kept(step: &Step<'_>, _: f32, rewards: &mut [f32]) {
    step.each(rewards, |car| boost_root(step.after, &step.fields.cars[car]) * step.alive[car]);
}

fn boost_picked_up(step: &Step<'_>, _: f32, rewards: &mut [f32]) {
    step.each(rewards, |car| {
        let of_car = &step.fields.cars[car];
        let gain = most(boost_root(step.after, of_car) - boost_root(step.before, of_car), 0.0);
        gain * ((1.0 - step.before[of_car.is_demoed]) * step.alive[car])
    });
}

/// Tell whether the ball flies into blue's goal (sign -1) or orange's (sign 1) within some seconds.
fn flies_in(row: &[f32], fields: &Fields, sign: f32, seconds: f32) -> bool {
    let ([x, y, z], speed) = (vector(row, fields.ball), vector(row, fields.ball_velocity));
    let closing = speed[1] * sign;
    let distance = most(BACK_WALL_Y - y * sign, 0.0);
    let soon = closing > 0.0 && distance <= closing * seconds;
    let needed = distance / if soon { closing } else { f32::INFINITY };
    let between = (x + speed[0] * needed).abs() <= (GOAL_WIDTH / 2.0 - BALL_RADIUS) as f32;
    soon && between && z + speed[2] * needed <= (GOAL_HEIGHT - BALL_RADIUS) as f32
}

fn save(step: &Step<'_>, seconds: f32, rewards: &mut [f32]) {
    let flies = |row, sign| flies_in(row, step.fields, sign, seconds);
    let no_goal = step.after[step.fields.goal_scored] == 0.0;
    let saved = |sign| f32::from(flies(step.before, sign) && !flies(step.after, sign) && no_goal);
    let (blue, orange) = (saved(-1.0), saved(1.0));
    step.each(rewards, |car| step.touched(car) * if car < step.blue { blue } else { orange });
}

fn demolition(step: &Step<'_>, _: f32, rewards: &mut [f32]) {
    let cars = &step.fields.cars;
    let mut sums = [0.0f64; MOST_CARS];
    for (victim, of_victim) in cars.iter().enumerate() {
        let is_new = step.after[of_victim.respawn_timer] > step.before[of_victim.respawn_timer];
        let hit = |attacker: usize| {
            let is_opponent = (attacker < step.blue) != (victim < step.blue);
            is_new && is_opponent && step.after[cars[attacker].bump_victim] == victim as f32
        };
        let attackers = (0..cars.len()).filter(|&attacker| hit(attacker)).count();
        if attackers > 0 {
            sums[victim] -= 1.0;
            let attackers_of_it = (0..cars.len()).filter(|&attacker| hit(attacker));
            attackers_of_it.for_each(|attacker| sums[attacker] += 1.0 / attackers as f64);
        }
    }
    step.each(rewards, |car| sums[car] as f32);
}

fn mate_distance(step: &Step<'_>, far: f32, rewards: &mut [f32]) {
    let cars = &step.fields.cars;
    step.each(rewards, |car| {
        let mut nearest = f32::INFINITY;
        for (mate, of_mate) in cars.iter().enumerate() {
            let is_mate = mate != car && (mate < step.blue) == (car < step.blue);
            if is_mate && step.alive[mate] > 0.0 && step.alive[car] > 0.0 {
                let gap =
                    between(vector(step.after, of_mate.position), vector(step.after, cars[car].position));
                nearest = least(nearest, length(gap));
            }
        }
        if nearest.is_infinite() { 0.0 } else { least(nearest / far, 1.0) }
    });
}

fn air_touch(step: &Step<'_>, _: f32, rewards: &mut [f32]) {
    let range = (CEILING_Z - BALL_RADIUS - BALL_REST_Z) as f32;
    let height = (step.ball()[2] - BALL_REST_Z as f32) / range;
    step.each(rewards, |car| step.touched(car) * height.clamp(0.0, 1.0));
}

fn fly_to_ball(step: &Step<'_>, lowest: f32, rewards: &mut [f32]) {
    let ball = step.ball()[2];
    step.each(rewards, |car| {
        let flying = (step.flies(car) * step.alive[car]) * f32::from(ball > lowest);
        let share = most(step.speed_to_ball(car), 0.0) / CAR_MAX_SPEED;
        let height = step.after[step.fields.cars[car].position + 2];
        let climbed = (height / most(ball, BALL_RADIUS as f32)).clamp(0.0, 1.0);
        flying * climbed * share
    });
}

fn in_air(step: &Step<'_>, _: f32, rewards: &mut [f32]) {
    step.each(rewards, |car| step.flies(car) * step.alive[car]);
}

fn kickoff_speed(step: &Step<'_>, _: f32, rewards: &mut [f32]) {
    let still = |numbers: &[f32]| numbers.iter().all(|number| number.abs() < STILL);
    let is_kickoff = still(&step.ball()[..2]) && still(&step.ball_velocity());
    step.each(rewards, |car| {
        if !is_kickoff {
            return 0.0;
        }
        let speed = step.speed_to_ball(car) * step.alive[car];
        (speed * speed.abs()) / (CAR_MAX_SPEED * CAR_MAX_SPEED)
    });
}

/// Return the larger of two numbers; what is no number stays none.
fn most(one: f32, other: f32) -> f32 {
    if one >= other || one.is_nan() { one } else { other }
}

/// Return the smaller of two numbers; what is no number stays none.
fn least(one: f32, other: f32) -> f32 {
    if one <= other || one.is_nan() { one } else { other }
}

/// Return the vector from one place to another.
fn between(from: [f32; 3], to: [f32; 3]) -> [f32; 3] {
    std::array::from_fn(|axis| to[axis] - from[axis])
}

/// Return the sum of two vectors' products, in the order of their parts.
fn project(one: [f32; 3], other: [f32; 3]) -> f32 {
    (one[0] * other[0] + one[1] * other[1]) + one[2] * other[2]
}

fn length(vector: [f32; 3]) -> f32 {
    project(vector, vector).sqrt()
}

/// Return a vector of length 1; a zero vector stays.
fn unit(vector: [f32; 3]) -> [f32; 3] {
    let length = length(vector);
    let divisor = if length == 0.0 { 1.0 } else { length };
    vector.map(|part| part / divisor)
}
