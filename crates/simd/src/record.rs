//! A vector that records: mathematics on it writes a program instead of running.
//!
//! The functions of [`math`](crate::math) are generic over [`Vector`], so a function run on a
//! [`Recorded`] leaves the very instructions that the compiled kernel of the same level runs, and
//! whoever assembles them gets the same bits. [`recording`] collects the instructions of a closure,
//! each once; `function` finds a recorded one by name. Called by the JIT of the CPU backend.

use std::cell::RefCell;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::ops::{Add, BitAnd, BitOr, Div, Mul, Neg, Not, Sub};

use crate::Elem;
use crate::functions::each_function;
use crate::math::{erf as error, exp32, exp64, inverse32, inverse64, log32, log64, pair, root};
use crate::twin::Twin;
use crate::vector::{Real, Single, Vector, estimate_ops, exponent_ops};

/// Names the result of an instruction: its place in the program.
pub type Value = u32;

/// Stands in the place of operands that an instruction has not.
pub const NONE: Value = Value::MAX;

/// What an instruction does with its operands, lane by lane; named as in [`Vector`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the methods of `Vector` say what they mean")]
pub enum Op {
    /// A bit pattern in all lanes.
    Bits(u64),
    /// A value from outside, by a number of whoever records.
    Leaf(u32),
    Add,
    Sub,
    Mul,
    Div,
    Fma,
    Fms,
    Fnma,
    Sqrt,
    Min,
    Max,
    Round,
    Floor,
    Ceil,
    Trunc,
    Fract,
    Scalef,
    /// A scaling of the second operand by the third where a mask says so, 0 elsewhere.
    ScalefWhere,
    /// The mantissa in [0.75, 1.5) of the magnitude, and the exponent as a number.
    Mantissa,
    Exponent,
    RcpEst,
    RsqrtEst,
    And,
    Or,
    Xor,
    AndNot,
    Shl(u32),
    Shr(u32),
    AddInt,
    SubInt,
    /// The lower and the upper half of the lanes as `f64`, and both back.
    WidenLow,
    WidenHigh,
    Narrow,
    Select,
    Lt,
    Le,
    /// Not less, so true for NaN.
    NotLess,
    Eq,
    Unordered,
    SignMask,
    MaskAnd,
    MaskOr,
    MaskNot,
}

impl Op {
    /// Whether the result is a mask.
    pub fn gives_mask(self) -> bool {
        use Op::*;
        matches!(self, Lt | Le | NotLess | Eq | Unordered | SignMask | MaskAnd | MaskOr | MaskNot)
    }
}

/// One instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Instruction {
    /// What it does.
    pub op: Op,
    /// What its lanes are; of a narrowing, what they become.
    pub elem: Elem,
    /// Earlier results, or [`NONE`].
    pub args: [Value; 3],
}

#[derive(Default)]
struct Tape {
    instructions: Vec<Instruction>,
    known: HashMap<Instruction, Value>,
}

thread_local! {
    static TAPE: RefCell<Tape> = RefCell::default();
}

/// The instructions that `f` records, each after those it reads, and what `f` gives.
pub fn recording<R>(f: impl FnOnce() -> R) -> (Vec<Instruction>, R) {
    TAPE.take();
    let result = f();
    (TAPE.take().instructions, result)
}

fn push(op: Op, elem: Elem, args: [Value; 3]) -> Value {
    TAPE.with_borrow_mut(|tape| {
        let instruction = Instruction { op, elem, args };
        *tape.known.entry(instruction).or_insert_with(|| {
            tape.instructions.push(instruction);
            (tape.instructions.len() - 1) as Value
        })
    })
}

/// Which level's instructions are recorded.
pub trait Set: Copy + 'static {}

/// Those of AVX2.
#[derive(Debug, Clone, Copy)]
pub struct Narrow;
/// Those of AVX-512.
#[derive(Debug, Clone, Copy)]
pub struct Wide;

impl Set for Narrow {}
impl Set for Wide {}

/// A value of a program that is being recorded.
#[derive(Debug)]
pub struct Recorded<E, S> {
    value: Value,
    of: PhantomData<(E, S)>,
}

impl<E, S> Clone for Recorded<E, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E, S> Copy for Recorded<E, S> {}

/// A mask of a program that is being recorded.
#[derive(Debug, Clone, Copy)]
pub struct Mask(Elem, Value);

/// An element type as data.
pub trait Lane: Real {
    /// Its name.
    const ELEM: Elem;
    /// The exponent of the smallest normal number.
    const LEAST_EXPONENT: f64;
    /// The bits of a number.
    fn bits_of(x: f64) -> u64;
}

