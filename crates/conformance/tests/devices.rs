//! The suites, once for every device. A device joins by one line at the end.

use tilework_conformance::{Device, linalg, maps, movement, on, reductions};

macro_rules! device {
    ($name:ident, $device:expr; $($suite:ident::$behaviour:ident),+ $(,)?) => {
        mod $name {
            use super::*;
            $(#[test] fn $behaviour() { on($device, $suite::$behaviour); })+
        }
    };
}

macro_rules! every_device {
    ($($list:tt)+) => {
        device!(cpu, Ok(Device::cpu()); $($list)+);
        device!(cuda, Device::parse("cuda:0"); $($list)+);
    };
}

every_device!(
    maps::operations_on_integers,
    maps::operations_on_reals,
    maps::operations_on_complex_numbers,
    maps::scalars,
    maps::in_place,
    maps::casts,
    maps::mixed_comparisons,
    maps::choices,
    reductions::folds,
    reductions::scans,
    reductions::accuracy,
    linalg::products,
    linalg::outer_products,
    linalg::shapes,
    linalg::textbook,
    movement::indexing,
    movement::joins,
    movement::order,
    movement::long_rows,
    movement::many_axes,
    movement::random,
);

/// The reference is what the suites compare with; what does not compare runs on it too.
mod reference {
    use super::*;

    #[test]
    fn in_place() {
        maps::in_place(Device::reference());
    }

    #[test]
    fn textbook() {
        linalg::textbook(Device::reference());
    }

    #[test]
    fn shapes() {
        linalg::shapes(Device::reference());
    }
}

/// Others join what was scanned apart.
#[test]
fn scans_at_the_edge() {
    reductions::scans_at_the_edge(Device::cpu());
    reductions::scans_at_the_edge(Device::reference());
}

#[test]
fn table() {
    maps::table();
}
