//! Where the ball goes as long as nobody touches it.

use rocketsim::Arena;
use rocketsim::consts::ball;

use crate::game::{Game, tick_ball};
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
            write(&alone, frame);
        }
    })
}

fn write(arena: &Arena, frame: &mut [f32]) {
    let speed = arena.mutator_config().ball_max_speed;
    let seen = view::settled(&arena.get_ball_state().phys, speed, ball::MAX_ANG_SPEED);
    frame[..3].copy_from_slice(&seen.pos.to_array());
    frame[3..6].copy_from_slice(&seen.vel.to_array());
    frame[6..].copy_from_slice(&seen.ang_vel.to_array());
}
