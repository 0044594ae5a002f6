//! RocketSim 3 in batches: many Rocket League matches as numpy arrays.
//!
//! Units are the game's: uu, uu/s, rad/s, seconds, boost 0 to 100.

pub mod bounce;
pub mod controls;
pub mod errors;
pub mod events;
pub mod forecast;
pub mod game;
pub mod layout;
pub mod matches;
pub mod mutators;
pub mod panics;
pub mod statistics;
pub mod steps;
pub mod view;

use std::path::PathBuf;

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use rocketsim::{Arena, GameMode};

use crate::errors::{Error, MatchError, Result};

/// Files that a soccar field is made of.
const SOCCAR_MESHES: usize = 16;

/// Load the collision meshes from a folder that has `soccar/*.cmf`, once in a process.
#[pyfunction]
fn load_meshes(folder: PathBuf) -> Result<()> {
    if rocketsim::is_initialized() {
        return Ok(());
    }
    let soccar = folder.join("soccar");
    let is_mesh = |path: &PathBuf| path.extension().is_some_and(|end| end == "cmf");
    let files = std::fs::read_dir(&soccar)
        .map_or(0, |entries| entries.flatten().map(|entry| entry.path()).filter(is_mesh).count());
    if files < SOCCAR_MESHES {
        return Err(Error::Meshes(format!(
            "{} has {files} collision meshes, expected {SOCCAR_MESHES} files *.cmf; they come with: \
             pip install rlgym-rocket-league",
            soccar.display()
        )));
    }
    let loaded = game::guarded(|| rocketsim::init(&folder, true)).map_err(Error::Meshes)?;
    loaded.map_err(|error| Error::Meshes(format!("{}: {error}", soccar.display())))
}

/// Return whether the collision meshes are loaded.
#[pyfunction]
fn meshes_loaded() -> bool {
    rocketsim::is_initialized()
}

/// Return position (uu) and size (1 for big) of each boost pad, in RocketSim's order.
#[pyfunction]
fn pad_positions() -> Result<Vec<(f32, f32, f32, bool)>> {
    let arena = game::guarded(|| Arena::new(GameMode::Soccar)).map_err(Error::Meshes)?;
    let pads = arena.get_all_boost_pad_configs();
    Ok(pads.iter().map(|pad| (pad.pos.x, pad.pos.y, pad.pos.z, pad.is_big)).collect())
}

/// Refuse a processor without the instructions of the build; std's detection tells the build's, not its own.
fn check_processor() -> PyResult<()> {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse4.2"))]
    if !std::arch::x86_64::__cpuid(1).ecx & 0x98_2201 != 0 {
        return Err(PyImportError::new_err(
            "rocketsim_batch needs a processor of x86-64-v2 (SSE4.2), as most since 2009 are; \
             else remove target-cpu from native/.cargo/config.toml, and enter: pip install ./native",
        ));
    }
    Ok(())
}

/// The compiled part of `rocketsim_batch`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    check_processor()?;
    module.add_class::<layout::Layout>()?;
    module.add_class::<matches::Matches>()?;
    module.add("MatchError", module.py().get_type::<MatchError>())?;
    module.add("KINDS", events::KINDS.into_iter().zip(0u8..).collect::<Vec<_>>())?;
    module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
    module.add("SOURCE_HASH", env!("SOURCE_HASH"))?;
    module.add_function(wrap_pyfunction!(matches::step_groups, module)?)?;
    module.add_function(wrap_pyfunction!(load_meshes, module)?)?;
    module.add_function(wrap_pyfunction!(meshes_loaded, module)?)?;
    module.add_function(wrap_pyfunction!(pad_positions, module)?)?;
    Ok(())
}
