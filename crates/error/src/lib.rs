//! The one error type of all floors.
//!
//! A variant is a kind that a caller would treat differently; its message is a whole sentence
//! that names the operation, the values and, where there is one, the way out. Every crate of the
//! workspace returns [`Result`]; the Python package maps each variant to the exception that NumPy
//! users expect.

#![forbid(unsafe_code)]

use std::fmt::Display;

/// What every fallible function of tilework returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation could not be done. Whatever failed left every array as it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Shapes that do not fit each other or the operation.
    #[error("{0}")]
    Shape(String),
    /// A dtype that the operation does not take, or a cast that would lose what it must keep.
    #[error("{0}")]
    DType(String),
    /// An index outside of its axis.
    #[error("{0}")]
    Index(String),
    /// An axis that does not exist, or is named twice.
    #[error("{0}")]
    Axis(String),
    /// An argument of the right kind with a value that makes no sense.
    #[error("{0}")]
    Value(String),
    /// A number outside of the range of its dtype.
    #[error("{0}")]
    Overflow(String),
    /// A device that does not exist, or operands on different devices.
    #[error("{0}")]
    Device(String),
    /// Memory that is in use through a guard that the caller or another thread holds.
    #[error("{0}")]
    Borrowed(String),
    /// A write to memory that may only be read.
    #[error("{0}")]
    ReadOnly(String),
    /// Memory that the system does not give.
    #[error("{0}")]
    OutOfMemory(String),
    /// Something that this backend, dtype or build does not offer.
    #[error("{0}")]
    Unsupported(String),
    /// Reading or writing a file failed.
    #[error("{message}")]
    Io {
        /// What was read or written, and what the system says.
        message: String,
        /// Why, as the standard library sorts it.
        kind: std::io::ErrorKind,
    },
    /// A file whose content is not what its format promises.
    #[error("{0}")]
    Format(String),
    /// A formula that does not parse or whose dimensions do not match.
    #[error("{message}")]
    Formula {
        /// What is wrong, with the place shown.
        message: String,
        /// Byte position in the text, where the formula came from text.
        position: Option<usize>,
    },
    /// A failure reported by a device's driver.
    #[error("{0}")]
    Driver(String),
    /// Long work that was stopped on request.
    #[error("{0}")]
    Interrupted(String),
}

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident => $variant:ident),* $(,)?) => {
        impl Error {
            $($(#[$doc])*
            #[cold]
            pub fn $name(operation: &str, message: impl Display) -> Error {
                Error::$variant(format!("{operation}: {message}"))
            })*
        }
    };
}

constructors! {
    /// A [`Error::Shape`] of `operation`.
    shape => Shape,
    /// A [`Error::DType`] of `operation`.
    dtype => DType,
    /// A [`Error::Index`] of `operation`.
    index => Index,
    /// A [`Error::Axis`] of `operation`.
    axis => Axis,
    /// A [`Error::Value`] of `operation`.
    value => Value,
    /// A [`Error::Overflow`] of `operation`.
    overflow => Overflow,
    /// A [`Error::Device`] of `operation`.
    device => Device,
    /// A [`Error::Borrowed`] of `operation`.
    borrowed => Borrowed,
    /// A [`Error::ReadOnly`] of `operation`.
    read_only => ReadOnly,
    /// A [`Error::OutOfMemory`] of `operation`.
    out_of_memory => OutOfMemory,
    /// A [`Error::Unsupported`] of `operation`.
    unsupported => Unsupported,
    /// A [`Error::Format`] of `operation`.
    format => Format,
    /// A [`Error::Driver`] of `operation`.
    driver => Driver,
    /// A [`Error::Interrupted`] of `operation`.
    interrupted => Interrupted,
}

impl Error {
    /// A [`Error::Io`] of `operation`.
    #[cold]
    pub fn io(operation: &str, kind: std::io::ErrorKind, message: impl Display) -> Error {
        Error::Io { message: format!("{operation}: {message}"), kind }
    }

    /// The same error under the name of another operation: of the one that users have asked for,
    /// where others were a part of it.
    ///
    /// ```
    /// let error = tilework_error::Error::shape("broadcast_to", "it does not fit").of("repeat");
    /// assert_eq!(error.to_string(), "repeat: it does not fit");
    /// ```
    #[cold]
    #[must_use]
    pub fn of(mut self, operation: &str) -> Error {
        use Error::*;
        let message = match &mut self {
            Shape(message)
            | DType(message)
            | Index(message)
            | Axis(message)
            | Value(message)
            | Overflow(message)
            | Device(message)
            | Borrowed(message)
            | ReadOnly(message)
            | OutOfMemory(message)
            | Unsupported(message)
            | Io { message, .. }
            | Format(message)
            | Driver(message)
            | Interrupted(message) => message,
            // It names a place in a text and no operation.
            Formula { .. } => return self,
        };
        if let Some((_, what)) = message.split_once(": ") {
            *message = format!("{operation}: {what}");
        }
        self
    }

    /// A [`Error::Formula`], with its position in the text where there is one.
    #[cold]
    pub fn formula(message: impl Display, position: Option<usize>) -> Error {
        Error::Formula { message: message.to_string(), position }
    }
}

/// Shapes as people write them: `(3, 4)`, `(5,)`, `()`.
///
/// ```
/// assert_eq!(tilework_error::tuple(&[3, 4]), "(3, 4)");
/// assert_eq!(tilework_error::tuple(&[5]), "(5,)");
/// ```
pub fn tuple<T: Display>(values: &[T]) -> String {
    match values {
        [one] => format!("({one},)"),
        _ => {
            let inner: Vec<String> = values.iter().map(T::to_string).collect();
            format!("({})", inner.join(", "))
        }
    }
}
