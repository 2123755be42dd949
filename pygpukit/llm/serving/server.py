"""A server of one model: in a thread beside a notebook, or until Ctrl-C from the command line."""

from __future__ import annotations

import argparse
import errno
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
    return Server(model, Place(host, port, token)).start()


class Place:
    """Where a server listens, and who may ask it: taken before a model is loaded, which takes longer."""

    def __init__(self, host: str, port: int, token: str | bool) -> None:
        for module in ("starlette", "uvicorn"):
            need(module, "serve", "serving a model")
        if (token is False or token == "") and not _is_loopback(host):
            raise ValueError(f"host is {host!r}, which others can reach, so a token is needed")
        self.host = host
        self.token: str | None = secrets.token_urlsafe(24) if token is True else token or None
        self.socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        try:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.socket.bind((host, port))
            self.socket.listen(128)  # from now on clients wait instead of being refused
        except OSError as error:
            self.socket.close()
            if error.errno != errno.EADDRINUSE:
                raise
            message = f"port {port} of {host} is in use by another program; give another one, or 0 for any that is free"
            raise OSError(errno.EADDRINUSE, message) from None
        except BaseException:
            self.socket.close()
            raise


class Server:
    """A served model; see serve()."""

    def __init__(self, model: CausalTransformerModel, place: Place) -> None:
        from pygpukit.llm.serving.application import Application
        from pygpukit.llm.serving.connections import BoundedProtocol, max_connections

        self.token, self.host, self._socket = place.token, place.host, place.socket
        self.port: int = self._socket.getsockname()[1]
        names = ["127.0.0.1", "localhost", "[::1]", self.host] if _is_loopback(self.host) else ["*"]
        self._application = application = Application(model, self.token, names)
        protocol = type("Protocol", (BoundedProtocol,), {"limit": max_connections(), "idle": {}})
        uvicorn: Any = need("uvicorn", "serve", "serving a model")
        config = uvicorn.Config(
            application.web,
            log_level="warning",
            timeout_graceful_shutdown=2,
            lifespan="off",
            ws="none",
            http=protocol,
        )

        class Ending(uvicorn.Server):  # type: ignore[misc,unused-ignore]
            """Ends answers with a word before it ends their connections."""

            async def shutdown(self, sockets: Any = None) -> None:
                application.stop()
                await super().shutdown(sockets)

        self._server = Ending(config)
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The base_url for clients."""
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

    place = None
    try:
        place = Place(args.host, args.port, False if args.no_token else args.token or True)
        model = load(args.model, dtype=args.dtype, context=args.context, slots=args.slots)
        server = Server(model, place)
    except (GPUError, OSError, ValueError, ModuleNotFoundError) as error:
        said = error.strerror if isinstance(error, OSError) and error.errno == errno.EADDRINUSE else error
        print(f"pygpukit serve: {said}", file=sys.stderr)
        if place is not None:
            place.socket.close()
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
