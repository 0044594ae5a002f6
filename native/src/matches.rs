//! The Python class `Matches`: one group of matches of equal team sizes, stepped together.

use std::collections::BTreeMap;

use numpy::{
    PyArray1, PyArray3, PyArrayMethods, PyReadonlyArray2, PyReadonlyArray4, PyReadwriteArray2,
    PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use rocketsim::{Arena, ArenaConfig, ArenaMemWeightMode, GameMode};

use crate::arguments::{CHECKED, Object, Whole, busy, readable, writable};
use crate::controls::{self, CONTROLS, Vector};
use crate::errors::{Death, Error, Result, refuse};
use crate::events;
use crate::forecast::{FRAME, forecast, play_on};
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
/// Calls in which a test can let a match panic.
const CALLS: [&str; 9] =
    ["step", "put", "nudge", "kickoff", "clone_into", "respawn", "demolish", "forecast_ball", "forecast"];

/// The object that a method is called of.
type Own<'py> = Bound<'py, Matches>;
/// Numbers of matches as they came.
type Numbers = Vec<Whole>;
/// What a call returns of each match and frame.
pub type Frames<'py> = Bound<'py, PyArray3<f32>>;
/// A group's part in a step: its matches, buffer, control vectors and delays.
type Part<'py> = (Own<'py>, Object<'py>, Object<'py>, Option<Object<'py>>);
/// A match whose copy is played on: its number, control vectors, row, and how it went.
type Copied<'a> = (usize, &'a [f32], &'a mut [f32], std::result::Result<(), String>);
/// Buffer, control vectors and delays of a step.
type Arrays<'py> =
    (PyReadwriteArray2<'py, f32>, PyReadonlyArray4<'py, f32>, Option<PyReadonlyArray2<'py, i64>>);

/// Step several groups in one call by some ticks, on the largest number of threads that one of them has.
///
/// `groups` has `(matches, buffer, controls, delay or None)` for each, as `Matches.step` takes them. Nothing
/// is stepped where one of them is refused. `MatchError.args[2]` has the groups of the matches that failed.
#[pyfunction]
pub fn step_groups(py: Python<'_>, groups: Vec<Part<'_>>, ticks: Whole) -> Result<()> {
    let ticks = ticks.within("ticks", 1..=MOST_TICKS)?;
    let mut parts = Vec::with_capacity(groups.len());
    for (group, (matches, buffer, controls, delay)) in groups.iter().enumerate() {
        let matches = matches.try_borrow_mut().map_err(busy)?;
        let arrays = matches.check_step(group, buffer, controls, delay.as_ref(), ticks);
        let words = if groups.len() > 1 { format!("group {group}: ") } else { String::new() };
        parts.push((matches, arrays.map_err(|error| error.within(&words))?));
    }
    let threads = parts.iter().map(|part| part.0.threads).max().unwrap_or(1);
    let mut tasks = Vec::new();
    for (matches, (buffer, controls, delay)) in &mut parts {
        let delays = delay.as_ref().map(|delay| delay.as_slice().expect(CHECKED));
        matches.take(controls.as_slice().expect(CHECKED), controls.shape()[2], delays);
        tasks.extend(matches.tasks(buffer.as_slice_mut().expect(CHECKED), ticks));
    }
    run(py, threads, &mut tasks)?;
    drop(tasks);
    died(parts.iter().enumerate().flat_map(|(number, part)| part.0.deaths(number)).collect())
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
#[pyclass(subclass, module = "rocketsim_batch")]
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
    /// Return the numbers of some matches, each of them there and named once.
    fn check_numbers(&self, numbers: &[Whole]) -> Result<Vec<usize>> {
        let mut seen = vec![false; self.games.len()];
        let one = |number: &Whole| {
            let number = number.within("a number in matches", 0..=seen.len() - 1)?;
            if std::mem::replace(&mut seen[number], true) {
                refuse!("matches has {number} twice, expected each once");
            }
            Ok(number)
        };
        numbers.iter().map(one).collect()
    }

    /// Return the buffer of all matches.
    fn buffer<'py>(&self, buffer: &Object<'py>) -> Result<PyReadwriteArray2<'py, f32>> {
        writable("buffer", buffer, &[self.games.len(), self.layout.size])
    }

    /// Return the numbers of some matches that are alive.
    fn check_alive(&self, numbers: &[Whole]) -> Result<Vec<usize>> {
        let numbers = self.check_numbers(numbers)?;
        let dead: Vec<_> =
            self.deaths(0).into_iter().filter(|death| numbers.contains(&death.number)).collect();
        if dead.is_empty() { Ok(numbers) } else { Err(Error::Dead(dead)) }
    }

    fn deaths(&self, group: usize) -> Vec<Death> {
        self.games.iter().enumerate().filter_map(|(number, game)| game.death(group, number)).collect()
    }

    /// Return the error of a call that panicked and left its match as it was.
    ///
    /// `vectors` are those of a forecast, for each car one after another.
    fn panicked(
        &self,
        number: usize,
        call: &'static str,
        text: String,
        arguments: Vec<usize>,
        vectors: &[f32],
    ) -> Error {
        let (game, mut row) = (&self.games[number], vec![0.0; self.layout.size]);
        game.show(&self.layout, &mut row);
        if let Some(column) = self.layout.of_match.gravity {
            row[column] = game.arena.mutator_config().gravity.z / game.mutators.config.gravity.z;
        }
        let report = game.report(&self.layout, call, &text, [&row, &[]]);
        let of_car = |car: &[f32]| car.as_chunks().0.to_vec();
        let by_car: Vec<Vec<Vector>> =
            vectors.chunks_exact((vectors.len() / self.layout.cars().max(1)).max(1)).map(of_car).collect();
        let ticks = by_car.first().map_or(0, Vec::len);
        let controls = (0..ticks).map(|tick| by_car.iter().map(|car| car[tick]).collect()).collect();
        let report = Some(Box::new(Report { arguments, controls, ..report }));
        Error::Panicked(vec![Death { group: 0, number, text: format!("{call}: {text}"), report }])
    }

    fn check_step<'py>(
        &self,
        group: usize,
        buffer: &Object<'py>,
        controls: &Object<'py>,
        delay: Option<&Object<'py>>,
        ticks: usize,
    ) -> Result<Arrays<'py>> {
        let dead = self.deaths(group);
        if !dead.is_empty() {
            return Err(Error::Dead(dead));
        }
        let (matches, cars) = (self.games.len(), self.layout.cars());
        let shapes = [[matches, cars, 1, CONTROLS], [matches, cars, ticks, CONTROLS]];
        let shapes = &[&shapes[0][..], &shapes[1][..]][usize::from(ticks == 1)..];
        let controls: PyReadonlyArray4<'py, f32> = readable("controls", controls, shapes)?;
        controls::check(controls.as_slice().expect(CHECKED), cars, controls.shape()[2])?;
        let delay = delay.map(|delay| self.check_delays(delay)).transpose()?;
        Ok((self.buffer(buffer)?, controls, delay))
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
        let rows = buffer.as_slice_mut().expect(CHECKED);
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
}

