//! Which machine code the kernels run. A [`Level`] above plain exists only where the CPU has been asked: naming one that it
//! lacks would be an illegal instruction.

use std::fmt;
use std::sync::OnceLock;

/// The names of levels, as people ask for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Simd {
    Plain,
    Avx2,
    Avx512,
}

impl Simd {
    pub fn name(self) -> &'static str {
        match self {
            Simd::Plain => "plain",
            Simd::Avx2 => "avx2",
            Simd::Avx512 => "avx512",
        }
    }
}

/// A level that this CPU has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level(Simd);

static LEVEL: OnceLock<Level> = OnceLock::new();

impl Level {
    /// Every CPU has it.
    pub const PLAIN: Level = Level(Simd::Plain);

    /// The best level this CPU has.
    pub fn detected() -> Level {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            if avx2 && is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq") {
                return Level(Simd::Avx512);
            }
            if avx2 {
                return Level(Simd::Avx2);
            }
        }
        Level::PLAIN
    }

    /// The level of this name. `Err` says what the CPU has.
    pub fn named(simd: Simd) -> Result<Level, Level> {
        let best = Level::detected();
        if simd <= best.0 { Ok(Level(simd)) } else { Err(best) }
    }

    /// The level of this process.
    pub fn current() -> Level {
        *LEVEL.get_or_init(Level::detected)
    }

    /// Makes it the level of this process, before any kernel has run. `Err` says which one that is already.
    pub fn pin(self) -> Result<(), Level> {
        match *LEVEL.get_or_init(|| self) {
            level if level == self => Ok(()),
            level => Err(level),
        }
    }

    pub fn simd(self) -> Simd {
        self.0
    }

    pub fn name(self) -> &'static str {
        self.0.name()
    }
}

impl fmt::Debug for Level {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Every level this CPU can run.
pub fn available() -> impl Iterator<Item = Level> {
    [Simd::Plain, Simd::Avx2, Simd::Avx512].into_iter().filter_map(|simd| Level::named(simd).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_that_the_cpu_lacks_cannot_be_had() {
        let best = Level::detected();
        assert_eq!(available().last(), Some(best));
        for simd in [Simd::Plain, Simd::Avx2, Simd::Avx512] {
            assert_eq!(Level::named(simd).ok().map(Level::simd), (simd <= best.simd()).then_some(simd));
        }
    }
}
