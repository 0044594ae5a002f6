//! Conditions of whole batches: which matches are over.

use numpy::{PyReadonlyArray2, PyReadwriteArray1};
use pyo3::prelude::*;

use crate::arguments::{CHECKED, Object, readable, shape_of, writable};
use crate::errors::{Result, refuse};
use crate::layout::Layout;
use crate::rewards::needed;

const TICKS_PER_SECOND: f64 = 120.0;

/// When a match is over.
#[derive(Clone, Copy)]
enum Kind {
    /// The ball is in a goal.
    Goal,
    /// Some seconds have passed since a tick.
    Timeout,
    /// The same, and a touch of the ball begins them anew.
    NoTouch,
}

/// Conditions of matches, of which one or all have to hold.
#[pyclass(frozen, module = "rocketsim_batch")]
pub struct Conditions {
    size: usize,
    frame: usize,
    goal_scored: usize,
    touches: Vec<usize>,
    parts: Vec<(Kind, f64)>,
    every: bool,
}

#[pymethods]
impl Conditions {
    /// Make conditions `(name, seconds)`: "goal", "timeout" and "no_touch"; all have to hold where `every` is set.
    #[new]
    #[pyo3(signature = (layout, parts, *, every=false))]
    fn new(layout: &Layout, parts: Vec<(String, f64)>, every: bool) -> Result<Self> {
        let mut found = Vec::with_capacity(parts.len());
        for (name, seconds) in parts {
            let kind = match name.as_str() {
                "goal" => Kind::Goal,
                "timeout" => Kind::Timeout,
                "no_touch" => Kind::NoTouch,
                _ => refuse!("a condition is {name:?}, expected goal, timeout or no_touch"),
            };
            found.push((kind, seconds));
        }
        let touches = needed("ball_touches", layout.of_car.ball_touches)?;
        let of_car = |car| layout.car_start + car * layout.car_stride + touches;
        Ok(Self {
            size: layout.size,
            frame: needed("frame", layout.of_match.frame)?,
            goal_scored: needed("goal_scored", layout.of_match.goal_scored)?,
            touches: (0..layout.cars()).map(of_car).collect(),
            parts: found,
            every,
        })
    }

    /// Write which matches of `buffer`, float32 `(matches, size)`, are over into `over`, bool `(matches,)`.
    ///
    /// `since` has for each part the ticks from which its seconds count, int32 `(matches,)`, None for "goal". Those
    /// of "no_touch" become the present tick where a car touched the ball.
    fn judge(
        &self,
        py: Python<'_>,
        buffer: &Object<'_>,
        since: Vec<Option<Object<'_>>>,
        over: &Object<'_>,
    ) -> Result<()> {
        let matches = shape_of(buffer).first().copied().unwrap_or(0);
        let buffer: PyReadonlyArray2<'_, f32> = readable("buffer", buffer, &[&[matches, self.size]])?;
        let mut over: PyReadwriteArray1<'_, bool> = writable("over", over, &[matches])?;
        if since.len() != self.parts.len() {
            refuse!("since has {} entries, expected one for each of {} parts", since.len(), self.parts.len());
        }
        let mut ticks = Vec::with_capacity(since.len());
        for (since, (kind, _)) in since.iter().zip(&self.parts) {
            let array: Option<PyReadwriteArray1<'_, i32>> = match (since, kind) {
                (_, Kind::Goal) => None,
                (Some(since), _) => Some(writable("since", since, &[matches])?),
                (None, _) => refuse!("since has None for a condition that counts seconds"),
            };
            ticks.push(array);
        }
        let mut parts: Vec<_> = self.parts.iter().zip(&mut ticks).collect();
        let mut parts: Vec<_> = parts
            .iter_mut()
            .map(|((kind, seconds), ticks)| {
                (*kind, *seconds, ticks.as_mut().map(|ticks| ticks.as_slice_mut().expect(CHECKED)))
            })
            .collect();
        let rows = buffer.as_slice().expect(CHECKED);
        let over = over.as_slice_mut().expect(CHECKED);
        py.detach(|| {
            for (number, (row, over)) in rows.chunks_exact(self.size).zip(over).enumerate() {
                *over = self.every;
                for (kind, seconds, since) in &mut parts {
                    let since = since.as_mut().map(|since| &mut since[number]);
                    // No short cut: a part that is not asked would miss a touch.
                    let holds = self.holds(*kind, *seconds, since, row);
                    *over = if self.every { *over && holds } else { *over || holds };
                }
            }
        });
        Ok(())
    }
}

impl Conditions {
    fn holds(&self, kind: Kind, seconds: f64, since: Option<&mut i32>, row: &[f32]) -> bool {
        let Some(since) = since else { return row[self.goal_scored] > 0.0 };
        let tick = row[self.frame].to_bits() as i32;
        let touched = matches!(kind, Kind::NoTouch) && self.touches.iter().any(|&column| row[column] > 0.0);
        if touched {
            *since = tick;
        }
        !touched && f64::from(tick.wrapping_sub(*since)) / TICKS_PER_SECOND >= seconds
    }
}
