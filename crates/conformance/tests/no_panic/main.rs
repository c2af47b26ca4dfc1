//! Random arguments at every public function: Ok or Err, never a panic, and after an error every
//! array is as it was.
//!
//! Driven by the rows and by lists of functions. The lists are held against the source: a public
//! function that is neither thrown at nor excused fails a test.

mod arrays;
mod dice;
mod pairs;

use std::collections::BTreeSet;
use std::path::Path;

use dice::{Dice, axes};
use proptest::prelude::*;
use tilework::{Arg, Array, Device, FoldId, Id, KeepDims, apply, apply_into};
use tilework_conformance::compare::scalars;

/// Functions that take nothing that could be wrong, or that other tests throw at.
const EXCUSED: &[(&str, &str)] = &[
    (
        "nothing to get wrong",
        "shape strides offset ndim len is_empty dtype device storage layout \
      is_contiguous is_column_major is_writable shares_memory is_same_block memory is_quick transpose num_threads set_num_threads cpu reference \
      all unavailable current set_default scope scoped names id properties synchronize state new from_state set",
    ),
    ("driven by the rows, below", "apply apply_into reduce scan"),
    ("how the arrays are made", "from_slice_on"),
    (
        "called by the forms without a device",
        "ones_on arange_on linspace_on eye_on from_nested_on from_shape_on from_bytes_on",
    ),
    (
        "tests/io.rs: broken and truncated files",
        "save load save_npz save_npz_compressed load_npz open \
      load_mapped load_mapped_private",
    ),
    ("tests/interop.rs", "to_ndarray with_ndarray from_ndarray serialize deserialize"),
];

/// The names of `pub fn` in the files below a folder.
fn public(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            public(&path, found);
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a source file");
        let after = text.lines().filter_map(|line| {
            let line = line.trim_start();
            line.strip_prefix("pub fn ").or_else(|| line.strip_prefix("pub unsafe fn "))
        });
        found.extend(after.filter_map(|rest| {
            let name: String =
                rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            (!name.is_empty()).then_some(name)
        }));
    }
}

#[test]
fn every_public_function_is_thrown_at() {
    let mut names = BTreeSet::new();
    public(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../tilework/src"), &mut names);
    assert!(names.len() > 150, "{} names", names.len());
    let thrown = arrays::METHODS.iter().map(|(name, _)| *name);
    let excused =
        EXCUSED.iter().chain(pairs::EXCUSED).flat_map(|(_, names)| names.split_whitespace());
    let known: BTreeSet<&str> =
        thrown.chain(pairs::METHODS.iter().map(|(name, _)| *name)).chain(excused).collect();
    let missing: Vec<&String> =
        names.iter().filter(|name| !known.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "not thrown at: {missing:?}");
    let gone: Vec<&&str> = known.iter().filter(|name| !names.contains(**name)).collect();
    assert!(gone.is_empty(), "no such functions: {gone:?}");
}

/// What arrays hold, to be compared after an error.
fn contents(arrays: &[&Array]) -> Vec<Vec<u8>> {
    let bytes = |array: &&Array| {
        scalars(array).iter().flat_map(|x| x.bytes().to_vec()).collect::<Vec<u8>>()
    };
    arrays.iter().map(bytes).collect()
}

/// Where arrays are made: mostly all in one place.
fn devices(dice: &mut Dice) -> [Device; 3] {
    let first = Device::all()[dice.roll(2)];
    let second = if dice.roll(8) == 0 { Device::all()[dice.roll(2)] } else { first };
    [first, second, first]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn methods(rolls in prop::collection::vec(any::<u32>(), 80)) {
        let mut dice = Dice(rolls.into_iter());
        let [here, there, _] = devices(&mut dice);
        let (x, y) = (dice.array(here), dice.array(there));
        for _ in 0..4 {
            let before = contents(&[&x, &y]);
            let (name, method) = arrays::METHODS[dice.roll(arrays::METHODS.len())];
            if method(&mut dice, &x, &y).is_err() {
                prop_assert_eq!(contents(&[&x, &y]), before, "{} failed and wrote", name);
            }
        }
    }

    #[test]
    fn operations_and_reductions(rolls in prop::collection::vec(any::<u32>(), 80)) {
        let mut dice = Dice(rolls.into_iter());
        let arrays = devices(&mut dice).map(|device| dice.array(device));
        let id = Id::ALL[dice.roll(Id::ALL.len())];
        let numbers = [dice.number(), dice.number(), dice.number()];
        let args: Vec<Arg<'_>> = (0..id.row().arity)
            .map(|k| if dice.roll(3) == 0 { Arg::Number(numbers[k]) } else { Arg::Array(&arrays[k]) })
            .collect();
        let _ = apply(id, &args);
        let before = contents(&[&arrays[0]]);
        if apply_into(id, &args, &arrays[0]).is_err() {
            prop_assert_eq!(contents(&[&arrays[0]]), before, "{} failed and wrote", id.row().name);
        }
        let fold = FoldId::ALL[dice.roll(FoldId::ALL.len())];
        let keepdims = if dice.roll(2) == 0 { KeepDims::Yes } else { KeepDims::No };
        let _ = arrays[0].reduce(fold, axes(&mut dice), keepdims, dice.integer() as f64);
        let _ = arrays[1].scan(fold, dice.integer());
    }

    #[test]
    fn formulas(rolls in prop::collection::vec(any::<u32>(), 80)) {
        let mut dice = Dice(rolls.into_iter());
        let (x, y) = (pairs::points(&mut dice), pairs::points(&mut dice));
        let before = contents(&[&x, &y]);
        for _ in 0..3 {
            let (name, method) = pairs::METHODS[dice.roll(pairs::METHODS.len())];
            let _ = method(&mut dice, &x, &y);
            prop_assert_eq!(contents(&[&x, &y]), before.clone(), "{} wrote", name);
        }
    }
}
