//! Reductions over pairs, once for every device.

use tilework_conformance::{Device, pairs, pairs_random};

macro_rules! device {
    ($name:ident, $device:expr; $($behaviour:ident),+) => {
        mod $name {
            use super::*;
            $(#[test] fn $behaviour() { pairs::$behaviour($device); })+

            #[test]
            fn odds_and_ends() {
                pairs::odds_and_ends($device, if $device == Device::cpu() { 1 << 20 } else { 500 });
            }
        }
    };
}

device!(cpu, Device::cpu(); formulas, reductions, batches, gradients, partials);
device!(reference, Device::reference(); formulas, reductions, batches, gradients, partials);

#[test]
fn random_formulas() {
    pairs_random::random_formulas(Device::cpu(), 300);
    pairs_random::random_formulas(Device::reference(), 100);
}

#[test]
fn threads() {
    pairs::threads(Device::cpu());
}

#[test]
fn oracle_agrees_with_text() {
    pairs::oracle_agrees_with_text();
}
