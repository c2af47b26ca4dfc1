//! Views one by one, with the answers that NumPy gives (its strides divided by the item size).
//!
//! Assumes only the public API. The properties that hold for all layouts are in `properties.rs`.

use tilework_error::{Error, Result};
use tilework_layout::{
    Index, Layout, MAX_AXES, broadcast_shapes, normalize_axes, positions, resolve_shape, s,
};

fn contiguous(shape: &[usize]) -> Layout {
    Layout::contiguous(shape).unwrap()
}

#[track_caller]
fn check(layout: Layout, shape: &[usize], strides: &[isize], offset: usize) {
    assert_eq!((layout.shape(), layout.strides(), layout.offset()), (shape, strides, offset));
}

#[track_caller]
fn fails<T: std::fmt::Debug>(result: Result<T>, message: &str) {
    assert_eq!(result.unwrap_err().to_string(), message);
}

#[test]
fn construction() {
    check(Layout::scalar(), &[], &[], 0);
    check(contiguous(&[2, 3, 4]), &[2, 3, 4], &[12, 4, 1], 0);
    // NumPy: np.empty((2, 0, 3)).strides == (24, 24, 8)
    check(contiguous(&[2, 0, 3]), &[2, 0, 3], &[3, 3, 1], 0);
    let half = 1 << 62;
    assert!(Layout::contiguous(&[half, 2]).is_err());
    assert!(Layout::contiguous(&[half, 0, 2]).is_err());
    assert!(Layout::contiguous(&[half, 0]).is_ok());
    assert!(Layout::contiguous(&[1; MAX_AXES]).is_ok());
    fails(
        Layout::contiguous(&[1; 65]),
        "layout: 65 axes are more than the 64 that an array can have",
    );
    assert!(Layout::new(&[2], &[1, 1], 0).is_err());
    assert!(Layout::new(&[3], &[isize::MAX], 0).is_err());
    assert!(Layout::new(&[2], &[isize::MIN], usize::MAX).is_err());
    assert!(Layout::new(&[1, 0], &[isize::MIN, isize::MAX], 7).is_ok());
    fails(
        Layout::new(&[3], &[-1], 1),
        "layout: shape (3,) with strides (-1,) from offset 1 leaves every block",
    );
    check(contiguous(&[2]).with_offset(5).unwrap(), &[2], &[1], 5);
}

#[test]
fn questions() {
    let a = contiguous(&[3, 4]);
    assert!(a.is_contiguous() && !a.is_f_contiguous() && a.is_compact(12) && !a.is_compact(13));
    let t = a.transpose();
    assert!(!t.is_contiguous() && t.is_f_contiguous());
    let row = a.slice(&s![1..2, ..]).unwrap();
    assert!(row.is_contiguous() && row.is_f_contiguous() && !row.is_compact(4));
    assert!(a.slice(&s![..0, ..;2]).unwrap().is_contiguous());
    assert_eq!(a.flip(Some(&[0, 1])).unwrap().span(), Some((0, 11)));
    assert_eq!(contiguous(&[0]).span(), None);
    assert!(a.fits(12) && !a.fits(11) && contiguous(&[0]).fits(0));
    assert!(!contiguous(&[0]).with_offset(1).unwrap().fits(0));
    assert_eq!(t.position(&[3, 2]), 11);
}

#[test]
fn needle_fault_permuted_slice_keeps_its_offset() {
    let a = contiguous(&[4, 5]).slice(&s![1.., 2..]).unwrap();
    let t = a.permute(&[1, 0]).unwrap();
    check(t, &[3, 3], &[1, 5], 7);
}

