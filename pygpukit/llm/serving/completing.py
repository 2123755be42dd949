"""Chats and completions: answers at once or as streams, which end when nobody listens any more."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from pygpukit.llm.generation import Completion, Figures
from pygpukit.llm.scoring import prompt_tokens
from pygpukit.llm.serving import bounds, requests
from pygpukit.llm.serving.answers import CallTools, Written
from pygpukit.llm.serving.call_formats import CallFormat
from pygpukit.llm.serving.chatting import template_of
from pygpukit.llm.serving.driver import Running
from pygpukit.llm.serving.errors import RequestError
from pygpukit.llm.serving.forms import settings_of
from pygpukit.llm.serving.models import Models, Served
from pygpukit.llm.serving.refusals import refusals
from pygpukit.llm.serving.requests import Asked
from pygpukit.llm.serving.thinking import variables_of

Write: TypeAlias = "Callable[[str, CallTools | None], Written]"  # of a model's name, and its tools

if TYPE_CHECKING:
    from pygpukit.llm.generation import Generation, Token


class Completing:
    """Answers requests with the models of a server."""

    def __init__(self, models: Models) -> None:
        self._models = models

    async def answer(self, request: Request, asked: Asked, write: Write) -> Response:
        """The answer to a request; write: makes the form of the answer of a model's name. Raises RequestError."""
        served = await self._models.get(asked.model)
        client = asked.user or (request.client.host if request.client else "")
        gone = asyncio.ensure_future(_gone(request))
        all_running: list[Running] = []
        gone.add_done_callback(lambda _: _stop(all_running))
        try:
            settings, call_format = self._settings(asked, served)
            tools = None if asked.tools is None or call_format is None else (call_format, asked.tools.names)
            answer = write(served.name, tools)
            await self._check_prompts(asked, served, settings)
            echoed = await self._echoed(asked, served, gone)
            # All are opened before the answer begins, so that what is wrong with one has its status.
            for prompt in asked.prompts if asked.max_new_tokens != 0 else ():
                for sample in range(asked.samples):
                    own = settings | ({"request": sample} if sample else {})
                    all_running.append(await self._open(asked, served, prompt, own, client))
                    if gone.done():
                        return Response(status_code=499)
            if asked.stream:
                streaming = list(all_running)
                all_running.clear()  # from here on the stream notices who leaves
                return _Stream(self._events(asked, answer, streaming, echoed), lambda: _stop(streaming))
            completions = _nothing(asked, echoed)
            for running in all_running:
                await running.end()
                completions.append(running.generation.completion)
                if gone.done():
                    return Response(status_code=499)
                if self._models.stopping and completions[-1].finish_reason == "cancelled":
                    raise _ending()
            return JSONResponse(answer.complete(completions, asked.samples, echoed))
        finally:
            _stop(all_running)
            gone.cancel()

    def _settings(self, asked: Asked, served: Served) -> tuple[dict[str, Any], CallFormat | None]:
        """The settings of model.stream() that all answers share, and how the model writes calls of tools."""
        tokenizer = getattr(served.model, "tokenizer", None)
        template = template_of(tokenizer, asked.tools is not None)
        variables = variables_of(asked.effort, template) | asked.variables
        if asked.tools is not None:
            variables = {"tools": list(asked.tools.definitions)} | variables
        form, call_format = settings_of(asked.form, asked.tools, tokenizer)
        settings = requests.defaults(served.model) | asked.settings | form
        if served.adapter is not None:
            settings["adapter"] = served.adapter
        return settings | ({"variables": variables} if variables else {}), call_format

    async def _echoed(self, asked: Asked, served: Served, gone: asyncio.Future[None]) -> list[list[Token]]:
        """The tokens of each prompt, with their logprobs if need be, where answers repeat them."""
        if asked.echo and served.adapter is not None:
            raise RequestError(f"the tokens of a prompt are told of the model alone, not of {served.name!r}", "echo")
        prompts: list[list[Token]] = []
        for prompt in asked.prompts if asked.echo else ():
            with refusals(_field(prompt)):
                async with served.beside:
                    if gone.done():
                        raise RequestError("the client went away", status=499)
                    ids = await run_in_threadpool(served.model.token_ids, prompt)
                    top = asked.settings.get("top")
                    prompts.append(await run_in_threadpool(prompt_tokens, served.model, ids, top))
        return prompts

    async def _check_prompts(self, asked: Asked, served: Served, settings: dict[str, Any]) -> None:
        """Raises RequestError for what would be refused later, when others have been answered already."""
        count = len(asked.prompts) * asked.samples
        if count > bounds.MAX_ANSWERS:
            raise RequestError(f"the request asks for {count} answers, {bounds.MAX_ANSWERS} at most", "prompt")
        bounds.check_size(served.model, asked.prompts, settings.get("variables", {}))
        for prompt in asked.prompts[1:]:
            with refusals(_field(prompt)):
                await run_in_threadpool(served.model.check, prompt)

    async def _events(
        self, asked: Asked, answer: Written, all_running: list[Running], echoed: list[list[Token]]
    ) -> AsyncIterator[str]:
        """The pieces of a stream. Starlette cancels this when the client goes."""
        completions = _nothing(asked, echoed)
        try:
            for index in range(len(completions)):
                for piece in (*answer.begin(index, echoed[index // asked.samples]), *answer.end(index, "length")):
                    yield _event(piece)
            for index, running in enumerate(all_running):
                for piece in answer.begin(index, echoed[index // asked.samples] if echoed else ()):
                    yield _event(piece)
                async for tokens in running.tokens():
                    if pieces := [piece for token in tokens for piece in answer.token(index, token)]:
                        yield "".join(map(_event, pieces))
                completions.append(running.generation.completion)
                if self._models.stopping and completions[-1].finish_reason == "cancelled":
                    raise _ending()
                for piece in answer.end(index, completions[-1].finish_reason):
                    yield _event(piece)
            if asked.usage:
                yield _event(answer.usage(completions, asked.samples))
            yield "data: [DONE]\n\n"
        except RequestError as error:  # the status is sent already
            yield _event(error.body())
        finally:
            _stop(all_running)

    async def _open(self, asked: Asked, served: Served, prompt: Any, settings: dict[str, Any], client: str) -> Running:
        """A generation that waits for its turn. Raises RequestError for what the model refuses, and where too many
        wait."""
        limit = served.model.context if asked.max_new_tokens is None else asked.max_new_tokens

        def opened() -> Generation:
            return served.model.stream(prompt, limit, stop=asked.stop, client=client, **settings)

        form = "tools" if asked.tools is not None and asked.tools.required else "response_format"
        try:
            with refusals(_field(prompt), grammar=form):
                generation = await run_in_threadpool(opened)
        except RequestError as error:
            if error.status == 429:
                self._models.metrics.refusal(served.model.name)
            raise
        running = served.driver.start(generation, whole=not asked.stream)
        if self._models.stopping:
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


def _event(body: dict[str, Any]) -> str:
    # In ASCII: some clients take other characters, such as U+2028, for the end of a line.
    name = f"event: {body['type']}\n" if "type" in body else ""
    return f"{name}data: {json.dumps(body)}\n\n"


def _nothing(asked: Asked, echoed: list[list[Token]]) -> list[Completion]:
    """The answers of a request that wants its prompts alone; none of another one."""
    if asked.max_new_tokens != 0:
        return []
    lengths = [len(tokens) for tokens in echoed for _ in range(asked.samples)]
    return [
        Completion("", "", (), "length", length, None, Figures(length, 0, 0, 0, 0, None, 0.0)) for length in lengths
    ]


async def _gone(request: Request) -> None:
    """Returns when the client has left. The request's body has been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _stop(all_running: list[Running]) -> None:
    for running in all_running:
        running.stop()


def _ending() -> RequestError:
    return RequestError("the server is stopping", status=503)


def _field(prompt: Any) -> str:
    """The field of a request that a prompt comes from."""
    is_chat = isinstance(prompt, list) and any(isinstance(message, dict) for message in prompt)
    return "messages" if is_chat else "prompt"
