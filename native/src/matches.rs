//! The Python class `Matches`: one group of matches of equal team sizes, stepped together.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, Mutex};

use numpy::{
    PyArray1, PyArray3, PyArrayMethods, PyReadonlyArray2, PyReadonlyArray4, PyReadwriteArray2,
    PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use rocketsim::{Arena, ArenaConfig, GameMode};

use crate::controls::{self, CONTROLS};
use crate::errors::{Error, Result, argument};
use crate::events;
use crate::forecast::{FRAME, forecast};
use crate::game::{Game, guarded, within};
use crate::layout::Layout;

/// Ticks times matches between two looks for Ctrl-C: about a tenth of a second.
const UNINTERRUPTED: usize = 30_000;

/// Ticks of one call, at most: 28 hours of the game.
const MOST_TICKS: usize = 12_000_000;

type Pools = HashMap<(u32, usize), Arc<ThreadPool>>;

static POOLS: LazyLock<Mutex<Pools>> = LazyLock::new(Mutex::default);

/// Return the pool with a number of threads; a forked process makes its own.
fn pool(threads: usize) -> Result<Arc<ThreadPool>> {
    let mut pools = POOLS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let key = (std::process::id(), threads);
    if let Some(pool) = pools.get(&key) {
        return Ok(Arc::clone(pool));
    }
    let made = ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = Arc::new(made.map_err(|error| Error::Argument(format!("threads is {threads}: {error}")))?);
    pools.insert(key, Arc::clone(&pool));
    Ok(pool)
}

/// Call `work` for each task, on one thread or on a pool of more.
fn for_each<T: Send>(threads: usize, tasks: &mut [T], work: impl Fn(&mut T) + Send + Sync) -> Result<()> {
    if threads <= 1 || tasks.len() <= 1 {
        tasks.iter_mut().for_each(work);
    } else {
        pool(threads)?.install(|| tasks.par_iter_mut().with_min_len(1).for_each(work));
    }
    Ok(())
}

/// One match's share of a step.
struct Task<'a> {
    game: &'a mut Game,
    layout: &'a Layout,
    row: &'a mut [f32],
    frames: Option<&'a mut [f32]>,
    ticks: usize,
    every: usize,
}

impl Task<'_> {
    /// Simulate the ticks from `from` to `to` of a call, as far as this match plays them.
    fn advance(&mut self, from: usize, to: usize) {
        let mut at = from;
        let end = to.min(self.ticks);
        while at < end {
            // Up to the next frame, or to the end.
            let stop = if self.frames.is_some() { (at / self.every + 1) * self.every } else { end };
            let stop = stop.min(end);
            self.game.advance(self.layout, at as u32, (stop - at) as u32);
            let size = self.layout.size;
            if stop % self.every == 0
                && let Some(frames) = &mut self.frames
            {
                show(self.game, self.layout, self.row, self.every as u64);
                frames[(stop / self.every - 1) * size..][..size].copy_from_slice(self.row);
            }
            at = stop;
        }
    }
}

impl Task<'_> {
    fn show(&mut self, ticks: u64) {
        show(self.game, self.layout, self.row, ticks);
    }
}

/// Show a match after some ticks; the row of a dead one stays as it was.
fn show(game: &Game, layout: &Layout, row: &mut [f32], ticks: u64) {
    if game.dead.is_none() {
        crate::view::count_frame(layout, row, ticks);
        game.show(layout, row);
    }
}

/// Simulate tasks; look for Ctrl-C between pieces of a long call.
fn run(py: Python<'_>, threads: usize, tasks: &mut [Task<'_>]) -> Result<()> {
    let most = tasks.iter().map(|task| task.ticks).max().unwrap_or(0);
    let piece = (UNINTERRUPTED * threads.max(1) / tasks.len().max(1)).max(1);
    let mut at = 0;
    while at < most {
        let to = (at + piece).min(most);
        py.detach(|| for_each(threads, tasks, |task| task.advance(at, to)))?;
        if to < most {
            py.check_signals()?;
        }
        at = to;
    }
    Ok(())
}

