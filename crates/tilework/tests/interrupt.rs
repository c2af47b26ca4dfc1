//! Long work gives up when it is told to, and only where its result is new.
//!
//! No test depends on how fast the machine is: who is to be asked first sleeps until a question is due.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SendError, channel};
use std::thread;
use std::time::{Duration, Instant};

use tilework::{Array, DType, Device, Direction, Error, Result, interruptible, s};

/// Longer than the time between two questions: who has slept so long is asked at the next occasion.
const DUE: Duration = Duration::from_millis(150);

/// After so long work counts as never asked. No machine needs that.
const PATIENCE: Duration = Duration::from_secs(600);

/// Runs `work`, which is told to stop at the first question; how often it was asked, and what came.
fn stopped<T>(work: impl FnOnce() -> Result<T>) -> (usize, Result<T>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let stop = move || {
        count.fetch_add(1, Ordering::Relaxed);
        true
    };
    let result = interruptible(stop, || {
        thread::sleep(DUE);
        work()
    });
    (asked.load(Ordering::Relaxed), result)
}

/// Repeats work until it is given up.
fn until_given_up<T>(work: impl Fn() -> Result<T>) -> Result<T> {
    let end = Instant::now() + PATIENCE;
    loop {
        let result = work();
        if result.is_err() || Instant::now() > end {
            return result;
        }
    }
}

#[test]
fn new_results_are_given_up() -> Result<()> {
    let n = 1 << 20;
    let x = Array::arange(0, n, 1, DType::Float32)?;
    let square = x.reshape(&[1024, 1024])?;
    let works: [(&str, &dyn Fn() -> Result<Array>); 5] = [
        ("exp", &|| x.exp()),
        ("sum", &|| x.sum(())),
        ("matmul", &|| square.matmul(&square)),
        ("sort", &|| x.sort(0, Direction::Descending)),
        ("cumulative_sum", &|| x.cumulative_sum(0)),
    ];
    for (name, work) in works {
        let (asked, result) = stopped(|| until_given_up(work));
        assert!(matches!(result, Err(Error::Interrupted(_))), "{name}");
        assert_eq!(asked, 1, "{name}");
        // Nothing is held any more, and nothing was written.
        x.add_assign(0.0)?;
        assert_eq!(x.max(())?.item::<f32>()?, (n - 1) as f32);
    }
    Ok(())
}

#[test]
fn one_long_operation_is_given_up() -> Result<()> {
    let one = Array::ones(&[], DType::Float64)?;
    let (long, tall) = (one.broadcast_to(&[2048, 1 << 20])?, one.broadcast_to(&[1 << 20, 2048])?);
    let line = Array::arange(0, 1 << 20, 1, DType::Float32)?.sin()?;
    let lines = line.broadcast_to(&[200, 1 << 20])?;
    let slow = lines.slice(&s![..4])?.to_device(Device::reference())?;
    let square = slow.reshape(&[2048, 2048])?;
    let works: [(&str, &dyn Fn() -> Result<Array>); 5] = [
        ("matmul", &|| long.matmul(&tall)),
        ("sort", &|| lines.sort(1, Direction::Ascending)),
        ("reference exp", &|| slow.exp()),
        ("reference sum", &|| slow.sum(())),
        ("reference matmul", &|| square.matmul(&square)),
    ];
    for (name, work) in works {
        let (asked, result) = stopped(work);
        assert_eq!(asked, 1, "{name}");
        // In the middle of it, not when it was done.
        let error = result.expect_err(name);
        assert!(matches!(error, Error::Interrupted(_)), "{name}");
        assert!(error.to_string().contains("there is no result"), "{name}: {error}");
    }
    Ok(())
}

/// None of these is long enough to ask while it runs.
#[test]
fn many_short_operations_are_given_up() -> Result<()> {
    let one = Array::ones(&[4, 4], DType::Float64)?;
    let works: [(&str, &dyn Fn() -> Result<Array>); 3] =
        [("exp", &|| one.exp()), ("sum", &|| one.sum(())), ("matmul", &|| one.matmul(&one))];
    for (name, work) in works {
        let (asked, result) = stopped(|| until_given_up(work));
        assert!(matches!(result, Err(Error::Interrupted(_))), "{name}");
        assert_eq!(asked, 1, "{name}");
    }
    Ok(())
}

