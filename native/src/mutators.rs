//! The rules of one match by name.

use std::collections::BTreeMap;

use rocketsim::{DemoMode, MutatorConfig};

use crate::bounce;
use crate::errors::{Result, refuse};

const DEMO_MODES: [DemoMode; 3] = [DemoMode::Normal, DemoMode::OnContact, DemoMode::Disabled];

/// RocketSim's mutators, and those that the module adds.
#[derive(Clone, Copy, Debug)]
pub struct Mutators {
    /// RocketSim's own.
    pub config: MutatorConfig,
    /// Restitution of ball and field; RocketSim 3's own is 0.6.
    pub ball_bounciness: f32,
}

impl Default for Mutators {
    fn default() -> Self {
        Self { config: MutatorConfig::default(), ball_bounciness: bounce::OWN }
    }
}

impl Mutators {
    /// Call a function with each mutator: its name, its value to read or change, the lowest and the highest one, and
    /// whether only whole numbers are values.
    fn visit(&mut self, mut visit: impl FnMut(&'static str, &mut f32, (f32, f32, bool))) {
        let config = &mut self.config;
        macro_rules! numbers { ($($name:ident: $low:expr, $high:expr;)*) => {
            $(visit(stringify!($name), &mut config.$name, ($low, $high, false));)*
        }; }
        macro_rules! flags { ($($name:ident)*) => { $(
            let mut flag = f32::from(u8::from(config.$name));
            visit(stringify!($name), &mut flag, (0.0, 1.0, true));
            config.$name = flag > 0.0;
        )* }; }
        numbers! {
            car_mass: 1.0, 1e5; ball_mass: 0.1, 1e5; ball_max_speed: 1.0, 1e5; ball_drag: 0.0, 0.999;
            jump_accel: -1e6, 1e6; jump_immediate_force: -1e5, 1e5;
            boost_accel_ground: -1e6, 1e6; boost_accel_air: -1e6, 1e6; boost_used_per_second: 0.0, 1e6;
            respawn_delay: 0.0, 1e5; bump_cooldown_time: 0.0, 1e5;
            car_max_boost_amount: 0.0, 1e6; car_spawn_boost_amount: 0.0, 1e6;
            boost_pad_amount_small: 0.0, 1e6; boost_pad_amount_big: 0.0, 1e6;
            boost_pad_cooldown_small: 0.0, 1e6; boost_pad_cooldown_big: 0.0, 1e6;
            ball_hit_extra_force_scale: -1e3, 1e3; bump_force_scale: -1e3, 1e3;
            ball_radius: 10.0, 900.0; recharge_boost_per_second: 0.0, 1e6; recharge_boost_delay: 0.0, 1e6;
        }
        flags! { unlimited_flips unlimited_double_jumps recharge_boost_enabled enable_team_demos boost_pads_enabled }
        let mut mode = DEMO_MODES.iter().position(|mode| *mode == config.demo_mode).unwrap_or(0) as f32;
        visit("demo_mode", &mut mode, (0.0, 2.0, true));
        config.demo_mode = DEMO_MODES[mode as usize];
        visit("gravity", &mut config.gravity.z, (-1e5, 1e5, false));
        visit("ball_bounciness", &mut self.ball_bounciness, (0.0, 2.0, false));
    }

    /// Return all mutators by name. `gravity` is the pull along z, uu/s^2; flags are 0 or 1.
    ///
    /// `demo_mode` is 0 where a car needs to be supersonic, 1 where any contact demolishes, 2 without.
    pub fn by_name(&self) -> BTreeMap<&'static str, f32> {
        let (mut all, mut copy) = (BTreeMap::new(), *self);
        copy.visit(|name, value, _| _ = all.insert(name, *value));
        all
    }

    /// Change a mutator.
    pub fn set(&mut self, name: &str, value: f32) -> Result<()> {
        let mut found = None;
        self.visit(|own, old, (low, high, whole)| {
            if own == name {
                let fits = (low..=high).contains(&value) && !(whole && value.fract() != 0.0);
                found = Some((fits, low, high, if whole { "whole " } else { "" }));
                *old = if fits { value } else { *old };
            }
        });
        let Some((fits, low, high, whole)) = found else {
            let known: Vec<_> = self.by_name().into_keys().collect();
            refuse!("there is no mutator {name:?}, expected one of {}", known.join(", "));
        };
        if fits {
            return Ok(());
        }
        refuse!("mutator {name} is {value}, expected a {whole}number from {low} to {high}")
    }
}
