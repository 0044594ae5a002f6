//! What a packet would show of a match, written into the caller's buffer, and read from it.
//!
//! RocketSim 3 caps, cuts and rounds a body only when its next tick begins. A packet shows the
//! result, so what is written here went through the same steps; to set it back changes nothing.

use glam::{Mat3A, Quat, Vec3A};
use rocketsim::consts::{self, BT_TO_UU, TICK_TIME, UU_TO_BT};
use rocketsim::{CarControls, CarCore, CarState, CarTuning, PhysState};

use crate::controls::{CONTROLS, Vector};
use crate::errors::{Result, refuse};
use crate::layout::{CarColumns, Layout, PADS};

/// s after its beginning until which a dodge turns the car [RLGym's FLIP_TORQUE_TIME].
const FLIP_SECONDS: f32 = 0.65;
/// s after the jump's end until which a second jump is possible [RLGym's DOUBLEJUMP_MAX_DELAY].
const DODGE_DEADLINE: f32 = 1.25;
/// uu from which |y| of the ball is a goal [RLGym's GOAL_THRESHOLD].
const GOAL_Y: f32 = 5215.5;
/// s that a dodge lasts in RocketSim 3: 79 ticks, after which its clock begins anew.
const DODGE_SECONDS: f32 = 79.0 * TICK_TIME;
/// s on RocketSim 3's clock of dodges that stand for "no dodge": below 0.3 it locks the pitch.
const NO_DODGE: f32 = 10.0;

/// Where a field lies, if the layout has it.
type Column = Option<usize>;
/// Place, turn and movement of a body, as the caller's numbers.
type Columns = [Column; 4];

/// Return a body as the next tick's beginning makes it.
///
/// `most_speed` in uu/s, `most_spin` in rad/s.
pub fn settled(body: &PhysState, most_speed: f32, most_spin: f32) -> PhysState {
    let [pos, vel, ang_vel] = settled_motion([body.pos, body.vel, body.ang_vel], most_speed, most_spin);
    PhysState { pos, rot_mat: settled_rotation(&body.rot_mat), vel, ang_vel }
}

/// Return position, velocity and spin as the next tick's beginning makes them; see `settled`.
pub fn settled_motion([pos, vel, spin]: [Vec3A; 3], most_speed: f32, most_spin: f32) -> [Vec3A; 3] {
    [
        (pos * 100.0 + 0.5).floor() * (1.0 / 100.0),
        cut(capped(vel * UU_TO_BT, most_speed * UU_TO_BT) * BT_TO_UU, 100.0),
        cut(capped(spin, most_spin), 10_000.0),
    ]
}

fn capped(vector: Vec3A, most: f32) -> Vec3A {
    if vector.length_squared() > most.powi(2) { vector.normalize_or_zero() * most } else { vector }
}

/// Cut a vector to steps of `1 / scale`, and move it a tenth of a step away from zero.
fn cut(vector: Vec3A, scale: f32) -> Vec3A {
    let step = 1.0 / scale;
    let whole = Vec3A::from_array((vector * scale).to_array().map(|number| number as i32 as f32)) * step;
    let away = Vec3A::select(whole.cmpeq(Vec3A::ZERO), Vec3A::ZERO, whole.signum());
    whole + away * (0.1 * step)
}

/// Send a rotation through the game's codec: a quaternion without its largest part, 18 bits for each other.
fn settled_rotation(matrix: &Mat3A) -> Mat3A {
    let parts = unit(Quat::from_mat3a(matrix).to_array());
    let size = parts.map(f32::abs);
    let first = usize::from(size[0] < size[1]);
    let second = 2 + usize::from(size[2] < size[3]);
    let largest = if size[first] >= size[second] { first } else { second };
    let sign = if parts[largest] < 0.0 { -1.0 } else { 1.0 };
    let mut kept = parts.map(|part| rounded(part * sign));
    kept[largest] = 0.0;
    // The order of the sum decides its last bit; the missing part adds an exact zero.
    let rest = kept.iter().fold(1.0f32, |rest, part| rest - part * part);
    kept[largest] = rest.max(0.0).sqrt();
    as_matrix(unit(kept))
}

