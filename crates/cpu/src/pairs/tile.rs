//! Runs the steps of a section over a tile, a block or a single number.
//!
//! Every operation of the table runs its contiguous kernel along the lanes of each component.
//! Operands of another section are seen through [`Rows`] by the loops that can (arithmetic, inner
//! products) and written out in a buffer for those that cannot. May assume a plan whose places are
//! inside the regions; called by `pairs::piece`.

use smallvec::SmallVec;
use tilework_backend::Accumulator;
use tilework_error::{Error, Result};
use tilework_ops::{DType, FoldId, Id};
use tilework_tape::{Action, Contraction, Per, SlotId, Step};

use super::lanes::{Dot, Rows, Terms, arithmetic, is_arithmetic};
use super::plan::{GIVEN, How, Place, Plan, REGIONS};
use crate::isa::{Isa, with_isa};
use crate::map::{cast, kernels, moves};

/// How many buffers steps may use.
pub(super) const BUFFERS: usize = 4;

/// Where steps run: the regions, and the part of them that is meant.
#[derive(Clone, Copy)]
pub(super) struct Frame<'p, 'a> {
    pub(super) plan: &'p Plan<'a>,
    pub(super) isa: Isa,
    /// The beginning of each region; that of i is the tile's.
    pub(super) regions: [*mut u8; REGIONS],
    /// Buffers, each with room for as many numbers as the largest region has elements.
    pub(super) buffers: *mut u8,
    /// Bytes of a buffer.
    pub(super) buffer: usize,
    /// Which section runs.
    pub(super) section: Per,
    /// j in the tile; 1 in other sections.
    pub(super) rows: usize,
    /// i in the tile, or elements of the section.
    pub(super) lanes: usize,
    /// The tile's first j in its block.
    pub(super) first: usize,
    /// The i of the tile that is meant, where the lanes of pairs are j.
    pub(super) i: usize,
    /// Whether the lanes of pairs are the j of one i.
    pub(super) across: bool,
}

impl Frame<'_, '_> {
    fn place(&self, slot: SlotId) -> Place {
        self.plan.places[slot as usize]
    }

    /// How many elements there are.
    fn count(&self) -> usize {
        self.rows * self.lanes
    }

    /// Where a component begins, for this tile.
    fn pointer(&self, slot: SlotId, component: usize) -> *mut u8 {
        let place = self.place(slot);
        let component = if place.len == 1 { 0 } else { component };
        // Regions that hold a whole block of j are seen from the tile's first one on.
        let first = match (self.section, place.section) {
            (Per::Pair, Per::J) => self.first,
            (Per::Pair, Per::I) => self.i,
            (Per::Pair, Per::Pair) if place.region == GIVEN => {
                self.first * if self.across { 1 } else { self.lanes }
            }
            _ => 0,
        };
        let region = self.regions[place.region];
        region.wrapping_add(place.offset + component * place.stride + first * place.size)
    }

    /// A slot as the loops over rows see it, from a component on.
    fn rows_of(&self, slot: SlotId, component: usize) -> Rows {
        let place = self.place(slot);
        let (row, lanes) = match (self.section, place.section) {
            (Per::Pair, Per::Pair) => (self.lanes, true),
            (Per::Pair, Per::I) => (0, !self.across),
            (Per::Pair, Per::J) => (!self.across as usize, self.across),
            (_, Per::Once) => (0, self.section == Per::Once),
            _ => (0, true),
        };
        let base = self.pointer(slot, component).cast_const();
        let component = if place.len == 1 { 0 } else { place.stride };
        Rows { base, row, component, lanes }
    }

    /// Whether a slot lies as kernels want it.
    fn is_contiguous(&self, slot: SlotId) -> bool {
        let rows = self.rows_of(slot, 0);
        rows.lanes && (self.rows == 1 || rows.row == self.lanes)
    }

