//! The methods of arrays and the functions beside them.

use std::io::Cursor;

use tilework::{
    Arg, Array, Device, Direction, Indexer, Indexing, Layout, Nan, Npz, Number, Order, PadMode,
    PrintOptions, Result, Rng, Side, broadcast_arrays, check_save, complex, concat, einsum,
    matmul_naive_flat, matmul_tiled, matmul_tiled_flat, meshgrid, read_npy, read_npz, result_type,
    select, stack, write_npy, write_npz, write_npz_compressed,
};

use crate::dice::{Dice, axes};

/// Calls a function on two arrays with arguments of its choice.
pub(crate) type Method = fn(&mut Dice, &Array, &Array) -> Result<()>;

fn done<T>(result: Result<T>) -> Result<()> {
    result.map(|_| ())
}

/// A name in an archive, good or bad.
fn file_name(d: &mut Dice) -> &'static str {
    ["x", "", "a/b", "..", "é"][d.roll(5)]
}

/// A file with some bytes changed, or cut off.
fn damaged(d: &mut Dice, mut file: Vec<u8>) -> Vec<u8> {
    for _ in 0..d.roll(4) {
        let at = d.roll(file.len());
        file[at] = d.integer() as u8;
    }
    file.truncate(file.len() - d.roll(5));
    file
}

fn order(d: &mut Dice) -> Order {
    [Order::RowMajor, Order::ColumnMajor, Order::Either, Order::Keep][d.roll(4)]
}

