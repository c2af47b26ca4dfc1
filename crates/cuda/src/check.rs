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

/// Compiles every source for some architectures, on all cores.
pub(crate) fn compiles_for(architectures: &[&str], sources: Vec<(String, String)>) {
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
                    if let Err(log) = compile(&nvrtc, source, architecture) {
                        panic!("{name} for {architecture}: {log}");
                    }
                }
            });
        }
    });
    println!("checked: {} kernels for {}", sources.len(), architectures.join(", "));
}
