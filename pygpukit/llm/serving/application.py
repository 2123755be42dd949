"""The web application: routes, and who may ask."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pygpukit.llm.serving import bounds, embeddings, requests, responses, sounds
from pygpukit.llm.serving.answers import Answer
from pygpukit.llm.serving.completing import Completing
from pygpukit.llm.serving.errors import RequestError
from pygpukit.llm.serving.models import Models
from pygpukit.llm.serving.page import page

# A page may send a form unasked, but browsers say from where it comes.
_JSON, _FORM = "application/json", "multipart/form-data"
_Handler = Callable[[Request], Awaitable[Response]]


class Application:
    """Serves models. token: what a client must send as its API key; None: nobody is asked for one.

    hosts: the names by which clients may call this server; a page of another site, which a browser was made to take for
    this one, calls it by that site's name. origins: of pages of other sites that may ask; "*": of any.
    """

    def __init__(self, models: Models, token: str | None, hosts: list[str], origins: Sequence[str] = ()) -> None:
        self._models, self._token, self._origins = models, token, frozenset(origins)
        self._completing = Completing(models)
        routes = [
            Route("/", self._guarded(self._page, public=True)),
            Route("/health", self._guarded(self._health, public=True)),
            Route("/metrics", self._guarded(self._metrics)),
            Route("/v1/models", self._guarded(self._list)),
            Route("/v1/models/{name:path}", self._guarded(self._model_by_name)),
            Route("/v1/chat/completions", self._guarded(self._chat), methods=["POST"]),
            Route("/v1/completions", self._guarded(self._completion), methods=["POST"]),
            Route("/v1/responses", self._guarded(self._responses), methods=["POST"]),
            Route("/v1/audio/transcriptions", self._guarded(self._hear, kind=_FORM), methods=["POST"]),
            Route("/v1/audio/speech", self._guarded(self._speak), methods=["POST"]),
            Route("/v1/embeddings", self._guarded(self._embeddings), methods=["POST"]),
        ]
        middleware = [Middleware(TrustedHostMiddleware, allowed_hosts=hosts)]
        if origins:
            allowed: dict[str, Any] = {"allow_origins": list(origins), "allow_headers": ["*"], "allow_methods": ["*"]}
            middleware.append(Middleware(CORSMiddleware, **allowed))
        self.web = Starlette(routes=routes, middleware=middleware, exception_handlers={HTTPException: _refused})

    def _guarded(self, handler: _Handler, public: bool = False, kind: str = _JSON) -> _Handler:
        async def answer(request: Request) -> Response:
            try:
                if not public:
                    self._check(request, kind)
                return await handler(request)
            except RequestError as error:
                headers = {} if error.retry_s is None else {"retry-after": str(error.retry_s)}
                return JSONResponse(error.body(), error.status, headers)

        return answer

    def stop(self) -> None:
        """The server ends: answers under way end with a word."""
        self._models.stop()

    def _check(self, request: Request, expected: str) -> None:
        self._refuse_other_sites(request)
        if self._token is None:
            kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            if request.method == "POST" and kind != expected:
                raise RequestError(f"the content-type must be {expected}", status=415)
            return
        scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not secrets.compare_digest(credentials.encode(), self._token.encode()):
            message = "the API key is not this server's token, which it printed when it started"
            raise RequestError(message, status=401, code="invalid_api_key")

    def _refuse_other_sites(self, request: Request) -> None:
        """A page of another site does not ask unless it was allowed to, even where no token is needed: browsers say
        from where a page comes."""
        site = request.headers.get("sec-fetch-site", "none")
        origin = request.headers.get("origin")
        if "*" in self._origins or origin in self._origins:
            return
        host = request.headers.get("host", "")
        same_origin = origin is None or origin.partition("://")[2].rstrip("/") == host
        if site not in ("none", "same-origin") or not same_origin:
            raise RequestError("pages of other sites may not ask this server", status=403, code="foreign_origin")

    async def _health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def _page(self, request: Request) -> Response:
        return page()

    async def _metrics(self, request: Request) -> Response:
        page, kind = self._models.metrics.page()
        return Response(page, headers={"content-type": kind})

    async def _list(self, request: Request) -> Response:
        return JSONResponse({"object": "list", "data": self._models.described()})

    async def _model_by_name(self, request: Request) -> Response:
        return JSONResponse(self._models.described(request.path_params["name"])[0])

    async def _chat(self, request: Request) -> Response:
        asked = requests.chat(await _body(request))
        return await self._completing.answer(request, asked, partial(Answer, True, asked.logprobs))

    async def _completion(self, request: Request) -> Response:
        asked = requests.completion(await _body(request))
        return await self._completing.answer(request, asked, partial(Answer, False, asked.logprobs))

    async def _responses(self, request: Request) -> Response:
        asked, repeated = responses.parsed(await _body(request))
        try:
            return await self._completing.answer(request, asked, partial(responses.ResponseItems, repeated))
        except RequestError as error:
            raise responses.renamed(error) from None

    async def _hear(self, request: Request) -> Response:
        return await sounds.transcription(self._models, request)

    async def _speak(self, request: Request) -> Response:
        return await sounds.speech(self._models, await _body(request))

    async def _embeddings(self, request: Request) -> Response:
        return await embeddings.answer(self._models, request, await _body(request))


async def _refused(request: Request, error: Exception) -> Response:
    """An error as the protocol has it, for what no route answers."""
    assert isinstance(error, HTTPException)
    method, path = request.method, request.url.path
    about = {404: f"there is no {path}", 405: f"{path} takes no {method}"}.get(error.status_code, error.detail)
    return JSONResponse(
        RequestError(f"{about}; see /v1/models", status=error.status_code).body(), error.status_code, error.headers
    )


async def _body(request: Request) -> bytes:
    pieces, size = [], 0
    try:
        async for piece in request.stream():
            size += len(piece)
            if size > bounds.LARGEST:
                raise RequestError(f"the request is larger than {bounds.LARGEST >> 20} MiB", status=413)
            pieces.append(piece)
    except ClientDisconnect:
        raise RequestError("the client went away", status=499) from None
    return b"".join(pieces)
