//! Kernels as the driver has them: modules, functions of them, and launches.

use std::ffi::{CStr, c_int, c_void};

use tilework_error::{Error, Result};

use super::{Address, Answer, Driver, Handle};

/// What a kernel has of shared memory without asking for more, with what it declares.
const DEFAULT_SHARED: u32 = 48 << 10;
/// The driver's number for the most shared memory that a kernel asks for.
const MAX_SHARED: c_int = 8;

/// How Hopper's copy engine finds tiles of an array; opaque.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct TensorMap([u64; 16]);

impl TensorMap {
    /// As kernels take it.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}

/// How a kernel is laid out over the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grid {
    /// Blocks in each direction.
    blocks: [u32; 3],
    /// Threads of a block.
    threads: u32,
    /// Bytes of dynamic shared memory of a block.
    shared: u32,
    /// Bytes that the kernel declares beside them, at most, where these are many.
    declared: u32,
    /// Whether all blocks must run at once.
    together: bool,
}

impl Grid {
    /// The most blocks of a launch in each direction.
    pub(crate) const MOST: [usize; 3] = [(1 << 31) - 1, (1 << 16) - 1, (1 << 16) - 1];

    /// An error of `operation` where the device cannot have so many blocks.
    pub(crate) fn new(
        operation: &str,
        blocks: [usize; 3],
        threads: usize,
        shared: usize,
    ) -> Result<Grid> {
        if blocks.iter().zip(Grid::MOST).any(|(blocks, most)| *blocks > most) {
            let [x, y, z] = blocks;
            let message =
                format!("{x} x {y} x {z} blocks are more than a launch can have; split the array");
            return Err(Error::unsupported(operation, message));
        }
        let blocks = blocks.map(|blocks| blocks as u32);
        let (threads, shared) = (threads as u32, shared as u32);
        Ok(Grid { blocks, threads, shared, declared: 0, together: false })
    }

    /// The same with so much shared memory, of a kernel that declares so much beside it.
    pub(crate) fn asking(self, shared: usize, declared: usize) -> Grid {
        Grid { shared: shared as u32, declared: declared as u32, ..self }
    }

    /// The same of blocks that wait for each other: the driver refuses more than can run at once.
    pub(crate) fn together(self) -> Grid {
        Grid { together: true, ..self }
    }
}

impl Driver {
    /// Loads machine code into the current context.
    ///
    /// # Safety
    /// `image` is a whole cubin.
    pub(crate) unsafe fn load_module(&self, image: &[u8]) -> Answer<Handle> {
        // SAFETY: as the caller promises; the driver copies what it keeps.
        self.ask("cuModuleLoadData", |to| unsafe { (self.module_load)(to, image.as_ptr().cast()) })
    }

    /// # Safety
    /// The module is loaded in the current context, and nothing in a stream uses it any more.
    pub(crate) unsafe fn unload_module(&self, module: Handle) {
        // SAFETY: as the caller promises. A failure leaves nothing to be done.
        unsafe { (self.module_unload)(module) };
    }

    /// # Safety
    /// The module is loaded.
    pub(crate) unsafe fn function(&self, module: Handle, name: &CStr) -> Answer<Handle> {
        // SAFETY: as the caller promises, and the name ends with a zero.
        self.ask("cuModuleGetFunction", |to| unsafe {
            (self.module_get_function)(to, module, name.as_ptr())
        })
    }

    /// A map of matrices of 16-bit elements, read in tiles of 64 x 64 with 128-byte rows that are
    /// permuted in chunks of 16 bytes; beyond the edges there are zeros. Of `sizes` the contiguous
    /// one comes first; `steps` are the bytes between neighbours of the others.
    pub(crate) fn tensor_map(
        &self,
        address: Address,
        sizes: [u64; 3],
        steps: [u64; 2],
    ) -> Answer<TensorMap> {
        const WORDS_OF_16_BITS: c_int = 1;
        const NOT_INTERLEAVED: c_int = 0;
        const PERMUTED_IN_128_BYTES: c_int = 3;
        const PROMOTED_TO_256_BYTES: c_int = 3;
        const ZEROS_OUTSIDE: c_int = 0;
        let mut map = TensorMap([0; 16]);
        let (tile, every) = ([64, 64, 1], [1, 1, 1]);
        // SAFETY: three sizes, two steps, and three of a tile, as the rank says; the map has the
        // size and alignment that the driver wants. Nothing is read at the address.
        let code = unsafe {
            (self.tensor_map_encode)(
                &mut map,
                WORDS_OF_16_BITS,
                3,
                address,
                sizes.as_ptr(),
                steps.as_ptr(),
                tile.as_ptr(),
                every.as_ptr(),
                NOT_INTERLEAVED,
                PERMUTED_IN_128_BYTES,
                PROMOTED_TO_256_BYTES,
                ZEROS_OUTSIDE,
            )
        };
        self.check("cuTensorMapEncodeTiled", code)?;
        Ok(map)
    }

    /// Puts a kernel into the stream.
    ///
    /// # Safety
    /// `arguments` points to one argument for each parameter of the kernel, of its size; what the
    /// kernel does with them on this grid stays inside of memory that is its own in the order of
    /// the stream.
    pub(crate) unsafe fn launch(
        &self,
        function: Handle,
        grid: Grid,
        arguments: &mut [*mut c_void],
        stream: Handle,
    ) -> Answer<()> {
        let Grid { blocks: [x, y, z], threads, shared, declared, together } = grid;
        if shared > 0 && shared + declared > DEFAULT_SHARED {
            // SAFETY: the function is one of a loaded module, as the caller promises.
            let code =
                unsafe { (self.function_set_attribute)(function, MAX_SHARED, shared as c_int) };
            self.check("cuFuncSetAttribute", code)?;
        }
        let arguments = arguments.as_mut_ptr();
        if together {
            let launch = self.launch_together;
            // SAFETY: as the caller promises.
            let code =
                unsafe { launch(function, x, y, z, threads, 1, 1, shared, stream, arguments) };
            return self.check("cuLaunchCooperativeKernel", code);
        }
        // SAFETY: as the caller promises.
        let code = unsafe {
            (self.launch_kernel)(
                function,
                x,
                y,
                z,
                threads,
                1,
                1,
                shared,
                stream,
                arguments,
                std::ptr::null_mut(),
            )
        };
        self.check("cuLaunchKernel", code)
    }
}
