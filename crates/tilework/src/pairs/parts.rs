//! Parts of a call, and the room in which their results come together.
//!
//! Called by `stream`, which says what the parts are, and by `call`.

use std::ops::Range;

use tilework_backend::{Moment, release_pages, while_reading};
use tilework_error::{Error, Result};
use tilework_formula::{Category, Expr};

use super::call::{Call, Reduced};
use super::cut::Batches;
use super::reduce::rows_of;
use super::variable::Extent;
use crate::array::Array;
use crate::device::Device;

/// Does work in parts that read the arrays of a call as one operation does: what other threads write is
/// seen by all parts or by none.
pub(super) fn as_one_step<R>(call: &Call<'_>, work: impl FnOnce() -> Result<R>) -> Result<R> {
    while_reading("reduction", call.arrays.iter().map(Array::storage), work)
}

/// Arrays of a part of a call, and their extent.
#[derive(Clone)]
pub(super) struct Part {
    arrays: Vec<Array>,
    extent: Extent,
}

impl Part {
    /// Views of some batches; what is broadcast along an axis is not cut.
    pub(super) fn of_batches(call: &Call<'_>, batches: &[Range<usize>]) -> Result<Part> {
        let mut arrays: Vec<Array> = call.arrays.to_vec();
        for variable in Expr::variables_of(&call.reduction.outputs())? {
            let array = &mut arrays[variable.position];
            let own = if variable.category == Category::Parameter { 1 } else { 2 };
            let lens = array.shape().len().saturating_sub(own);
            let missing = batches.len().saturating_sub(lens);
            for (axis, batches) in batches[missing..].iter().enumerate() {
                if array.shape()[axis] != 1 {
                    *array = narrowed(array, axis, batches)?;
                }
            }
        }
        let batch = batches.iter().map(Range::len).collect();
        Ok(Part { arrays, extent: Extent { batch, ..call.extent.clone() } })
    }

    /// Views of some indices.
    pub(super) fn of(call: &Call<'_>, category: Category, rows: &Range<usize>) -> Result<Part> {
        let mut arrays: Vec<Array> = call.arrays.to_vec();
        for variable in Expr::variables_of(&call.reduction.outputs())? {
            if variable.category == category {
                arrays[variable.position] = rows_of(&arrays[variable.position], rows)?;
            }
        }
        Ok(Part { arrays, extent: call.extent.with_rows(category, rows.len()) })
    }

    /// All arrays on a device.
    pub(super) fn on(&self, device: Device, call: &Call<'_>) -> Result<Part> {
        self.moved(device, call, |_| true)
    }

    /// What belongs to one category on a device; the rest is to follow.
    pub(super) fn begun_on(
        &self,
        device: Device,
        call: &Call<'_>,
        category: Category,
    ) -> Result<Part> {
        self.moved(device, call, |other| other == category)
    }

    /// All but what is reduced on a device.
    pub(super) fn kept_on(&self, device: Device, call: &Call<'_>) -> Result<Part> {
        let reduced = call.reduction.axis().reduced();
        self.moved(device, call, |category| category != reduced)
    }

    fn moved(
        &self,
        device: Device,
        call: &Call<'_>,
        is: impl Fn(Category) -> bool,
    ) -> Result<Part> {
        let mut arrays = self.arrays.clone();
        for variable in Expr::variables_of(&call.reduction.outputs())? {
            if is(variable.category) {
                arrays[variable.position] = arrays[variable.position].to_device(device)?;
            }
        }
        let extent = Extent { device: Some(device), ..self.extent.clone() };
        Ok(Part { arrays, extent })
    }

    pub(super) fn call<'a>(&'a self, whole: &Call<'a>) -> Call<'a> {
        Call::new(whole.reduction, &self.arrays, &self.extent)
    }

    /// What was read of files is not needed again soon, where it is a part of what the call has.
    pub(super) fn release_pages(&self, call: &Call<'_>) {
        for (array, whole) in self.arrays.iter().zip(call.arrays) {
            if array.len() < whole.len() && array.is_contiguous() {
                let (size, from) = (array.dtype().size(), array.offset());
                release_pages(array.storage(), from * size..(from + array.len()) * size);
            }
        }
    }
}

fn narrowed(array: &Array, axis: usize, indices: &Range<usize>) -> Result<Array> {
    let layout = array.layout().narrow(axis.cast_signed(), indices.start, indices.len())?;
    array.with_layout(layout)
}

/// A result that comes in parts: it is there before the first of them, so that one which is too large
/// fails at once, and once, however many parts there are.
pub(super) struct Room {
    /// None where the first part is all of it.
    whole: Option<Reduced>,
    /// What has been asked for last, of a device that works meanwhile, and when it is done.
    last: Option<(Reduced, Place, Moment)>,
    home: Device,
}

/// The device that makes a part.
fn maker(part: &Reduced) -> Option<Device> {
    part.values.as_ref().or(part.indices.as_ref()).map(Array::device)
}

/// Where a part belongs: its batches, and its rows.
type Place = (Batches, Range<usize>);

impl Room {
    /// Room for so many parts, the arrays of which have these shapes and dtypes as a whole.
    pub(super) fn new(
        home: Device,
        parts: usize,
        whole: impl FnOnce() -> Result<Reduced>,
    ) -> Result<Room> {
        let whole = (parts != 1).then(whole).transpose()?;
        Ok(Room { whole, last: None, home })
    }

    /// Takes the next part, which is the last thing that its device was asked for.
    pub(super) fn put(&mut self, part: Reduced, place: Place) -> Result<()> {
        let fetched_at = match (maker(&part).filter(|it| *it != self.home), &self.whole) {
            // What another device works on is fetched later: the next one is copied there, and begun, meanwhile.
            (Some(away), Some(_)) => Some(away.moment().map_err(|error| error.of("reduction"))?),
            // The only part is given as it is: there is nowhere to write it to.
            (_, None) => Some(Moment::default()),
            (None, Some(_)) => None,
        };
        if let Some((part, place, moment)) = self.last.take() {
            self.write(&part, &place, &moment)?;
        }
        match fetched_at {
            Some(moment) => self.last = Some((part, place, moment)),
            None => self.write(&part, &place, &Moment::default())?,
        }
        Ok(())
    }

    fn write(&self, part: &Reduced, (batches, rows): &Place, moment: &Moment) -> Result<()> {
        let Some(whole) = &self.whole else {
            return Err(Error::value("reduction", "there is no room for a second part"));
        };
        let of = [(&whole.values, &part.values), (&whole.indices, &part.indices)];
        for (whole, part) in of {
            if let (Some(whole), Some(part)) = (whole, part) {
                let mut to = whole.clone();
                for (axis, indices) in batches.iter().chain([rows]).enumerate() {
                    to = narrowed(&to, axis, indices)?;
                }
                to.assign_from("reduction", part, moment)?;
            }
        }
        Ok(())
    }

    /// All parts together.
    pub(super) fn finish(mut self) -> Result<Reduced> {
        if let Some((part, place, moment)) = self.last.take() {
            if self.whole.is_none() {
                return part.to_device(self.home);
            }
            self.write(&part, &place, &moment)?;
        }
        self.whole.ok_or_else(|| Error::value("reduction", "there is no block"))
    }
}
