//! Where the ball goes as long as nobody touches it, and where a match goes by given control vectors.

use rocketsim::consts::ball;

use crate::game::{Game, tick_ball};
use crate::layout::Layout;
use crate::panics::guarded;
use crate::view;

/// Numbers of a forecast's frame: position, velocity and spin.
pub const FRAME: usize = 9;

/// Write the ball's position (uu), velocity (uu/s) and spin (rad/s) every `every` ticks.
///
/// `frames` holds `FRAME` numbers for each; the first is the ball after `every` ticks.
pub fn forecast(game: &Game, every: usize, frames: &mut [f32]) -> Result<(), String> {
    guarded(|| {
        game.may_panic("forecast_ball", u64::MAX);
        let mut alone = game.arena.clone();
        alone.remove_cars();
        for frame in frames.chunks_exact_mut(FRAME) {
            for _ in 0..every {
                tick_ball(&mut alone, game.bounciness);
            }
            let speed = alone.mutator_config().ball_max_speed;
            let seen = view::settled(&alone.get_ball_state().phys, speed, ball::MAX_ANG_SPEED);
            for (part, vector) in frame.chunks_exact_mut(3).zip([seen.pos, seen.vel, seen.ang_vel]) {
                part.copy_from_slice(&vector.to_array());
            }
        }
    })
}

/// Play a copy of a match on by some ticks, and show it in a row; the match itself stays as it is.
///
/// `vectors` holds a control vector a tick for each car in turn. They act at once, and drop what waits.
pub fn play_on(
    game: &Game,
    layout: &Layout,
    vectors: &[f32],
    ticks: usize,
    row: &mut [f32],
) -> Result<(), String> {
    let mut copy = guarded(|| {
        game.may_panic("forecast", u64::MAX);
        game.clone()
    })?;
    copy.take(vectors, ticks, |_| 0);
    copy.advance(layout, 0, ticks as u32)?;
    view::count_frame(layout, row, ticks as u64);
    copy.show(layout, row);
    Ok(())
}
