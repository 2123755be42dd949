"""Runs tests on a native layer built with the compiler's sanitizers; any report of theirs is a failure.

    python tools/sanitize.py address|thread [--jobs N] [pytest arguments]

address: AddressSanitizer and UndefinedBehaviorSanitizer in the C++ layer, overflow checks and debug assertions in the
Rust core. thread: ThreadSanitizer in both, which needs a nightly Rust with the source of its standard library. Without
pytest arguments: the files of tests that use the native layer most, each in a process of its own, and a line for each
at the end. Everything lies in build/sanitize/<kind>: the build, a copy of the tree, and the reports, a file
for each process. Needs g++ with its sanitizer libraries, cargo, CMake, ninja and pybind11.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OWN = ROOT / "tools" / "sanitizers"
BUILD = ROOT / "build" / "sanitize"
TARGET = "x86_64-unknown-linux-gnu"
# What is no part of Python, native layer or tests.
NOT_COPIED = ("extension/", "notebooks/", "docs/images/", "docs/results/")
NATIVE_TESTS = (
    "tests/scheduler/test_device_health.py",
    "tests/native/test_native_threads.py",
    "tests/scheduler/test_scheduler_pause.py",
    "tests/sim/test_sim_device.py",
    "tests/sim/test_sim_faults.py",
    "tests/sim/test_sim_groups.py",
    "tests/sim/test_sim_kernels.py",
    "tests/sim/test_sim_partitions.py",
    "tests/sim/test_slices.py",
    "tests/sim/test_check_findings.py",
    "tests/sim/test_check_life.py",
    "tests/telemetry/test_cell_time_sim.py",
    "tests/core/test_context_lost.py",
    "tests/native/test_cuda_table.py",
    "tests/native/test_cuda_launchers.py",
    "tests/native/test_cuda_variants.py",
    "tests/scheduler/test_gate_process.py",
    "tests/compat/test_rust_transfers.py",
    "tests/scheduler/test_scheduler_threads.py",
    "tests/worker/test_worker.py",
    "tests/array/test_array.py",
    "tests/telemetry/test_cell_time.py",
    "tests/scheduler/test_context_classes.py",
    "tests/scheduler/test_context_commands.py",
    "tests/scheduler/test_context_limits.py",
    "tests/scheduler/test_contexts.py",
    "tests/array/test_dlpack_export.py",
    "tests/array/test_dlpack_import.py",
    "tests/memory/test_eviction.py",
    "tests/scheduler/test_gate_slices.py",
    "tests/core/test_graphs.py",
    "tests/core/test_interrupt.py",
    "tests/jit/test_kernel_arguments.py",
    "tests/jit/test_launches.py",
    "tests/memory/test_memory_pool.py",
    "tests/native/test_native_arrays.py",
    "tests/native/test_native_lifetime.py",
    "tests/scheduler/test_pacing.py",
    "tests/jit/test_sliced_kernels.py",
    "tests/scheduler/test_sm_partitions.py",
    "tests/core/test_streams.py",
    "tests/memory/test_transfer_engine.py",
    "tests/ops/test_transfers.py",
)


@dataclass(frozen=True)
class Kind:
    """flags: of the C++ compiler. libraries: its runtimes, loaded first. planted: what must be found in planted.cpp.
    left_out: tests that fail for another reason than a fault."""

    flags: tuple[str, ...]
    libraries: tuple[str, ...]
    options: Mapping[str, tuple[str, ...]]
    planted: Mapping[str, str]
    left_out: tuple[str, ...]


_CRASHES = ("handle_segv=0", "handle_sigbus=0", "handle_sigfpe=0", "handle_abort=0")
_COMMON = ("-O1", "-g1", "-fno-omit-frame-pointer")
KINDS = {
    "address": Kind(
        (*_COMMON, "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"),
        ("libasan.so", "libubsan.so"),
        # Leaks: the interpreter's own are too many to tell ours from. Crashes: some tests have children crash; that of
        # any other process fails its test by itself.
        {"ASAN_OPTIONS": ("detect_leaks=0", *_CRASHES), "UBSAN_OPTIONS": ("print_stacktrace=1", "abort_on_error=1")},
        {"planted_overflow": "heap-buffer-overflow", "planted_undefined": "signed integer overflow"},
        # It measures how much memory the process has, and the sanitizer keeps what was freed.
        ("tests/native/test_native_lifetime.py::test_nothing_is_leaked",),
    ),
    "thread": Kind(
        (*_COMMON, "-fsanitize=thread"),
        ("libtsan.so",),
        {"TSAN_OPTIONS": (f"suppressions={OWN / 'thread.supp'}", "die_after_fork=0", "history_size=4", *_CRASHES)},
        {"planted_race": "data race"},
        (
            # It needs launches within 50 us of each other.
            "tests/telemetry/test_cell_time.py::test_an_end_that_nobody_marked_is_not_guessed_and_then_learnt",
            # It takes a line of launches to be full after 50 ms.
            "tests/scheduler/test_pacing.py::test_a_task_that_waits_for_room_can_be_cancelled",
            # The sanitizer hands signals on late, and the simulator ends faulty and endless kernels by them.
            "tests/sim/test_sim_faults.py",
            "tests/scheduler/test_device_health.py",
            "tests/sim/test_check_life.py::test_endless_kernels_end_at_their_time_limit",
            # Up to 16384 stacks are as many threads to the sanitizer: more pieces of memory than Linux allows.
            "tests/sim/test_sim_groups.py",
        ),
    ),
}


class CannotRun(Exception):
    """Something that the run needs is missing; says what."""


def environment(kind: str, folder: Path) -> dict[str, str]:
    """The variables of processes that the sanitizer watches. Reports go to folder/reports. Raises CannotRun."""
    chosen = KINDS[kind]
    libraries = [_library(name) for name in chosen.libraries]
    # Their interceptors of exceptions look for the C++ library at once.
    variables = {**os.environ, "LD_PRELOAD": " ".join([*libraries, _library("libstdc++.so.6")])}
    for variable, options in chosen.options.items():
        options_of_tool = (*options, f"log_path={folder / 'reports' / variable.partition('_')[0].lower()}")
        variables[variable] = ":".join([*options_of_tool, *filter(None, [os.environ.get(variable)])])
    # The interpreter's own allocator would hide where its small objects end, and how the threads of NumPy's matrix
    # products wait for each other is not seen.
    variables |= {"PYTHONMALLOC": "malloc", "OPENBLAS_NUM_THREADS": "1"}
    return {**variables, "PYGPUKIT_BACKEND": "sim", "PYTHONDONTWRITEBYTECODE": "1"}


def _library(name: str) -> str:
    compiler = os.environ.get("CXX", "c++")
    answer = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    path = Path(answer.stdout.strip())
    if not path.is_absolute() or not path.exists():
        raise CannotRun(f"{compiler} has no {name}: install the sanitizer libraries of g++ (CXX chooses another one)")
    return str(path.resolve())


def command(kind: str, arguments: Sequence[str]) -> list[str]:
    """The command that starts Python so that the sanitizer can work."""
    # ThreadSanitizer needs addresses that are not spread at random further than it expects.
    fixed = ["setarch", "-R"] if kind == "thread" else []
    return [*fixed, sys.executable, *arguments]


def reports(folder: Path) -> dict[Path, str]:
    """The reports that the sanitizers have written, by file."""
    texts = {path: path.read_text(errors="replace") for path in sorted((folder / "reports").glob("*"))}
    return {path: text for path, text in texts.items() if text.strip()}


def clear_reports(folder: Path) -> None:
    """Makes an empty folder for reports."""
    shutil.rmtree(folder / "reports", ignore_errors=True)
    (folder / "reports").mkdir(parents=True)


def missed(kind: str, folder: Path) -> list[str]:
    """Names of the planted faults that are not found: a sanitizer that misses them would miss any. Raises CannotRun."""
    library = folder / "planted.so"
    flags = [*KINDS[kind].flags, "-fPIC", "-shared", "-pthread"]
    subprocess.run([os.environ.get("CXX", "c++"), *flags, OWN / "planted.cpp", "-o", library], check=True)
    names = []
    for function, words in KINDS[kind].planted.items():
        clear_reports(folder)
        call = f"import ctypes; ctypes.CDLL({str(library)!r}).{function}(4)"
        called = subprocess.run(
            command(kind, ["-c", call]), env=environment(kind, folder), capture_output=True, text=True, check=False
        )
        if not any(words in text for text in [called.stderr, *reports(folder).values()]):
            names.append(function)
    clear_reports(folder)
    return names


def build(kind: str, folder: Path, jobs: int) -> Path:
    """Builds the extension module; returns the shared object. Raises CannotRun."""
    variables = {
        **os.environ,
        "CARGO_TARGET_DIR": str(folder / "target"),
        "CARGO_PROFILE_DEV_OPT_LEVEL": "1",
        "CARGO_PROFILE_DEV_DEBUG": "line-tables-only",
        "PYGPUKIT_NATIVE_FLAGS": " ".join(KINDS[kind].flags),
        "PYO3_PYTHON": sys.executable,
    }
    if shutil.which("ccache"):
        variables["CMAKE_CXX_COMPILER_LAUNCHER"] = "ccache"
    cargo, built = ["cargo", "build"], folder / "target" / "debug"
    if kind == "thread":
        # The core's locks order what the C++ layer does: those of the standard library must be seen, too.
        cargo = ["cargo", "+nightly", "build", "-Zbuild-std", "--target", TARGET]
        built = folder / "target" / TARGET / "debug"
        variables["RUSTFLAGS"] = "-Zsanitizer=thread -Cllvm-args=-tsan-instrument-memintrinsics=0"
        _require_nightly()
    cargo += ["--locked", "-p", "pygpukit-python", "--manifest-path", str(ROOT / "rust" / "Cargo.toml")]
    subprocess.run([*cargo, *(["-j", str(jobs)] if jobs else [])], env=variables, check=True)
    return built / "lib_core.so"


def _require_nightly() -> None:
    asked = subprocess.run(["rustc", "+nightly", "--print", "sysroot"], capture_output=True, text=True, check=False)
    if asked.returncode or not (Path(asked.stdout.strip()) / "lib" / "rustlib" / "src" / "rust" / "library").is_dir():
        raise CannotRun("thread needs: rustup toolchain install nightly --profile minimal --component rust-src")


def copy_tree(folder: Path, module: Path) -> Path:
    """A copy of the working tree with this module in it, so that the tests import no other one."""
    tree = folder / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in listed.stdout.decode().split("\0"):
        if name and not name.startswith(NOT_COPIED) and (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    shutil.copy2(module, tree / "pygpukit" / f"_core{sysconfig.get_config_var('EXT_SUFFIX')}")
    return tree


def watched(kind: str, folder: Path, arguments: Sequence[str], **options: Any) -> int:
    """Runs Python; prints every report, also those of its children. 0 when there are none and Python ends with 0."""
    clear_reports(folder)
    variables = {**environment(kind, folder), "PYTHONPATH": str(folder / "tree")}
    code = subprocess.run(command(kind, arguments), env=variables, check=False, **options).returncode
    written = reports(folder)
    for path, text in written.items():
        print(f"\n==== {path} ====\n{text}")
    print(f"{kind}: the run ended with {code}, {len(written)} processes had something to report")
    return code or int(bool(written))


def run(kind: str, arguments: Sequence[str], jobs: int = 0) -> int:
    """0 when the tests pass and no sanitizer reports anything. Raises CannotRun."""
    folder = BUILD / kind
    folder.mkdir(parents=True, exist_ok=True)
    if names := missed(kind, folder):
        raise CannotRun(f"the sanitizer did not find what was planted: {', '.join(names)}; see {OWN / 'planted.cpp'}")
    tree = copy_tree(folder, build(kind, folder, jobs))
    # UndefinedBehaviorSanitizer beside AddressSanitizer writes to the error output alone, and then ends the process.
    options = ["-p", "no:cacheprovider", "-o", "timeout=900", "--capture=sys"]
    left_out = KINDS[kind].left_out
    options += [f"--deselect={name}" for name in left_out]
    if arguments:
        return watched(kind, folder, ["-m", "pytest", *options, *arguments], cwd=tree)
    codes = {}
    for name in [name for name in NATIVE_TESTS if name not in left_out]:
        codes[name] = watched(kind, folder, ["-m", "pytest", *options, name], cwd=tree)
    for name, code in codes.items():
        print(f"{kind}: {name}: {f'ended with {code}' if code else 'clean'}")
    return int(any(codes.values()))


def main() -> int:
    parser = argparse.ArgumentParser(description="Run tests on a native layer built with sanitizers.")
    parser.add_argument("kind", choices=sorted(KINDS))
    parser.add_argument("--jobs", type=int, default=0, help="how many compilers at a time")
    chosen, arguments = parser.parse_known_args()
    try:
        return run(chosen.kind, arguments, chosen.jobs)
    except (CannotRun, subprocess.CalledProcessError) as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