/// Round a part of a quaternion, at most 0.7071, to one of 2^18 values.
fn rounded(part: f32) -> f32 {
    let most = ((1 << 18) - 1) as f32;
    let place = ((part * std::f32::consts::SQRT_2) * 0.5 + 0.5) * most;
    let number = ((((place + place) + 0.5).round_ties_even() as i32) >> 1) as f32;
    let share = number.clamp(0.0, most) / most - 0.5;
    (share + share) * std::f32::consts::FRAC_1_SQRT_2
}

fn unit(q: [f32; 4]) -> [f32; 4] {
    let square = ((q[0] * q[0] + q[1] * q[1]) + q[2] * q[2]) + q[3] * q[3];
    if square > 1e-8 {
        let scale = 1.0 / square.sqrt();
        q.map(|part| part * scale)
    } else {
        [0.0, 0.0, 0.0, 1.0]
    }
}

/// Return the rotation matrix of a unit quaternion.
fn as_matrix([x, y, z, w]: [f32; 4]) -> Mat3A {
    let scale = 2.0 / (((x * x + y * y) + z * z) + w * w);
    let (xs, ys, zs) = (x * scale, y * scale, z * scale);
    Mat3A::from_cols(
        Vec3A::new(1.0 - (y * ys + z * zs), x * ys + w * zs, x * zs - w * ys),
        Vec3A::new(x * ys - w * zs, 1.0 - (x * xs + z * zs), y * zs + w * xs),
        Vec3A::new(x * zs + w * ys, y * zs - w * xs, 1.0 - (x * xs + y * ys)),
    )
}

/// What the module remembers of a car beside RocketSim, in ticks.
#[derive(Clone, Copy, Debug, Default)]
pub struct CarClocks {
    /// Since the car became supersonic.
    pub supersonic: u32,
    /// Since the jump began.
    pub jump: u32,
    /// With contact to the ball in the latest step.
    pub touches: u32,
}

impl CarClocks {
    /// Count a tick that was simulated.
    pub fn tick(&mut self, car: &CarState) {
        self.supersonic = if car.is_supersonic { self.supersonic + 1 } else { 0 };
        self.jump = if car.is_jumping {
            car.jump_ticks
        } else if car.has_jumped && self.jump > 0 {
            self.jump + 1
        } else {
            0
        };
    }
}

fn write(row: &mut [f32], column: Column, values: &[f32]) {
    if let Some(column) = column {
        row[column..column + values.len()].copy_from_slice(values);
    }
}

fn flag(value: bool) -> f32 {
    f32::from(u8::from(value))
}

/// Write a body's numbers; the rotation's columns are its axes.
fn write_body(row: &mut [f32], columns: Columns, body: &PhysState) {
    write(row, columns[0], &body.pos.to_array());
    write(row, columns[1], &body.rot_mat.transpose().to_cols_array());
    write(row, columns[2], &body.vel.to_array());
    write(row, columns[3], &body.ang_vel.to_array());
}

/// Write the ball's numbers into a match's row.
pub fn write_ball(layout: &Layout, row: &mut [f32], body: &PhysState, most_speed: f32) {
    let of = &layout.of_match;
    let seen = settled(body, most_speed, consts::ball::MAX_ANG_SPEED);
    write_body(row, ball_columns(layout), &seen);
    write(row, of.goal_scored, &[flag(seen.pos.y.abs() > GOAL_Y)]);
}

/// Write the seconds until each pad is back.
pub fn write_pads(layout: &Layout, row: &mut [f32], cooldown: impl Fn(usize) -> f32) {
    if let Some(column) = layout.of_match.pad_timer {
        for (pad, &number) in layout.pads.iter().enumerate() {
            row[column + pad] = cooldown(number);
        }
    }
}

