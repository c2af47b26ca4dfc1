//! The definition of every request, in obvious loops.
//!
//! Nothing here is clever or fast: other backends are compared with it, and whoever wants to know
//! what a request means reads it. All numbers are [`Scalar`]s; all arithmetic is the evaluators of
//! the tables.

#![forbid(unsafe_code)]

mod pairs;

use tilework_backend::{
    Backend, DeviceId, Gather, Indices, Map, Matmul, MatmulKernel, Nonzero, Operand, Properties,
    Random, Reduce, Request, Scan, Scatter, Search, Session, Sort, Storage, Target, ViewRef,
    try_room,
};
use tilework_error::{Error, Result};
use tilework_layout::{Layout, positions, resolve_index};
use tilework_ops::{DType, FoldId, Id, Scalar};

/// The reference backend.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reference;

impl Reference {
    /// The name of its device.
    pub const ID: DeviceId = DeviceId { backend: "reference", index: None };
}

impl Backend for Reference {
    fn id(&self) -> DeviceId {
        Reference::ID
    }

    fn properties(&self) -> Properties {
        vec![("kind", "the definition of every operation, one element at a time".into())]
    }

    fn allocate(&self, bytes: usize, zeroed: bool) -> Result<Storage> {
        Storage::host(Reference::ID, bytes, zeroed)
    }

    fn run(&self, session: &Session<'_>, request: &Request<'_>) -> Result<()> {
        match request {
            Request::Map(request) => map(session, request),
            Request::Reduce(request) => reduce(session, request),
            Request::Scan(request) => scan(session, request),
            Request::Matmul(request) => matmul(session, request),
            Request::Gather(request) => gather(session, request),
            Request::Scatter(request) => scatter(session, request),
            Request::Nonzero(request) => nonzero(session, request),
            Request::Sort(request) => sort(session, request),
            Request::Search(request) => search(session, request),
            Request::Random(request) => random(session, request),
            Request::PairReduce(request) => pairs::run(session, request),
        }
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }
}

fn map(session: &Session<'_>, request: &Map<'_>) -> Result<()> {
    let mut inputs: Vec<Box<dyn Iterator<Item = Scalar> + '_>> = Vec::new();
    for operand in request.inputs {
        inputs.push(match *operand {
            Operand::Scalar(value) => Box::new(std::iter::repeat(value)),
            Operand::View(view) => {
                Box::new(positions(view.layout()).map(move |p| view.load(session, p)))
            }
        });
    }
    for position in positions(request.output.layout()) {
        let numbers: Vec<Scalar> = inputs.iter_mut().map_while(Iterator::next).collect();
        let slots: Vec<&[Scalar]> = numbers.iter().map(std::slice::from_ref).collect();
        let result = request.tape.evaluate(&slots)?[0][0];
        request.output.store(session, position, result);
    }
    Ok(())
}

fn reduce(session: &Session<'_>, request: &Reduce<'_>) -> Result<()> {
    let dtype = accumulates(session, request.fold, &request.input)?;
    for (kept, position) in indices(request.output.layout()).zip(positions(request.output.layout()))
    {
        let group = group(request.input.layout(), request.axes, &kept)?;
        let numbers = load_all(session, request.fold.row().name, &request.input, &group)?;
        let result = request.fold.evaluate(&numbers, dtype, request.correction);
        request.output.store(session, position, result.cast(request.output.dtype()));
    }
    Ok(())
}

fn scan(session: &Session<'_>, request: &Scan<'_>) -> Result<()> {
    let dtype = accumulates(session, request.fold, &request.input)?;
    for (from, to) in rows(&request.input, &request.output, request.axis)? {
        let numbers = load_all(session, request.fold.row().name, &request.input, &from)?;
        let running = request.fold.running(&numbers, dtype);
        for (position, value) in positions(&to).zip(running) {
            request.output.store(session, position, value.cast(request.output.dtype()));
        }
    }
    Ok(())
}

