//! What the drivers promise beside accuracy: results that do not depend on position, alignment or
//! length, untouched memory behind the end, and conversions that agree bit for bit on all levels.

use tilework_simd::{CONVERSIONS, Elem, KERNELS, Kernel, Level, conversion, convert, kernel};

fn available() -> impl Iterator<Item = Level> {
    Level::ALL.into_iter().filter(|l| l.is_available())
}

/// Runs `f` on `n` elements of `size` bytes from byte `offset` of copies of the inputs; returns the
/// bytes written, checking that nothing else was.
fn run_at(
    f: Kernel,
    n: usize,
    sizes: (usize, usize),
    offset: usize,
    a: &[u8],
    b: &[u8],
) -> Vec<u8> {
    let shifted = |x: &[u8]| {
        let mut v = vec![0xAAu8; offset];
        v.extend_from_slice(x);
        v
    };
    let (a, b) = (shifted(&a[..n * sizes.0]), shifted(&b[..n * sizes.0]));
    let mut out = vec![0x55u8; offset + n * sizes.1 + 64];
    // SAFETY: the level is available; n elements lie behind each offset; no two buffers overlap.
    unsafe {
        let (a, b) = (a.as_ptr().add(offset), b.as_ptr().add(offset));
        f(n, out.as_mut_ptr().add(offset), a, b, a);
    }
    assert!(out[..offset].iter().all(|x| *x == 0x55), "wrote before the start");
    assert!(out[offset + n * sizes.1..].iter().all(|x| *x == 0x55), "wrote behind the end");
    out[offset..offset + n * sizes.1].to_vec()
}

#[test]
fn results_do_not_depend_on_position() {
    const N: usize = 67;
    // Ordinary values, with a huge one that sends its neighbours' register through the cold path.
    let value = |i: usize| match i % 23 {
        7 => 1e30,
        11 => 1e-40,
        i => (i as f64 - 9.0) * 0.37,
    };
    for &(name, elem, functions) in KERNELS {
        let bytes = |k: usize| -> Vec<u8> {
            (0..N)
                .flat_map(|i| match elem {
                    Elem::F32 => (value(i + k) as f32).to_le_bytes().to_vec(),
                    Elem::F64 => value(i + k).to_le_bytes().to_vec(),
                })
                .collect()
        };
        let size = if elem == Elem::F32 { 4 } else { 8 };
        let (a, b) = (bytes(0), bytes(3));
        for level in available() {
            let f = functions[level as usize];
            let whole = run_at(f, N, (size, size), 0, &a, &b);
            for n in 0..N {
                for offset in [0, 4, 1] {
                    let part = run_at(f, n, (size, size), offset, &a, &b);
                    assert_eq!(part, whole[..n * size], "{name} {elem:?} {level:?}: {n} elements");
                    let start = N - n;
                    let tail =
                        run_at(f, n, (size, size), offset, &a[start * size..], &b[start * size..]);
                    assert_eq!(tail, whole[start * size..], "{name} {elem:?} {level:?}: last {n}");
                }
            }
        }
    }
}

#[test]
fn the_table_has_every_operation() {
    let names = "exp exp2 expm1 log log1p log2 log10 sin cos tan tanh sinh cosh asin acos atan atan2 \
                 asinh acosh atanh pow erf sigmoid cbrt rsqrt hypot logaddexp exp2_pair rcp_pair rsqrt_pair";
    for name in names.split_whitespace() {
        for elem in [Elem::F32, Elem::F64] {
            assert!(kernel(name, elem, Level::Scalar).is_some(), "{name} {elem:?}");
        }
    }
    assert!(kernel("no such", Elem::F32, Level::Scalar).is_none());
    assert!(conversion("f16_to_f32", Level::Scalar).is_some());
}

