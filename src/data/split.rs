//! Random train/test split, anew for each repeat; and folds.

use rand::seq::SliceRandom;

use super::design::Groups;
use crate::rng::Rng;

/// Row numbers of the training and the test part: ⌈share · n⌉ random rows for testing, at least one on each side, both
/// parts in the order of the file. With `classes`, each class is split in these shares, as nearly as whole rows allow.
pub fn split(n: usize, classes: Option<&[f64]>, share: f64, rng: &mut Rng) -> (Vec<usize>, Vec<usize>) {
    let n_test = ((share * n as f64).ceil() as usize).clamp(1.min(n), n.saturating_sub(1).max(1)).min(n);
    let mut test = match classes {
        None => {
            let mut order: Vec<usize> = (0..n).collect();
            order.shuffle(rng);
            order.truncate(n_test);
            order
        }
        Some(classes) => stratified(classes, n_test, rng),
    };
    test.sort_unstable();
    let mut is_test = vec![false; n];
    test.iter().for_each(|&i| is_test[i] = true);
    ((0..n).filter(|&i| !is_test[i]).collect(), test)
}

/// As [`split`] splits rows, clusters are split whole: ⌈share · G⌉ of the G clusters are for testing.
pub fn split_clusters(clusters: &Groups, share: f64, rng: &mut Rng) -> (Vec<usize>, Vec<usize>) {
    let (_, test) = split(clusters.count, None, share, rng);
    let mut is_test = vec![false; clusters.count];
    test.iter().for_each(|&k| is_test[k] = true);
    (0..clusters.of.len()).partition(|&i| !is_test[clusters.of[i]])
}

/// A response of so many values, or fewer, is one of classes, which folds share out.
const CLASSES: usize = 20;

/// The fold of every row, from 0: as many rows in each as can be, and of a response with few values as many of each value; with
/// clusters, as many clusters, which are kept whole. It depends on rows, responses and clusters alone, not on a model.
pub fn deal(
    n: usize,
    response: Option<&[f64]>,
    clusters: Option<&Groups>,
    folds: usize,
    rng: &mut Rng,
) -> Vec<usize> {
    if let Some(clusters) = clusters {
        let of_cluster = deal(clusters.count, None, None, folds, rng);
        return clusters.of.iter().map(|&k| of_cluster[k]).collect();
    }
    let mut values: Vec<f64> = response.unwrap_or_default().to_vec();
    values.sort_unstable_by(f64::total_cmp);
    values.dedup();
    let mut order: Vec<usize> = (0..n).collect();
    order.shuffle(rng);
    if let Some(y) = response.filter(|_| values.len() <= CLASSES) {
        // Value after value, and at random within each.
        order.sort_by(|&a, &b| y[a].total_cmp(&y[b]));
    }
    let mut fold = vec![0; n];
    order.iter().enumerate().for_each(|(place, &i)| fold[i] = place % folds);
    fold
}

/// `n_test` rows, shared out over the classes by largest remainders.
fn stratified(classes: &[f64], n_test: usize, rng: &mut Rng) -> Vec<usize> {
    let mut values: Vec<f64> = classes.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    values.dedup();
    let rows = |v: &f64| (0..classes.len()).filter(|&i| classes[i] == *v).collect::<Vec<usize>>();
    let mut groups: Vec<Vec<usize>> = values.iter().map(rows).collect();
    let exact: Vec<f64> =
        groups.iter().map(|g| n_test as f64 * g.len() as f64 / classes.len() as f64).collect();
    let mut sizes: Vec<usize> = exact.iter().map(|e| e.floor() as usize).collect();
    let mut by_remainder: Vec<usize> = (0..sizes.len()).collect();
    by_remainder.sort_by(|&a, &b| (exact[b] - exact[b].floor()).total_cmp(&(exact[a] - exact[a].floor())));
    let short = n_test - sizes.iter().sum::<usize>();
    by_remainder.iter().take(short).for_each(|&g| sizes[g] += 1);
    let mut test = Vec::new();
    for (group, size) in groups.iter_mut().zip(sizes) {
        group.shuffle(rng);
        test.extend(&group[..size]);
    }
    test
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Seed};

    #[test]
    fn a_split_keeps_every_row_once() {
        let rng = |seed| Seed(seed).stream(Purpose::Split, 0, 0);
        let (train, test) = split(101, None, 0.2, &mut rng(3));
        assert_eq!((train.len(), test.len()), (80, 21));
        let mut all: Vec<usize> = train.iter().chain(&test).copied().collect();
        all.sort_unstable();
        assert_eq!(all, (0..101).collect::<Vec<_>>());
        assert_ne!(test, split(101, None, 0.2, &mut rng(4)).1);
    }

    #[test]
    fn clusters_are_split_whole_and_single_rows_as_without_them() {
        let rng = || Seed(3).stream(Purpose::Split, 0, 0);
        let of_three = Groups::new((0..30).map(|i| i % 10));
        let (train, test) = split_clusters(&of_three, 0.25, &mut rng());
        assert_eq!((train.len(), test.len()), (21, 9));
        assert!(test.iter().all(|i| train.iter().all(|j| i % 10 != j % 10)));
        let single = Groups::new(0..101);
        assert_eq!(split_clusters(&single, 0.2, &mut rng()), split(101, None, 0.2, &mut rng()));
    }

    #[test]
    fn folds_share_out_rows_classes_and_clusters() {
        let rng = |seed| Seed(seed).stream(Purpose::Split, 1, 0);
        let counts = |of: &mut dyn Iterator<Item = usize>| {
            let mut counts = vec![0; 5];
            of.for_each(|k| counts[k] += 1);
            counts
        };
        let y: Vec<f64> = (0..103).map(|i| f64::from(i % 7 == 0)).collect();
        let fold = deal(103, Some(&y), None, 5, &mut rng(3));
        assert_eq!(counts(&mut fold.iter().copied()), [21, 21, 21, 20, 20]);
        // 15 ones: three in each.
        assert_eq!(counts(&mut (0..103).filter(|&i| y[i] == 1.0).map(|i| fold[i])), [3; 5]);
        assert_eq!(fold, deal(103, Some(&y), None, 5, &mut rng(3)));
        assert_ne!(fold, deal(103, Some(&y), None, 5, &mut rng(4)));
        let clusters = Groups::new((0..30).map(|i| i % 10));
        let fold = deal(30, Some(&y[..30]), Some(&clusters), 5, &mut rng(3));
        assert!((0..20).all(|i| fold[i] == fold[i + 10]), "clusters stay whole");
        assert_eq!(counts(&mut fold.iter().copied()), [6; 5]);
    }

    #[test]
    fn a_stratified_split_keeps_the_shares_of_classes() {
        let classes: Vec<f64> = (0..45_222).map(|i| f64::from(i < 11_208)).collect();
        let (train, test) =
            split(classes.len(), Some(&classes), 0.2, &mut Seed(1).stream(Purpose::Split, 0, 0));
        assert_eq!((train.len(), test.len()), (36_177, 9_045));
        assert_eq!(test.iter().filter(|&&i| classes[i] == 1.0).count(), 2242);
    }
}