/// N matches of equal team sizes.
#[pyclass(module = "rocketsim_batch")]
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
        argument(format!(
            "{name} is float32{shape:?}, expected C-contiguous float32[{matches}, {}]",
            self.layout.size
        ))
    }

    fn check_numbers(&self, numbers: &[usize]) -> Result<()> {
        let mut seen = vec![false; self.games.len()];
        for &number in numbers {
            if number >= self.games.len() {
                return argument(format!(
                    "matches has {number}, expected numbers from 0 to {}",
                    self.games.len() - 1
                ));
            }
            if std::mem::replace(&mut seen[number], true) {
                return argument(format!("matches has {number} twice, expected each once"));
            }
        }
        Ok(())
    }

    fn check_alive(&self) -> Result<()> {
        let dead: Vec<_> = self.deaths();
        if dead.is_empty() { Ok(()) } else { Err(Error::Dead(dead)) }
    }

    fn deaths(&self) -> Vec<(usize, String)> {
        let of = |(number, game): (usize, &Game)| game.dead.clone().map(|text| (number, text));
        self.games.iter().enumerate().filter_map(of).collect()
    }

    /// Return an error that names the matches which died in this call.
    fn check_died(&self) -> Result<()> {
        let died = self.deaths();
        if died.is_empty() { Ok(()) } else { Err(Error::Panicked(died)) }
    }

    /// Hand out the control vectors of a call.
    fn take(&mut self, vectors: &[f32], per_car: usize, delays: Option<&[i64]>) {
        let (cars, width) = (self.layout.cars(), self.layout.cars() * per_car * CONTROLS);
        for (number, game) in self.games.iter_mut().enumerate() {
            game.begin_step();
            let delay = |car: usize| delays.map_or(0, |all| all[number * cars + car] as u64);
            game.take(&vectors[number * width..(number + 1) * width], per_car, delay);
        }
    }

    /// Check control vectors `(matches, cars, 1 or ticks, 8)`; return how many a car has.
    fn check_controls(&self, vectors: &PyReadonlyArray4<'_, f32>, ticks: usize) -> Result<usize> {
        let (shape, cars) = (vectors.shape(), self.layout.cars());
        let per_car = shape[2];
        let fits = shape[0] == self.games.len() && shape[1] == cars && shape[3] == CONTROLS;
        if !fits || (per_car != 1 && per_car != ticks) {
            return argument(format!(
                "controls is float32{shape:?}, expected float32[{}, {cars}, 1 or {ticks}, {CONTROLS}]",
                self.games.len()
            ));
        }
        controls::check(slice(vectors.as_slice(), "controls")?, cars, per_car)?;
        Ok(per_car)
    }
}

/// Return a contiguous array's numbers.
fn slice<'a, T, E>(numbers: std::result::Result<&'a [T], E>, name: &str) -> Result<&'a [T]> {
    numbers.map_err(|_| {
        Error::Argument(format!("{name} is not C-contiguous, expected np.ascontiguousarray of it"))
    })
}

/// Return a contiguous array's numbers to write.
fn slice_mut<'a>(buffer: &'a mut PyReadwriteArray2<'_, f32>, name: &str) -> Result<&'a mut [f32]> {
    buffer.as_slice_mut().map_err(|_| {
        Error::Argument(format!("{name} is not C-contiguous, expected np.ascontiguousarray of it"))
    })
}

fn check_ticks(ticks: usize) -> Result<()> {
    if (1..=MOST_TICKS).contains(&ticks) {
        return Ok(());
    }
    argument(format!("ticks is {ticks}, expected 1 to {MOST_TICKS}"))
}

