//! What only a device of its own can get wrong: transfers, memory, threads, wide indices, repeats.
//!
//! Runs on the first CUDA device; says "not checked" where there is none.

use std::ops::Range;
use std::sync::Arc;

use tilework::Direction;
use tilework_backend::{Backend, Held, Moment};
use tilework_conformance::{Array, DType, Device, Error, Result, on};

/// Runs a test where there is a device.
fn on_cuda(test: fn(Device) -> Result<()>) {
    on(Device::parse("cuda:0"), |device| test(device).unwrap());
}

/// Numbers of both signs and many sizes, the same on every device.
fn numbers(n: usize) -> Vec<f32> {
    let word = |k: usize| (k as u32).wrapping_mul(2_654_435_761).rotate_left(9) ^ 0x5bd1_e995;
    (0..n).map(|k| (word(k) as f32 / u32::MAX as f32 - 0.5) * (1 + k % 7) as f32).collect()
}

#[test]
fn transfers_keep_every_byte() {
    on_cuda(|device| {
        for n in [0, 1, 3, 1 << 20, (1 << 20) + 1, (3 << 20) - 7, (5 << 20) + 3] {
            let values = numbers(n);
            let there = Array::from_slice_on(device, &values)?;
            assert_eq!(there.to_vec::<f32>()?, values, "{n} elements");
            let back = there.to_device(Device::cpu())?.to_device(device)?;
            assert_eq!(back.to_vec::<f32>()?, values, "{n} elements by way of the CPU");
        }
        Ok(())
    });
}

/// Bytes of a part of a block at a moment, and that their pieces come in order.
fn given(held: &Held<'_>, part: Range<usize>, moment: &Moment) -> Result<Vec<u8>> {
    let mut given = Vec::new();
    held.give(part, moment, &mut |at, piece| {
        assert_eq!(at, given.len());
        given.extend_from_slice(piece);
        Ok(())
    })?;
    Ok(given)
}

/// A part of a block as it was at a moment: after what was asked before, and before what was asked since is done; also after
/// somebody who took pieces has given up, or unwound.
#[test]
fn blocks_are_given_as_they_were_at_a_moment() {
    on_cuda(|device| {
        const AT: usize = 5;
        const ATTEMPTS: usize = 5;
        let cuda = &tilework_cuda::devices().expect("there is one")[0];
        // This one has done what it was asked when it answers, so that nothing is asked since.
        let is_emulated = cuda.properties().contains(&("name", "emulated card".into()));
        if is_emulated {
            println!("not checked: whether moments wait for what is asked since");
        }
        // A tenth of a second on an H200: much longer than bytes take, and few enough kernels that asking for them does
        // not wait.
        let (elements, times) = if is_emulated { (1 << 10, 1) } else { (1 << 27, 400) };
        let load = Array::zeros_on(device, &[elements], DType::Float32)?;
        let mut asked = 0;
        let mut long_work = || {
            asked += times;
            (0..times).try_for_each(|_| load.add_assign(1.0))
        };
        for len in [0, 1, 4096, (4 << 20) + 1, (9 << 20) + 3] {
            let part = AT..AT + len;
            let before: Vec<f32> =
                (0..(len + 2 * AT).div_ceil(4)).map(|k| (k % 251) as f32).collect();
            let after: Vec<u8> = before.iter().flat_map(|x| (x + 1.0).to_ne_bytes()).collect();
            let expected = &after[part.clone()];
            for attempt in 1.. {
                let block = Array::from_slice_on(device, &before)?;
                // What does not wait for the moment finds what was there before.
                long_work()?;
                block.add_assign(1.0)?;
                let moment = cuda.moment()?;
                // What waits for work since finds it done, every time. That what does not wait finds it under way is a
                // matter of time, so that one of several attempts is enough.
                long_work()?;
                let owner = Arc::new(());
                cuda.keep_until_done(Box::new(owner.clone()));
                let held = Held::new(cuda, "test", block.storage())?;
                assert!(given(&held, part.clone(), &moment)? == expected, "{len} bytes");
                // Lets go of the owner if the device is done.
                cuda.keep_until_done(Box::new(()));
                let is_beside = Arc::strong_count(&owner) == 2;
                if !is_beside && !is_emulated && attempt < ATTEMPTS {
                    continue;
                }
                assert!(is_beside || is_emulated, "{len} bytes wait for what was asked since");
                for moment in [&Moment::default(), &moment] {
                    assert!(given(&held, part.clone(), moment)? == expected, "{len} bytes");
                    let enough = &mut |_: usize, _: &[u8]| Err(Error::value("test", "enough"));
                    assert_eq!(held.give(part.clone(), moment, enough).is_err(), len > 0, "{len}");
                    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                        held.give(part.clone(), moment, &mut |_, _| panic!("somebody unwinds"))
                    }));
                    assert_eq!(unwound.is_err(), len > 0, "{len}");
                }
                assert!(given(&held, part.clone(), &moment)? == expected, "{len} bytes again");
                break;
            }
        }
        let last = load.slice(&tilework::s![-1..])?.item::<f32>()?;
        assert_eq!(last, asked as f32);
        Ok(())
    });
}

