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
    // Names of functions as `_RNvNtNtNtCs…_4core9core_arch3x863fma15__mm256_fmadd_pd`.
    let mark = b"core_arch3x86";
    let places = program.windows(mark.len()).enumerate().filter(|(_, window)| window == mark).map(|(i, _)| i);
    let names =
        places.map(|i| String::from_utf8_lossy(&program[i..(i + 40).min(program.len())]).into_owned());
    let name = |text: String| text.split('\0').next().unwrap_or_default().to_owned();
    let called: Vec<String> =
        names.map(name).filter(|name| name.contains("_mm256_") || name.contains("_mm512_")).collect();
    assert!(called.is_empty(), "called, not inlined: {called:?}");
}
