//! Kernels compile for every architecture: run where there is NVRTC, with or without a card.
//!
//! NVRTC is looked for where `TILEWORK_CUDA_PATH` says, which `make test-kernels` sets, and must be there then.
//! Without it the tests say "not checked" and pass, since compiling takes a minute.

use std::path::PathBuf;
use std::sync::Mutex;

use crate::compile::compile;
use crate::driver::Nvrtc;
use crate::search::Search;

/// Bytes of shared memory that every compiler lets a kernel declare.
const DECLARED: usize = 48 << 10;

/// Ampere, Hopper and Blackwell.
const ARCHITECTURES: [&str; 3] = ["sm_80", "sm_90a", "sm_100"];

fn nvrtc() -> Option<Nvrtc> {
    let named = std::env::var_os("TILEWORK_CUDA_PATH").filter(|path| !path.is_empty());
    let named = named.map(PathBuf::from);
    let search = Search { named, ..Search::default() };
    let found =
        search.compilers().into_iter().find_map(|library| Nvrtc::with_builtins(&library).ok());
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
    // Older compilers, which `TILEWORK_CUDA_PATH` may name, do not know the newest cards.
    let known = nvrtc.architectures().expect("NVRTC says what it compiles for");
    let is_known = |name: &&str| {
        known.iter().any(|number| name.trim_end_matches('a') == format!("sm_{number}"))
    };
    let architectures: Vec<&str> = architectures.iter().copied().filter(is_known).collect();
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
                        Ok(code) => {
                            let bytes = declared(&code);
                            assert!(
                                bytes <= DECLARED,
                                "{name} for {architecture} declares {bytes} bytes of shared memory"
                            );
                            look(name, &code);
                        }
                        Err(log) => panic!("{name} for {architecture}: {log}"),
                    }
                }
            });
        }
    });
    println!("checked: {} kernels for {}", sources.len(), architectures.join(", "));
}

/// A number of some bytes of a file, the lowest first.
fn number(code: &[u8], at: usize, bytes: usize) -> usize {
    code[at..at + bytes].iter().rev().fold(0, |number, &byte| number << 8 | usize::from(byte))
}

/// The sections of a file of machine code, which is an ELF file: what begins with the name, and where it lies and its bytes.
fn sections(code: &[u8]) -> impl Iterator<Item = (&[u8], usize, usize)> {
    let number = |at, bytes| number(code, at, bytes);
    let (table, each, count) = (number(0x28, 8), number(0x3a, 2), number(0x3c, 2));
    let head = move |k: usize| table + k * each;
    let names = number(head(number(0x3e, 2)) + 0x18, 8);
    (0..count).map(move |k| {
        let place = |at, bytes| self::number(code, head(k) + at, bytes);
        (&code[names + place(0, 4)..], place(0x18, 8), place(0x20, 8))
    })
}

/// Bytes of shared memory that a kernel declares, without what the compiler keeps for itself: the largest.
fn declared(code: &[u8]) -> usize {
    let own = |name: &[u8]| {
        name.starts_with(b".nv.shared.") && !name.starts_with(b".nv.shared.reserved.")
    };
    sections(code).filter(|(name, ..)| own(name)).map(|(.., bytes)| bytes).max().unwrap_or(0)
}

/// Bytes of local memory that a thread of each kernel needs at least, of a file of machine code: the largest. The section
/// `.nv.info` has attributes of four bytes (a format, a kind, a length) and what belongs to them: of this kind, the number
/// of a kernel and its bytes.
pub(crate) fn frame(code: &[u8]) -> usize {
    const PAIRS_OF_NUMBERS: usize = 4;
    const LEAST_STACK: usize = 0x12;
    let number = |at, bytes| number(code, at, bytes);
    let info = sections(code).find(|(name, ..)| name.starts_with(b".nv.info\0"));
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
