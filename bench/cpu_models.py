"""Suite `cpu_models`: chat models on the processor, beside llama.cpp (xllamacpp, from PyPI) with the same file.

Tokens a second of an answer, and of a prompt, by as many threads as the machine has cores, greedy. Each measurement is
an interpreter of its own, ours and the peer's in turns, and of each the best counts: a machine that does other things
makes both slower, never faster. `python -m bench.cpu_models ours|xllamacpp FILE` prints one as JSON.
Nothing is fetched: a model that is not on this machine is a line that says so.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

from pygpukit.benchmark.result import BenchmarkResult, Unavailable

CATEGORY = "cpu_models"
MODELS = ("smollm2-135m-instruct", "qwen2.5-coder-0.5b-instruct", "qwen2.5-coder-1.5b-instruct")
PEER = "xllamacpp"
QUESTION = "Write a CUDA kernel that adds two vectors, and explain each line of it. " * 8
CONTEXT, TOKENS, ROUNDS = 1024, 64, 3
KINDS = {"answer": "tokens of an answer", "prompt": "tokens of a prompt"}
TIMEOUT_S = 600


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    """Ours alone; on a GPU nothing."""
    yield from _measured(("ours",), 1 if quick else ROUNDS)


def peer_rows(_: Sequence[BenchmarkResult], quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    """Both, in turns."""
    yield from _measured(("ours", PEER), 1 if quick else ROUNDS)


def _measured(who: tuple[str, ...], rounds: int) -> Iterator[BenchmarkResult | Unavailable]:
    from pygpukit.core.backend import ensure, is_sim
    from pygpukit.jit.locate import models_directory
    from pygpukit.models import catalogue, fetch

    ensure()
    for name in MODELS:
        if not is_sim():
            yield Unavailable(f"{CATEGORY}/{name}", "measures the processor: set PYGPUKIT_BACKEND=sim")
        elif not fetch.present(entry := catalogue.ENTRIES[name]):
            yield Unavailable(f"{CATEGORY}/{name}", f"not on this machine; pygpukit models get {name}")
        else:
            file = str(models_directory() / entry.name / entry.opens)
            try:
                runs = [{one: _run(one, file) for one in who} for _ in range(rounds)]
            except RuntimeError as error:
                yield Unavailable(f"{CATEGORY}/{name} {who[-1]}", str(error))
                continue
            yield from _rows_of(name, who, runs)


def _rows_of(
    name: str, who: tuple[str, ...], runs: list[dict[str, dict[str, float]]]
) -> Iterator[BenchmarkResult | Unavailable]:
    for kind, what in KINDS.items():
        samples = {one: [each[one][kind] for each in runs] for one in who}
        peer = who[-1] if len(who) > 1 else None
        yield BenchmarkResult(
            f"{name}: {what}",
            CATEGORY,
            {"prompt": int(runs[0]["ours"]["prompt_tokens"]), "tokens": TOKENS},
            value=max(samples["ours"]),
            samples=samples["ours"],
            iterations=len(runs),
            unit="tokens/s",
            better="higher",
            peer=peer,
            peer_value=None if peer is None else max(samples[peer]),
        )


def _run(who: str, file: str) -> dict[str, float]:
    """One measurement. Raises RuntimeError with the last line that it said where there is none."""
    command = [sys.executable, "-m", __name__, who, file]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no message"])[-1][-200:])
    result: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def ours(file: str) -> dict[str, float]:
    """Of this package, in this process."""
    import pygpukit as gp

    model = gp.llm.load(file, context=CONTEXT, progress=False)
    if model.tokenizer is None:
        raise SystemExit("the file has no tokenizer")
    prompt = model.tokenizer.encode(QUESTION)
    model.stream(prompt[:8], 4, ignore_eos=True).complete()  # what a process does once
    answer = model.stream(prompt, 1 + TOKENS, ignore_eos=True)
    start = time.perf_counter()
    next(answer)
    first = time.perf_counter()
    for _ in answer:
        pass
    took = time.perf_counter() - first
    return {"answer": TOKENS / took, "prompt": len(prompt) / (first - start), "prompt_tokens": len(prompt)}


def xllamacpp(file: str) -> dict[str, float]:
    """Of llama.cpp, as it times itself."""
    import xllamacpp as peer

    from pygpukit._core import native

    params = peer.CommonParams()
    params.model.path, params.n_ctx, params.n_parallel, params.verbosity = file, CONTEXT, 1, -1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = native.host_threads()
    asked = {"prompt": QUESTION, "n_predict": 1 + TOKENS, "temperature": 0, "ignore_eos": True, "cache_prompt": False}
    answer = peer.Server(params).handle_completions(asked)
    times = (json.loads(answer) if isinstance(answer, str | bytes) else answer)["timings"]
    return {
        "answer": times["predicted_per_second"],
        "prompt": times["prompt_per_second"],
        "prompt_tokens": times["prompt_n"],
    }


if __name__ == "__main__":
    print(json.dumps({"ours": ours, PEER: xllamacpp}[sys.argv[1]](sys.argv[2])))
