//! The assignment problem: every row gets a column of its own, at the least cost in all. Shortest augmenting paths with
//! potentials (Jonker and Volgenant 1987), O(K³).

/// The cheapest assignment of a square matrix of costs.
pub struct Assignment {
    /// The column of each row.
    pub columns: Vec<usize>,
    pub cost: f64,
    /// Potentials: a cost less those of its row and column is not negative, and 0 where it is assigned.
    of_row: Vec<f64>,
    of_column: Vec<f64>,
}

/// The cheapest way to change an assignment: rows that pass their columns round.
#[derive(Debug, PartialEq)]
pub struct Change {
    /// What the next best assignment costs more than the best.
    pub more: f64,
    pub rows: Vec<usize>,
}

/// Where nothing is assigned yet.
const NONE: usize = usize::MAX;

impl Assignment {
    /// Of `k` by `k` finite costs, row after row.
    pub fn of(costs: &[f64], k: usize) -> Assignment {
        debug_assert_eq!(costs.len(), k * k);
        // One column more than there are: the row that is being placed sits in it.
        let (mut of_row, mut of_column) = (vec![0.0; k], vec![0.0; k + 1]);
        let mut row_of = vec![NONE; k + 1];
        let (mut least, mut from, mut used) = (vec![0.0; k], vec![k; k], vec![false; k + 1]);
        for row in 0..k {
            row_of[k] = row;
            least.fill(f64::INFINITY);
            used.fill(false);
            let mut at = k;
            while row_of[at] != NONE {
                used[at] = true;
                let i = row_of[at];
                let (mut step, mut next) = (f64::INFINITY, NONE);
                for j in (0..k).filter(|&j| !used[j]) {
                    let reduced = costs[i * k + j] - of_row[i] - of_column[j];
                    if reduced < least[j] {
                        (least[j], from[j]) = (reduced, at);
                    }
                    if next == NONE || least[j] < step {
                        (step, next) = (least[j], j);
                    }
                }
                for j in (0..=k).filter(|&j| used[j]) {
                    of_row[row_of[j]] += step;
                    of_column[j] -= step;
                }
                (0..k).filter(|&j| !used[j]).for_each(|j| least[j] -= step);
                at = next;
            }
            while at != k {
                row_of[at] = row_of[from[at]];
                at = from[at];
            }
        }
        let mut columns = vec![0; k];
        (0..k).for_each(|j| columns[row_of[j]] = j);
        let cost = columns.iter().enumerate().map(|(i, &j)| costs[i * k + j]).sum();
        Assignment { columns, cost, of_row, of_column }
    }

    /// The cheapest change, if there is one that costs less than `below`. Any other assignment passes columns round in
    /// cycles, whose costs are sums of reduced costs and so not negative: the next best is one shortest cycle. Of each cycle
    /// the row of the lowest number is the start.
    pub fn next_best(&self, costs: &[f64], below: f64) -> Option<Change> {
        let k = self.columns.len();
        let step = |from: usize, to: usize| {
            let j = self.columns[to];
            (costs[from * k + j] - self.of_row[from] - self.of_column[j]).max(0.0)
        };
        let (mut least, mut found) = (below, None);
        let (mut far, mut before, mut done) = (vec![0.0; k], vec![0; k], vec![false; k]);
        for start in 0..k {
            for i in start + 1..k {
                (far[i], before[i], done[i]) = (step(start, i), start, false);
            }
            let nearest = |far: &[f64], done: &[bool]| {
                (start + 1..k).filter(|&i| !done[i]).min_by(|&a, &b| far[a].total_cmp(&far[b]))
            };
            while let Some(at) = nearest(&far, &done).filter(|&at| far[at] < least) {
                done[at] = true;
                let round = far[at] + step(at, start);
                if round < least {
                    least = round;
                    let back = std::iter::successors(Some(at), |&i| (i != start).then(|| before[i]));
                    found = Some(Change { more: round, rows: back.collect() });
                }
                for i in (start + 1..k).filter(|&i| !done[i]) {
                    let through = far[at] + step(at, i);
                    if through < far[i] {
                        (far[i], before[i]) = (through, at);
                    }
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Costs of all assignments, the lowest first.
    fn all(costs: &[f64], k: usize) -> Vec<f64> {
        fn go(costs: &[f64], k: usize, taken: &mut Vec<usize>, sum: f64, out: &mut Vec<f64>) {
            let row = taken.len();
            if row == k {
                return out.push(sum);
            }
            for j in 0..k {
                if !taken.contains(&j) {
                    taken.push(j);
                    go(costs, k, taken, sum + costs[row * k + j], out);
                    taken.pop();
                }
            }
        }
        let mut out = Vec::new();
        go(costs, k, &mut Vec::new(), 0.0, &mut out);
        out.sort_by(f64::total_cmp);
        out
    }

    fn is_permutation(columns: &[usize]) -> bool {
        let mut sorted = columns.to_vec();
        sorted.sort_unstable();
        sorted.into_iter().eq(0..columns.len())
    }

    fn check(costs: &[f64], k: usize) {
        let (best, every) = (Assignment::of(costs, k), all(costs, k));
        let scale = 1e-9 * (1.0 + costs.iter().fold(0.0, |m: f64, c| m.max(c.abs())));
        assert!(is_permutation(&best.columns), "{:?}", best.columns);
        assert!((best.cost - every[0]).abs() <= scale, "{} for {}", best.cost, every[0]);
        let Some(second) = every.get(1) else {
            return assert_eq!(best.next_best(costs, f64::INFINITY), None);
        };
        let next = best.next_best(costs, f64::INFINITY).unwrap();
        assert!((best.cost + next.more - second).abs() <= scale, "{next:?} for {second}");
        // The cycle is an assignment, and costs what is said: each row takes the column of the one before it in the list.
        let mut changed = best.columns.clone();
        for (&to, &from) in next.rows.iter().zip(next.rows.iter().cycle().skip(1)) {
            changed[from] = best.columns[to];
        }
        assert!(is_permutation(&changed) && changed != best.columns);
        let cost: f64 = changed.iter().enumerate().map(|(i, &j)| costs[i * k + j]).sum();
        assert!((cost - second).abs() <= scale, "{cost} for {second}");
        assert_eq!(best.next_best(costs, 0.5 * next.more), None);
    }

    proptest! {
        #[test]
        fn the_best_and_the_second_best_are_those_of_all_assignments(
            k in 1usize..=6,
            costs in prop::collection::vec(-10.0f64..10.0, 36),
        ) {
            check(&costs[..k * k], k);
        }

        #[test]
        fn ties_are_no_trouble(k in 1usize..=6, costs in prop::collection::vec(0u8..3, 36)) {
            check(&costs[..k * k].iter().map(|&c| f64::from(c)).collect::<Vec<_>>(), k);
        }
    }

    #[test]
    fn hundreds_of_rows_are_no_trouble() {
        let k = 300;
        let hidden = |i: usize| (7 * i + 3) % k;
        let costs: Vec<f64> = (0..k * k)
            .map(|c| ((c % k).abs_diff(hidden(c / k)) as f64).sqrt() + 0.1 * (c % 13) as f64)
            .collect();
        let best = Assignment::of(&costs, k);
        assert!((0..k).all(|i| best.columns[i] == hidden(i)));
        assert!(best.next_best(&costs, f64::INFINITY).unwrap().more > 0.0);
    }
}
