"""A server of models: in a thread beside a notebook, or until Ctrl-C from the command line."""

from __future__ import annotations

import argparse
import errno
import ipaddress
import secrets
import socket
import sys
import threading
from collections.abc import Iterable, Mapping
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pygpukit.core.errors import GPUError
from pygpukit.core.extras import need

if TYPE_CHECKING:
    from pygpukit.llm.encoders.encoder import TextEncoder
    from pygpukit.llm.model import CausalTransformerModel
    from pygpukit.llm.serving.models import Kind, Load

_PATIENCE_S = 30


def serve(
    model: CausalTransformerModel | TextEncoder,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | bool = True,
    *,
    models: Iterable[str] = (),
    origins: Iterable[str] = (),
) -> Server:
    """Serve a model by OpenAI's protocol in a thread of this process; `.url` and `.token` say how to reach it.

    Use `with`, or close(), to end it.

    Parameters
    ----------
    model : CausalTransformerModel or TextEncoder
        The model, as `gp.llm.load` or `gp.llm.load_encoder` gives it.
    host : str
        Where to listen: this machine only, unless told otherwise.
    port : int
        0 takes a free one.
    token : str or bool
        The API key that clients must send; True makes one, False asks for none, which only a server of this machine
        may do.
    models : iterable of str
        Names or paths of further models, each loaded when it is first asked for, as by `gp.llm.load`,
        `gp.llm.load_encoder`, `gp.asr.load` or `gp.tts.load`.
    origins : iterable of str
        Pages of other sites that may ask, such as "http://localhost:3000"; "*" for all (CORS).

    Raises
    ------
    ValueError
        For a server without a token that others, or pages of any site, could ask.
    OSError
        Where the port is taken.
    ModuleNotFoundError
        Without the extra `serve`.
    """
    return Server(model, Place(host, port, token, origins), models, partial(bring, {})).start()


def bring(form: Mapping[str, Any], source: str, name: str, kind: Kind) -> Any:
    """A model that takes texts, hears or speaks. form: options of gp.llm.load()."""
    from pygpukit import asr, tts

    if kind == "asr":
        return asr.load(source, name=name, progress=False)
    return tts.load(source, progress=False) if kind == "tts" else _of_texts(source, form, name=name, progress=False)


def _of_texts(source: str, form: Mapping[str, Any], **options: Any) -> CausalTransformerModel | TextEncoder:
    """A model that writes, or an encoder."""
    from pygpukit import llm
    from pygpukit.llm.encoders.kinds import EncoderError

    try:
        return llm.load(source, **options, **form)
    except EncoderError:
        return llm.load_encoder(source, dtype=form.get("dtype"), **options)


class Place:
    """Where a server listens, and who may ask it: taken before a model is loaded, which takes longer."""

    def __init__(self, host: str, port: int, token: str | bool, origins: Iterable[str] = ()) -> None:
        for module in ("starlette", "uvicorn", "prometheus_client", "python_multipart"):
            need(module, "serve", "serving a model")
        self.host, self.origins = host, tuple(origins)
        if token is False or token == "":
            if not _is_loopback(host):
                raise ValueError(f"host is {host!r}, which others can reach, so a token is needed")
            if "*" in self.origins:
                raise ValueError("origins has '*', so that pages of any site can ask: a token is needed")
        for origin in self.origins:
            if origin != "*" and not _is_origin(origin):
                raise ValueError(f"origins has {origin!r}; give '*', or addresses such as 'http://localhost:3000'")
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
    """Served models; see serve(). load: brings one of those that are named only."""

    def __init__(
        self, model: CausalTransformerModel | TextEncoder, place: Place, models: Iterable[str], load: Load
    ) -> None:
        from pygpukit.llm.serving.application import Application
        from pygpukit.llm.serving.connections import BoundedProtocol, max_connections
        from pygpukit.llm.serving.models import Models

        self.token, self.host, self._socket = place.token, place.host, place.socket
        self.port: int = self._socket.getsockname()[1]
        names = ["127.0.0.1", "localhost", "[::1]", self.host] if _is_loopback(self.host) else ["*"]
        self._application = application = Application(Models(model, models, load), self.token, names, place.origins)
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
    place = None
    try:
        place = Place(args.host, args.port, False if args.no_token else args.token or True, args.cors)
        names = ("dtype", "context", "weights_memory", "kv_memory", "kv_dtype", "devices", "parallel")
        form = {name: getattr(args, name) for name in names}
        form["slots"] = args.slots or (2 if args.kv_memory is None else 1)
        model = _of_texts(args.model, form)
        server = Server(model, place, args.models, partial(bring, form))
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


def _is_origin(text: str) -> bool:
    """True for a scheme and a host, perhaps with a port, and nothing more: as browsers send it."""
    from urllib.parse import urlsplit

    parts = urlsplit(text)
    return bool(parts.scheme and parts.netloc) and text == f"{parts.scheme}://{parts.netloc}"


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
