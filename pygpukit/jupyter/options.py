"""The options of %%cuda: their words on the magic line, their defaults as traitlets, and the checked result of both."""

from __future__ import annotations

import re
import shlex
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

from IPython.core.error import UsageError
from IPython.core.magic_arguments import MagicArgumentParser, argument, magic_arguments
from traitlets import Bool, Enum, Float, Int, List, TraitError, Unicode, validate
from traitlets.config import Configurable

UNIT_NAME = "cell"  # the same for every cell, so that moving a cell or running it again finds it in the cache
_ARCHITECTURE = re.compile(r"(sm|compute)_\d{2,3}[af]?|sim|")
_FILE_NAME = re.compile(r"\w[\w.+-]*")
_WORD = re.compile(r"""(?:[^\s"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*')+""")  # with its quotes

_LISTS = ("-i", "--input", "-o", "--output", "--sweep", "--with")
_TEXTS = ("EXPR", "ARGUMENTS", "ARRAYS", "AXIS=VALUES")  # Python, which may have blanks


class _Option(NamedTuple):
    """One option: its flags, what declares it, its name as an attribute, and what that is where it is not given."""

    flags: tuple[str, ...]
    declare: Any
    name: str
    default: Any


def _option(*flags: str, **settings: Any) -> _Option:
    name = settings.get("dest", flags[-1].lstrip("-").replace("-", "_"))
    return _Option(flags, argument(*flags, **settings), name, settings.get("default"))


_ARGUMENTS = (
    _option("-i", "--input", action="append", default=[], metavar="ARGUMENTS",
            help="launch on these arrays and numbers, written as in a call: 'x,y,n=x.size'"),
    _option("-o", "--output", action="append", default=[], metavar="ARRAYS",
            help="arrays that the kernel writes; 'z[n]' makes z with n elements"),
    _option("--kernel", metavar="NAME", help="which kernel of the cell to launch"),
    _option("--grid", metavar="EXPR", help="blocks of the grid, an int or a tuple (default: inferred)"),
    _option("--block", metavar="EXPR", help="threads of a block, an int or a tuple (default: CudaMagics.block)"),
    _option("--shared", metavar="EXPR", help="bytes of dynamic shared memory"),
    _option("--stream", metavar="EXPR", help="the Stream to launch on (default: the current one)"),
    _option("--verify", metavar="EXPR", help="compare the outputs with this: arrays, or a function of the inputs"),
    _option("--rtol", type=float, help="relative tolerance of --verify (default: by dtype)"),
    _option("--atol", type=float, help="absolute tolerance of --verify (default: by dtype)"),
    _option("--bench", action="store_true", default=None, help="measure the launch"),
    _option("--bytes", metavar="EXPR", help="bytes that a launch moves, for GB/s"),
    _option("--flops", metavar="EXPR", help="operations that a launch does, for GFLOP/s"),
    _option("--count", action="store_true", default=None, help="count bytes and operations on the simulated device"),
    _option("--ncu", action="store_true", default=None, help="profile a launch by Nsight Compute, where ncu is found"),
    _option("--nsys", action="store_true", default=None, help="the same by Nsight Systems, where nsys is found"),
    _option("--sweep", action="append", default=[], metavar="AXIS=VALUES",
            help="measure every value of block, grid, shared or a macro: 'block=64,128'; more than once: all pairs"),
    _option("--ptx", action="store_true", default=None, help="show the PTX"),
    _option("--sass", action="store_true", default=None, help="show the machine code"),
    _option("--check", nargs="?", const=True, metavar="memory",
            help="find bad accesses and races on the simulated device; 'memory': accesses only"),
    _option("-D", dest="defines", action="append", default=[], metavar="NAME[=VALUE]", help="define a macro"),
    _option("--arch", help="compile for this architecture, such as sm_90a; needs NVRTC, no device"),
    _option("--instantiate", action="append", default=[], metavar="EXPRESSION",
            help="instantiate a template: 'softmax<float>'"),
    _option("--isolated", action="store_true", default=None,
            help="run the kernels in a worker process: a fault costs the worker, never the notebook"),
    _option("--no-launch", action="store_true", default=None, help="compile only: nothing is loaded or launched"),
    _option("--name", metavar="FILE", help="name the cell: other cells may include it as FILE"),
    _option("--program", action="store_true", default=None, help="the cell is a whole program, as is one with main()"),
    _option("--args", metavar="WORDS", help="what the program's main() gets: --args '1000 --fast'"),
    _option("--timeout", type=float, metavar="SECONDS", help="end the program after so long"),
    _option("--with", dest="headers", action="append", default=[], metavar="FILE[,FILE]",
            help="include cells that --name named"),
)  # fmt: skip


