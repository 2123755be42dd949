"""Renders chat templates in a process of its own, which has jinja2 and little else; started by template.py, by path.

A template comes with a model, so it may be hostile. jinja2's sandbox keeps it from Python; what it cannot bound, time
and memory, the system does here: a render that takes too much ends this process, and nothing else.

Lines of JSON in: {"template", "context", "limits": {"seconds", "bytes", "characters"}}; out: {"text"} or {"error"}.
"""

from __future__ import annotations

import json
import resource
import sys
from datetime import datetime
from typing import Any


def main() -> None:
    """Answer line by line until the input ends. Arguments: the folders that jinja2 and what it needs lie in."""
    sys.path.extend(sys.argv[1:])  # behind the standard library, which nothing there may stand in for
    sys.setrecursionlimit(400)  # far less than what the C stack holds
    lines, answers = sys.stdin, sys.stdout
    sys.stdout = sys.stderr
    environment = _environment()
    answers.write("{}\n")
    answers.flush()
    compiled: dict[str, Any] = {}
    for line in lines:
        request = json.loads(line)
        _limit(request["limits"])
        answers.write(json.dumps(_answer(environment, compiled, request)) + "\n")
        answers.flush()


def _answer(environment: Any, compiled: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    from jinja2 import TemplateError

    max_characters = request["limits"]["characters"]
    try:
        source = request["template"]
        if source not in compiled:
            compiled.clear()
            compiled[source] = environment.from_string(source)
        pieces, length = [], 0
        for piece in compiled[source].generate(request["context"]):
            length += len(piece)
            if length > max_characters:
                return {"error": f"its text is longer than {max_characters} characters"}
            pieces.append(piece)
        return {"text": "".join(pieces)}
    except MemoryError:
        return {"error": "it takes more memory than a template may"}
    except RecursionError:
        return {"error": "it is nested too deeply"}
    except TemplateError as error:
        line = getattr(error, "lineno", None)
        return {"error": f"{error.message}" + (f" (line {line})" if line else "")}
    except Exception as error:  # whatever a template can make Python raise
        return {"error": f"{type(error).__name__}: {error}"[:500]}


def _environment() -> Any:
    """As transformers makes it: blocks trimmed, loop controls, `{% generation %}`, and its own functions."""
    import jinja2.ext
    from jinja2 import TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(jinja2.ext.Extension):  # type: ignore[misc]
        """`{% generation %}` marks what the assistant says. Nobody here needs the mark."""

        tags = frozenset({"generation"})

        def parse(self, parser: Any) -> Any:
            next(parser.stream)
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    def raise_exception(message: object) -> None:
        raise TemplateError(str(message))

    def tojson(
        value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
    ) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def strftime_now(form: str) -> str:
        return datetime.now().strftime(form)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = tojson
    environment.globals.update(raise_exception=raise_exception, strftime_now=strftime_now)
    return environment


def _limit(limits: dict[str, Any]) -> None:
    """So much processor time from now on, so much memory in all; then the system ends the process."""
    spent = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(spent.ru_utime + spent.ru_stime) + 1 + int(limits["seconds"])
    hardest = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, hardest))
    hardest = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (int(limits["bytes"]), hardest))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    main()
