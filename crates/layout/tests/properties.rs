//! Claims that hold for all layouts, against models that only count.
//!
//! A model of an array is its shape and its positions in row-major order; every view is checked
//! by what it does to that list. Layouts are random, with zero, negative and arbitrary strides.

use std::collections::HashSet;

use proptest::prelude::*;
use tilework_layout::{
    Index, Layout, LoopNest, Overlap, ReduceNest, broadcast_shapes, overlap, positions,
};

/// All indices of `shape` in row-major order.
fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
    shape.iter().fold(vec![vec![]], |all, &n| {
        all.iter()
            .flat_map(|index| (0..n).map(move |i| [index.as_slice(), &[i]].concat()))
            .collect()
    })
}

fn walk(layout: &Layout) -> Vec<usize> {
    positions(layout).collect()
}

fn shapes() -> impl Strategy<Value = Vec<usize>> {
    let size = prop_oneof![1 => Just(0usize), 3 => Just(1), 12 => 2..5usize];
    prop::collection::vec(size, 0..5)
}

/// Any strides, with an offset that leaves room for the negative ones.
fn strided(shape: Vec<usize>) -> impl Strategy<Value = Layout> {
    let n = shape.len();
    (Just(shape), prop::collection::vec(-9..10isize, n), 0..4usize).prop_map(
        |(shape, strides, pad)| {
            let below: isize = shape
                .iter()
                .zip(&strides)
                .map(|(&n, &s)| n.saturating_sub(1) as isize * s.min(0))
                .sum();
            Layout::new(&shape, &strides, pad + below.unsigned_abs()).unwrap()
        },
    )
}

/// What views make of contiguous blocks: axes shuffled, some backwards, some cut, some repeated.
fn viewed(shape: Vec<usize>) -> impl Strategy<Value = Layout> {
    let n = shape.len();
    let axis = (0..3usize, 0..3usize, prop::bool::ANY, prop::bool::weighted(0.15));
    let order = Just((0..n).collect::<Vec<_>>()).prop_shuffle();
    (Just(shape), prop::collection::vec(axis, n), order).prop_map(|(shape, cuts, order)| {
        let block: Vec<usize> = order
            .iter()
            .map(|&k| if cuts[k].3 { 1 } else { shape[k] + cuts[k].0 + cuts[k].1 })
            .collect();
        let mut layout = Layout::contiguous(&block).unwrap();
        for (axis, &k) in (0..).zip(&order) {
            if !cuts[k].3 {
                layout = layout.narrow(axis, cuts[k].0, shape[k]).unwrap();
            }
            if cuts[k].2 {
                layout = layout.flip(Some(&[axis])).unwrap();
            }
        }
        let inverse: Vec<isize> = (0..order.len())
            .map(|k| order.iter().position(|&o| o == k).unwrap().cast_signed())
            .collect();
        layout.permute(&inverse).unwrap().broadcast_to(&shape).unwrap()
    })
}

fn shaped(shape: Vec<usize>) -> impl Strategy<Value = Layout> {
    prop_oneof![strided(shape.clone()), viewed(shape)]
}

fn layouts() -> impl Strategy<Value = Layout> {
    shapes().prop_flat_map(shaped)
}

/// One to five layouts of one shape.
fn operands() -> impl Strategy<Value = Vec<Layout>> {
    shapes().prop_flat_map(|shape| prop::collection::vec(shaped(shape), 1..6))
}

fn some_index() -> impl Strategy<Value = Index> {
    let bound = || prop::option::of(-7..8isize);
    let step = prop_oneof![-3..0isize, 1..4isize];
    prop_oneof![
        1 => (-4..4isize).prop_map(Index::At),
        3 => (bound(), bound(), step).prop_map(|(start, stop, step)| Index::Slice { start, stop, step }),
        1 => Just(Index::NewAxis),
        1 => Just(Index::Ellipsis),
    ]
}

