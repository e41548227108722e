//! The operations of a tape, over lines of rows (or of draws): values forwards, adjoints backwards. One call is one operation on
//! a whole tile, so that what it costs to look it up is shared by all its rows.

mod functions;
mod products;

use functions as f;

use super::dispatch;
use super::special::{digamma, trigamma};
use super::vector::{LANES, Line, Vector, sum};
pub use products::{add_gradients, margins};

/// Of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unary {
    Minus,
    Not,
    Abs,
    Exp,
    Expm1,
    Log,
    Log1p,
    Sqrt,
    Tanh,
    Expit,
    Softplus,
    Lgamma,
    Digamma,
    /// The slope of [`Digamma`](Unary::Digamma), for second derivatives; there are no third ones.
    Trigamma,
    Erf,
    /// To a whole power.
    Power(i32),
}

/// Of two numbers. Comparisons and logic are 1 where they hold and 0 elsewhere; whatever is not 0 holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Power,
    Min,
    Max,
    /// The larger, as a number that derivatives do not see: what a sum of exponentials is shifted by.
    Shift,
    /// r²/2 up to |r| = k, and its tangent beyond.
    Huber,
    Less,
    AtMost,
    Equal,
    Different,
    And,
    Or,
}

impl Unary {
    /// Its derivative is not 0 wherever it has one.
    pub fn has_slope(self) -> bool {
        !matches!(self, Unary::Not | Unary::Trigamma)
    }
}

impl Binary {
    pub fn has_slope(self) -> bool {
        use Binary::{Add, Div, Huber, Max, Min, Mul, Power, Sub};
        matches!(self, Add | Sub | Mul | Div | Power | Min | Max | Huber)
    }
}

/// Numbers of a tile, a line for eight rows; or one line for all of them.
#[derive(Clone, Copy)]
pub struct Operand<'a> {
    lines: &'a [Line],
    /// All bits, or none: the place of a line is looked up through it.
    mask: usize,
}

impl<'a> Operand<'a> {
    pub fn rows(lines: &'a [Line]) -> Self {
        Operand { lines, mask: usize::MAX }
    }

    /// The same line everywhere.
    pub fn all(line: &'a Line) -> Self {
        Operand { lines: std::slice::from_ref(line), mask: 0 }
    }

    #[inline(always)]
    fn at<V: Vector>(&self, i: usize) -> V {
        V::load(&self.lines[i & self.mask])
    }
}

/// Where adjoints go: line by line, or all into one.
pub struct Target<'a> {
    lines: &'a mut [Line],
    mask: usize,
}

impl<'a> Target<'a> {
    pub fn rows(lines: &'a mut [Line]) -> Self {
        Target { lines, mask: usize::MAX }
    }

    pub fn all(line: &'a mut Line) -> Self {
        Target { lines: std::slice::from_mut(line), mask: 0 }
    }

    #[inline(always)]
    fn add<V: Vector>(&mut self, i: usize, by: V) {
        let line = &mut self.lines[i & self.mask];
        line.0 = V::load(line).add(by).lanes();
    }
}

dispatch! {
    /// The values of an operation on `a`, and its slopes.
    pub fn unary(op: Unary, a: &[Line], out: &mut [Line], slope: &mut [Line]) = unary_body
}

/// Value and slope of every line.
macro_rules! each {
    ($a:ident, $out:ident, $slope:ident, $x:ident => $pair:expr) => {
        for ((a, out), slope) in $a.iter().zip($out.iter_mut()).zip($slope.iter_mut()) {
            let $x = V::load(a);
            let (value, by): (V, V) = $pair;
            (out.0, slope.0) = (value.lanes(), by.lanes());
        }
    };
}

/// The same number by number, for functions that have no vector form.
fn one_by_one(a: &[Line], out: &mut [Line], slope: &mut [Line], of: impl Fn(f64) -> (f64, f64)) {
    for ((a, out), slope) in a.iter().zip(out).zip(slope) {
        for l in 0..LANES {
            (out[l], slope[l]) = of(a[l]);
        }
    }
}

