//! `+`, `-`, `*`, `/`, `%`, `&`, `|`, `^`, `<<`, `>>`, unary `-` and `!`, each giving a `Result`.
//!
//! Numbers may stand on either side. Methods in place (`x.add_assign(&y)?`) write to `x`, whose
//! dtype stays.

use std::ops;

use tilework_error::Result;
use tilework_ops::Id;

use super::Array;
use super::map::{apply, apply_into};
use super::operands::Arg;

macro_rules! binary {
    ($($trait:ident $method:ident $id:ident $assign:ident),*) => {
        $(
            impl<'b, B: Into<Arg<'b>>> ops::$trait<B> for &Array {
                type Output = Result<Array>;
                fn $method(self, other: B) -> Result<Array> {
                    apply(Id::$id, &[Arg::Array(self), other.into()])
                }
            }
            impl<'b, B: Into<Arg<'b>>> ops::$trait<B> for Array {
                type Output = Result<Array>;
                fn $method(self, other: B) -> Result<Array> {
                    apply(Id::$id, &[Arg::Array(&self), other.into()])
                }
            }
            binary! { @left $trait $method $id bool i32 i64 usize f32 f64 }
        )*
        /// Operators in place. The result is cast to this array's dtype, which must not be of a
        /// lower kind; an operand that overlaps this array is read before anything is written.
        impl Array {
            $(
                #[doc = concat!("Replaces this array by the result of `", stringify!($method), "`.")]
                pub fn $assign<'b>(&self, other: impl Into<Arg<'b>>) -> Result<()> {
                    apply_into(Id::$id, &[Arg::Array(self), other.into()], self)
                }
            )*
        }
    };
    (@left $trait:ident $method:ident $id:ident $($number:ty)*) => {$(
        impl ops::$trait<&Array> for $number {
            type Output = Result<Array>;
            fn $method(self, other: &Array) -> Result<Array> {
                apply(Id::$id, &[Arg::from(self), Arg::Array(other)])
            }
        }
    )*};
}

binary!(
    Add add Add add_assign,
    Sub sub Subtract sub_assign,
    Mul mul Multiply mul_assign,
    Div div Divide div_assign,
    Rem rem Remainder rem_assign,
    BitAnd bitand BitwiseAnd bitand_assign,
    BitOr bitor BitwiseOr bitor_assign,
    BitXor bitxor BitwiseXor bitxor_assign,
    Shl shl LeftShift shl_assign,
    Shr shr RightShift shr_assign
);

impl ops::Neg for &Array {
    type Output = Result<Array>;
    fn neg(self) -> Result<Array> {
        self.negative()
    }
}

impl ops::Not for &Array {
    type Output = Result<Array>;
    fn not(self) -> Result<Array> {
        self.bitwise_invert()
    }
}