def cuda_arguments(function: Callable[..., Any]) -> Any:
    """Decorates the magic with its options; the parser is then its attribute `parser`."""
    return some_arguments(*(one.flags[-1] for one in _ARGUMENTS))(function)


def some_arguments(*flags: str) -> Callable[[Callable[..., Any]], Any]:
    """Decorates a magic with some of the options, each by its last flag; the others are as where they are not given."""

    def decorate(function: Callable[..., Any]) -> Any:
        declared = [one for one in _ARGUMENTS if one.flags[-1] in flags]
        inner = reduce(lambda decorated, one: one.declare(decorated), reversed(declared), function)
        decorated = magic_arguments()(inner)
        decorated.parser.set_defaults(**{one.name: one.default for one in _ARGUMENTS if one not in declared})
        return decorated

    return decorate


class Defaults(Configurable):  # type: ignore[misc]
    """Values of options that the magic line does not give: `%config CudaMagics.block = 128`."""

    arch = Unicode("", help="architecture to compile for; empty for the open backend's").tag(config=True)
    block = Int(256, min=1, max=1024, help="threads of a block where the grid is inferred").tag(config=True)
    isolated = Bool(False, help="run the kernels of every cell in a worker process").tag(config=True)
    no_launch = Bool(False, help="compile every cell, launch none").tag(config=True)
    check = Enum([None, False, True, "memory"], default_value=None, allow_none=True,
                 help="checked mode; None leaves it to PYGPUKIT_CHECK").tag(config=True)  # fmt: skip
    rtol = Float(None, allow_none=True, min=0, help="relative tolerance; None for the dtype's own").tag(config=True)
    atol = Float(None, allow_none=True, min=0, help="absolute tolerance; None for the dtype's own").tag(config=True)
    bench = Bool(False, help="measure every launch").tag(config=True)
    count = Bool(False, help="count bytes and operations of every measured launch").tag(config=True)
    ptx = Bool(False, help="show the PTX of every cell").tag(config=True)
    sass = Bool(False, help="show the machine code of every cell").tag(config=True)
    defines = List(Unicode(), help="macros of every cell, as NAME or NAME=VALUE").tag(config=True)
    headers = List(Unicode(), help="named cells that every cell includes").tag(config=True)
    bench_ms = Float(2000, min=1, help="longest time of one measurement, in milliseconds").tag(config=True)
    max_sweep = Int(64, min=1, help="most configurations of one --sweep").tag(config=True)

    @validate("arch")
    def _valid_arch(self, proposal: Any) -> str:
        return _trait(check_arch, proposal["value"])

    @validate("defines")
    def _valid_defines(self, proposal: Any) -> list[str]:
        for one in proposal["value"]:
            _trait(macro, one)
        return list(proposal["value"])

    @validate("headers")
    def _valid_headers(self, proposal: Any) -> list[str]:
        return [_trait(check_file, one) for one in proposal["value"]]


