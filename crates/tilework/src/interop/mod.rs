//! Arrays to and from other crates, each behind a feature of its name.
//!
//! May assume nothing of what comes in. Called by users who turn the feature on: `ndarray` for
//! conversions, `serde` for any format that serde has.

#[cfg(feature = "ndarray")]
mod ndarray;
#[cfg(feature = "serde")]
pub(crate) mod serde;
