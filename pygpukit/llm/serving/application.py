"""The web application: routes, who may ask, and answers that end when nobody listens any more."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from pygpukit.core.errors import InvalidSpecError, ModelFileError, TaskRejectedError
from pygpukit.llm.serving import bounds, requests
from pygpukit.llm.serving.answers import Answer
from pygpukit.llm.serving.driver import Driver, Running
from pygpukit.llm.serving.requests import Asked, RequestError

if TYPE_CHECKING:
    from pygpukit.llm.generation import Generation
    from pygpukit.llm.model import CausalTransformerModel

_Handler = Callable[[Request], Awaitable[Response]]


class Application:
    """Serves one model. token: what a client must send as its API key; None: nobody is asked for one.

    hosts: the names by which clients may call this server; a page of another site, which a browser was made to take for
    this one, calls it by that site's name.
    """

    def __init__(self, model: CausalTransformerModel, token: str | None, hosts: list[str]) -> None:
        self._model, self._token = model, token
        self._started = int(time.time())
        self._driver = Driver(model)
        self._stopping = False
        routes = [
            Route("/health", self._guarded(self._health, public=True)),
            Route("/v1/models", self._guarded(self._models)),
            Route("/v1/models/{name:path}", self._guarded(self._model_by_name)),
            Route("/v1/chat/completions", self._guarded(self._chat), methods=["POST"]),
            Route("/v1/completions", self._guarded(self._completion), methods=["POST"]),
        ]
        self.web = Starlette(routes=routes, middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=hosts)])

    def _guarded(self, handler: _Handler, public: bool = False) -> _Handler:
        async def answer(request: Request) -> Response:
            try:
                if not public:
                    self._check(request)
                return await handler(request)
            except RequestError as error:
                headers = {} if error.retry_s is None else {"retry-after": str(error.retry_s)}
                return JSONResponse(error.body(), error.status, headers)

        return answer

    def stop(self) -> None:
        """The server ends: answers under way end with a word."""
        self._stopping = True
        self._driver.stop()

    def _check(self, request: Request) -> None:
        _refuse_other_sites(request)
        if self._token is None:
            kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            if request.method == "POST" and kind != "application/json":  # what a page may send unasked is another
                raise RequestError("the content-type must be application/json", status=415)
            return
        scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not secrets.compare_digest(credentials.encode(), self._token.encode()):
            message = "the API key is not this server's token, which it printed when it started"
            raise RequestError(message, status=401, code="invalid_api_key")

    async def _health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def _models(self, request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [self._described()]})

    async def _model_by_name(self, request: Request) -> Response:
        self._named(request.path_params["name"])
        return JSONResponse(self._described())

    def _described(self) -> dict[str, Any]:
        return {"id": self._model.name, "object": "model", "created": self._started, "owned_by": "pygpukit"}

    def _named(self, name: str) -> None:
        if name != self._model.name:
            message = f"there is no model {name[:80]!r} here; there is {self._model.name!r}"
            raise RequestError(message, "model", 404, "model_not_found")

    async def _chat(self, request: Request) -> Response:
        return await self._answer(request, requests.chat(await _body(request)), chat=True)

    async def _completion(self, request: Request) -> Response:
        return await self._answer(request, requests.completion(await _body(request)), chat=False)

    async def _answer(self, request: Request, asked: Asked, chat: bool) -> Response:
        self._named(asked.model)
        answer = Answer(self._model.name, chat, asked.logprobs)
        client = asked.user or (request.client.host if request.client else "")
        gone = asyncio.ensure_future(_gone(request))
        all_running: list[Running] = []
        gone.add_done_callback(lambda _: _stop(all_running))
        try:
            await self._check_prompts(asked)
            # All are opened before the answer begins, so that what is wrong with one has its status.
            for prompt in asked.prompts:
                for sample in range(asked.samples):
                    all_running.append(await self._open(asked, prompt, sample, client))
                    if gone.done():
                        return Response(status_code=499)
            if asked.stream:
                streaming = list(all_running)
                all_running.clear()  # from here on the stream notices who leaves
                return _Stream(self._events(asked, answer, streaming), lambda: _stop(streaming))
            completions = []
            for running in all_running:
                async for _ in running.tokens():
                    pass
                completions.append(running.generation.completion)
                if gone.done():
                    return Response(status_code=499)
                if self._stopping and completions[-1].finish_reason == "cancelled":
                    raise _ending()
            return JSONResponse(answer.complete(completions, asked.samples))
        finally:
            _stop(all_running)
            gone.cancel()

    async def _check_prompts(self, asked: Asked) -> None:
        """Raises RequestError for what would be refused later, when others have been answered already."""
        count = len(asked.prompts) * asked.samples
        if count > bounds.MAX_ANSWERS:
            raise RequestError(f"the request asks for {count} answers, {bounds.MAX_ANSWERS} at most", "prompt")
        bounds.check_size(self._model, asked.prompts)
        for prompt in asked.prompts[1:]:
            with _refusals(prompt):
                await run_in_threadpool(self._model.check, prompt)

    async def _events(self, asked: Asked, answer: Answer, all_running: list[Running]) -> AsyncIterator[str]:
        """The pieces of a stream. Starlette cancels this when the client goes."""
        completions = []
        try:
            for index, running in enumerate(all_running):
                for piece in answer.begin(index):
                    yield _event(piece)
                async for token in running.tokens():
                    for piece in answer.token(index, token):
                        yield _event(piece)
                completions.append(running.generation.completion)
                if self._stopping and completions[-1].finish_reason == "cancelled":
                    raise _ending()
                yield _event(answer.end(index, completions[-1].finish_reason))
            if asked.usage:
                yield _event(answer.usage(completions, asked.samples))
            yield "data: [DONE]\n\n"
        except RequestError as error:  # the status is sent already
            yield _event(error.body())
        finally:
            _stop(all_running)

    async def _open(self, asked: Asked, prompt: Any, sample: int, client: str) -> Running:
        """A generation that waits for its turn. Raises RequestError for what the model refuses, and where too many
        wait."""
        settings = requests.defaults(self._model) | asked.settings | ({"request": sample} if sample else {})
        limit = asked.max_new_tokens or self._model.context

        def opened() -> Generation:
            return self._model.stream(prompt, limit, stop=asked.stop, client=client, **settings)

        with _refusals(prompt):
            generation = await run_in_threadpool(opened)
        running = self._driver.start(generation)
        if self._stopping:
            running.stop()
        return running


class _Stream(StreamingResponse):  # type: ignore[misc,unused-ignore]
    """Server-sent events. stop() is called when the answer has ended, or could not begin."""

    def __init__(self, events: AsyncIterator[str], stop: Callable[[], None]) -> None:
        super().__init__(events, media_type="text/event-stream", headers={"cache-control": "no-cache"})
        self._stop = stop

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._stop()


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


def _event(body: dict[str, Any]) -> str:
    # In ASCII: some clients take other characters, such as U+2028, for the end of a line.
    return f"data: {json.dumps(body)}\n\n"


async def _gone(request: Request) -> None:
    """Returns when the client has left. The request's body has been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _stop(all_running: list[Running]) -> None:
    for running in all_running:
        running.stop()


def _ending() -> RequestError:
    return RequestError("the server is stopping", status=503)


@contextlib.contextmanager
def _refusals(prompt: Any) -> Iterator[None]:
    """A refusal of the model as an error of the protocol that names the field of the request."""
    try:
        yield
    except InvalidSpecError as error:
        is_chat = isinstance(prompt, list) and any(isinstance(message, dict) for message in prompt)
        field = "messages" if is_chat and error.field == "prompt" else error.field
        raise RequestError(str(error), field) from None
    except TaskRejectedError as error:
        raise RequestError(str(error), status=429, retry_s=bounds.RETRY_S) from None
    except (ModelFileError, ValueError) as error:
        raise RequestError(str(error)) from None


def _refuse_other_sites(request: Request) -> None:
    """A page of another site does not ask, even where no token is needed: browsers say from where a page comes."""
    site = request.headers.get("sec-fetch-site", "none")
    origin = request.headers.get("origin")
    host = request.headers.get("host", "")
    same_origin = origin is None or origin.partition("://")[2].rstrip("/") == host
    if site not in ("none", "same-origin") or not same_origin:
        raise RequestError("pages of other sites may not ask this server", status=403, code="foreign_origin")