/// What an index takes from an axis of `n`, walked as Python's `range(*slice.indices(n))` does;
/// `None` where it is out of bounds.
fn taken(index: Index, n: usize) -> Option<Vec<usize>> {
    let n = n as isize;
    match index {
        Index::At(i) => {
            let i = if i < 0 { i + n } else { i };
            (0..n).contains(&i).then(|| vec![i as usize])
        }
        Index::Slice { start, stop, step } => {
            let from_end = |i: isize| if i < 0 { i + n } else { i };
            let (mut i, stop) = if step > 0 {
                (from_end(start.unwrap_or(0)).max(0), stop.map_or(n, from_end).min(n))
            } else {
                (start.map_or(n - 1, from_end).min(n - 1), stop.map_or(-1, from_end).max(-1))
            };
            let mut all = vec![];
            while if step > 0 { i < stop } else { i > stop } {
                all.push(i as usize);
                i += step;
            }
            Some(all)
        }
        Index::NewAxis | Index::Ellipsis => None,
    }
}

/// Shape and positions that `indices` should give, `None` where they should fail.
fn sliced(layout: &Layout, asked: &[Index]) -> Option<(Vec<usize>, Vec<usize>)> {
    let named = asked.iter().filter(|i| matches!(i, Index::At(_) | Index::Slice { .. })).count();
    let ellipses = asked.iter().filter(|i| matches!(i, Index::Ellipsis)).count();
    let fill = layout.ndim().checked_sub(named)?;
    if ellipses > 1 {
        return None;
    }
    let mut asked = asked.to_vec();
    if ellipses == 0 {
        asked.push(Index::Ellipsis);
    }
    let full = Index::Slice { start: None, stop: None, step: 1 };
    let asked: Vec<Index> = asked
        .iter()
        .flat_map(|&i| if i == Index::Ellipsis { vec![full; fill] } else { vec![i] })
        .collect();
    let (mut shape, mut choices, mut axis) = (vec![], vec![], 0);
    for &index in &asked {
        if index == Index::NewAxis {
            shape.push(1);
            continue;
        }
        let choice = taken(index, layout.shape()[axis])?;
        axis += 1;
        if matches!(index, Index::Slice { .. }) {
            shape.push(choice.len());
        }
        choices.push(choice);
    }
    let sizes: Vec<usize> = choices.iter().map(Vec::len).collect();
    let at = |index: Vec<usize>| -> usize {
        let source: Vec<usize> = index.iter().zip(&choices).map(|(&i, c)| c[i]).collect();
        layout.position(&source)
    };
    Some((shape, indices(&sizes).into_iter().map(at).collect()))
}

/// The tuples of positions that a nest visits in `pieces` consecutive ranges of runs.
fn visited(nest: &LoopNest, cuts: &[usize]) -> Vec<Vec<usize>> {
    let mut seen = vec![];
    let ends = cuts.iter().copied().chain([nest.outer_len()]);
    let mut start = 0;
    for end in ends {
        nest.for_each_run(start..end, |at| {
            for i in 0..nest.inner_len() as isize {
                let step = |(&p, &s): (&usize, &isize)| p.checked_add_signed(i * s).unwrap();
                seen.push(at.iter().zip(nest.inner_strides()).map(step).collect());
            }
        });
        start = end;
    }
    seen
}

fn tuples(layouts: &[Layout]) -> Vec<Vec<usize>> {
    let all = indices(layouts[0].shape());
    all.iter().map(|index| layouts.iter().map(|l| l.position(index)).collect()).collect()
}

