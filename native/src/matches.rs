//! The Python class `Matches`: one group of matches of equal team sizes, stepped together.

use std::collections::BTreeMap;

use numpy::{
    PyArray1, PyArray3, PyArrayMethods, PyReadonlyArray2, PyReadonlyArray4, PyReadwriteArray2,
    PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use rocketsim::{Arena, ArenaConfig, GameMode};

use crate::controls::{self, CONTROLS};
use crate::errors::{Death, Error, Result, refuse};
use crate::events;
use crate::forecast::{FRAME, forecast};
use crate::game::Game;
use crate::layout::Layout;
use crate::panics::{Report, guarded};
use crate::steps::{Task, UNINTERRUPTED, for_each, run};

/// Ticks of one call, at most: 28 hours of the game.
const MOST_TICKS: usize = 12_000_000;

/// Numbers of one call's frames, at most: 1 GiB.
const MOST_NUMBERS: usize = 1 << 28;

/// Ticks of a forecast, at most: 10 minutes, some 50 ms of work without a look for Ctrl-C.
const MOST_FORECAST: usize = 72_000;

/// A group's part in a step: its matches, buffer, control vectors and delays.
type Part<'py> =
    (PyRefMut<'py, Matches>, PyReadwriteArray2<'py, f32>, PyReadonlyArray4<'py, f32>, Option<Delays<'py>>);
type Delays<'py> = PyReadonlyArray2<'py, i64>;

/// Step several groups in one call by some ticks, on the largest number of threads that one of them has.
///
/// `groups` has `(matches, buffer, controls, delay or None)` for each, as `Matches.step` takes them. Nothing
/// is stepped where one of them is refused. `MatchError.args[2]` has the groups of the matches that failed.
#[pyfunction]
pub fn step_groups(py: Python<'_>, mut groups: Vec<Part<'_>>, ticks: usize) -> Result<()> {
    check_range("ticks", ticks, MOST_TICKS)?;
    let several = groups.len() > 1;
    for (group, (matches, buffer, controls, delay)) in groups.iter().enumerate() {
        let checked = matches.check_step(group, buffer, controls, delay.as_ref(), ticks);
        checked.map_err(|error| if several { error.within(&format!("group {group}: ")) } else { error })?;
    }
    let threads = groups.iter().map(|group| group.0.threads).max().unwrap_or(1);
    let mut tasks = Vec::new();
    for (matches, buffer, controls, delay) in &mut groups {
        let delays = delay.as_ref().map(|delay| slice(delay.as_slice(), "delay")).transpose()?;
        matches.take(slice(controls.as_slice(), "controls")?, controls.shape()[2], delays);
        tasks.extend(matches.tasks(slice_mut(buffer, "buffer")?, ticks));
    }
    run(py, threads, &mut tasks)?;
    drop(tasks);
    died(groups.iter().enumerate().flat_map(|(number, group)| group.0.deaths(number)).collect())
}

/// Return an error that names the matches which died in this call.
fn died(deaths: Vec<Death>) -> Result<()> {
    if deaths.is_empty() { Ok(()) } else { Err(Error::Panicked(deaths)) }
}

/// What a call has for one match that it changes.
#[derive(Default)]
struct Change<'a, T> {
    /// What was read of its row.
    read: T,
    /// The row that the call was given.
    given: &'a [f32],
    /// The number of a car, or for `nudge` 1 for each body that moves, the ball first.
    arguments: Vec<usize>,
}

/// N matches of equal team sizes.
#[pyclass(subclass, module = "rocketsim_batch._native")]
pub struct Matches {
    games: Vec<Game>,
    layout: Layout,
    template: Arena,
    threads: usize,
}

/// Return a stream of its own for each match of a group.
fn seed_of(seed: u64, number: usize) -> u64 {
    // Two steps of splitmix's increment keep neighbouring seeds and numbers apart.
    seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (number as u64 + 1).wrapping_mul(0xD1B5_4A32_D192_ED03)
}

