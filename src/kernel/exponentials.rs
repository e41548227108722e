//! Exponential variates, eight in step: uniforms of eight generators, and their logarithms.
//!
//! Unlike the other kernels these give the same bits at every level, plain code included: the generators are made of
//! integer operations, and the logarithm rounds after every product and every sum. So does a sum over rows: it is made in
//! eight lanes.
//!
//! Written by hand: the crates that run generators in step fix the width of a vector when they are compiled.

use rand::Rng;

use super::vector::{Arithmetic, LANES, Vector, Words, sum};
use super::{dispatch, load};

/// Eight generators xoshiro256++ (Blackman and Vigna 2021), one a lane: word k of lane l is `0[k][l]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Generators([[u64; LANES]; 4]);

impl Generators {
    /// Of the next 32 words of `rng`: four for each lane, one lane after the other.
    pub fn seeded(rng: &mut impl Rng) -> Generators {
        let mut state = [[0; LANES]; 4];
        for l in 0..LANES {
            state.iter_mut().for_each(|word| word[l] = rng.next_u64());
        }
        Generators(state)
    }
}

dispatch! {
    /// Fills `out` with variates −log U, and gives their sum. U = (k + ½)/2⁵² for the upper 52 bits k of a word: never 0
    /// nor 1, and symmetric. Number i is the next of lane i mod 8.
    pub fn exponentials(generators: &Generators, out: &mut [f64]) -> f64 = exponentials_body
}

dispatch! {
    /// The sum of numbers, each added to the sum of its lane, i mod 8; then the lanes, the second half to the first, and
    /// so on.
    pub fn sum_in_lanes(values: &[f64]) -> f64 = sum_body
}

dispatch! {
    /// Divides all numbers by one.
    pub fn divide(values: &mut [f64], by: f64) = divide_body
}

/// The next word of every lane.
#[inline(always)]
fn next<W: Words>(s: &mut [W; 4]) -> W {
    let word = s[0].add(s[3]).rotate(23).add(s[0]);
    let t = s[1].left(17);
    s[2] = s[2].xor(s[0]);
    s[3] = s[3].xor(s[1]);
    s[1] = s[1].xor(s[2]);
    s[0] = s[0].xor(s[3]);
    s[2] = s[2].xor(t);
    s[3] = s[3].rotate(45);
    word
}

/// (k + ½)/2⁵²: 1 + k/2⁵² by its bits, less 1 − 2⁻⁵³, which is exact.
#[inline(always)]
fn uniform<V: Vector>(word: V::Words) -> V {
    V::from_bits(word.right(12).or(V::Words::splat(1f64.to_bits()))).sub(V::splat(1.0 - f64::EPSILON / 2.0))
}

#[inline(always)]
fn variates<V: Vector, const N: usize>(state: &mut [V::Words; 4]) -> [V; N] {
    let mut uniforms = [V::splat(0.0); N];
    for group in &mut uniforms {
        *group = uniform::<V>(next(state));
    }
    uniforms.minus_ln()
}

/// Groups of eight variates that are made in step.
const STEP: usize = 8;

#[inline(always)]
fn exponentials_body<V: Vector>(generators: &Generators, out: &mut [f64]) -> f64 {
    // A loop: a closure would not always be inlined.
    let mut state = [V::Words::splat(0); 4];
    for (state, word) in state.iter_mut().zip(&generators.0) {
        *state = V::Words::load(word);
    }
    let mut total = V::splat(0.0);
    let (groups, rest) = out.as_chunks_mut::<LANES>();
    let in_step = if V::IN_STEP { groups.len() / STEP * STEP } else { 0 };
    let (in_step, groups) = groups.split_at_mut(in_step);
    for step in in_step.as_chunks_mut::<STEP>().0 {
        let e = variates::<V, STEP>(&mut state);
        for i in 0..STEP {
            total = total.add(e[i]);
            step[i] = e[i].lanes();
        }
    }
    for group in groups {
        let [e] = variates::<V, 1>(&mut state);
        total = total.add(e);
        *group = e.lanes();
    }
    if !rest.is_empty() {
        let [e] = variates::<V, 1>(&mut state);
        rest.copy_from_slice(&e.lanes()[..rest.len()]);
        total = total.add(V::load(&load(rest, 0)));
    }
    sum(&total.lanes())
}

