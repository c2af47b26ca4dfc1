//! The contract between arrays and backends: memory, guards, requests.
//!
//! A [`Storage`] is a shared block of memory on one device. A [`View`] is a layout and a dtype on a
//! storage; where the two meet it is checked, once, that every index stays inside the block. What
//! is to be done is a [`Request`]: plain data, complete and valid. [`run`] takes the guards of all
//! blocks that a request touches and hands it to a [`Backend`].

mod backend;
mod host;
pub mod interrupt;
pub mod lock;
mod mapped;
mod pairs;
mod reading;
mod recycled;
mod request;
mod session;
pub mod square;
mod storage;
mod user;
mod view;

pub use backend::{
    Backend, DeviceId, Fill, Held, Memory, Moment, PIECE, Properties, Take, download, explain, run,
    run_after, upload,
};
pub use host::{empty_cache, try_filled, try_room, try_zeroed};
pub use interrupt::interruptible;
pub use mapped::{Mapping, map_file, release_pages};
pub use pairs::{Accumulator, Accuracy, Named, PairReduce, Progress, Scheme, SumScheme};
pub use reading::while_reading;
pub use recycled::Recycled;
pub use request::{
    Gather, Indices, Map, Matmul, MatmulKernel, Nonzero, Operand, Random, Reduce, Request, Scan,
    Scatter, Search, Sort,
};
pub use session::{Session, before_long_work, in_the_middle, wait_only_watched, without_waiting};
pub use storage::Storage;
pub use user::{UserRead, UserWrite};
pub use view::{Fresh, Target, View, ViewRef};