impl Matches {
    fn check_buffer(&self, name: &str, shape: &[usize], matches: usize) -> Result<()> {
        if shape == [matches, self.layout.size] {
            return Ok(());
        }
        refuse!("{name} is float32{shape:?}, expected C-contiguous float32[{matches}, {}]", self.layout.size)
    }

    fn check_numbers(&self, numbers: &[usize]) -> Result<()> {
        let mut seen = vec![false; self.games.len()];
        for &number in numbers {
            if number >= self.games.len() {
                refuse!("matches has {number}, expected numbers from 0 to {}", self.games.len() - 1);
            }
            if std::mem::replace(&mut seen[number], true) {
                refuse!("matches has {number} twice, expected each once");
            }
        }
        Ok(())
    }

    /// Refuse unknown and dead matches, and a buffer of another shape.
    fn check_some(&self, numbers: &[usize], buffer: &PyReadwriteArray2<'_, f32>) -> Result<()> {
        self.check_numbers(numbers)?;
        self.check_alive(numbers)?;
        self.check_buffer("buffer", buffer.shape(), self.games.len())
    }

    /// Refuse dead matches among some.
    fn check_alive(&self, numbers: &[usize]) -> Result<()> {
        let dead: Vec<_> =
            self.deaths(0).into_iter().filter(|death| numbers.contains(&death.number)).collect();
        if dead.is_empty() { Ok(()) } else { Err(Error::Dead(dead)) }
    }

    fn deaths(&self, group: usize) -> Vec<Death> {
        self.games.iter().enumerate().filter_map(|(number, game)| game.death(group, number)).collect()
    }

    /// Return the error of a call that panicked and left its match as it was.
    fn panicked(&self, number: usize, call: &'static str, text: String, arguments: Vec<usize>) -> Error {
        let (game, mut row) = (&self.games[number], vec![0.0; self.layout.size]);
        game.show(&self.layout, &mut row);
        if let Some(column) = self.layout.of_match.gravity {
            row[column] = game.arena.mutator_config().gravity.z / game.mutators.config.gravity.z;
        }
        let report = game.report(&self.layout, call, &text, [&row, &[]]);
        let report = Some(Box::new(Report { arguments, ..report }));
        Error::Panicked(vec![Death { group: 0, number, text: format!("{call}: {text}"), report }])
    }

    fn check_step(
        &self,
        group: usize,
        buffer: &PyReadwriteArray2<'_, f32>,
        controls: &PyReadonlyArray4<'_, f32>,
        delay: Option<&Delays<'_>>,
        ticks: usize,
    ) -> Result<()> {
        let dead = self.deaths(group);
        if !dead.is_empty() {
            return Err(Error::Dead(dead));
        }
        self.check_buffer("buffer", buffer.shape(), self.games.len())?;
        if !buffer.is_c_contiguous() {
            return not_contiguous("buffer");
        }
        self.check_controls(controls, ticks)?;
        delay.map_or(Ok(()), |delay| self.check_delays(delay))
    }

