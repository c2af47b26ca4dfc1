//! Transfers between host and device, through pinned buffers in pieces: one piece is copied by the
//! host while the device moves the other.
//!
//! What is asked of a device stays in order: bytes for a block that others know, and bytes from one,
//! move in its stream. A large new block is nobody's yet, so it is filled in the stream of copies,
//! while the device goes on; the device's own stream waits for that. Who sends bytes may go on when
//! they are in a buffer; the buffer has an event for the rest. What a block had at an earlier moment
//! comes in a third stream, which waits for that moment alone. Used by `device.rs`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tilework_backend::{Fill, Moment, PIECE, Storage, Take};
use tilework_error::Result;

use crate::device::Cuda;
use crate::driver::{Address, Answer, Driver, Handle};
use crate::memory::Home;

/// Bytes up to which the driver makes its own copy, without a buffer.
const SMALL: usize = 4 << 10;
/// How many pairs of buffers are kept.
const KEPT: usize = 4;

/// Pairs of buffers that no transfer uses. Who finds none makes one: nobody waits for others, whose
/// bytes may come from another device.
#[derive(Debug, Default)]
pub(crate) struct Staging(Mutex<Vec<[Buffer; 2]>>);

/// Pinned memory, and an event that is over when the device is done with it.
#[derive(Debug, Clone, Copy)]
struct Buffer {
    address: usize,
    moved: Handle,
}

impl Buffer {
    fn new(driver: &Driver) -> Answer<Buffer> {
        let moved = driver.create_event()?;
        match driver.allocate_pinned(PIECE) {
            Ok(address) => Ok(Buffer { address: address as usize, moved }),
            Err(fault) => {
                // SAFETY: the event was made above, and nobody knows it.
                unsafe { driver.destroy_event(moved) };
                Err(fault)
            }
        }
    }

    /// # Safety
    /// Nobody uses the buffer any more, the device neither.
    unsafe fn free(self, driver: &Driver) {
        // SAFETY: as the caller promises.
        unsafe {
            driver.free_pinned(self.address as *mut u8);
            driver.destroy_event(self.moved);
        }
    }
}

/// An event in the device's own stream.
struct Mark {
    home: Arc<Home>,
    passed: Handle,
}

impl Drop for Mark {
    fn drop(&mut self) {
        let Ok(_entered) = self.home.enter() else { return };
        // SAFETY: nobody else knows it; who waits for it still does, as the driver has it.
        unsafe { self.home.driver.destroy_event(self.passed) };
    }
}

impl Staging {
    fn pairs(&self) -> MutexGuard<'_, Vec<[Buffer; 2]>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cuda {
    /// A new block of these bytes.
    pub(crate) fn receive_storage(
        &self,
        operation: &str,
        bytes: usize,
        fill: Fill<'_>,
    ) -> Result<Storage> {
        let (block, stream) = self.allocate_for_copies(bytes)?;
        if let Err(error) = self.send(operation, bytes, block.address, stream, fill) {
            // The block is freed in the device's own stream, which waits for nothing of this one yet, not even for
            // its allocation. A device that fails here tells the next operation.
            let _ = self.enter().map(|_entered| self.driver().wait(stream));
            return Err(error);
        }
        self.storage(block, bytes)
    }

    /// Copies bytes to the device. They may be used again when this returns.
    pub(crate) fn copy_in(&self, operation: &str, bytes: &[u8], to: Address) -> Result<()> {
        let stream = self.home()?.stream;
        if bytes.len() <= SMALL {
            // Not the caller's memory itself: if that were pinned, the driver would read it later.
            let mut here = [0; SMALL];
            here[..bytes.len()].copy_from_slice(bytes);
            let _entered = self.enter()?;
            // SAFETY: the target is inside of the block, and of memory that is not pinned the driver
            // has made a copy when it returns.
            let sent = unsafe { self.driver().to_device(to, here.as_ptr(), bytes.len(), stream) };
            return sent.map_err(|fault| self.fault(operation, fault));
        }
        self.send(operation, bytes.len(), to, stream, &mut |at, piece| {
            piece.copy_from_slice(&bytes[at..at + piece.len()]);
            Ok(())
        })
    }

    /// Copies what `fill` gives to the device, in the order of a stream; the device's own waits for
    /// it.
    fn send(
        &self,
        operation: &str,
        bytes: usize,
        to: Address,
        stream: Handle,
        fill: Fill<'_>,
    ) -> Result<()> {
        let (driver, own) = (self.driver(), self.home()?.stream);
        let fault = |fault| self.fault(operation, fault);
        self.with_buffers(operation, stream, |buffers| {
            for (Buffer { address, moved }, at) in
                buffers.into_iter().cycle().zip((0..bytes).step_by(PIECE))
            {
                let len = PIECE.min(bytes - at);
                // SAFETY: the piece fits the buffer, which is ours, and whose last transfer is over
                // with its event. The target is inside of the block. The streams live.
                unsafe {
                    driver.wait_for_event(moved).map_err(fault)?;
                    fill(at, std::slice::from_raw_parts_mut(address as *mut u8, len))?;
                    let (to, from) = (to + at as Address, address as *const u8);
                    driver.to_device(to, from, len, stream).map_err(fault)?;
                    driver.record(moved, stream).map_err(fault)?;
                    if at + len == bytes && stream != own {
                        driver.let_wait(own, moved).map_err(fault)?;
                    }
                }
            }
            Ok(())
        })
    }

