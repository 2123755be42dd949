"""The worker's side: answer calls until the channel closes."""

from __future__ import annotations

import gc
import importlib
import os
import socket
import sys
import traceback
from collections.abc import Callable
from typing import Any

from ..core.linux import die_with_parent
from .held import held
from .protocol import VERSION, encode, plain, receive, send


def serve(channel: socket.socket) -> None:
    """Answer requests in order; return when the parent closes the channel."""
    while True:
        try:
            request, descriptors = receive(channel)
        except (EOFError, ConnectionError):
            return
        failure: dict[str, str] | None = None
        try:
            try:
                answer, returned = _answer(request, descriptors)
            finally:
                for descriptor in descriptors:
                    os.close(descriptor)
            body = _encoded(answer)
        except Exception as error:
            failure, returned = describe(error), []
        if failure is not None:  # said here, where nothing holds the error, its frames and their arrays
            body = _encoded({"ok": False, "error": failure})
        try:
            send(channel, body, returned)
        except ConnectionError:
            return


def _encoded(answer: dict[str, Any]) -> bytes:
    """The answer as it travels, with the segments that are still mapped here."""
    if not answer["ok"] and held():
        gc.collect()  # an error and its frames hold each other, and arrays with them
    return encode({**answer, "held": held()})


def _answer(request: dict[str, Any], descriptors: list[int]) -> tuple[dict[str, Any], list[int]]:
    """The answer, and descriptors that go with it and that stay open here."""
    operation = request.get("op")
    if operation == "hello":
        return {"ok": True, "result": _hello(request)}, []
    if operation == "call":
        return {"ok": True, "result": _call(request, descriptors)}, []
    if operation == "serve":
        return _find(request["by"])(request, descriptors)
    raise ValueError(f"unknown worker operation {operation!r}")


def _hello(request: dict[str, Any]) -> dict[str, Any]:
    if request["version"] != VERSION:
        raise ValueError(f"the parent speaks worker protocol {request['version']}, this process {VERSION}")
    sys.path[:] = request["path"]  # functions are found where the parent finds them
    from .._core import native

    native.set_device(request["device"])
    native.synchronize()  # the context exists from here on
    return {"pid": os.getpid(), "backend": native.backend_name()}


def _call(request: dict[str, Any], descriptors: list[int]) -> Any:
    from .._core import native
    from ..core import faults
    from .arrays import take_over

    function = _find(request["function"])
    arrays = take_over(request["segments"], descriptors, request["arrays"], request["exports"])

    def one(item: dict[str, Any]) -> Any:
        return arrays[item["array"]] if "array" in item else item["value"]

    args = [one(item) for item in request["args"]]
    kwargs = {name: one(item) for name, item in request["kwargs"].items()}
    result = plain(f"the result of {request['function']}", function(*args, **kwargs))
    if faults.lost() is None:  # a function may report a fault of its own as a result
        native.synchronize()  # the parent reads as soon as it has the answer
    return result


def _find(spec: str) -> Callable[..., Any]:
    module, colon, name = spec.partition(":")
    if not colon or not module or not name:
        raise ValueError(f"a worker function is named 'module:function', not {spec!r}")
    if module == "__main__":
        raise ValueError(f"{spec!r}: a worker cannot see the notebook or script; put the function into a module")
    function = getattr(importlib.import_module(module), name)
    if not callable(function):
        raise TypeError(f"{spec!r} is a {type(function).__name__}, not a function")
    return function


def describe(error: Exception) -> dict[str, str]:
    """An error as it travels: kind, message and traceback, the fields of WorkerTaskError."""
    lines = traceback.format_exception(type(error), error, error.__traceback__)
    return {"kind": type(error).__name__, "message": str(error), "traceback": "".join(lines)}


def main(argv: list[str]) -> int:
    """argv: the channel's file descriptor and the parent's process id."""
    descriptor, parent = int(argv[0]), int(argv[1])
    die_with_parent(parent)
    with socket.socket(fileno=descriptor) as channel:
        serve(channel)
    return 0
