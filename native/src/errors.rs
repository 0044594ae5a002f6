//! The errors of the module, and the Python exceptions that they become.

use pyo3::create_exception;
use pyo3::exceptions::{PyFileNotFoundError, PyRuntimeError, PyValueError};
use pyo3::{PyErr, Python};

use crate::panics::{Report, write_files};

create_exception!(
    rocketsim_batch,
    MatchError,
    PyRuntimeError,
    "A match failed inside RocketSim and is dead until `put` makes it anew; `args[1]` has the numbers."
);

/// Dead matches that a message tells about; `MatchError.args[1]` has all.
const NAMED: usize = 5;

/// A dead match.
#[derive(Debug)]
pub struct Death {
    /// Number of its group in a call for several, else 0.
    pub group: usize,
    /// Number in its group.
    pub number: usize,
    /// Why it died.
    pub text: String,
    /// What a replay needs, where it died in this call.
    pub report: Option<Box<Report>>,
}

/// What can go wrong in a call.
#[derive(Debug)]
pub enum Error {
    /// An argument is wrong: the text says what came, what was expected and where.
    Argument(String),
    /// The collision meshes are not where they were looked for.
    Meshes(String),
    /// Matches that panicked in this call.
    Panicked(Vec<Death>),
    /// A call asked for matches that are dead.
    Dead(Vec<Death>),
    /// Python raised, such as `KeyboardInterrupt`.
    Python(PyErr),
}

/// The result of a call.
pub type Result<T> = std::result::Result<T, Error>;

/// Return from a function with an error about an argument, its words as `format!` takes them.
macro_rules! refuse {
    ($($words:tt)*) => { return Err($crate::errors::Error::Argument(format!($($words)*))) };
}
pub(crate) use refuse;

impl From<PyErr> for Error {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        match error {
            Error::Argument(text) => PyValueError::new_err(text),
            Error::Meshes(text) => PyFileNotFoundError::new_err(text),
            Error::Panicked(matches) => match Python::attach(|py| write_files(py, &matches)) {
                Ok(()) => match_error("RocketSim panicked; until put() these are dead", matches),
                Err(error) => error,
            },
            Error::Dead(matches) => match_error("dead matches; make them anew with put()", matches),
            Error::Python(error) => error,
        }
    }
}

/// Return a `MatchError`; its second argument has the numbers of the matches, its third their groups.
fn match_error(what: &str, deaths: Vec<Death>) -> PyErr {
    let of_group = |group| if group == 0 { String::new() } else { format!("group {group}, ") };
    let text = |death: &Death| format!("{}match {}: {}", of_group(death.group), death.number, death.text);
    let mut texts: Vec<_> = deaths.iter().take(NAMED).map(text).collect();
    if deaths.len() > NAMED {
        texts.push(format!("and {} more", deaths.len() - NAMED));
    }
    let (numbers, groups): (Vec<_>, Vec<_>) = deaths.iter().map(|death| (death.number, death.group)).unzip();
    MatchError::new_err((format!("{what}: {}", texts.join("; ")), numbers, groups))
}

impl Error {
    /// Put words before an argument's text.
    pub fn within(self, words: &str) -> Self {
        match self {
            Self::Argument(text) => Self::Argument(format!("{words}{text}")),
            other => other,
        }
    }
}
