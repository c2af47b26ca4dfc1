//! Threads that may not wait, and blocks that are not where they say. A process of its own, since who
//! may wait is settled for all of a process's threads.

use tilework_backend::{
    Backend, DeviceId, Held, Properties, Request, Session, Storage, download, interruptible,
    upload, wait_only_watched, while_reading,
};
use tilework_error::{Error, Result};

const HERE: DeviceId = DeviceId { backend: "test", index: None };

/// A backend in the host's memory.
struct Host;

impl Backend for Host {
    fn id(&self) -> DeviceId {
        HERE
    }
    fn properties(&self) -> Properties {
        Properties::new()
    }
    fn allocate(&self, bytes: usize, zeroed: bool) -> Result<Storage> {
        Storage::host(HERE, bytes, zeroed)
    }
    fn run(&self, _: &Session<'_>, _: &Request<'_>) -> Result<()> {
        Ok(())
    }
    fn synchronize(&self) -> Result<()> {
        Ok(())
    }
}

/// Where only watched threads wait, others fail instead of waiting for ever; here for themselves.
#[test]
fn threads_that_nobody_watches_do_not_wait() {
    wait_only_watched();
    let block = Storage::host(HERE, 8, true).expect("memory");
    let held = Held::new(&Host, "test", &block).expect("nobody else has it");
    let refused = upload(&Host, "test", &[1; 8], &block, 0);
    assert!(matches!(&refused, Err(Error::Borrowed(why)) if why.to_string().contains("watches")));
    let stopped = interruptible(|| true, || upload(&Host, "test", &[1; 8], &block, 0));
    assert!(matches!(stopped, Err(Error::Interrupted(_))), "{stopped:?}");
    let mut bytes = [7; 8];
    held.download(0, &mut bytes).expect("it is held");
    assert_eq!(bytes, [0; 8]);
    drop(held);
    upload(&Host, "test", &[1; 8], &block, 0).expect("nobody to wait for");
}

/// A block names its device, and anybody can name any.
#[test]
fn blocks_that_are_not_where_they_say_are_refused() {
    let mut memory = [0u8; 8];
    // SAFETY: nobody reads or writes the block, and it ends before the memory.
    let block = unsafe { Storage::on_device(HERE, memory.as_mut_ptr(), 8, Box::new(())) };
    let block = block.expect("a header");
    assert!(matches!(upload(&Host, "test", &[1; 8], &block, 0), Err(Error::Device(_))));
    assert!(matches!(download(&Host, "test", &block, 0, &mut [0; 8]), Err(Error::Device(_))));
}

/// Operations inside of a longer one pass by a writer who waits for it, and the writer comes after it.
#[test]
fn who_reads_goes_on_reading_beside_a_writer_that_waits() {
    let [one, two] = [0; 2].map(|_| Storage::host(HERE, 8, true).expect("memory"));
    let read = |block: &Storage| {
        let mut bytes = [7; 8];
        download(&Host, "test", block, 0, &mut bytes).map(|()| bytes)
    };
    // A reader who is new stands back for a writer who waits: then there is one.
    let is_waited_for = |block: &Storage| {
        std::thread::scope(|scope| scope.spawn(|| read(block).is_err()).join().expect("no panic"))
    };
    std::thread::scope(|scope| {
        let work = || {
            let writer =
                scope.spawn(|| interruptible(|| false, || upload(&Host, "w", &[1; 8], &two, 0)));
            while !is_waited_for(&two) {
                std::thread::yield_now();
            }
            for block in [&one, &two, &two] {
                assert_eq!(read(block)?, [0; 8]);
                // Also in an operation of several parts inside of this one.
                assert_eq!(while_reading("test", [block], || read(block))?, [0; 8]);
                let held = Held::new(&Host, "test", block)?;
                held.download(0, &mut [0; 8])?;
            }
            let refused = upload(&Host, "test", &[2; 8], &two, 0);
            assert!(matches!(&refused, Err(Error::Borrowed(_))), "{refused:?}");
            assert!(!writer.is_finished());
            Ok(writer)
        };
        wait_only_watched();
        let writer = while_reading("test", [&one, &two], work).expect("it never waits");
        writer.join().expect("no panic").expect("its turn has come");
        assert_eq!(read(&two).expect("nobody has it"), [1; 8]);
    });
}