    /// Copies bytes from the device, after everything asked before is done.
    pub(crate) fn copy_out(&self, operation: &str, from: Address, bytes: &mut [u8]) -> Result<()> {
        self.give_out(operation, from, bytes.len(), &Moment::default(), &mut |at, piece| {
            bytes[at..at + piece.len()].copy_from_slice(piece);
            Ok(())
        })
    }

    /// The moment when everything asked so far is done.
    pub(crate) fn moment_of_now(&self) -> Result<Moment> {
        let passed = self.event_of_now()?;
        Ok(Moment::new(Mark { home: self.home()?.clone(), passed }))
    }

    /// Gives bytes of the device to `take`, after everything asked before a moment is done.
    pub(crate) fn give_out(
        &self,
        operation: &str,
        from: Address,
        bytes: usize,
        moment: &Moment,
        take: Take<'_>,
    ) -> Result<()> {
        let (driver, home) = (self.driver(), self.home()?);
        let fault = |fault| self.fault(operation, fault);
        let len = |at: usize| PIECE.min(bytes - at);
        // A moment of another device says nothing about this one.
        let mark = moment.mark::<Mark>().filter(|mark| Arc::ptr_eq(&mark.home, home));
        let stream = if mark.is_some() { home.fetches } else { home.stream };
        self.with_buffers(operation, stream, |buffers| {
            if let Some(Mark { passed, .. }) = mark {
                // SAFETY: streams live as long as the process, and the event as long as the mark.
                unsafe { driver.let_wait(stream, *passed) }.map_err(fault)?;
            }
            let fetch = |at: usize| {
                if at >= bytes {
                    return Ok(());
                }
                let (from, len) = (from + at as Address, len(at));
                let Buffer { address, moved } = buffers[at / PIECE % 2];
                // SAFETY: the piece fits the buffer, which is ours and was emptied before. The source
                // is inside of the block.
                unsafe {
                    let fetched = driver.to_host(address as *mut u8, from, len, stream);
                    fetched.and_then(|()| driver.record(moved, stream)).map_err(fault)
                }
            };
            fetch(0)?;
            for at in (0..bytes).step_by(PIECE) {
                fetch(at + PIECE)?;
                let Buffer { address, moved } = buffers[at / PIECE % 2];
                // SAFETY: when the event is over the piece lies in the buffer, and the transfer that
                // was started since goes into the other one.
                let piece = unsafe {
                    driver.wait_for_event(moved).map_err(fault)?;
                    std::slice::from_raw_parts(address as *const u8, len(at))
                };
                take(at, piece)?;
            }
            Ok(())
        })
    }

    /// Works with two buffers that nobody else has, and that the device is done with.
    fn with_buffers(
        &self,
        operation: &str,
        stream: Handle,
        work: impl FnOnce([Buffer; 2]) -> Result<()>,
    ) -> Result<()> {
        let _entered = self.enter()?;
        let driver = self.driver();
        let fault = |fault| self.fault(operation, fault);
        let kept = self.staging().pairs().pop();
        let buffers = match kept {
            Some(buffers) => buffers,
            None => {
                let first = Buffer::new(driver).map_err(fault)?;
                let second = Buffer::new(driver).map_err(|none| {
                    // SAFETY: it was made above and never used.
                    unsafe { first.free(driver) };
                    fault(none)
                })?;
                [first, second]
            }
        };
        let mut lent = Lent { cuda: self, buffers, stream, all_have_events: false };
        // SAFETY: events of buffers live as long as they.
        let waited = buffers.iter().try_for_each(|one| unsafe { driver.wait_for_event(one.moved) });
        let done = waited.map_err(fault).and_then(|()| work(buffers));
        lent.all_have_events = done.is_ok();
        done
    }
}

/// Buffers that a transfer has, whose context is the current one. They are given back also when what fills or takes
/// them unwinds.
struct Lent<'a> {
    cuda: &'a Cuda,
    buffers: [Buffer; 2],
    stream: Handle,
    /// Whether whatever uses them has an event. What was begun and then given up has none.
    all_have_events: bool,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let driver = self.cuda.driver();
        // Of a device that fails here nobody knows what it does with them.
        if !self.all_have_events && driver.wait(self.stream).is_err() {
            return;
        }
        let mut pairs = self.cuda.staging().pairs();
        if pairs.len() < KEPT {
            pairs.push(self.buffers);
            return;
        }
        drop(pairs);
        for buffer in self.buffers {
            // SAFETY: the device is done with them, and nobody else has them.
            unsafe {
                let _ = driver.wait_for_event(buffer.moved);
                buffer.free(driver);
            }
        }
    }
}
