"""A server of one model: in a thread beside a notebook, or until Ctrl-C from the command line."""

from __future__ import annotations

import argparse
import ipaddress
import secrets
import socket
import sys
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pygpukit.core.errors import GPUError
from pygpukit.core.extras import need

if TYPE_CHECKING:
    from pygpukit.llm.model import CausalTransformerModel

_PATIENCE_S = 30


def serve(
    model: CausalTransformerModel,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | bool = True,
) -> Server:
    """Serve a model by OpenAI's protocol in a thread of this process; `.url` and `.token` say how to reach it.

    host: this machine only, unless told otherwise. port: 0 takes a free one. token: the API key that clients must send;
    True makes one, False asks for none, which only a server of this machine may do. Use `with`, or close(), to end it.
    Raises ValueError for a server without a token that others could reach, OSError where the port is taken, and
    ModuleNotFoundError without the extra `serve`.
    """
    return Server(model, host, port, token).start()


class Server:
    """A served model; see serve()."""

    def __init__(self, model: CausalTransformerModel, host: str, port: int, token: str | bool) -> None:
        need("starlette", "serve", "serving a model")
        self._uvicorn: Any = need("uvicorn", "serve", "serving a model")
        from pygpukit.llm.serving.application import Application

        loopback = _is_loopback(host)
        if (token is False or token == "") and not loopback:
            raise ValueError(f"host is {host!r}, which others can reach, so a token is needed")
        self.token: str | None = secrets.token_urlsafe(24) if token is True else token or None
        self.host = host
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind((host, port))
            self._socket.listen(128)  # from now on clients wait instead of being refused
        except BaseException:
            self._socket.close()
            raise
        self.port: int = self._socket.getsockname()[1]
        names = ["127.0.0.1", "localhost", "[::1]", host] if loopback else ["*"]
        application = Application(model, self.token, names)
        config = self._uvicorn.Config(
            application.web, log_level="warning", timeout_graceful_shutdown=2, lifespan="off", ws="none"
        )
        self._server = self._uvicorn.Server(config)
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """What clients take as base_url."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/v1"

    def start(self) -> Server:
        """Begin to answer, in a thread."""
        self._thread = threading.Thread(target=self.run, name="pygpukit-server", daemon=True)
        self._thread.start()
        return self

    def run(self) -> None:
        """Answer in this thread until close(), or Ctrl-C."""
        self._server.run(sockets=[self._socket])

    def close(self) -> None:
        """End it: answers under way are stopped."""
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(_PATIENCE_S)
        self._socket.close()

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<server of a model at {self.url}>"


def command(args: argparse.Namespace) -> int:
    """`pygpukit serve`: load the model, say how to reach it, answer until Ctrl-C. Exit code 1 and a sentence if not."""
    from pygpukit.llm import load

    try:
        need("uvicorn", "serve", "serving a model")  # before the model, which takes longer
        model = load(args.model, dtype=args.dtype, context=args.context, slots=args.slots)
        server = Server(model, args.host, args.port, False if args.no_token else args.token or True)
    except (GPUError, OSError, ValueError, ModuleNotFoundError) as error:
        print(f"pygpukit serve: {error}", file=sys.stderr)
        return 1
    print(f"{model.name} at {server.url}")
    print(f"API key: {server.token}" if server.token else "no API key is needed", flush=True)
    try:
        server.run()
    except KeyboardInterrupt:  # uvicorn has ended the answers, and passes it on
        pass
    finally:
        server.close()
    return 0


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