    /// Change some matches and show them in their rows; those that panic are dead, the others are done.
    ///
    /// `change` gets a match, the layout, the template, the row, and what `with` has for the match.
    fn change<T>(
        &mut self,
        call: &'static str,
        numbers: &[usize],
        buffer: &mut PyReadwriteArray2<'_, f32>,
        with: Vec<Change<'_, T>>,
        change: impl Fn(&mut Game, &Layout, &Arena, &mut [f32], &Change<'_, T>),
    ) -> Result<()> {
        let (layout, size) = (&self.layout, self.layout.size);
        let rows = slice_mut(buffer, "buffer")?;
        let mut deaths = Vec::new();
        for (&number, with) in numbers.iter().zip(with) {
            let (game, row) = (&mut self.games[number], &mut rows[number * size..(number + 1) * size]);
            // A caller may have written into the row: a report needs the match itself.
            let (mut state, seeds) = (Vec::new(), game.seeds());
            if call != "put" {
                state.extend_from_slice(row);
                game.show(layout, &mut state);
            }
            let done = guarded(|| {
                game.may_panic(call, u64::MAX);
                change(game, layout, &self.template, row, &with);
                game.show(layout, row);
            });
            if let Err(text) = done {
                let report = game.report(layout, call, &text, [&state, with.given]);
                game.report = Some(Box::new(Report { seeds, arguments: with.arguments, ..report }));
                game.dead = Some(text);
                deaths.extend(game.death(0, number));
            }
        }
        died(deaths)
    }

    /// Return what steps each match by some ticks and shows it in its row.
    fn tasks<'a>(&'a mut self, rows: &'a mut [f32], ticks: usize) -> impl Iterator<Item = Task<'a>> {
        let layout = &self.layout;
        let games = self.games.iter_mut().zip(rows.chunks_exact_mut(layout.size));
        games.map(move |(game, row)| {
            let (frames, every, shown, before) = (None, usize::MAX, 0, Vec::new());
            Task { game, layout, row, frames, ticks, every, shown, before }
        })
    }

    /// Hand out the control vectors of a call.
    fn take(&mut self, vectors: &[f32], per_car: usize, delays: Option<&[i64]>) {
        let (cars, width) = (self.layout.cars(), self.layout.cars() * per_car * CONTROLS);
        for (number, game) in self.games.iter_mut().enumerate() {
            let delay = |car: usize| delays.map_or(0, |all| all[number * cars + car] as u64);
            game.take(&vectors[number * width..(number + 1) * width], per_car, delay);
        }
    }

    /// Check control vectors `(matches, cars, 1 or ticks, 8)`.
    fn check_controls(&self, vectors: &PyReadonlyArray4<'_, f32>, ticks: usize) -> Result<()> {
        let (shape, cars, per_car) = (vectors.shape(), self.layout.cars(), vectors.shape()[2]);
        let fits = shape[0] == self.games.len() && shape[1] == cars && shape[3] == CONTROLS;
        if !fits || (per_car != 1 && per_car != ticks) {
            let expected = format!("[{}, {cars}, 1 or {ticks}, {CONTROLS}]", self.games.len());
            refuse!("controls is float32{shape:?}, expected float32{expected}");
        }
        controls::check(slice(vectors.as_slice(), "controls")?, cars, per_car)
    }
}

fn not_contiguous<T>(name: &str) -> Result<T> {
    refuse!("{name} is not C-contiguous, expected np.ascontiguousarray of it")
}

/// Return a contiguous array's numbers.
fn slice<'a, T, E>(numbers: std::result::Result<&'a [T], E>, name: &str) -> Result<&'a [T]> {
    numbers.or_else(|_| not_contiguous(name))
}

/// Return a contiguous array's numbers to write.
fn slice_mut<'a>(buffer: &'a mut PyReadwriteArray2<'_, f32>, name: &str) -> Result<&'a mut [f32]> {
    buffer.as_slice_mut().or_else(|_| not_contiguous(name))
}

/// Refuse an answer that would not fit into memory.
fn check_amount(matches: usize, frames: usize, size: usize) -> Result<()> {
    let numbers = matches.saturating_mul(frames).saturating_mul(size);
    if numbers > MOST_NUMBERS {
        refuse!(
            "{matches} matches, {frames} frames of {size} numbers are {numbers} numbers, expected {MOST_NUMBERS} at \
                 most; take fewer matches or a larger every"
        );
    }
    Ok(())
}

fn check_range(name: &str, value: usize, most: usize) -> Result<()> {
    if (1..=most).contains(&value) {
        return Ok(());
    }
    refuse!("{name} is {value}, expected 1 to {most}")
}

#[pymethods]
impl Matches {
    /// Make matches; each needs a `put` before its first step.
    ///
    /// `matches` is 1 to 100000, `seed` any number below 2^64, from which each match draws its own random stream;
    /// `threads`, 1 to 1024, share the work of a call. Raises FileNotFoundError before `load_meshes`.
    #[new]
    #[pyo3(signature = (matches, layout, *, seed=0, threads=1))]
    fn new(matches: usize, layout: &Layout, seed: u64, threads: usize) -> Result<Self> {
        check_range("matches", matches, 100_000)?;
        check_range("threads", threads, 1024)?;
        if !rocketsim::is_initialized() {
            return Err(Error::Meshes(
                "the collision meshes are not loaded; call load_meshes() first".into(),
            ));
        }
        let config = ArenaConfig::new(GameMode::Soccar).with_rng_seed(0);
        let template = guarded(|| Arena::new_with_config(config)).map_err(Error::Meshes)?;
        let games = (0..matches).map(|number| Game::new(&template, layout, seed_of(seed, number))).collect();
        Ok(Self { games, layout: layout.clone(), template, threads })
    }

