//! Another bounciness of the ball than RocketSim 3's fixed one, by a correction after the tick.
//!
//! RocketSim 3 has no mutator for it. A bounce is a known function of what came in and of the
//! normal, and the normal follows from the changes of velocity and spin; so the difference between
//! the bounce that was wanted and the one that was simulated is added afterwards.

use glam::Vec3A;
use rocketsim::consts::TICK_TIME;
use rocketsim::{MutatorConfig, PhysState};

/// The restitution that RocketSim 3 simulates [RocketSim's consts: ball].
pub const OWN: f32 = 0.6;
/// Friction of ball and field.
pub const FRICTION: f32 = 0.35; // [same]
/// Inertia of a full sphere, times mass and radius squared.
pub const INERTIA: f32 = 0.4;

/// Return the ball as it is after a tick with one bounce off the field, had it another restitution.
///
/// `before` is the ball as the tick began, `after` as it ended; nothing else touched it.
pub fn corrected(before: &PhysState, after: &PhysState, restitution: f32, of: &MutatorConfig) -> PhysState {
    let slowed = before.vel * (1.0 - of.ball_drag).powf(TICK_TIME);
    let inbound = slowed + Vec3A::new(0.0, 0.0, of.gravity.z * TICK_TIME);
    let (change, turn) = (after.vel - inbound, after.ang_vel - before.ang_vel);
    let Some(normal) = normal(change, turn, of.ball_radius) else { return *after };
    let bounce = |restitution: f32| {
        let push = -inbound.dot(normal) + (-restitution * slowed.dot(normal)).max(0.0);
        let arm = normal * -of.ball_radius;
        let slip = inbound - normal * inbound.dot(normal) + before.ang_vel.cross(arm);
        let grip = (slip.length() * 2.0 / 7.0).min(FRICTION * push.max(0.0));
        let rub = -slip.normalize_or_zero() * grip;
        (normal * push + rub, -normal.cross(rub) / (INERTIA * of.ball_radius))
    };
    let ((wanted_vel, wanted_spin), (own_vel, own_spin)) = (bounce(restitution), bounce(OWN));
    // A ball that leaves may still touch the field for a tick, which changes next to nothing.
    if change.length() < 0.5 * own_vel.length() {
        return *after;
    }
    let faster = wanted_vel - own_vel;
    PhysState {
        pos: after.pos + faster * TICK_TIME,
        vel: after.vel + faster,
        ang_vel: after.ang_vel + (wanted_spin - own_spin),
        ..*after
    }
}

/// Return the normal of the surface that changed a ball's velocity and spin like this.
fn normal(change: Vec3A, turn: Vec3A, radius: f32) -> Option<Vec3A> {
    let along = change.try_normalize()?;
    let rub = INERTIA * radius * turn.length();
    let Some(axis) = turn.try_normalize() else { return Some(along) };
    let push = (change.length_squared() - rub * rub).max(0.0).sqrt();
    let angle = rub.atan2(push);
    Some((along * angle.cos() + axis.cross(along) * angle.sin()).normalize_or_zero())
}
