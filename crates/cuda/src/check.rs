//! Kernels compile for every architecture: run where there is NVRTC, with or without a card.
//!
//! NVRTC is looked for where `TILEWORK_CUDA_PATH` says, which `make test-kernels` sets, and must be there then.
//! Without it the tests say "not checked" and pass, since compiling takes a minute.

use std::path::PathBuf;
use std::sync::Mutex;

use crate::compile::compile;
use crate::driver::Nvrtc;
use crate::search::Search;

/// Ampere, Hopper and Blackwell.
const ARCHITECTURES: [&str; 3] = ["sm_80", "sm_90a", "sm_100"];

fn nvrtc() -> Option<Nvrtc> {
    let named = std::env::var_os("TILEWORK_CUDA_PATH").filter(|path| !path.is_empty());
    let named = named.map(PathBuf::from);
    let search = Search { named, ..Search::default() };
    let found = search.compilers().into_iter().find_map(|library| Nvrtc::open(&library).ok());
    let promised = search.named.filter(|_| found.is_none());
    assert!(
        promised.is_none(),
        "there is no NVRTC in {promised:?}, which TILEWORK_CUDA_PATH names"
    );
    found
}

/// Compiles every source for every architecture.
pub(crate) fn compiles(sources: Vec<(String, String)>) {
    compiles_for(&ARCHITECTURES, sources);
}

/// Compiles every source for some architectures.
pub(crate) fn compiles_for(architectures: &[&str], sources: Vec<(String, String)>) {
    compiles_to(architectures, sources, |_, _| {});
}

/// The same on all cores, with a look at the machine code of each.
pub(crate) fn compiles_to(
    architectures: &[&str],
    sources: Vec<(String, String)>,
    look: impl Fn(&str, &[u8]) + Sync,
) {
    let Some(nvrtc) = nvrtc() else {
        println!("not checked: {} kernels, since there is no NVRTC", sources.len());
        return;
    };
    let work: Vec<_> = sources
        .iter()
        .flat_map(|(name, source)| architectures.iter().map(move |arch| (name, source, arch)))
        .collect();
    let next = Mutex::new(work.iter());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                let claim = || next.lock().unwrap().next();
                while let Some((name, source, architecture)) = claim() {
                    match compile(&nvrtc, source, architecture) {
                        Ok(code) => look(name, &code),
                        Err(log) => panic!("{name} for {architecture}: {log}"),
                    }
                }
            });
        }
    });
    println!("checked: {} kernels for {}", sources.len(), architectures.join(", "));
}

/// Bytes of local memory that a thread of each kernel needs at least, of a file of machine code: the largest. It is an
/// ELF file, whose section `.nv.info` has attributes of four bytes (a format, a kind, a length) and what belongs to
/// them: of this kind, the number of a kernel and its bytes.
pub(crate) fn frame(code: &[u8]) -> usize {
    const PAIRS_OF_NUMBERS: usize = 4;
    const LEAST_STACK: usize = 0x12;
    let number = |at: usize, bytes: usize| {
        code[at..at + bytes].iter().rev().fold(0, |number, &byte| number << 8 | usize::from(byte))
    };
    let (table, each, count) = (number(0x28, 8), number(0x3a, 2), number(0x3c, 2));
    let section = |k: usize| {
        let head = table + k * each;
        (number(head, 4), number(head + 0x18, 8), number(head + 0x20, 8))
    };
    let (_, names, _) = section(number(0x3e, 2));
    let info =
        (0..count).map(section).find(|(name, ..)| code[names + name..].starts_with(b".nv.info\0"));
    let (_, mut at, bytes) = info.expect("machine code has a section of attributes");
    let (end, mut frames) = (at + bytes, Vec::new());
    while at < end {
        let (format, kind, len) = (number(at, 1), number(at + 1, 1), number(at + 2, 2));
        at += 4;
        if format == PAIRS_OF_NUMBERS {
            if kind == LEAST_STACK {
                frames.push(number(at + 4, 4));
            }
            at += len;
        }
    }
    frames.into_iter().max().expect("machine code has a kernel")
}