#[pymethods]
impl Matches {
    /// Make matches; each needs a `put` before its first step.
    #[new]
    #[pyo3(signature = (matches, layout, *, seed=0, threads=1))]
    fn new(matches: usize, layout: &Layout, seed: u64, threads: usize) -> Result<Self> {
        if matches == 0 || matches > 1_000_000 {
            return argument(format!("matches is {matches}, expected 1 to 1000000"));
        }
        if threads == 0 || threads > 1024 {
            return argument(format!("threads is {threads}, expected 1 to 1024"));
        }
        if !rocketsim::is_initialized() {
            return Err(Error::Meshes(
                "the collision meshes are not loaded; call load_meshes() first".to_owned(),
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

    /// Begin the random streams of all matches, or of some, anew.
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
    fn set_mutators(&mut self, number: usize, mutators: BTreeMap<String, f32>) -> Result<()> {
        self.check_numbers(&[number])?;
        let mut new = self.games[number].mutators;
        for (name, value) in mutators {
            new.set(&name, value).map_err(|error| within(error, &format!("match {number}: ")))?;
        }
        self.games[number].mutators = new;
        Ok(())
    }

    /// Make some matches anew from states `(n, size)`, and show them in their rows of `buffer`.
    fn put(
        &mut self,
        matches: Vec<usize>,
        states: PyReadonlyArray2<'_, f32>,
        mut buffer: PyReadwriteArray2<'_, f32>,
    ) -> Result<()> {
        self.check_numbers(&matches)?;
        self.check_buffer("states", states.shape(), matches.len())?;
        self.check_buffer("buffer", buffer.shape(), self.games.len())?;
        let size = self.layout.size;
        let (states, rows) = (slice(states.as_slice(), "states")?, slice_mut(&mut buffer, "buffer")?);
        for (&number, desired) in matches.iter().zip(states.chunks_exact(size)) {
            let row = &mut rows[number * size..(number + 1) * size];
            self.games[number].put(&self.template, &self.layout, desired, row).map_err(
                |error| match error {
                    Error::Panicked(texts) => {
                        self.games[number].dead = Some(texts[0].1.clone());
                        Error::Panicked(vec![(number, texts[0].1.clone())])
                    }
                    other => within(other, &format!("match {number}, ")),
                },
            )?;
        }
        Ok(())
    }

    /// Move bodies of some matches and keep all that they remember.
    ///
    /// `cars` is `(n, cars)` bool: those that move; all when None.
    #[pyo3(signature = (matches, states, buffer, *, ball=true, cars=None))]
    fn nudge(
        &mut self,
        matches: Vec<usize>,
        states: PyReadonlyArray2<'_, f32>,
        mut buffer: PyReadwriteArray2<'_, f32>,
        ball: bool,
        cars: Option<PyReadonlyArray2<'_, bool>>,
    ) -> Result<()> {
        self.check_numbers(&matches)?;
        self.check_alive()?;
        self.check_buffer("states", states.shape(), matches.len())?;
        self.check_buffer("buffer", buffer.shape(), self.games.len())?;
        let (size, count) = (self.layout.size, self.layout.cars());
        let moved = match &cars {
            None => vec![true; matches.len() * count],
            Some(cars) if cars.shape() == [matches.len(), count] => slice(cars.as_slice(), "cars")?.to_vec(),
            Some(cars) => {
                return argument(format!(
                    "cars is bool{:?}, expected bool[{}, {count}]",
                    cars.shape(),
                    matches.len()
                ));
            }
        };
        let (states, rows) = (slice(states.as_slice(), "states")?, slice_mut(&mut buffer, "buffer")?);
        for (at, (&number, desired)) in matches.iter().zip(states.chunks_exact(size)).enumerate() {
            let row = &mut rows[number * size..(number + 1) * size];
            let cars = &moved[at * count..(at + 1) * count];
            self.games[number]
                .nudge(&self.layout, desired, ball, cars, row)
                .map_err(|error| within(error, &format!("match {number}, ")))?;
        }
        Ok(())
    }

    /// Put the cars of some matches on kickoff spots, the ball asleep, all pads there.
    fn kickoff(&mut self, matches: Vec<usize>, mut buffer: PyReadwriteArray2<'_, f32>) -> Result<()> {
        self.check_numbers(&matches)?;
        self.check_alive()?;
        self.check_buffer("buffer", buffer.shape(), self.games.len())?;
        let size = self.layout.size;
        let rows = slice_mut(&mut buffer, "buffer")?;
        for number in matches {
            self.games[number].kickoff(&self.layout, &mut rows[number * size..(number + 1) * size]);
        }
        Ok(())
    }

    /// Make matches equal to others of the group: state, waiting controls, counts and random stream.
    fn clone_into(
        &mut self,
        sources: Vec<usize>,
        targets: Vec<usize>,
        mut buffer: PyReadwriteArray2<'_, f32>,
    ) -> Result<()> {
        self.check_numbers(&targets)?;
        if sources.len() != targets.len() {
            return argument(format!(
                "{} sources for {} targets, expected one each",
                sources.len(),
                targets.len()
            ));
        }
        for &source in &sources {
            self.check_numbers(&[source])?;
        }
        self.check_buffer("buffer", buffer.shape(), self.games.len())?;
        let size = self.layout.size;
        let rows = slice_mut(&mut buffer, "buffer")?;
        let copies: Vec<_> = sources
            .iter()
            .map(|&source| (self.games[source].clone(), rows[source * size..(source + 1) * size].to_vec()))
            .collect();
        for (target, (game, row)) in targets.into_iter().zip(copies) {
            self.games[target] = game;
            rows[target * size..(target + 1) * size].copy_from_slice(&row);
        }
        Ok(())
    }

    /// Step all matches, and show them in `buffer`.
    ///
    /// `controls` is `(matches, cars, 1 or ticks, 8)`, `delay` `(matches, cars)` int64 in ticks.
    #[pyo3(signature = (buffer, controls, ticks, delay=None))]
    fn step(
        &mut self,
        py: Python<'_>,
        mut buffer: PyReadwriteArray2<'_, f32>,
        controls: PyReadonlyArray4<'_, f32>,
        ticks: usize,
        delay: Option<PyReadonlyArray2<'_, i64>>,
    ) -> Result<()> {
        check_ticks(ticks)?;
        self.check_alive()?;
        self.check_buffer("buffer", buffer.shape(), self.games.len())?;
        let per_car = self.check_controls(&controls, ticks)?;
        let delays = match &delay {
            None => None,
            Some(delay) => Some(self.check_delays(delay)?),
        };
        self.take(slice(controls.as_slice(), "controls")?, per_car, delays);
        let rows = slice_mut(&mut buffer, "buffer")?;
        let (layout, threads) = (&self.layout, self.threads);
        let mut tasks: Vec<_> = (self.games.iter_mut().zip(rows.chunks_exact_mut(layout.size)))
            .map(|(game, row)| Task { game, layout, row, frames: None, ticks, every: usize::MAX })
            .collect();
        run(py, threads, &mut tasks)?;
        py.detach(|| {
            for_each(threads, &mut tasks, |task| {
                task.show(ticks as u64);
            })
        })?;
        drop(tasks);
        self.check_died()
    }

    /// Play whole lines of control vectors, and return frames `(matches, ticks // every, size)`.
    ///
    /// `controls` is `(matches, cars, ticks, 8)`; match i plays `lengths[i]` ticks of it, all when None.
    /// Frame k shows a match after `(k + 1) * every` ticks; frames that a match does not reach are NaN.
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
        check_ticks(ticks)?;
        check_ticks(every)?;
        self.check_alive()?;
        self.check_buffer("buffer", buffer.shape(), self.games.len())?;
        let per_car = self.check_controls(&controls, ticks)?;
        let lengths = lengths.unwrap_or_else(|| vec![ticks; self.games.len()]);
        if lengths.len() != self.games.len() || lengths.iter().any(|&length| length > ticks) {
            return argument(format!(
                "lengths is {lengths:?}, expected {} numbers from 0 to {ticks}",
                self.games.len()
            ));
        }
        let (size, count) = (self.layout.size, ticks / every);
        let frames = PyArray3::<f32>::zeros(py, [self.games.len(), count, size], false);
        {
            let mut frames = frames.readwrite();
            let all = frames.as_slice_mut().map_err(|error| Error::Argument(error.to_string()))?;
            all.fill(f32::NAN);
            self.take(slice(controls.as_slice(), "controls")?, per_car, None);
            let rows = slice_mut(&mut buffer, "buffer")?;
            let (layout, threads) = (&self.layout, self.threads);
            let mut of_matches: Vec<&mut [f32]> = if count == 0 {
                self.games.iter().map(|_| Default::default()).collect()
            } else {
                all.chunks_exact_mut(count * size).collect()
            };
            let mut tasks: Vec<_> = (self.games.iter_mut().zip(rows.chunks_exact_mut(size)))
                .zip(of_matches.iter_mut().zip(&lengths))
                .map(|((game, row), (frames, &ticks))| Task {
                    game,
                    layout,
                    row,
                    frames: Some(&mut **frames),
                    ticks,
                    every,
                })
                .collect();
            run(py, threads, &mut tasks)?;
            for task in &mut tasks {
                task.show((task.ticks % every) as u64);
            }
        }
        self.check_died()?;
        Ok(frames)
    }

    /// Return where the ball goes while nobody touches it: `(n, ticks // every, 9)` float32.
    #[pyo3(signature = (matches, ticks=720, every=1))]
    fn forecast_ball<'py>(
        &self,
        py: Python<'py>,
        matches: Vec<usize>,
        ticks: usize,
        every: usize,
    ) -> Result<Bound<'py, PyArray3<f32>>> {
        self.check_numbers(&matches)?;
        check_ticks(ticks)?;
        check_ticks(every)?;
        let dead: Vec<_> = self.deaths().into_iter().filter(|(number, _)| matches.contains(number)).collect();
        if !dead.is_empty() {
            return Err(Error::Dead(dead));
        }
        let count = ticks / every;
        let mut numbers = vec![0.0f32; matches.len() * count * FRAME];
        if count > 0 {
            let mut tasks: Vec<_> = matches
                .iter()
                .zip(numbers.chunks_exact_mut(count * FRAME))
                .map(|(&number, frames)| (&self.games[number], frames, Ok(())))
                .collect();
            let piece = tasks.len().min((UNINTERRUPTED * self.threads / ticks.max(1)).max(1)).max(1);
            for some in tasks.chunks_mut(piece) {
                py.detach(|| {
                    for_each(self.threads, some, |(game, frames, result)| {
                        *result = forecast(game, every, frames)
                    })
                })?;
                py.check_signals()?;
            }
            for (&number, (_, _, result)) in matches.iter().zip(&tasks) {
                if let Err(text) = result {
                    return Err(Error::Panicked(vec![(number, text.clone())]));
                }
            }
        }
        let array = PyArray1::from_vec(py, numbers);
        Ok(array.reshape([matches.len(), count, FRAME])?)
    }

    /// Return the events of the latest step as a structured array of the dtype `EVENT`.
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let all = self.games.iter().enumerate();
        events::as_array(
            py,
            all.flat_map(|(number, game)| game.events.iter().map(move |event| (number, *event))),
        )
    }

