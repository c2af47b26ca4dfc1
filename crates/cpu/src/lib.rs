//! The native CPU backend: instruction sets, threads, kernels.

mod backend;
mod copies;
pub mod gemm;
mod index;
pub mod isa;
pub mod limits;
mod map;
mod matmul;
mod nonzero;
mod pairs;
pub mod pool;
mod prefetch;
mod random;
mod reduce;
mod scan;
mod scratch;
mod sort;
mod textbook;

pub use backend::Cpu;
