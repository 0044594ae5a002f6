//! RocketSim 3 in batches: many Rocket League matches as numpy arrays.
//!
//! Units are the game's: uu, uu/s, rad/s, seconds, boost 0 to 100.

pub mod arguments;
pub mod bounce;
pub mod controls;
pub mod errors;
pub mod events;
pub mod flights;
pub mod forecast;
pub mod game;
pub mod layout;
pub mod matches;
pub mod mutators;
pub mod observations;
pub mod panics;
pub mod rewards;
pub mod statistics;
pub mod steps;
pub mod view;

use std::path::PathBuf;

use pyo3::prelude::*;

use crate::errors::{Error, MatchError, Result};

/// Load the collision meshes from a folder that has `soccar/*.cmf`, once in a process.
#[pyfunction]
fn load_meshes(folder: PathBuf) -> Result<()> {
    let loaded = panics::guarded(|| rocketsim::init(&folder, true).map_err(|error| error.to_string()));
    loaded.and_then(|loaded| loaded).map_err(Error::Meshes)
}

/// Return whether the collision meshes are loaded.
#[pyfunction]
fn meshes_loaded() -> bool {
    rocketsim::is_initialized()
}

/// Return position (uu) and size (1 for big) of each boost pad, in RocketSim's order.
#[pyfunction]
fn pad_positions() -> Result<Vec<(f32, f32, f32, bool)>> {
    let arena = matches::new_arena(false)?;
    let pads = arena.get_all_boost_pad_configs();
    Ok(pads.iter().map(|pad| (pad.pos.x, pad.pos.y, pad.pos.z, pad.is_big)).collect())
}

/// The compiled part of `rocketsim_batch`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<layout::Layout>()?;
    module.add_class::<matches::Matches>()?;
    module.add_class::<observations::Observer>()?;
    module.add_class::<rewards::Rewards>()?;
    module.add_class::<flights::BallFlights>()?;
    module.add("MatchError", module.py().get_type::<MatchError>())?;
    module.add("KINDS", events::KINDS.into_iter().zip(0u8..).collect::<Vec<_>>())?;
    module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
    module.add("SOURCE_HASH", env!("SOURCE_HASH"))?;
    module.add_function(wrap_pyfunction!(matches::step_groups, module)?)?;
    module.add_function(wrap_pyfunction!(rewards::add_rewards, module)?)?;
    module.add_function(wrap_pyfunction!(load_meshes, module)?)?;
    module.add_function(wrap_pyfunction!(meshes_loaded, module)?)?;
    module.add_function(wrap_pyfunction!(pad_positions, module)?)?;
    Ok(())
}
