//! Where each field of a match lies in the caller's float32 buffer.

use std::collections::BTreeMap;

use pyo3::prelude::*;

use crate::errors::{Error, Result, argument};

/// Boost pads of a soccar field.
pub const PADS: usize = 34;

/// Most cars in a team.
pub const MOST_TEAM_SIZE: usize = 4;

/// Define a set of columns: a struct with one `Option<usize>` for each field, and the table of its fields.
macro_rules! columns {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $shape:expr,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default)]
        pub struct $name { $($(#[$field_doc])* pub $field: Option<usize>,)* }

        impl $name {
            /// Names and shapes of all fields, in the standard order.
            pub const FIELDS: &'static [(&'static str, &'static [usize])] =
                &[$((stringify!($field), $shape),)*];

            fn set(&mut self, name: &str, column: usize) -> bool {
                match name {
                    $(stringify!($field) => self.$field = Some(column),)*
                    _ => return false,
                }
                true
            }
        }
    };
}

columns! {
    /// Columns of a match's own numbers, counted from the beginning of its row.
    MatchColumns {
        /// Physics tick, an int32's bits.
        frame: &[],
        /// Kept as the caller wrote it.
        phase: &[],
        /// Kept as the caller wrote it, s.
        clock: &[],
        /// Kept as the caller wrote it.
        overtime: &[],
        /// Kept as the caller wrote it.
        score: &[2],
        /// 1 where the ball's |y| is above 5215.5 uu.
        goal_scored: &[],
        /// Read by `put`: times 650 uu/s^2 downwards.
        gravity: &[],
        /// Read by `put`: times the mutator `boost_used_per_second`.
        boost_consumption: &[],
        /// Read by `put`: stick sum from which a second jump is a dodge.
        dodge_deadzone: &[],
        /// Kept as the caller wrote it.
        ball_known: &[],
        /// uu.
        ball_position: &[3],
        /// Columns forward, right, up.
        ball_rotation: &[3, 3],
        /// uu/s.
        ball_linear_velocity: &[3],
        /// rad/s, world axes.
        ball_angular_velocity: &[3],
        /// s until each pad is back, 0 while it can be taken; in the layout's order of pads.
        pad_timer: &[PADS],
    }
}

columns! {
    /// Columns of a car's numbers, counted from the beginning of the car's part.
    CarColumns {
        /// Kept as the caller wrote it, an int32's bits.
        player_id: &[],
        /// Kept as the caller wrote it: the car's place gives its team.
        team: &[],
        /// Read by `put`: 0 octane, 1 dominus, 2 plank, 3 breakout, 4 hybrid, 5 merc, 6 psyclops.
        hitbox: &[],
        /// uu.
        position: &[3],
        /// Columns forward, right, up.
        rotation: &[3, 3],
        /// uu/s.
        linear_velocity: &[3],
        /// rad/s, world axes.
        angular_velocity: &[3],
        /// 0 to 100.
        boost_amount: &[],
        /// s until the respawn, 0 while alive.
        demo_respawn_timer: &[],
        /// 0 or 1: front left, front right, back left, back right.
        wheels_with_contact: &[4],
        /// s since the car became supersonic, 0 while it is not.
        supersonic_time: &[],
        /// s since boosting began, 0 while not boosting.
        boost_active_time: &[],
        /// 0 to 1.
        handbrake: &[],
        /// 0 or 1.
        has_jumped: &[],
        /// 0 or 1.
        is_holding_jump: &[],
        /// 0 or 1.
        is_jumping: &[],
        /// s since the jump began.
        jump_time: &[],
        /// 0 or 1.
        has_flipped: &[],
        /// 0 or 1.
        has_double_jumped: &[],
        /// s since the jump ended.
        air_time_since_jump: &[],
        /// s since the dodge began.
        flip_time: &[],
        /// Car axes.
        flip_torque: &[3],
        /// 0 or 1.
        is_autoflipping: &[],
        /// s.
        autoflip_timer: &[],
        /// 1 or -1, 0 before the first.
        autoflip_direction: &[],
        /// The car last bumped while that bump cools down, else -1.
        bump_victim: &[],
        /// Ticks with contact to the ball in the latest step.
        ball_touches: &[],
        /// The control vector of the latest tick.
        controls: &[8],
        /// 0 or 1: three wheels or more touch.
        on_ground: &[],
        /// 0 or 1.
        is_demoed: &[],
        /// 0 or 1.
        is_boosting: &[],
        /// 0 or 1.
        is_supersonic: &[],
        /// 0 or 1.
        is_flipping: &[],
        /// 0 or 1: a dodge or double jump is left.
        has_flip: &[],
        /// 0 or 1: has one, is in the air and has let go of jump.
        can_flip: &[],
        /// Kept as the caller wrote it.
        known: &[9],
    }
}

/// The layout of one match: `size` float32, cars one after another from `car_start` on.
#[pyclass(frozen, module = "rocketsim_batch")]
#[derive(Clone, Debug)]
pub struct Layout {
    /// Cars of the blue team.
    pub blue: usize,
    /// Cars of the orange team.
    pub orange: usize,
    /// Numbers of a match.
    pub size: usize,
    /// Column at which the first car begins.
    pub car_start: usize,
    /// Numbers of a car.
    pub car_stride: usize,
    /// Columns of the match.
    pub of_match: MatchColumns,
    /// Columns within a car.
    pub of_car: CarColumns,
    /// RocketSim's number of each pad, in the caller's order.
    pub pads: [usize; PADS],
    names: BTreeMap<String, (usize, Vec<usize>)>,
}

impl Layout {
    /// Return the number of cars.
    pub fn cars(&self) -> usize {
        self.blue + self.orange
    }
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
        blue: usize,
        orange: usize,
        size: Option<usize>,
        match_columns: Option<BTreeMap<String, usize>>,
        car_columns: Option<BTreeMap<String, usize>>,
        car_start: Option<usize>,
        car_stride: Option<usize>,
        pads: Option<Vec<usize>>,
    ) -> Result<Self> {
        if blue > MOST_TEAM_SIZE || orange > MOST_TEAM_SIZE {
            return argument(format!(
                "team sizes are {blue} and {orange}, expected 0 to {MOST_TEAM_SIZE} each"
            ));
        }
        let (own_match, match_width) = standard(MatchColumns::FIELDS);
        let (own_car, car_width) = standard(CarColumns::FIELDS);
        let match_columns = match_columns.unwrap_or(own_match);
        let car_columns = car_columns.unwrap_or(own_car);
        let car_start = car_start.unwrap_or(match_width);
        let car_stride = car_stride.unwrap_or(car_width);
        let size = size.unwrap_or(car_start + (blue + orange) * car_stride);
        if car_start + (blue + orange) * car_stride > size {
            return argument(format!(
                "size is {size}, expected {} or more: {} cars of {car_stride} numbers from column {car_start} on",
                car_start + (blue + orange) * car_stride,
                blue + orange
            ));
        }
        let mut of_match = MatchColumns::default();
        let mut of_car = CarColumns::default();
        let mut names = BTreeMap::new();
        place("match_columns", MatchColumns::FIELDS, &match_columns, size, |name, column| {
            of_match.set(name, column)
        })?;
        place("car_columns", CarColumns::FIELDS, &car_columns, car_stride, |name, column| {
            of_car.set(name, column)
        })?;
        for (fields, columns, prefix) in
            [(MatchColumns::FIELDS, &match_columns, ""), (CarColumns::FIELDS, &car_columns, "car_")]
        {
            for (name, shape) in fields {
                if let Some(column) = columns.get(*name) {
                    names.insert(format!("{prefix}{name}"), (*column, shape.to_vec()));
                }
            }
        }
        Ok(Self {
            blue,
            orange,
            size,
            car_start,
            car_stride,
            of_match,
            of_car,
            pads: pad_order(pads)?,
            names,
        })
    }

    /// Numbers of a match.
    #[getter]
    fn size(&self) -> usize {
        self.size
    }

    /// Cars of the blue team.
    #[getter]
    fn blue(&self) -> usize {
        self.blue
    }

    /// Cars of the orange team.
    #[getter]
    fn orange(&self) -> usize {
        self.orange
    }

    /// Column at which the first car begins.
    #[getter]
    fn car_start(&self) -> usize {
        self.car_start
    }

    /// Numbers of a car.
    #[getter]
    fn car_stride(&self) -> usize {
        self.car_stride
    }

    /// Column and shape of each field by name; those of cars begin with `car_` and count from the car's part.
    #[getter]
    fn fields(&self) -> BTreeMap<String, (usize, Vec<usize>)> {
        self.names.clone()
    }
}

