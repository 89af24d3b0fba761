//! The few functions of statistics that the rule needs. What is transcendental comes from the
//! pinned `libm`, because the platforms' own differ in the last bit and every host has to decide
//! alike; square roots are exact everywhere.

/// How many noise units a pair's difference may count at most, in either direction.
pub(super) const CLIP: f64 = 2.5;

/// The variance that is left of a standard normal one by that: the `h` with
/// `h = E[min(Z², CLIP² h)]`.
pub(super) const CLIP_VARIANCE: f64 = 0.975_580_385_609_822_7;

/// The quantile of a two-sided interval of 95 %.
const TWO_SIDED_95: f64 = 1.96;

/// The normal deviate that is about as improbable as Student's `t` with that many degrees of
/// freedom (Wallace 1959). It errs on the strict side with one to three of them.
pub(super) fn t_to_z(t: f64, freedom: f64) -> f64 {
    let freedom = freedom.max(0.5);
    let sign = if t > 0.0 {
        1.0
    } else if t < 0.0 {
        -1.0
    } else {
        0.0
    };
    sign * (freedom * libm::log1p(t * t / freedom)).sqrt() * (8.0 * freedom + 1.0)
        / (8.0 * freedom + 3.0)
}

/// How many standard errors a two-sided interval of 95 % reaches to either side.
pub(super) fn t_of_95(freedom: f64) -> f64 {
    let freedom = freedom.max(0.5);
    let z = TWO_SIDED_95 * (8.0 * freedom + 3.0) / (8.0 * freedom + 1.0);
    (freedom * libm::expm1(z * z / freedom)).sqrt()
}

/// The `z` that a standard normal deviate exceeds with probability `p` (Acklam's rational
/// approximation, relative error below 1.2e-9).
pub(super) fn upper_quantile(p: f64) -> f64 {
    const LOW: f64 = 0.02425;
    let p = p.clamp(1e-300, 1.0 - 1e-16);
    if p < LOW {
        -tail(p)
    } else if p > 1.0 - LOW {
        tail(1.0 - p)
    } else {
        -middle(p)
    }
}

fn tail(p: f64) -> f64 {
    const C: [f64; 6] = [
        -0.007_784_894_002_430_293,
        -0.322_396_458_041_136_5,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 4] = [
        0.007_784_695_709_041_462,
        0.322_467_129_070_039_8,
        2.445_134_137_142_996,
        3.754_408_661_907_416,
    ];
    let t = (-2.0 * libm::log(p)).sqrt();
    polynomial(&C, t) / (polynomial(&D, t) * t + 1.0)
}

fn middle(p: f64) -> f64 {
    const A: [f64; 6] = [
        -39.696_830_286_653_76,
        220.946_098_424_520_5,
        -275.928_510_446_968_7,
        138.357_751_867_269,
        -30.664_798_066_147_16,
        2.506_628_277_459_239,
    ];
    const B: [f64; 5] = [
        -54.476_098_798_224_06,
        161.585_836_858_040_9,
        -155.698_979_859_886_6,
        66.801_311_887_719_72,
        -13.280_681_552_885_72,
    ];
    let u = p - 0.5;
    let r = u * u;
    polynomial(&A, r) * u / (polynomial(&B, r) * r + 1.0)
}

/// Horner's scheme, the highest power first.
fn polynomial(coefficients: &[f64], x: f64) -> f64 {
    let (first, rest) = coefficients.split_first().unwrap_or((&0.0, &[]));
    rest.iter().fold(*first, |sum, next| sum * x + next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64, within: f64) {
        assert!(
            (found - expected).abs() <= within,
            "{found}, not {expected}"
        );
    }

    #[test]
    fn t_becomes_the_deviates_of_the_stored_vectors() {
        for (t, freedom, z) in [
            (2.0, 1.0, 1.037_975),
            (3.0, 2.0, 1.652_116),
            (3.0, 5.0, 2.163_410),
            (4.0, 10.0, 3.016_650),
            (3.0, 38.5, 2.825_609),
        ] {
            close(t_to_z(t, freedom), z, 5e-7);
            close(t_to_z(-t, freedom), -z, 5e-7);
        }
        assert_eq!(t_to_z(0.0, 7.0), 0.0);
    }

    #[test]
    fn quantiles_are_those_of_the_stored_vectors() {
        for (p, z) in [
            (0.1, 1.281_552),
            (0.01, 2.326_348),
            (0.001, 3.090_232),
            (1e-6, 4.753_424),
        ] {
            close(upper_quantile(p), z, 5e-7);
            close(upper_quantile(1.0 - p), -z, 5e-7);
        }
        close(upper_quantile(0.5), 0.0, 1e-15);
        assert!(upper_quantile(0.0).is_finite());
    }

    #[test]
    fn quantiles_only_fall_as_probabilities_rise() {
        let quantiles: Vec<f64> = (1..1000)
            .map(|n| upper_quantile(f64::from(n) / 1000.0))
            .collect();
        assert!(quantiles.windows(2).all(|pair| pair[0] > pair[1]));
    }

    /// Student's own table: 2.228 at 10 degrees of freedom, 2.042 at 30, 1.96 without end.
    #[test]
    fn intervals_are_about_as_wide_as_students() {
        close(t_of_95(10.0), 2.228, 0.01);
        close(t_of_95(30.0), 2.042, 0.002);
        close(t_of_95(1e6), 1.96, 1e-4);
        assert!(t_of_95(1.0) > 12.7, "strict where little is known");
    }

    #[test]
    fn a_t_beyond_all_numbers_is_still_a_deviate() {
        assert_eq!(t_to_z(1e200, 3.0), f64::INFINITY);
        assert_eq!(t_to_z(-1e200, 3.0), f64::NEG_INFINITY);
    }
}
