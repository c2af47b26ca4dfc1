//! A value that is made at first use and stays, and that nobody waits for.
//!
//! `OnceLock` and `LazyLock` let one thread make the value while others wait. A child forked at
//! that moment would wait for a thread that it does not have. Here all who come before the value is
//! there make it, and the first to be done wins. So making it must depend on nothing but what stays
//! as it is, and be worth doing twice. The lints of the workspace keep the other two out.
//!
//! Called by all floors, for statics and for what objects keep of their own.

use once_cell::race::OnceBox;

/// A value made at first use, of which each thread that comes too early makes its own and one stays.
///
/// ```
/// use tilework_fork::ForkOnce;
/// static NAMES: ForkOnce<Vec<String>> = ForkOnce::new();
/// let names = NAMES.get_or_make(|| vec!["exp".to_owned()]);
/// assert_eq!(NAMES.get(), Some(names));
/// ```
#[derive(Clone, Debug)]
pub struct ForkOnce<T>(OnceBox<T>);

impl<T> ForkOnce<T> {
    /// One without a value.
    pub const fn new() -> ForkOnce<T> {
        ForkOnce(OnceBox::new())
    }

    /// The value, if there is one.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        self.0.get()
    }

    /// The value, made if there is none.
    #[inline]
    pub fn get_or_make(&self, make: impl FnOnce() -> T) -> &T {
        self.0.get_or_init(|| Box::new(make()))
    }

    /// The value, made if there is none; or why it could not be made.
    pub fn get_or_try_make<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        self.0.get_or_try_init(|| make().map(Box::new))
    }
}

impl<T> Default for ForkOnce<T> {
    fn default() -> ForkOnce<T> {
        ForkOnce::new()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn all_make_it_and_one_stays() {
        let (once, barrier) = (ForkOnce::new(), Barrier::new(4));
        let values: Vec<usize> = thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|own| {
                    let (once, barrier) = (&once, &barrier);
                    // All four are inside before one is done.
                    let make = move || (barrier.wait(), own).1;
                    scope.spawn(move || *once.get_or_make(make))
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(values.iter().all(|value| Some(value) == once.get()), "{values:?}");
        assert_eq!(*once.get_or_make(|| unreachable!()), values[0]);
    }

    #[test]
    fn a_failure_leaves_it_empty() {
        let once = ForkOnce::new();
        assert_eq!(once.get_or_try_make(|| Err("no")), Err("no"));
        assert_eq!(once.get(), None);
        assert_eq!(once.get_or_try_make(|| Ok::<_, &str>(7)), Ok(&7));
        assert_eq!(once.clone().get(), Some(&7));
        assert_eq!(ForkOnce::<u8>::default().get(), None);
    }
}
