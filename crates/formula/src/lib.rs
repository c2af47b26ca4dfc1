//! Symbolic formulas: parse, print, check, simplify, differentiate, lower to a tape.
