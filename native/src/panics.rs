//! Panics inside RocketSim: kept off the console, their message kept for the error.

use std::cell::{Cell, RefCell};
use std::panic;
use std::sync::Once;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static MESSAGE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// While one of these lives, panics of this thread are noted instead of printed.
pub struct Quiet(());

impl Quiet {
    /// Begin to note panics.
    pub fn begin() -> Self {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                if DEPTH.get() > 0 {
                    MESSAGE.set(info.to_string().replace('\n', " "));
                } else {
                    before(info);
                }
            }));
        });
        DEPTH.set(DEPTH.get() + 1);
        Self(())
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// Return the message of this thread's latest noted panic.
pub fn last_message() -> String {
    MESSAGE.take()
}
