//! The macro that turns rows into an enum, types, a table and a list of names.
//!
//! A row reads
//!
//! ```text
//! /// One line of documentation.
//! Type name [operands] -> Same | Bool | Part { class: meaning; ... }
//!     cuda "expression";  grad |y, g| [one derivative per operand];  test [domain, ...], tolerance;
//! ```
//!
//! with a meaning for each class (`bool`, `int`, `real`, `complex`) that the operation takes, as an
//! expression over the operands. `int signless:` says that the bits of the result do not depend on
//! whether the operands have a sign; `real calls:` (of any class) that every element takes a function
//! call or a division that no vector unit has. A mark after what it gives says what else is unusual:
//!
//! - `double`: integers enter as float64.
//! - `not_half`: the half types are left out.
//! - `natural`: the last operand of integers is not negative; arrays refuse it otherwise.
//! - `between`: the second operand bounds the first from below and the third from above; a number
//!   beyond all integers of a dtype never binds.
//! - `ordered`: a comparison, which says of two numbers what it says of the bools `a > b` and `a < b`.
//! - `inner`: a meaning for formulas over pairs, which is no method and no function of Python.
//!
//! A derivative list that is empty says that the operation has none.

/// See the module.
macro_rules! ops {
    ($d:tt $(
        $(#[doc = $doc:literal])+
        $Type:ident $name:ident $operands:tt -> $gives:ident $($mark:ident)? {
            $($class:ident $($how:ident)?: $meaning:expr;)+
        }
        cuda $cuda:literal; grad |$y:ident, $g:ident| [$($grad:expr),*];
        test [$($domain:expr),+], $tolerance:expr;
    )+) => {
        /// The operations, one for each row.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Id {
            $($(#[doc = $doc])+ $Type,)+
        }

        /// How many operations there are.
        pub const COUNT: usize = [$(Id::$Type),+].len();

        impl Id {
            /// All operations, in the order of the table.
            pub const ALL: [Id; COUNT] = [$(Id::$Type),+];
        }

        /// The rows, in the order of [`Id`].
        pub static ROWS: [Row; COUNT] = [$(<$Type as Op<{ arity!($operands) }>>::ROW),+];

        /// What a [`Column`] wants, for every operation in the order of [`Id`].
        pub const fn column<C: Column>() -> [C::Cell; COUNT] {
            [$(<C::At<$Type, { arity!($operands) }> as Entry<C::Cell>>::VALUE),+]
        }

        $(
            $(#[doc = $doc])+
            pub struct $Type;

            #[allow(unused_variables)]
            impl Op<{ arity!($operands) }> for $Type {
                type Gives = $gives;

                const ROW: Row = Row {
                    name: stringify!($name),
                    doc: concat!($($doc, "\n"),+),
                    arity: arity!($operands),
                    classes: 0 $(| class_bit!($class))+,
                    gives: <$gives as Gives>::RULE,
                    ints: if marked!(double $($mark)?) { Ints::Double } else { Ints::Least },
                    not_half: marked!(not_half $($mark)?),
                    natural: marked!(natural $($mark)?),
                    ordered: marked!(ordered $($mark)?),
                    between: marked!(between $($mark)?),
                    signless: false $(| is_signless!($($how)?))+,
                    calls: 0 $(| calls_bit!($class $($how)?))+,
                    cuda: $cuda,
                    grad: {
                        fn grad<'a>(x: &[Term<'a>], $y: Term<'a>, $g: Term<'a>) -> Vec<Term<'a>> {
                            let $operands = operands(x);
                            vec![$($grad),*]
                        }
                        grad
                    },
                    domain: &[$($domain),+],
                    tolerance: $tolerance,
                };

                $(meaning! { $class $operands $gives $meaning })+
            }
        )+

        /// Calls a macro with one bracket per operation:
        /// `callback! { arguments [doc Type name [operands] Gives mark] ... }`, where few have a mark.
        ///
        /// For what needs names (methods, Python functions); everything else reads the rows.
        #[macro_export]
        macro_rules! each_op {
            ($d callback:ident $d($d arguments:tt)*) => {
                $d callback! { $d($d arguments)*
                    $([[$($doc)+] $Type $name $operands $gives $($mark)?])+
                }
            };
        }
    };
}

macro_rules! arity {
    ([$a:ident]) => {
        1
    };
    ([$a:ident, $b:ident]) => {
        2
    };
    ([$a:ident, $b:ident, $c:ident]) => {
        3
    };
}

macro_rules! class_bit {
    (bool) => {
        Class::Bool as u8
    };
    (int) => {
        Class::Int as u8
    };
    (real) => {
        Class::Real as u8
    };
    (complex) => {
        Class::Complex as u8
    };
}

macro_rules! is_signless {
    (signless) => {
        true
    };
    ($($other:ident)?) => {
        false
    };
}

macro_rules! calls_bit {
    ($class:ident calls) => {
        class_bit!($class)
    };
    ($class:ident $($other:ident)?) => {
        0
    };
}

/// Whether a row has this mark.
macro_rules! marked {
    (double double) => {
        true
    };
    (not_half not_half) => {
        true
    };
    (natural natural) => {
        true
    };
    (ordered ordered) => {
        true
    };
    (between between) => {
        true
    };
    ($mark:ident $($other:ident)?) => {
        false
    };
}

macro_rules! meaning {
    (bool $operands:tt $gives:ident $meaning:expr) => {
        #[inline(always)]
        fn boolean($operands: [bool; arity!($operands)]) -> <$gives as Gives>::Of<bool> {
            $meaning
        }
    };
    (int $operands:tt $gives:ident $meaning:expr) => {
        #[inline(always)]
        fn int<T: Int>($operands: [T; arity!($operands)]) -> <$gives as Gives>::Of<T> {
            $meaning
        }
    };
    (real $operands:tt $gives:ident $meaning:expr) => {
        #[inline(always)]
        fn real<T: Real>($operands: [T; arity!($operands)]) -> <$gives as Gives>::Of<T> {
            $meaning
        }
    };
    (complex $operands:tt $gives:ident $meaning:expr) => {
        #[inline(always)]
        fn complex<T: Real>(
            $operands: [Complex<T>; arity!($operands)],
        ) -> <$gives as Gives>::Of<Complex<T>> {
            $meaning
        }
    };
}
