//! Where each field of a match lies in the caller's float32 buffer.

use std::collections::BTreeMap;
use std::ops::Range;

use pyo3::prelude::*;

use crate::arguments::Whole;
use crate::errors::{Result, refuse};

/// Boost pads of a soccar field.
pub const PADS: usize = 34;
/// Most cars in a team.
pub const MOST_TEAM_SIZE: usize = 4;
/// Most numbers of a match.
const MOST_NUMBERS: usize = 1 << 20;

/// Define a set of columns: a struct with one `Option<usize>` for each field, and the table of its fields.
macro_rules! columns {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $shape:expr,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default)]
        pub struct $name { $(pub(crate) $field: Option<usize>,)* }

        impl $name {
            /// Names and shapes of all fields, in the standard order.
            pub const FIELDS: &'static [(&'static str, &'static [usize])] =
                &[$((stringify!($field), $shape),)*];

            fn set(&mut self, name: &str, column: usize) {
                match name {
                    $(stringify!($field) => self.$field = Some(column),)*
                    _ => {}
                }
            }
        }
    };
}

columns! {
    /// Columns of a match's own numbers, counted from the beginning of its row.
    MatchColumns {
        frame: &[], // Physics tick, an int32's bits.
        phase: &[], // Kept as the caller wrote it.
        clock: &[], // Kept as the caller wrote it, s.
        overtime: &[], // Kept as the caller wrote it.
        score: &[2], // Kept as the caller wrote it.
        goal_scored: &[], // 1 where the ball's |y| is above 5215.5 uu.
        gravity: &[], // Read by `put`: times 650 uu/s^2 downwards.
        boost_consumption: &[], // Read by `put`: times the mutator `boost_used_per_second`.
        dodge_deadzone: &[], // Read by `put`: stick sum from which a second jump is a dodge.
        ball_known: &[], // Kept as the caller wrote it.
        ball_position: &[3], // uu.
        ball_rotation: &[3, 3], // Columns forward, right, up.
        ball_linear_velocity: &[3], // uu/s.
        ball_angular_velocity: &[3], // rad/s, world axes.
        pad_timer: &[PADS], // s until each pad is back, 0 while it can be taken; in the layout's order of pads.
    }
}

columns! {
    /// Columns of a car's numbers, counted from the beginning of the car's part.
    CarColumns {
        player_id: &[], // Kept as the caller wrote it, an int32's bits.
        team: &[], // Kept as the caller wrote it: the car's place gives its team.
        hitbox: &[], // Read by `put`: 0 octane, 1 dominus, 2 plank, 3 breakout, 4 hybrid, 5 merc, 6 psyclops.
        position: &[3], // uu.
        rotation: &[3, 3], // Columns forward, right, up.
        linear_velocity: &[3], // uu/s.
        angular_velocity: &[3], // rad/s, world axes.
        boost_amount: &[], // 0 to 100.
        demo_respawn_timer: &[], // s until the respawn, 0 while alive.
        wheels_with_contact: &[4], // 0 or 1: front left, front right, back left, back right.
        supersonic_time: &[], // s since the car became supersonic, 0 while it is not.
        boost_active_time: &[], // s since boosting began, 0 while not boosting.
        handbrake: &[], // 0 to 1.
        has_jumped: &[], // 0 or 1.
        is_holding_jump: &[], // 0 or 1.
        is_jumping: &[], // 0 or 1.
        jump_time: &[], // s since the jump began.
        has_flipped: &[], // 0 or 1.
        has_double_jumped: &[], // 0 or 1.
        air_time_since_jump: &[], // s since the jump ended.
        flip_time: &[], // s since the dodge began.
        flip_torque: &[3], // Car axes.
        is_autoflipping: &[], // 0 or 1.
        autoflip_timer: &[], // s.
        autoflip_direction: &[], // 1 or -1, 0 before the first.
        bump_victim: &[], // The car last bumped while that bump cools down, else -1.
        ball_touches: &[], // Ticks with contact to the ball in the latest step.
        controls: &[8], // The control vector of the latest tick.
        on_ground: &[], // 0 or 1: three wheels or more touch.
        is_demoed: &[], // 0 or 1.
        is_boosting: &[], // 0 or 1.
        is_supersonic: &[], // 0 or 1.
        is_flipping: &[], // 0 or 1.
        has_flip: &[], // 0 or 1: a dodge or double jump is left.
        can_flip: &[], // 0 or 1: has one, is in the air and has let go of jump.
        known: &[9], // Kept as the caller wrote it.
    }
}

/// The layout of one match: `size` float32, cars one after another from `car_start` on.
#[pyclass(frozen, module = "rocketsim_batch")]
#[derive(Clone, Debug)]
pub struct Layout {
    /// Cars of the blue team.
    #[pyo3(get)]
    pub blue: usize,
    /// Cars of the orange team.
    #[pyo3(get)]
    pub orange: usize,
    /// Numbers of a match.
    #[pyo3(get)]
    pub size: usize,
    /// Column at which the first car begins.
    #[pyo3(get)]
    pub car_start: usize,
    /// Numbers of a car.
    #[pyo3(get)]
    pub car_stride: usize,
    /// Columns of the match.
    pub of_match: MatchColumns,
    /// Columns within a car.
    pub of_car: CarColumns,
    /// RocketSim's number of each pad, in the caller's order.
    #[pyo3(get)]
    pub pads: [usize; PADS],
    names: BTreeMap<String, (usize, Vec<usize>)>,
}

impl Layout {
    /// Return the number of cars.
    pub fn cars(&self) -> usize {
        self.blue + self.orange
    }

