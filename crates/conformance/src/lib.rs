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
pub mod pairs_bounds;
pub mod pairs_centred;
pub mod pairs_course;
pub mod pairs_golden;
pub mod pairs_gradients;
pub mod pairs_halves;
pub mod pairs_kernels;
pub mod pairs_nearest;
pub mod pairs_parts;
pub mod pairs_random;
pub mod pairs_shapes;
pub mod pairs_sizes;
pub mod pairs_strict;
pub mod pairs_strided;
pub mod pairs_weights;
pub mod reductions;
pub mod values;

use std::sync::{Mutex, PoisonError};

pub use tilework::{Array, DType, Device, Error, Result};

/// Works on each item, on all cores: a device may compile a kernel for it.
pub fn each<T, Items>(items: Items, work: impl Fn(T) + Sync)
where
    Items: IntoIterator<Item = T>,
    Items::IntoIter: Send,
{
    let items = Mutex::new(items.into_iter());
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(item) = next() {
                    work(item);
                }
            });
        }
    });
}

/// Runs a suite where there is the device. Where there is none, that is said and nothing is checked;
/// but where the system shows a card, or `TILEWORK_REQUIRE_CUDA` is 1, it is a failure, so that a
/// broken driver does not pass for no card.
pub fn on(device: Result<Device>, suite: impl FnOnce(Device)) {
    let why = match device {
        Ok(device) => return suite(device),
        Err(why) => why,
    };
    let required = std::env::var_os("TILEWORK_REQUIRE_CUDA").is_some_and(|value| value == "1");
    let shown = std::path::Path::new("/dev/nvidia0").exists();
    assert!(!required && !shown, "there should be a device: {why}");
    println!("not checked: {why}");
}
