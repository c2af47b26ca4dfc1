//! Methods that are one instruction, as lists: what the register types of all x86 levels share.
//!
//! Each macro makes methods (or an operator) of the type `$name`, a register in a struct, from pairs
//! `method = intrinsic`. Used inside of their `impl` blocks by `avx2` and `avx512`.

/// An intrinsic without memory operands, called from code that has no feature of its own.
macro_rules! ins {
    ($e:expr) => {{
        // SAFETY: the rule of `Vector`: this is only inlined into functions that have the
        // instruction set of the type enabled.
        unsafe { $e }
    }};
}

/// An operator of two registers.
macro_rules! operator {
    ($name:ident, $trait:ident, $method:ident, $f:ident) => {
        impl $trait for $name {
            type Output = $name;
            #[inline(always)]
            fn $method(self, b: $name) -> $name {
                $name(ins!($f(self.0, b.0)))
            }
        }
    };
}

/// The negative, by the sign bit.
macro_rules! negative {
    ($name:ident) => {
        impl Neg for $name {
            type Output = $name;
            #[inline(always)]
            fn neg(self) -> $name {
                self.xor(Self::lit(-0.0))
            }
        }
    };
}

/// Methods of one register.
macro_rules! unary {
    ($name:ident, $($method:ident = $f:expr;)*) => {
        $(#[inline(always)]
        fn $method(self) -> $name {
            $name(ins!($f(self.0)))
        })*
    };
}

/// Methods of two registers.
macro_rules! binary {
    ($name:ident, $($method:ident = $f:expr;)*) => {
        $(#[inline(always)]
        fn $method(self, b: $name) -> $name {
            $name(ins!($f(self.0, b.0)))
        })*
    };
}

/// Methods of three registers.
macro_rules! ternary {
    ($name:ident, $($method:ident = $f:ident;)*) => {
        $(#[inline(always)]
        fn $method(self, b: $name, c: $name) -> $name {
            $name(ins!($f(self.0, b.0, c.0)))
        })*
    };
}

/// Comparisons, whose intrinsic gives what `$wrap` makes the mask of.
macro_rules! compare {
    ($name:ident, $mask:ident, $wrap:expr, $f:ident, $($method:ident = $op:ident;)*) => {
        $(#[inline(always)]
        fn $method(self, b: $name) -> $mask {
            $wrap(ins!($f::<$op>(self.0, b.0)))
        })*
    };
}

/// Bit operations through the integer view of the register.
macro_rules! integer {
    ($name:ident, $to:ident, $from:ident, $($method:ident = $f:ident;)*) => {
        $(#[inline(always)]
        fn $method(self, b: $name) -> $name {
            $name(ins!($from($f($to(self.0), $to(b.0)))))
        })*
    };
}

pub(crate) use {binary, compare, ins, integer, negative, operator, ternary, unary};

/// How to round, for the instructions that take it as a constant.
pub(crate) mod rounding {
    use std::arch::x86_64::*;
    pub(crate) const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    pub(crate) const DOWN: i32 = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
    pub(crate) const UP: i32 = _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC;
    pub(crate) const ZERO: i32 = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
}