#[test]
fn needle_fault_as_strided_keeps_the_offset() {
    let a = contiguous(&[4, 5]).slice(&s![1..]).unwrap();
    check(a.as_strided(&[5, 3], &[1, 5], 0, 20).unwrap(), &[5, 3], &[1, 5], 5);
    check(a.as_strided(&[2], &[1], -5, 20).unwrap(), &[2], &[1], 0);
    assert!(a.as_strided(&[2], &[1], -6, 20).is_err());
    fails(
        a.as_strided(&[4, 5], &[5, 1], 0, 20),
        "as_strided: shape (4, 5) with strides (5, 1) from offset 5 reaches beyond the 20 elements \
         of the block",
    );
    assert!(a.as_strided(&[2], &[isize::MAX], isize::MAX, 20).is_err());
}

#[test]
fn needle_fault_negative_slice_start_works() {
    let a = contiguous(&[10]);
    check(a.slice(&s![-3..]).unwrap(), &[3], &[1], 7);
    check(a.slice(&s![-3..-1]).unwrap(), &[2], &[1], 7);
    check(a.slice(&s![-30..2]).unwrap(), &[2], &[1], 0);
}

#[test]
fn slicing() {
    let a = contiguous(&[10]);
    let picks = |index: Index| positions(&a.slice(&[index]).unwrap()).collect::<Vec<_>>();
    let slice = |start, stop, step| picks(Index::Slice { start, stop, step });
    assert_eq!(slice(None, None, -3), [9, 6, 3, 0]);
    assert_eq!(slice(Some(8), Some(2), -2), [8, 6, 4]);
    assert_eq!(slice(Some(100), Some(-100), -4), [9, 5, 1]);
    assert_eq!(slice(Some(-100), None, 4), [0, 4, 8]);
    assert_eq!(slice(Some(5), Some(5), 1), []);
    assert_eq!(slice(Some(2), Some(8), -1), []);
    assert_eq!(slice(Some(isize::MIN), Some(isize::MAX), isize::MAX), [0]);
    assert_eq!(slice(Some(isize::MAX), Some(isize::MIN), isize::MIN), [9]);
    assert_eq!(slice(Some(0), None, -1), [0]);

    let cube = contiguous(&[2, 3, 4]);
    check(cube.slice(&s![1, .., 2]).unwrap(), &[3], &[4], 14);
    check(cube.slice(&s![Ellipsis, -1]).unwrap(), &[2, 3], &[12, 4], 3);
    check(cube.slice(&s![NewAxis, 0, Ellipsis]).unwrap(), &[1, 3, 4], &[0, 4, 1], 0);
    check(cube.slice(&s![.., 1, Ellipsis]).unwrap(), &[2, 4], &[12, 1], 4);
    check(cube.slice(&s![Ellipsis, .., .., ..]).unwrap(), &[2, 3, 4], &[12, 4, 1], 0);
    check(cube.slice(&s![..;-1, ..2, 1..;2]).unwrap(), &[2, 2, 2], &[-12, 4, 2], 13);
    check(cube.slice(&s![]).unwrap(), &[2, 3, 4], &[12, 4, 1], 0);
    // What is empty stays where it was.
    check(cube.slice(&s![1, 3.., ..]).unwrap(), &[0, 4], &[4, 1], 0);

    fails(cube.slice(&s![0, 5]), "index: 5 is out of bounds for axis 1 with size 3");
    fails(cube.slice(&s![-3]), "index: -3 is out of bounds for axis 0 with size 2");
    fails(cube.slice(&s![0, 0, 0, 0]), "index: 4 indices are too many for 3 axes");
    fails(cube.slice(&s![Ellipsis, Ellipsis]), "index: 2 ellipses; there can be only one");
    fails(cube.slice(&s![.., ..;0]), "index: the step on axis 1 is zero");
    assert!(matches!(cube.slice(&s![..;0]), Err(Error::Value(_))));
    assert!(matches!(cube.slice(&s![isize::MIN]), Err(Error::Index(_))));
    assert!(matches!(cube.slice(&s![u64::MAX]), Err(Error::Index(_))));
    assert!(matches!(cube.slice(&[Index::NewAxis; 62]), Err(Error::Shape(_))));
}

