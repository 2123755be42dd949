"""The `pygpukit` command: notebooks, what this machine offers, the kernel cache, built-in kernels, models."""

from __future__ import annotations

import argparse
import os
import re
import sys
import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn


class Parser(argparse.ArgumentParser):
    """One that tells of a misspelt word which it is most like."""

    def error(self, message: str) -> NoReturn:
        """Print usage and message, and end with code 2."""
        from pygpukit.core.text import nearest

        wrong = re.search(r"unrecognized arguments: (-\S+)|invalid choice: '([^']*)'", message)
        if wrong:
            option, command = wrong.groups()
            known = self.options() if option else self.commands()
            meant = nearest(option.partition("=")[0] if option else command, known)
            message += f"; {meant.rstrip()}" if meant else ""
        super().error(message)

    def commands(self) -> list[str]:
        """The names of its commands."""
        return list(self._below())

    def of(self, command: str) -> Parser:
        """The parser of a command."""
        return self._below().get(command, self)

    def options(self) -> list[str]:
        """Its options, and those of its commands."""
        below = [one for command in self._below().values() for one in command.options()]
        return [*self._option_string_actions, *below]

    def _below(self) -> dict[str, Parser]:
        actions = [action for action in self._actions if isinstance(action, argparse._SubParsersAction)]
        return {name: command for action in actions for name, command in action.choices.items()}


