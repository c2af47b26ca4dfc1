//! The vector sorts of every level that this CPU has against the standard library's.

use tilework_simd::Level;
use tilework_simd::order::{SORT_U32, SORT_U64, Sorter};

/// Numbers that look random and are the same in every run.
fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*seed ^ *seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// The number at a place, from the place and a random number.
type Pattern = Box<dyn Fn(usize, u64) -> u64>;

/// Integers before and behind those that are sorted, which nobody may write.
const BEYOND: usize = 32;

/// The integers, between others.
fn guarded<E: Copy>(data: &[E], guard: E) -> Vec<E> {
    [&[guard; BEYOND], data, &[guard; BEYOND]].concat()
}

/// Whether the others are as they were.
fn is_whole<E: Copy + Eq>(guarded: &[E], guard: E) -> bool {
    let end = guarded.len() - BEYOND;
    guarded[..BEYOND].iter().chain(&guarded[end..]).all(|&x| x == guard)
}

fn check<E>(sorters: [Option<Sorter<E>>; 3], number: impl Fn(u64) -> E)
where
    E: Copy + Ord + std::fmt::Debug,
{
    // Every number of registers and of odd integers that networks sort, and some beyond.
    let lengths = (0..530).chain([1000, 4095, 4097, 70_000]);
    let guard = number(0x0123_4567_89ab_cdef);
    for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
        let Some(sorter) = sorters[level as usize] else { continue };
        for count in lengths.clone() {
            let mut seed = count as u64;
            let patterns: [(&str, Pattern); 9] = [
                ("random", Box::new(|_, r| r)),
                ("few values", Box::new(|_, r| r % 3)),
                ("one value", Box::new(|_, _| 7)),
                ("largest", Box::new(|_, _| u64::MAX)),
                ("largest and others", Box::new(|_, r| if r % 2 == 0 { u64::MAX } else { r })),
                ("least and others", Box::new(|_, r| if r % 2 == 0 { 0 } else { r })),
                ("ascending", Box::new(|i, _| i as u64)),
                ("descending", Box::new(|i, _| (1 << 40) - i as u64)),
                ("organ pipe", Box::new(move |i, _| i.min(count - i) as u64)),
            ];
            for (name, value) in patterns {
                let data: Vec<E> =
                    (0..count).map(|i| number(value(i, random(&mut seed)))).collect();
                let mut want = data.clone();
                want.sort_unstable();
                for to_other in [false, true] {
                    let (mut from, mut other) = (guarded(&data, guard), guarded(&data, guard));
                    let (f, o) = (from[BEYOND..].as_mut_ptr(), other[BEYOND..].as_mut_ptr());
                    // SAFETY: the level is available, and both have `count` integers.
                    unsafe { (sorter.sort)(f, o, to_other, count) };
                    let got = if to_other { &other } else { &from };
                    assert!(got[BEYOND..][..count] == want, "{name}: {count} at {level:?}");
                    assert!(
                        is_whole(&from, guard) && is_whole(&other, guard),
                        "{name}: {count} at {level:?}"
                    );
                }
                let Some(&pivot) = data.get(count / 2) else { continue };
                for cut in [0, 1, 13, count / 3, count / 2, count - 1, count] {
                    let cut = cut.min(count);
                    let mut runs = data.clone();
                    let (a, b) = runs.split_at_mut(cut);
                    a.sort_unstable();
                    b.sort_unstable();
                    let mut merged = guarded(&data, guard);
                    let to = merged[BEYOND..].as_mut_ptr();
                    // SAFETY: as above; both runs are `count` integers together.
                    unsafe { (sorter.merge)(a.as_ptr(), a.len(), b.as_ptr(), b.len(), to) };
                    assert!(is_whole(&merged, guard), "{name}: {count} cut at {cut} at {level:?}");
                    let merged = &merged[BEYOND..][..count];
                    assert!(merged == want, "{name}: {count} cut at {cut} at {level:?}");
                }
                for integer in [pivot, number(3), guard] {
                    // SAFETY: as above.
                    let found = unsafe { (sorter.occurrences)(data.as_ptr(), count, integer) };
                    let want = data.iter().filter(|&&x| x == integer).count();
                    assert_eq!(found, want, "{name}: {count} at {level:?}");
                }
                let mut parted = data.clone();
                // SAFETY: as above.
                let below =
                    unsafe { (sorter.part)(data.as_ptr(), parted.as_mut_ptr(), count, pivot) };
                assert_eq!(below, data.iter().filter(|&&x| x < pivot).count(), "{name}: {count}");
                let in_order = data.iter().filter(|&&x| x < pivot);
                assert!(parted[..below].iter().eq(in_order), "{name}: {count} at {level:?}");
                parted.sort_unstable();
                assert!(parted == want, "{name}: {count} at {level:?}");
                let mut parted = data.clone();
                // SAFETY: as above.
                let (below, above) = unsafe {
                    (sorter.part_around)(data.as_ptr(), parted.as_mut_ptr(), count, pivot)
                };
                parted[below..count - above].fill(pivot);
                assert!(parted[..below].iter().all(|&x| x < pivot), "{name}: {count}");
                assert!(parted[count - above..].iter().all(|&x| x > pivot), "{name}: {count}");
                parted.sort_unstable();
                assert!(parted == want, "{name} around: {count} at {level:?}");
            }
        }
    }
}

#[test]
fn every_pattern_and_length_of_u32() {
    check(SORT_U32, |x| (x >> 8 | x << 24) as u32);
    check(SORT_U32, |x| x as u32);
}

#[test]
fn every_pattern_and_length_of_u64() {
    check(SORT_U64, |x| x);
}