#[test]
fn repeats_are_bit_identical_wherever_the_data_lie() {
    on_cuda(|device| {
        let n = 1_000_003;
        let values = numbers(n);
        let results = |x: &Array| -> Result<Vec<Array>> {
            let square = x.slice(&tilework::s![..1_000_000])?.reshape(&[1000, 1000])?;
            Ok(vec![
                x.sum(())?,
                x.mean(())?,
                x.var((), 0.0)?,
                x.logsumexp(())?,
                square.sum(0)?,
                square.sum(1)?,
                x.cumulative_sum(0)?,
                x.sort(0, Direction::Ascending)?,
                x.exp()?.multiply(x)?,
                square.matmul(&square.transpose())?,
            ])
        };
        let bits = |x: &Array| -> Result<Vec<Vec<u32>>> {
            let bits = |array: &Array| -> Result<Vec<u32>> {
                Ok(array.to_vec::<f32>()?.into_iter().map(f32::to_bits).collect())
            };
            results(x)?.iter().map(bits).collect()
        };
        let first = bits(&Array::from_slice_on(device, &values)?)?;
        for shift in [0, 1, 3, 64] {
            let block = Array::zeros_on(device, &[n + 100], DType::Float32)?;
            let part = block.slice(&tilework::s![shift..shift + n as isize])?;
            part.assign(&Array::from_slice_on(device, &values)?)?;
            assert!(bits(&part)? == first, "shifted by {shift}");
        }
        Ok(())
    });
}

/// Long rows are large enough here for the ring of tiles, which wants aligned rows.
#[test]
fn running_sums_are_bit_identical_wherever_the_data_lie() {
    on_cuda(|device| {
        for (rows, count) in [(1, 27_000_003), (9, 3_000_004), (1, 28_000_000), (1600, 16_004)] {
            let n = rows * count;
            let values = Array::from_slice_on(device, &numbers(n))?;
            let shape = [rows as isize, count as isize];
            let exact = values.to_dtype(DType::Float64)?.reshape(&shape)?;
            let (size, exact) = (exact.abs()?.cumulative_sum(1)?, exact.cumulative_sum(1)?);
            for dtype in [DType::Float32, DType::Float64, DType::Int64] {
                let here = values.to_dtype(dtype)?;
                let block = Array::zeros_on(device, &[n + 1], dtype)?;
                let moved = block.slice(&tilework::s![1..])?;
                moved.assign(&here)?;
                let sums = |x: &Array| x.reshape(&shape)?.cumulative_sum(1);
                let (sum, other) = (sums(&here)?, sums(&moved)?);
                let same = sum.equal(&other)?.all(())?.item::<bool>()?;
                assert!(same, "{rows} x {count} of {dtype}");
                let error = sum.to_dtype(DType::Float64)?.subtract(&exact)?.abs()?.divide(&size)?;
                let most = error.max(())?.item::<f64>()?;
                let bound = if dtype == DType::Int64 { f64::INFINITY } else { 1e-5 };
                assert!(most < bound, "{rows} x {count} of {dtype}: {most}");
            }
        }
        Ok(())
    });
}

