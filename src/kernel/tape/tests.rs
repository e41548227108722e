use super::*;
use crate::kernel::{Panel, available};
use ndarray::Array2;

const UNARY: [Unary; 17] = [
    Unary::Minus,
    Unary::Not,
    Unary::Abs,
    Unary::Exp,
    Unary::Expm1,
    Unary::Log,
    Unary::Log1p,
    Unary::Sqrt,
    Unary::Tanh,
    Unary::Expit,
    Unary::Softplus,
    Unary::Lgamma,
    Unary::Digamma,
    Unary::Erf,
    Unary::Power(2),
    Unary::Power(-3),
    Unary::Power(5),
];

fn exact(op: Unary, x: f64) -> f64 {
    match op {
        Unary::Minus => -x,
        Unary::Not => f64::from(x == 0.0),
        Unary::Abs => x.abs(),
        Unary::Exp => libm::exp(x),
        Unary::Expm1 => libm::expm1(x),
        Unary::Log => libm::log(x),
        Unary::Log1p => libm::log1p(x),
        Unary::Sqrt => x.sqrt(),
        Unary::Tanh => libm::tanh(x),
        Unary::Expit => 1.0 / (1.0 + libm::exp(-x)),
        Unary::Softplus => x.max(0.0) + libm::log1p(libm::exp(-x.abs())),
        Unary::Lgamma => libm::lgamma(x),
        Unary::Digamma => digamma(x),
        Unary::Trigamma => trigamma(x),
        Unary::Erf => libm::erf(x),
        Unary::Power(k) => x.powi(k),
    }
}

fn values(level: crate::kernel::Level, op: Unary, x: f64) -> (f64, f64) {
    let (mut out, mut slope) = ([Line::default()], [Line::default()]);
    unary(level, op, &[Line([x; LANES])], &mut out, &mut slope);
    (out[0][3], slope[0][3])
}

#[test]
fn functions_are_those_of_libm_everywhere_and_slopes_are_derivatives() {
    let points =
        [1e-300, 1e-17, 1e-9, 3e-5, 0.01, 0.3, 0.41, 0.42, 0.7, 1.0, 1.5, 2.0, 7.7, 30.0, 400.0, 705.0, 1e5];
    for level in available() {
        for op in UNARY {
            for x in points.into_iter().flat_map(|x| [x, -x]).chain([0.0, 1e300]) {
                let (value, wanted) = (values(level, op, x).0, exact(op, x));
                let same = value == wanted || value.is_nan() && wanted.is_nan();
                // The exponential is 0 below −708, where it is no normal number.
                let tiny = wanted.abs() < 1e-300 && value.abs() < 1e-300;
                assert!(
                    same || tiny || (value / wanted - 1.0).abs() < 1e-14,
                    "{level:?} {op:?}({x}): {value} for {wanted}"
                );
            }
            for x in [-5.3, -0.7, -0.2, 0.11, 0.6, 1.3, 4.0] {
                let slope = values(level, op, x).1;
                let wanted = (exact(op, x + 1e-6) - exact(op, x - 1e-6)) / 2e-6;
                if wanted.is_finite() {
                    assert!((slope - wanted).abs() < 1e-7 * wanted.abs().max(1.0), "{level:?} {op:?} at {x}");
                }
            }
        }
        for op in
            [Unary::Exp, Unary::Log, Unary::Log1p, Unary::Softplus, Unary::Tanh, Unary::Abs, Unary::Sqrt]
        {
            assert!(values(level, op, f64::NAN).0.is_nan(), "{level:?} {op:?}");
        }
        assert_eq!(values(level, Unary::Exp, 1e9).0, f64::INFINITY);
        assert_eq!(values(level, Unary::Log, f64::INFINITY).0, f64::INFINITY);
        assert_eq!(values(level, Unary::Abs, 0.0).1, 0.0, "the subgradient at a kink");
    }
}

const BINARY: [Binary; 9] = [
    Binary::Add,
    Binary::Sub,
    Binary::Mul,
    Binary::Div,
    Binary::Power,
    Binary::Min,
    Binary::Max,
    Binary::Huber,
    Binary::Less,
];

