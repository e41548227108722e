//! Colours that people with any colour vision tell apart, on a light background.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour(pub u8, pub u8, pub u8);

pub const WHITE: Colour = Colour(255, 255, 255);
pub const INK: Colour = Colour(34, 34, 34);
/// Notes and labels of axes.
pub const GREY: Colour = Colour(96, 96, 96);
/// What is there for comparison only.
pub const PALE: Colour = Colour(176, 176, 176);
/// Lines behind the data.
pub const FAINT: Colour = Colour(228, 228, 228);

/// Okabe and Ito (2008), without the yellow, which a white background swallows; the darkest first.
pub const CATEGORIES: [Colour; 7] = [
    Colour(0, 114, 178),
    Colour(213, 94, 0),
    Colour(0, 158, 115),
    Colour(204, 121, 167),
    Colour(86, 180, 233),
    Colour(230, 159, 0),
    Colour(34, 34, 34),
];

/// Dashes that tell lines apart where colours come round again.
pub const DASHES: [&[f64]; 3] = [&[], &[5.0, 2.5], &[1.5, 2.0]];

/// The colour of the i-th of several things, and its dashes.
pub fn category(i: usize) -> (Colour, &'static [f64]) {
    (CATEGORIES[i % CATEGORIES.len()], DASHES[(i / CATEGORIES.len()) % DASHES.len()])
}

/// Between two colours.
pub fn blend(a: Colour, b: Colour, share: f64) -> Colour {
    let mix =
        |a: u8, b: u8| (f64::from(a) + share.clamp(0.0, 1.0) * (f64::from(b) - f64::from(a))).round() as u8;
    Colour(mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2))
}

/// White to dark blue through the hues of viridis, lightness falling evenly: for densities on white.
const SEQUENTIAL: [Colour; 8] = [
    Colour(255, 255, 255),
    Colour(222, 238, 219),
    Colour(160, 214, 178),
    Colour(91, 186, 158),
    Colour(43, 152, 148),
    Colour(38, 114, 138),
    Colour(52, 74, 122),
    Colour(62, 26, 88),
];

/// Blue, white, orange-red (after ColorBrewer's RdBu): for what has a sign.
const DIVERGING: [Colour; 9] = [
    Colour(33, 102, 172),
    Colour(67, 147, 195),
    Colour(146, 197, 222),
    Colour(209, 229, 240),
    Colour(250, 250, 250),
    Colour(253, 219, 199),
    Colour(244, 165, 130),
    Colour(214, 96, 77),
    Colour(178, 24, 43),
];

fn along(colours: &[Colour], share: f64) -> Colour {
    let place = share.clamp(0.0, 1.0) * (colours.len() - 1) as f64;
    let i = (place as usize).min(colours.len() - 2);
    blend(colours[i], colours[i + 1], place - i as f64)
}

/// From 0, the background, to 1.
pub fn sequential(share: f64) -> Colour {
    along(&SEQUENTIAL, if share.is_nan() { 0.0 } else { share })
}

/// From −1 to 1.
pub fn diverging(value: f64) -> Colour {
    if value.is_nan() { FAINT } else { along(&DIVERGING, 0.5 + 0.5 * value) }
}

/// Perceived brightness, 0 to 1.
pub fn lightness(c: Colour) -> f64 {
    (0.2126 * f64::from(c.0) + 0.7152 * f64::from(c.1) + 0.0722 * f64::from(c.2)) / 255.0
}