    /// Return counts since the latest `put`, `(matches, cars, 6)` int32.
    ///
    /// Goals, assists, saves, shots, demolitions and ticks with contact to the ball.
    fn statistics<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray3<i32>> {
        let cars = self.layout.cars();
        let array = PyArray3::<i32>::zeros(py, [self.games.len(), cars, 6], false);
        let mut numbers = array.readwrite();
        for (number, game) in self.games.iter().enumerate() {
            for car in 0..cars {
                for (at, &count) in game.statistics.counts[car].numbers.iter().enumerate() {
                    if let Some(place) = numbers.get_mut([number, car, at]) {
                        *place = count;
                    }
                }
            }
        }
        drop(numbers);
        array
    }

    /// Return the numbers of the dead matches and why they died.
    fn dead(&self) -> BTreeMap<usize, String> {
        self.deaths().into_iter().collect()
    }

    /// Put a car on a respawn spot of its team now.
    fn respawn(&mut self, number: usize, car: usize, mut buffer: PyReadwriteArray2<'_, f32>) -> Result<()> {
        self.one_car(number, car, &mut buffer, |arena, car| arena.respawn_car(car))
    }

    /// Demolish a car now.
    fn demolish(&mut self, number: usize, car: usize, mut buffer: PyReadwriteArray2<'_, f32>) -> Result<()> {
        self.one_car(number, car, &mut buffer, |arena, car| arena.demolish_car(car))
    }

