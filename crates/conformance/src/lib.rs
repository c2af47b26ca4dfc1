//! Every behaviour once, as functions of a device, run for every device.
//!
//! A suite is a function of a [`Device`]; what it computes there is held against the reference
//! backend, which is the rows themselves, or against values that none of us computed. A device
//! joins by one line in `tests/devices.rs`.

#![forbid(unsafe_code)]

pub mod compare;
pub mod layouts;
pub mod linalg;
pub mod maps;
pub mod movement;
pub mod pairs;
pub mod pairs_random;
pub mod pairs_sizes;
pub mod reductions;
pub mod values;

pub use tilework::{Array, DType, Device, Error, Result};
