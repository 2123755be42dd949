"""Development benchmarks, of a checkout only: `python -m bench` has these suites beside those of pygpukit.benchmark."""

from pygpukit.benchmark.suite import register

register(
    __name__,
    (
        "imports",
        "python_kernels",
        "context",
        "eviction",
        "overcommit",
        "scheduling",
        "promptness",
        "variants",
        "cells",
        "simulator",
        "check",
        "shapes",
        "fft",
        "sound",
        "accuracy",
        "determinism",
        "transfers",
        "scheduler",
        "partitions",
        "churn",
        "llm",
        "loading",
        "cpu_models",
        "voice",
        "dask",
    ),
    long=("shapes", "cpu_models", "dask"),
)