/// Products of half types are large enough here for the copy engine, which wants aligned rows.
#[test]
fn products_of_half_types_are_bit_identical_wherever_the_data_lie() {
    on_cuda(|device| {
        for dtype in [DType::Float16, DType::BFloat16] {
            for [m, k, n] in [[1500, 320, 1600], [1100, 203, 1301]] {
                let values = Array::from_slice_on(device, &numbers(k * (m + n)))?.astype(dtype)?;
                let bits = |all: &Array| -> Result<Vec<f32>> {
                    let end = k * m;
                    let a = all.slice(&tilework::s![..end])?.reshape(&[m as isize, k as isize])?;
                    let b = all.slice(&tilework::s![end..])?.reshape(&[k as isize, n as isize])?;
                    a.matmul(&b)?.astype(DType::Float32)?.to_vec()
                };
                let first = bits(&values)?;
                for shift in [1, 3, 8] {
                    let block = Array::zeros_on(device, &[values.len() + 100], dtype)?;
                    let part = block.slice(&tilework::s![shift..shift + values.len()])?;
                    part.assign(&values)?;
                    assert!(bits(&part)? == first, "{dtype} {m} x {k} x {n} shifted by {shift}");
                }
            }
        }
        Ok(())
    });
}

#[test]
fn without_memory_is_an_error_and_the_device_stays_usable() {
    on_cuda(|device| {
        for _ in 0..3 {
            let all = Array::zeros_on(device, &[1 << 44], DType::Float32);
            assert!(matches!(all, Err(Error::OutOfMemory(_))), "{:?}", all.err());
            let some = Array::full_on(device, &[1000], 2.0, DType::Float32)?;
            assert_eq!(some.sum(())?.item::<f32>()?, 2000.0);
        }
        Ok(())
    });
}

#[test]
fn more_elements_than_32_bits_count() {
    on_cuda(|device| {
        let n = (1usize << 32) + 17;
        let x = Array::full_on(device, &[n], 1, DType::UInt8)?;
        let y = x.add(&x)?;
        assert_eq!(y.sum(())?.item::<u64>()?, 2 * n as u64);
        let end = y.slice(&tilework::s![-3..])?;
        end.fill(9)?;
        assert_eq!(y.argmax(())?.item::<i64>()?, n as i64 - 3);
        assert_eq!(y.flip(None)?.slice(&tilework::s![..5])?.to_vec::<u8>()?, [9, 9, 9, 2, 2]);
        Ok(())
    });
}

#[test]
fn more_elements_than_32_bits_count_by_position() {
    on_cuda(|device| {
        let n = (1usize << 32) + 17;
        let x = Array::full_on(device, &[n], 1, DType::UInt8)?;
        // Three places behind 2^32, one before.
        let places = [n as i64 - 1, 1 << 32, 5, (1 << 32) + 3];
        let places = Array::from_slice_on(device, &places)?;
        let values = Array::from_slice_on(device, &[4u8, 3, 2, 7])?;
        x.put_along_axis(&places, &values, 0)?;
        assert_eq!(x.take(&places, 0)?.to_vec::<u8>()?, [4, 3, 2, 7]);
        assert_eq!(x.sum(())?.item::<u64>()?, n as u64 + 12);
        let sums = x.cumulative_sum(0)?;
        let last = sums.slice(&tilework::s![-2..])?.to_vec::<u64>()?;
        assert_eq!(last, [n as u64 + 8, n as u64 + 12]);
        drop(sums);
        // Positions in a sorted row have 32 bits.
        let message =
            x.sort(0, Direction::Ascending).expect_err("a row that is too long").to_string();
        assert!(message.starts_with(&format!("sort: rows of {n} elements")), "{message}");
        // A matrix of more than 2^32 elements times a vector, and a result of so many.
        let rows = (1isize << 17) + 1;
        let matrix = Array::full_on(device, &[rows as usize, 1 << 15], 1, DType::UInt8)?;
        matrix.slice(&tilework::s![-1, -2..])?.fill(6)?;
        let ones = Array::full_on(device, &[1 << 15, 1], 1, DType::UInt8)?;
        let sums = matrix.matmul(&ones)?.slice(&tilework::s![-2.., 0])?.to_vec::<u8>()?;
        assert_eq!(sums, [0, 10]);
        let column = Array::full_on(device, &[rows as usize, 1], 3, DType::UInt8)?;
        let row = Array::full_on(device, &[1, 1 << 15], 5, DType::UInt8)?;
        let outer = column.matmul(&row)?;
        assert_eq!(outer.slice(&tilework::s![-1, -3..])?.to_vec::<u8>()?, [15, 15, 15]);
        assert_eq!(outer.min(())?.item::<u8>()?, 15);
        Ok(())
    });
}