fn sorted<T: Ord>(mut values: Vec<T>) -> Vec<T> {
    values.sort();
    values
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn positions_are_those_of_all_indices(layout in layouts()) {
        let expected: Vec<usize> =
            indices(layout.shape()).iter().map(|index| layout.position(index)).collect();
        prop_assert_eq!(positions(&layout).len(), layout.len());
        let span = expected.iter().min().copied().zip(expected.iter().max().copied());
        prop_assert_eq!(layout.span(), span);
        let dense = expected.windows(2).all(|pair| pair[1] == pair[0] + 1);
        prop_assert_eq!(layout.is_contiguous(), dense);
        let transposed = walk(&layout.transpose());
        let dense = transposed.windows(2).all(|pair| pair[1] == pair[0] + 1);
        prop_assert_eq!(layout.is_f_contiguous(), dense);
        prop_assert_eq!(walk(&layout), expected);
    }

    #[test]
    fn slicing_agrees_with_the_model(
        layout in layouts(),
        asked in prop::collection::vec(some_index(), 0..5),
    ) {
        match (layout.slice(&asked), sliced(&layout, &asked)) {
            (Ok(view), Some((shape, expected))) => {
                prop_assert_eq!(view.shape(), shape.as_slice());
                prop_assert_eq!(walk(&view), expected);
            }
            (Err(_), None) => {}
            (got, expected) => prop_assert!(false, "{:?} is not {:?}", got, expected),
        }
    }

    #[test]
    fn permuting_and_back(
        (layout, order) in layouts().prop_flat_map(|l| {
            let order = Just((0..l.ndim()).collect::<Vec<_>>()).prop_shuffle();
            (Just(l), order)
        }),
    ) {
        let named: Vec<isize> = order.iter().map(|axis| axis.cast_signed()).collect();
        let view = layout.permute(&named).unwrap();
        let from_the_end: Vec<isize> =
            named.iter().map(|axis| axis - layout.ndim().cast_signed()).collect();
        prop_assert_eq!(&layout.permute(&from_the_end).unwrap(), &view);
        for index in indices(view.shape()) {
            let mut source = vec![0; order.len()];
            order.iter().zip(&index).for_each(|(&axis, &i)| source[axis] = i);
            prop_assert_eq!(view.position(&index), layout.position(&source));
        }
        let mut inverse = vec![0; order.len()];
        order.iter().enumerate().for_each(|(k, &axis)| inverse[axis] = k.cast_signed());
        prop_assert_eq!(&view.permute(&inverse).unwrap(), &layout);
        prop_assert_eq!(layout.transpose().transpose(), layout);
    }

    #[test]
    fn views_compose(layout in layouts(), cut in prop::collection::vec((0..4usize, 0..4usize), 4)) {
        // Flip, then cut, equals cutting the mirrored part, then flipping.
        for (axis, (&n, &(start, len))) in (0..).zip(layout.shape().iter().zip(&cut)) {
            if start + len > n {
                prop_assert!(layout.narrow(axis, start, len).is_err());
                continue;
            }
            let one = layout.flip(Some(&[axis])).unwrap().narrow(axis, start, len).unwrap();
            let other = layout.narrow(axis, n - start - len, len).unwrap().flip(Some(&[axis])).unwrap();
            prop_assert_eq!(walk(&one), walk(&other));
            prop_assert_eq!(layout.flip(Some(&[axis])).unwrap().flip(Some(&[axis])).unwrap(), layout.clone());
            if n > start {
                let one = layout.index_axis(axis, start).unwrap();
                let other = layout.narrow(axis, start, 1).unwrap();
                prop_assert_eq!(walk(&one), walk(&other));
            }
            let parts = layout.move_axis(axis, 0).unwrap().split(0, &[start, start + len]);
            let joined: Vec<usize> = parts.unwrap().iter().flat_map(walk).collect();
            prop_assert_eq!(joined, walk(&layout.move_axis(axis, 0).unwrap()));
            let wide = layout.expand_dims(axis).unwrap();
            prop_assert_eq!(&wide.squeeze(Some(&[axis])).unwrap(), &layout);
        }
    }

    #[test]
    fn windows_and_diagonals(layout in layouts(), sizes in prop::collection::vec(1..4usize, 2), offset in -4..5isize) {
        if layout.ndim() >= 2 {
            let (n0, n1) = (layout.shape()[0], layout.shape()[1]);
            let diagonal = layout.diagonal(offset, 0, 1).unwrap();
            let last = diagonal.ndim() - 1;
            let (i0, i1) = ((-offset).max(0) as usize, offset.max(0) as usize);
            prop_assert_eq!(diagonal.shape()[last], n0.saturating_sub(i0).min(n1.saturating_sub(i1)));
            for index in indices(diagonal.shape()) {
                let source = [&[index[last] + i0, index[last] + i1], &index[..last]].concat();
                prop_assert_eq!(diagonal.position(&index), layout.position(&source));
            }
            let windows = layout.sliding_windows(&sizes, &[1, 0]);
            if sizes[0] > n1 || sizes[1] > n0 {
                prop_assert!(windows.is_err());
            } else {
                let windows = windows.unwrap();
                let n = layout.ndim();
                for index in indices(windows.shape()) {
                    let mut source = index[..n].to_vec();
                    source[1] += index[n];
                    source[0] += index[n + 1];
                    prop_assert_eq!(windows.position(&index), layout.position(&source));
                }
            }
        }
    }

    #[test]
    fn broadcasting_agrees_with_the_model(a in layouts(), b in layouts()) {
        let (n, m) = (a.ndim(), b.ndim());
        let size = |shape: &[usize], from_end: usize| {
            shape.len().checked_sub(from_end).map_or(1, |k| shape[k])
        };
        let model: Option<Vec<usize>> = (1..=n.max(m))
            .rev()
            .map(|k| match (size(a.shape(), k), size(b.shape(), k)) {
                (x, y) if x == y => Some(x),
                (1, x) | (x, 1) => Some(x),
                _ => None,
            })
            .collect();
        let common = broadcast_shapes("test", &[a.shape(), b.shape()]);
        prop_assert_eq!(common.as_ref().ok().map(|s| s.to_vec()), model.clone());
        if let Some(shape) = model {
            let view = a.broadcast_to(&shape).unwrap();
            for index in indices(&shape) {
                let source: Vec<usize> = index[shape.len() - n..]
                    .iter()
                    .zip(a.shape())
                    .map(|(&i, &size)| if size == 1 { 0 } else { i })
                    .collect();
                prop_assert_eq!(view.position(&index), a.position(&source));
            }
        } else {
            prop_assert!(a.broadcast_to(b.shape()).is_err());
        }
    }

    #[test]
    fn a_reshaped_view_keeps_the_order(layout in layouts(), pick in any::<prop::sample::Index>()) {
        // All shapes of two axes, and one of three, with a one thrown in.
        let len = layout.len();
        let divisors: Vec<usize> = (1..=len.max(1)).filter(|d| len.is_multiple_of(*d)).collect();
        let d = divisors[pick.index(divisors.len())];
        let before = walk(&layout);
        for shape in [vec![d, len / d], vec![len], vec![d, 1, len / d], vec![1, len, 1]] {
            let flat = Layout::contiguous(&shape).unwrap();
            let back = flat.reshape(layout.shape()).unwrap().unwrap();
            prop_assert_eq!(walk(&back), (0..len).collect::<Vec<_>>());
            if let Some(view) = layout.reshape(&shape).unwrap() {
                prop_assert_eq!(walk(&view), before.clone());
                if let Some(back) = view.reshape(layout.shape()).unwrap() {
                    prop_assert_eq!(walk(&back), before.clone());
                }
            } else {
                // The first neighbours fix the only strides that could do; they must not.
                let step = |(&n, &skip): (&usize, &isize)| {
                    if n > 1 { before[skip as usize] as isize - before[0] as isize } else { 0 }
                };
                let strides: Vec<isize> = shape.iter().zip(flat.strides()).map(step).collect();
                let only = Layout::new(&shape, &strides, layout.offset());
                prop_assert!(only.map_or(true, |only| walk(&only) != before));
            }
        }
    }

    #[test]
    fn overlap_is_exact_for_small_layouts(a in layouts(), b in layouts()) {
        let (seen, other): (HashSet<_>, HashSet<_>) = (positions(&a).collect(), positions(&b).collect());
        let meet = !seen.is_disjoint(&other);
        match overlap(&a, &b) {
            Overlap::None => prop_assert!(!meet),
            Overlap::Possible => prop_assert!(meet),
            Overlap::Identical => prop_assert_eq!(walk(&a), walk(&b)),
        }
        prop_assert_eq!(overlap(&a, &b), overlap(&b, &a));
        let own = overlap(&a, &a);
        prop_assert_eq!(own, if a.is_empty() { Overlap::None } else { Overlap::Identical });
    }

    #[test]
    fn no_internal_overlap_is_certain(a in layouts(), b in shapes().prop_flat_map(viewed)) {
        let repeats = |l: &Layout| positions(l).collect::<HashSet<_>>().len() < l.len();
        prop_assert!(a.has_internal_overlap() || !repeats(&a));
        prop_assert_eq!(b.has_internal_overlap(), repeats(&b));
    }

    #[test]
    fn nests_visit_every_tuple_once(
        layouts in operands(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        span in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
    ) {
        let refs: Vec<&Layout> = layouts.iter().collect();
        let expected = tuples(&layouts);

        let nest = LoopNest::new(&refs);
        prop_assert_eq!(nest.len(), layouts[0].len());
        prop_assert_eq!(nest.len(), nest.lens().iter().product::<usize>());
        let whole = visited(&nest, &[]);
        let cuts = sorted(cuts.iter().map(|c| c.index(nest.outer_len() + 1)).collect());
        prop_assert_eq!(visited(&nest, &cuts), whole.clone());
        prop_assert_eq!(sorted(whole.clone()), sorted(expected.clone()));

        let (start, end) = (span.0.index(nest.len() + 1), span.1.index(nest.len() + 1));
        let mut pieces = vec![];
        nest.for_each_piece(start..end, |at, len| {
            for i in 0..len as isize {
                let step = |(&p, &s): (&usize, &isize)| p.checked_add_signed(i * s).unwrap();
                pieces.push(at.iter().zip(nest.inner_strides()).map(step).collect::<Vec<_>>());
            }
        });
        prop_assert_eq!(&pieces[..], &whole[start.min(end)..end]);

        // The first operand runs forward, with its longest steps outermost.
        let steps: Vec<isize> = (0..nest.axes()).map(|axis| nest.strides(axis)[0]).collect();
        prop_assert!(steps.iter().all(|&step| step >= 0));
        prop_assert!(steps.windows(2).all(|pair| pair[0] >= pair[1]));

        let nest = LoopNest::in_order(&refs);
        prop_assert_eq!(visited(&nest, &[]), expected);
    }

    #[test]
    fn reductions_reach_every_element(
        input in layouts(),
        pick in prop::collection::vec(prop::bool::ANY, 5),
    ) {
        let (gone, stay): (Vec<usize>, Vec<usize>) = (0..input.ndim()).partition(|&axis| pick[axis]);
        let sizes = |axes: &[usize]| axes.iter().map(|&a| input.shape()[a]).collect::<Vec<_>>();
        let output = Layout::contiguous(&sizes(&stay)).unwrap();
        let backwards: Vec<usize> = gone.iter().rev().copied().collect();
        let nest = ReduceNest::new(&input, &backwards, &output).unwrap();
        prop_assert_eq!(nest.reduced_len(), sizes(&gone).iter().product::<usize>());
        let groups = visited(nest.kept(), &[]);
        prop_assert_eq!(groups.len(), output.len());
        for group in groups {
            let [from, to] = group[..] else { unreachable!() };
            // The output is contiguous, so its position is the number of the kept index.
            let kept = &indices(&sizes(&stay))[to];
            let expected: Vec<usize> = indices(&sizes(&gone))
                .iter()
                .map(|reduced| {
                    let mut index = vec![0; input.ndim()];
                    stay.iter().zip(kept).for_each(|(&axis, &i)| index[axis] = i);
                    gone.iter().zip(reduced).for_each(|(&axis, &i)| index[axis] = i);
                    input.position(&index)
                })
                .collect();
            let members = |nest| visited(nest, &[]).iter().map(|at| from + at[0]).collect::<Vec<_>>();
            prop_assert_eq!(&members(nest.reduced_in_order()), &expected);
            prop_assert_eq!(sorted(members(nest.reduced())), sorted(expected));
        }
    }
}