#[test]
fn macro_takes_expressions_of_all_integers() {
    let (n, k) = (3usize, -1i64);
    let expected = [
        Index::Slice { start: None, stop: Some(3), step: 1 },
        Index::At(-1),
        Index::Slice { start: Some(1), stop: Some(4), step: 2 },
        Index::NewAxis,
        Index::Ellipsis,
        Index::At(4),
    ];
    assert_eq!(s![..n, k, n - 2..n + 1;2, NewAxis, Ellipsis, Index::At(4),], expected);
    assert_eq!(s![].len(), 0);
}

#[test]
fn order_of_axes() {
    let a = contiguous(&[2, 3, 4, 5]);
    check(a.permute(&[3, 1, 0, 2]).unwrap(), &[5, 3, 2, 4], &[1, 20, 60, 5], 0);
    check(a.swap_axes(0, 2).unwrap(), &[4, 3, 2, 5], &[5, 20, 60, 1], 0);
    assert_eq!(a.move_axis(0, -1).unwrap().shape(), [3, 4, 5, 2]);
    assert_eq!(a.move_axis(-1, 0).unwrap().shape(), [5, 2, 3, 4]);
    // NumPy: np.moveaxis(x, [0, 1], [-1, -2]).shape == (4, 5, 3, 2)
    assert_eq!(a.move_axes(&[0, 1], &[-1, -2]).unwrap().shape(), [4, 5, 3, 2]);
    assert_eq!(a.move_axes(&[3, 0], &[0, 2]).unwrap().shape(), [5, 3, 2, 4]);
    fails(a.permute(&[0, 1]), "permute: axes (0, 1) do not name every axis of shape (2, 3, 4, 5)");
    fails(a.permute(&[0, 1, 1, 2]), "permute: axis 1 is named twice in (0, 1, 1, 2)");
    fails(a.swap_axes(0, 4), "swap_axes: axis 4 is out of bounds for an array with 4 axes");
    fails(a.move_axis(4, 0), "move_axes: axis 4 is out of bounds for an array with 4 axes");
    assert!(a.move_axes(&[0], &[]).is_err());
    assert!(normalize_axes("sum", &[isize::MIN], 3).is_err());
}

#[test]
fn axes_of_size_one() {
    let a = contiguous(&[3, 4]);
    check(a.expand_dims(-1).unwrap(), &[3, 4, 1], &[4, 1, 0], 0);
    check(a.expand_dims(1).unwrap(), &[3, 1, 4], &[4, 0, 1], 0);
    fails(a.expand_dims(3), "expand_dims: axis 3 is out of bounds for an array with 3 axes");
    assert!(contiguous(&[1; 64]).expand_dims(0).is_err());
    let b = contiguous(&[1, 3, 1]);
    assert_eq!(b.squeeze(None).unwrap().shape(), [3]);
    assert_eq!(b.squeeze(Some(&[0, -1])).unwrap().shape(), [3]);
    fails(b.squeeze(Some(&[1])), "squeeze: axis 1 of shape (1, 3, 1) has size 3, not 1");
}

#[test]
fn flipping_and_diagonals() {
    let a = contiguous(&[3, 4]);
    check(a.flip(Some(&[0, 1])).unwrap(), &[3, 4], &[-4, -1], 11);
    assert!(a.flip(Some(&[0, 0])).is_err());
    check(contiguous(&[0, 3]).flip(Some(&[0, 1])).unwrap(), &[0, 3], &[-3, -1], 0);

    check(a.diagonal(0, 0, 1).unwrap(), &[3], &[5], 0);
    check(a.diagonal(2, 0, 1).unwrap(), &[2], &[5], 2);
    check(a.diagonal(-1, 0, 1).unwrap(), &[2], &[5], 4);
    check(a.diagonal(1, 1, 0).unwrap(), &[2], &[5], 4);
    check(contiguous(&[2, 3, 4]).diagonal(1, 2, 0).unwrap(), &[3, 1], &[4, 13], 12);
    for far in [4, -3, isize::MAX, isize::MIN] {
        assert_eq!(a.diagonal(far, 0, 1).unwrap().shape(), [0]);
    }
    assert!(a.diagonal(0, 1, 1).is_err());
}