#[inline(always)]
fn sum_body<V: Vector>(values: &[f64]) -> f64 {
    let mut total = V::splat(0.0);
    for g in 0..values.len().div_ceil(LANES) {
        total = total.add(V::load(&load(values, g)));
    }
    sum(&total.lanes())
}

#[inline(always)]
fn divide_body<V: Vector>(values: &mut [f64], by: f64) {
    let (groups, rest) = values.as_chunks_mut::<LANES>();
    for x in groups {
        *x = V::load(x).div(V::splat(by)).lanes();
    }
    rest.iter_mut().for_each(|x| *x /= by);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Level, available};
    use crate::rng::{CHUNK, Purpose, Seed};

    fn generators(chunk: u64) -> Generators {
        Generators::seeded(&mut Seed(1).stream(Purpose::Weights, 0, chunk))
    }

    fn filled(level: Level, generators: &Generators, n: usize) -> (Vec<u64>, u64) {
        let mut out = vec![0.0; n];
        let total = exponentials(level, generators, &mut out);
        assert_eq!(total, sum_in_lanes(level, &out), "{level:?}, n {n}");
        (out.iter().map(|e| e.to_bits()).collect(), total.to_bits())
    }

    #[test]
    fn every_level_gives_the_same_bits() {
        let lengths = (0..4 * LANES).chain([CHUNK - 1, CHUNK]);
        for (chunk, n) in (0..).zip(lengths) {
            let plain = filled(Level::PLAIN, &generators(chunk), n);
            let divided = |level| {
                let mut values: Vec<f64> = plain.0.iter().map(|&bits| f64::from_bits(bits)).collect();
                divide(level, &mut values, 3.7);
                values
            };
            for level in available() {
                assert_eq!(filled(level, &generators(chunk), n), plain, "{level:?}, n {n}");
                assert_eq!(divided(level), divided(Level::PLAIN), "{level:?}, n {n}");
            }
        }
    }

    #[test]
    fn the_first_variates_do_not_depend_on_how_many_follow() {
        let (all, _) = filled(Level::current(), &generators(0), CHUNK);
        for n in [1, 7, 8, 9, 100, 1023] {
            assert_eq!(filled(Level::current(), &generators(0), n).0, all[..n]);
        }
    }

    /// From the state (1, 2, 3, 4), as the authors' C code gives them.
    const WORDS: [u64; 10] = [
        41943041,
        58720359,
        3588806011781223,
        3591011842654386,
        9228616714210784205,
        9973669472204895162,
        14011001112246962877,
        12406186145184390807,
        15849039046786891736,
        10450023813501588000,
    ];

    #[test]
    fn lanes_are_xoshiro256_plus_plus() {
        let all = Generators([1, 2, 3, 4].map(|word| [word; LANES]));
        for level in available() {
            let mut out = vec![0.0; WORDS.len() * LANES];
            exponentials(level, &all, &mut out);
            for (group, word) in out.as_chunks::<LANES>().0.iter().zip(WORDS) {
                let exact = -libm::log(((word >> 12) as f64 + 0.5) / 2f64.powi(52));
                assert!(group.iter().all(|e| (e / exact - 1.0).abs() < 2.0 * f64::EPSILON), "{level:?}");
            }
        }
    }

    #[test]
    fn lanes_are_seeded_one_after_the_other() {
        let mut rng = Seed(1).stream(Purpose::Weights, 0, 0);
        let seeded = generators(0);
        for l in 0..LANES {
            assert_eq!(seeded.0.map(|word| word[l]), std::array::from_fn(|_| rng.next_u64()));
        }
    }

    #[test]
    fn uniforms_keep_clear_of_0_and_1() {
        fn end<V: Vector>(word: u64) -> f64 {
            uniform::<V>(V::Words::splat(word)).lanes()[0]
        }
        let half = f64::EPSILON / 2.0;
        assert_eq!(end::<super::super::vector::Plain>(0), half);
        assert_eq!(end::<super::super::vector::Plain>(u64::MAX), 1.0 - half);
    }
}
