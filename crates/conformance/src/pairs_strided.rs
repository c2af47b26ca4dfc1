//! Points and weights whose numbers do not lie one after the other, in forms that make tiles of them: the same bits as of
//! their copies. Sizes are such that a card takes these forms.

use tilework::pairs::{Options, Reduced};
use tilework::{Array, DType, Device, Result, Rng, s};

use crate::pairs::{after_first_calls, floats, is_card};
use crate::pairs_parts::{CASES, Case, OFFSETS, arguments, assert_form, call, indices};

/// Components of b that are columns of a matrix, of which tiles are made for products with weights.
const COLUMNS: usize = 40;

/// How numbers lie in memory.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Lie {
    Together,
    /// Components beside those of other points.
    Transposed,
    /// Every second row, and of it every second component.
    Apart,
    /// The last row first, and its last component.
    Backwards,
    /// Both, at other distances for rows and for components.
    Both,
    /// One row for all.
    Shared,
}

impl Lie {
    /// These numbers, of which those in between are not: nobody may read them. Of one row for all, the first.
    fn put(self, points: &Array) -> Result<Array> {
        let (rows, dim) = (points.shape()[0], points.shape()[1]);
        let wide =
            |shape: [usize; 2]| Array::full_on(points.device(), &shape, f64::NAN, points.dtype());
        let view = match self {
            Lie::Together => wide([rows, dim])?,
            Lie::Transposed => wide([dim, rows])?.transpose(),
            Lie::Apart => wide([2 * rows, 2 * dim])?.slice(&s![..;2, ..;2])?,
            Lie::Backwards => wide([rows, dim])?.slice(&s![..;-1, ..;-1])?,
            Lie::Both => wide([3 * rows, 2 * dim])?.slice(&s![..;-3, ..;-2])?,
            Lie::Shared => return points.slice(&s![..1])?.broadcast_to(&[rows, dim]),
        };
        view.assign(points)?;
        Ok(view)
    }
}

/// How x, y and b lie: each in every way, and not all in the same.
const LIES: [[Lie; 3]; 7] = [
    [Lie::Transposed, Lie::Transposed, Lie::Together],
    [Lie::Apart, Lie::Together, Lie::Apart],
    [Lie::Together, Lie::Apart, Lie::Backwards],
    [Lie::Backwards, Lie::Backwards, Lie::Transposed],
    [Lie::Both, Lie::Both, Lie::Both],
    [Lie::Shared, Lie::Transposed, Lie::Together],
    [Lie::Both, Lie::Shared, Lie::Shared],
];

/// Sums, logarithms and the nearest of views of x, y and b, and of copies of these.
pub fn strided_points(device: Device) {
    let sizes = match is_card(device) {
        true => [(40_003, 60_001, 3), (6_001, 7_003, 64)],
        false if device == Device::cpu() => [(301, 1103, 3), (301, 703, 64)],
        false => [(11, 57, 3), (11, 53, 64)],
    };
    std::thread::scope(|scope| {
        for sizes in sizes {
            for case in CASES {
                scope.spawn(move || strided(device, sizes, case, 1));
            }
            scope.spawn(move || strided(device, sizes, CASES[0], COLUMNS));
        }
    });
}

fn strided(device: Device, (m, n, dim): (usize, usize, usize), case: Case, width: usize) {
    let (name, _, text) = case;
    let call = call(case, [dim, width]);
    let options = Options::default();
    for offset in OFFSETS {
        let [x, y, scale, b] = arguments((m, n), [dim, width], offset);
        // Of all bits that float32 has, so that heads and tails have something to lose.
        let noise = |points: &Array| {
            let noise = Rng::new(52).uniform(points.shape(), DType::Float32);
            noise.and_then(|noise| points.add(&noise.multiply(0.03)?)).expect("noise")
        };
        let there = [noise(&x), noise(&y), scale, b];
        let there = there.map(|x| x.to_device(device).expect("to_device"));
        for lies in LIES {
            let put = |k: usize, lie: Lie| lie.put(&there[k]).expect("put");
            let views = [put(0, lies[0]), put(1, lies[1]), there[2].clone(), put(3, lies[2])];
            let copies = views.each_ref().map(|view| view.copy().expect("copy"));
            assert!(copies.iter().all(Array::is_contiguous), "{lies:?}");
            let sizes = format!("{m} x {n}, D = {dim}, {width} columns");
            let what = format!("{name} of {text}, {sizes}, by {offset}, {lies:?}");
            let run =
                |arrays: &[Array; 4]| call.call_with(&arrays.each_ref(), &options).expect(&what);
            if is_card(device) {
                let said = call.explain(&views.each_ref(), &options).expect("explain");
                assert_form(&what, &said, case, [dim, width], offset);
            }
            let expected = run(&copies);
            same(&what, &run(&views), &expected);
            after_first_calls(device);
            same(&what, &run(&views), &expected);
        }
    }
}

/// Fails unless both have the same bits and indices. How numbers lie changes where they are read from and nothing else: the
/// form, and how a call is cut, go by sizes and by the numbers.
fn same(what: &str, got: &Reduced, expected: &Reduced) {
    let (Some(got), Some(expected)) = (&got.values, &expected.values) else {
        assert!(indices(got) == indices(expected), "{what}: other indices than of copies");
        return;
    };
    for (k, (a, b)) in floats(got).into_iter().zip(floats(expected)).enumerate() {
        assert!(b.is_finite(), "{what}: number {k} of copies is {b}");
        assert!(a.to_bits() == b.to_bits(), "{what}: number {k} is {a}, not {b} as of copies");
    }
}