/// Return an arena without cars, from which each match begins; `ball_only` has a ball that is never turned.
pub fn new_arena(ball_only: bool) -> Result<Arena> {
    if !rocketsim::is_initialized() {
        return Err(Error::Meshes("the collision meshes are not loaded; call load_meshes() first".into()));
    }
    // Its cells for rays of wheels take a fifth of the memory, which makes copies cheap; it plays the same bits.
    let light = ArenaConfig::new(GameMode::Soccar).with_mem_weight_mode(ArenaMemWeightMode::Light);
    let config = light.with_rng_seed(0).with_no_ball_rot(ball_only);
    guarded(|| Arena::new_with_config(config)).map_err(Error::Meshes)
}

/// Refuse an answer that would not fit into memory.
fn check_amount(matches: usize, frames: usize, size: usize) -> Result<()> {
    let numbers = matches.saturating_mul(frames).saturating_mul(size);
    if numbers > MOST_NUMBERS {
        let expected = format!("{MOST_NUMBERS} at most; take fewer matches or a larger every");
        refuse!("{matches} matches, {frames} frames of {size} are {numbers} numbers, expected {expected}");
    }
    Ok(())
}

#[pymethods]
impl Matches {
    /// Make matches; each needs a `put` before its first step.
    ///
    /// `matches` is 1 to 100000, `seed` any number below 2^64, from which each match draws its own random stream;
    /// `threads`, 1 to 1024, share the work of a call. Raises FileNotFoundError before `load_meshes`.
    #[new]
    #[pyo3(signature = (matches, layout, *, seed=Whole(0), threads=Whole(1)))]
    fn new(matches: Whole, layout: &Layout, seed: Whole, threads: Whole) -> Result<Self> {
        let (matches, seed) = (matches.within("matches", 1..=100_000)?, seed.within("seed", 0..=u64::MAX)?);
        let threads = threads.within("threads", 1..=1024)?;
        let template = new_arena(false)?;
        let games = (0..matches).map(|number| Game::new(&template, layout, seed_of(seed, number))).collect();
        Ok(Self { games, layout: layout.clone(), template, threads })
    }

