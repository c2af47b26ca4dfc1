//! Foreign memory that is known as several blocks: one operation on two of them gives what it would
//! give if its source had been copied first.

use tilework::{Array, DType, DeviceId, Indexer, Layout, Storage, s};
use tilework_layout::{Overlap, overlap};

const CPU: DeviceId = DeviceId { backend: "cpu", index: None };

/// Memory that several blocks are made of.
struct Bytes(Vec<u64>);

impl Bytes {
    fn counting(elements: u64) -> Bytes {
        Bytes((0..elements).map(|k| (k as f64).to_bits()).collect())
    }

    /// A block of its own on all bytes but the first `skip`, as elements of `dtype`.
    fn block(&mut self, skip: usize, dtype: DType) -> Array {
        let bytes = self.0.len() * 8 - skip;
        let address = self.0.as_mut_ptr().cast::<u8>().wrapping_add(skip);
        // SAFETY: the bytes lie in the vector, which outlives the arrays of a test; a test is one
        // thread and touches the vector in no other way while they live.
        let storage = unsafe { Storage::foreign(CPU, address, bytes, true, true, Box::new(())) };
        let layout = Layout::contiguous(&[bytes / dtype.size()]).unwrap();
        Array::from_storage(storage.unwrap(), layout, dtype).unwrap()
    }
}

fn numbers(x: &Array) -> Vec<f64> {
    x.to_vec().unwrap()
}

#[test]
fn a_source_in_another_block_of_the_same_bytes_is_read_first() {
    let count = 5000u64;
    let fresh = || {
        let mut bytes = Bytes::counting(count);
        let (a, b) = (bytes.block(0, DType::Float64), bytes.block(0, DType::Float64));
        (bytes, a, b)
    };
    let expected = |f: &dyn Fn(f64) -> f64| (0..count).map(|k| f(k as f64)).collect::<Vec<_>>();

    let (_bytes, a, b) = fresh();
    a.slice(&s![1..]).unwrap().add_assign(&b.slice(&s![..-1]).unwrap()).unwrap();
    assert_eq!(numbers(&a), expected(&|k| if k == 0.0 { 0.0 } else { 2.0 * k - 1.0 }));

    let (_bytes, a, b) = fresh();
    a.assign(&b.slice(&s![..;-1]).unwrap()).unwrap();
    assert_eq!(numbers(&a), expected(&|k| (count - 1) as f64 - k));

    let (_bytes, a, b) = fresh();
    a.add_assign(&b).unwrap();
    assert_eq!(numbers(&b), expected(&|k| 2.0 * k));

    let (_bytes, a, b) = fresh();
    let (a, b) = (a.slice(&s![..4900]).unwrap(), b.slice(&s![..4900]).unwrap());
    let (a, b) = (a.reshape(&[70, 70]).unwrap(), b.reshape(&[70, 70]).unwrap());
    let product = a.copy().unwrap().matmul(&a.copy().unwrap()).unwrap();
    b.matmul_into(&b, &a).unwrap();
    assert_eq!(numbers(&a), numbers(&product));

    let mut bytes = Bytes((0..100).rev().collect());
    let (target, order) = (bytes.block(0, DType::Int64), bytes.block(0, DType::Int64));
    let reversed = target.slice(&s![..;-1]).unwrap().copy().unwrap();
    target.index_set(&[Indexer::Array(&order)], &target.copy().unwrap()).unwrap();
    assert_eq!(target.to_vec::<i64>().unwrap(), reversed.to_vec::<i64>().unwrap());
}

/// Blocks that begin apart meet as their layouts do, counted from one place.
#[test]
fn distances_between_blocks_are_exact() {
    let mut bytes = Bytes::counting(40);
    let whole = bytes.block(0, DType::Float32);
    for skip in (0..40).step_by(4) {
        let other = bytes.block(skip, DType::Float32);
        for (a, b) in
            [(s![..;2], s![..;2]), (s![..;2], s![1..;2]), (s![..10], s![5..]), (s![..10], s![..])]
        {
            let (a, b) = (whole.slice(&a).unwrap(), other.slice(&b).unwrap());
            let same = b.layout().with_offset(b.offset() + skip / 4).unwrap();
            let meet = overlap(a.layout(), &same) != Overlap::None;
            assert_eq!(
                (a.shares_memory(&b), b.shares_memory(&a)),
                (meet, meet),
                "{skip}: {a:?} {b:?}"
            );
        }
    }
    // A distance of half an element: nothing is known but that the bytes meet.
    let (one, half) = (bytes.block(0, DType::Complex64), bytes.block(4, DType::Complex64));
    assert!(one.shares_memory(&half) && half.shares_memory(&one));
    let before = one.slice(&s![..-1]).unwrap().copy().unwrap();
    half.assign(&one.slice(&s![..-1]).unwrap()).unwrap();
    assert_eq!(
        half.copy().unwrap().equal(&before).unwrap().all(()).unwrap().item::<bool>(),
        Ok(true)
    );
    let apart = Bytes::counting(4).block(0, DType::Float64);
    assert!(!apart.shares_memory(&one) && !one.shares_memory(&apart));
}