#[test]
fn eight_threads_at_once() {
    on_cuda(|device| {
        let work = |seed: usize, device: Device| -> Result<Vec<f32>> {
            let x = Array::from_slice_on(device, &numbers(50_000 + seed * 17)[seed..])?;
            let mut y = x.clone();
            for step in 0..20 {
                y = y.multiply(0.5)?.add(&x)?.maximum(-(step as f64))?;
            }
            y.slice(&tilework::s![..40_000])?.reshape(&[200, 200])?.transpose().copy()?.to_vec()
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..8).map(|seed| scope.spawn(move || work(seed, device))).collect();
            for (seed, thread) in threads.into_iter().enumerate() {
                let got = thread.join().expect("no panic").expect("no error");
                assert!(got == work(seed, Device::cpu()).expect("no error"), "thread {seed}");
            }
        });
        Ok(())
    });
}

#[test]
fn products_are_accurate_beside_float64() {
    on_cuda(|device| {
        for k in [1000, 8192] {
            let (m, n) = (130, 257);
            let a = Array::from_slice_on(device, &numbers(m * k))?.reshape(&[m as isize, -1])?;
            let b = Array::from_slice_on(device, &numbers(k * n))?.reshape(&[-1, n as isize])?;
            let wide = |x: &Array| x.to_device(Device::cpu())?.astype(DType::Float64);
            let exact = wide(&a)?.matmul(&wide(&b)?)?;
            let size = wide(&a)?.abs()?.matmul(&wide(&b)?.abs()?)?;
            let error = wide(&a.matmul(&b)?)?.subtract(&exact)?.abs()?.divide(&size)?;
            let (mean, most) = (error.mean(())?.item::<f64>()?, error.max(())?.item::<f64>()?);
            println!("k = {k}: mean error {mean:.1e}, largest {most:.1e}");
            assert!(mean < 3e-8 && most < 3e-7, "k = {k}: {mean} {most}");
        }
        Ok(())
    });
}

#[test]
fn crossing_views_are_read_where_they_lie() {
    on_cuda(|device| {
        let results = |device| -> Result<Vec<Vec<f32>>> {
            let x = Array::from_slice_on(device, &numbers(40 * 70))?.reshape(&[40, 70])?;
            let upright = x.reshape(&[70, 40])?;
            let mut all = Vec::new();
            for view in [x.clone(), x.flip(Some(&[0]))?, x.flip(Some(&[1]))?, x.flip(None)?] {
                let crossing = view.transpose();
                all.push(crossing.copy()?.to_vec::<f32>()?);
                all.push(upright.add(&crossing)?.to_vec::<f32>()?);
            }
            Ok(all)
        };
        assert!(results(device)? == results(Device::cpu())?);
        Ok(())
    });
}