#[test]
fn windows() {
    let a = contiguous(&[4, 5]);
    let w = a.sliding_windows(&[2, 3], &[0, 1]).unwrap();
    check(w, &[3, 3, 2, 3], &[5, 1, 5, 1], 0);
    // NumPy takes an axis twice: windows of windows.
    let w = contiguous(&[6]).sliding_windows(&[2, 3], &[0, 0]).unwrap();
    check(w, &[3, 2, 3], &[1, 1, 1], 0);
    fails(
        a.sliding_windows(&[5], &[0]),
        "sliding_windows: a window of 5 does not fit axis 0 with size 4",
    );
    assert!(a.sliding_windows(&[0], &[0]).is_err());
    assert!(a.sliding_windows(&[1], &[0, 1]).is_err());
    let wide = contiguous(&[1]).broadcast_to(&[1 << 62]).unwrap();
    assert!(wide.sliding_windows(&[1 << 61], &[0]).is_err());
}

#[test]
fn parts() {
    let a = contiguous(&[3, 4]);
    let parts = a.split(1, &[1, 3]).unwrap();
    assert_eq!(parts.len(), 3);
    check(parts[1].clone(), &[3, 2], &[4, 1], 1);
    check(parts[2].clone(), &[3, 1], &[4, 1], 3);
    let sizes = |at: &[usize]| -> Vec<usize> {
        a.split(1, at).unwrap().iter().map(|part| part.shape()[1]).collect()
    };
    // NumPy: np.split(x, [3, 1, 9], axis=1) has parts of 3, 0, 3 and 0.
    assert_eq!(sizes(&[3, 1, 9]), [3, 0, 3, 0]);
    check(a.narrow(0, 1, 2).unwrap(), &[2, 4], &[4, 1], 4);
    fails(a.narrow(0, 2, 2), "narrow: 2 from 2 on leave axis 0 with size 3");
    assert!(a.narrow(0, usize::MAX, 2).is_err());
    check(a.index_axis(1, 3).unwrap(), &[3], &[4], 3);
    fails(a.index_axis(0, 3), "index: 3 is out of bounds for axis 0 with size 3");
}

#[test]
fn reshaping() {
    let view = |a: &Layout, shape: &[usize]| a.reshape(shape).unwrap();
    let a = contiguous(&[3, 4]);
    check(view(&a, &[2, 6]).unwrap(), &[2, 6], &[6, 1], 0);
    check(view(&a, &[1, 3, 1, 4, 1]).unwrap(), &[1, 3, 1, 4, 1], &[12, 4, 4, 1, 1], 0);
    assert_eq!(view(&a.transpose(), &[12]), None);
    check(view(&a.transpose(), &[2, 2, 3]).unwrap(), &[2, 2, 3], &[2, 1, 4], 0);
    check(view(&a.flip(Some(&[0, 1])).unwrap(), &[12]).unwrap(), &[12], &[-1], 11);
    assert_eq!(view(&a.flip(Some(&[1])).unwrap(), &[12]), None);
    let zeros = contiguous(&[1]).broadcast_to(&[3, 4]).unwrap();
    check(view(&zeros, &[6, 2]).unwrap(), &[6, 2], &[0, 0], 0);
    let rows = contiguous(&[4]).broadcast_to(&[3, 4]).unwrap();
    assert_eq!(view(&rows, &[12]), None);
    check(view(&rows, &[3, 2, 2]).unwrap(), &[3, 2, 2], &[0, 2, 1], 0);
    check(view(&contiguous(&[0, 3]), &[5, 0]).unwrap(), &[5, 0], &[1, 1], 0);
    check(view(&contiguous(&[1, 1]), &[]).unwrap(), &[], &[], 0);
    fails(a.reshape(&[5, 2]), "reshape: cannot view (3, 4) as (5, 2): 12 elements are not 10");
    assert!(a.reshape(&[usize::MAX, 2]).is_err());

    assert_eq!(resolve_shape(12, &[-1]).unwrap().as_slice(), [12]);
    assert_eq!(resolve_shape(0, &[3, -1]).unwrap().as_slice(), [3, 0]);
    assert_eq!(resolve_shape(1, &[]).unwrap().as_slice(), [0usize; 0]);
    assert!(resolve_shape(0, &[0, -1]).is_err());
    assert!(resolve_shape(4, &[-1, -1]).is_err());
    assert!(resolve_shape(4, &[-2, 2]).is_err());
    assert!(resolve_shape(4, &[isize::MAX, isize::MAX, -1]).is_err());
}