class _Version(argparse.Action):
    """Looks the version up when it is asked for: the parser needs no compiled core."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        from pygpukit import __version__

        print(f"pygpukit {__version__}")
        parser.exit()


def parser() -> Parser:
    p = Parser(prog="pygpukit", description="A GPU workbench for notebooks.")
    p.add_argument("--version", action=_Version, nargs=0, help="show the version and end")
    commands = p.add_subparsers(dest="command", required=True)
    lab = commands.add_parser(
        "lab",
        help="open JupyterLab on a copy of the notebooks, or on a notebook of yours",
        usage="pygpukit lab [NOTEBOOK.ipynb] [--here | --headless] [options of JupyterLab]",
        description="The notebooks are copied to ./pygpukit-notebooks. A copy that you changed is never touched; "
        "delete it to get its original again.",
        epilog="Other options go to JupyterLab. On a machine without a browser: --no-browser prints an address.",
    )
    lab.add_argument("--here", action="store_true", help="open the original notebooks instead of a copy")
    lab.add_argument("--headless", action="store_true", help="run it without a browser and print its results")
    commands.add_parser("info", help="backend, device, compiler and cache of this machine")
    commands.add_parser("doctor", help="toolchains, what features lack, and the command that repairs it")
    cache = commands.add_parser("cache", help="the kernel cache: what is in it, clear it, move it to another machine")
    actions = cache.add_subparsers(dest="action", required=True)
    actions.add_parser("info", help="where it is and how full")
    actions.add_parser("clear", help="remove every entry")
    for name, what in (("export", "write every entry into one file"), ("import", "add the entries of such a file")):
        actions.add_parser(name, help=what).add_argument("file", type=Path)
    models = commands.add_parser("models", help="the models that can be had by name, and fetching them")
    models.set_defaults(action=None)
    doings = models.add_subparsers(dest="action")
    doings.add_parser("list", help="what there is; the same without a word")
    get_parser = doings.add_parser("get", help="fetch one, unless it is here; print its path")
    get_parser.add_argument("name")
    fetched = commands.add_parser("get", help="fetch a model by name, or cutlass: the headers of CUTLASS and CuTe")
    fetched.add_argument("name", help='"cutlass", or a name that `pygpukit models` lists')
    from .dask.command import arguments

    arguments(commands.add_parser("dask", help="workers of Dask, one for each device (extra dask)"))
    from .program.command import arguments as program_arguments

    program_arguments(commands.add_parser("run", help="compile and run a CUDA program, without nvcc: FILE.cu -- ARGS"))
    plugins = commands.add_parser("plugins", help="the plugins that are installed, and comparing their operations")
    plugins.set_defaults(action=None)
    comparing = plugins.add_subparsers(dest="action")
    comparing.add_parser("list", help="what there is; the same without a word")
    check = comparing.add_parser("check", help="compare a plugin's operations with the built-in ones")
    check.add_argument("name", help="of a plugin of the groups pygpukit.ops or pygpukit.backends")
    check.add_argument("--seed", type=int, help="of the random arrays; others each time by default")
    warmup = commands.add_parser("warmup", help="compile built-in kernels into the cache before anything asks for them")
    warmup.add_argument("family", nargs="*", help='folders of pygpukit/ops, "nn/attention"; matmul by default')
    warmup.add_argument("--models", nargs="+", default=[], metavar="MODEL", help="the kernels that these models need")
    warmup.add_argument("--all", action="store_true", help="every built-in kernel, which takes minutes")
    warmup.add_argument("--arch", help='architecture, "sm_90a"; that of this machine\'s device by default')
    tune = commands.add_parser("tune", help="measure the kernels by mma.sync on this machine's device, once")
    tune.add_argument("--out", type=Path, metavar="FOLDER", help="where the table goes, instead of where plans look")
    tune.add_argument("--short", action="store_true", help="fewest samples")
    chat = commands.add_parser("chat", help="talk to a model in the terminal")
    chat.add_argument("model", help="a name that `pygpukit models` lists, a folder, a .safetensors or a .gguf file")
    chat.add_argument("--system", default="", help="system prompt; the model's own by default")
    chat.add_argument("--max-new-tokens", type=int, help="of one answer, at most (256)")
    chat.add_argument("--temperature", type=float, help="0: the likeliest word each time (default); 1: drawn")
    chat.add_argument("--seed", type=int, help="of what is drawn: the same answers again")
    chat.add_argument("--dtype", choices=("float32", "float16", "bfloat16"), help="of weights and cache")
    chat.add_argument("--context", type=int, help="tokens of the conversation, at most")
    serve = commands.add_parser("serve", help="serve a model by OpenAI's protocol, to this machine")
    serve.add_argument("model", help="a name that `pygpukit models` lists, a folder, a .safetensors or a .gguf file")
    serve.add_argument("--host", default="127.0.0.1", help="address to listen at (%(default)s: this machine only)")
    serve.add_argument("--port", type=int, default=8000, help="port (%(default)s; 0: a free one)")
    serve.add_argument("--token", default=os.environ.get("PYGPUKIT_SERVE_TOKEN"), help="API key; else one is made")
    serve.add_argument("--no-token", action="store_true", help="ask for no API key; on this machine only")
    serve.add_argument("--dtype", choices=("float32", "float16", "bfloat16"), help="of weights and cache")
    serve.add_argument("--context", type=int, help="tokens of a conversation, at most")
    serve.add_argument("--slots", type=int, help="contexts that the KV cache has room for (2)")
    serve.add_argument("--kv-memory", metavar="SIZE", help='size of the KV cache in their place: "2GB", "40%%"')
    serve.add_argument("--weights-memory", metavar="SIZE", help="of the device for weights; more are streamed")
    serve.add_argument("--devices", type=int, help="over how many devices to divide each model")
    serve.add_argument(
        "--parallel", choices=("tensor", "pipeline"), default="tensor", help="parts of each layer (default), or layers"
    )
    serve.add_argument("--kv-dtype", choices=("fp8",), help="of keys and values; by default that of the weights")
    serve.add_argument(
        "--models", nargs="+", default=[], metavar="MODEL", help="more of them, each loaded when it is first asked for"
    )
    serve.add_argument(
        "--cors", nargs="+", default=[], metavar="ORIGIN", help='pages that may ask: "http://localhost:3000", "*"'
    )
    return p


def main(argv: Sequence[str] | None = None) -> int:
    whole = parser()
    words = list(sys.argv[1:] if argv is None else argv)
    at = words.index("--") if words[:1] == ["run"] and "--" in words else len(words)
    args, rest = whole.parse_known_args(words[:at])
    if args.command == "run" and not rest:
        return run(args, words[at + 1 :])
    if args.command != "lab":
        if rest:
            whole.of(args.command).error(f"unrecognized arguments: {' '.join(rest)}")
        _be_quiet_about_simulation()
        commands = (info, doctor, cache, models, get, plugins, dask, warmup, tune, chat, serve)
        return {one.__name__: one for one in commands}[args.command](args)
    return lab(args, rest)


def _be_quiet_about_simulation() -> None:
    """A command that uses the device says itself which one it is."""
    from pygpukit.core.errors import BackendFallbackWarning

    warnings.simplefilter("ignore", BackendFallbackWarning)


def lab(args: argparse.Namespace, rest: Sequence[str]) -> int:
    """Do what `pygpukit lab` was asked; `rest`: a notebook's name and options of JupyterLab."""
    from .headless import run_notebook
    from .jupyter.lab_command import command

    return command(args, rest, run_notebook)


