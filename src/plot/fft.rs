//! A fast Fourier transform of a power of two, and what density estimates need of it.

use std::f64::consts::PI;

pub type Complex = (f64, f64);

fn times(a: Complex, b: Complex) -> Complex {
    (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
}

/// In place, radix 2; the length is a power of two. Backwards without the division by the length.
fn transform(x: &mut [Complex], sign: f64) {
    let n = x.len();
    debug_assert!(n.is_power_of_two());
    let shift = usize::BITS - n.trailing_zeros();
    for i in 0..n {
        let j = if n > 1 { i.reverse_bits() >> shift } else { 0 };
        if i < j {
            x.swap(i, j);
        }
    }
    let roots: Vec<Complex> = (0..n / 2)
        .map(|k| sign * 2.0 * PI * k as f64 / n as f64)
        .map(|angle| (libm::cos(angle), libm::sin(angle)))
        .collect();
    let mut half = 1;
    while half < n {
        for block in x.chunks_exact_mut(2 * half) {
            let (low, high) = block.split_at_mut(half);
            for (k, (a, b)) in low.iter_mut().zip(high).enumerate() {
                let turned = times(*b, roots[k * (n / (2 * half))]);
                *b = (a.0 - turned.0, a.1 - turned.1);
                *a = (a.0 + turned.0, a.1 + turned.1);
            }
        }
        half *= 2;
    }
}

/// Σⱼ mⱼ (k₁, k₂)(j − i) for every i, with kernels given for offsets 0 … m − 1: the first is even, the second odd.
pub fn convolve(mass: &[f64], kernels: &[Complex]) -> Vec<Complex> {
    let n = mass.len();
    let length = (2 * n).next_power_of_two();
    let mut data = vec![(0.0, 0.0); length];
    data.iter_mut().zip(mass).for_each(|(d, m)| d.0 = *m);
    let mut kernel = vec![(0.0, 0.0); length];
    for (offset, &(even, odd)) in kernels.iter().enumerate().take(n) {
        // A mass at offset +o from i reaches i through the kernel at −o.
        kernel[offset] = (even, -odd);
        kernel[(length - offset) % length] = (even, if offset == 0 { -odd } else { odd });
    }
    transform(&mut data, -1.0);
    transform(&mut kernel, -1.0);
    data.iter_mut().zip(&kernel).for_each(|(d, k)| *d = times(*d, *k));
    transform(&mut data, 1.0);
    data.truncate(n);
    data.iter_mut().for_each(|d| *d = (d.0 / length as f64, d.1 / length as f64));
    data
}

/// Σⱼ xⱼ cos(πk(2j + 1)/2n), k = 0 … n − 1.
pub fn cosines(x: &[f64]) -> Vec<f64> {
    let n = x.len();
    let mut even: Vec<Complex> = x.iter().chain(x.iter().rev()).map(|v| (*v, 0.0)).collect();
    transform(&mut even, -1.0);
    let turn = |(k, v): (usize, &Complex)| {
        let angle = -PI * k as f64 / (2 * n) as f64;
        0.5 * (v.0 * libm::cos(angle) - v.1 * libm::sin(angle))
    };
    even.iter().take(n).enumerate().map(turn).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_the_definition() {
        let x: Vec<f64> = (0..16).map(|i| ((i * 7) % 11) as f64 - 3.0).collect();
        for (k, c) in cosines(&x).iter().enumerate() {
            let angle = |j: usize| PI * (k * (2 * j + 1)) as f64 / 32.0;
            let sum: f64 = x.iter().enumerate().map(|(j, v)| v * angle(j).cos()).sum();
            assert!((c - sum).abs() < 1e-12, "{k}: {c} {sum}");
        }
        let kernels: Vec<Complex> = (0..5).map(|o| (1.0 / (1.0 + o as f64), o as f64)).collect();
        for (i, (even, odd)) in convolve(&x, &kernels).into_iter().enumerate() {
            let (mut a, mut b) = (0.0, 0.0);
            for (j, v) in x.iter().enumerate().filter(|(j, _)| j.abs_diff(i) < 5) {
                let o = j.abs_diff(i);
                a += v * kernels[o].0;
                b += v * if j < i { -kernels[o].1 } else { kernels[o].1 };
            }
            assert!((even - a).abs() < 1e-12 && (odd - b).abs() < 1e-12, "{i}: {even} {a} {odd} {b}");
        }
    }
}