@dataclass(frozen=True)
class Options:
    """One magic line, checked as far as that goes without evaluating expressions."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    kernel: str | None
    grid: str | None
    block: str | None
    shared: str | None
    stream: str | None
    verify: str | None
    rtol: float | None
    atol: float | None
    bench: bool
    bytes: str | None
    flops: str | None
    count: bool
    profilers: tuple[str, ...]
    sweep: tuple[str, ...]
    listing: tuple[str, ...]
    check: bool | str | None
    defines: Mapping[str, str]
    arch: str | None
    instantiate: tuple[str, ...]
    isolated: bool
    no_launch: bool
    name: str | None
    program: bool
    arguments: str | None
    timeout_s: float | None
    headers: tuple[str, ...]
    default_block: int
    bench_ms: float
    max_sweep: int

    @property
    def launches(self) -> bool:
        """True where the cell launches a kernel itself."""
        return bool(self.inputs or self.outputs or self.grid) and not self.no_launch


def parse(line: str, parser: MagicArgumentParser, defaults: Defaults) -> Options:
    """The options of a magic line. Raises UsageError for a flag or value that there is not."""
    try:
        shlex.split(line)
    except ValueError as error:
        raise UsageError(f"%%cuda: {error}: {line}") from None
    words = _WORD.findall(line)
    parser.allow_abbrev = False  # an option added later must not change what an old cell means
    arguments = parser.parse_args(_with_values_attached(words, parser))
    try:
        options = _options(arguments, defaults)
    except ValueError as error:
        raise UsageError(f"%%cuda: {error}") from None
    _consistent(arguments, options)
    return options


def _options(arguments: Any, defaults: Defaults) -> Options:
    listing = [name for name in ("ptx", "sass") if _first(getattr(arguments, name), getattr(defaults, name))]
    headers = [part for text in arguments.headers for part in text.split(",")]
    return Options(
        inputs=tuple(arguments.input),
        outputs=tuple(arguments.output),
        kernel=arguments.kernel,
        grid=arguments.grid,
        block=arguments.block,
        shared=arguments.shared,
        stream=arguments.stream,
        verify=arguments.verify,
        rtol=check_tolerance("rtol", _first(arguments.rtol, defaults.rtol)),
        atol=check_tolerance("atol", _first(arguments.atol, defaults.atol)),
        bench=_first(arguments.bench, defaults.bench),
        bytes=arguments.bytes,
        flops=arguments.flops,
        count=_first(arguments.count, defaults.count),
        profilers=tuple(name for name in ("ncu", "nsys") if getattr(arguments, name)),
        sweep=tuple(arguments.sweep),
        listing=tuple(listing),
        check=check_mode(_first(arguments.check, defaults.check)),
        defines=dict(map(macro, [*defaults.defines, *arguments.defines])),
        arch=check_arch(_first(arguments.arch, defaults.arch)) or None,
        instantiate=tuple(arguments.instantiate),
        isolated=_first(arguments.isolated, defaults.isolated),
        no_launch=_first(arguments.no_launch, defaults.no_launch),
        name=None if arguments.name is None else check_file(arguments.name),
        program=bool(arguments.program),
        arguments=arguments.args,
        timeout_s=arguments.timeout,
        headers=tuple(check_file(name) for name in dict.fromkeys([*defaults.headers, *headers])),
        default_block=defaults.block,
        bench_ms=defaults.bench_ms,
        max_sweep=defaults.max_sweep,
    )


def _consistent(arguments: Any, options: Options) -> None:
    """Refuse options that would silently do nothing."""
    launching = bool(options.inputs or options.outputs or options.grid)
    for name in ("kernel", "block", "shared", "stream", "verify", "bench", "ncu", "nsys", "sweep"):
        if getattr(arguments, name) and not launching:
            raise UsageError(f"%%cuda: --{name} is about a launch: give the arguments with -i and -o, or --grid")
    for name in ("bytes", "flops"):
        if getattr(arguments, name) and not (options.bench or options.sweep):
            raise UsageError(f"%%cuda: --{name} is about a measurement: add --bench")
    for name in ("rtol", "atol"):
        if getattr(arguments, name) is not None and options.verify is None:
            raise UsageError(f"%%cuda: --{name} is about a comparison: add --verify")
    for name in options.profilers:
        if options.sweep or options.no_launch:
            other = "sweep" if options.sweep else "no-launch"
            raise UsageError(f"%%cuda: --{name} is about one launch: leave --{other} out")
    if options.verify is not None and not options.outputs:
        raise UsageError("%%cuda: --verify compares outputs: name the arrays that the kernel writes with -o")
    for name in ("bytes", "flops"):
        if getattr(arguments, name) and arguments.count:
            raise UsageError(f"%%cuda: --count counts what --{name} gives: leave one of them out")


def _with_values_attached(words: Sequence[str], parser: MagicArgumentParser) -> list[str]:
    """Words, as they are written, with each option's value joined to it, so that a value may begin with a minus:
    --grid -(-n//256). Expressions and lists go on to the next option: --verify x + y."""
    actions = {flag: action for action in parser._actions for flag in action.option_strings}

    def ends(word: str) -> bool:
        return word in actions or word[:2] in actions or re.match(r"--[A-Za-z]", word) is not None

    out: list[str] = []
    left = deque(words)
    while left:
        word = left.popleft()
        action = actions.get(word)
        if action is None or action.nargs is not None:
            out.append(_unquoted(word))
            continue
        if not left or left[0] in actions:
            raise UsageError(f"%%cuda: {word} lacks its value ({action.metavar or action.dest})")
        value = [left.popleft()]
        while action.metavar in _TEXTS and left and not ends(left[0]):
            value.append(left.popleft())
        text = _unquoted(value[0]) if len(value) == 1 else " ".join(value)
        if word in _LISTS and text.rstrip().endswith(","):
            raise UsageError(f"%%cuda: {word} {text} ends with a comma: an argument is missing behind it")
        out.append(f"{word}={text}" if word.startswith("--") else word + text)
    return out


def _unquoted(word: str) -> str:
    """Without the quotes that hold a word together; those inside brackets are Python's: d['x']."""
    before = re.split(r"['\"]", word, maxsplit=1)[0]
    return word if any(mark in before for mark in "([{") else "".join(shlex.split(word))


def _first(value: Any, default: Any) -> Any:
    return default if value is None else value


def macro(text: str) -> tuple[str, str]:
    """(name, value) of NAME or NAME=VALUE. Raises ValueError."""
    name, equals, value = text.partition("=")
    if not (name.isascii() and name.isidentifier()):
        raise ValueError(f"-D {text}: {name!r} is not a macro name")
    return name, value if equals else "1"


def check_arch(text: str) -> str:
    """An architecture's name as it is. Raises ValueError for another text."""
    if not _ARCHITECTURE.fullmatch(text):
        raise ValueError(f"the architecture is {text!r}; write it as sm_90a, compute_90 or sim")
    return text


def check_file(text: str) -> str:
    """The name of a named cell as it is. Raises ValueError for one that could not stand in an #include."""
    if not _FILE_NAME.fullmatch(text):
        raise ValueError(f"{text!r} does not name a cell; use letters, digits, '_', '.', '+' and '-'")
    return text


def check_mode(value: bool | str | None) -> bool | str | None:
    """True, False, None or "memory". Raises ValueError."""
    if value in (None, False, True, "memory"):
        return value
    raise ValueError(f"--check {value}: it is --check for everything, or --check memory for accesses only")


def check_tolerance(name: str, value: float | None) -> float | None:
    """A tolerance as it is. Raises ValueError for a negative one."""
    if value is not None and not value >= 0:
        raise ValueError(f"--{name} is {value}; it must be at least 0")
    return value


def _trait(check: Callable[[str], Any], value: str) -> Any:
    try:
        return check(value)
    except ValueError as error:
        raise TraitError(str(error)) from None
