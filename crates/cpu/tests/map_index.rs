//! Gather, scatter, nonzero and random numbers against their definitions.

mod map_support;

use map_support::*;
use tilework_backend::{Gather, Indices, Nonzero, Random, Request, Scatter, Target, View, ViewRef};
use tilework_cpu::Cpu;
use tilework_layout::Layout;
use tilework_ops::{DType, Distribution, Scalar};

fn indices(shape: &[usize], below: usize, rng: &mut Rng, turned: bool) -> View {
    let contiguous = Layout::contiguous(shape).unwrap();
    let layout = if turned && shape.len() == 2 {
        Layout::new(shape, &[1, shape[0] as isize], 0).unwrap()
    } else {
        contiguous
    };
    let values: Vec<Scalar> =
        (0..layout.len().max(1)).map(|_| Scalar::new((rng.next() % below as u64) as i64)).collect();
    array(layout, DType::Int64, &values)
}

/// Sources of one shape: in order, turned, reversed.
fn sources() -> Vec<Layout> {
    vec![
        Layout::contiguous(&[5, 4, 6]).unwrap(),
        Layout::new(&[5, 4, 6], &[1, 5, 20], 0).unwrap(),
        Layout::new(&[5, 4, 6], &[24, -6, -1], 23).unwrap(),
        Layout::new(&[5, 4, 6], &[48, 12, 2], 1).unwrap(),
    ]
}

/// The positions in row-major order of `shape` that arrays of indices name, with what is left.
fn named(arrays: &[&View], own: &[usize], source: &[usize]) -> Vec<usize> {
    let picked: Vec<Vec<i64>> =
        arrays.iter().map(|view| read(view).iter().map(Scalar::get).collect()).collect();
    let rest: usize = source[arrays.len()..].iter().product();
    let count: usize = own.iter().product();
    let row = |i: usize| {
        let places = picked.iter().zip(source).map(|(index, n)| (index[i] as usize, n));
        places.fold(0, |at, (index, n)| at * n + index)
    };
    (0..count).flat_map(|i| (0..rest).map(move |k| row(i) * rest + k)).collect()
}

#[test]
fn gather_and_scatter_of_all_layouts() {
    let mut rng = Rng(1);
    for dtype in [DType::Bool, DType::Int16, DType::Float32, DType::Float64, DType::Complex128] {
        for source in sources() {
            for (own, axes) in [
                (&[7][..], 1),
                (&[0], 1),
                (&[], 1),
                (&[3, 5], 1),
                (&[2, 3], 2),
                (&[40], 3),
                (&[5, 2], 3),
            ] {
                for turned in [false, true] {
                    let data = values(dtype, -99.0..99.0, 120, &mut rng);
                    let arrays: Vec<View> = (0..axes)
                        .map(|axis| indices(own, source.shape()[axis], &mut rng, turned))
                        .collect();
                    let views: Vec<ViewRef> = arrays.iter().map(View::borrow).collect();
                    let arrays: Vec<&View> = arrays.iter().collect();
                    let shape = [own, &source.shape()[axes..]].concat();
                    let dense = Layout::contiguous(&shape).unwrap();
                    let reversed: Vec<isize> = dense.strides().iter().map(|s| -s).collect();
                    let last = dense.len().saturating_sub(1);
                    let layouts = [dense.clone(), Layout::new(&shape, &reversed, last).unwrap()];
                    let places = named(&arrays, own, source.shape());
                    for layout in layouts {
                        let from = array(source.clone(), dtype, &data);
                        let out = zeros(layout.clone(), dtype);
                        run(
                            &Cpu,
                            "test",
                            &Request::Gather(Gather {
                                source: from.borrow(),
                                indices: Indices { arrays: &views, axes: &[] },
                                output: Target::shared("test", out.borrow()).unwrap(),
                            }),
                        )
                        .unwrap();
                        let expected: Vec<Scalar> = places.iter().map(|&at| data[at]).collect();
                        assert_eq!(read(&out), expected, "{dtype} {own:?} {axes}");

                        let news = values(dtype, -99.0..99.0, places.len().max(1), &mut rng);
                        let news_view = array(layout, dtype, &news);
                        run(
                            &Cpu,
                            "test",
                            &Request::Scatter(Scatter {
                                source: news_view.borrow(),
                                indices: Indices { arrays: &views, axes: &[] },
                                target: Target::shared("test", from.borrow()).unwrap(),
                            }),
                        )
                        .unwrap();
                        let mut expected = data.clone();
                        places.iter().zip(&news).for_each(|(&at, value)| expected[at] = *value);
                        assert_eq!(read(&from), expected, "{dtype} {own:?} {axes}");
                    }
                }
            }
        }
    }
}

