//! Random numbers: Philox, one block of words for each element, as everywhere.
//!
//! Called by `device.rs`.

use tilework_backend::{Random, Session};
use tilework_error::Result;
use tilework_ops::{DType, Distribution};

use crate::compile::Room;
use crate::device::Cuda;
use crate::launch::{self, Args, Width};
use crate::source;

const THREADS: usize = 256;

pub(crate) fn run(
    cuda: &Cuda,
    session: &Session<'_>,
    request: &Random<'_>,
    name: &str,
) -> Result<()> {
    let (layout, dtype) = (request.output.layout(), request.output.dtype());
    if layout.is_empty() {
        return Ok(());
    }
    let (kind, low, span) = match request.distribution {
        Distribution::Bits => (0, 0, 0),
        Distribution::Uniform => (1, 0, 0),
        Distribution::Normal => (2, 0, 0),
        Distribution::Integers { low, span } => (3, low, span),
    };
    let module =
        cuda.module(name, &[Room::Random as u8, kind, dtype as u8], || Ok(text(kind, dtype)))?;
    let first = launch::target(&request.output, session) + (layout.offset() * dtype.size()) as u64;
    let args = Args::new()
        .pointer(first)
        .number(layout.len() as u64)
        .number(request.key)
        .number(request.counter)
        .number(low as u64)
        .number(span);
    let grid = launch::grid(name, [layout.len().div_ceil(THREADS), 1], THREADS)?;
    let function = cuda.function(name, &module, c"random")?;
    // SAFETY: the source declares these arguments; the target is row-major and has `len` elements.
    unsafe { cuda.launch(name, function, grid, args) }
}

fn text(kind: u8, dtype: DType) -> String {
    let r = source::storage(dtype);
    let draw = match (kind, dtype) {
        (0, _) => "bits(w)",
        (1, DType::Float64) => "uniform_f64(w)",
        (1, DType::Float16) => "uniform<11>(w)",
        (1, DType::BFloat16) => "uniform<8>(w)",
        (1, _) => "uniform<24>(w)",
        (2, DType::Float64) => "normal_f64(w)",
        (2, _) => "normal_f32(w)",
        _ => "integer(w, low, span)",
    };
    format!(
        "{}{}extern \"C\" __global__ void random({r}* out, u64 n, u64 key, u64 counter, i64 low, u64 span) {{
    u64 k = (u64)blockIdx.x * {THREADS} + threadIdx.x;
    if (k >= n) return;
    u64 number = counter + k;
    u32 w[4] = {{(u32)number, (u32)(number >> 32), 0, 0}};
    philox(w, (u32)key, (u32)(key >> 32));
    out[k] = cast<{r}>({draw});
}}
{}",
        source::begin(Width::Wide, [dtype]),
        include_str!("kernels/random.cu"),
        source::END
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_of_random_numbers_compile() {
        let dtypes = [DType::Float32, DType::Float64, DType::UInt64, DType::Int64];
        let each = (0..4).zip(dtypes).map(|(kind, dtype)| (format!("{kind}"), text(kind, dtype)));
        crate::check::compiles(each.collect());
    }
}
