//! The CPU as a backend: what it offers, and which room does what is asked.
//!
//! May assume requests that are complete and valid, as the contract says. Called through
//! [`tilework_backend::run`].

use tilework_backend::{Backend, DeviceId, Properties, Request, Session, Storage};
use tilework_error::Result;
use tilework_tape::Tape;

use crate::gemm::CacheSizes;
use crate::isa::Isa;
use crate::{copies, index, map, matmul, nonzero, pairs, pool, random, reduce, scan, sort};

/// The native CPU backend.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cpu;

impl Cpu {
    /// The device's name.
    pub const ID: DeviceId = DeviceId { backend: "cpu", index: None };
}

/// The name that all blocks of this backend have, at one address: that is what is compared first.
static ID: DeviceId = Cpu::ID;

impl Backend for Cpu {
    fn id(&self) -> DeviceId {
        ID
    }

    fn is_quick(&self) -> bool {
        true
    }

    fn properties(&self) -> Properties {
        let CacheSizes { l1, l2, l3 } = CacheSizes::of_this_machine();
        let caches = [l1, l2, l3].map(|bytes| format!("{} KiB", bytes >> 10)).join(", ");
        let unheeded = [Isa::unheeded().map(str::to_owned), pool::unheeded()];
        let mut properties = vec![
            ("isa", Isa::current().name().to_owned()),
            ("threads", pool::threads().to_string()),
            ("caches", caches),
        ];
        properties.extend(unheeded.into_iter().flatten().map(|words| ("ignored", words)));
        properties
    }

    fn multiplies(&self, sum: &Tape, sizes: [usize; 3]) -> bool {
        pairs::multiplies(sum, sizes)
    }

    fn allocate(&self, bytes: usize, zeroed: bool) -> Result<Storage> {
        Storage::host(ID, bytes, zeroed)
    }

    fn run(&self, session: &Session<'_>, request: &Request<'_>) -> Result<()> {
        match request {
            Request::Map(map) => map::run(session, map),
            Request::Reduce(request) => reduce::run(session, request),
            Request::Scan(request) => scan::run(session, request),
            Request::Sort(request) => sort::run(session, request),
            Request::Search(request) => sort::search(session, request),
            Request::Matmul(request) => matmul::run(session, request),
            Request::Gather(request) => index::gather(session, request),
            Request::Scatter(request) => index::scatter(session, request),
            Request::Nonzero(request) => nonzero::nonzero(session, request),
            Request::Random(request) => random::run(session, request),
            Request::PairReduce(request) => pairs::run(session, request),
        }
    }

    fn explain(&self, session: &Session<'_>, request: &Request<'_>) -> Result<String> {
        Ok(match request {
            Request::PairReduce(request) => pairs::explain(session, request),
            _ => String::new(),
        })
    }

    fn synchronize(&self) -> Result<()> {
        // Requests are done when `run` returns.
        Ok(())
    }

    fn upload(&self, session: &Session<'_>, bytes: &[u8], to: &Storage, at: usize) -> Result<()> {
        copies::copy_in(session, bytes, to, at);
        Ok(())
    }

    fn download(
        &self,
        session: &Session<'_>,
        from: &Storage,
        at: usize,
        bytes: &mut [u8],
    ) -> Result<()> {
        copies::copy_out(session, from, at, bytes);
        Ok(())
    }
}