fn matmul(session: &Session<'_>, request: &Matmul<'_>) -> Result<()> {
    if request.kernel == MatmulKernel::Tiled {
        return tiled_matmul(session, request);
    }
    let (a, b, c) = (request.a.layout(), request.b.layout(), request.output.layout());
    let axes = c.ndim();
    let (inner, dtype) = (a.shape()[axes - 1], request.a.dtype());
    let wide = dtype.sums_in();
    for (index, position) in indices(c).zip(positions(c)) {
        let (batch, row, column) = (&index[..axes - 2], index[axes - 2], index[axes - 1]);
        let mut sum = Scalar::zero(wide);
        for k in 0..inner {
            let left = request.a.load(session, a.position(&[batch, &[row, k]].concat()));
            let right = request.b.load(session, b.position(&[batch, &[k, column]].concat()));
            sum = multiply_add(session, left.cast(wide), right.cast(wide), sum)?;
        }
        request.output.store(session, position, sum.cast(dtype));
    }
    Ok(())
}

/// An array of tiles is a matrix in another order: [rows][columns][t][t] read as [rows][t][columns][t].
fn tiled_matmul(session: &Session<'_>, request: &Matmul<'_>) -> Result<()> {
    let (a, b, c) = (request.a.layout(), request.b.layout(), request.output.layout());
    let (inner, t, dtype) = (a.shape()[1], c.shape()[3], request.a.dtype());
    for (index, position) in indices(c).zip(positions(c)) {
        let [row, column, i, j] = [index[0], index[1], index[2], index[3]];
        let wide = dtype.sums_in();
        let mut sum = Scalar::zero(wide);
        for k in 0..inner * t {
            let left = request.a.load(session, a.position(&[row, k / t, i, k % t]));
            let right = request.b.load(session, b.position(&[k / t, column, k % t, j]));
            sum = multiply_add(session, left.cast(wide), right.cast(wide), sum)?;
        }
        request.output.store(session, position, sum.cast(dtype));
    }
    Ok(())
}

/// What a fold of these elements is computed in.
fn accumulates(session: &Session<'_>, fold: FoldId, input: &ViewRef<'_>) -> Result<DType> {
    let dtype = input.dtype();
    fold.row().accumulates(dtype).ok_or_else(|| no_meaning(session, dtype))
}

/// The error of a request that should not have been made.
fn no_meaning(session: &Session<'_>, dtype: DType) -> Error {
    Error::unsupported(session.operation(), format!("{dtype} has no meaning here"))
}

fn multiply_add(session: &Session<'_>, a: Scalar, b: Scalar, sum: Scalar) -> Result<Scalar> {
    let product = Id::Multiply.evaluate(&[a, b]);
    let sum = product.and_then(|product| Id::Add.evaluate(&[product, sum]));
    sum.ok_or_else(|| no_meaning(session, a.dtype()))
}

fn gather(session: &Session<'_>, request: &Gather<'_>) -> Result<()> {
    let source = request.source.layout();
    for (index, position) in
        indices(request.output.layout()).zip(positions(request.output.layout()))
    {
        let from = source.position(&resolve(session, &request.indices, source, &index)?);
        request.output.store(session, position, request.source.load(session, from));
    }
    Ok(())
}

fn scatter(session: &Session<'_>, request: &Scatter<'_>) -> Result<()> {
    let (source, target) = (request.source.layout(), request.target.layout());
    let mut places = try_room("scatter", source.len())?;
    for index in indices(source) {
        places.push(target.position(&resolve(session, &request.indices, target, &index)?));
    }
    for (to, position) in places.into_iter().zip(positions(source)) {
        request.target.store(session, to, request.source.load(session, position));
    }
    Ok(())
}

/// The index into `indexed` that arrays make of an index of their shape followed by further axes.
fn resolve(
    session: &Session<'_>,
    indices: &Indices<'_>,
    indexed: &Layout,
    index: &[usize],
) -> Result<Vec<usize>> {
    let (own, rest) = index.split_at(indices.arrays[0].layout().ndim());
    let mut picked = Vec::new();
    for (k, (view, &size)) in indices.arrays.iter().zip(indexed.shape()).enumerate() {
        let index: i64 = view.load(session, view.layout().position(own)).get();
        let place = resolve_index(index, size);
        picked.push(place.ok_or_else(|| indices.outside(session, k, index, indexed))?);
    }
    picked.extend_from_slice(rest);
    Ok(picked)
}

