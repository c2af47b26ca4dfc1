//! Arrays as text, the way NumPy prints them.
//!
//! `{}` is NumPy's `str` and `{:?}` its `repr`. Of a large array only the corners are shown, and
//! only they are fetched: the corners are one strided view, compacted on the device. May assume
//! nothing of the array; where its elements cannot be had (a guard is held elsewhere, a device
//! fails) the text says so instead of failing, since `to_string` would panic. Called by users and
//! by the Python package.

mod digits;
mod number;

use std::fmt;

use tilework_error::{Result, tuple};
use tilework_fork::ForkMutex;
use tilework_layout::Layout;
use tilework_ops::{Complex, DType, Kind, with_element};

use super::Array;

/// How arrays are printed: NumPy's `set_printoptions`.
///
/// ```
/// use tilework::{Array, PrintOptions};
/// let x = Array::from_slice(&[1.0 / 3.0, 2.0])?;
/// assert_eq!(x.to_string(), "[0.33333333 2.        ]");
/// let short = PrintOptions { precision: 2, ..PrintOptions::default() };
/// assert_eq!(x.display(&short).to_string(), "[0.33 2.  ]");
/// assert_eq!(format!("{x:.2}"), "[0.33 2.  ]");
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrintOptions {
    /// Digits after the point, at most.
    pub precision: usize,
    /// Arrays of more elements than this are abbreviated.
    pub threshold: usize,
    /// How many elements at both ends of an axis an abbreviated array shows; at least one.
    pub edge_items: usize,
    /// Where lines are broken.
    pub line_width: usize,
    /// Whether small numbers are printed as zero rather than with exponents.
    pub suppress: bool,
    /// Which numbers have a sign.
    pub sign: Sign,
    /// What `precision` means.
    pub float_mode: FloatMode,
}

/// Which numbers are printed with a sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// Negative ones.
    Negative,
    /// All.
    Always,
    /// Negative ones; positive ones have a space there.
    Space,
}

/// How many digits of real numbers are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FloatMode {
    /// As many as tell the number apart from all others of its dtype, but at most `precision`.
    MaxPrecision,
    /// The same, and all numbers of an array with as many.
    MaxPrecisionEqual,
    /// As many as tell the number apart from all others of its dtype.
    Unique,
    /// Always `precision`.
    Fixed,
}

impl PrintOptions {
    /// What everything is printed with unless [`PrintOptions::set`] says otherwise.
    pub const DEFAULT: PrintOptions = PrintOptions {
        precision: 8,
        threshold: 1000,
        edge_items: 3,
        line_width: 75,
        suppress: false,
        sign: Sign::Negative,
        float_mode: FloatMode::MaxPrecision,
    };

    /// The options in force in this process.
    pub fn current() -> PrintOptions {
        *CURRENT.lock()
    }

    /// Puts these options in force for the whole process.
    ///
    /// ```
    /// use tilework::PrintOptions;
    /// let before = PrintOptions::current();
    /// PrintOptions { line_width: 120, ..before }.set();
    /// assert_eq!(PrintOptions::current().line_width, 120);
    /// # before.set();
    /// ```
    pub fn set(self) {
        *CURRENT.lock() = self;
    }
}

/// An edge that no axis is longer than, twice which is still a number.
const EVERYTHING: usize = usize::MAX / 4;

static CURRENT: ForkMutex<PrintOptions> = ForkMutex::new(PrintOptions::DEFAULT);

impl Default for PrintOptions {
    fn default() -> PrintOptions {
        PrintOptions::DEFAULT
    }
}

/// An array to be printed with options of its own: see [`Array::display`].
#[derive(Clone, Copy)]
pub struct Show<'a> {
    array: &'a Array,
    options: PrintOptions,
}

impl Array {
    /// The array with these options, to be printed by `{}` or `{:?}`.
    pub fn display(&self, options: &PrintOptions) -> Show<'_> {
        Show { array: self, options: *options }
    }
}

