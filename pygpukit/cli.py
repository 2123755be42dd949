"""The `pygpukit` command: notebooks, what this machine offers, the kernel cache, built-in kernels, models."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from .core.extras import install_command

TOUR = "00_tour.ipynb"
TOUR_MODULES = ("jupyter_client", "nbformat", "ipykernel", "ipywidgets", "anywidget", "matplotlib")
LAB_MODULES = ("jupyterlab", *TOUR_MODULES)
OWN = ("--notebook-dir", "--ServerApp.root_dir", "--LabApp.default_url", "--ServerApp.default_url")


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(prog="pygpukit", description="A GPU workbench for notebooks.")
    commands = p.add_subparsers(dest="command", required=True)
    lab = commands.add_parser(
        "lab",
        help="open JupyterLab on the tour, or on a notebook",
        usage="pygpukit lab [NOTEBOOK.ipynb] [--headless] [options of JupyterLab]",
        epilog="Other options go to JupyterLab. On a machine without a browser: --no-browser prints an address.",
    )
    lab.add_argument("--headless", action="store_true", help="run it without a browser and print its results")
    commands.add_parser("info", help="backend, device, compiler and cache of this machine")
    cache = commands.add_parser("cache", help="the kernel cache: what is in it, clear it, move it to another machine")
    actions = cache.add_subparsers(dest="action", required=True)
    actions.add_parser("info", help="where it is and how full")
    actions.add_parser("clear", help="remove every entry")
    for name, what in (("export", "write every entry into one file"), ("import", "add the entries of such a file")):
        actions.add_parser(name, help=what).add_argument("file", type=Path)
    models = commands.add_parser("models", help="the models that can be had by name, and fetching them")
    models.set_defaults(action=None)
    wanted = models.add_subparsers(dest="action").add_parser("get", help="fetch one, unless it is here; print its path")
    wanted.add_argument("name")
    warmup = commands.add_parser("warmup", help="compile built-in kernels into the cache before anything asks for them")
    warmup.add_argument("family", nargs="*", help='folders of pygpukit/ops, "nn/attention"; matmul by default')
    warmup.add_argument("--all", action="store_true", help="every built-in kernel, which takes minutes")
    warmup.add_argument("--arch", help='architecture, "sm_90a"; that of this machine\'s device by default')
    chat = commands.add_parser("chat", help="talk to a model in the terminal")
    chat.add_argument("model", help="a name that `pygpukit models` lists, a folder, a .safetensors or a .gguf file")
    chat.add_argument("--system", default="", help="system prompt; the model's own by default")
    chat.add_argument("--max-new-tokens", type=int, help="of one answer, at most (256)")
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
    serve.add_argument("--slots", type=int, default=2, help="answers that can be under way at once (%(default)s)")
    return p


def main(argv: Sequence[str] | None = None) -> int:
    args, rest = parser().parse_known_args(argv)
    if args.command != "lab":
        if rest:
            parser().error(f"unrecognized arguments: {' '.join(rest)}")
        commands = {"info": info, "cache": cache, "models": models, "warmup": warmup, "chat": chat, "serve": serve}
        return commands[args.command](args)
    needed = TOUR_MODULES if args.headless else LAB_MODULES
    missing = [name for name in needed if find_spec(name) is None]
    if missing:
        print(f"pygpukit lab needs {', '.join(missing)}: {install_command('lab')}", file=sys.stderr)
        return 1
    named = [word for word in rest if word.endswith(".ipynb") and not word.startswith("-")]
    if len(named) > 1:
        parser().error(f"lab opens one notebook, not {', '.join(named)}")
    notebook = Path(named[0]).resolve() if named else notebooks() / TOUR
    if not notebook.is_file():
        print(f"pygpukit lab: there is no notebook {notebook}; without a name it opens the tour", file=sys.stderr)
        return 1
    if args.headless:
        from .headless import run_notebook

        return run_notebook(notebook)
    print(f"notebooks: {notebook.parent}")
    options = [word for word in rest if word not in named]
    return subprocess.call([sys.executable, "-m", "jupyterlab", *opening(notebook, options), *options])


def opening(notebook: Path, options: Sequence[str]) -> list[str]:
    """What opens a notebook in JupyterLab, also by the address that it prints; less where the user has own options."""
    if any(word.startswith(OWN) for word in options):
        return [str(notebook)]
    return [f"--ServerApp.root_dir={notebook.parent}", f"--LabApp.default_url=/lab/tree/{quote(notebook.name)}"]


def notebooks() -> Path:
    """The notebooks' folder: the checkout's own, or a copy in the current folder of those that came with the wheel."""
    package = Path(__file__).resolve().parent
    checkout = package.parent / "notebooks"
    if (checkout / TOUR).exists():
        return checkout
    shared = [Path(root) / "share" / "pygpukit" / "notebooks" for root in (sys.prefix, package.parent)]
    source = next((folder for folder in shared if (folder / TOUR).exists()), None)
    if source is None:
        raise SystemExit(f"the notebooks are not where this installation keeps them: {', '.join(map(str, shared))}")
    target = Path.cwd() / "pygpukit-notebooks"
    if not (target / TOUR).exists():
        shutil.copytree(source, target, dirs_exist_ok=True)
        print(f"copied the notebooks to {target}, so that you can change them")
    return target


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


def warmup(args: argparse.Namespace) -> int:
    """Do what `pygpukit warmup` was asked."""
    from .kernels.warmup import command

    return command(args)


def chat(args: argparse.Namespace) -> int:
    """Do what `pygpukit chat` was asked."""
    from .llm.terminal import command

    return command(args)


def serve(args: argparse.Namespace) -> int:
    """Do what `pygpukit serve` was asked."""
    from .llm.serving.server import command

    return command(args)


def info(args: argparse.Namespace | None = None) -> int:
    """Print one line a fact. Exit code 0, also where there is no GPU."""
    import pygpukit as gp

    from .jit.compile.available import nvrtc_status
    from .jit.locate import cache_directory, kernel_folders

    backend = gp.backend()
    device = gp.get_device_info()
    facts = {
        "version": gp.__version__,
        "backend": f"{backend} ({backend.reason})",
        "device": f"{device.name}, {device.multiprocessor_count} SMs, {device.total_memory / 2**30:.1f} GiB",
        "sharing": str(gp.device_sharing()),
        "compiler": nvrtc_status(),
        "cache": str(cache_directory()),
        "kernels": " before ".join(map(str, kernel_folders())),
        "lab": ", ".join(f"{name} {'yes' if find_spec(name) else 'no'}" for name in LAB_MODULES),
    }
    for name, fact in facts.items():
        print(f"{name:<9} {fact}")
    return 0