/// Every public function that can be given something wrong, by its name.
pub(crate) const METHODS: &[(&str, Method)] = &[
    ("reshape", |d, x, _| done(x.reshape(&d.integers()))),
    ("reshape_view", |d, x, _| done(x.reshape_view(&d.integers()))),
    ("reshape_in", |d, x, _| done(x.reshape_in(&d.integers(), order(d)))),
    ("ravel_in", |d, x, _| done(x.ravel_in(order(d)))),
    ("copy_in", |d, x, _| done(x.copy_in(order(d)))),
    ("astype_in", |d, x, _| done(x.astype_in(d.dtype(), order(d)))),
    ("to_dtype_in", |d, x, _| done(x.to_dtype_in(d.dtype(), order(d)))),
    ("view_as", |d, x, _| done(x.view_as(d.dtype()))),
    ("permute", |d, x, _| done(x.permute(&d.integers()))),
    ("swap_axes", |d, x, _| done(x.swap_axes(d.integer(), d.integer()))),
    ("move_axes", |d, x, _| done(x.move_axes(&d.integers(), &d.integers()))),
    ("broadcast_to", |d, x, _| done(x.broadcast_to(&d.sizes()))),
    ("slice", |d, x, _| done(x.slice(&[d.index(), d.index(), d.index()][..d.roll(4)]))),
    ("expand_dims", |d, x, _| done(x.expand_dims(d.integer()))),
    ("squeeze", |d, x, _| done(x.squeeze(Some(&d.integers())))),
    ("squeeze", |_, x, _| done(x.squeeze(None))),
    ("flip", |d, x, _| done(x.flip(Some(&d.integers())))),
    ("diagonal", |d, x, _| done(x.diagonal(d.integer(), d.integer(), d.integer()))),
    ("sliding_windows", |d, x, _| done(x.sliding_windows(&d.sizes(), &d.integers()))),
    ("as_strided", |d, x, _| done(x.as_strided(&d.sizes(), &d.integers(), d.integer()))),
    ("split_at", |d, x, _| done(x.split_at(&d.sizes(), d.integer()))),
    ("split", |d, x, _| done(x.split(d.size(), d.integer()))),
    ("matrix_transpose", |_, x, _| done(x.matrix_transpose())),
    ("broadcast_arrays", |_, x, y| done(broadcast_arrays(&[x, y]))),
    ("astype", |d, x, _| done(x.astype(d.dtype()))),
    ("set", |d, x, y| x.set(&[d.index(), d.index()], y)),
    ("index_set", |d, x, y| {
        x.index_set(&[Indexer::Array(y), Indexer::Basic(d.index())], d.number())
    }),
    ("index", |d, x, y| done(x.index(&[Indexer::Basic(d.index()), Indexer::Array(y)]))),
    ("index", |_, x, y| done(x.index(&[Indexer::Array(y), Indexer::Array(y)]))),
    ("take", |d, x, y| done(x.take(y, d.integer()))),
    ("take_along_axis", |d, x, y| done(x.take_along_axis(y, d.integer()))),
    ("put_along_axis", |d, x, y| x.put_along_axis(y, d.number(), d.integer())),
    ("nonzero", |_, x, _| done(x.nonzero())),
    ("argwhere", |_, x, _| done(x.argwhere())),
    ("matmul", |_, x, y| done(x.matmul(y))),
    ("matmul_naive", |_, x, y| done(x.matmul_naive(y))),
    ("matmul_into", |_, x, y| x.matmul_into(y, x)),
    ("matmul_tiled", |_, x, y| done(matmul_tiled(x, y))),
    ("matmul_naive_flat", |d, x, y| matmul_naive_flat(x, y, x, [d.size(), d.size(), d.size()])),
    ("matmul_tiled_flat", |d, x, y| {
        matmul_tiled_flat(x, y, x, [d.size(), d.size(), d.size()], d.size())
    }),
    ("vecdot", |d, x, y| done(x.vecdot(y, d.integer()))),
    ("tensordot", |d, x, y| done(x.tensordot(y, &d.integers(), &d.integers()))),
    ("outer", |_, x, y| done(x.outer(y))),
    ("norm", |d, x, _| done(x.norm(axes(d), d.integer() as f64))),
    ("norm_keepdims", |d, x, _| done(x.norm_keepdims(axes(d), d.integer() as f64))),
    ("std", |d, x, _| done(x.std(axes(d), 1.0))),
    ("cumulative_sum", |d, x, _| done(x.cumulative_sum(d.integer()))),
    ("cumulative_prod", |d, x, _| done(x.cumulative_prod(d.integer()))),
    ("sort", |d, x, _| done(x.sort(d.integer(), Direction::Descending))),
    ("sort_in_place", |d, x, _| done(x.sort_in_place(d.integer(), Direction::Ascending))),
    ("argsort", |d, x, _| done(x.argsort(d.integer(), Direction::Ascending))),
    ("searchsorted", |_, x, y| done(x.searchsorted(y, Side::Right))),
    ("unique", |_, x, _| done(x.unique())),
    ("unique_values", |_, x, _| done(x.unique_values())),
    ("concat", |d, x, y| done(concat(&[x, y], d.integer()))),
    ("stack", |d, x, y| done(stack(&[x, y], d.integer()))),
    ("pad", |d, x, _| {
        done(x.pad(&[(d.roll(4), d.size()), (1, 2)][..d.roll(3)], PadMode::Constant(d.number())))
    }),
    ("pad", |d, x, _| done(x.pad(&vec![(d.roll(4), d.roll(9)); x.ndim()], PadMode::Reflect))),
    ("roll", |d, x, _| done(x.roll(d.integer(), d.integer()))),
    ("repeat", |d, x, _| done(x.repeat(d.size(), d.integer()))),
    ("repeat_each", |d, x, _| done(x.repeat_each(&d.small_sizes(), d.integer()))),
    ("tile", |d, x, _| done(x.tile(&d.sizes()))),
    ("unstack", |d, x, _| done(x.unstack(d.integer()))),
    ("diff", |d, x, _| done(x.diff(d.roll(4), d.integer()))),
    ("one_hot", |d, x, _| done(x.one_hot(d.roll(9), d.dtype()))),
    ("complex", |_, x, y| done(complex(x, y))),
    ("select", |_, x, y| done(select(x, y, 1.5))),
    ("meshgrid", |_, x, y| done(meshgrid(&[x, y], Indexing::Ij))),
    ("zeros", |d, _, _| done(Array::zeros(&d.sizes(), d.dtype()))),
    ("full", |d, _, _| done(Array::full(&d.sizes(), d.number(), d.dtype()))),
    ("eye", |d, _, _| done(Array::eye(d.roll(9), d.roll(9), d.integer(), d.dtype()))),
    ("arange", |d, _, _| {
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
    }),
    ("linspace", |d, _, _| {
        done(Array::linspace(d.integer() as f64..=f64::INFINITY, d.roll(5), d.dtype()))
    }),
    ("uniform", |d, _, _| done(Rng::new(1).uniform(&d.sizes(), d.dtype()))),
    ("integers", |d, _, _| {
        done(Rng::new(1).integers(d.integer() as i64, d.integer() as i64, &[3]))
    }),
    ("integers_of", |d, _, _| {
        let [low, high] = [d.integer() as i128, i128::from(d.integer() as i64) << d.roll(64)];
        done(Rng::new(1).integers_of(d.dtype(), low, high, &d.sizes()))
    }),
    ("from_words", |d, _, _| {
        let words: Vec<u64> = d.integers().iter().map(|x| *x as u64).collect();
        done(Rng::from_words(&words).uniform(&[3], d.dtype()))
    }),
    ("get", |d, x, _| done(x.get::<f32>(&d.integers()))),
    ("element", |d, x, _| done(x.element(&d.integers()))),
    ("to_device", |d, x, _| done(x.to_device(Device::all()[d.roll(2)]))),
    ("assign", |_, x, y| x.assign(y)),
    ("fill", |d, x, _| x.fill(d.number())),
    ("tril", |d, x, _| done(x.tril(d.integer()))),
    ("triu", |d, x, _| done(x.triu(d.integer()))),
    ("real_view", |_, x, _| done(x.real_view())),
    ("imag_view", |_, x, _| done(x.imag_view())),
    ("item", |_, x, _| done(x.item::<i8>())),
    ("to_scalar", |_, x, _| done(x.to_scalar())),
    ("to_vec", |_, x, _| done(x.to_vec::<f32>())),
    ("iter", |_, x, _| done(x.iter::<u8>().map(Iterator::count))),
    ("read", |_, x, _| done(x.read::<f64>())),
    ("write", |_, x, _| done(x.write::<i32>())),
    ("display", |_, x, _| {
        let _text = format!("{x:?} {x} {}", x.display(&PrintOptions::current()));
        Ok(())
    }),
    ("einsum", |d, x, y| {
        const TEXTS: [&str; 9] =
            ["ij,jk", "ij->ji", "ii", "i,j->ij", "...i,...i", "ij,->", "->,", "i->ij", "é,🦀->"];
        done(einsum(TEXTS[d.roll(TEXTS.len())], &[x, y][..d.roll(3)]))
    }),
    ("softmax", |d, x, _| done(x.softmax(d.integer()))),
    ("var_keepdims", |d, x, _| done(x.var_keepdims(axes(d), d.integer() as f64))),
    ("std_keepdims", |d, x, _| done(x.std_keepdims(axes(d), f64::NAN))),
    ("ptp", |d, x, _| done(x.ptp(axes(d)))),
    ("var", |d, x, _| done(x.var(axes(d), d.integer() as f64))),
    ("round_to", |d, x, _| done(x.round_to(d.integer() as i32))),
    ("array_equal", |_, x, y| done(x.array_equal(y, Nan::Equal))),
    ("isclose", |d, x, y| done(x.isclose(y, d.integer() as f64, f64::NAN, Nan::Equal))),
    ("allclose", |_, x, y| done(x.allclose(y, 1e-5, 0.0, Nan::Unequal))),
    ("isin", |_, x, y| done(x.isin(y))),
    ("matmul_by_pieces", |_, x, y| done(x.matmul_by_pieces(y))),
    ("from_shape", |d, _, _| done(Array::from_shape(&d.sizes(), &[1.5f32, 2.5, 3.5, 4.5]))),
    ("read_bytes", |d, x, _| {
        let size = if d.roll(2) == 0 { x.len() * x.dtype().size() } else { d.roll(99) };
        done(x.read_bytes(&mut vec![0; size]))
    }),
    ("from_bytes", |d, _, _| done(Array::from_bytes(d.dtype(), &d.sizes(), &vec![7; d.roll(99)]))),
    ("from_slice", |d, _, _| done(Array::from_slice(&vec![true; d.roll(9)]))),
    ("from_nested", |d, _, _| {
        done(Array::from_nested(&vec![vec![1i64; d.roll(3)], vec![2; d.roll(3)]]))
    }),
    ("scalar", |d, _, _| done(Array::scalar(d.integer() as f64))),
    ("from_storage", |d, x, _| {
        let layout = Layout::new(&d.small_sizes(), &d.integers(), d.size() % 40);
        done(layout.and_then(|layout| Array::from_storage(x.storage().clone(), layout, d.dtype())))
    }),
    ("ones", |d, _, _| done(Array::ones(&d.sizes(), d.dtype()))),
    ("empty", |d, _, _| done(Array::empty(&d.sizes(), d.dtype()))),
    ("zeros_on", |d, x, _| done(Array::zeros_on(x.device(), &d.sizes(), d.dtype()))),
    ("empty_on", |d, x, _| done(Array::empty_on(x.device(), &d.sizes(), d.dtype()))),
    ("full_on", |d, x, _| done(Array::full_on(x.device(), &d.sizes(), d.number(), d.dtype()))),
    ("ravel", |_, x, _| done(x.ravel())),
    ("copy", |_, x, _| done(x.copy())),
    ("compact", |_, x, _| done(x.compact())),
    ("to_dtype", |d, x, _| done(x.to_dtype(d.dtype()))),
    ("result_type", |d, x, _| done(result_type(&[Arg::Array(x), Arg::Number(d.number())]))),
    ("normal", |d, _, _| done(Rng::new(1).normal(&d.sizes(), d.dtype()))),
    ("permutation", |d, _, _| {
        const COUNTS: [usize; 4] = [0, 1, 50, usize::MAX];
        done(Rng::from_state(u64::MAX, u64::MAX).permutation(COUNTS[d.roll(4)]))
    }),
    ("sample", |d, _, _| {
        const COUNTS: [usize; 4] = [0, 1, 50, usize::MAX];
        done(Rng::from_state(u64::MAX, u64::MAX).sample(COUNTS[d.roll(4)], COUNTS[d.roll(4)]))
    }),
    ("parse", |d, _, _| {
        const NAMES: [&str; 8] =
            ["cpu", "", ":", "cpu:0", "cuda:", "cuda:-1", "cuda:99999999999", "é"];
        done(Device::parse(NAMES[d.roll(NAMES.len())]))
    }),
    ("read_npy", |d, x, _| {
        let mut file = Vec::new();
        write_npy(&mut file, x)?;
        done(read_npy(&damaged(d, file)[..]))
    }),
    ("check_save", |d, _, _| done(check_save(file_name(d)))),
    ("write_npy", |_, x, _| write_npy(&mut Vec::new(), x)),
    ("read_npz", |d, x, y| {
        let mut file = Cursor::new(Vec::new());
        let write = if d.roll(2) == 0 { write_npz } else { write_npz_compressed };
        write(&mut file, &[("x", x), ("y", y)])?;
        done(read_npz(Cursor::new(damaged(d, file.into_inner()))))
    }),
    ("read", |d, x, y| {
        let mut file = Cursor::new(Vec::new());
        write_npz(&mut file, &[("x", x), ("y", y)])?;
        let mut archive = Npz::new(Cursor::new(damaged(d, file.into_inner())))?;
        let name = archive.names().get(d.roll(3)).cloned().unwrap_or_default();
        done(archive.read(&name))
    }),
    ("write_npz", |d, x, y| {
        write_npz(Cursor::new(Vec::new()), &[(file_name(d), x), (file_name(d), y)])
    }),
    ("write_npz_compressed", |d, x, y| {
        write_npz_compressed(Cursor::new(Vec::new()), &[(file_name(d), x), (file_name(d), y)])
    }),
];
