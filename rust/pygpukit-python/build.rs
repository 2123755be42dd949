//! Builds native/ with CMake and links it, as a static library, into the extension module.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

fn python_says(python: &str, code: &str) -> String {
    let output = Command::new(python)
        .args(["-c", code])
        .output()
        .unwrap_or_else(|error| panic!("cannot run the Python interpreter {python}: {error}"));
    assert!(
        output.status.success(),
        "{python} could not answer `{code}`: {}\nInstall pybind11 3 into the build environment.",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_string()
}

/// CMake remembers the interpreter and the tools it found; another interpreter, or the next isolated build environment, needs
/// a fresh folder.
fn start_over_for(tools: &str) {
    let out = PathBuf::from(env::var("OUT_DIR").expect("set by cargo"));
    let stamp = out.join("tools.txt");
    if fs::read_to_string(&stamp).ok().as_deref() == Some(tools) {
        return;
    }
    let build = out.join("build");
    if build.exists() {
        fs::remove_dir_all(&build).unwrap_or_else(|error| panic!("cannot remove {}: {error}", build.display()));
    }
    fs::write(&stamp, tools).unwrap_or_else(|error| panic!("cannot write {}: {error}", stamp.display()));
}

fn main() {
    let native = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("set by cargo")).join("../../native");
    for part in [
        "CMakeLists.txt",
        "cmake",
        "include",
        "bindings",
        "launch",
        "jit",
        "cuda",
        "sim",
        "host",
        "program",
    ] {
        println!("cargo:rerun-if-changed={}", native.join(part).display());
    }
    println!("cargo:rerun-if-env-changed=PYO3_PYTHON");
    println!("cargo:rerun-if-env-changed=PYGPUKIT_NATIVE_FLAGS");
    println!("cargo:rerun-if-env-changed=CMAKE_ARGS");

    let python = env::var("PYO3_PYTHON").unwrap_or_else(|_| "python3".to_string());
    let executable = python_says(&python, "import sys; print(sys.executable)");
    let pybind11 = python_says(&python, "import pybind11; print(pybind11.get_cmake_dir())");

    let ninja = python_says(&python, "import shutil; print(shutil.which('ninja') or 'ninja')");
    start_over_for(&format!("{executable}\n{pybind11}\n{ninja}"));

    let mut config = cmake::Config::new(&native);
    config
        .profile("Release")
        .generator("Ninja")
        .define("CMAKE_MAKE_PROGRAM", &ninja)
        .define("Python_EXECUTABLE", &executable)
        .define("Python_FIND_STRATEGY", "LOCATION")
        .define("pybind11_DIR", &pybind11);
    if let Ok(flags) = env::var("PYGPUKIT_NATIVE_FLAGS") {
        config.define("CMAKE_CXX_FLAGS_RELEASE", flags); // in place of CMake's -O3 -DNDEBUG
    }
    // After ours, which they can replace; the words are divided at spaces, as scikit-build-core and conda do.
    for argument in env::var("CMAKE_ARGS").unwrap_or_default().split_whitespace() {
        config.configure_arg(argument);
    }
    let built = config.build();
    println!("cargo:rustc-link-search=native={}", built.join("lib").display());
    println!("cargo:rustc-link-lib=static=pygpukit_native");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("macos") {
        println!("cargo:rustc-link-lib=c++");
    } else if env::var("CARGO_CFG_TARGET_ENV").as_deref() != Ok("msvc") {
        println!("cargo:rustc-link-lib=stdc++");
        println!("cargo:rustc-link-lib=dl");
        println!("cargo:rustc-link-lib=pthread");
    }
}