/// Indices are checked where they are followed, whatever path is taken, and before the first write.
#[test]
fn indices_outside_of_their_axis() {
    let data: Vec<Scalar> = (0..6000).map(|k| Scalar::new(k as f32)).collect();
    for shape in [&[2, 3000][..], &[2, 3, 1000]] {
        let source = array(Layout::contiguous(shape).unwrap(), DType::Float32, &data);
        for axes in 1..3 {
            let rest = &shape[axes..];
            for bad in [shape[axes - 1] as i64, -(shape[axes - 1] as i64) - 1, i64::MAX, i64::MIN] {
                let list = |last: i64| -> View {
                    let values: Vec<Scalar> = [0, -1, last].into_iter().map(Scalar::new).collect();
                    array(Layout::contiguous(&[3]).unwrap(), DType::Int64, &values)
                };
                let (good, wrong) = (list(1), list(bad));
                let views = [good.borrow(), good.borrow()];
                let mut views = views[..axes].to_vec();
                views[axes - 1] = wrong.borrow();
                let indices = Indices { arrays: &views, axes: &[4, 7] };
                let dense = Layout::contiguous(&[&[3], rest].concat()).unwrap();
                let out = zeros(dense, DType::Float32);
                let expected = format!(
                    "test: {bad} is out of bounds for axis {} with size {}",
                    [4, 7][axes - 1],
                    shape[axes - 1]
                );
                let output = Target::shared("test", out.borrow()).unwrap();
                let gather = Gather { source: source.borrow(), indices, output };
                let error = run(&Cpu, "test", &Request::Gather(gather)).unwrap_err();
                assert_eq!(error.to_string(), expected);
                let target = Target::shared("test", source.borrow()).unwrap();
                let scatter = Scatter { source: out.borrow(), indices, target };
                let error = run(&Cpu, "test", &Request::Scatter(scatter)).unwrap_err();
                assert_eq!(error.to_string(), expected);
                assert_eq!(read(&source), data, "nothing has been written");
            }
        }
    }
}

#[test]
fn gather_of_many() {
    let mut rng = Rng(2);
    let n = 200_001;
    let few = values(DType::Float32, -9.0..9.0, 1000, &mut rng);
    let source = array(Layout::contiguous(&[1000]).unwrap(), DType::Float32, &few);
    let picks = indices(&[n], 1000, &mut rng, false);
    let out = zeros(Layout::contiguous(&[n]).unwrap(), DType::Float32);
    let gather = Gather {
        source: source.borrow(),
        indices: Indices { arrays: &[picks.borrow()], axes: &[] },
        output: Target::shared("test", out.borrow()).unwrap(),
    };
    run(&Cpu, "test", &Request::Gather(gather)).unwrap();
    let picks = read(&picks);
    assert!(read(&out).iter().zip(&picks).all(|(x, k)| *x == few[k.get::<i64>() as usize]));
}

#[test]
fn gather_of_neighbours() {
    let n = 1000;
    // Some side by side, with gaps, backwards, from the end, and beyond it.
    let runs = (0..n as i64).filter(|i| i % 37 != 5).chain([-1, -2, 7, 7, 8]);
    let runs: Vec<i64> = runs.chain((10..50).rev()).chain(-20..20).chain(990..1000).collect();
    for dtype in [DType::Bool, DType::Int16, DType::Float32, DType::Complex64, DType::Complex128] {
        let source = values(dtype, -9.0..9.0, n, &mut Rng(2));
        let source_view = array(Layout::contiguous(&[n]).unwrap(), dtype, &source);
        for beyond in [None, Some(1000), Some(-1001), Some(i64::MAX - 3)] {
            let list: Vec<i64> = match beyond {
                None => runs.clone(),
                Some(first) => runs.iter().copied().chain((0..8).map(|i| first + i % 4)).collect(),
            };
            let scalars: Vec<Scalar> = list.iter().map(|&i| Scalar::new(i)).collect();
            let layout = Layout::contiguous(&[list.len()]).unwrap();
            let picks = array(layout.clone(), DType::Int64, &scalars);
            let out = zeros(layout, dtype);
            let gather = Gather {
                source: source_view.borrow(),
                indices: Indices { arrays: &[picks.borrow()], axes: &[0] },
                output: Target::shared("test", out.borrow()).unwrap(),
            };
            let done = run(&Cpu, "test", &Request::Gather(gather));
            assert_eq!(done.is_ok(), beyond.is_none(), "{dtype} {beyond:?}");
            if beyond.is_none() {
                let want: Vec<Scalar> =
                    list.iter().map(|&i| source[i.rem_euclid(n as i64) as usize]).collect();
                assert_eq!(read(&out), want, "{dtype}");
            }
        }
    }
}