    /// A component as contiguous numbers: where it lies, or written out in a buffer.
    fn wide(&self, slot: SlotId, component: usize, buffer: usize) -> *const u8 {
        let rows = self.rows_of(slot, component);
        if self.is_contiguous(slot) {
            return rows.base;
        }
        let (size, to) = (self.place(slot).size, self.buffer(buffer));
        let step = (rows.row as isize, rows.lanes as isize);
        // SAFETY: a buffer has room for all elements; the rows are inside the slot's place.
        unsafe {
            moves::block(
                size,
                (self.rows, self.lanes),
                (to, (self.lanes as isize, 1)),
                (rows.base, step),
            );
        }
        to
    }

    fn buffer(&self, k: usize) -> *mut u8 {
        self.buffers.wrapping_add(k * self.buffer)
    }

    /// A component of a slot for the fold, rows of lanes. What is not computed for every pair is
    /// written out in a buffer, which the next call with the same buffer overwrites.
    pub(super) fn folded(&self, slot: SlotId, component: usize, buffer: usize) -> *const u8 {
        self.wide(slot, component, buffer)
    }

    /// Runs all steps of the section.
    pub(super) fn run(&self) -> Result<()> {
        for (slot, how, step) in self.plan.steps(self.section) {
            match how {
                How::Skip => {}
                How::Distance(a, b) => {
                    let len = self.place(a).len.max(self.place(b).len) as u32;
                    let terms: SmallVec<[(u32, u32); 8]> = (0..len).map(|c| (c, c)).collect();
                    self.dot(slot, 0, (a, b), &terms, Terms::Squares);
                }
                How::ProductOnto(a, b, onto) => {
                    let terms: SmallVec<[(u32, u32); 8]> =
                        (0..self.place(a).len as u32).map(|c| (c, c)).collect();
                    self.copy(slot, 0, onto, 0);
                    self.dot(slot, 0, (a, b), &terms, Terms::Onto);
                }
                How::Run => self.step(slot, step)?,
            }
        }
        Ok(())
    }

    fn step(&self, slot: SlotId, step: &Step) -> Result<()> {
        let x = &step.operands[..];
        let place = self.place(slot);
        match &step.action {
            Action::Apply(id) => self.apply(slot, *id, x)?,
            Action::Select => {
                let kernel = moves::select(place.size, self.isa);
                self.call(slot, kernel, x);
            }
            Action::Cast => self.cast(slot, x[0], step.slot.dtype),
            Action::Constant(value) => {
                let to = (self.pointer(slot, 0), 1);
                // SAFETY: the place of a slot that is computed once has room for its components.
                unsafe { moves::fill(place.size, place.len, to, value.bytes().as_ptr()) };
            }
            Action::Extract(start) => {
                (0..place.len).for_each(|c| self.copy(slot, c, x[0], *start as usize + c));
            }
            Action::Concat => {
                let mut at = 0;
                for &operand in x {
                    for c in 0..self.place(operand).len {
                        self.copy(slot, at, operand, c);
                        at += 1;
                    }
                }
            }
            Action::Place(start) => {
                let (start, zero) = (*start as usize, [0u8; 16]);
                for c in 0..place.len {
                    match c.checked_sub(start).filter(|c| *c < self.place(x[0]).len) {
                        Some(from) => self.copy(slot, c, x[0], from),
                        // SAFETY: a component has room for all elements; all bits zero is zero.
                        None => unsafe {
                            let to = (self.pointer(slot, c), 1);
                            moves::fill(place.size, self.count(), to, zero.as_ptr());
                        },
                    }
                }
            }
            Action::Fold(fold) => self.fold(slot, *fold, x[0])?,
            Action::Dot => {
                let terms: SmallVec<[(u32, u32); 8]> =
                    (0..self.place(x[0]).len as u32).map(|c| (c, c)).collect();
                self.dot(slot, 0, (x[0], x[1]), &terms, Terms::Products);
            }
            Action::Contract(contraction) => {
                let (left, right) = terms_of(contraction);
                let mut at = 0;
                for &l in &left.0 {
                    for &r in &right.0 {
                        let summed = left.1.iter().zip(&right.1);
                        let terms: SmallVec<[(u32, u32); 8]> =
                            summed.map(|(a, b)| (l + a, r + b)).collect();
                        self.dot(slot, at, (x[0], x[1]), &terms, Terms::Products);
                        at += 1;
                    }
                }
            }
        }
        Ok(())
    }

