//! Threads reading and writing views of one array, and guards that users hold.

use std::sync::atomic::{AtomicBool, Ordering};

use tilework::{Array, DType, Device, Error, s};

/// Writers fill whole rows with one number each; a reader must never see a mixed row, since an
/// operation holds the block while it runs.
#[test]
fn operations_on_one_block_never_mix() {
    for device in Device::all() {
        let x = Array::zeros_on(device, &[8, 500], DType::Int64).expect("zeros");
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for writer in 0..3i64 {
                let (x, done) = (x.clone(), &done);
                scope.spawn(move || {
                    for round in 0..60 {
                        let value = writer * 1000 + round;
                        x.fill(value).expect("fill");
                        x.slice(&s![2..6]).and_then(|rows| rows.add_assign(0)).expect("add");
                    }
                    done.store(true, Ordering::Relaxed);
                });
            }
            for _ in 0..2 {
                let (x, done) = (x.clone(), &done);
                scope.spawn(move || {
                    while !done.load(Ordering::Relaxed) {
                        let copy =
                            x.transpose().copy().and_then(|x| x.to_vec::<i64>()).expect("copy");
                        assert!(copy.iter().all(|value| *value == copy[0]), "a torn read");
                        let (low, high) = (x.min(()).expect("min"), x.max(()).expect("max"));
                        assert!(low.len() == 1 && high.len() == 1);
                    }
                });
            }
        });
    }
}

#[test]
fn guards_refuse_what_conflicts_and_never_wait() {
    let x = Array::zeros(&[4], DType::Float32).expect("zeros");
    let view = x.slice(&s![1..]).expect("slice");
    {
        let read = x.read::<f32>().expect("read");
        let second = view.read::<f32>().expect("readers share");
        assert_eq!((read.len(), second.len()), (4, 3));
        assert!(matches!(view.fill(1.0), Err(Error::Borrowed(_))));
        assert!(matches!(x.write_slice::<f32>(), Err(Error::Borrowed(_))));
        assert!(x.sum(()).is_ok(), "operations that read go on");
    }
    {
        let mut write = view.write_slice::<f32>().expect("write");
        write[2] = 5.0;
        assert!(matches!(x.sum(()), Err(Error::Borrowed(_))));
        assert!(matches!(x.read::<f32>(), Err(Error::Borrowed(_))));
        let elsewhere =
            std::thread::scope(|scope| scope.spawn(|| x.copy().err()).join().expect("no panic"));
        assert!(matches!(elsewhere, Some(Error::Borrowed(_))));
    }
    assert_eq!(x.to_vec::<f32>().expect("to_vec"), [0.0, 0.0, 0.0, 5.0]);
}

#[test]
fn arrays_cross_threads() {
    fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<Array>();
    is_send_and_sync::<Device>();
}
