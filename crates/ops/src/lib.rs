//! The vocabulary of tilework: dtypes, promotion, scalars, the table of operations, the monoids of reductions.