    /// Number of matches.
    fn __len__(&self) -> usize {
        self.games.len()
    }

    /// The layout that the matches are written by.
    #[getter]
    fn layout(&self) -> Layout {
        self.layout.clone()
    }

    /// Begin the random streams of all matches, or of some, anew: kickoff spots and respawns.
    #[pyo3(signature = (seed, matches=None))]
    fn seed(&mut self, seed: u64, matches: Option<Vec<usize>>) -> Result<()> {
        let numbers = matches.unwrap_or_else(|| (0..self.games.len()).collect());
        self.check_numbers(&numbers)?;
        for number in numbers {
            self.games[number].seed(seed_of(seed, number));
        }
        Ok(())
    }

    /// Return the mutators of a match by name.
    fn mutators(&self, number: usize) -> Result<BTreeMap<&'static str, f32>> {
        self.check_numbers(&[number])?;
        Ok(self.games[number].mutators.by_name())
    }

    /// Change mutators of a match; they act from its next `put` on.
    ///
    /// Raises ValueError where a name is unknown or a value out of its range; then nothing was changed.
    fn set_mutators(&mut self, number: usize, mutators: BTreeMap<String, f32>) -> Result<()> {
        self.check_numbers(&[number])?;
        let mut new = self.games[number].mutators;
        for (name, value) in mutators {
            new.set(&name, value).map_err(|error| error.within(&format!("match {number}: ")))?;
        }
        self.games[number].mutators = new;
        Ok(())
    }

    /// Make some matches anew from states, and show them in their rows of `buffer`.
    ///
    /// A state is a whole row; fields that the layout lacks are 0 or the game's defaults, and a ball without any
    /// speed sleeps until something touches it. A ball that was shown goes on to the bit, cars nearly so. No row
    /// has the last digits of their rotation, cooldowns of bumps, the normal of the field under a car on its
    /// roof, how long ago a jump ended on the ground, and which cars stand on a pad. `put` clears statistics and
    /// the controls that wait.
    ///
    /// `states` is float32 `(n, size)`, `buffer` float32 `(matches, size)`. Raises ValueError with match, car and
    /// field where a number is not finite or absurd; then nothing was put.
    fn put(
        &mut self,
        matches: Vec<usize>,
        states: PyReadonlyArray2<'_, f32>,
        mut buffer: PyReadwriteArray2<'_, f32>,
    ) -> Result<()> {
        let read = self.read_states(&matches, &states, &mut buffer, Game::read)?;
        self.change("put", &matches, &mut buffer, read, |game, layout, template, row, with| {
            game.place(template, layout, &with.read);
            row.copy_from_slice(with.given);
        })
    }

    /// Move bodies of some matches and keep all that they remember, the waiting controls too.
    ///
    /// Only positions, rotations, velocities and spins are read. `states` is float32 `(n, size)`; `ball` says
    /// whether balls move, `cars`, bool `(n, cars)`, which cars: all when None. A ball that is shown there already
    /// is left alone; one that moves is awake, or asleep without any speed. Raises ValueError as `put` does.
    #[pyo3(signature = (matches, states, buffer, *, ball=true, cars=None))]
    fn nudge(
        &mut self,
        matches: Vec<usize>,
        states: PyReadonlyArray2<'_, f32>,
        mut buffer: PyReadwriteArray2<'_, f32>,
        ball: bool,
        cars: Option<PyReadonlyArray2<'_, bool>>,
    ) -> Result<()> {
        let count = self.layout.cars();
        if let Some(cars) = &cars
            && cars.shape() != [matches.len(), count]
        {
            refuse!("cars is bool{:?}, expected bool[{}, {count}]", cars.shape(), matches.len());
        }
        let moved = cars.as_ref().map(|cars| slice(cars.as_slice(), "cars")).transpose()?;
        self.check_some(&matches, &buffer)?;
        let mut with = self.read_states(&matches, &states, &mut buffer, Game::read_bodies)?;
        for (at, one) in with.iter_mut().enumerate() {
            one.arguments = vec![usize::from(ball)];
            let cars = at * count..(at + 1) * count;
            one.arguments.extend(cars.map(|car| usize::from(moved.is_none_or(|moved| moved[car]))));
        }
        self.change("nudge", &matches, &mut buffer, with, |game, _, _, _, with| {
            game.nudge(&with.read, &with.arguments);
        })
    }

    /// Put the cars of some matches on random kickoff spots, the ball asleep at the centre, all pads there.
    fn kickoff(&mut self, matches: Vec<usize>, mut buffer: PyReadwriteArray2<'_, f32>) -> Result<()> {
        self.check_some(&matches, &buffer)?;
        let with = matches.iter().map(|_| Change::<()>::default()).collect();
        self.change("kickoff", &matches, &mut buffer, with, |game, layout, template, _, _| {
            game.kickoff(layout, template)
        })
    }

    /// Make matches equal to others of the group: state, waiting controls, counts, mutators and random stream.
    ///
    /// Match `targets[i]` becomes `sources[i]`, its row too. Sources must be alive.
    fn clone_into(
        &mut self,
        sources: Vec<usize>,
        targets: Vec<usize>,
        mut buffer: PyReadwriteArray2<'_, f32>,
    ) -> Result<()> {
        self.check_numbers(&targets)?;
        if sources.len() != targets.len() {
            refuse!("{} sources for {} targets, expected one each", sources.len(), targets.len());
        }
        sources.iter().try_for_each(|&source| self.check_some(&[source], &buffer))?;
        let size = self.layout.size;
        let rows = slice_mut(&mut buffer, "buffer")?;
        let copy = |&source: &usize| {
            let game = &self.games[source];
            let copied = guarded(|| (game.may_panic("clone_into", u64::MAX), game.clone()).1);
            let copied = copied.map_err(|text| self.panicked(source, "clone_into", text, Vec::new()))?;
            Ok((copied, rows[source * size..(source + 1) * size].to_vec()))
        };
        let copies = sources.iter().map(copy).collect::<Result<Vec<_>>>()?;
        for (target, (game, row)) in targets.into_iter().zip(copies) {
            self.games[target] = game;
            rows[target * size..(target + 1) * size].copy_from_slice(&row);
        }
        Ok(())
    }

    /// Step all matches by some ticks, and show them in `buffer`.
    ///
    /// `buffer` is float32 `(matches, size)`. `controls` is float32 `(matches, cars, 1 or ticks, 8)`, numbers from -1
    /// to 1, a button pressed above 0: one vector for each tick, or one that is held. `delay`, int64
    /// `(matches, cars)`, says after how many ticks a car's vectors begin to act; what has not acted yet acts in
    /// later steps, and drops what waits for the same ticks or later ones.
    ///
    /// Raises ValueError where an argument is wrong (then nothing was stepped), MatchError where matches panicked:
    /// they are dead and their rows stay as they were, the others were stepped. Ctrl-C ends a long step early; the
    /// buffer then shows the ticks that were simulated.
    #[pyo3(signature = (buffer, controls, ticks, delay=None))]
    fn step<'py>(
        slf: PyRefMut<'py, Self>,
        py: Python<'py>,
        buffer: PyReadwriteArray2<'py, f32>,
        controls: PyReadonlyArray4<'py, f32>,
        ticks: usize,
        delay: Option<Delays<'py>>,
    ) -> Result<()> {
        step_groups(py, vec![(slf, buffer, controls, delay)], ticks)
    }

    /// Play whole lines of control vectors, and return frames `(matches, ticks // every, size)`, float32.
    ///
    /// `controls` is float32 `(matches, cars, ticks, 8)`; match i plays `lengths[i]` ticks of it, all when None.
    /// Frame k shows a match after `(k + 1) * every` ticks; frames that a match does not reach are NaN.
    /// `buffer` shows the end. Vectors that wait from earlier steps are dropped. Raises as `step` does.
    #[pyo3(signature = (buffer, controls, *, every=1, lengths=None))]
    fn play<'py>(
        &mut self,
        py: Python<'py>,
        mut buffer: PyReadwriteArray2<'_, f32>,
        controls: PyReadonlyArray4<'_, f32>,
        every: usize,
        lengths: Option<Vec<usize>>,
    ) -> Result<Bound<'py, PyArray3<f32>>> {
        let ticks = controls.shape()[2];
        check_range("ticks", ticks, MOST_TICKS)?;
        check_range("every", every, MOST_TICKS)?;
        self.check_step(0, &buffer, &controls, None, ticks)?;
        let lengths = lengths.unwrap_or_else(|| vec![ticks; self.games.len()]);
        if lengths.len() != self.games.len() || lengths.iter().any(|&length| length > ticks) {
            refuse!("lengths is {lengths:?}, expected {} numbers from 0 to {ticks}", self.games.len());
        }
        let (size, count) = (self.layout.size, ticks / every);
        check_amount(self.games.len(), count, size)?;
        let mut frames = vec![f32::NAN; self.games.len() * count * size];
        self.take(slice(controls.as_slice(), "controls")?, ticks, None);
        let threads = self.threads;
        let mut tasks: Vec<_> = self.tasks(slice_mut(&mut buffer, "buffer")?, ticks).collect();
        let mut rest = &mut frames[..];
        for (task, &ticks) in tasks.iter_mut().zip(&lengths) {
            let (frames, others) = rest.split_at_mut(count * size);
            (task.ticks, task.every, task.frames, rest) = (ticks, every, Some(frames), others);
        }
        run(py, threads, &mut tasks)?;
        drop(tasks);
        died(self.deaths(0))?;
        Ok(PyArray1::from_vec(py, frames).reshape([self.games.len(), count, size])?)
    }

    /// Return where the balls of some matches go while nobody touches them: `(n, ticks // every, 9)` float32.
    ///
    /// Position (uu), velocity (uu/s) and spin (rad/s) every `every` ticks; exact while no car touches the ball.
    #[pyo3(signature = (matches, ticks=720, every=1))]
    fn forecast_ball<'py>(
        &self,
        py: Python<'py>,
        matches: Vec<usize>,
        ticks: usize,
        every: usize,
    ) -> Result<Bound<'py, PyArray3<f32>>> {
        self.check_numbers(&matches)?;
        check_range("ticks", ticks, MOST_FORECAST)?;
        check_range("every", every, MOST_FORECAST)?;
        self.check_alive(&matches)?;
        let count = ticks / every;
        check_amount(matches.len(), count, FRAME)?;
        let mut numbers = vec![0.0f32; matches.len() * count * FRAME];
        let frames = numbers.chunks_exact_mut((count * FRAME).max(1));
        let mut tasks: Vec<_> =
            matches.iter().zip(frames).map(|(&number, frames)| (number, frames, Ok(()))).collect();
        let one = |(number, frames, result): &mut (usize, &mut [f32], std::result::Result<(), String>)| {
            *result = forecast(&self.games[*number], every, frames);
        };
        for some in tasks.chunks_mut((UNINTERRUPTED * self.threads / ticks).max(1)) {
            py.detach(|| for_each(self.threads, some, one))?;
            py.check_signals()?;
        }
        for (number, _, result) in tasks {
            result.map_err(|text| self.panicked(number, "forecast_ball", text, vec![ticks, every]))?;
        }
        Ok(PyArray1::from_vec(py, numbers).reshape([matches.len(), count, FRAME])?)
    }

    /// Return the events of the latest step as a structured array of the dtype `EVENT`.
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let all = self.games.iter().enumerate();
        let events = all.flat_map(|(number, game)| game.events.iter().map(move |event| (number, *event)));
        events::as_array(py, events)
    }

    /// Return counts since the latest `put`, `(matches, cars, 6)` int32.
    ///
    /// Goals, assists, saves, shots, demolitions and ticks with contact to the ball.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray3<i32>>> {
        let cars = self.layout.cars();
        let counts = self.games.iter().flat_map(|game| game.statistics.counts[..cars].as_flattened());
        PyArray1::from_iter(py, counts.copied()).reshape([self.games.len(), cars, 6])
    }

    /// Return the numbers of the dead matches and why they died.
    fn dead(&self) -> BTreeMap<usize, String> {
        self.deaths(0).into_iter().map(|death| (death.number, death.text)).collect()
    }

    /// Put a car on a respawn spot of its team now.
    fn respawn(&mut self, number: usize, car: usize, mut buffer: PyReadwriteArray2<'_, f32>) -> Result<()> {
        self.one_car("respawn", (number, car), &mut buffer, Arena::respawn_car)
    }

    /// Demolish a car now.
    fn demolish(&mut self, number: usize, car: usize, mut buffer: PyReadwriteArray2<'_, f32>) -> Result<()> {
        self.one_car("demolish", (number, car), &mut buffer, Arena::demolish_car)
    }

    /// Set the seeds of a match's random streams, that of kickoffs and that of respawns, to replay a panic.
    fn set_seeds(&mut self, number: usize, seeds: [u64; 2]) -> Result<()> {
        self.check_numbers(&[number])?;
        self.games[number].set_seeds(seeds);
        Ok(())
    }

    /// Let the next call of a name panic in a match, a step after some ticks, to test what a caller does then.
    #[pyo3(signature = (number, call="step".to_owned(), ticks=0))]
    fn panic_next(&mut self, number: usize, call: String, ticks: u64) -> Result<()> {
        self.check_numbers(&[number])?;
        self.games[number].panic_next(call, ticks);
        Ok(())
    }
}