def cache(args: argparse.Namespace) -> int:
    """Do what `pygpukit cache` was asked. Exit code 1, and one sentence, when a file cannot be used."""
    from pygpukit import cache as kernels

    try:
        if args.action == "info":
            for name, value in kernels.info().items():
                print(f"{name:<15} {value}")
        elif args.action == "clear":
            print(f"removed {kernels.clear()} entries")
        elif args.action == "export":
            print(f"wrote {kernels.export(args.file)} entries to {args.file}")
        else:
            print(f"added {kernels.import_(args.file)} entries of {args.file}")
    except (OSError, ValueError) as error:
        print(f"pygpukit cache {args.action}: {error}", file=sys.stderr)
        return 1
    return 0


def models(args: argparse.Namespace) -> int:
    """Do what `pygpukit models` was asked."""
    from .models.listing import command

    return command(args)


def get(args: argparse.Namespace) -> int:
    """Do what `pygpukit get` was asked. Exit code 1, and the reasons, when it cannot be had."""
    from .core.errors import ModelNotFoundError
    from .models import cutlass
    from .models.catalogue import ENTRIES
    from .models.fetch import get as get_model

    try:
        if args.name == "cutlass":
            print(cutlass.get(say=lambda what: print(what, file=sys.stderr)))
        else:
            print(get_model(args.name))
    except (ModelNotFoundError, OSError) as error:
        headers = "" if args.name in ENTRIES else "; cutlass fetches the headers of CUTLASS and CuTe"
        print(f"pygpukit get: {error}{headers}", file=sys.stderr)
        return 1
    return 0


def plugins(args: argparse.Namespace) -> int:
    """Do what `pygpukit plugins` was asked."""
    from .plugins.command import command

    return command(args)


def dask(args: argparse.Namespace) -> int:
    """Do what `pygpukit dask` was asked."""
    from .dask.command import command

    return command(args)


def warmup(args: argparse.Namespace) -> int:
    """Do what `pygpukit warmup` was asked."""
    from .kernels.warmup import command

    return command(args)


def run(args: argparse.Namespace, words: Sequence[str]) -> int:
    """Do what `pygpukit run` was asked; `words`: what its program gets."""
    from .program.command import command

    return command(args, words)


def tune(args: argparse.Namespace) -> int:
    """Do what `pygpukit tune` was asked."""
    from .benchmark.tune import command

    return command(args)


def chat(args: argparse.Namespace) -> int:
    """Do what `pygpukit chat` was asked."""
    from .llm.terminal import command

    return command(args)


def serve(args: argparse.Namespace) -> int:
    """Do what `pygpukit serve` was asked."""
    from .llm.serving.server import command

    return command(args)


def doctor(args: argparse.Namespace) -> int:
    """Do what `pygpukit doctor` was asked."""
    from .doctor import command

    return command(args)


def info(args: argparse.Namespace | None = None) -> int:
    """Print one line a fact. Exit code 0, also where there is no GPU."""
    import pygpukit as gp

    from .doctor import short
    from .jit.compile.available import nvrtc_status
    from .jit.locate import cache_directory, kernel_folders
    from .jupyter.lab_command import LAB_MODULES

    backend = gp.backend()
    device = gp.get_device_info()
    facts = {
        "version": gp.__version__,
        "backend": f"{backend} ({backend.reason})",
        "device": f"{device.name}, {device.multiprocessor_count} SMs, {device.total_memory / 2**30:.1f} GiB",
        "sharing": str(gp.device_sharing()),
        "compiler": nvrtc_status(),
        "toolchain": short(),
        "cache": str(cache_directory()),
        "kernels": " before ".join(map(str, kernel_folders())),
        "lab": ", ".join(f"{name} {'yes' if find_spec(name) else 'no'}" for name in LAB_MODULES),
    }
    for name, fact in facts.items():
        print(f"{name:<9} {fact}")
    return 0