/// Count the frame of a match's row on.
pub fn count_frame(layout: &Layout, row: &mut [f32], ticks: u64) {
    if let Some(column) = layout.of_match.frame {
        let frame = row[column].to_bits().wrapping_add(ticks as u32);
        row[column] = f32::from_bits(frame);
    }
}

/// Write a car's numbers into its part of a row, derived fields included.
pub fn write_car(of: &CarColumns, row: &mut [f32], car: &CarState, clocks: &CarClocks, held: &Vector) {
    let seen = settled(&car.phys, consts::car::MAX_SPEED, consts::car::MAX_ANG_SPEED);
    write_body(row, car_columns(of), &seen);
    write(row, of.boost_amount, &[car.boost]);
    let demoed = if car.is_demoed { car.demo_respawn_timer } else { 0.0 };
    write(row, of.demo_respawn_timer, &[demoed]);
    let wheels = car.wheels_with_contact().map(|hit| flag(hit.is_some()));
    write(row, of.wheels_with_contact, &wheels);
    let supersonic = clocks.supersonic as f32 * TICK_TIME;
    write(row, of.supersonic_time, &[supersonic]);
    let boosting = if car.is_boosting { car.boosting_time } else { 0.0 };
    write(row, of.boost_active_time, &[boosting]);
    write(row, of.handbrake, &[car.handbrake_val]);
    write(row, of.has_jumped, &[flag(car.has_jumped)]);
    let holding = car.prev_controls().jump;
    write(row, of.is_holding_jump, &[flag(holding)]);
    write(row, of.is_jumping, &[flag(car.is_jumping)]);
    write(row, of.jump_time, &[clocks.jump as f32 * TICK_TIME]);
    write(row, of.has_flipped, &[flag(car.has_flipped)]);
    write(row, of.has_double_jumped, &[flag(car.has_double_jumped)]);
    write(row, of.air_time_since_jump, &[car.air_time_since_jump]);
    let flip_time = match (car.is_flipping, car.has_flipped) {
        (true, _) => car.flip_time,
        (false, true) => DODGE_SECONDS + car.flip_time,
        (false, false) => 0.0,
    };
    write(row, of.flip_time, &[flip_time]);
    write(row, of.flip_torque, &car.flip_rel_torque.to_array());
    write(row, of.is_autoflipping, &[flag(car.is_auto_flipping)]);
    write(row, of.autoflip_timer, &[car.auto_flip_timer]);
    write(row, of.autoflip_direction, &[car.auto_flip_torque_scale]);
    let victim = car.bump_cooldown_victim.filter(|_| car.bump_cooldown_timer > 0.0);
    write(row, of.bump_victim, &[victim.map_or(-1.0, |victim| victim as f32)]);
    write(row, of.ball_touches, &[clocks.touches as f32]);
    write(row, of.controls, held);
    let on_ground = wheels.iter().sum::<f32>() >= 3.0;
    let used = car.has_flipped || car.has_double_jumped;
    let has_flip = car.air_time_since_jump < DODGE_DEADLINE && !used;
    write(row, of.on_ground, &[flag(on_ground)]);
    write(row, of.is_demoed, &[flag(demoed > 0.0)]);
    write(row, of.is_boosting, &[flag(boosting > 0.0)]);
    write(row, of.is_supersonic, &[flag(supersonic > 0.0)]);
    write(row, of.is_flipping, &[flag(car.has_flipped && flip_time <= FLIP_SECONDS)]);
    write(row, of.has_flip, &[flag(has_flip)]);
    write(row, of.can_flip, &[flag(has_flip && !holding && !on_ground)]);
}

/// Return the columns of the ball's body.
pub fn ball_columns(layout: &Layout) -> Columns {
    let of = &layout.of_match;
    [of.ball_position, of.ball_rotation, of.ball_linear_velocity, of.ball_angular_velocity]
}

/// Return the columns of a car's body.
pub fn car_columns(of: &CarColumns) -> Columns {
    [of.position, of.rotation, of.linear_velocity, of.angular_velocity]
}