#[test]
fn nonzero_lists_indices_in_order() {
    let mut rng = Rng(3);
    for layout in sources() {
        for chance in [0, 1, 7] {
            let flags: Vec<Scalar> =
                (0..120).map(|_| Scalar::new(rng.next() % 8 < chance)).collect();
            let input = array(layout.clone(), DType::Bool, &flags);
            let expected: Vec<i64> = (0..120i64)
                .filter(|&k| flags[k as usize].is_true())
                .flat_map(|k| [k / 24, k / 6 % 4, k % 6])
                .collect();
            let count = expected.len() / 3;
            for out in [
                Layout::contiguous(&[count, 3]).unwrap(),
                Layout::new(&[count, 3], &[1, count as isize], 0).unwrap(),
            ] {
                let out = zeros(out, DType::Int64);
                let output = Target::shared("test", out.borrow()).unwrap();
                run(&Cpu, "test", &Request::Nonzero(Nonzero { input: input.borrow(), output }))
                    .unwrap();
                let got: Vec<i64> = read(&out).iter().map(Scalar::get).collect();
                assert_eq!(got, expected);
            }
        }
    }
}

#[test]
fn nonzero_of_a_long_line_is_in_order_at_any_step() {
    let mut rng = Rng(4);
    let count = 70_000;
    for chance in [0, 1, 7, 8] {
        let flags: Vec<Scalar> = (0..count).map(|_| Scalar::new(rng.next() % 8 < chance)).collect();
        let expected: Vec<i64> =
            (0..).zip(&flags).filter(|(_, f)| f.is_true()).map(|f| f.0).collect();
        for (step, offset) in [(1, 0), (-2, 2 * count - 2)] {
            let layout = Layout::new(&[count], &[step], offset).unwrap();
            let input = array(layout, DType::Bool, &flags);
            let out = zeros(Layout::new(&[expected.len(), 1], &[3, 1], 1).unwrap(), DType::Int64);
            let output = Target::shared("test", out.borrow()).unwrap();
            run(&Cpu, "test", &Request::Nonzero(Nonzero { input: input.borrow(), output }))
                .unwrap();
            let got: Vec<i64> = read(&out).iter().map(Scalar::get).collect();
            assert!(got == expected, "chance {chance}, step {step}");
        }
    }
}

#[test]
fn nonzero_of_several_axes_and_pieces_is_in_order() {
    let mut rng = Rng(5);
    let (rows, planes, columns) = (30, 7, 300);
    let flags: Vec<Scalar> =
        (0..rows * planes * columns).map(|_| Scalar::new(rng.next().is_multiple_of(3))).collect();
    let expected: Vec<i64> = (0..flags.len())
        .filter(|&k| flags[k].is_true())
        .flat_map(|k| [k / (planes * columns), k / columns % planes, k % columns])
        .map(|i| i as i64)
        .collect();
    let shape = [rows, planes, columns];
    for strides in [[planes * columns, columns, 1], [1, rows, rows * planes]] {
        let strides = strides.map(usize::cast_signed);
        let input = array(Layout::new(&shape, &strides, 0).unwrap(), DType::Bool, &flags);
        let out = zeros(Layout::contiguous(&[expected.len() / 3, 3]).unwrap(), DType::Int64);
        let output = Target::shared("test", out.borrow()).unwrap();
        run(&Cpu, "test", &Request::Nonzero(Nonzero { input: input.borrow(), output })).unwrap();
        let got: Vec<i64> = read(&out).iter().map(Scalar::get).collect();
        assert!(got == expected, "{strides:?}");
    }
}

#[test]
fn random_numbers_are_those_of_the_definition() {
    let integers = Distribution::Integers { low: -5, span: 11 };
    let all = Distribution::Integers { low: i64::MIN, span: 0 };
    for (distribution, dtype) in [
        (Distribution::Bits, DType::UInt64),
        (Distribution::Uniform, DType::Float32),
        (Distribution::Uniform, DType::Float64),
        (Distribution::Normal, DType::Float32),
        (Distribution::Normal, DType::Float64),
        (integers, DType::Int64),
        (all, DType::Int64),
    ] {
        for n in [0, 1, 31, 32, 33, 127, 300, 40_000] {
            for (layout, counter) in [
                (Layout::contiguous(&[n]).unwrap(), 0),
                (Layout::new(&[n], &[1], 3).unwrap(), u32::MAX as u64 - 20),
                (Layout::new(&[n], &[2], 0).unwrap(), u64::MAX - 5),
            ] {
                let key = 0x1234_5678_9abc_def0;
                let out = zeros(layout, dtype);
                let output = Target::shared("test", out.borrow()).unwrap();
                run(&Cpu, "test", &Request::Random(Random { distribution, key, counter, output }))
                    .unwrap();
                for (k, got) in read(&out).iter().enumerate() {
                    let number = counter.wrapping_add(k as u64);
                    let expected = distribution.evaluate(key, number, dtype);
                    let near = match distribution {
                        Distribution::Normal => ulps(got, &expected) <= 4.0,
                        _ => *got == expected,
                    };
                    assert!(near, "{distribution:?} {dtype} {k}: {got:?} is not {expected:?}");
                }
            }
        }
    }
}
