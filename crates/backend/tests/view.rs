//! Where layouts meet blocks: what a view checks, so that nobody below does.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tilework_backend::{
    Backend, DeviceId, Fresh, Map, Operand, Properties, Request, Session, Storage, View, run,
};
use tilework_error::{Error, Result};
use tilework_layout::Layout;
use tilework_ops::{DType, Scalar};
use tilework_tape::Tape;

const HERE: DeviceId = DeviceId { backend: "test", index: None };

/// A backend that reads and writes single elements at a position.
struct Pokes {
    position: usize,
}

impl Backend for Pokes {
    fn id(&self) -> DeviceId {
        HERE
    }
    fn properties(&self) -> Properties {
        Properties::new()
    }
    fn allocate(&self, bytes: usize, zeroed: bool) -> Result<Storage> {
        Storage::host(HERE, bytes, zeroed)
    }
    fn run(&self, session: &Session<'_>, request: &Request<'_>) -> Result<()> {
        let Request::Map(map) = request else { return Ok(()) };
        let [Operand::View(input)] = map.inputs else { return Ok(()) };
        let outside = |poke: &dyn Fn()| {
            let panic = catch_unwind(AssertUnwindSafe(poke)).expect_err("outside of the block");
            let text = panic.downcast_ref::<String>().expect("a message");
            assert!(text.contains("is outside"), "{text}");
        };
        outside(&|| {
            let _ = input.load(session, self.position);
        });
        outside(&|| map.output.store(session, self.position, Scalar::zero(DType::Float64)));
        Ok(())
    }
    fn synchronize(&self) -> Result<()> {
        Ok(())
    }
}

/// Positions whose byte offsets wrap around are outside like all others.
#[test]
fn elements_outside_of_a_block_are_refused() {
    let layout = Layout::contiguous(&[4]).unwrap();
    let storage = Storage::host(HERE, 32, true).unwrap();
    let input = View::new(storage, layout.clone(), DType::Float64).unwrap();
    let mut fresh = Fresh::new(Storage::host(HERE, 32, true).unwrap(), layout, DType::Float64)
        .expect("a new block");
    let tape = Tape::cast(DType::Float64, DType::Float64);
    for position in [4, usize::MAX, usize::MAX / 8, usize::MAX / 8 + 1, 1 << 61, (1 << 61) - 1] {
        let inputs = &[Operand::View(input.borrow())];
        let request = Request::Map(Map { tape: &tape, inputs, output: fresh.target() });
        // SAFETY: input and target have one shape and dtype, and the tape casts between them.
        let done = unsafe { run(&Pokes { position }, "test", &request) };
        done.expect("nothing else is wrong");
    }
}

#[test]
fn views_are_aligned_for_their_dtype() {
    let mut memory = Box::new([0u64; 9]);
    let address = memory.as_mut_ptr().cast::<u8>();
    for shift in 0..9 {
        let layout = Layout::contiguous(&[4]).unwrap();
        for dtype in DType::ALL.into_iter().filter(|dtype| dtype.size() <= 8) {
            // SAFETY: 64 bytes from one of the first nine on lie in the box, which outlives all.
            let storage = unsafe {
                Storage::foreign(HERE, address.add(shift), 64 - shift, true, true, Box::new(()))
            };
            let view = View::new(storage.unwrap(), layout.clone(), dtype);
            let aligned = shift.is_multiple_of(dtype.alignment());
            match view {
                Ok(_) => assert!(aligned, "{dtype} at {shift}"),
                Err(Error::Value(message)) => {
                    assert!(!aligned && message.contains("multiple"), "{dtype} at {shift}");
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
}