impl fmt::Display for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.display(&PrintOptions::current()).fmt(f)
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.display(&PrintOptions::current()), f)
    }
}

impl fmt::Display for Show<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = self.adjusted(f);
        f.write_str(&show.plain().unwrap_or_else(|error| show.failed(&error)))
    }
}

impl fmt::Debug for Show<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = self.adjusted(f);
        f.write_str(&show.with_dtype().unwrap_or_else(|error| show.failed(&error)))
    }
}

impl Show<'_> {
    /// A precision in the format string, `{:.3}`, goes before the options.
    fn adjusted(&self, f: &fmt::Formatter<'_>) -> Self {
        let mut options = self.options;
        // No double has more digits after the point than these.
        options.precision = f.precision().unwrap_or(options.precision).min(1100);
        options.edge_items = options.edge_items.clamp(1, EVERYTHING);
        Show { array: self.array, options }
    }

    fn failed(&self, error: &tilework_error::Error) -> String {
        let (shape, dtype) = (tuple(self.array.shape()), self.array.dtype());
        format!("array(..., shape={shape}, dtype={dtype}) <{error}>")
    }

    /// NumPy's `str`.
    fn plain(&self) -> Result<String> {
        if self.array.ndim() > 0 {
            return self.elements(" ", 0, 0);
        }
        let (scalar, dtype) = (self.array.to_scalar()?, self.array.dtype());
        Ok(match dtype.kind() {
            Kind::Float => number::lone_float(scalar.get(), dtype),
            Kind::Complex => number::lone_complex(scalar.get(), dtype),
            _ => self.elements(" ", 0, 0)?,
        })
    }

    /// NumPy's `repr`.
    fn with_dtype(&self) -> Result<String> {
        let (shape, len) = (self.array.shape(), self.array.len());
        let mut text = String::from("array(");
        let indent = text.len();
        text.push_str(&self.elements(", ", indent, 1)?);
        let mut extras = Vec::new();
        if len == 0 && shape != [0] || len > self.options.threshold {
            extras.push(format!("shape={}", tuple(shape)));
        }
        let dtype = self.array.dtype();
        let implied =
            matches!(dtype, DType::Bool | DType::Int64 | DType::Float64 | DType::Complex128);
        if !implied || len == 0 {
            extras.push(format!("dtype={dtype}"));
        }
        if extras.is_empty() {
            text.push(')');
            return Ok(text);
        }
        text.push(',');
        let extras = format!("{})", extras.join(", "));
        let last_line = text.len() - text.rfind('\n').map_or(0, |at| at + 1);
        if last_line + extras.len() + 1 > self.options.line_width {
            text.push('\n');
            text.push_str(&" ".repeat(indent));
        } else {
            text.push(' ');
        }
        text.push_str(&extras);
        Ok(text)
    }

    /// The brackets and what is in them, beginning at a column and leaving room at the end.
    fn elements(&self, separator: &str, indent: usize, room: usize) -> Result<String> {
        if self.array.is_empty() {
            return Ok("[]".into());
        }
        let cut = self.array.len() > self.options.threshold;
        let edge = if cut { self.options.edge_items } else { EVERYTHING };
        let texts = self.texts(&corners(self.array, edge)?)?;
        let shape: Vec<(usize, bool)> =
            (self.array.shape().iter()).map(|&len| (len.min(2 * edge), len > 2 * edge)).collect();
        let page = Page { separator, edge };
        let width = self.options.line_width.min(EVERYTHING) as isize - room as isize;
        Ok(page.brackets(&mut texts.iter().map(String::as_str), &shape, indent + 1, width))
    }

    /// The elements as texts of one width, in row-major order.
    fn texts(&self, shown: &Array) -> Result<Vec<String>> {
        let (dtype, options) = (shown.dtype(), &self.options);
        Ok(with_element!(dtype, T => {
            let values = shown.to_vec::<T>()?;
            let scalars = values.iter().map(|value| tilework_ops::Scalar::new(*value));
            match dtype.kind() {
                Kind::Bool => {
                    let values: Vec<bool> = scalars.map(|scalar| scalar.get()).collect();
                    number::booleans(&values, self.array.ndim() == 0)
                }
                Kind::Signed => {
                    let values: Vec<i128> = scalars.map(|x| x.get::<i64>().into()).collect();
                    number::integers(&values, options.sign)
                }
                Kind::Unsigned => {
                    let values: Vec<i128> = scalars.map(|x| x.get::<u64>().into()).collect();
                    number::integers(&values, options.sign)
                }
                Kind::Float => {
                    let values: Vec<f64> = scalars.map(|scalar| scalar.get()).collect();
                    number::floats(&values, dtype, options)
                }
                Kind::Complex => {
                    let values: Vec<Complex<f64>> = scalars.map(|scalar| scalar.get()).collect();
                    number::complexes(&values, dtype, options)
                }
            }
        }))
    }
}