/// Return a number of the caller's, after checking its range; `otherwise` where the layout has no such field.
pub fn number(row: &[f32], column: Column, name: &str, range: (f32, f32), otherwise: f32) -> Result<f32> {
    let Some(column) = column else { return Ok(otherwise) };
    let value = row[column];
    if value >= range.0 && value <= range.1 {
        return Ok(value);
    }
    refuse!("{name} is {value}, expected a number from {} to {}", range.0, range.1)
}

fn vector(row: &[f32], column: Column, name: &str, most: f32, otherwise: Vec3A) -> Result<Vec3A> {
    let Some(column) = column else { return Ok(otherwise) };
    let value = Vec3A::from_slice(&row[column..column + 3]);
    if value.abs().max_element() <= most && !value.is_nan() {
        return Ok(value);
    }
    refuse!("{name} is {:?}, expected numbers from -{most} to {most}", value.to_array())
}

/// A body at the centre, at rest.
pub const NOWHERE: PhysState =
    PhysState { pos: Vec3A::ZERO, rot_mat: Mat3A::IDENTITY, vel: Vec3A::ZERO, ang_vel: Vec3A::ZERO };

/// Most uu from the centre, uu/s, and rad/s that are taken: far above all that the game shows.
const MOST: (f32, f32, f32) = (20_000.0, 100_000.0, 1_000.0);

/// Read a body's numbers; those that the layout lacks are `otherwise`'s.
pub fn read_body(row: &[f32], columns: Columns, of: &str, otherwise: &PhysState) -> Result<PhysState> {
    let rot_mat = match columns[1] {
        None => otherwise.rot_mat,
        Some(column) => {
            let rows: [f32; 9] = std::array::from_fn(|at| row[column + at]);
            let matrix = Mat3A::from_cols_array(&rows).transpose();
            let error = (matrix * matrix.transpose() - Mat3A::IDENTITY).to_cols_array();
            if !error.iter().all(|part| part.abs() <= 0.05) || matrix.determinant() <= 0.0 {
                refuse!("{of}rotation is {rows:?}, expected a rotation matrix: columns forward, right, up");
            }
            matrix
        }
    };
    Ok(PhysState {
        pos: vector(row, columns[0], &format!("{of}position"), MOST.0, otherwise.pos)?,
        rot_mat,
        vel: vector(row, columns[2], &format!("{of}linear_velocity"), MOST.1, otherwise.vel)?,
        ang_vel: vector(row, columns[3], &format!("{of}angular_velocity"), MOST.2, otherwise.ang_vel)?,
    })
}

/// Return `new` for a body that is shown, each part as it is inside where it is shown like `new` already.
pub fn changed(now: &PhysState, new: &PhysState, most_speed: f32, most_spin: f32) -> PhysState {
    let seen = settled(now, most_speed, most_spin);
    PhysState {
        pos: if new.pos == seen.pos { now.pos } else { new.pos },
        rot_mat: if new.rot_mat == seen.rot_mat { now.rot_mat } else { new.rot_mat },
        vel: if new.vel == seen.vel { now.vel } else { new.vel },
        ang_vel: if new.ang_vel == seen.ang_vel { now.ang_vel } else { new.ang_vel },
    }
}

/// What `put` makes of a car's numbers.
pub struct ReadCar {
    /// State without contacts, which RocketSim finds by itself.
    pub state: CarState,
    /// The module's own clocks.
    pub clocks: CarClocks,
    /// The control vector that it holds.
    pub held: Vector,
    /// Number of the hitbox.
    pub hitbox: usize,
}

