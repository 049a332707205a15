// SPDX-License-Identifier: Apache-2.0
//! Powers and logarithms of two.
//! Promise: integers only, so that one seed gives the same sizes on every machine.

/// 2^-x for x in Q16, as Q32.
pub(super) fn exp2_negative(x: u64) -> u64 {
    /// 2^-(2^-k) for k = 1 ..= 16 in Q32, each the root of the one before.
    const ROOTS: [u64; 16] = {
        let mut roots = [0; 16];
        let mut square: u128 = 1 << 31;
        let mut k = 0;
        while k < 16 {
            let root = (square << 32).isqrt();
            roots[k] = root as u64;
            square = root;
            k += 1;
        }
        roots
    };
    let (whole, fraction) = (x >> 16, x & 0xffff);
    if whole >= 32 {
        return 0;
    }
    let roots = ROOTS.iter().enumerate().filter(|(k, _)| fraction >> (15 - k) & 1 == 1);
    roots.fold(1 << 32, |product: u64, (_, root)| ((u128::from(product) * u128::from(*root)) >> 32) as u64) >> whole
}

/// The binary logarithm of a whole number from 1, in Q16, rounded down.
pub(super) fn log2(x: u64) -> u64 {
    let whole = x.max(1).ilog2();
    let mut mantissa = u128::from(x.max(1)) << (63 - whole); // from 1 to 2, in Q63
    let mut fraction = 0;
    for _ in 0..16 {
        mantissa = (mantissa * mantissa) >> 63;
        let digit = mantissa >> 64;
        mantissa >>= digit;
        fraction = fraction << 1 | digit as u64;
    }
    u64::from(whole) << 16 | fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_two_are_right_to_a_part_in_ten_million() {
        for x in (0..40 << 16).step_by(97) {
            let expected = 2f64.powf(-(x as f64) / 65_536.0) * 2f64.powi(32);
            let got = exp2_negative(x) as f64;
            assert!((got - expected).abs() <= 20.0 + expected * 1e-7, "2^-{x}/65536: {got} against {expected}");
        }
    }

    #[test]
    fn logarithms_are_right_to_their_last_digit() {
        for x in (1..2_000).chain([1 << 20, (1 << 31) - 1, u64::MAX]) {
            let (exact, got) = ((x as f64).log2() * 65_536.0, log2(x) as f64);
            assert!((-1e-6..1.0 + 1e-6).contains(&(exact - got)), "{x}: {got} against {exact}");
        }
    }
}