impl Matches {
    /// Read rows of `states`, all of them before anything changes.
    fn read_states<'a, T>(
        &self,
        matches: &[usize],
        states: &'a PyReadonlyArray2<'_, f32>,
        buffer: &mut PyReadwriteArray2<'_, f32>,
        read: impl Fn(&Game, &Layout, &[f32]) -> Result<T>,
    ) -> Result<Vec<Change<'a, T>>> {
        self.check_numbers(matches)?;
        self.check_buffer("states", states.shape(), matches.len())?;
        self.check_buffer("buffer", buffer.shape(), self.games.len())?;
        slice_mut(buffer, "buffer")?;
        let rows = slice(states.as_slice(), "states")?.chunks_exact(self.layout.size);
        let one = |(&number, row): (&usize, &'a [f32])| match read(&self.games[number], &self.layout, row) {
            Ok(read) => Ok(Change { read, given: row, arguments: Vec::new() }),
            Err(error) => Err(error.within(&format!("match {number}, "))),
        };
        matches.iter().zip(rows).map(one).collect()
    }

    fn one_car(
        &mut self,
        call: &'static str,
        (number, car): (usize, usize),
        buffer: &mut PyReadwriteArray2<'_, f32>,
        change: impl Fn(&mut Arena, usize),
    ) -> Result<()> {
        self.check_some(&[number], buffer)?;
        if car >= self.layout.cars() {
            refuse!("car is {car}, the match has {} cars", self.layout.cars());
        }
        let with = vec![Change::<()> { arguments: vec![car], ..Change::default() }];
        self.change(call, &[number], buffer, with, |game, _, _, _, _| change(&mut game.arena, car))
    }

    fn check_delays(&self, delay: &Delays<'_>) -> Result<()> {
        let expected = [self.games.len(), self.layout.cars()];
        if delay.shape() != expected {
            refuse!("delay is int64{:?}, expected int64{expected:?}", delay.shape());
        }
        let delays = slice(delay.as_slice(), "delay")?;
        if let Some(at) = delays.iter().position(|ticks| !(0..=MOST_TICKS as i64).contains(ticks)) {
            let (number, car) = (at / expected[1], at % expected[1]);
            refuse!("delay of match {number}, car {car} is {}, expected 0 to {MOST_TICKS} ticks", delays[at]);
        }
        Ok(())
    }
}