#[test]
fn adjoints_of_two_are_derivatives() {
    let of = |level, op, a: f64, b: f64| {
        let mut out = [Line::default()];
        let (a, b) = (Line([a; LANES]), Line([b; LANES]));
        binary(level, op, Operand::rows(&[a]), Operand::all(&b), &mut out);
        out[0]
    };
    for level in available() {
        for op in BINARY {
            for (a, b) in [(0.7, 1.9), (2.5, 0.4), (3.1, -1.2), (1.0, 2.0)] {
                let out = [of(level, op, a, b)];
                let lines = [a, b].map(|x| Line([x; LANES]));
                for second in [false, true] {
                    let mut found = Line::default();
                    let adjoint = [Line([2.0; LANES])];
                    binary_back(
                        level,
                        op,
                        second,
                        Operand::all(&lines[0]),
                        Operand::all(&lines[1]),
                        &out,
                        &adjoint,
                        Target::all(&mut found),
                    );
                    let h = 1e-6;
                    let (da, db) = if second { (0.0, h) } else { (h, 0.0) };
                    let wanted = (of(level, op, a + da, b + db)[0] - of(level, op, a - da, b - db)[0]) / h;
                    assert!(
                        (found[5] - wanted).abs() < 1e-7 * wanted.abs().max(1.0),
                        "{level:?} {op:?} {a} {b}"
                    );
                }
            }
        }
        let holds = |op, a: f64, b: f64| of(level, op, a, b)[0] == 1.0;
        for (a, b) in [(1.0, 2.0), (2.0, 1.0), (2.0, 2.0), (0.0, 2.0), (f64::NAN, 1.0)] {
            assert_eq!(holds(Binary::Less, a, b), a < b);
            assert_eq!(holds(Binary::AtMost, a, b), a <= b);
            assert_eq!(holds(Binary::Equal, a, b), a == b);
            // Nothing holds of what is no number.
            assert_eq!(holds(Binary::Different, a, b), a != b && !a.is_nan());
            assert_eq!(holds(Binary::And, a, b), a != 0.0 && b != 0.0);
        }
        for (a, b, wanted) in
            [(0.0, 0.0, 1.0), (0.0, 2.0, 0.0), (0.0, -1.0, f64::INFINITY), (2.0, 0.5, 2f64.sqrt())]
        {
            assert!((of(level, Binary::Power, a, b)[0] - wanted).abs() < 1e-15 || wanted.is_infinite());
        }
    }
}

/// However many draws share the rows, and at every level the bits of one draw alone.
#[test]
fn products_over_rows_are_those_of_the_definition() {
    let noise = |i: usize| ((i * 7919 + 13) % 997) as f64 / 500.0 - 1.0;
    let (n, d) = (75, 11);
    let x = Array2::from_shape_fn((n, d), |(i, j)| noise(i * d + j));
    let panel: Panel = Panel::new(x.view());
    for level in available() {
        for draws in [1, 3, 4, 7] {
            let beta: Vec<Vec<f64>> =
                (0..draws).map(|s| (0..d).map(|j| noise(900 + 31 * s + j)).collect()).collect();
            let views: Vec<&[f64]> = beta.iter().map(Vec::as_slice).collect();
            let mut eta_of = vec![vec![Line::default(); panel.groups()]; draws];
            let mut out: Vec<&mut [Line]> = eta_of.iter_mut().map(Vec::as_mut_slice).collect();
            self::margins(level, &panel, 0..panel.groups(), &views, &mut out);
            let mut slopes = eta_of.clone();
            slopes.iter_mut().for_each(|s| (n..panel.rows()).for_each(|i| s[i / LANES][i % LANES] = 0.0));
            let slopes: Vec<&[Line]> = slopes.iter().map(Vec::as_slice).collect();
            let mut sums = vec![vec![Line::default(); d]; draws];
            let mut out: Vec<&mut [Line]> = sums.iter_mut().map(Vec::as_mut_slice).collect();
            add_gradients(level, &panel, 0..panel.groups(), &slopes, &mut out);
            for s in 0..draws {
                let eta: Vec<f64> = (0..n).map(|i| (0..d).map(|j| x[[i, j]] * beta[s][j]).sum()).collect();
                (0..n).for_each(|i| assert!((eta_of[s][i / LANES][i % LANES] - eta[i]).abs() < 1e-13));
                for j in 0..d {
                    let exact: f64 = (0..n).map(|i| x[[i, j]] * eta[i]).sum();
                    assert!((sum(&sums[s][j]) - exact).abs() < 1e-12, "{level:?}: {draws} draws, {j}");
                }
            }
        }
    }
}
