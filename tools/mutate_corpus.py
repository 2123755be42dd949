#!/usr/bin/env python3
"""Mutation test of the kernel suite: every mutant is caught, or listed as equivalent with a proof.

    python tools/mutate_corpus.py                     all mutants; writes docs/results/mutation.json
    python tools/mutate_corpus.py --sample 200        a sample that is the same in every run
    python tools/mutate_corpus.py --file lu.cu        one kernel's

Each mutant runs the cases of its file on the simulator in checked mode. It is caught when the checker reports a
finding, when the launch faults, when a result differs from the reference, or when it does not compile. Fails when one
survives that tests/corpus/equivalent.toml does not list, and when one that it lists is caught. Needs Python 3.11.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import os
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from corpus.case import KERNELS, Case  # noqa: E402
from corpus.cases import CASES  # noqa: E402
from corpus.mutants import Mutant, mutants  # noqa: E402

EQUIVALENT = ROOT / "tests" / "corpus" / "equivalent.toml"
REPORT = ROOT / "docs" / "results" / "mutation.json"
SURVIVED = "survived"
BROKEN = "broken"  # the suite or this tool, not the mutant
SEEDS = (1, 2)  # what one set of inputs does not show, another one may
LAUNCH_LIMIT_S = 5
MUTANT_LIMIT_S = 60  # for a process that the simulator's own limit does not stop
MUTANTS_A_PROCESS = 150  # images of modules stay loaded


def judge(cases: Sequence[Case], source: str) -> tuple[str, str]:
    """(outcome, detail) of one mutant."""
    from pygpukit.core.errors import CompileError, GPUError, KernelCheckError

    for seed in SEEDS:
        for case in cases:
            arguments = case.arguments(seed)
            try:
                verdict = case.run(arguments, source, check=True)
            except CompileError as error:
                return "compile error", str(error).splitlines()[0]
            except KernelCheckError as error:
                return "checker", error.findings[0].kind
            except GPUError as error:
                return "fault", str(error).splitlines()[0]
            if difference := case.difference(verdict, case.expected(arguments)):
                return "result", difference
    return SURVIVED, ""


def serve(connection: Connection) -> None:
    """The loop of a process of the pool: mutants in, outcomes out."""
    while True:
        mutant = connection.recv()
        try:
            outcome = judge([case for case in CASES if case.file == mutant.file], mutant.source)
        except Exception:
            outcome = (BROKEN, traceback.format_exc())
        connection.send(outcome)


@dataclass
class Server:
    """One process of the pool and what it is busy with."""

    process: Any
    connection: Connection
    mutant: Mutant | None = None
    until: float = 0.0
    served: int = 0

    @classmethod
    def start(cls) -> Server:
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
        process.start()
        theirs.close()
        return cls(process, ours)

    def take(self, mutant: Mutant) -> None:
        self.mutant, self.until = mutant, time.monotonic() + MUTANT_LIMIT_S
        self.connection.send(mutant)

    def result(self) -> tuple[str, str] | None:
        """The outcome of the mutant; None while it runs."""
        try:
            if self.connection.poll():
                outcome: tuple[str, str] = self.connection.recv()
                return outcome
        except EOFError:
            return "fault", "the process died"
        if time.monotonic() > self.until:
            return "fault", "time limit of the process"
        return None

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


def outcomes(work: Sequence[Mutant], processes: int) -> Iterator[tuple[Mutant, str, str]]:
    """(mutant, outcome, detail) as they come."""
    queue = list(reversed(work))
    servers = [Server.start() for _ in range(min(processes, len(queue)))]
    try:
        while servers:
            for server in list(servers):
                if server.mutant is not None:
                    outcome = server.result()
                    if outcome is None:
                        continue
                    if outcome[0] == BROKEN:
                        raise RuntimeError(f"{server.mutant}: {outcome[1]}")
                    yield server.mutant, *outcome
                    server.mutant, server.served = None, server.served + 1
                    if outcome[0] == "fault" or server.served >= MUTANTS_A_PROCESS:
                        server.stop()
                        servers.remove(server)
                        if queue:
                            servers.append(Server.start())
                        continue
                if queue:
                    server.take(queue.pop())
                else:
                    server.stop()
                    servers.remove(server)
            wait([server.connection for server in servers if server.mutant is not None], timeout=0.2)
    finally:
        for server in servers:
            server.stop()


def sample(work: Sequence[Mutant], count: int) -> list[Mutant]:
    """The `count` mutants whose digests are the least: the same ones in every run, spread over all files."""
    chosen = sorted(work, key=lambda mutant: blake2b(repr(mutant.key).encode(), digest_size=8).digest())[:count]
    return sorted(chosen, key=lambda mutant: mutant.key)


def equivalents() -> dict[tuple[str, int, int, str], str]:
    """The proofs in equivalent.toml by mutant. Raises ValueError for an entry without one."""
    try:
        tomllib = importlib.import_module("tomllib")
    except ModuleNotFoundError:
        raise SystemExit("the mutation test needs Python 3.11, which reads TOML") from None
    entries = tomllib.loads(EQUIVALENT.read_text())["equivalent"]
    for entry in entries:
        if len(entry["proof"].split()) < 4:
            raise ValueError(f"{EQUIVALENT.name}: {entry['file']}:{entry['line']} lacks its proof")
    return {(one["file"], one["line"], one["column"], one["mutation"]): one["proof"] for one in entries}


def report(results: Sequence[tuple[Mutant, str, str]], proofs: dict[tuple[str, int, int, str], str]) -> dict[str, Any]:
    """The contents of the result file; nothing in it depends on the machine."""
    kinds: dict[str, Counter[str]] = {}
    for mutant, outcome, _ in results:
        kinds.setdefault(mutant.kind, Counter())[outcome] += 1
    findings = Counter(detail for _, outcome, detail in results if outcome == "checker")
    return {
        "kernels": len({case.file for case in CASES}),
        "cases": len(CASES),
        "mutants": len(results),
        "outcomes": dict(sorted(Counter(outcome for _, outcome, _ in results).items())),
        "outcomes_by_kind": {kind: dict(sorted(counts.items())) for kind, counts in sorted(kinds.items())},
        "findings": dict(sorted(findings.items())),
        "equivalent": [
            {"mutant": str(mutant), "proof": proofs[mutant.key]}
            for mutant, outcome, _ in sorted(results, key=lambda result: result[0].key)
            if outcome == SURVIVED and mutant.key in proofs
        ],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, metavar="N", help="only N mutants, the same in every run")
    parser.add_argument("--file", action="append", help="only the mutants of this kernel file")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--list", action="store_true", help="print the mutants, run nothing")
    parser.add_argument("--verbose", action="store_true", help="print every outcome")
    chosen = parser.parse_args(arguments)
    work = [mutant for path in sorted(KERNELS.iterdir()) for mutant in mutants(path.name, path.read_text())]
    whole = not chosen.sample and not chosen.file
    if chosen.file:
        work = [mutant for mutant in work if mutant.file in chosen.file]
    if chosen.sample:
        work = sample(work, chosen.sample)
    if chosen.list:
        print(*work, sep="\n")
        return 0
    proofs = equivalents()
    os.environ.update(
        PYGPUKIT_BACKEND="sim", PYGPUKIT_SIM="workers=1,memory=64MiB", PYGPUKIT_SIM_TIMEOUT_S=str(LAUNCH_LIMIT_S)
    )
    results = []
    with tempfile.TemporaryDirectory(prefix="pygpukit-mutants-") as folder:
        os.environ["PYGPUKIT_CACHE_DIR"] = folder
        for mutant, outcome, detail in outcomes(work, chosen.processes):
            results.append((mutant, outcome, detail))
            if chosen.verbose:
                print(f"{outcome:14} {mutant}   {detail}", flush=True)
    survivors = [mutant for mutant, outcome, _ in results if outcome == SURVIVED and mutant.key not in proofs]
    caught = [mutant for mutant, outcome, _ in results if outcome != SURVIVED and mutant.key in proofs]
    unknown = set(proofs) - {mutant.key for mutant in work} if whole else set()
    for mutant in sorted(survivors, key=lambda mutant: mutant.key):
        print(f"SURVIVED, and {EQUIVALENT.name} does not list it: {mutant}")
    for mutant in sorted(caught, key=lambda mutant: mutant.key):
        print(f"caught, though {EQUIVALENT.name} calls it equivalent: {mutant}")
    for key in sorted(unknown):
        print(f"{EQUIVALENT.name} lists a mutant that does not exist: {key}")
    counts = Counter(outcome for _, outcome, _ in results)
    print(f"{len(results)} mutants:", ", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
    if survivors or caught or unknown:
        return 1
    if whole:
        REPORT.parent.mkdir(parents=True, exist_ok=True)
        REPORT.write_text(json.dumps(report(results, proofs), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