impl Lane for f32 {
    const ELEM: Elem = Elem::F32;
    const LEAST_EXPONENT: f64 = -126.0;
    fn bits_of(x: f64) -> u64 {
        u64::from((x as f32).to_bits())
    }
}

impl Lane for f64 {
    const ELEM: Elem = Elem::F64;
    const LEAST_EXPONENT: f64 = -1022.0;
    fn bits_of(x: f64) -> u64 {
        x.to_bits()
    }
}

impl<E: Lane, S: Set> Recorded<E, S> {
    fn new(value: Value) -> Self {
        Recorded { value, of: PhantomData }
    }

    fn op(op: Op, args: &[Value]) -> Self {
        let arg = |k: usize| args.get(k).copied().unwrap_or(NONE);
        Recorded::new(push(op, E::ELEM, [arg(0), arg(1), arg(2)]))
    }

    fn test(op: Op, a: Value, b: Value) -> Mask {
        Mask(E::ELEM, push(op, E::ELEM, [a, b, NONE]))
    }

    /// A value from outside.
    pub fn leaf(number: u32) -> Self {
        Recorded::op(Op::Leaf(number), &[])
    }

    /// Its place in the program.
    pub fn value(self) -> Value {
        self.value
    }
}

impl Mask {
    /// Its place in the program.
    pub fn value(self) -> Value {
        self.1
    }
}

impl BitAnd for Mask {
    type Output = Mask;
    fn bitand(self, b: Mask) -> Mask {
        Mask(self.0, push(Op::MaskAnd, self.0, [self.1, b.1, NONE]))
    }
}

impl BitOr for Mask {
    type Output = Mask;
    fn bitor(self, b: Mask) -> Mask {
        Mask(self.0, push(Op::MaskOr, self.0, [self.1, b.1, NONE]))
    }
}

impl Not for Mask {
    type Output = Mask;
    fn not(self) -> Mask {
        Mask(self.0, push(Op::MaskNot, self.0, [self.1, NONE, NONE]))
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident)*) => {
        $(impl<E: Lane, S: Set> $trait for Recorded<E, S> {
            type Output = Self;
            fn $method(self, b: Self) -> Self {
                Recorded::op(Op::$trait, &[self.value, b.value])
            }
        })*
    };
}
operators! { Add add Sub sub Mul mul Div div }

impl<E: Lane, S: Set> Neg for Recorded<E, S>
where
    Recorded<E, S>: Vector,
{
    type Output = Self;
    fn neg(self) -> Self {
        self.xor(Self::lit(-0.0))
    }
}

macro_rules! methods {
    ($($method:ident = $op:ident($($b:ident)*);)*) => {
        $(fn $method(self $(, $b: Self)*) -> Self {
            Recorded::op(Op::$op, &[self.value $(, $b.value)*])
        })*
    };
}

macro_rules! tests {
    ($($method:ident = $op:ident;)*) => {
        $(fn $method(self, b: Self) -> Mask {
            Recorded::<Self::Elem, Narrow>::test(Op::$op, self.value, b.value)
        })*
    };
}

/// The instructions that all levels have.
macro_rules! common {
    () => {
        type Mask = Mask;

        fn lit(x: f64) -> Self {
            Recorded::op(Op::Bits(<Self::Elem as Lane>::bits_of(x)), &[])
        }
        fn bits(b: u64) -> Self {
            let all = if <Self::Elem as Lane>::ELEM == Elem::F32 { b & 0xFFFF_FFFF } else { b };
            Recorded::op(Op::Bits(all), &[])
        }
        methods! {
            mul_add = Fma(b c); fma = Fma(b c); fms = Fms(b c); fnma = Fnma(b c);
            neg_mul_add = Fnma(b c); sqrt = Sqrt(); min = Min(b); max = Max(b);
            round = Round(); floor = Floor(); ceil = Ceil(); trunc = Trunc();
            rcp_est = RcpEst(); rsqrt_est = RsqrtEst();
            and = And(b); or = Or(b); xor = Xor(b); and_not = AndNot(b);
            add_int = AddInt(b); sub_int = SubInt(b);
        }
        tests! { lt = Lt; le = Le; eq = Eq; unordered = Unordered; }
        fn sign_mask(self) -> Mask {
            Recorded::<Self::Elem, Narrow>::test(Op::SignMask, self.value, NONE)
        }
        fn select(m: Mask, a: Self, b: Self) -> Self {
            Recorded::op(Op::Select, &[m.1, a.value, b.value])
        }
        fn shl<const N: u32>(self) -> Self {
            Recorded::op(Op::Shl(N), &[self.value])
        }
        fn shr<const N: u32>(self) -> Self {
            Recorded::op(Op::Shr(N), &[self.value])
        }
    };
}