fn nonzero(session: &Session<'_>, request: &Nonzero<'_>) -> Result<()> {
    let input = request.input.layout();
    let is_true =
        |(_, position): &(Vec<usize>, usize)| request.input.load(session, *position).is_true();
    let found = indices(input).zip(positions(input)).filter(is_true).flat_map(|(index, _)| index);
    for (position, index) in positions(request.output.layout()).zip(found) {
        request.output.store(session, position, Scalar::new(index as i64));
    }
    Ok(())
}

fn sort(session: &Session<'_>, request: &Sort<'_>) -> Result<()> {
    for (from, to) in rows(&request.input, &request.output, request.axis)? {
        let numbers = load_all(session, "sort", &request.input, &from)?;
        let mut order = try_room("sort", numbers.len())?;
        order.extend(0..numbers.len());
        order.sort_by(|&a, &b| numbers[a].sort_order(&numbers[b], request.descending));
        for (position, k) in positions(&to).zip(order) {
            let value = if request.indices { Scalar::new(k as i64) } else { numbers[k] };
            request.output.store(session, position, value);
        }
    }
    Ok(())
}

fn search(session: &Session<'_>, request: &Search<'_>) -> Result<()> {
    let sorted = load_all(session, "searchsorted", &request.sorted, request.sorted.layout())?;
    let values = load_all(session, "searchsorted", &request.values, request.values.layout())?;
    for (position, value) in positions(request.output.layout()).zip(values) {
        let before = |x: &&Scalar| match x.sort_order(&value, false) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Equal => request.right,
            std::cmp::Ordering::Greater => false,
        };
        let place = sorted.iter().take_while(before).count();
        request.output.store(session, position, Scalar::new(place as i64));
    }
    Ok(())
}

fn random(session: &Session<'_>, request: &Random<'_>) -> Result<()> {
    for (k, position) in positions(request.output.layout()).enumerate() {
        let number = request.counter.wrapping_add(k as u64);
        let value = request.distribution.evaluate(request.key, number, request.output.dtype());
        request.output.store(session, position, value);
    }
    Ok(())
}

/// All indices of a layout, in row-major order.
fn indices(layout: &Layout) -> impl Iterator<Item = Vec<usize>> + use<> {
    let shape = layout.shape().to_vec();
    (0..layout.len()).map(move |k| {
        let mut index = vec![0; shape.len()];
        let mut rest = k;
        for (place, &size) in index.iter_mut().zip(&shape).rev() {
            *place = rest % size;
            rest /= size;
        }
        index
    })
}

/// The part of a layout whose indices on all axes but `axes` are `kept`.
fn group(layout: &Layout, axes: &[usize], kept: &[usize]) -> Result<Layout> {
    let others = (0..layout.ndim()).filter(|axis| !axes.contains(axis));
    let mut group = layout.clone();
    for (axis, &index) in others.zip(kept).collect::<Vec<_>>().into_iter().rev() {
        group = group.index_axis(axis.cast_signed(), index)?;
    }
    Ok(group)
}

/// The rows of input and output along an axis, in step.
fn rows(input: &ViewRef<'_>, output: &Target<'_>, axis: usize) -> Result<Vec<(Layout, Layout)>> {
    let across = match input.layout().shape()[axis] {
        0 => return Ok(Vec::new()),
        _ => input.layout().index_axis(axis.cast_signed(), 0)?,
    };
    indices(&across)
        .map(|index| {
            Ok((group(input.layout(), &[axis], &index)?, group(output.layout(), &[axis], &index)?))
        })
        .collect()
}

/// All numbers of a part of a view: an error where they are more than memory holds, as those of a
/// broadcast array may be.
fn load_all(
    session: &Session<'_>,
    operation: &str,
    view: &ViewRef<'_>,
    layout: &Layout,
) -> Result<Vec<Scalar>> {
    let mut numbers = try_room(operation, layout.len())?;
    numbers.extend(positions(layout).map(|position| view.load(session, position)));
    Ok(numbers)
}
