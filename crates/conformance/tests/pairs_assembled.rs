//! Random formulas by assembled code and by the interpreter: the same bits, for both instruction sets.
//!
//! A process decides once whether it assembles, so this test runs itself again with `TILEWORK_JIT`
//! and `TILEWORK_ISA` set, and compares what is printed.

use std::process::Command;

use tilework_conformance::Device;
use tilework_conformance::pairs_random::random_bits;

/// Not a test by itself: see the module.
#[test]
#[ignore = "run by `random_formulas_have_the_same_bits`"]
fn corpus() {
    random_bits(Device::current(), 0..150).iter().for_each(|line| println!("case {line}"));
}

/// What the corpus prints under these settings.
fn lines(isa: &str, jit: &str) -> Vec<String> {
    let output = Command::new(std::env::current_exe().expect("this test is a file"))
        .args(["--exact", "corpus", "--ignored", "--nocapture", "--test-threads", "1"])
        .envs([("TILEWORK_ISA", isa), ("TILEWORK_JIT", jit)])
        .output()
        .expect("the corpus runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{isa} {jit}: {}", String::from_utf8_lossy(&output.stderr));
    text.lines().filter(|line| line.starts_with("case ")).map(str::to_owned).collect()
}

#[test]
fn random_formulas_have_the_same_bits() {
    for isa in ["avx512", "avx2"] {
        let (assembled, interpreted) = (lines(isa, "1"), lines(isa, "0"));
        assert!(assembled.len() > 200, "{isa}: {} cases", assembled.len());
        assert_eq!(assembled.len(), interpreted.len(), "{isa}");
        for (assembled, interpreted) in assembled.iter().zip(&interpreted) {
            assert_eq!(assembled, interpreted, "{isa}");
        }
    }
}