    fn apply(&self, slot: SlotId, id: Id, x: &[SlotId]) -> Result<()> {
        let dtype = self.plan.tape.slot(x[0]).dtype;
        let real = matches!(dtype, DType::Float32 | DType::Float64);
        if real && is_arithmetic(id) && !x.iter().all(|&operand| self.is_contiguous(operand)) {
            for c in 0..self.place(slot).len {
                let (a, b) = (self.rows_of(x[0], c), self.rows_of(x[1], c));
                let (of, out) = ((self.rows, self.lanes), self.pointer(slot, c));
                // SAFETY: places and rows are those of the plan, and a result has a place of its
                // own.
                unsafe {
                    match dtype {
                        DType::Float32 => arithmetic::<f32>(self.isa, id, of, out, a, b),
                        _ => arithmetic::<f64>(self.isa, id, of, out, a, b),
                    }
                }
            }
            return Ok(());
        }
        let Some(kernel) = kernels::kernel(id, dtype) else {
            return Err(Error::dtype(id.row().name, format!("no kernel for {dtype} on the cpu")));
        };
        self.call(slot, kernel, x);
        Ok(())
    }

    /// Runs a kernel for every component, or once for all where they follow each other.
    fn call(&self, slot: SlotId, kernel: kernels::Kernel, x: &[SlotId]) {
        let (place, n) = (self.place(slot), self.count());
        let follows = |slot: SlotId| {
            let of = self.place(slot);
            of.len == place.len && of.stride == n * of.size && self.is_contiguous(slot)
        };
        let at_once = place.stride == n * place.size && x.iter().all(|&operand| follows(operand));
        let (calls, n) = if at_once { (1, n * place.len) } else { (place.len, n) };
        for c in 0..calls {
            let operand = |k: usize| self.wide(x[k.min(x.len() - 1)], c, k);
            let out = self.pointer(slot, c);
            let (a, b, c) = (operand(0), operand(1), operand(2));
            // SAFETY: the ISA is this process's; all operands have `n` elements, in their places or
            // in a buffer each; a result has a place of its own.
            unsafe { kernel(n, out, a, b, c) };
        }
    }

    fn cast(&self, slot: SlotId, from: SlotId, dtype: DType) {
        let chain = cast::chain(self.plan.tape.slot(from).dtype, dtype);
        for c in 0..self.place(slot).len {
            if chain.is_empty() {
                self.copy(slot, c, from, c);
            }
            let mut at = self.wide(from, c, 0);
            for (k, (kernel, _)) in chain.iter().enumerate() {
                let last = k + 1 == chain.len();
                let to = if last { self.pointer(slot, c) } else { self.buffer(1 + k % 3) };
                // SAFETY: buffers and places have room for all elements, and are apart.
                unsafe { kernel(self.count(), to, at, at, at) };
                at = to.cast_const();
            }
        }
    }

    fn copy(&self, slot: SlotId, component: usize, from: SlotId, of: usize) {
        let (size, n) = (self.place(slot).size, self.count());
        let to = (self.pointer(slot, component), 1);
        // SAFETY: a component has room for all elements, and places are apart.
        unsafe { moves::line(size, n, to, (self.wide(from, of, 0), 1)) };
    }

    fn dot(
        &self,
        slot: SlotId,
        component: usize,
        (a, b): (SlotId, SlotId),
        terms: &[(u32, u32)],
        of: Terms,
    ) {
        let out = self.pointer(slot, component);
        let (rows, lanes) = (self.rows, self.lanes);
        let (a, b) = (self.rows_of(a, 0), self.rows_of(b, 0));
        match self.plan.tape.slot(slot).dtype {
            DType::Float64 => {
                let out = out.cast::<f64>();
                with_isa(self.isa, Dot { rows, lanes, out, a, b, terms, of });
            }
            _ => {
                let out = out.cast::<f32>();
                with_isa(self.isa, Dot { rows, lanes, out, a, b, terms, of });
            }
        }
    }

