//! An n-dimensional strided array with interchangeable backends, and map-reduce over pairs.
