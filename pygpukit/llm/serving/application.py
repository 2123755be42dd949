"""The web application: routes, who may ask, and answers that end when nobody listens any more."""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from pygpukit.core.errors import GPUError, InvalidSpecError, ModelFileError
from pygpukit.llm.serving import requests
from pygpukit.llm.serving.answers import Answer
from pygpukit.llm.serving.requests import Asked, RequestError

if TYPE_CHECKING:
    from pygpukit.llm.generation import Generation, Token
    from pygpukit.llm.model import CausalTransformerModel

_LARGEST = 16 << 20  # bytes of a request
_Handler = Callable[[Request], Awaitable[Response]]


class Application:
    """Serves one model. token: what a client must send as its API key; None: nobody is asked for one.

    hosts: the names by which clients may call this server; a page of another site, which a browser was made to take for
    this one, calls it by that site's name.
    """

    def __init__(self, model: CausalTransformerModel, token: str | None, hosts: list[str]) -> None:
        self._model, self._token = model, token
        self._started = int(time.time())
        self._room = asyncio.Semaphore(len(model.cache.slots))
        routes = [
            Route("/health", self._guarded(self._health, public=True)),
            Route("/v1/models", self._guarded(self._models)),
            Route("/v1/models/{name:path}", self._guarded(self._one_model)),
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
                return JSONResponse(error.body(), error.status)

        return answer

    def _check(self, request: Request) -> None:
        if self._token is None:
            return
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not secrets.compare_digest(given.encode(), self._token.encode()):
            message = "the API key is not this server's token, which it printed when it started"
            raise RequestError(message, status=401, code="invalid_api_key")

    async def _health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def _models(self, request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [self._described()]})

    async def _one_model(self, request: Request) -> Response:
        self._named(request.path_params["name"])
        return JSONResponse(self._described())

    def _described(self) -> dict[str, Any]:
        return {"id": self._model.name, "object": "model", "created": self._started, "owned_by": "pygpukit"}

    def _named(self, name: str) -> None:
        if name != self._model.name:
            message = f"there is no model {name!r} here; there is {self._model.name!r}"
            raise RequestError(message, "model", 404, "model_not_found")

    async def _chat(self, request: Request) -> Response:
        return await self._answer(request, requests.chat(await _body(request)), chat=True)

    async def _completion(self, request: Request) -> Response:
        return await self._answer(request, requests.completion(await _body(request)), chat=False)

    async def _answer(self, request: Request, asked: Asked, chat: bool) -> Response:
        self._named(asked.model)
        answer = Answer(self._model.name, chat, asked.logprobs)
        if asked.stream:
            # The first is opened before the answer begins, so that what is wrong with it has its status.
            first = await self._open(asked, 0)
            return _Stream(self._events(asked, answer, first), first.stop)
        completions = []
        for index in range(len(asked.prompts)):
            running = await self._open(asked, index)
            async for _ in running.tokens():
                if await request.is_disconnected():
                    running.stop()
                    return Response(status_code=499)
            completions.append(running.generation.completion)
        return JSONResponse(answer.whole(completions))

    async def _events(self, asked: Asked, answer: Answer, running: Running) -> AsyncIterator[str]:
        """The pieces of a stream. Starlette cancels this when the client goes."""
        completions = []
        try:
            for index in range(len(asked.prompts)):
                if index:
                    running = await self._open(asked, index)
                for piece in answer.begin(index):
                    yield _event(piece)
                async for token in running.tokens():
                    for piece in answer.token(index, token):
                        yield _event(piece)
                completions.append(running.generation.completion)
                yield _event(answer.end(index, completions[-1].finish_reason))
            if asked.usage:
                yield _event(answer.usage(completions))
            yield "data: [DONE]\n\n"
        except RequestError as error:  # the status is sent already
            yield _event(error.body())
        finally:
            running.stop()

    async def _open(self, asked: Asked, index: int) -> Running:
        """A generation, when the model has room for it. Raises RequestError for what the model refuses."""
        await self._room.acquire()
        prompt, settings = asked.prompts[index], dict(asked.settings)
        limit = asked.max_new_tokens or self._model.context

        def opened() -> Generation:
            return self._model.stream(prompt, limit, stop=asked.stop, **settings)

        try:
            return Running(await run_in_threadpool(opened), self._room)
        except InvalidSpecError as error:
            self._room.release()
            names = {"prompt": "messages"} if isinstance(prompt, list) else {}
            raise RequestError(str(error), names.get(error.field, error.field)) from None
        except (ModelFileError, ValueError) as error:
            self._room.release()
            raise RequestError(str(error)) from None
        except BaseException:
            self._room.release()
            raise


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


class Running:
    """A generation in a thread of its own. stop() ends it within one step; its room is given back when it has ended."""

    def __init__(self, generation: Generation, room: asyncio.Semaphore) -> None:
        self.generation, self._room = generation, room
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[Token | BaseException | None] = asyncio.Queue()
        threading.Thread(target=self._work, name="pygpukit-serve", daemon=True).start()

    def stop(self) -> None:
        """No more tokens."""
        self.generation.stop()

    async def tokens(self) -> AsyncIterator[Token]:
        """The tokens as they come. Leaving early, or being cancelled, stops the generation."""
        try:
            while (item := await self._queue.get()) is not None:
                if isinstance(item, GPUError):
                    raise RequestError(f"the model failed: {item}", status=500)
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            self.stop()

    def _work(self) -> None:
        try:
            for token in self.generation:
                self._put(token)
        except BaseException as error:
            self._put(error)
        finally:
            self.generation.close()
            self._put(None)
            self._told(self._room.release)

    def _put(self, item: Token | BaseException | None) -> None:
        self._told(lambda: self._queue.put_nowait(item))

    def _told(self, act: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(act)
        except RuntimeError:  # the server has ended, and nobody listens
            self.stop()


async def _body(request: Request) -> bytes:
    pieces, size = [], 0
    try:
        async for piece in request.stream():
            size += len(piece)
            if size > _LARGEST:
                raise RequestError(f"the request is larger than {_LARGEST >> 20} MiB", status=413)
            pieces.append(piece)
    except ClientDisconnect:
        raise RequestError("the client went away", status=499) from None
    return b"".join(pieces)


def _event(body: dict[str, Any]) -> str:
    return f"data: {json.dumps(body, ensure_ascii=False)}\n\n"
