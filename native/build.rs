//! Puts a hash of the sources into the module, by which a caller knows a stale build.

use std::path::{Path, PathBuf};

/// Hash `Cargo.lock`, `.cargo/config.toml` and `src/*.rs` in the order of their names: 64-bit FNV-1a over each file's name, a zero, its
/// bytes without carriage returns, and a zero. `rocketsim_batch.source_hash` does the same.
fn main() {
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rerun-if-changed=Cargo.lock");
    println!("cargo::rerun-if-changed=.cargo/config.toml");
    let entries = std::fs::read_dir("src").expect("the folder src");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry of src").path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "rs"));
    files.sort();
    files.splice(0..0, [PathBuf::from("Cargo.lock"), PathBuf::from(".cargo/config.toml")]);
    let mut hash: u64 = 0xCBF2_9CE4_8422_2325;
    for file in &files {
        let name = file.file_name().expect("a file's name").to_string_lossy().into_owned();
        let text = std::fs::read(Path::new(file)).expect("a source file");
        let bytes = name.bytes().chain([0]).chain(text.into_iter().filter(|&byte| byte != b'\r')).chain([0]);
        bytes.for_each(|byte| hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3));
    }
    println!("cargo::rustc-env=SOURCE_HASH={hash:016x}");
}
