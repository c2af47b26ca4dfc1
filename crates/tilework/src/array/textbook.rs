//! The two textbook matrix products by name: three loops, and tiles.
//!
//! For comparison and for teaching; [`Array::matmul`] is faster than both. They work on arrays, and on
//! flat buffers with their sizes beside them, as the needle interface has them. A backend knows them
//! as kernels of the `Matmul` request.

use tilework_backend::{Matmul, MatmulKernel, Request};
use tilework_error::{Error, Result, tuple};

use super::Array;
use super::operands::{Arg, common_device};

impl Array {
    /// The product by the textbook's three loops, for two axes each.
    pub fn matmul_naive(&self, other: &Array) -> Result<Array> {
        self.matmul_by(other, MatmulKernel::Naive)
    }
}

/// The textbook's tiled product on arrays of tiles: `[m/t][k/t][t][t]` by `[k/t][n/t][t][t]`.
///
/// Each tile of the result is the sum of products of two tiles, each of which lies in one piece: the
/// aligned inner product that the textbook builds everything on.
pub fn matmul_tiled(a: &Array, b: &Array) -> Result<Array> {
    common_device("matmul_tiled", &[Arg::Array(a), Arg::Array(b)])?;
    let (&[rows, inner, t, t1], &[inner1, columns, t2, t3]) = (a.shape(), b.shape()) else {
        return Err(Error::shape("matmul_tiled", "operands have four axes: [rows][columns][t][t]"));
    };
    if a.dtype() != b.dtype() {
        let message = format!("tiles of {} and {} do not match", a.dtype(), b.dtype());
        return Err(Error::dtype("matmul_tiled", message));
    }
    if inner != inner1 || t != t1 || t != t2 || t != t3 {
        let message = format!("tiles {} and {} do not match", tuple(a.shape()), tuple(b.shape()));
        return Err(Error::shape("matmul_tiled", message));
    }
    let mut fresh = a.device.allocate("matmul_tiled", &[rows, columns, t, t], a.dtype(), false)?;
    let request = Matmul {
        a: a.borrow(),
        b: b.borrow(),
        output: fresh.target(),
        kernel: MatmulKernel::Tiled,
    };
    a.device.run("matmul_tiled", &Request::Matmul(request))?;
    Ok(Array::from_fresh(fresh, a.device))
}

/// `out = a b` by the textbook's three loops on flat buffers: `m * n` elements by `n * p` elements
/// into `m * p`, each row after row.
///
/// ```
/// use tilework::{Array, DType, matmul_naive_flat};
/// let (a, b) = (Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0])?, Array::from_slice(&[1.0f32, -1.0])?);
/// let out = Array::zeros(&[2], DType::Float32)?;
/// matmul_naive_flat(&a, &b, &out, [2, 2, 1])?;
/// assert_eq!(out.to_vec::<f32>()?, [-1.0, -1.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
pub fn matmul_naive_flat(a: &Array, b: &Array, out: &Array, [m, n, p]: [usize; 3]) -> Result<()> {
    let name = "matmul_naive_flat";
    let (left, right) = (folded(name, "a", a, &[m, n])?, folded(name, "b", b, &[n, p])?);
    let target = folded(name, "out", out, &[m, p])?;
    write(name, &left.matmul_naive(&right)?, &target)
}

/// `out = a b` on flat buffers that hold square tiles of `tile * tile` elements, row after row of
/// tiles: `[m/tile][n/tile][tile][tile]` by `[n/tile][p/tile][tile][tile]`.
///
/// ```
/// use tilework::{Array, DType, matmul_tiled_flat};
/// let a = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 0.0, 0.0, 0.0, 1.0])?;
/// let out = Array::zeros(&[4], DType::Float32)?;
/// matmul_tiled_flat(&a, &a, &out, [2, 4, 2], 2)?;
/// assert_eq!(out.to_vec::<f32>()?, [7.0, 10.0, 15.0, 23.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
pub fn matmul_tiled_flat(
    a: &Array,
    b: &Array,
    out: &Array,
    [m, n, p]: [usize; 3],
    tile: usize,
) -> Result<()> {
    let name = "matmul_tiled_flat";
    if tile == 0 || [m, n, p].iter().any(|size| !size.is_multiple_of(tile)) {
        let message = format!("sizes {m}, {n} and {p} are not all multiples of a tile of {tile}");
        return Err(Error::value(name, message));
    }
    let tiles = |rows: usize, columns: usize| [rows / tile, columns / tile, tile, tile];
    let (left, right) = (folded(name, "a", a, &tiles(m, n))?, folded(name, "b", b, &tiles(n, p))?);
    let target = folded(name, "out", out, &tiles(m, p))?;
    write(name, &matmul_tiled(&left, &right)?, &target)
}

/// A flat buffer seen in a shape that takes all of it.
fn folded(operation: &str, what: &str, buffer: &Array, shape: &[usize]) -> Result<Array> {
    let count = shape.iter().try_fold(1usize, |count, &n| count.checked_mul(n));
    let layout = match buffer.ndim() == 1 && Some(buffer.len()) == count {
        true => buffer.layout().reshape(shape)?,
        false => None,
    };
    let layout = layout.ok_or_else(|| {
        let (wanted, found) = (tuple(shape), tuple(buffer.shape()));
        let message = format!("{what} has shape {found} and is no flat buffer of {wanted}");
        Error::shape(operation, message)
    })?;
    buffer.with_layout(layout)
}

fn write(operation: &str, result: &Array, out: &Array) -> Result<()> {
    if result.dtype() != out.dtype() {
        let message = format!("the result is {}, the target {}", result.dtype(), out.dtype());
        return Err(Error::dtype(operation, message));
    }
    out.assign(result)
}