    /// Let the next step of a match panic, to test what a caller does then.
    fn panic_next(&mut self, number: usize) -> Result<()> {
        self.check_numbers(&[number])?;
        self.games[number].panic_next();
        Ok(())
    }
}

impl Matches {
    fn one_car(
        &mut self,
        number: usize,
        car: usize,
        buffer: &mut PyReadwriteArray2<'_, f32>,
        change: impl Fn(&mut Arena, usize),
    ) -> Result<()> {
        self.check_numbers(&[number])?;
        self.check_alive()?;
        self.check_buffer("buffer", buffer.shape(), self.games.len())?;
        if car >= self.layout.cars() {
            return argument(format!("car is {car}, expected 0 to {}", self.layout.cars().saturating_sub(1)));
        }
        let size = self.layout.size;
        let rows = slice_mut(buffer, "buffer")?;
        change(&mut self.games[number].arena, car);
        self.games[number].show(&self.layout, &mut rows[number * size..(number + 1) * size]);
        Ok(())
    }

    fn check_delays<'a>(&self, delay: &'a PyReadonlyArray2<'_, i64>) -> Result<&'a [i64]> {
        let expected = [self.games.len(), self.layout.cars()];
        if delay.shape() != expected {
            return argument(format!("delay is int64{:?}, expected int64{expected:?}", delay.shape()));
        }
        let delays = slice(delay.as_slice(), "delay")?;
        if let Some(at) = delays.iter().position(|ticks| !(0..=MOST_TICKS as i64).contains(ticks)) {
            let cars = self.layout.cars();
            return argument(format!(
                "delay of match {}, car {} is {}, expected 0 to {MOST_TICKS} ticks",
                at / cars,
                at % cars,
                delays[at]
            ));
        }
        Ok(delays)
    }
}
