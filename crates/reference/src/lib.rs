//! The definition of every request, in obvious loops.
