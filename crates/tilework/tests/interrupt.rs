//! Long work gives up when it is told to, and only where its result is new.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SendError, channel};
use std::thread;
use std::time::{Duration, Instant};

use tilework::{Array, DType, Device, Error, Result, interruptible, s};

/// A generous bound on how long giving up takes; the work itself takes far longer in all tests.
const SOON: Duration = Duration::from_secs(5);

/// Runs `work` until it is stopped at the first question; how often it was asked, and what came.
fn stopped<T>(work: impl FnOnce() -> Result<T>) -> (usize, Result<T>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let stop = move || {
        count.fetch_add(1, Ordering::Relaxed);
        true
    };
    let start = Instant::now();
    let result = interruptible(stop, work);
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
    (asked.load(Ordering::Relaxed), result)
}

/// Repeats short work for longer than the time between two questions.
fn for_a_while<T>(work: impl Fn() -> Result<T>) -> Result<T> {
    let end = Instant::now() + SOON;
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
        ("sort", &|| x.sort(0, true)),
        ("cumulative_sum", &|| x.cumulative_sum(0)),
    ];
    for (name, work) in works {
        let (asked, result) = stopped(|| for_a_while(work));
        assert!(matches!(result, Err(Error::Interrupted(_))), "{name}: {asked} {}", result.is_ok());
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
        ("sort", &|| lines.sort(1, false)),
        ("reference exp", &|| slow.exp()),
        ("reference sum", &|| slow.sum(())),
        ("reference matmul", &|| square.matmul(&square)),
    ];
    for (name, work) in works {
        let (asked, result) = stopped(work);
        assert!(matches!(result, Err(Error::Interrupted(_))), "{name}: {asked} {}", result.is_ok());
    }
    Ok(())
}

#[test]
fn what_others_see_is_written_to_the_end() -> Result<()> {
    let x = Array::zeros(&[1 << 20], DType::Float32)?;
    let end = Instant::now() + Duration::from_millis(400);
    let (asked, written) = stopped(|| {
        let mut written = 0;
        while Instant::now() < end {
            x.add_assign(1.0)?;
            written += 1;
        }
        Ok(written)
    });
    assert_eq!(asked, 0);
    let written = written? as f32;
    assert_eq!((x.min(())?.item::<f32>()?, x.max(())?.item::<f32>()?), (written, written));
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
    let end = Instant::now() + Duration::from_millis(500);
    interruptible(stop, || {
        while Instant::now() < end {
            assert_eq!(x.sqrt()?.square()?.len(), 1 << 20);
        }
        Ok::<(), Error>(())
    })?;
    // About ten times a second, and fewer on a busy machine.
    assert!((1..=6).contains(&asked.load(Ordering::Relaxed)), "{asked:?}");
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
    let result = interruptible(handler, || for_a_while(|| x.matmul(&x)));
    assert!(matches!(result, Err(Error::Interrupted(_))));
    assert_eq!(refused.load(Ordering::Relaxed), 1);
    // Afterwards everything is as before: writes wait, and succeed.
    x.fill(2.0)
}
