//! Reductions over pairs, once for every device.

use tilework_conformance::{
    Device, on, pairs, pairs_bounds, pairs_centred, pairs_course, pairs_golden, pairs_gradients,
    pairs_halves, pairs_kernels, pairs_nearest, pairs_parts, pairs_random, pairs_shapes,
    pairs_sizes, pairs_strict, pairs_strided, pairs_weights,
};

macro_rules! device {
    ($name:ident, $device:expr, $long:expr, $random:expr; $($behaviour:ident),+) => {
        mod $name {
            use super::*;
            $(#[test] fn $behaviour() { on($device, pairs::$behaviour); })+

            #[test]
            fn odds_and_ends() {
                on($device, |device| pairs::odds_and_ends(device, $long));
            }

            #[test]
            fn gradients() {
                on($device, pairs_gradients::gradients);
            }

            #[test]
            fn random_formulas() {
                on($device, |device| {
                    // Two threads, since a device may compile.
                    std::thread::scope(|scope| {
                        for half in [0, 1] {
                            let all = pairs_random::seeds($random);
                            let middle = all.start + (all.end - all.start) / 2;
                            let part = [all.start..middle, middle..all.end][half].clone();
                            scope.spawn(move || pairs_random::random_formulas(device, part));
                        }
                    });
                });
            }
        }
    };
}

device!(cpu, Ok(Device::cpu()), 1 << 20, 300; formulas, reductions, batches, partials);
device!(reference, Ok(Device::reference()), 500, 100; formulas, reductions, batches, partials);
device!(cuda, Device::parse("cuda:0"), 1 << 20, 40; formulas, reductions, batches, partials);

#[test]
fn sizes() {
    on(Device::parse("cuda:0"), pairs_sizes::sizes);
}

#[test]
fn forms() {
    on(Device::parse("cuda:0"), pairs_sizes::forms);
}

#[test]
fn moved() {
    pairs_centred::moved(Device::cpu(), &[(301, 1103, 3), (200, 700, 10)]);
    pairs_centred::moved_batches(Device::cpu(), (100, 300));
    on(Device::parse("cuda:0"), |device| {
        let sizes = [
            (40_003, 60_001, 3),
            (40_003, 60_001, 9),
            (40_003, 60_001, 10),
            (10_007, 12_011, 40),
            (3_001, 4_003, 784),
        ];
        pairs_centred::moved(device, &sizes);
        pairs_centred::moved_batches(device, (6_001, 7_003));
    });
}

#[test]
fn weighed() {
    on(Device::parse("cuda:0"), pairs_sizes::weighed);
}

#[test]
fn long_work() {
    on(Device::parse("cuda:0"), |device| pairs_course::long_work(device, 300_000));
}

#[test]
fn long_gradients() {
    on(Device::parse("cuda:0"), pairs_sizes::long_gradients);
}

#[test]
fn nearest() {
    on(Device::parse("cuda:0"), pairs_nearest::nearest);
}

#[test]
fn golden() {
    on(Device::parse("cuda:0"), pairs_golden::golden);
}

#[test]
fn many_ranks() {
    on(Device::parse("cuda:0"), pairs_nearest::many_ranks);
}

#[test]
fn more_than_32_bits_count() {
    on(Device::parse("cuda:0"), pairs_nearest::more_than_32_bits_count);
}

#[test]
fn many_rows() {
    on(Device::parse("cuda:0"), pairs_shapes::many_rows);
}

#[test]
fn few_rows() {
    on(Device::parse("cuda:0"), pairs_shapes::few_rows);
}

#[test]
fn long_vectors() {
    on(Device::parse("cuda:0"), pairs_shapes::long_vectors);
}

#[test]
fn few_long_vectors() {
    on(Device::parse("cuda:0"), pairs_shapes::few_long_vectors);
}

#[test]
fn right_hand_sides() {
    pairs_shapes::right_hand_sides(Device::cpu());
    on(Device::parse("cuda:0"), pairs_shapes::right_hand_sides);
}

#[test]
fn weights_as_written() {
    pairs_weights::weights_as_written(Device::cpu());
    on(Device::parse("cuda:0"), pairs_weights::weights_as_written);
}

#[test]
fn wide_results() {
    pairs_shapes::wide_results(Device::reference());
    on(Device::parse("cuda:0"), pairs_shapes::wide_results);
    on(Device::parse("cuda:0"), pairs_shapes::measured_slices);
}

#[test]
fn many_weights() {
    pairs_shapes::many_weights(Device::cpu());
    pairs_shapes::means_of_ones(Device::cpu());
    on(Device::parse("cuda:0"), pairs_shapes::many_weights);
    on(Device::parse("cuda:0"), pairs_shapes::means_of_ones);
}

#[test]
fn batches_of_wide_points() {
    on(Device::parse("cuda:0"), pairs_shapes::batches_of_wide_points);
}

#[test]
fn choices_of_j() {
    on(Device::parse("cuda:0"), pairs_shapes::choices_of_j);
}

#[test]
fn wide_gradients() {
    pairs_shapes::wide_gradients(Device::cpu());
    on(Device::parse("cuda:0"), pairs_shapes::wide_gradients);
}

#[test]
fn streamed() {
    on(Device::parse("cuda:0"), pairs_sizes::streamed);
}

#[test]
fn parts_of_many() {
    pairs_parts::parts_of_many(Device::cpu());
    pairs_parts::parts_of_many(Device::reference());
    on(Device::parse("cuda:0"), pairs_parts::parts_of_many);
}

#[test]
fn streamed_of_many() {
    pairs_parts::streamed_of_many(Device::cpu());
    on(Device::parse("cuda:0"), pairs_parts::streamed_of_many);
}

#[test]
fn strided_points() {
    pairs_strided::strided_points(Device::cpu());
    pairs_strided::strided_points(Device::reference());
    on(Device::parse("cuda:0"), pairs_strided::strided_points);
}

#[test]
fn ways_to_sum() {
    pairs_sizes::ways_to_sum(Device::cpu());
    on(Device::parse("cuda:0"), pairs_sizes::ways_to_sum);
}

#[test]
fn nearest_by_distance() {
    pairs_nearest::nearest_by_distance(Device::cpu());
    pairs_nearest::roots_of_nothing(Device::cpu());
    on(Device::parse("cuda:0"), pairs_nearest::nearest_by_distance);
    on(Device::parse("cuda:0"), pairs_nearest::roots_of_nothing);
}

#[test]
fn nearest_on_a_line() {
    pairs_nearest::nearest_on_a_line(Device::cpu());
    on(Device::parse("cuda:0"), pairs_nearest::nearest_on_a_line);
}

#[test]
fn orders_of_squares() {
    pairs_nearest::orders_of_squares(Device::cpu());
    on(Device::parse("cuda:0"), pairs_nearest::orders_of_squares);
}

#[test]
fn extremes_of_doubles() {
    pairs_nearest::extremes_of_doubles(Device::cpu());
    on(Device::parse("cuda:0"), pairs_nearest::extremes_of_doubles);
}

#[test]
fn strict_exponentials() {
    pairs_strict::strict_exponentials(Device::cpu());
    on(Device::parse("cuda:0"), pairs_strict::strict_exponentials);
    pairs_strict::strict_terms(Device::cpu());
    on(Device::parse("cuda:0"), pairs_strict::strict_terms);
    pairs_strict::strict_scales(Device::cpu());
    on(Device::parse("cuda:0"), pairs_strict::strict_scales);
}

#[test]
fn many_of_all() {
    pairs_nearest::many_of_all(Device::cpu());
    on(Device::parse("cuda:0"), pairs_nearest::many_of_all);
}

#[test]
fn values_with_gradients() {
    pairs_gradients::values_with_gradients(Device::cpu());
    on(Device::parse("cuda:0"), pairs_gradients::values_with_gradients);
}

#[test]
fn gradients_of_many() {
    pairs_gradients::gradients_of_many(Device::cpu());
    on(Device::parse("cuda:0"), pairs_gradients::gradients_of_many);
}

#[test]
fn gradients_of_narrow_types() {
    pairs_sizes::gradients(Device::cpu());
    on(Device::parse("cuda:0"), pairs_sizes::gradients);
}

#[test]
fn halves() {
    pairs_halves::halves(Device::cpu());
    on(Device::parse("cuda:0"), pairs_halves::halves);
}

#[test]
fn random_rows() {
    pairs_random::random_rows(Device::cpu(), 0..12);
    on(Device::parse("cuda:0"), |device| pairs_random::random_rows(device, 0..5));
}

#[test]
fn random_kernels() {
    // So few rows that the oracle is done soon, and all forms of a card.
    pairs_kernels::random_kernels(Device::cpu(), 0..pairs_kernels::ALL, 500);
    on(Device::parse("cuda:0"), |device| {
        pairs_kernels::random_kernels(device, pairs_random::seeds(pairs_kernels::ALL), 20_000);
    });
}

#[test]
fn bounds() {
    pairs_bounds::errors_are_within_their_bounds(Device::cpu());
    on(Device::parse("cuda:0"), pairs_bounds::errors_are_within_their_bounds);
}

#[test]
fn counts() {
    pairs_bounds::counts_are_exact(Device::cpu());
    on(Device::parse("cuda:0"), pairs_bounds::counts_are_exact);
}

#[test]
fn large_exponents() {
    pairs_bounds::large_exponents(Device::cpu());
    pairs_bounds::large_exponents(Device::reference());
    on(Device::parse("cuda:0"), pairs_bounds::large_exponents);
}

#[test]
fn wandering_exponents() {
    pairs_bounds::wandering_exponents(Device::cpu());
    pairs_bounds::wandering_exponents(Device::reference());
    on(Device::parse("cuda:0"), pairs_bounds::wandering_exponents);
}

#[test]
fn infinite_sums() {
    pairs_bounds::infinite_sums(Device::cpu());
    pairs_bounds::infinite_sums(Device::reference());
    on(Device::parse("cuda:0"), pairs_bounds::infinite_sums);
}

#[test]
fn ranges() {
    pairs_bounds::ranges(Device::cpu(), [(1031, 1100, 3), (300, 700, 70)]);
    let large = [(12_001, 21_003, 3), (2_999, 12_007, 70)];
    on(Device::parse("cuda:0"), |device| pairs_bounds::ranges(device, large));
}

#[test]
fn near_overflow() {
    on(Device::parse("cuda:0"), pairs_bounds::near_overflow);
}

#[test]
fn edges_of_tiles() {
    on(Device::parse("cuda:0"), pairs_bounds::edges_of_tiles);
}

#[test]
fn exponents() {
    pairs_bounds::exponents(Device::cpu());
    on(Device::parse("cuda:0"), pairs_bounds::exponents);
}

#[test]
fn equal_terms() {
    pairs_bounds::equal_terms(Device::cpu());
    on(Device::parse("cuda:0"), pairs_bounds::equal_terms);
}

#[test]
fn masked_weights() {
    pairs_bounds::masked_weights(Device::cpu());
    pairs_bounds::masked_weights(Device::reference());
    on(Device::parse("cuda:0"), pairs_bounds::masked_weights);
}

#[test]
fn rows_without_numbers() {
    pairs_bounds::rows_without_numbers(Device::cpu());
    on(Device::parse("cuda:0"), pairs_bounds::rows_without_numbers);
}

#[test]
fn masked_first() {
    pairs_bounds::masked_first(Device::cpu());
    pairs_bounds::masked_first(Device::reference());
    on(Device::parse("cuda:0"), pairs_bounds::masked_first);
}

#[test]
fn threads() {
    pairs::threads(Device::cpu());
    on(Device::parse("cuda:0"), pairs::threads);
}

#[test]
fn oracle_agrees_with_text() {
    pairs::oracle_agrees_with_text();
}