/// Return the standard columns of a table of fields, one after another, and their sum.
fn standard(fields: &[(&str, &[usize])]) -> (BTreeMap<String, usize>, usize) {
    let mut columns = BTreeMap::new();
    let mut at = 0;
    for (name, shape) in fields {
        columns.insert((*name).to_owned(), at);
        at += width(shape);
    }
    (columns, at)
}

/// Hand each of the caller's columns to `set`, after checking its name and room.
fn place(
    what: &str,
    fields: &[(&str, &[usize])],
    columns: &BTreeMap<String, usize>,
    room: usize,
    mut set: impl FnMut(&str, usize) -> bool,
) -> Result<()> {
    for (name, &column) in columns {
        let Some((_, shape)) = fields.iter().find(|(own, _)| own == name) else {
            let known: Vec<_> = fields.iter().map(|(own, _)| *own).collect();
            return argument(format!("{what} has {name:?}, expected names of {}", known.join(", ")));
        };
        if column.checked_add(width(shape)).is_none_or(|end| end > room) {
            return argument(format!(
                "{what}[{name:?}] is {column}, expected at most {} for {} numbers in a part of {room}",
                room.saturating_sub(width(shape)),
                width(shape)
            ));
        }
        set(name, column);
    }
    Ok(())
}

/// Return RocketSim's number of each pad in the caller's order; without one, RocketSim's own.
fn pad_order(pads: Option<Vec<usize>>) -> Result<[usize; PADS]> {
    let pads = pads.unwrap_or_else(|| (0..PADS).collect());
    let mut sorted = pads.clone();
    sorted.sort_unstable();
    if sorted != (0..PADS).collect::<Vec<_>>() {
        return argument(format!("pads is {pads:?}, expected each of 0 to {} once", PADS - 1));
    }
    pads.try_into().map_err(|_| Error::Argument("pads has a wrong length".to_owned()))
}
