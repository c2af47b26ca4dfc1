//! Random arguments at every public function: Ok or Err, never a panic.
//!
//! Driven by the rows and by the list of methods below. Numbers are drawn from what tends to break
//! things: 0, 1, -1, the extremes, and small ones.

use proptest::prelude::*;
use tilework::{
    Arg, Array, Axes, DType, Device, FoldId, Id, Index, Indexer, Number, PadMode, Result, Rng,
    apply, apply_into, broadcast_arrays, complex, concat, matmul_tiled, meshgrid, select, stack,
};

/// A source of choices.
struct Dice(std::vec::IntoIter<u32>);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0.next().unwrap_or(0) as usize % sides.max(1)
    }

    fn integer(&mut self) -> isize {
        const AWKWARD: [isize; 14] =
            [0, 1, -1, 2, -2, 3, 4, -5, 7, 64, isize::MAX, isize::MIN, i32::MAX as isize, -100];
        AWKWARD[self.roll(AWKWARD.len())]
    }

    /// Large sizes ask for memory that may be had: keep to those that cannot or that are small.
    fn size(&mut self) -> usize {
        const AWKWARD: [usize; 9] = [0, 1, 2, 3, 4, 5, 17, usize::MAX, isize::MAX as usize];
        AWKWARD[self.roll(AWKWARD.len())]
    }

    fn integers(&mut self) -> Vec<isize> {
        (0..self.roll(5)).map(|_| self.integer()).collect()
    }

    fn sizes(&mut self) -> Vec<usize> {
        (0..self.roll(5)).map(|_| self.size()).collect()
    }

    fn small_sizes(&mut self) -> Vec<usize> {
        (0..self.roll(4)).map(|_| self.roll(4)).collect()
    }

    fn dtype(&mut self) -> DType {
        DType::ALL[self.roll(DType::COUNT)]
    }

    fn number(&mut self) -> Number {
        match self.roll(6) {
            0 => Number::Bool(true),
            1 => Number::Int(self.integer() as i128),
            2 => Number::Int(i128::MAX),
            3 => Number::Float(f64::NAN),
            4 => Number::Float(self.integer() as f64 * 0.5),
            _ => Number::Complex(tilework::Complex::new(1.0, -2.0)),
        }
    }

    fn index(&mut self) -> Index {
        match self.roll(5) {
            0 => Index::NewAxis,
            1 => Index::Ellipsis,
            2 => Index::At(self.integer()),
            _ => {
                let mut end = || (self.roll(3) > 0).then(|| self.integer());
                let (start, stop) = (end(), end());
                Index::Slice { start, stop, step: self.integer() }
            }
        }
    }

    fn array(&mut self, device: Device) -> Array {
        let shape = self.small_sizes();
        let dtype = self.dtype();
        let count: usize = shape.iter().product();
        let numbers: Vec<i64> = (0..count as i64).map(|k| k * 7 % 11 - 4).collect();
        let dims: Vec<isize> = shape.iter().map(|&n| n as isize).collect();
        let base = Array::from_slice_on(device, &numbers)
            .and_then(|x| x.astype(dtype)?.reshape(&dims))
            .expect("base");
        match self.roll(4) {
            0 => base.transpose(),
            1 => base.flip(None).expect("flip"),
            2 => base
                .expand_dims(0)
                .and_then(|x| x.broadcast_to(&[&[2], &shape[..]].concat()))
                .expect("broadcast"),
            _ => base,
        }
    }
}

type Method = fn(&mut Dice, &Array, &Array) -> Result<()>;

fn done<T>(result: Result<T>) -> Result<()> {
    result.map(|_| ())
}

fn axes(dice: &mut Dice) -> Axes {
    if dice.roll(3) == 0 { Axes::All } else { Axes::Some(dice.integers()) }
}

