//! A path (section 3.3): the posterior at every value of one key of the experiment, summarised setting by setting. No more
//! than the draws of one setting are held.

use std::path::Path;

use rayon::prelude::*;

use crate::bytes::Bytes;
use crate::config::printable;
use crate::data::files::open;
use crate::error::{Error, Result};
use crate::math::{largest, quantile_sorted};
use crate::samples::quoted;

/// Header of `path.csv`.
pub const HEADER: &str = "setting,value,parameter,q10,q50,q90,near_zero";
/// Marginal posterior of one parameter at one setting.
#[derive(Clone, Debug, PartialEq)]
pub struct PathPoint {
    pub parameter: String,
    /// 10 %, 50 % and 90 %.
    pub quantiles: [f64; 3],
    /// Share of draws near zero.
    pub near_zero: f64,
}

impl Bytes for PathPoint {
    fn put(&self, out: &mut Vec<u8>) {
        self.parameter.put(out);
        self.quantiles.iter().chain([&self.near_zero]).for_each(|value| value.put(out));
    }

    fn take(from: &mut &[u8]) -> Option<PathPoint> {
        let parameter = String::take(from)?;
        let mut next = || f64::take(from);
        let quantiles = [next()?, next()?, next()?];
        Some(PathPoint { parameter, quantiles, near_zero: next()? })
    }
}

/// The draws of one setting that did not fail, row after row.
pub struct SettingDraws {
    names: Vec<String>,
    values: Vec<f64>,
}

impl SettingDraws {
    pub fn new(names: Vec<String>) -> SettingDraws {
        SettingDraws { names, values: Vec::new() }
    }

    pub fn add(&mut self, theta: &[f64]) {
        debug_assert_eq!(theta.len(), self.names.len());
        self.values.extend_from_slice(theta);
    }

    /// A point for every parameter.
    pub fn points(&self, near_zero: f64) -> Vec<PathPoint> {
        let p = self.names.len();
        let one = |j: usize| {
            let mut column: Vec<f64> = self.values[j..].iter().step_by(p).copied().collect();
            column.sort_unstable_by(f64::total_cmp);
            let near = column.iter().filter(|v| v.abs() < near_zero).count();
            PathPoint {
                parameter: self.names[j].clone(),
                quantiles: [0.1, 0.5, 0.9].map(|q| quantile_sorted(&column, q)),
                near_zero: near as f64 / column.len() as f64,
            }
        };
        if self.values.is_empty() { Vec::new() } else { (0..p).into_par_iter().map(one).collect() }
    }
}

impl PathPoint {
    /// Line of `path.csv`; settings are counted from 1.
    pub fn line(&self, setting: usize, value: &str) -> String {
        let [q10, q50, q90] = self.quantiles;
        let parameter = quoted(&self.parameter);
        format!("{setting},{},{parameter},{q10:?},{q50:?},{q90:?},{:?}\n", quoted(value), self.near_zero)
    }
}

/// The settings, from 1, and points of a `path.csv`.
pub fn read(file: &Path) -> Result<Vec<(usize, PathPoint)>> {
    let shown = printable(&file.display().to_string());
    let bad = |what: &str| Error::input(format!("{shown}: {what}"));
    let mut reader = csv::Reader::from_reader(open(file)?);
    if reader.headers().map_err(|e| bad(&e.to_string()))?.iter().ne(HEADER.split(',')) {
        return Err(bad("not a path written by npl"));
    }
    let mut points = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|e| bad(&e.to_string()))?;
        let number = |j: usize| record[j].parse::<f64>().map_err(|_| bad("not a path written by npl"));
        let setting = number(0)? as usize;
        let quantiles = [number(3)?, number(4)?, number(5)?];
        points
            .push((setting, PathPoint { parameter: record[2].to_owned(), quantiles, near_zero: number(6)? }));
    }
    Ok(points)
}

/// The parameters whose intervals reach furthest from zero at any setting, at most so many, in the order of the model.
pub fn widest(points: &[(usize, PathPoint)], most: usize) -> Vec<String> {
    let mut reach: Vec<(&str, f64)> = Vec::new();
    for (_, point) in points {
        let far = largest(&point.quantiles);
        match reach.iter_mut().find(|(name, _)| *name == point.parameter) {
            Some((_, reach)) => *reach = reach.max(far),
            None => reach.push((&point.parameter, far)),
        }
    }
    let mut sorted: Vec<f64> = reach.iter().map(|(_, far)| *far).collect();
    sorted.sort_unstable_by(|a, b| b.total_cmp(a));
    let limit = sorted.get(most.saturating_sub(1)).copied().unwrap_or(f64::NEG_INFINITY);
    reach.iter().filter(|(_, far)| *far >= limit).take(most).map(|(name, _)| name.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_order_statistics_and_shares() {
        let mut draws = SettingDraws::new(vec!["a".into(), "b,c".into()]);
        for i in 0..11 {
            draws.add(&[f64::from(10 - i), 0.001 * f64::from(i)]);
        }
        let points = draws.points(0.005);
        assert_eq!(points[0].quantiles, [1.0, 5.0, 9.0]);
        assert_eq!(points[0].near_zero, 1.0 / 11.0);
        assert_eq!(points[1].near_zero, 5.0 / 11.0);
        assert_eq!(points[0].line(3, "0.5"), format!("3,0.5,a,1.0,5.0,9.0,{:?}\n", 1.0 / 11.0));
        assert!(points[1].line(1, "x").starts_with("1,x,\"b,c\","));
        assert!(SettingDraws::new(vec!["a".into()]).points(0.1).is_empty());
    }
}