/// Sums that are too short for tensor cores, of operands that lie along them and are turned first.
#[test]
fn operands_along_the_sum_agree_with_float64() {
    on_cuda(|device| {
        let operand = |batches: usize, rows: usize| -> Result<Array> {
            let numbers = numbers(batches * rows * 45);
            Array::from_slice_on(device, &numbers)?.reshape(&[batches as isize, -1, 45])
        };
        for (left, right) in [(1, 1), (2, 2), (1, 2), (2, 1)] {
            let (long, short) = (operand(left, 24_001)?, operand(right, 1030)?);
            for (a, b) in [(&long, &short), (&short, &long)] {
                let (a, b) = (a, b.matrix_transpose()?);
                let wide = |x: &Array| x.to_dtype(DType::Float64);
                let size = wide(a)?.abs()?.matmul(&wide(&b)?.abs()?)?;
                let exact = wide(a)?.matmul(&wide(&b)?)?;
                let error = wide(&a.matmul(&b)?)?.subtract(&exact)?.abs()?.divide(&size)?;
                let most = error.max(())?.item::<f64>()?;
                assert!(most < 1e-6, "{left} x {right} batches, {:?}: {most}", a.shape());
            }
        }
        Ok(())
    });
}

/// Large enough for every kernel of products, beside the same in float64.
#[test]
fn large_products_agree_with_float64() {
    fn operand(device: Device, shape: [usize; 2], dtype: DType, turned: bool) -> Result<Array> {
        let stored = if turned { [shape[1], shape[0]] } else { shape };
        let x = Array::from_slice_on(device, &numbers(shape[0] * shape[1]))?
            .reshape(&stored.map(usize::cast_signed))?;
        let x = x.to_dtype(dtype)?;
        Ok(if turned { x.transpose() } else { x })
    }
    fn agree(what: &str, a: &Array, b: &Array) -> Result<()> {
        let wide = |x: &Array| x.to_dtype(DType::Float64);
        let got = wide(&a.matmul(b)?)?.to_vec::<f64>()?;
        // What the dtype cannot hold is infinite in both.
        let expected = wide(a)?.matmul(&wide(b)?)?.to_dtype(a.dtype())?;
        let expected = wide(&expected)?.to_vec::<f64>()?;
        let sizes = wide(a)?.abs()?.matmul(&wide(b)?.abs()?)?.to_vec::<f64>()?;
        let eps = a.dtype().finfo().expect("floating point").eps;
        for ((got, expected), size) in got.iter().zip(expected).zip(sizes) {
            let alike = *got == expected || (got.is_nan() && expected.is_nan());
            let near = (got - expected).abs() <= 8.0 * eps * size;
            assert!(alike || near, "{what}: {got} is not {expected} (|A||B| is {size})");
        }
        Ok(())
    }
    on_cuda(|device| {
        let few = [(64, 70_000, 64), (1, 5000, 5000)];
        let sizes = [(700, 640, 650), (2048, 64, 2048), (2050, 50, 2203), (1501, 41, 1603)];
        let sizes = sizes.into_iter().chain(few);
        for dtype in [DType::Float32, DType::Float64, DType::Float16, DType::BFloat16] {
            for (m, k, n) in sizes.clone() {
                for order in 0..4 {
                    let a = operand(device, [m, k], dtype, order & 1 == 1)?;
                    let b = operand(device, [k, n], dtype, order & 2 == 2)?;
                    agree(&format!("{dtype}, {m} x {k} x {n}, order {order}"), &a, &b)?;
                }
            }
            let (row, b) = (
                operand(device, [1, 64], dtype, false)?,
                operand(device, [64, 2304], dtype, false)?,
            );
            let a = row.broadcast_to(&[2048, 64])?;
            agree(&format!("{dtype}, one row 2048 times"), &a, &b)?;
            agree(&format!("{dtype}, one column 2048 times"), &b.transpose(), &a.transpose())?;
        }
        for (place, odd) in [(5, f32::INFINITY), (70_001, f32::NAN), (9, 1e-30), (100_000, 1e30)] {
            for (m, k, n) in [(700, 640, 650), (2050, 50, 2203), (3000, 40, 800), (64, 6400, 64)] {
                let mut values = numbers(m * k);
                values[place] = odd;
                let a = Array::from_slice_on(device, &values)?
                    .reshape(&[m, k].map(usize::cast_signed))?;
                let b = operand(device, [k, n], DType::Float32, false)?;
                agree(&format!("{odd} in {m} x {k} x {n}"), &a, &b)?;
            }
        }
        Ok(())
    });
}