const METHODS: &[Method] = &[
    |d, x, _| done(x.reshape(&d.integers())),
    |d, x, _| done(x.reshape_view(&d.integers())),
    |d, x, _| done(x.permute(&d.integers())),
    |d, x, _| done(x.swap_axes(d.integer(), d.integer())),
    |d, x, _| done(x.move_axes(&d.integers(), &d.integers())),
    |d, x, _| done(x.broadcast_to(&d.sizes())),
    |d, x, _| done(x.slice(&[d.index(), d.index(), d.index()][..d.roll(4)])),
    |d, x, _| done(x.expand_dims(d.integer())),
    |d, x, _| done(x.squeeze(Some(&d.integers()))),
    |_, x, _| done(x.squeeze(None)),
    |d, x, _| done(x.flip(Some(&d.integers()))),
    |d, x, _| done(x.diagonal(d.integer(), d.integer(), d.integer())),
    |d, x, _| done(x.sliding_windows(&d.sizes(), &d.integers())),
    |d, x, _| done(x.as_strided(&d.sizes(), &d.integers(), d.integer())),
    |d, x, _| done(x.split_at(&d.sizes(), d.integer())),
    |d, x, _| done(x.split(d.size(), d.integer())),
    |_, x, _| done(x.matrix_transpose()),
    |_, x, y| done(broadcast_arrays(&[x, y])),
    |d, x, _| done(x.astype(d.dtype())),
    |d, x, y| x.assign(y).and(x.fill(d.number())),
    |d, x, y| x.set(&[d.index(), d.index()], y),
    |d, x, y| x.index_set(&[Indexer::Array(y), Indexer::Basic(d.index())], d.number()),
    |d, x, y| done(x.index(&[Indexer::Basic(d.index()), Indexer::Array(y)])),
    |_, x, y| done(x.index(&[Indexer::Array(y), Indexer::Array(y)])),
    |d, x, y| done(x.take(y, d.integer())),
    |d, x, y| done(x.take_along_axis(y, d.integer())),
    |d, x, y| x.put_along_axis(y, d.number(), d.integer()),
    |_, x, _| done(x.nonzero()),
    |_, x, _| done(x.argwhere()),
    |_, x, y| done(x.matmul(y)),
    |_, x, y| done(x.matmul_naive(y)),
    |_, x, y| x.matmul_into(y, x),
    |_, x, y| done(matmul_tiled(x, y)),
    |d, x, y| done(x.vecdot(y, d.integer())),
    |d, x, y| done(x.tensordot(y, &d.integers(), &d.integers())),
    |_, x, y| done(x.outer(y)),
    |d, x, _| done(x.norm(d.integer() as f64, axes(d), true)),
    |d, x, _| done(x.std(axes(d), 1.0)),
    |d, x, _| done(x.cumulative_sum(d.integer())),
    |d, x, _| done(x.cumulative_prod(d.integer())),
    |d, x, _| done(x.sort(d.integer(), true)),
    |d, x, _| done(x.argsort(d.integer(), false)),
    |_, x, y| done(x.searchsorted(y, true)),
    |_, x, _| done(x.unique()),
    |_, x, _| done(x.unique_values()),
    |d, x, y| done(concat(&[x, y], d.integer())),
    |d, x, y| done(stack(&[x, y], d.integer())),
    |d, x, _| {
        done(x.pad(&[(d.roll(4), d.size()), (1, 2)][..d.roll(3)], PadMode::Constant(d.number())))
    },
    |d, x, _| done(x.pad(&vec![(d.roll(4), d.roll(9)); x.ndim()], PadMode::Reflect)),
    |d, x, _| done(x.roll(d.integer(), d.integer())),
    |d, x, _| done(x.repeat(d.size(), d.integer())),
    |d, x, _| done(x.repeat_each(&d.small_sizes(), d.integer())),
    |d, x, _| done(x.tile(&d.sizes())),
    |d, x, _| done(x.unstack(d.integer())),
    |d, x, _| done(x.diff(d.roll(4), d.integer())),
    |d, x, _| done(x.tril(d.integer())).and(done(x.triu(d.integer()))),
    |d, x, _| done(x.one_hot(d.roll(9), d.dtype())),
    |_, x, y| done(complex(x, y)),
    |_, x, y| done(select(x, y, 1.5)),
    |_, x, y| done(meshgrid(&[x, y], true)),
    |_, x, _| done(x.real_view()).and(done(x.imag_view())),
    |d, _, _| done(Array::zeros(&d.sizes(), d.dtype())),
    |d, _, _| done(Array::full(&d.sizes(), d.number(), d.dtype())),
    |d, _, _| done(Array::eye(d.roll(9), d.roll(9), d.integer(), d.dtype())),
    |d, _, _| {
        // A few gigabytes could be had: ends are near, or where no memory reaches.
        const ENDS: [Number; 6] = [
            Number::Int(-40),
            Number::Int(70),
            Number::Int(i128::MAX),
            Number::Int(i64::MAX as i128),
            Number::Float(f64::NAN),
            Number::Float(12.5),
        ];
        let end = ENDS[d.roll(ENDS.len())];
        done(Array::arange(d.roll(50), end, d.integer().clamp(-9, 9), d.dtype()))
    },
    |d, _, _| done(Array::linspace(d.integer() as f64, f64::INFINITY, d.roll(5), true, d.dtype())),
    |d, _, _| done(Rng::new(1).uniform(&d.sizes(), d.dtype())),
    |d, _, _| done(Rng::new(1).integers(d.integer() as i64, d.integer() as i64, &[3])),
    |d, x, _| done(x.get::<f32>(&d.integers())),
    |_, x, _| done(x.item::<i8>()).and(done(x.to_vec::<f32>())),
    |_, x, _| done(x.read::<f64>()).and(done(x.write::<i32>())),
    |_, x, _| {
        let _text = format!("{x:?} {x}");
        Ok(())
    },
    |d, x, _| done(x.to_device(Device::all()[d.roll(2)])),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn methods(rolls in prop::collection::vec(any::<u32>(), 60)) {
        let mut dice = Dice(rolls.into_iter());
        let device = Device::all()[dice.roll(2)];
        let (x, y) = (dice.array(device), dice.array(device));
        for _ in 0..4 {
            let _ = METHODS[dice.roll(METHODS.len())](&mut dice, &x, &y);
        }
    }

    #[test]
    fn operations_and_reductions(rolls in prop::collection::vec(any::<u32>(), 60)) {
        let mut dice = Dice(rolls.into_iter());
        let device = Device::all()[dice.roll(2)];
        let arrays = [dice.array(device), dice.array(device), dice.array(device)];
        let id = Id::ALL[dice.roll(Id::ALL.len())];
        let numbers = [dice.number(), dice.number(), dice.number()];
        let args: Vec<Arg<'_>> = (0..id.row().arity)
            .map(|k| if dice.roll(3) == 0 { Arg::Number(numbers[k]) } else { Arg::Array(&arrays[k]) })
            .collect();
        let _ = apply(id, &args);
        let _ = apply_into(id, &args, &arrays[0]);
        let fold = FoldId::ALL[dice.roll(FoldId::ALL.len())];
        let _ = arrays[0].reduce(fold, axes(&mut dice), dice.roll(2) == 0, dice.integer() as f64);
        let _ = arrays[1].scan(fold, dice.integer());
    }
}
