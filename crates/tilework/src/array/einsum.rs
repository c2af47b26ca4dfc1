//! Sums of products by Einstein's notation.
//!
//! Two operands at a time become one, those first whose product is smallest beside them: labels that
//! nobody needs any more are summed, labels that both have become batches or the inner axis of a matrix
//! product.

use tilework_error::{Error, Result, tuple};

use super::Array;
use super::operands::{Arg, common_device, result_type};

/// A letter, or, from 256 on, an axis that an ellipsis stands for, counted from the last.
type Label = u16;

/// An array whose axes have labels, all different.
struct Labelled {
    array: Array,
    labels: Vec<Label>,
}

/// Sum of products of arrays whose axes are named by letters, as NumPy's `einsum`: `"ij,jk->ik"`.
///
/// A letter that is not in the result is summed over; without `->`, those that occur once are in
/// the result in alphabetical order. `...` stands for axes that broadcast.
///
/// ```
/// use tilework::{Array, einsum};
/// let a = Array::from_nested(&[[1.0f64, 2.0], [3.0, 4.0]])?;
/// assert_eq!(einsum("ii", &[&a])?.item::<f64>()?, 5.0);
/// assert_eq!(einsum("ij,kj->ik", &[&a, &a])?.to_vec::<f64>()?, [5.0, 11.0, 11.0, 25.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
pub fn einsum(subscripts: &str, operands: &[&Array]) -> Result<Array> {
    let args: Vec<Arg<'_>> = operands.iter().map(|array| Arg::Array(array)).collect();
    let device = common_device("einsum", &args)?;
    let dtype = result_type(&args).map_err(|error| error.of("einsum"))?;
    let _scope = device.scope();
    let text: String = subscripts.chars().filter(|c| !c.is_whitespace()).collect();
    let (inputs, output) = match text.split_once("->") {
        Some((inputs, output)) => (inputs, Some(output)),
        None => (&text[..], None),
    };
    let terms: Vec<&str> = inputs.split(',').collect();
    if terms.len() != operands.len() {
        let message =
            format!("{subscripts:?} names {} operands, not {}", terms.len(), operands.len());
        return Err(Error::value("einsum", message));
    }
    let mut parsed = Vec::new();
    for (term, array) in terms.iter().zip(operands) {
        let labels = labels_of(subscripts, term, Some(array.ndim()))?;
        if labels.len() != array.ndim() {
            let shape = tuple(array.shape());
            let message = format!("{term:?} names {} axes of shape {shape}", labels.len());
            return Err(Error::value("einsum", message));
        }
        parsed.push(labels);
    }
    let output = result_labels(subscripts, output, &parsed)?;
    let lengths = |label: Label| -> usize {
        let axes = parsed.iter().zip(operands).flat_map(|(labels, array)| {
            labels.iter().zip(array.shape()).filter(move |(other, _)| **other == label)
        });
        axes.map(|(_, &n)| n).find(|&n| n != 1).unwrap_or(1)
    };
    let mut queue = Vec::new();
    for (labels, array) in parsed.iter().zip(operands) {
        queue.push(simple(&array.to_dtype(dtype)?, labels, &lengths)?);
    }
    while let Some((first, second)) = next_pair(&queue, &output) {
        let (b, a) = (queue.remove(second), queue.remove(first));
        let needed = |label: Label| {
            output.contains(&label) || queue.iter().any(|later| later.labels.contains(&label))
        };
        let product = contract(a, b, &needed)?;
        queue.insert(first, product);
    }
    let Some(product) = queue.pop() else {
        return Err(Error::value("einsum", "there is no operand"));
    };
    let product = summed(product, &|label| output.contains(&label))?;
    let order: Vec<isize> = output
        .iter()
        .filter_map(|label| product.labels.iter().position(|other| other == label))
        .map(|axis| axis as isize)
        .collect();
    product.array.permute(&order)
}

const ELLIPSIS: &str = "an ellipsis is three points, once in a term";

