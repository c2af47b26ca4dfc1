//! Vectors of one instruction set behind a trait, and mathematics on them.