/// The instructions that AVX-512 has beyond.
macro_rules! wide {
    () => {
        common! {}
        methods! { fract = Fract(); scalef = Scalef(b); }
        fn scalef_floor(self, t: Self) -> Self {
            let least = Self::lit(<Self::Elem as Lane>::LEAST_EXPONENT);
            let normal =
                push(Op::NotLess, <Self::Elem as Lane>::ELEM, [t.value, least.value, NONE]);
            Recorded::op(Op::ScalefWhere, &[normal, self.value, t.value])
        }
        fn frexp(self) -> (Self, Self) {
            let m = Recorded::op(Op::Mantissa, &[self.value]);
            let e = Recorded::op(Op::Exponent, &[self.value]);
            let one = Self::lit(1.0);
            (m, Self::select(m.lt(one), e + one, e))
        }
    };
}

impl Vector for Recorded<f32, Wide> {
    type Elem = f32;
    wide! {}
    estimate_ops!(f32);
}

impl Vector for Recorded<f64, Wide> {
    type Elem = f64;
    wide! {}
    estimate_ops!(f64);
}

impl Vector for Recorded<f32, Narrow> {
    type Elem = f32;
    common! {}
    exponent_ops!(f32);
    fn rcp_fast(self) -> Self {
        let y = self.rcp_est();
        y.fma(self.fnma(y, Self::lit(1.0)), y)
    }
}

impl Vector for Recorded<f64, Narrow> {
    type Elem = f64;
    common! {}
    exponent_ops!(f64);
    fn rcp_fast(self) -> Self {
        let y = self.rcp_est();
        let e = self.fnma(y, Self::lit(1.0));
        y.fma(e.fma(e, e), y)
    }
}

impl<S: Set> Single for Recorded<f32, S>
where
    Recorded<f32, S>: Vector<Elem = f32>,
    Recorded<f64, S>: Vector<Elem = f64>,
{
    type Wide = Twin<Recorded<f64, S>>;
    fn widen(self) -> Self::Wide {
        let half = |op: Op| Recorded::<f64, S>::op(op, &[self.value]);
        Twin(half(Op::WidenLow), half(Op::WidenHigh))
    }
    fn narrow(Twin(low, high): Self::Wide) -> Self {
        Recorded::op(Op::Narrow, &[low.value, high.value])
    }
}

/// A recorded number with the functions of its element type.
pub trait Recording: Vector<Mask = Mask> {
    /// A value from outside.
    fn leaf(number: u32) -> Self;
    /// Its place in the program.
    fn value(self) -> Value;
    /// The function with this name on one or two operands, where it can be recorded: the kernel
    /// of the same name without branches on data.
    fn function(name: &str) -> Option<fn(&[Self]) -> Self>;
}

macro_rules! functions {
    (
        [$($name:ident: $arity:tt, $f32:path, $f64:path;)*]
        [$($single:ident: $of_single:tt, $only:path, $not_recorded:path;)*]
        [$($neither:tt)*]
    ) => {
        functions! { @ f32 Wide $($name $arity $f32;)* $($single $of_single $only;)* }
        functions! { @ f32 Narrow $($name $arity $f32;)* $($single $of_single $only;)* }
        functions! { @ f64 Wide $($name $arity $f64;)* }
        functions! { @ f64 Narrow $($name $arity $f64;)* }
    };
    (@ $E:ident $S:ident $($name:ident $arity:tt $f:path;)*) => {
        impl Recording for Recorded<$E, $S> {
            fn leaf(number: u32) -> Self {
                Recorded::leaf(number)
            }
            fn value(self) -> Value {
                self.value
            }
            fn function(name: &str) -> Option<fn(&[Self]) -> Self> {
                match name {
                    $(stringify!($name) => Some(|x| functions!(@call $arity $f, x)),)*
                    _ => None,
                }
            }
        }
    };
    (@call 1 $f:path, $x:ident) => { $f($x[0]) };
    (@call 2 $f:path, $x:ident) => { $f($x[0], $x[1]) };
}

each_function!(functions);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_of_pairs_is_nine_instructions() {
        let (program, _) = recording(|| {
            pair::exp2_pair32(Recorded::<f32, Wide>::leaf(0));
        });
        let runs = |i: &&Instruction| !matches!(i.op, Op::Bits(_) | Op::Leaf(_));
        assert_eq!(program.iter().filter(runs).count(), 9);
    }
}