#[test]
fn broadcasting() {
    let shape = |shapes: &[&[usize]]| broadcast_shapes("add", shapes);
    assert_eq!(shape(&[]).unwrap().as_slice(), [0usize; 0]);
    assert_eq!(shape(&[&[8, 1, 6, 1], &[7, 1, 5]]).unwrap().as_slice(), [8, 7, 6, 5]);
    assert_eq!(shape(&[&[1], &[0], &[3, 1]]).unwrap().as_slice(), [3, 0]);
    fails(
        shape(&[&[4], &[3, 4], &[1], &[2, 1, 5]]),
        "add: shapes (4,) and (2, 1, 5) do not broadcast: 4 and 5 differ on axis 2",
    );
    assert!(shape(&[&[0], &[2]]).is_err());
    assert!(shape(&[&[1 << 40, 1], &[1 << 40]]).is_err());
    let a = contiguous(&[3, 1]);
    check(a.broadcast_to(&[2, 3, 4]).unwrap(), &[2, 3, 4], &[0, 1, 0], 0);
    check(a.broadcast_to(&[3, 0]).unwrap(), &[3, 0], &[1, 0], 0);
    fails(
        a.broadcast_to(&[4, 4]),
        "broadcast_to: cannot broadcast (3, 1) to (4, 4): 3 and 4 differ on axis 0",
    );
    fails(
        a.broadcast_to(&[3]),
        "broadcast_to: cannot broadcast (3, 1) to (3,): 2 axes are more than 1",
    );
    assert!(a.broadcast_to(&[3, usize::MAX]).is_err());
}

#[test]
fn axes_may_be_counted_from_the_end() {
    let a = contiguous(&[2, 3, 4]);
    assert_eq!(a.permute(&[-1, 0, -2]).unwrap(), a.permute(&[2, 0, 1]).unwrap());
    assert_eq!(a.swap_axes(-1, 0).unwrap(), a.swap_axes(2, 0).unwrap());
    assert_eq!(a.flip(Some(&[-2])).unwrap(), a.flip(Some(&[1])).unwrap());
    assert_eq!(a.flip(None).unwrap(), a.flip(Some(&[0, 1, 2])).unwrap());
    assert_eq!(a.diagonal(1, -1, -2).unwrap(), a.diagonal(1, 2, 1).unwrap());
    assert_eq!(a.sliding_windows(&[2], &[-1]).unwrap(), a.sliding_windows(&[2], &[2]).unwrap());
    assert_eq!(a.split(-1, &[1]).unwrap(), a.split(2, &[1]).unwrap());
    assert_eq!(a.narrow(-1, 1, 2).unwrap(), a.narrow(2, 1, 2).unwrap());
    assert_eq!(a.index_axis(-3, 1).unwrap(), a.index_axis(0, 1).unwrap());
    fails(a.narrow(-4, 0, 1), "narrow: axis -4 is out of bounds for an array with 3 axes");
    fails(a.diagonal(0, 1, -2), "diagonal: axis 1 is named twice in (1, -2)");
    fails(a.flip(Some(&[2, -1])), "flip: axis 2 is named twice in (2, -1)");
    assert!(a.swap_axes(isize::MIN, 0).is_err());
}
