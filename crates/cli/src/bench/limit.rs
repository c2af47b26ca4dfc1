//! The time that the machine itself needs for a row: its multiply-adds in registers, or its bytes
//! through as many streams. Measured beside the contestants, in the same rounds.

use tilework_cpu::limits::{Streams, multiply_adds};

use super::clock::window;

/// What a row asks of the machine at least.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Need {
    /// So many operations of multiply-adds.
    MultiplyAdds { double: bool, flops: f64 },
    /// So many bytes read from each source, and written.
    Streams { sources: usize, source_bytes: usize, target_bytes: usize },
}

impl Need {
    /// Whether memory is what limits: such a row also passes by its share of the limit.
    pub(crate) fn is_memory(self) -> bool {
        matches!(self, Need::Streams { .. })
    }
}

/// A limit with its arrays allocated.
pub(crate) enum Limit {
    /// See [`Need::MultiplyAdds`].
    Arithmetic { double: bool, flops: f64 },
    /// See [`Need::Streams`].
    Memory(Streams),
}

impl Limit {
    pub(crate) fn new(need: Need) -> Limit {
        match need {
            Need::MultiplyAdds { double, flops } => Limit::Arithmetic { double, flops },
            Need::Streams { sources, source_bytes, target_bytes } => {
                Limit::Memory(Streams::new(sources, source_bytes, target_bytes))
            }
        }
    }

    /// Seconds for the row at the machine's rate, if this machine's is known.
    pub(crate) fn time(&mut self, length: f64) -> Option<f64> {
        match self {
            Limit::Arithmetic { double, flops } => {
                let mut done = 0.0;
                let seconds = window(length, &mut || done = multiply_adds(*double));
                (done > 0.0).then(|| seconds * *flops / done)
            }
            // Whichever stores are faster at this size.
            Limit::Memory(streams) => {
                let ordinary = window(length, &mut || streams.run(false));
                let past_caches = window(length, &mut || streams.run(true));
                Some(ordinary.min(past_caches))
            }
        }
    }
}