    /// Number of matches.
    fn __len__(slf: &Own<'_>) -> Result<usize> {
        Ok(slf.try_borrow().map_err(busy)?.games.len())
    }

    /// The layout that the matches are written by.
    #[getter]
    fn layout(slf: &Own<'_>) -> Result<Layout> {
        Ok(slf.try_borrow().map_err(busy)?.layout.clone())
    }

    /// Begin the random streams of all matches, or of some, anew: kickoff spots and respawns.
    #[pyo3(signature = (seed, matches=None))]
    fn seed(slf: &Own<'_>, seed: Whole, matches: Option<Numbers>) -> Result<()> {
        let mut this = slf.try_borrow_mut().map_err(busy)?;
        let seed = seed.within("seed", 0..=u64::MAX)?;
        let all = 0..this.games.len();
        for number in matches.map_or_else(|| Ok(all.collect()), |some| this.check_numbers(&some))? {
            this.games[number].seed(seed_of(seed, number));
        }
        Ok(())
    }

    /// Return the mutators of a match by name.
    fn mutators(slf: &Own<'_>, number: Whole) -> Result<BTreeMap<&'static str, f32>> {
        let this = slf.try_borrow().map_err(busy)?;
        Ok(this.games[this.check_number(number)?].mutators.by_name())
    }

    /// Change mutators of a match; they act from its next `put` on.
    ///
    /// Raises ValueError where a name is unknown or a value out of its range; then nothing was changed.
    fn set_mutators(slf: &Own<'_>, number: Whole, mutators: BTreeMap<String, f32>) -> Result<()> {
        let mut this = slf.try_borrow_mut().map_err(busy)?;
        let number = this.check_number(number)?;
        let mut new = this.games[number].mutators;
        for (name, value) in mutators {
            new.set(&name, value).map_err(|error| error.within(&format!("match {number}: ")))?;
        }
        this.games[number].mutators = new;
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
    fn put(slf: &Own<'_>, matches: Numbers, states: &Object<'_>, buffer: &Object<'_>) -> Result<()> {
        let mut this = slf.try_borrow_mut().map_err(busy)?;
        let matches = this.check_numbers(&matches)?;
        let mut buffer = this.buffer(buffer)?;
        let states = readable("states", states, &[&[matches.len(), this.layout.size]])?;
        let read = this.read_states(&matches, &states, Game::read)?;
        this.change("put", &matches, &mut buffer, read, |game, layout, template, row, with| {
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
        slf: &Own<'_>,
        matches: Numbers,
        states: &Object<'_>,
        buffer: &Object<'_>,
        ball: bool,
        cars: Option<&Object<'_>>,
    ) -> Result<()> {
        let mut this = slf.try_borrow_mut().map_err(busy)?;
        let (matches, count) = (this.check_alive(&matches)?, this.layout.cars());
        let cars: Option<PyReadonlyArray2<'_, bool>> =
            cars.map(|cars| readable("cars", cars, &[&[matches.len(), count]])).transpose()?;
        let moved = cars.as_ref().map(|cars| cars.as_slice().expect(CHECKED));
        let mut buffer = this.buffer(buffer)?;
        let states = readable("states", states, &[&[matches.len(), this.layout.size]])?;
        let mut with = this.read_states(&matches, &states, Game::read_bodies)?;
        for (at, one) in with.iter_mut().enumerate() {
            one.arguments = vec![usize::from(ball)];
            let cars = at * count..(at + 1) * count;
            one.arguments.extend(cars.map(|car| usize::from(moved.is_none_or(|moved| moved[car]))));
        }
        this.change("nudge", &matches, &mut buffer, with, |game, _, _, _, with| {
            game.nudge(&with.read, &with.arguments);
        })
    }

    /// Put the cars of some matches on random kickoff spots, the ball asleep at the centre, all pads there.
    fn kickoff(slf: &Own<'_>, matches: Numbers, buffer: &Object<'_>) -> Result<()> {
        let mut this = slf.try_borrow_mut().map_err(busy)?;
        let (matches, mut buffer) = (this.check_alive(&matches)?, this.buffer(buffer)?);
        let with = matches.iter().map(|_| Change::<()>::default()).collect();
        this.change("kickoff", &matches, &mut buffer, with, |game, layout, template, _, _| {
            game.kickoff(layout, template)
        })
    }

    /// Make matches equal to others of the group: state, waiting controls, counts, mutators and random stream.
    ///
    /// Match `targets[i]` becomes `sources[i]`, its row too. Sources must be alive.
    fn clone_into(slf: &Own<'_>, sources: Numbers, targets: Numbers, buffer: &Object<'_>) -> Result<()> {
        let this = &mut *slf.try_borrow_mut().map_err(busy)?;
        let targets = this.check_numbers(&targets)?;
        if sources.len() != targets.len() {
            refuse!("{} sources for {} targets, expected one each", sources.len(), targets.len());
        }
        // A source may come several times.
        let sources = sources.iter().map(|source| Ok(this.check_alive(std::slice::from_ref(source))?[0]));
        let (sources, mut buffer) = (sources.collect::<Result<Vec<_>>>()?, this.buffer(buffer)?);
        let (size, rows) = (this.layout.size, buffer.as_slice_mut().expect(CHECKED));
        let copy = |&source: &usize| {
            let game = &this.games[source];
            let copied = guarded(|| (game.may_panic("clone_into", u64::MAX), game.clone()).1);
            let copied = copied.map_err(|text| this.panicked(source, "clone_into", text, Vec::new(), &[]))?;
            Ok((copied, rows[source * size..(source + 1) * size].to_vec()))
        };
        let copies = sources.iter().map(copy).collect::<Result<Vec<_>>>()?;
        for (target, (game, row)) in targets.into_iter().zip(copies) {
            this.games[target] = game;
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
        slf: Own<'py>,
        py: Python<'py>,
        buffer: Object<'py>,
        controls: Object<'py>,
        ticks: Whole,
        delay: Option<Object<'py>>,
    ) -> Result<()> {
        step_groups(py, vec![(slf, buffer, controls, delay)], ticks)
    }

    /// Play whole lines of control vectors, and return frames `(matches, ticks // every, size)`, float32.
    ///
    /// `controls` is float32 `(matches, cars, ticks, 8)`; match i plays `lengths[i]` ticks of it, all when None.
    /// Frame k shows a match after `(k + 1) * every` ticks; frames that a match does not reach are NaN.
    /// `buffer` shows the end. Vectors that wait from earlier steps are dropped. Raises as `step` does.
    #[pyo3(signature = (buffer, controls, *, every=Whole(1), lengths=None))]
    fn play<'py>(
        slf: &Own<'py>,
        buffer: &Object<'py>,
        controls: &Object<'py>,
        every: Whole,
        lengths: Option<Numbers>,
    ) -> Result<Frames<'py>> {
        let (py, this) = (slf.py(), &mut *slf.try_borrow_mut().map_err(busy)?);
        let shape = controls.cast::<PyUntypedArray>().map_or(&[][..], |controls| controls.shape());
        let ticks = Whole(shape.get(2).map_or(1, |&ticks| ticks as i128)).within("ticks", 1..=MOST_TICKS)?;
        let every = every.within("every", 1..=MOST_TICKS)?;
        let (mut buffer, controls, _) = this.check_step(0, buffer, controls, None, ticks)?;
        let lengths = lengths.unwrap_or_else(|| this.games.iter().map(|_| Whole(ticks as i128)).collect());
        let (given, count) = (lengths.len(), this.games.len());
        if given != count {
            refuse!("lengths is a list of {given}, expected {count} numbers from 0 to {ticks}");
        }
        let lengths = lengths.iter().map(|length| length.within("a number in lengths", 0..=ticks));
        let lengths = lengths.collect::<Result<Vec<_>>>()?;
        let (size, count) = (this.layout.size, ticks / every);
        check_amount(this.games.len(), count, size)?;
        let mut frames = vec![f32::NAN; this.games.len() * count * size];
        this.take(controls.as_slice().expect(CHECKED), ticks, None);
        let threads = this.threads;
        let mut tasks: Vec<_> = this.tasks(buffer.as_slice_mut().expect(CHECKED), ticks).collect();
        let mut rest = &mut frames[..];
        for (task, &ticks) in tasks.iter_mut().zip(&lengths) {
            let (frames, others) = rest.split_at_mut(count * size);
            (task.ticks, task.every, task.frames, rest) = (ticks, every, Some(frames), others);
        }
        run(py, threads, &mut tasks)?;
        drop(tasks);
        died(this.deaths(0))?;
        Ok(PyArray1::from_vec(py, frames).reshape([this.games.len(), count, size])?)
    }

    /// Return where the balls of some matches go while nobody touches them: `(n, ticks // every, 9)` float32.
    ///
    /// Position (uu), velocity (uu/s) and spin (rad/s) every `every` ticks; exact while no car touches the ball.
    #[pyo3(signature = (matches, ticks=Whole(720), every=Whole(1)))]
    fn forecast_ball<'py>(
        slf: &Own<'py>,
        matches: Numbers,
        ticks: Whole,
        every: Whole,
    ) -> Result<Frames<'py>> {
        let (py, this) = (slf.py(), &*slf.try_borrow().map_err(busy)?);
        let ticks = ticks.within("ticks", 1..=MOST_FORECAST)?;
        let every = every.within("every", 1..=MOST_FORECAST)?;
        let matches = this.check_alive(&matches)?;
        let count = ticks / every;
        check_amount(matches.len(), count, FRAME)?;
        let mut numbers = vec![0.0f32; matches.len() * count * FRAME];
        let frames = numbers.chunks_exact_mut((count * FRAME).max(1));
        let mut tasks: Vec<_> =
            matches.iter().zip(frames).map(|(&number, frames)| (number, frames, Ok(()))).collect();
        let one = |(number, frames, result): &mut (usize, &mut [f32], std::result::Result<(), String>)| {
            *result = forecast(&this.games[*number], every, frames);
        };
        for some in tasks.chunks_mut((UNINTERRUPTED * this.threads / ticks).max(1)) {
            py.detach(|| for_each(this.threads, some, one))?;
            py.check_signals()?;
        }
        for (number, _, result) in tasks {
            result.map_err(|text| this.panicked(number, "forecast_ball", text, vec![ticks, every], &[]))?;
        }
        Ok(PyArray1::from_vec(py, numbers).reshape([matches.len(), count, FRAME])?)
    }

    /// Play copies of some matches on, and show them in the rows of `states`; the matches stay as they are.
    ///
    /// `controls` is float32 `(n, cars, ticks, 8)`: a vector a tick, which act at once; what waits is dropped in
    /// the copies. `states` is float32 `(n, size)`; fields that the module never writes stay in it, and `frame`
    /// counts on. Raises MatchError where a copy panicked: the matches live on.
    fn forecast<'py>(
        slf: &Own<'py>,
        matches: Numbers,
        controls: &Object<'py>,
        states: &Object<'py>,
    ) -> Result<()> {
        let (py, this) = (slf.py(), &*slf.try_borrow().map_err(busy)?);
        let (matches, cars, size) = (this.check_alive(&matches)?, this.layout.cars(), this.layout.size);
        let shape = controls.cast::<PyUntypedArray>().map_or(&[][..], |controls| controls.shape());
        let ticks =
            Whole(shape.get(2).map_or(1, |&ticks| ticks as i128)).within("ticks", 1..=MOST_FORECAST)?;
        let controls: PyReadonlyArray4<'py, f32> =
            readable("controls", controls, &[&[matches.len(), cars, ticks, CONTROLS]])?;
        let (vectors, width) = (controls.as_slice().expect(CHECKED), cars * ticks * CONTROLS);
        controls::check(vectors, cars, ticks)?;
        let mut states: PyReadwriteArray2<'py, f32> = writable("states", states, &[matches.len(), size])?;
        let rows = states.as_slice_mut().expect(CHECKED).chunks_exact_mut(size);
        let part = |(at, (&number, row))| (number, &vectors[at * width..][..width], row, Ok(()));
        let mut tasks: Vec<_> = matches.iter().zip(rows).enumerate().map(part).collect();
        let one = |(number, vectors, row, result): &mut Copied<'_>| {
            *result = play_on(&this.games[*number], &this.layout, vectors, ticks, row);
        };
        for some in tasks.chunks_mut((UNINTERRUPTED * this.threads / ticks).max(1)) {
            py.detach(|| for_each(this.threads, some, one))?;
            py.check_signals()?;
        }
        for (number, vectors, _, result) in tasks {
            result.map_err(|text| this.panicked(number, "forecast", text, Vec::new(), vectors))?;
        }
        Ok(())
    }

    /// Return the events of the latest step as a structured array of the dtype `EVENT`.
    fn events<'py>(slf: &Own<'py>) -> Result<Object<'py>> {
        let this = slf.try_borrow().map_err(busy)?;
        let all = this.games.iter().enumerate();
        let events = all.flat_map(|(number, game)| game.events.iter().map(move |event| (number, *event)));
        Ok(events::as_array(slf.py(), events)?)
    }

    /// Return counts since the latest `put`, `(matches, cars, 6)` int32.
    ///
    /// Goals, assists, saves, shots, demolitions and ticks with contact to the ball.
    fn statistics<'py>(slf: &Own<'py>) -> Result<Bound<'py, PyArray3<i32>>> {
        let this = slf.try_borrow().map_err(busy)?;
        let cars = this.layout.cars();
        let counts = this.games.iter().flat_map(|game| game.statistics.counts[..cars].as_flattened());
        Ok(PyArray1::from_iter(slf.py(), counts.copied()).reshape([this.games.len(), cars, 6])?)
    }

    /// Return the numbers of the dead matches and why they died.
    fn dead(slf: &Own<'_>) -> Result<BTreeMap<usize, String>> {
        let deaths = slf.try_borrow().map_err(busy)?.deaths(0);
        Ok(deaths.into_iter().map(|death| (death.number, death.text)).collect())
    }

    /// Put a car on a respawn spot of its team now.
    fn respawn(slf: &Own<'_>, number: Whole, car: Whole, buffer: &Object<'_>) -> Result<()> {
        Self::one_car("respawn", slf, (number, car), buffer, Arena::respawn_car)
    }

    /// Demolish a car now.
    fn demolish(slf: &Own<'_>, number: Whole, car: Whole, buffer: &Object<'_>) -> Result<()> {
        Self::one_car("demolish", slf, (number, car), buffer, Arena::demolish_car)
    }

    /// Set the seeds of a match's random streams, that of kickoffs and that of respawns, to replay a panic.
    fn set_seeds(slf: &Own<'_>, number: Whole, seeds: [Whole; 2]) -> Result<()> {
        let mut this = slf.try_borrow_mut().map_err(busy)?;
        let [kickoffs, respawns] = seeds.map(|seed| seed.within("a seed", 0..=u64::MAX));
        let number = this.check_number(number)?;
        this.games[number].set_seeds([kickoffs?, respawns?]);
        Ok(())
    }

    /// Let the next call of a name panic in a match, a step after some ticks, to test what a caller does then.
    #[pyo3(signature = (number, call="step".to_owned(), ticks=Whole(0)))]
    fn panic_next(slf: &Own<'_>, number: Whole, call: String, ticks: Whole) -> Result<()> {
        let mut this = slf.try_borrow_mut().map_err(busy)?;
        if !CALLS.contains(&call.as_str()) {
            refuse!("call is {call:?}, expected one of {}", CALLS.join(", "));
        }
        let (number, ticks) = (this.check_number(number)?, ticks.within("ticks", 0..=u64::MAX)?);
        this.games[number].panic_next(call, ticks);
        Ok(())
    }
}

