//! Threads reading and writing views of one array, and guards that users hold.

use std::sync::atomic::{AtomicBool, Ordering};

use tilework::{Array, DType, Device, Direction, Error, Id, Indexer, apply_into, s};
use tilework_conformance::on;

/// All devices; where the first card cannot be used, that is said or a failure.
fn devices() -> Vec<Device> {
    on(Device::parse("cuda:0"), |_| {});
    Device::all()
}

/// Writers fill whole rows with one number each; a reader must never see a mixed row, since an
/// operation holds the block while it runs.
#[test]
fn operations_on_one_block_never_mix() {
    for device in devices() {
        let x = Array::zeros_on(device, &[8, 500], DType::Int64).expect("zeros");
        let done = AtomicBool::new(false);
        let path = std::env::temp_dir().join(format!("threads-{}.npy", std::process::id()));
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
                let (x, done, path) = (x.clone(), &done, path.clone());
                scope.spawn(move || {
                    while !done.load(Ordering::Relaxed) {
                        let copy =
                            x.transpose().copy().and_then(|x| x.to_vec::<i64>()).expect("copy");
                        assert!(copy.iter().all(|value| *value == copy[0]), "a torn read");
                        let copy = x.to_vec::<i64>().expect("reading waits for writing");
                        assert!(copy.iter().all(|value| *value == copy[0]), "a torn read");
                        let elsewhere = x.to_device(Device::reference()).expect("to_device");
                        assert_eq!(elsewhere.shape(), x.shape());
                        x.get::<i64>(&[7, 499]).expect("get");
                        x.save(&path).expect("save");
                        let (low, high) = (x.min(()).expect("min"), x.max(()).expect("max"));
                        assert!(low.len() == 1 && high.len() == 1);
                    }
                });
            }
        });
        let _ = std::fs::remove_file(&path);
    }
}

/// A long transfer is one operation, however many pieces it is copied in.
#[test]
fn transfers_are_whole() {
    for device in devices() {
        let (n, there) = match device == Device::reference() {
            true => (1000, Device::cpu()),
            false => (3 << 20, Device::reference()),
        };
        let x = Array::zeros_on(device, &[n], DType::Int64).expect("zeros");
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| (0..20).try_for_each(|k| x.fill(k)));
            while !writer.is_finished() {
                let copy = x.to_vec::<i64>().expect("to_vec");
                assert!(copy.iter().all(|value| *value == copy[0]), "a torn read on {device}");
                let copy = x.to_device(there).and_then(|x| x.to_vec::<i64>()).expect("to_device");
                assert!(copy.iter().all(|value| *value == copy[0]), "torn from {device}");
            }
            writer.join().expect("no panic").expect("fill");
        });
    }
}

/// What reads where it writes is one step too: additions of another thread meanwhile are not lost.
#[test]
fn writes_over_their_own_operands_lose_nothing() {
    type Step = fn(&Array) -> Result<(), Error>;
    let steps: [(&str, Step); 5] = [
        ("reversed", |x| x.assign(&x.slice(&s![..;-1])?)),
        ("reversed and multiplied", |x| {
            apply_into(Id::Multiply, &[(&x.slice(&s![..;-1])?).into(), 1.into()], x)
        }),
        ("sorted", |x| x.sort_in_place(0, Direction::Descending)),
        ("scattered", |x| {
            let places = Array::arange_on(x.device(), 0, x.len() as i64, 1, DType::Int64)?;
            x.index_set(&[Indexer::Array(&places)], x)
        }),
        ("a product", |x| {
            let one = Array::ones_on(x.device(), &[1, 1], DType::Int64)?;
            let column = x.reshape(&[-1, 1])?;
            column.matmul_into(&one, &column)
        }),
    ];
    for device in devices() {
        let (n, rounds) = if device == Device::reference() { (100, 100) } else { (20_000, 300) };
        for (name, step) in steps {
            let x = Array::ones_on(device, &[n], DType::Int64).expect("ones");
            std::thread::scope(|scope| {
                let adder = scope.spawn(|| (0..rounds).try_for_each(|_| x.add_assign(256)));
                while !adder.is_finished() {
                    step(&x).expect(name);
                }
                adder.join().expect("no panic").expect("add");
            });
            let sums = x.to_vec::<i64>().expect("to_vec");
            assert!(
                sums.iter().all(|&sum| sum == 256 * rounds + 1),
                "{name} on {device}: {sums:?}"
            );
        }
    }
}