/// The elements at both ends of every axis longer than twice `edge`, as one view: such an axis
/// becomes two, of which the outer one jumps from the beginning to the end.
fn corners(array: &Array, edge: usize) -> Result<Array> {
    let (mut shape, mut strides) = (Vec::new(), Vec::new());
    for (&len, &stride) in array.shape().iter().zip(array.strides()) {
        if len > 2 * edge {
            shape.extend([2, edge]);
            strides.extend([stride * (len - edge) as isize, stride]);
        } else if len > 1 {
            // Axes of length one would only use up the number of axes that a layout may have.
            shape.push(len);
            strides.push(stride);
        }
    }
    array.with_layout(Layout::new(&shape, &strides, array.offset())?)
}

/// How the elements are laid out on lines.
struct Page<'a> {
    separator: &'a str,
    /// After so many elements of an abbreviated axis comes the gap.
    edge: usize,
}

impl Page<'_> {
    /// The next elements in brackets. For each axis, how many are shown and whether some are left
    /// out; `indent` is where a new line begins, `width` where it must end.
    fn brackets<'t>(
        &self,
        texts: &mut impl Iterator<Item = &'t str>,
        shape: &[(usize, bool)],
        indent: usize,
        width: isize,
    ) -> String {
        let Some((&(len, gap), inner)) = shape.split_first() else {
            return texts.next().unwrap_or_default().to_string();
        };
        if inner.is_empty() {
            return self.row(texts, len, gap, indent, width);
        }
        let between = format!(
            "{}{}{}",
            self.separator.trim_end(),
            "\n".repeat(inner.len()),
            " ".repeat(indent)
        );
        let mut text = String::from("[");
        for index in 0..len {
            if index > 0 {
                text.push_str(&between);
            }
            if gap && index == self.edge {
                text.push_str("...");
                text.push_str(&between);
            }
            text.push_str(&self.brackets(texts, inner, indent + 1, width - 1));
        }
        text.push(']');
        text
    }

    /// Elements of the last axis, on as many lines as it takes.
    fn row<'t>(
        &self,
        texts: &mut impl Iterator<Item = &'t str>,
        len: usize,
        gap: bool,
        indent: usize,
        width: isize,
    ) -> String {
        // What follows an element on its line is a bracket or the visible part of the separator.
        let width = width - self.separator.trim_end().len().max(1) as isize;
        let (mut text, mut line) = (String::from("["), String::new());
        let mut add = |word: &str, last: bool| {
            // A line that is empty but for its indent gets no shorter by breaking it.
            if (indent + line.len() + word.len()) as isize > width && !line.is_empty() {
                text.push_str(line.trim_end());
                text.push('\n');
                text.push_str(&" ".repeat(indent));
                line.clear();
            }
            line.push_str(word);
            if !last {
                line.push_str(self.separator);
            }
        };
        for index in 0..len {
            if gap && index == self.edge {
                add("...", false);
            }
            add(texts.next().unwrap_or_default(), index + 1 == len);
        }
        text.push_str(&line);
        text.push(']');
        text
    }
}
