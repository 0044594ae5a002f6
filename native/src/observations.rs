//! Observations of whole batches: columns of the state times factors, and vectors seen from a car.

use numpy::ndarray::Dimension;
use numpy::{Element, PyReadonlyArray, PyReadonlyArray2, PyReadonlyArray3, PyReadwriteArray3};
use pyo3::prelude::*;

use crate::arguments::{CHECKED, Object, Whole, readable, shape_of, writable};
use crate::errors::{Result, refuse};
use crate::layout::vector;

/// Vectors of length 1: to the ball, and from it to each goal.
const DIRECTIONS: usize = 3;
/// Vectors before those of other cars: the directions, the ball's position and its velocity.
const BALL: usize = DIRECTIONS + 2;
/// In place of a length of 0.
const TINY: f32 = 1e-30;
/// Vectors that a car sees, at most: the ball's, and two of each of 127 other cars.
const MOST_VECTORS: usize = BALL + 2 * MOST_BLOCKS;
/// Blocks of an observation, and numbers of all of them, at most.
const MOST_BLOCKS: usize = 127;
const MOST_BLOCK_NUMBERS: usize = 4096;
/// Cars that observe, at most.
const MOST_OBSERVERS: usize = 128;
/// In place of a column: the factor itself is shown.
const CONSTANT: i64 = -1;
/// Numbers of a row and of an observation, at most.
const MOST_NUMBERS: usize = 1 << 20;

/// A number of an observation: a column of the state times a factor.
#[derive(Clone, Copy)]
struct Number {
    column: u32,
    factor: f32,
}

/// A vector that a car sees: from an origin to an end, first columns of three each, times a factor.
struct Sight {
    at: usize,
    end: usize,
    origin: usize,
    factor: f32,
}

/// What one car is shown.
#[derive(Default)]
struct View {
    /// The first numbers of the observation.
    numbers: Vec<Number>,
    /// Places among them whose number never changes, and that number.
    constants: Vec<(usize, f32)>,
    /// Places among them from whose column another one is taken off first.
    differences: Vec<(usize, usize)>,
    /// Places among them that show 1 where their column is 0, and else 0.
    absences: Vec<usize>,
    sights: Vec<Sight>,
    /// Ends of the second and the third vector, uu: places that no column has.
    goals: [[f32; 3]; 2],
    /// First column of the car's rotation matrix.
    rotation: usize,
    /// Of each block, what is added to its car's squared distance.
    ranks: Vec<f64>,
}

/// Blocks of an observation, one a car, that are sorted by distance.
struct Blocks {
    start: usize,
    width: usize,
}

/// How some cars see a match: columns times factors, vectors in the car's frame, and sorted blocks.
#[pyclass(frozen, module = "rocketsim_batch")]
pub struct Observer {
    width: usize,
    size: usize,
    views: Vec<View>,
    blocks: Option<Blocks>,
}