/// The labels of one term; `ndim` says how many axes an ellipsis stands for.
fn labels_of(subscripts: &str, term: &str, ndim: Option<usize>) -> Result<Vec<Label>> {
    let wrong = |why: &str| Error::value("einsum", format!("{subscripts:?}: {why}"));
    let (before, after) = match term.split_once("...") {
        Some((before, after)) => (before, Some(after)),
        None => (term, None),
    };
    let letters = |part: &str| -> Result<Vec<Label>> {
        part.chars()
            .map(|c| match c {
                'a'..='z' | 'A'..='Z' => Ok(c as Label),
                '.' => Err(wrong(ELLIPSIS)),
                _ => Err(wrong(&format!("{c:?} is not a letter"))),
            })
            .collect()
    };
    let mut labels = letters(before)?;
    if let Some(after) = after {
        let after = letters(after)?;
        let spread = ndim.map(|ndim| ndim.checked_sub(labels.len() + after.len()));
        let spread = spread.unwrap_or(Some(0)).ok_or_else(|| wrong("too many letters"))?;
        // Counted from the last axis, so that shorter ones broadcast.
        labels.extend((0..spread as Label).rev().map(|axis| 256 + axis));
        labels.extend(after);
    }
    Ok(labels)
}

/// The labels of the result.
fn result_labels(
    subscripts: &str,
    output: Option<&str>,
    terms: &[Vec<Label>],
) -> Result<Vec<Label>> {
    let all: Vec<Label> = terms.iter().flatten().copied().collect();
    let mut spread: Vec<Label> = all.iter().copied().filter(|&label| label >= 256).collect();
    spread.sort_unstable_by(|a, b| b.cmp(a));
    spread.dedup();
    let Some(output) = output else {
        let once = |label: &Label| all.iter().filter(|other| *other == label).count() == 1;
        let mut letters: Vec<Label> =
            all.iter().copied().filter(|label| *label < 256 && once(label)).collect();
        letters.sort_unstable();
        return Ok([spread, letters].concat());
    };
    let plain = output.replacen("...", "", 1);
    let wrong = |why: &str| Err(Error::value("einsum", format!("{subscripts:?}: {why}")));
    if plain.contains('.') {
        return wrong(ELLIPSIS);
    }
    let letters = labels_of(subscripts, &plain, None)?;
    for (k, label) in letters.iter().enumerate() {
        if letters[..k].contains(label) {
            return wrong("a letter is twice in the result");
        }
        if !all.contains(label) {
            return wrong("a letter of the result is in no operand");
        }
    }
    let Some(at) = output.find("...") else {
        // Axes of an ellipsis that the result does not name are summed over, as letters are.
        return Ok(letters);
    };
    Ok([&letters[..at], &spread, &letters[at..]].concat())
}

/// An operand with every label once, and without axes of length 1 that broadcast.
fn simple(array: &Array, labels: &[Label], lengths: &dyn Fn(Label) -> usize) -> Result<Labelled> {
    let (mut array, mut labels) = (array.clone(), labels.to_vec());
    let mut axis = 0;
    while axis < labels.len() {
        let (length, wanted) = (array.shape()[axis], lengths(labels[axis]));
        if length != wanted && length != 1 {
            let message = format!("axes of lengths {wanted} and {length} have one letter");
            return Err(Error::shape("einsum", message));
        }
        if length == 1 && wanted != 1 {
            array = array.squeeze(Some(&[axis as isize]))?;
            labels.remove(axis);
            continue;
        }
        if let Some(twin) = labels[..axis].iter().position(|label| *label == labels[axis]) {
            // The diagonal becomes the last axis, with the label of both.
            array = array.diagonal(0, twin as isize, axis as isize)?;
            let label = labels.remove(axis);
            labels.remove(twin);
            labels.push(label);
            axis = 0;
            continue;
        }
        axis += 1;
    }
    Ok(Labelled { array, labels })
}