#[test]
fn what_others_see_is_written_to_the_end() -> Result<()> {
    let x = Array::zeros(&[1 << 20], DType::Float32)?;
    let (asked, written) = stopped(|| (0..20).try_for_each(|_| x.add_assign(1.0)));
    written?;
    assert_eq!(asked, 0);
    assert_eq!((x.min(())?.item::<f32>()?, x.max(())?.item::<f32>()?), (20.0, 20.0));
    Ok(())
}

#[test]
fn who_is_not_told_to_stop_goes_on() -> Result<()> {
    let x = Array::arange(0, 1 << 20, 1, DType::Float64)?;
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let inner = x.clone();
    // Who is asked may use arrays, the same ones too.
    let stop = move || {
        count.fetch_add(1, Ordering::Relaxed);
        inner.sum(()).is_err()
    };
    let begun = Instant::now();
    interruptible(stop, || {
        while asked.load(Ordering::Relaxed) < 3 && begun.elapsed() < PATIENCE {
            assert_eq!(x.sqrt()?.square()?.len(), 1 << 20);
        }
        Ok::<(), Error>(())
    })?;
    let asked = asked.load(Ordering::Relaxed);
    assert!(asked >= 3);
    // At most ten times a second.
    assert!(asked as u128 <= begun.elapsed().as_millis() / 100, "{asked} {:?}", begun.elapsed());
    Ok(())
}

/// An operation that waits for another has not begun: it gives up, also if it would write.
#[test]
fn who_waits_for_a_block_is_asked() -> Result<()> {
    let x = Array::ones(&[64, 64], DType::Float64)?;
    let waits: [(&str, &dyn Fn() -> Result<()>); 3] = [
        ("fill", &|| x.fill(0.0)),
        ("add_assign", &|| x.slice(&s![..3])?.add_assign(1.0)),
        ("write", &|| x.write::<f64>().map(drop)),
    ];
    for (name, wait) in waits {
        let (holds, held) = channel();
        let (let_go, told) = channel();
        let shared = x.clone();
        // Who is asked in the middle of the other's operation keeps it there until told.
        let holder = thread::spawn(move || {
            let stop = move || {
                holds.send(()).and_then(|()| told.recv().map_err(|_| SendError(()))).is_ok()
            };
            interruptible(stop, || {
                loop {
                    shared.matmul(&shared)?;
                }
            })
        });
        held.recv().expect("the other thread holds the block");
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let result = interruptible(move || count.fetch_add(1, Ordering::Relaxed) == 2, wait);
        assert!(matches!(result, Err(Error::Interrupted(_))), "{name}: {result:?}");
        assert_eq!(asked.load(Ordering::Relaxed), 3, "{name}");
        // Readers do not stand back any more.
        assert_eq!(x.sum(())?.item::<f64>()?, 64.0 * 64.0, "{name}");
        let_go.send(()).expect("the other thread waits");
        let ended: Result<()> = holder.join().expect("no panic");
        assert!(matches!(ended, Err(Error::Interrupted(_))), "{name}");
        wait()?;
        x.fill(1.0)?;
    }
    Ok(())
}

#[test]
fn whoever_is_asked_cannot_wait_for_the_operation_that_asks() -> Result<()> {
    let x = Array::ones(&[1024, 1024], DType::Float64)?;
    let (ours, refused) = (x.clone(), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&refused);
    let handler = move || {
        // What the operation reads may be read, and other arrays are free.
        assert_eq!(ours.get::<f64>(&[0, 0]).ok(), Some(1.0));
        assert!(Array::zeros(&[3], DType::Int8).and_then(|other| other.fill(1)).is_ok());
        let written = ours.fill(0.0);
        count.fetch_add(usize::from(matches!(written, Err(Error::Borrowed(_)))), Ordering::Relaxed);
        true
    };
    let result = interruptible(handler, || until_given_up(|| x.matmul(&x)));
    assert!(matches!(result, Err(Error::Interrupted(_))));
    assert_eq!(refused.load(Ordering::Relaxed), 1);
    // Afterwards everything is as before: writes wait, and succeed.
    x.fill(2.0)
}