impl Matches {
    /// Return the number of a match that is there.
    fn check_number(&self, number: Whole) -> Result<usize> {
        Ok(self.check_numbers(&[number])?[0])
    }

    /// Read rows of `states`, all of them before anything changes.
    fn read_states<'a, T>(
        &self,
        matches: &[usize],
        states: &'a PyReadonlyArray2<'_, f32>,
        read: impl Fn(&Game, &Layout, &[f32]) -> Result<T>,
    ) -> Result<Vec<Change<'a, T>>> {
        let rows = states.as_slice().expect(CHECKED).chunks_exact(self.layout.size);
        let one = |(&number, row): (&usize, &'a [f32])| match read(&self.games[number], &self.layout, row) {
            Ok(read) => Ok(Change { read, given: row, arguments: Vec::new() }),
            Err(error) => Err(error.within(&format!("match {number}, "))),
        };
        matches.iter().zip(rows).map(one).collect()
    }

    fn one_car(
        call: &'static str,
        slf: &Own<'_>,
        (number, car): (Whole, Whole),
        buffer: &Object<'_>,
        change: impl Fn(&mut Arena, usize),
    ) -> Result<()> {
        let mut this = slf.try_borrow_mut().map_err(busy)?;
        let (numbers, cars) = (this.check_alive(&[number])?, this.layout.cars());
        if cars == 0 {
            refuse!("car is {}, and the match has no cars", car.0);
        }
        let (car, mut buffer) = (car.within("car", 0..=cars - 1)?, this.buffer(buffer)?);
        let with = vec![Change::<()> { arguments: vec![car], ..Change::default() }];
        this.change(call, &numbers, &mut buffer, with, |game, _, _, _, _| change(&mut game.arena, car))
    }

    fn check_delays<'py>(&self, delay: &Object<'py>) -> Result<PyReadonlyArray2<'py, i64>> {
        let cars = self.layout.cars();
        let delay: PyReadonlyArray2<'py, i64> = readable("delay", delay, &[&[self.games.len(), cars]])?;
        let delays = delay.as_slice().expect(CHECKED);
        if let Some(at) = delays.iter().position(|ticks| !(0..=MOST_TICKS as i64).contains(ticks)) {
            let (number, car) = (at / cars, at % cars);
            refuse!("delay of match {number}, car {car} is {}, expected 0 to {MOST_TICKS} ticks", delays[at]);
        }
        Ok(delay)
    }
}
