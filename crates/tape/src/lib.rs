//! Straight-line programs over the operations of tilework.
