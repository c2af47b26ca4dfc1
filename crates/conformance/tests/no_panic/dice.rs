//! Choices for random arguments, drawn from what tends to break things: 0, 1, -1, the extremes, and
//! small numbers; arrays of every dtype, and views of views of them.

use tilework::{Array, Axes, DType, Device, Index, Number, Result};

/// A source of choices.
pub(crate) struct Dice(pub(crate) std::vec::IntoIter<u32>);

impl Dice {
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0.next().unwrap_or(0) as usize % sides.max(1)
    }

    pub(crate) fn integer(&mut self) -> isize {
        const AWKWARD: [isize; 14] =
            [0, 1, -1, 2, -2, 3, 4, -5, 7, 64, isize::MAX, isize::MIN, i32::MAX as isize, -100];
        AWKWARD[self.roll(AWKWARD.len())]
    }

    /// Large sizes ask for memory that may be had: keep to those that cannot or that are small.
    pub(crate) fn size(&mut self) -> usize {
        const AWKWARD: [usize; 9] = [0, 1, 2, 3, 4, 5, 17, usize::MAX, isize::MAX as usize];
        AWKWARD[self.roll(AWKWARD.len())]
    }

    pub(crate) fn integers(&mut self) -> Vec<isize> {
        (0..self.roll(5)).map(|_| self.integer()).collect()
    }

    pub(crate) fn sizes(&mut self) -> Vec<usize> {
        (0..self.roll(5)).map(|_| self.size()).collect()
    }

    pub(crate) fn small_sizes(&mut self) -> Vec<usize> {
        (0..self.roll(4)).map(|_| self.roll(4)).collect()
    }

    pub(crate) fn dtype(&mut self) -> DType {
        DType::ALL[self.roll(DType::COUNT)]
    }

    pub(crate) fn number(&mut self) -> Number {
        match self.roll(6) {
            0 => Number::Bool(true),
            1 => Number::Int(self.integer() as i128),
            2 => Number::Int(i128::MAX),
            3 => Number::Float(f64::NAN),
            4 => Number::Float(self.integer() as f64 * 0.5),
            _ => Number::Complex(tilework::Complex::new(1.0, -2.0)),
        }
    }

    pub(crate) fn index(&mut self) -> Index {
        match self.roll(5) {
            0 => Index::NewAxis,
            1 => Index::Ellipsis,
            2 => Index::At(self.integer()),
            _ => {
                let mut end = || (self.roll(3) > 0).then(|| self.integer());
                let (start, stop) = (end(), end());
                Index::Slice { start, stop, step: self.integer() }
            }
        }
    }

    pub(crate) fn array(&mut self, device: Device) -> Array {
        let shape = self.small_sizes();
        let dtype = self.dtype();
        let count: usize = shape.iter().product();
        let numbers: Vec<i64> = (0..count as i64).map(|k| k * 7 % 11 - 4).collect();
        let dims: Vec<isize> = shape.iter().map(|&n| n as isize).collect();
        let base = Array::from_slice_on(device, &numbers)
            .and_then(|x| x.astype(dtype)?.reshape(&dims))
            .expect("base");
        (0..self.roll(4)).fold(base, |view, _| self.view(&view).expect("a view"))
    }

    /// A view of an array, of any kind that its shape allows.
    fn view(&mut self, x: &Array) -> Result<Array> {
        let axis = self.roll(x.ndim()) as isize;
        match self.roll(7) {
            0 => Ok(x.transpose()),
            1 => x.flip(None),
            2 => x.expand_dims(0)?.broadcast_to(&[&[2], x.shape()].concat()),
            3 if x.ndim() > 0 => {
                let steps = Index::Slice { start: None, stop: None, step: -2 };
                x.slice(&[Index::Ellipsis, steps])
            }
            4 if x.ndim() > 1 => x.move_axes(&[axis], &[0]),
            5 if x.ndim() > 0 => x.expand_dims(axis),
            6 if x.shape().first().is_some_and(|&n| n > 1) => x.slice(&[Index::At(-1)]),
            _ => Ok(x.clone()),
        }
    }
}

/// Some axes, or all.
pub(crate) fn axes(dice: &mut Dice) -> Axes {
    if dice.roll(3) == 0 { Axes::All } else { Axes::Some(dice.integers()) }
}