/// Long sums of few results, whose blocks add their pieces together: the same bits every time, also of sums of other
/// sizes in between and of several threads, and the same numbers as float64's.
#[test]
fn sums_in_many_pieces_are_the_same_every_time() {
    fn product(device: Device, [batches, m, k, n]: [usize; 4]) -> Result<Array> {
        let operand = |rows: usize, columns: usize| -> Result<Array> {
            let x = Array::from_slice_on(device, &numbers(batches * rows * columns))?;
            x.reshape(&[batches, rows, columns].map(usize::cast_signed))
        };
        let (a, b) = (operand(m, k)?, operand(k, n)?);
        let wide = |x: &Array| x.to_dtype(DType::Float64);
        let got = a.matmul(&b)?;
        let error = wide(&got)?.subtract(&wide(&a)?.matmul(&wide(&b)?)?)?.abs()?;
        let error = error.divide(&wide(&a)?.abs()?.matmul(&wide(&b)?.abs()?)?)?.max(())?;
        assert!(error.item::<f64>()? < 1e-6, "{batches} of {m} x {k} x {n}: {error:?}");
        for _ in 0..20 {
            assert!(a.matmul(&b)?.to_vec::<f32>()? == got.to_vec::<f32>()?);
        }
        Ok(got)
    }
    on_cuda(|device| {
        // All blocks at once, but for the last sums, which are too long for that; some blocks have several
        // parts of a tile, and tiles of the edges are not whole.
        let sizes =
            [[1, 64, 65_536, 64], [1, 70, 5001, 45], [3, 60, 9000, 33], [1, 100, 3000, 100]];
        let sizes = [&sizes[..], &[[1, 64, 200_000, 64]]].concat();
        let all = |sizes: Vec<[usize; 4]>| -> Result<Vec<Vec<f32>>> {
            sizes.into_iter().map(|size| product(device, size)?.to_vec()).collect()
        };
        let first = all(sizes.clone())?;
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| all(sizes.clone()))).collect();
            for thread in threads {
                assert!(thread.join().expect("no panic").expect("no error") == first);
            }
        });
        Ok(())
    });
}

/// Runs that go round a ring, aligned and not, with ties, with NaN, and with nothing but the least.
#[test]
fn extremes_of_long_runs_are_the_first() {
    on_cuda(|device| {
        let n = (1 << 20) + 16_385;
        let mut ties = vec![0.5; n];
        (7..n).step_by(9_991).for_each(|k| ties[k] = if k % 2 == 0 { 3.0 } else { -3.0 });
        let mut odd = numbers(n);
        [n - 1, n - 2, 700_000].into_iter().for_each(|k| odd[k] = f32::NAN);
        let (least, most) = (vec![f32::NEG_INFINITY; n], vec![f32::INFINITY; n]);
        for (what, values) in [numbers(n), ties, odd, least, most].iter().enumerate() {
            let whole: Vec<i32> = values.iter().map(|x| (x * 1000.0) as i32).collect();
            let results = |device, dtype| -> Result<Vec<Vec<f64>>> {
                let x = match dtype {
                    DType::Float32 => Array::from_slice_on(device, values)?,
                    _ => Array::from_slice_on(device, &whole)?,
                };
                let mut all = Vec::new();
                for part in [x.clone(), x.slice(&tilework::s![4..])?, x.slice(&tilework::s![1..])?]
                {
                    for result in [part.argmax(())?, part.argmin(())?, part.max(())?, part.min(())?]
                    {
                        all.push(result.astype(DType::Float64)?.to_vec()?);
                    }
                }
                Ok(all)
            };
            for dtype in [DType::Float32, DType::Int32] {
                let (got, expected) = (results(device, dtype)?, results(Device::cpu(), dtype)?);
                let alike = |a: &f64, b: &f64| a == b || (a.is_nan() && b.is_nan());
                let same =
                    got.iter().flatten().zip(expected.iter().flatten()).all(|(a, b)| alike(a, b));
                assert!(same, "{dtype}, numbers {what}: {got:?} {expected:?}");
            }
        }
        Ok(())
    });
}
