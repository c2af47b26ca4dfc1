//! The states of blocks, merged one after the other, however many there are.
//!
//! Each merge rounds, and a long call has hundreds of them, which would be more than sums in blocks or with
//! compensation promise. So states in float32 are merged in float64. Sums that are in float64 already go with
//! what their additions lose, which is added at the end. Called by `stream`.

use tilework_error::{Error, Result};
use tilework_ops::DType;
use tilework_ops::pair_fold::Monoid;

use super::partial::Partial;
use crate::array::Array;

/// The blocks so far.
#[derive(Default)]
pub(super) struct Running {
    state: Option<Partial>,
    /// What additions in float64 have lost: a state of no pairs.
    lost: Option<Partial>,
}

impl Running {
    /// The next block too.
    pub(super) fn merge(&mut self, next: Partial) -> Result<()> {
        let Some(before) = self.state.take() else {
            self.state = Some(next);
            return Ok(());
        };
        let loses = next.values.dtype() == DType::Float64
            && matches!(next.monoid(), Monoid::Add | Monoid::Shifted);
        let (before, next) = (before.widened()?, next.widened()?);
        let both = before.merge(&next)?;
        if loses {
            let lost = lost(&before, &next, &both)?;
            self.lost = Some(match self.lost.take() {
                Some(all) => all.merge(&lost)?,
                None => lost,
            });
        }
        self.state = Some(both);
        Ok(())
    }

    /// All of them: in float64, if they are several and merging rounds.
    pub(super) fn finish(self) -> Result<Partial> {
        let state = self.state.ok_or_else(|| Error::value("reduction", "there is no block"))?;
        self.lost.map_or(Ok(state.clone()), |lost| state.merge(&lost))
    }
}

/// What the sums of both are too small by.
fn lost(before: &Partial, next: &Partial, both: &Partial) -> Result<Partial> {
    if both.monoid() == Monoid::Add {
        let lost = rounded_off(&before.values, &next.values, &both.values)?;
        return Ok(both.of_no_pairs(lost));
    }
    // The sums that were added are those at the larger exponent.
    let ((at, sums), (other_at, other_sums)) =
        (before.exponents_and_sums(&before.values)?, next.exponents_and_sums(&next.values)?);
    let raised = |state: &Partial, at: &Array, sums: &Array| -> Result<Array> {
        let nothing = state.of_no_pairs(state.joined(at, &(sums * 0.0)?)?);
        let values = state.merge(&nothing)?.values;
        Ok(state.exponents_and_sums(&values)?.1)
    };
    let (held, taken) = (raised(before, &other_at, &sums)?, raised(next, &at, &other_sums)?);
    let (largest, sums) = both.exponents_and_sums(&both.values)?;
    let lost = both.joined(&largest, &rounded_off(&held, &taken, &sums)?)?;
    Ok(both.of_no_pairs(lost))
}

/// What the rounded sum of two numbers is too small by, which is a number (Knuth); 0 where the sum is not finite.
fn rounded_off(a: &Array, b: &Array, sum: &Array) -> Result<Array> {
    let of_b = (sum - a)?;
    let of_a = (sum - &of_b)?;
    let error = (&(a - &of_a)? + &(b - &of_b)?)?;
    crate::select(&sum.isfinite()?, &error, 0.0)
}