#[pymethods]
impl Observer {
    /// Make an observer of some cars; see the stub for the arguments.
    #[new]
    #[pyo3(signature = (width, size, columns, factors, *, minus=None, absent=None, rotations=None, places=None, ends=None, origins=None, sight_factors=None, goals=None, start=None, ranks=None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        width: Whole,
        size: Whole,
        columns: &Object<'_>,
        factors: &Object<'_>,
        minus: Option<&Object<'_>>,
        absent: Option<&Object<'_>>,
        rotations: Option<Vec<Whole>>,
        places: Option<Vec<Whole>>,
        ends: Option<&Object<'_>>,
        origins: Option<&Object<'_>>,
        sight_factors: Option<&Object<'_>>,
        goals: Option<&Object<'_>>,
        start: Option<Whole>,
        ranks: Option<&Object<'_>>,
    ) -> Result<Self> {
        let width = width.within("width", 3..=MOST_NUMBERS)?;
        let size = size.within("size", 0..=MOST_NUMBERS)?;
        let shape = shape_of(columns);
        let &[cars, count] = &shape[..] else {
            refuse!("columns have the shape {shape:?}, expected (cars, numbers)");
        };
        if cars > MOST_OBSERVERS {
            refuse!("columns are of {cars} cars, expected {MOST_OBSERVERS} at most");
        }
        if count > size {
            refuse!("columns have {count} numbers, expected {size} at most, the size of an observation");
        }
        let columns: PyReadonlyArray2<'_, i64> = readable("columns", columns, &[&[cars, count]])?;
        let factors: PyReadonlyArray2<'_, f32> = readable("factors", factors, &[&[cars, count]])?;
        let (columns, factors) = (columns.as_slice().expect(CHECKED), factors.as_slice().expect(CHECKED));
        let table: &[&[usize]] = &[&[cars, count]];
        let minus: Option<PyReadonlyArray2<'_, i64>> =
            minus.map(|minus| readable("minus", minus, table)).transpose()?;
        let absent: Option<PyReadonlyArray2<'_, bool>> =
            absent.map(|absent| readable("absent", absent, table)).transpose()?;
        let mut views = Vec::with_capacity(cars);
        for car in 0..cars {
            let range = car * count..(car + 1) * count;
            let mut view = View::new(&columns[range.clone()], &factors[range.clone()], width)?;
            if let Some(minus) = &minus {
                for (at, &column) in minus.as_slice().expect(CHECKED)[range.clone()].iter().enumerate() {
                    if column != CONSTANT {
                        view.differences.push((at, column_within("minus", column, width, 1)?));
                    }
                }
            }
            if let Some(absent) = &absent {
                let absent = absent.as_slice().expect(CHECKED)[range].iter().enumerate();
                view.absences.extend(absent.filter_map(|(at, &is_absent)| is_absent.then_some(at)));
            }
            views.push(view);
        }
        let mut this = Self { width, size, views, blocks: None };
        match (rotations, places, ends, origins, sight_factors, goals) {
            (Some(rotations), Some(places), Some(ends), Some(origins), Some(factors), Some(goals)) => {
                this.add_sights(&rotations, &places, [ends, origins], factors, goals)?;
                match (start, ranks) {
                    (Some(start), Some(ranks)) => this.add_blocks(&start, ranks)?,
                    (None, None) => {}
                    _ => refuse!("one of start and ranks is None, expected both or none"),
                }
            }
            (None, None, None, None, None, None) if start.is_none() && ranks.is_none() => {}
            _ => refuse!(
                "a part of the arguments of vectors is None, expected all of rotations to goals or none"
            ),
        }
        Ok(this)
    }

    /// Write the observations of all matches of a buffer into `observations`, float32 `(matches, cars, size)`.
    fn observe(&self, py: Python<'_>, buffer: &Object<'_>, observations: &Object<'_>) -> Result<()> {
        let matches = shape_of(buffer).first().copied().unwrap_or(0);
        let buffer: PyReadonlyArray2<'_, f32> = readable("buffer", buffer, &[&[matches, self.width]])?;
        let shape = [matches, self.views.len(), self.size];
        let mut observations: PyReadwriteArray3<'_, f32> = writable("observations", observations, &shape)?;
        let rows = buffer.as_slice().expect(CHECKED);
        let seen = observations.as_slice_mut().expect(CHECKED);
        let length = self.views.len() * self.size;
        if length > 0 {
            py.detach(|| {
                for (row, seen) in rows.chunks_exact(self.width).zip(seen.chunks_exact_mut(length)) {
                    self.observe_match(row, seen);
                }
            });
        }
        Ok(())
    }
}

impl View {
    /// Make the view of a car without vectors.
    fn new(columns: &[i64], factors: &[f32], width: usize) -> Result<Self> {
        let (mut numbers, mut constants) = (Vec::with_capacity(columns.len()), Vec::new());
        let mut last = Number { column: 0, factor: 0.0 };
        for (at, (&column, &factor)) in columns.iter().zip(factors).enumerate() {
            if column == CONSTANT {
                constants.push((at, factor));
            } else {
                last = Number { column: column_within("columns", column, width, 1)? as u32, factor };
            }
            numbers.push(last);
        }
        Ok(Self { numbers, constants, ..Self::default() })
    }
}

