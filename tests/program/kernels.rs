//! What the compiler made of the kernels.

/// An instruction of AVX2 or AVX-512 that is a function of its own is called where it should stand: a closure was not inlined into the
/// code that is compiled for the feature, and the kernel is many times slower. Builds in small pieces, as incremental ones are,
/// inline less and are no release.
#[test]
#[cfg(target_arch = "x86_64")]
fn no_vector_instruction_is_called() {
    if option_env!("CARGO_INCREMENTAL").is_some_and(|on| on != "0") || cfg!(debug_assertions) {
        println!("skipped: this is no release build");
        return;
    }
    let program = std::fs::read(env!("CARGO_BIN_EXE_npl")).unwrap();
    // Symbols as `_ZN4core9core_arch3x867avx512f14_mm512_mul_pd17h…E` have them.
    let marks = [&b"_mm256_"[..], b"_mm512_"];
    let found = |mark: &[u8]| {
        let places = program.windows(mark.len()).enumerate().filter(|(_, w)| *w == mark).map(|(i, _)| i);
        places
            .map(|i| String::from_utf8_lossy(&program[i..(i + 24).min(program.len())]).into_owned())
            .collect::<Vec<_>>()
    };
    let called: Vec<String> = marks.iter().flat_map(|mark| found(mark)).collect();
    assert!(called.is_empty(), "called, not inlined: {called:?}");
}