    fn fold(&self, slot: SlotId, fold: FoldId, from: SlotId) -> Result<()> {
        match self.plan.tape.slot(from).dtype {
            DType::Float32 => self.fold_of::<f32>(slot, fold, from),
            DType::Float64 => self.fold_of::<f64>(slot, fold, from),
            dtype => Err(unsupported(fold, dtype)),
        }
    }

    /// A reduction along the components, lane by lane.
    fn fold_of<T: Accumulator>(&self, slot: SlotId, fold: FoldId, from: SlotId) -> Result<()> {
        let n = self.count();
        let len = self.place(from).len;
        // SAFETY: components have `n` numbers of type `T` each, which nobody writes meanwhile: the
        // result has a place of its own.
        let component =
            |c: usize| unsafe { std::slice::from_raw_parts(self.wide(from, c, 0).cast::<T>(), n) };
        let out = self.pointer(slot, 0);
        match fold {
            FoldId::Sum | FoldId::Max | FoldId::Min => {
                // SAFETY: the result's place has room for `n` numbers of type `T`.
                let out = unsafe { std::slice::from_raw_parts_mut(out.cast::<T>(), n) };
                out.copy_from_slice(component(0));
                for c in 1..len {
                    let pairs = out.iter_mut().zip(component(c));
                    match fold {
                        FoldId::Sum => pairs.for_each(|(held, x)| *held = *held + *x),
                        FoldId::Max => pairs.for_each(|(held, x)| {
                            if *x > *held || x.is_nan() && !held.is_nan() {
                                *held = *x;
                            }
                        }),
                        _ => pairs.for_each(|(held, x)| {
                            if *x < *held || x.is_nan() && !held.is_nan() {
                                *held = *x;
                            }
                        }),
                    }
                }
            }
            FoldId::ArgMax | FoldId::ArgMin => {
                // SAFETY: the result's place has room for `n` indices.
                let out = unsafe { std::slice::from_raw_parts_mut(out.cast::<i64>(), n) };
                out.fill(0);
                for c in 1..len {
                    let x = component(c);
                    for (lane, at) in out.iter_mut().enumerate() {
                        let held = component(*at as usize)[lane];
                        let better =
                            if fold == FoldId::ArgMax { x[lane] > held } else { x[lane] < held };
                        if better || x[lane].is_nan() && !held.is_nan() {
                            *at = c as i64;
                        }
                    }
                }
            }
            other => return Err(unsupported(other, T::DTYPE)),
        }
        Ok(())
    }
}

fn unsupported(fold: FoldId, dtype: DType) -> Error {
    Error::unsupported(fold.row().name, format!("not along vectors of {dtype} on the cpu"))
}

/// Positions of the free and of the summed indices of an operand.
type Positions = (Vec<u32>, Vec<u32>);

/// Positions in both operands, in the order in which products are summed.
pub(super) fn terms_of(contraction: &Contraction) -> (Positions, Positions) {
    let of = |shape: &[u32], over: Vec<usize>| {
        let stride = |axis: usize| shape[axis + 1..].iter().product::<u32>();
        let positions = |axes: &[usize]| {
            axes.iter().fold(vec![0], |bases: Vec<u32>, &axis| {
                let along = |base: u32| (0..shape[axis]).map(move |i| base + i * stride(axis));
                bases.into_iter().flat_map(along).collect()
            })
        };
        let free: Vec<usize> = (0..shape.len()).filter(|axis| !over.contains(axis)).collect();
        (positions(&free), positions(&over))
    };
    (
        of(&contraction.left, contraction.over.iter().map(|&(l, _)| l as usize).collect()),
        of(&contraction.right, contraction.over.iter().map(|&(_, r)| r as usize).collect()),
    )
}