#[inline(always)]
fn unary_body<V: Vector>(op: Unary, a: &[Line], out: &mut [Line], slope: &mut [Line]) {
    let (zero, one, two) = (V::splat(0.0), V::splat(1.0), V::splat(2.0));
    match op {
        Unary::Minus => each!(a, out, slope, x => (f::minus(x), V::splat(-1.0))),
        Unary::Not => each!(a, out, slope, x => (f::if_zero(x, one, zero), zero)),
        Unary::Abs => each!(a, out, slope, x => (f::abs(x), f::sign(x))),
        Unary::Exp => each!(a, out, slope, x => { let e = f::exp(x); (e, e) }),
        Unary::Expm1 => each!(a, out, slope, x => { let e = f::exp(x); (f::expm1(x, e), e) }),
        Unary::Log => each!(a, out, slope, x => (f::ln(x), one.div(x))),
        Unary::Log1p => each!(a, out, slope, x => (f::log1p(x), one.div(one.add(x)))),
        Unary::Sqrt => each!(a, out, slope, x => { let root = x.sqrt(); (root, one.div(two.mul(root))) }),
        Unary::Tanh => each!(a, out, slope, x => f::tanh(x)),
        Unary::Expit => each!(a, out, slope, x => f::expit(x)),
        Unary::Softplus => each!(a, out, slope, x => f::softplus(x)),
        Unary::Power(2) => each!(a, out, slope, x => (x.mul(x), x.add(x))),
        Unary::Power(k) => each!(a, out, slope, x => {
            (f::whole_power(x, k), V::splat(f64::from(k)).mul(f::whole_power(x, k - 1)))
        }),
        Unary::Lgamma => one_by_one(a, out, slope, |x| (libm::lgamma(x), digamma(x))),
        Unary::Digamma => one_by_one(a, out, slope, |x| (digamma(x), trigamma(x))),
        Unary::Trigamma => one_by_one(a, out, slope, |x| (trigamma(x), 0.0)),
        Unary::Erf => one_by_one(a, out, slope, |x| {
            (libm::erf(x), std::f64::consts::FRAC_2_SQRT_PI * libm::exp(-x * x))
        }),
    }
}

dispatch! {
    /// The values of an operation on `a` and `b`.
    pub fn binary(op: Binary, a: Operand, b: Operand, out: &mut [Line]) = binary_body
}

/// The value of every line.
macro_rules! pairs {
    ($a:ident, $b:ident, $out:ident, ($x:ident, $y:ident) => $value:expr) => {
        for (i, out) in $out.iter_mut().enumerate() {
            let ($x, $y): (V, V) = ($a.at(i), $b.at(i));
            out.0 = $value.lanes();
        }
    };
}

#[inline(always)]
fn binary_body<V: Vector>(op: Binary, a: Operand, b: Operand, out: &mut [Line]) {
    let (zero, one, half) = (V::splat(0.0), V::splat(1.0), V::splat(0.5));
    match op {
        Binary::Add => pairs!(a, b, out, (x, y) => x.add(y)),
        Binary::Sub => pairs!(a, b, out, (x, y) => x.sub(y)),
        Binary::Mul => pairs!(a, b, out, (x, y) => x.mul(y)),
        Binary::Div => pairs!(a, b, out, (x, y) => x.div(y)),
        Binary::Power => pairs!(a, b, out, (x, y) => f::power(x, y)),
        Binary::Min => pairs!(a, b, out, (x, y) => f::minus(f::larger(f::minus(x), f::minus(y)))),
        Binary::Max | Binary::Shift => pairs!(a, b, out, (x, y) => f::larger(x, y)),
        Binary::Huber => pairs!(a, b, out, (x, y) => {
            let size = f::abs(x);
            let inside = size.if_below(y, size, y);
            inside.mul(size.sub(half.mul(inside)))
        }),
        Binary::Less => pairs!(a, b, out, (x, y) => f::less(x, y)),
        Binary::AtMost => pairs!(a, b, out, (x, y) => f::if_zero(x.sub(y), one, f::less(x, y))),
        Binary::Equal => pairs!(a, b, out, (x, y) => f::if_zero(x.sub(y), one, zero)),
        Binary::Different => pairs!(a, b, out, (x, y) => f::less(x, y).max(f::less(y, x))),
        Binary::And => pairs!(a, b, out, (x, y) => f::if_zero(x, zero, f::if_zero(y, zero, one))),
        Binary::Or => pairs!(a, b, out, (x, y) => f::if_zero(x, f::if_zero(y, zero, one), one)),
    }
}

dispatch! {
    /// Adds the adjoints `adjoint` times `slope` to a target.
    pub fn add_product(adjoint: &[Line], slope: &[Line], to: Target) = add_product_body
}

#[inline(always)]
fn add_product_body<V: Vector>(adjoint: &[Line], slope: &[Line], mut to: Target) {
    for (i, (adjoint, slope)) in adjoint.iter().zip(slope).enumerate() {
        to.add(i, f::share(V::load(adjoint), V::load(slope)));
    }
}

dispatch! {
    /// Adds to a target the adjoints of the first operand, or of the second, of an operation with these values and adjoints.
    pub fn binary_back(
        op: Binary, second: bool, a: Operand, b: Operand, out: &[Line], adjoint: &[Line], to: Target
    ) = binary_back_body
}

/// The adjoint of every line.
macro_rules! adjoints {
    ($a:ident, $b:ident, $adjoint:ident, $to:ident, ($x:ident, $y:ident, $w:ident, $i:ident) => $value:expr) => {
        for ($i, line) in $adjoint.iter().enumerate() {
            let ($x, $y, $w): (V, V, V) = ($a.at($i), $b.at($i), V::load(line));
            $to.add($i, $value);
        }
    };
}