#[test]
fn half_conversions_agree_and_round_to_even() {
    let halves: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    // Every half value, the points between neighbours and their neighbours, and a sweep.
    let mut singles: Vec<f32> = Vec::new();
    for h in 0..=u16::MAX {
        for x in [convert::f16_to_f32(h), convert::bf16_to_f32(h)] {
            let b = x.to_bits();
            singles.extend(
                [
                    b,
                    b ^ 1,
                    b.wrapping_add(0x1000),
                    b.wrapping_add(0x0FFF),
                    b.wrapping_add(0x1001),
                    b.wrapping_add(0x8000),
                    b.wrapping_add(0x7FFF),
                ]
                .map(f32::from_bits),
            );
        }
    }
    singles.extend((0..1 << 20).map(|i: u32| f32::from_bits(i.wrapping_mul(4099))));
    let bytes: Vec<u8> = singles.iter().flat_map(|x| x.to_le_bytes()).collect();
    for &(name, functions) in CONVERSIONS {
        let (input, sizes) =
            if name.starts_with("f32") { (&bytes, (4, 2)) } else { (&halves, (2, 4)) };
        let n = input.len() / sizes.0;
        let expected = run_at(functions[0], n, sizes, 0, input, input);
        for level in available() {
            let got = run_at(functions[level as usize], n, sizes, 0, input, input);
            let at = got.chunks(sizes.1).zip(expected.chunks(sizes.1)).position(|(g, e)| g != e);
            assert_eq!(
                at.map(|i| (i, &input[i * sizes.0..(i + 1) * sizes.0])),
                None,
                "{name} {level:?}"
            );
            for n in 0..40 {
                assert_eq!(
                    run_at(functions[level as usize], n, sizes, 2, input, input),
                    expected[..n * sizes.1]
                );
            }
        }
    }
    for (x, h) in [
        (1.0, 0x3C00),
        (65504.0, 0x7BFF),
        (65519.99, 0x7BFF),
        (65520.0, 0x7C00),
        (5.9604645e-8, 1),
        (2.9802322e-8, 0),
        (2.9802326e-8, 1),
        (-0.0, 0x8000),
        (1.0 + 1.0 / 2048.0, 0x3C00),
        (1.0 + 3.0 / 2048.0, 0x3C02),
    ] {
        assert_eq!(convert::f32_to_f16(x), h, "{x}");
    }
    for h in 0..=u16::MAX {
        let (x, y) = (convert::f16_to_f32(h), convert::bf16_to_f32(h));
        assert!(x.is_nan() || convert::f32_to_f16(x) == h);
        assert!(y.is_nan() || convert::f32_to_bf16(y) == h);
        assert!(!x.is_nan() || h & 0x7FFF > 0x7C00);
    }
    assert_eq!(convert::f32_to_bf16(f32::from_bits(0x7F80_0001)), 0x7FC0);
    assert_eq!(convert::f32_to_bf16(f32::MAX), 0x7F80);
}

/// The cheap rows keep their own bounds, and their edges.
#[test]
fn pair_rows_hold_their_bounds() {
    let xs: Vec<f32> = (0..400_000).map(|i| (i as f32 - 200_000.0) * 0.0005).collect();
    for level in available() {
        let apply = |name: &str, xs: &[f32]| {
            let mut out = vec![0f32; xs.len()];
            let f = kernel(name, Elem::F32, level).unwrap();
            // SAFETY: the level is available and both sides have one length.
            unsafe {
                f(
                    xs.len(),
                    out.as_mut_ptr().cast(),
                    xs.as_ptr().cast(),
                    xs.as_ptr().cast(),
                    xs.as_ptr().cast(),
                )
            };
            out
        };
        for (x, y) in xs.iter().zip(apply("exp2_pair", &xs)) {
            let r = f64::from(*x).exp2();
            let bound = (f64::from(x.abs()) + 2.0) * 2f64.powi(-23) * r;
            // What would be subnormal is 0.
            let bound = if *x < -126.0 { f64::from(f32::MIN_POSITIVE) } else { bound };
            assert!(
                (f64::from(y) - r).abs() <= bound || r > 3.4e38 && y.is_infinite(),
                "{level:?} exp2_pair({x}) = {y}"
            );
        }
        let powers =
            [("rcp_pair", -1.0), ("rsqrt_pair", -0.5), ("sqrt_pair", 0.5), ("rsqrt_or_zero", -0.5)];
        for (name, exact) in powers {
            let positive: Vec<f32> = xs.iter().map(|x| x.abs() + 1e-3).collect();
            for (x, y) in positive.iter().zip(apply(name, &positive)) {
                let r = f64::from(*x).powf(exact);
                assert!(
                    (f64::from(y) / r - 1.0).abs() < 4.0 * 2f64.powi(-24),
                    "{level:?} {name}({x}) = {y}"
                );
            }
        }
        let edge = [0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1000.0, -1000.0];
        let e = apply("exp2_pair", &edge);
        assert_eq!(
            (e[0], e[1], e[2], e[4], e[5]),
            (1.0, f32::INFINITY, 0.0, f32::INFINITY, 0.0),
            "{level:?}"
        );
        let ends = apply("exp2_pair", &[-126.0, -126.5, -149.0]);
        assert_eq!(ends, [f32::MIN_POSITIVE, 0.0, 0.0], "{level:?}");
        assert!(e[3].is_nan());
        let r = apply("rcp_pair", &edge);
        assert!(r[0] == f32::INFINITY && r[1] == 0.0 && r[3].is_nan(), "{level:?} {r:?}");
        let r = apply("rsqrt_pair", &edge);
        assert!(r[0] == f32::INFINITY && r[1] == 0.0 && r[3].is_nan(), "{level:?} {r:?}");
        let r = apply("sqrt_pair", &edge);
        assert!(r[..2] == edge[..2] && r[2].is_nan() && r[3].is_nan(), "{level:?} {r:?}");
        let r = apply("rsqrt_or_zero", &edge);
        assert!(r[..2] == [0.0, 0.0] && r[2].is_nan() && r[3].is_nan(), "{level:?} {r:?}");
    }
}