    /// Return a car's part of a row.
    pub fn part<'a>(&self, row: &'a [f32], car: usize) -> &'a [f32] {
        &row[self.car_start + car * self.car_stride..][..self.car_stride]
    }
}

/// Return the three numbers of a row from a column on.
pub fn vector(row: &[f32], column: usize) -> [f32; 3] {
    [row[column], row[column + 1], row[column + 2]]
}

/// Return how many numbers a field has.
fn width(shape: &[usize]) -> usize {
    shape.iter().product()
}

#[pymethods]
impl Layout {
    /// Make a layout from the caller's columns.
    #[new]
    #[pyo3(signature = (blue, orange, *, size=None, match_columns=None, car_columns=None, car_start=None, car_stride=None, pads=None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        blue: Whole,
        orange: Whole,
        size: Option<Whole>,
        match_columns: Option<BTreeMap<String, Whole>>,
        car_columns: Option<BTreeMap<String, Whole>>,
        car_start: Option<Whole>,
        car_stride: Option<Whole>,
        pads: Option<Vec<Whole>>,
    ) -> Result<Self> {
        let blue = blue.within("blue, the size of a team,", 0..=MOST_TEAM_SIZE)?;
        let orange = orange.within("orange, the size of a team,", 0..=MOST_TEAM_SIZE)?;
        let (own_match, match_width) = standard(MatchColumns::FIELDS);
        let (own_car, car_width) = standard(CarColumns::FIELDS);
        let match_columns = match_columns.unwrap_or(own_match);
        let car_columns = car_columns.unwrap_or(own_car);
        let given = |name, number: Option<Whole>, own| match number {
            Some(number) => number.within(name, 0..=MOST_NUMBERS),
            None => Ok(own),
        };
        let car_start = given("car_start", car_start, match_width)?;
        let car_stride = given("car_stride", car_stride, car_width)?;
        let needed = car_start + (blue + orange) * car_stride;
        let size = given("size", size, needed)?;
        if needed > size || size == 0 || size > MOST_NUMBERS {
            refuse!(
                "size is {size}, expected {} to {MOST_NUMBERS}: {} cars of {car_stride} numbers from column {car_start} on",
                needed.max(1),
                blue + orange
            );
        }
        let (mut of_match, mut of_car, mut names) =
            (MatchColumns::default(), CarColumns::default(), BTreeMap::new());
        let cars = car_start..car_start + (blue + orange) * car_stride;
        place("match_columns", MatchColumns::FIELDS, &match_columns, (size, cars), |name, column, shape| {
            of_match.set(name, column);
            names.insert(name.to_owned(), (column, shape.to_vec()));
        })?;
        place("car_columns", CarColumns::FIELDS, &car_columns, (car_stride, 0..0), |name, column, shape| {
            of_car.set(name, column);
            names.insert(format!("car_{name}"), (column, shape.to_vec()));
        })?;
        let pads = pad_order(pads)?;
        Ok(Self { blue, orange, size, car_start, car_stride, of_match, of_car, pads, names })
    }

    /// Column and shape of each field by name; those of cars begin with `car_` and count from the car's part.
    #[getter]
    fn fields(&self) -> BTreeMap<String, (usize, Vec<usize>)> {
        self.names.clone()
    }
}

/// Return the standard columns of a table of fields, one after another, and their sum.
fn standard(fields: &[(&str, &[usize])]) -> (BTreeMap<String, Whole>, usize) {
    let mut columns = BTreeMap::new();
    let mut at = 0;
    for (name, shape) in fields {
        columns.insert((*name).to_owned(), Whole(at as i128));
        at += width(shape);
    }
    (columns, at)
}

/// Hand each of the caller's columns to `set`, after checking its name and room; no two may overlap.
fn place(
    what: &str,
    fields: &[(&str, &[usize])],
    columns: &BTreeMap<String, Whole>,
    (room, taken): (usize, Range<usize>),
    mut set: impl FnMut(&str, usize, &[usize]),
) -> Result<()> {
    let mut parts = vec![("the cars", taken)];
    for (name, column) in columns {
        let Some((_, shape)) = fields.iter().find(|(own, _)| own == name) else {
            let known: Vec<_> = fields.iter().map(|(own, _)| *own).collect();
            refuse!("{what} has {name:?}, expected names of {}", known.join(", "));
        };
        let Some(most) = room.checked_sub(width(shape)) else {
            refuse!("{what} has {name:?} of {} numbers, expected fields of {room} at most", width(shape));
        };
        let column = column.within(&format!("{what}[{name:?}]"), 0..=most)?;
        let end = column + width(shape);
        if let Some((other, _)) = parts.iter().find(|(_, part)| part.start.max(column) < part.end.min(end)) {
            refuse!("{what}[{name:?}] is {column}, where {other} lie too, expected columns of its own");
        }
        parts.push((name, column..end));
        set(name, column, shape);
    }
    Ok(())
}

/// Return RocketSim's number of each pad in the caller's order; without one, RocketSim's own.
fn pad_order(pads: Option<Vec<Whole>>) -> Result<[usize; PADS]> {
    let Some(pads) = pads else { return Ok(std::array::from_fn(|pad| pad)) };
    let pads: Vec<_> = pads.iter().map(|pad| pad.0).collect();
    if pads.len() != PADS || !(0..PADS).all(|pad| pads.contains(&(pad as i128))) {
        refuse!("pads is {pads:?}, expected each of 0 to {} once", PADS - 1);
    }
    Ok(std::array::from_fn(|at| pads[at] as usize))
}
