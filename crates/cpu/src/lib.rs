//! The native CPU backend: instruction sets, threads, kernels.

pub mod isa;
