//! The arrows between crates point down: read from `cargo metadata`, so nobody needs to remember.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

/// The floor of every crate of the workspace. A crate uses only crates on lower floors.
const FLOORS: &[(&str, u32)] = &[
    ("tilework-error", 0),
    ("tilework-fork", 0),
    ("tilework-layout", 1),
    ("tilework-ops", 1),
    ("tilework-simd", 1),
    ("tilework-tape", 2),
    ("tilework-backend", 3),
    ("tilework-formula", 3),
    ("tilework-reference", 4),
    ("tilework-cpu", 4),
    ("tilework-cuda", 4),
    ("tilework", 5),
    ("tilework-cli", 6),
    ("tilework-python", 7),
    ("tilework-conformance", 7),
];

fn packages() -> Vec<Value> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo metadata runs");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    metadata["packages"].as_array().expect("there are packages").clone()
}

#[test]
fn crates_use_only_lower_floors() {
    let floors: BTreeMap<&str, u32> = FLOORS.iter().copied().collect();
    let packages = packages();
    assert!(packages.len() >= 10, "the workspace was read");
    for package in &packages {
        let name = package["name"].as_str().expect("a package has a name");
        let floor = floors
            .get(name)
            .unwrap_or_else(|| panic!("{name} has no floor: give it one in FLOORS"));
        for dependency in package["dependencies"].as_array().expect("a list") {
            // Tests may look down at anything; only what ships must keep the arrows.
            if dependency["kind"].as_str() == Some("dev") {
                continue;
            }
            let uses = dependency["name"].as_str().expect("a dependency has a name");
            if let Some(below) = floors.get(uses) {
                assert!(below < floor, "{name} (floor {floor}) uses {uses} (floor {below})");
            }
        }
    }
}