/// Read a car's numbers from its part of a row; `most_boost` is the tank's size.
pub fn read_car(of: &CarColumns, row: &[f32], most_boost: f32) -> Result<ReadCar> {
    const TIME: (f32, f32) = (0.0, 1e6); // s
    let time = |column, name| number(row, column, name, TIME, 0.0);
    let is_set = |column, name| number(row, column, name, (0.0, 1.0), 0.0).map(|value| value > 0.0);
    let mut held = Vector::default();
    if let Some(column) = of.controls {
        held.copy_from_slice(&row[column..column + CONTROLS]);
        crate::controls::check(&held, 1, 1)?;
    }
    let controls: CarControls = crate::controls::as_rocketsim(&held);
    let (pressed, mut before) = (flag(controls.jump), controls);
    before.jump = number(row, of.is_holding_jump, "is_holding_jump", (0.0, 1.0), pressed)? > 0.0;
    let demoed = time(of.demo_respawn_timer, "demo_respawn_timer")?;
    let supersonic = time(of.supersonic_time, "supersonic_time")?;
    let boosting = time(of.boost_active_time, "boost_active_time")?;
    let jump = (time(of.jump_time, "jump_time")? / TICK_TIME).round() as u32;
    let flip_time = time(of.flip_time, "flip_time")?;
    let has_flipped = is_set(of.has_flipped, "has_flipped")?;
    let is_flipping = has_flipped && flip_time < DODGE_SECONDS - TICK_TIME / 2.0;
    let core = CarCore {
        phys: read_body(row, car_columns(of), "", &NOWHERE)?,
        controls,
        has_jumped: is_set(of.has_jumped, "has_jumped")?,
        has_double_jumped: is_set(of.has_double_jumped, "has_double_jumped")?,
        has_flipped,
        flip_rel_torque: vector(row, of.flip_torque, "flip_torque", 10.0, Vec3A::ZERO)?,
        jump_ticks: jump,
        flip_time: match (is_flipping, has_flipped) {
            (true, _) => flip_time,
            (false, true) => flip_time - DODGE_SECONDS,
            (false, false) => NO_DODGE,
        },
        is_flipping,
        is_jumping: is_set(of.is_jumping, "is_jumping")?,
        jump_hold_broken: false,
        air_time_since_jump: time(of.air_time_since_jump, "air_time_since_jump")?,
        boost: number(row, of.boost_amount, "boost_amount", (0.0, 1e6), 0.0)?.min(most_boost),
        is_auto_flipping: is_set(of.is_autoflipping, "is_autoflipping")?,
        // RocketSim's own falls below 0 in the tick that ends an auto-flip.
        auto_flip_timer: number(row, of.autoflip_timer, "autoflip_timer", (-TICK_TIME, TIME.1), 0.0)?,
        auto_flip_torque_scale: number(row, of.autoflip_direction, "autoflip_direction", (-1.0, 1.0), 0.0)?,
        bump_cooldown_timer: 0.0,
        bump_cooldown_victim: None,
        last_extra_hit_tick: None,
        is_demoed: demoed > 0.0,
        demo_respawn_timer: demoed,
    };
    let tuning = CarTuning {
        handbrake_val: number(row, of.handbrake, "handbrake", (0.0, 1.0), 0.0)?,
        is_supersonic: supersonic > 0.0,
        boosting_time: boosting,
        is_boosting: boosting > 0.0,
        air_time: core.air_time_since_jump,
        ..CarTuning::DEFAULT
    };
    let mut state = CarState::from(core).with_tuning(tuning);
    state.boost = core.boost;
    state.set_prev_controls(before);
    let hitbox = number(row, of.hitbox, "hitbox", (0.0, 6.0), 0.0)?;
    if hitbox.fract() != 0.0 {
        refuse!("hitbox is {hitbox}, expected a whole number from 0 to 6");
    }
    let clocks = CarClocks { supersonic: (supersonic / TICK_TIME).round() as u32, jump, touches: 0 };
    Ok(ReadCar { state, clocks, held, hitbox: hitbox as usize })
}

/// Read the seconds until each pad is back, in RocketSim's order.
pub fn read_pads(layout: &Layout, row: &[f32]) -> Result<[f32; PADS]> {
    let mut timers = [0.0; PADS];
    if let Some(column) = layout.of_match.pad_timer {
        for (pad, &number_of) in layout.pads.iter().enumerate() {
            timers[number_of] = number(row, Some(column + pad), "pad_timer", (0.0, 1e6), 0.0)?;
        }
    }
    Ok(timers)
}
