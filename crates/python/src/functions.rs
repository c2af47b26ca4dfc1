//! The functions of the namespace, by subject, as the array API standard orders them.

pub mod archive;
pub mod creation;
pub mod elementwise;
pub mod extras;
pub mod files;
pub mod info;
pub mod linalg;
pub mod manipulation;
pub mod printing;
pub mod reductions;
pub mod searching;
pub mod textbook;
pub mod types;
