//! The nearest valid name to a mistyped one.

/// The candidate closest to `word` by case-insensitive Damerau-Levenshtein distance, if reasonably close: one
/// slip for every three characters, four at most. Ties go to the candidate whose case fits better, then to the
/// earlier one.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let exact: Vec<char> = word.chars().take(MAX_LENGTH + 1).collect();
    let folded = fold(&exact);
    candidates
        .into_iter()
        .filter_map(|name| {
            let other: Vec<char> = name.chars().take(MAX_LENGTH + 1).collect();
            let longest = exact.len().max(other.len());
            let allowed = (longest / 3).min(4);
            if longest > MAX_LENGTH || exact.len().abs_diff(other.len()) > allowed {
                return None;
            }
            let slips = distance(&folded, &fold(&other));
            (slips <= allowed).then(|| ((slips, distance(&exact, &other)), name))
        })
        .min_by_key(|(rank, _)| *rank)
        .map(|(_, name)| name)
}

/// Words longer than this are no misspelt names.
const MAX_LENGTH: usize = 64;

/// Lower case, character by character.
fn fold(word: &[char]) -> Vec<char> {
    word.iter().flat_map(|c| c.to_lowercase()).collect()
}

/// Edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, &x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &y) in b.iter().enumerate() {
            let mut best = (last[j] + usize::from(x != y)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && x == b[j - 1] && a[i - 1] == y {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_edits() {
        let d = |a: &str, b: &str| distance(&a.chars().collect::<Vec<_>>(), &b.chars().collect::<Vec<_>>());
        assert_eq!(d("", ""), 0);
        assert_eq!(d("", "abc"), 3);
        assert_eq!(d("abc", ""), 3);
        assert_eq!(d("kitten", "sitting"), 3);
        assert_eq!(d("alpah", "alpha"), 1);
        assert_eq!(d("ab", "ba"), 1);
        assert_eq!(d("ca", "abc"), 3);
    }

    #[test]
    fn finds_the_closest_name() {
        assert_eq!(nearest("alpah", ["beta", "alpha", "T"]), Some("alpha"));
        assert_eq!(nearest("gmn", ["mean", "gmm"]), Some("gmm"));
        assert_eq!(nearest("variance-floor", ["variance_floor"]), Some("variance_floor"));
        assert_eq!(nearest("Größe", ["grösse", "x"]), Some("grösse"));
    }

    #[test]
    fn short_names_differ_only_in_case() {
        assert_eq!(nearest("b", ["R", "B"]), Some("B"));
        assert_eq!(nearest("T", ["t", "T"]), Some("T"));
        assert_eq!(nearest("c", ["R", "B"]), None);
        assert_eq!(nearest("", ["R"]), None);
    }

    #[test]
    fn far_names_are_not_offered() {
        assert_eq!(nearest("colour", ["alpha", "sampler"]), None);
        assert_eq!(nearest(&"x".repeat(1 << 20), ["x", "xx"]), None);
    }
}
