//! Overlap, loop nests and reductions on hand-made cases; the general claims are in
//! `properties.rs`.

use tilework_layout::{Layout, LoopNest, Overlap, ReduceNest, overlap, positions, s};

fn contiguous(shape: &[usize]) -> Layout {
    Layout::contiguous(shape).unwrap()
}

#[test]
fn overlap_of_parts_of_one_matrix() {
    let a = contiguous(&[6, 8]);
    let part = |indices: &[_]| a.slice(indices).unwrap();
    let disjoint = [
        (part(&s![.., ..3]), part(&s![.., 3..])),
        (part(&s![..3]), part(&s![3..])),
        (part(&s![..;2]), part(&s![1..;2])),
        (part(&s![.., ..;2]), part(&s![.., 1..;2])),
        (part(&s![..;-2, ..4]), part(&s![.., 4..])),
        (part(&s![0..0]), a.clone()),
        (part(&s![.., 2]), part(&s![.., 5])),
        (part(&s![..3, ..4]), part(&s![..3, 4..]).transpose()),
    ];
    for (x, y) in &disjoint {
        assert_eq!(overlap(x, y), Overlap::None, "{x:?} {y:?}");
        assert_eq!(overlap(y, x), Overlap::None);
    }
    assert_eq!(overlap(&a, &a), Overlap::Identical);
    assert_eq!(overlap(&part(&s![2, NewAxis]), &part(&s![2])), Overlap::Identical);
    let square = part(&s![.., ..6]);
    assert_eq!(overlap(&square, &square.transpose()), Overlap::Possible);
    assert_eq!(overlap(&part(&s![1]), &part(&s![.., 1])), Overlap::Possible);
    // Large numbers: the test neither overflows nor runs long.
    let far = Layout::new(&[1 << 30, 1 << 31], &[1 << 32, 2], 0).unwrap();
    assert_eq!(overlap(&far, &far.with_offset(1).unwrap()), Overlap::None);
    assert_eq!(overlap(&far, &far.with_offset(2).unwrap()), Overlap::Possible);
}

#[test]
fn nests_merge_sort_and_flip() {
    let a = contiguous(&[2, 3, 4]);
    assert_eq!(LoopNest::new(&[&a]).lens(), [24]);
    assert_eq!(LoopNest::new(&[&a.transpose()]).lens(), [24]);
    assert_eq!(LoopNest::new(&[&a.flip(Some(&[0, 1, 2])).unwrap()]).lens(), [24]);
    assert_eq!(LoopNest::new(&[&a.flip(Some(&[1])).unwrap()]).lens(), [24]);

    let t = contiguous(&[4, 3, 2]).transpose();
    let nest = LoopNest::new(&[&a, &t]);
    assert_eq!((nest.lens(), nest.axes(), nest.operands()), (&[2, 3, 4][..], 3, 2));
    assert_eq!((nest.strides(0), nest.strides(2)), (&[12, 1][..], &[1, 6][..]));
    assert_eq!(nest.strides(3), [0isize; 0]);

    // The output runs forward, the input then runs backward.
    let nest = LoopNest::new(&[&a.flip(Some(&[0, 1, 2])).unwrap(), &a]);
    assert_eq!((nest.offsets(), nest.inner_strides()), (&[0, 23][..], &[1, -1][..]));

    // Ties of the first operand are broken by the second.
    let one = contiguous(&[1, 1]).broadcast_to(&[3, 4]).unwrap();
    let columns = contiguous(&[4, 3]).transpose();
    assert_eq!(LoopNest::new(&[&one, &columns]).lens(), [12]);

    let nest = LoopNest::in_order(&[&a.flip(Some(&[2])).unwrap()]);
    assert_eq!((nest.lens(), nest.inner_strides()), (&[6, 4][..], &[-1][..]));
}

#[test]
fn small_nests() {
    for layout in [Layout::scalar(), contiguous(&[1, 1])] {
        let nest = LoopNest::new(&[&layout, &layout]);
        assert_eq!((nest.len(), nest.outer_len(), nest.inner_len(), nest.axes()), (1, 1, 1, 1));
        assert_eq!(nest.inner_strides(), [0, 0]);
    }
    let nest = LoopNest::new(&[&contiguous(&[3, 0, 2])]);
    assert_eq!((nest.len(), nest.outer_len(), nest.is_empty()), (0, 0, true));
    nest.for_each_run(0..10, |_| unreachable!());
    nest.for_each_piece(0..10, |_, _| unreachable!());
    let nest = LoopNest::new(&[]);
    assert_eq!((nest.len(), nest.operands()), (1, 0));
    #[expect(clippy::reversed_empty_ranges)]
    LoopNest::new(&[&contiguous(&[3])]).for_each_run(4..1, |_| unreachable!());
}

#[test]
fn empty_reductions_walk_nothing_they_should_not() {
    // All strides of an empty layout are arbitrary; the kept axes alone must still be safe.
    let input = Layout::new(&[5, 0], &[isize::MAX, isize::MIN], 3).unwrap();
    let nest = ReduceNest::new(&input, &[1], &contiguous(&[5])).unwrap();
    assert_eq!((nest.kept().len(), nest.reduced_len()), (5, 0));
    assert_eq!(nest.kept().inner_strides(), [0, 1]);
    let nest = ReduceNest::new(&input, &[0], &contiguous(&[0])).unwrap();
    assert_eq!((nest.kept().len(), nest.reduced_len()), (0, 5));

    let wrong = ReduceNest::new(&contiguous(&[2, 3]), &[0], &contiguous(&[2]));
    assert_eq!(
        wrong.unwrap_err().to_string(),
        "reduce: shape (2, 3) without axes (0,) is (3,), not the output's (2,)"
    );
}

#[test]
fn positions_count_down() {
    let mut walk = positions(&contiguous(&[2, 2]).flip(Some(&[1])).unwrap());
    assert_eq!((walk.len(), walk.next(), walk.len()), (4, Some(1), 3));
    assert_eq!(walk.collect::<Vec<_>>(), [0, 3, 2]);
    assert_eq!(positions(&Layout::scalar()).collect::<Vec<_>>(), [0]);
}