impl Observer {
    fn add_sights(
        &mut self,
        rotations: &[Whole],
        places: &[Whole],
        columns: [&Object<'_>; 2],
        factors: &Object<'_>,
        goals: &Object<'_>,
    ) -> Result<()> {
        let (cars, count) = (self.views.len(), places.len());
        if rotations.len() != cars || !(BALL..=MOST_VECTORS).contains(&count) {
            let words =
                format!("expected one rotation for each of {cars} cars, {BALL} to {MOST_VECTORS} places");
            refuse!("there are {} rotations and {count} places, {words}", rotations.len());
        }
        let table = [cars, count];
        let read = |name, object| -> Result<Vec<i64>> {
            Ok(numbers(readable::<i64, _>(name, object, &[&table])? as PyReadonlyArray2<_>))
        };
        let (ends, origins) = (read("ends", columns[0])?, read("origins", columns[1])?);
        let factors =
            numbers::<f32, _>(readable("sight_factors", factors, &[&table])? as PyReadonlyArray2<_>);
        let goals = numbers::<f32, _>(readable("goals", goals, &[&[cars, 2, 3]])? as PyReadonlyArray3<_>);
        let places =
            places.iter().map(|place| place.within("a number in places", 0..=self.size.saturating_sub(3)));
        let places = places.collect::<Result<Vec<_>>>()?;
        for (car, view) in self.views.iter_mut().enumerate() {
            view.rotation = column_within("rotations", rotations[car].0 as i64, self.width, 9)?;
            view.goals = [0, 1].map(|goal| std::array::from_fn(|axis| goals[(car * 2 + goal) * 3 + axis]));
            for (number, &at) in places.iter().enumerate() {
                let place = car * count + number;
                let end = column_within("ends", ends[place], self.width, 3)?;
                let origin = column_within("origins", origins[place], self.width, 3)?;
                view.sights.push(Sight { at, end, origin, factor: factors[place] });
            }
        }
        if self.size < 3 && cars > 0 {
            refuse!("an observation has {} numbers, expected 3 or more, a vector's", self.size);
        }
        Ok(())
    }

    fn add_blocks(&mut self, start: &Whole, ranks: &Object<'_>) -> Result<()> {
        let sights = self.views.first().map_or(BALL, |view| view.sights.len());
        let (cars, count) = (self.views.len(), (sights - BALL) / 2);
        let start = start.within("start", 0..=self.size)?;
        let numbers_of_blocks = self.size - start;
        let fits = count > 0
            && numbers_of_blocks.is_multiple_of(count)
            && (1..=MOST_BLOCK_NUMBERS).contains(&numbers_of_blocks);
        if !fits || sights != BALL + 2 * count {
            let words = format!("expected blocks of one size, 1 to {MOST_BLOCK_NUMBERS} numbers in all");
            refuse!("{numbers_of_blocks} numbers from {start} on are of {count} cars, {words}");
        }
        let ranks = numbers::<f64, _>(readable("ranks", ranks, &[&[cars, count]])? as PyReadonlyArray2<_>);
        for (view, ranks) in self.views.iter_mut().zip(ranks.chunks_exact(count)) {
            view.ranks = ranks.to_vec();
        }
        self.blocks = Some(Blocks { start, width: numbers_of_blocks / count });
        Ok(())
    }

    /// Write the observations of one match, whose row has `width` numbers.
    fn observe_match(&self, row: &[f32], seen: &mut [f32]) {
        for (view, seen) in self.views.iter().zip(seen.chunks_exact_mut(self.size)) {
            for (seen, number) in seen.iter_mut().zip(&view.numbers) {
                *seen = row[number.column as usize] * number.factor;
            }
            for &(at, minus) in &view.differences {
                let number = &view.numbers[at];
                seen[at] = (row[number.column as usize] - row[minus]) * number.factor;
            }
            for &at in &view.absences {
                seen[at] = f32::from(row[view.numbers[at].column as usize] == 0.0);
            }
            for &(at, number) in &view.constants {
                seen[at] = number;
            }
            if view.sights.is_empty() {
                continue;
            }
            let mut away = [0.0; MOST_BLOCKS];
            look(view, row, seen, &mut away);
            if let Some(blocks) = &self.blocks {
                sort_blocks(blocks, &view.ranks, &away, &mut seen[blocks.start..]);
            }
        }
    }
}

/// Write the vectors that a car sees, in its own frame; `away` gets the squared distances of the other cars.
fn look(view: &View, row: &[f32], seen: &mut [f32], away: &mut [f32; MOST_BLOCKS]) {
    let rotation = &row[view.rotation..][..9];
    for (number, sight) in view.sights.iter().enumerate() {
        let from = vector(row, sight.origin);
        let to = match number {
            1 | 2 => view.goals[number - 1],
            _ => vector(row, sight.end),
        };
        let mut line: [f32; 3] = std::array::from_fn(|axis| to[axis] - from[axis]);
        if number < DIRECTIONS {
            let length = square(line).sqrt();
            let length = if length < TINY { TINY } else { length };
            line = line.map(|part| part / length);
        }
        line = line.map(|part| part * sight.factor);
        for axis in 0..3 {
            // The columns of a rotation are forward, right and up.
            let parts: [f32; 3] = std::array::from_fn(|part| line[part] * rotation[3 * part + axis]);
            seen[sight.at + axis] = (parts[0] + parts[1]) + parts[2];
        }
        if number >= BALL && number % 2 == BALL % 2 {
            away[(number - BALL) / 2] = square(line);
        }
    }
}

/// Sort blocks by distance and rank, nearest first; equal ones keep their order.
fn sort_blocks(blocks: &Blocks, ranks: &[f64], away: &[f32; MOST_BLOCKS], seen: &mut [f32]) {
    let mut order = [0; MOST_BLOCKS];
    let mut keys = [0.0; MOST_BLOCKS];
    for (block, rank) in ranks.iter().enumerate() {
        let key = f64::from(away[block]) + rank;
        let mut place = block;
        while place > 0 && is_nearer(key, keys[place - 1]) {
            (keys[place], order[place]) = (keys[place - 1], order[place - 1]);
            place -= 1;
        }
        (keys[place], order[place]) = (key, block);
    }
    let order = &order[..ranks.len()];
    if order.iter().enumerate().all(|(place, &block)| place == block) {
        return;
    }
    let mut copy = [0.0; MOST_BLOCK_NUMBERS];
    copy[..seen.len()].copy_from_slice(seen);
    for (to, &from) in seen.chunks_exact_mut(blocks.width).zip(order) {
        to.copy_from_slice(&copy[from * blocks.width..][..blocks.width]);
    }
}

/// Tell whether a number comes before another one; what is no number comes last.
fn is_nearer(one: f64, other: f64) -> bool {
    one < other || (other.is_nan() && !one.is_nan())
}

/// Return the square of a vector's length, summed in the order of its parts.
fn square(vector: [f32; 3]) -> f32 {
    (vector[0] * vector[0] + vector[1] * vector[1]) + vector[2] * vector[2]
}

/// Return the numbers of an array that was checked.
fn numbers<T: Element + Copy, D: Dimension>(array: PyReadonlyArray<'_, T, D>) -> Vec<T> {
    array.as_slice().expect(CHECKED).to_vec()
}

/// Return a column with room for some numbers.
fn column_within(name: &str, column: i64, width: usize, room: usize) -> Result<usize> {
    let Some(most) = width.checked_sub(room) else {
        refuse!("a row has {width} numbers, expected {room} or more for {name}");
    };
    Whole(i128::from(column)).within(&format!("a number in {name}"), 0..=most)
}