/// Summed over the labels that are not wanted.
fn summed(from: Labelled, wanted: &dyn Fn(Label) -> bool) -> Result<Labelled> {
    let Labelled { array, labels } = from;
    let over: Vec<isize> =
        (0..labels.len()).filter(|&axis| !wanted(labels[axis])).map(|axis| axis as isize).collect();
    if over.is_empty() {
        return Ok(Labelled { array, labels });
    }
    let kept = labels.iter().copied().filter(|&label| wanted(label)).collect();
    Ok(Labelled { array: array.sum(&over[..])?.to_dtype(array.dtype())?, labels: kept })
}

/// Which two operands to multiply next: those whose product adds the fewest elements, and of these the
/// pair with the fewest multiplications. None if there are no two left.
fn next_pair(queue: &[Labelled], output: &[Label]) -> Option<(usize, usize)> {
    let pairs = (1..queue.len()).flat_map(|second| (0..second).map(move |first| (first, second)));
    pairs.min_by_key(|&(first, second)| {
        let (a, b) = (&queue[first], &queue[second]);
        let (mut made, mut work) = (1i128, 1i128);
        let new = |label: &Label| !a.labels.contains(label);
        let axes = |of: &Labelled| -> Vec<(Label, usize)> {
            of.labels.iter().copied().zip(of.array.shape().iter().copied()).collect()
        };
        for (label, n) in axes(a).into_iter().chain(axes(b).into_iter().filter(|(l, _)| new(l))) {
            let others = || (0..queue.len()).filter(|&k| k != first && k != second);
            let needed = output.contains(&label)
                || others().any(|other| queue[other].labels.contains(&label));
            made = made.saturating_mul(if needed { n as i128 } else { 1 });
            work = work.saturating_mul(n as i128);
        }
        (made.saturating_sub((a.array.len() + b.array.len()) as i128), work)
    })
}

/// The product of two, summed over labels that nobody needs any more.
fn contract(a: Labelled, b: Labelled, needed: &dyn Fn(Label) -> bool) -> Result<Labelled> {
    let b_labels = b.labels.clone();
    let a = summed(a, &|label| needed(label) || b_labels.contains(&label))?;
    let b = summed(b, &|label| needed(label) || a.labels.contains(&label))?;
    let shared = |label: &Label| a.labels.contains(label) && b.labels.contains(label);
    let pick = |labels: &[Label], wanted: &dyn Fn(&Label) -> bool| -> Vec<Label> {
        labels.iter().copied().filter(|label| wanted(label)).collect()
    };
    let batch = pick(&a.labels, &|label| shared(label) && needed(*label));
    let inner = pick(&a.labels, &|label| shared(label) && !needed(*label));
    let left = pick(&a.labels, &|label| !shared(label));
    let right = pick(&b.labels, &|label| !shared(label));
    let length = |from: &Labelled, label: &Label| -> usize {
        let axis = from.labels.iter().position(|other| other == label);
        axis.map_or(1, |axis| from.array.shape()[axis])
    };
    let volume = |from: &Labelled, labels: &[Label]| -> isize {
        labels.iter().map(|label| length(from, label)).product::<usize>() as isize
    };
    let matrix = |from: &Labelled, groups: [&[Label]; 3]| -> Result<Array> {
        let order: Vec<isize> = groups
            .concat()
            .iter()
            .filter_map(|label| from.labels.iter().position(|other| other == label))
            .map(|axis| axis as isize)
            .collect();
        from.array.permute(&order)?.reshape(&groups.map(|labels| volume(from, labels)))
    };
    let product =
        matrix(&a, [&batch, &left, &inner])?.matmul(&matrix(&b, [&batch, &inner, &right])?)?;
    let shape: Vec<isize> = batch
        .iter()
        .chain(&left)
        .map(|label| length(&a, label) as isize)
        .chain(right.iter().map(|label| length(&b, label) as isize))
        .collect();
    Ok(Labelled { array: product.reshape(&shape)?, labels: [batch, left, right].concat() })
}
