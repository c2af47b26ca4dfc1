//! Threads that may not wait, and blocks that are not where they say. A process of its own, since who
//! may wait is settled for all of a process's threads.

use tilework_backend::{
    Backend, DeviceId, Held, Properties, Request, Session, Storage, download, interruptible,
    upload, wait_only_watched,
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
