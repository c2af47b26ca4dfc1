//! Which name a misspelt one was probably meant to be.

/// The nearest of these names as the end of a sentence, if one is near enough.
///
/// The first of equally near names wins, so that messages do not change from run to run.
pub(crate) fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    // Names that are absurdly long are no misspelling, and distances cost their product.
    if name.len() > 64 {
        return None;
    }
    let lower = name.to_lowercase();
    let mut best: Option<(usize, &str)> = None;
    for candidate in names {
        let distance = distance(&lower, &candidate.to_lowercase());
        if best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    let near = 1 + name.len() / 4;
    best.filter(|(distance, _)| *distance <= near)
        .map(|(_, name)| format!("; did you mean `{name}`?"))
}

/// How many letters must be inserted, removed, replaced or exchanged with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0usize; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_not() {
        let names = ["Exp", "SqDist", "Sqrt", "Concat"];
        let of = |name| nearest(name, names.into_iter());
        assert_eq!(of("exp").as_deref(), Some("; did you mean `Exp`?"));
        assert_eq!(of("SqDits").as_deref(), Some("; did you mean `SqDist`?"));
        assert_eq!(of("Elephant"), None);
        assert_eq!(distance("abcd", "acbd"), 1);
    }
}