#[inline(always)]
fn binary_back_body<V: Vector>(
    op: Binary,
    second: bool,
    a: Operand,
    b: Operand,
    out: &[Line],
    adjoint: &[Line],
    mut to: Target,
) {
    let (zero, one, half) = (V::splat(0.0), V::splat(1.0), V::splat(0.5));
    match (op, second) {
        (Binary::Add, _) | (Binary::Sub, false) => adjoints!(a, b, adjoint, to, (_x, _y, w, i) => w),
        (Binary::Sub, true) => adjoints!(a, b, adjoint, to, (_x, _y, w, i) => f::minus(w)),
        (Binary::Mul, false) => adjoints!(a, b, adjoint, to, (_x, y, w, i) => f::share(w, y)),
        (Binary::Mul, true) => adjoints!(a, b, adjoint, to, (x, _y, w, i) => f::share(w, x)),
        (Binary::Div, false) => adjoints!(a, b, adjoint, to, (_x, y, w, i) => f::share(w, one.div(y))),
        (Binary::Div, true) => adjoints!(a, b, adjoint, to, (_x, y, w, i) => {
            f::share(w, f::minus(V::load(&out[i]).div(y)))
        }),
        (Binary::Power, false) => adjoints!(a, b, adjoint, to, (x, y, w, i) => {
            let slope = if_zero_base(x, y, y.mul(V::load(&out[i])).div(x));
            f::share(w, slope)
        }),
        (Binary::Power, true) => adjoints!(a, b, adjoint, to, (x, _y, w, i) => {
            f::share(w, f::if_zero(x, zero, V::load(&out[i]).mul(f::ln(x))))
        }),
        // Ties share: max(r, −r) has slope 0 at r = 0, as |r| has.
        (Binary::Max, second) => adjoints!(a, b, adjoint, to, (x, y, w, i) => {
            let (own, other) = if second { (y, x) } else { (x, y) };
            f::share(w, own.if_below(other, zero, other.if_below(own, one, half)))
        }),
        (Binary::Min, second) => adjoints!(a, b, adjoint, to, (x, y, w, i) => {
            let (own, other) = if second { (y, x) } else { (x, y) };
            f::share(w, other.if_below(own, zero, own.if_below(other, one, half)))
        }),
        (Binary::Huber, false) => adjoints!(a, b, adjoint, to, (x, y, w, i) => {
            let size = f::abs(x);
            f::share(w, f::sign(x).mul(size.if_below(y, size, y)))
        }),
        (Binary::Huber, true) => adjoints!(a, b, adjoint, to, (x, y, w, i) => {
            let size = f::abs(x);
            f::share(w, size.sub(size.if_below(y, size, y)))
        }),
        _ => {}
    }
}

/// The slope of xʸ in x: by the formula, but at x = 0 its limit.
#[inline(always)]
fn if_zero_base<V: Vector>(x: V, y: V, otherwise: V) -> V {
    let (zero, one) = (V::splat(0.0), V::splat(1.0));
    let below_one = y.if_below(one, V::splat(f64::INFINITY), zero);
    let limit = f::if_zero(y, zero, f::if_zero(y.sub(one), one, below_one));
    f::if_zero(x, limit, otherwise)
}

dispatch! {
    /// `yes` where the condition is not 0, else `no`.
    pub fn select(condition: Operand, yes: Operand, no: Operand, out: &mut [Line]) = select_body
}

#[inline(always)]
fn select_body<V: Vector>(condition: Operand, yes: Operand, no: Operand, out: &mut [Line]) {
    for (i, out) in out.iter_mut().enumerate() {
        out.0 = f::if_zero(condition.at::<V>(i), no.at(i), yes.at(i)).lanes();
    }
}

dispatch! {
    /// Adds to a target the adjoints of the choice that is made where the condition holds, or where it does not.
    pub fn select_back(condition: Operand, holds: bool, adjoint: &[Line], to: Target) = select_back_body
}

#[inline(always)]
fn select_back_body<V: Vector>(condition: Operand, holds: bool, adjoint: &[Line], mut to: Target) {
    let zero = V::splat(0.0);
    for (i, adjoint) in adjoint.iter().enumerate() {
        let (x, w) = (condition.at::<V>(i), V::load(adjoint));
        to.add(i, if holds { f::if_zero(x, zero, w) } else { f::if_zero(x, w, zero) });
    }
}

dispatch! {
    /// Σ w v over all rows of a tile; a row of weight 0 counts nothing.
    pub fn weighted_sum(weights: &[Line], values: Operand) -> f64 = weighted_sum_body
}

#[inline(always)]
fn weighted_sum_body<V: Vector>(weights: &[Line], values: Operand) -> f64 {
    let mut total = V::splat(0.0);
    for (i, w) in weights.iter().enumerate() {
        total = total.add(f::share(V::load(w), values.at(i)));
    }
    sum(&total.lanes())
}

#[cfg(test)]
mod tests;
