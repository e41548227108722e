//! Lines of equal height on a grid, by marching squares.

use super::kde2::Surface;

/// Closed or open lines, in the coordinates of the axes, along which the surface has this height. Lines end at the border.
pub fn contours(surface: &Surface, level: f64) -> Vec<Vec<(f64, f64)>> {
    let mut segments = Segments::default();
    let (columns, rows) = (surface.x.points, surface.y.points);
    let value = |i: usize, j: usize| surface.values[j * columns + i];
    for j in 0..rows - 1 {
        for i in 0..columns - 1 {
            let corners = [value(i, j), value(i + 1, j), value(i + 1, j + 1), value(i, j + 1)];
            let high = corners.map(|v| v > level);
            // Edges of the square: bottom, right, top, left; each between a corner and the next.
            let edges = [edge(i, j, 0), edge(i + 1, j, 1), edge(i, j + 1, 0), edge(i, j, 1)];
            let crossed: Vec<usize> = (0..4).filter(|&e| high[e] != high[(e + 1) % 4]).collect();
            match crossed[..] {
                [a, b] => segments.join(edges[a], edges[b]),
                // A saddle: the middle decides which corners belong together.
                [_, _, _, _] => {
                    let middle = corners.iter().sum::<f64>() / 4.0 > level;
                    let pairs = if middle == high[0] { [(0, 1), (2, 3)] } else { [(3, 0), (1, 2)] };
                    pairs.iter().for_each(|&(a, b)| segments.join(edges[a], edges[b]));
                }
                _ => {}
            }
        }
    }
    let point = |(i, j, up): Edge| {
        let (a, b) = (value(i, j), if up == 1 { value(i, j + 1) } else { value(i + 1, j) });
        let share = ((level - a) / (b - a)).clamp(0.0, 1.0);
        let (dx, dy) = if up == 1 { (0.0, share) } else { (share, 0.0) };
        (surface.x.low + surface.x.step * (i as f64 + dx), surface.y.low + surface.y.step * (j as f64 + dy))
    };
    segments.lines().into_iter().map(|line| line.into_iter().map(point).collect()).collect()
}

/// From the point (i, j) of the grid to the right (0) or up (1).
type Edge = (usize, usize, usize);

fn edge(i: usize, j: usize, up: usize) -> Edge {
    (i, j, up)
}

/// Pieces of lines, by the edges they end on.
#[derive(Default)]
struct Segments {
    neighbours: std::collections::BTreeMap<Edge, Vec<Edge>>,
}

impl Segments {
    fn join(&mut self, a: Edge, b: Edge) {
        self.neighbours.entry(a).or_default().push(b);
        self.neighbours.entry(b).or_default().push(a);
    }

    fn take(&mut self, from: Edge) -> Option<Edge> {
        let next = self.neighbours.get_mut(&from)?.pop()?;
        let back = self.neighbours.get_mut(&next)?;
        let at = back.iter().position(|e| *e == from)?;
        back.remove(at);
        Some(next)
    }

    /// Open lines first: they begin on an edge that only one piece ends on.
    fn lines(mut self) -> Vec<Vec<Edge>> {
        let ends: Vec<Edge> = self.neighbours.iter().filter(|(_, n)| n.len() == 1).map(|(e, _)| *e).collect();
        let all: Vec<Edge> = self.neighbours.keys().copied().collect();
        let mut lines = Vec::new();
        for start in ends.into_iter().chain(all) {
            let mut line = vec![start];
            while let Some(next) = self.take(line[line.len() - 1]) {
                line.push(next);
            }
            if line.len() > 1 {
                lines.push(line);
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::kde2::Grid;

    #[test]
    fn a_cone_has_circles() {
        let grid = Grid { low: -2.0, step: 0.1, points: 41 };
        let values = (0..41 * 41).map(|k| -grid.at(k % 41).hypot(grid.at(k / 41))).collect();
        let surface = Surface { x: grid, y: grid, values };
        let lines = contours(&surface, -1.0);
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].first(), lines[0].last());
        assert!(lines[0].iter().all(|(x, y)| (x.hypot(*y) - 1.0).abs() < 0.01));
        // A larger one is cut by the border into four arcs.
        assert_eq!(contours(&surface, -2.3).len(), 4);
    }
}