/// What a mask that changes is counted as is what is listed of it.
#[test]
fn masks_are_counted_and_listed_at_once() {
    for device in devices() {
        let (n, rounds) = if device == Device::reference() { (200, 500) } else { (20_000, 5000) };
        let mask = Array::zeros_on(device, &[n], DType::Bool).expect("zeros");
        let all: Vec<i64> = (0..n as i64).collect();
        std::thread::scope(|scope| {
            let change = |_| mask.fill(true).and_then(|()| mask.fill(false));
            let writer = scope.spawn(move || (0..rounds).try_for_each(change));
            while !writer.is_finished() {
                let found = mask.argwhere().and_then(|found| found.to_vec::<i64>());
                let found = found.expect("argwhere");
                assert!(found.is_empty() || found == all, "{} of {n} on {device}", found.len());
            }
            writer.join().expect("no panic").expect("fill");
        });
    }
}

/// Indices that change while they are used are either good or refused, and never followed.
#[test]
fn indices_are_checked_while_they_are_held() {
    for device in devices() {
        let rounds = if device == Device::reference() { 20 } else { 300 };
        let x = Array::zeros_on(device, &[8, 3], DType::Int64).expect("zeros");
        let picks = Array::zeros_on(device, &[500], DType::Int64).expect("zeros");
        let values = Array::zeros_on(device, &[500, 3], DType::Int64).expect("zeros");
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    for index in [1, 1 << 40, -8, i64::MIN] {
                        picks.fill(index).expect("fill");
                    }
                }
            });
            let good = |result: Result<(), Error>| match result {
                Ok(()) => {}
                Err(Error::Index(message)) => assert!(message.contains("out of bounds")),
                Err(error) => panic!("{error}"),
            };
            for _ in 0..rounds {
                good(x.index(&[Indexer::Array(&picks)]).map(drop));
                good(x.index_set(&[Indexer::Array(&picks)], &values));
                good(x.take(&picks, 0).map(drop));
            }
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(x.to_vec::<i64>().expect("to_vec"), [0; 24]);
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
        assert!(matches!(x.write::<f32>(), Err(Error::Borrowed(_))));
        assert!(x.sum(()).is_ok(), "operations that read go on");
    }
    {
        let mut write = view.write::<f32>().expect("write");
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

/// What a guard refuses names the operation that was asked for.
#[test]
fn refusals_name_the_operation() {
    let x = Array::zeros(&[4], DType::Float64).expect("zeros");
    let halves = Array::zeros(&[4], DType::Float32).expect("zeros");
    let picks = Array::zeros(&[2], DType::Int64).expect("zeros");
    let read = x.read::<f64>().expect("read");
    let refused = |name: &str, result: Result<(), Error>| match result {
        Err(Error::Borrowed(message)) => {
            assert!(message.starts_with(&format!("{name}: the memory is being")), "{message}");
        }
        other => panic!("{name}: {other:?}"),
    };
    refused("fill", x.fill(1.0));
    refused("assign", x.assign(&halves));
    refused("set", x.set(&s![..2], 1));
    refused("add", x.add_assign(&halves));
    refused("index_set", x.index_set(&[Indexer::Array(&picks)], 1.0));
    refused("put_along_axis", x.put_along_axis(&picks, 1.0, 0));
    drop(read);
    let write = x.write::<f64>().expect("write");
    let done = |result: Result<Array, Error>| result.map(drop);
    refused("add", done(x.add(&halves)));
    refused("where", done(tilework::select(&x, 1.0, 0.0)));
    refused("astype", done(x.astype(DType::Float32)));
    refused("copy", done(x.copy()));
    refused("argsort", done(x.argsort(0, Direction::Ascending)));
    refused("cumulative_sum", done(x.cumulative_sum(0)));
    refused("take", done(x.take(&picks, 0)));
    refused("index", done(x.index(&[Indexer::Array(&picks)])));
    refused("sum", done(x.sum(())));
    refused("item", x.get::<f64>(&[0]).map(drop));
    refused("to_vec", x.to_vec::<f64>().map(drop));
    refused("to_device", done(x.to_device(Device::reference())));
    refused("save", x.save(std::env::temp_dir().join("refused.npy")));
    drop(write);
}
