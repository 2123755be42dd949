"""/v1/embeddings: vectors of texts."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from pygpukit.llm.scoring import POOLINGS, unit
from pygpukit.llm.serving import bounds, fields
from pygpukit.llm.serving.errors import RequestError
from pygpukit.llm.serving.messages import prompts_of
from pygpukit.llm.serving.models import Models
from pygpukit.llm.serving.refusals import refusals

MAX_INPUTS = 512  # of one request
_KNOWN = {"model", "input", "encoding_format", "dimensions", "pooling", "user"}


@dataclass(frozen=True)
class AskedVectors:
    """A request that was understood. pooling: beyond the protocol; None as the model has it."""

    model: str
    prompts: tuple[Any, ...]
    base64: bool
    dimensions: int | None
    pooling: str | None


def parsed(raw: bytes) -> AskedVectors:
    """A request of /v1/embeddings. Raises RequestError."""
    body = fields.parsed(raw, _KNOWN, {})
    prompts = prompts_of(body, "input")
    if len(prompts) > MAX_INPUTS:
        raise RequestError(f"input has {len(prompts)} texts, {MAX_INPUTS} at most", "input")
    if "" in prompts:
        raise RequestError("input has an empty text", "input")
    dimensions = fields.number(body, "dimensions", whole=True)
    if dimensions is not None and dimensions < 1:
        raise RequestError(f"dimensions is {dimensions}, must be 1 or more", "dimensions")
    encoding = fields.one_of(body, "encoding_format", ("float", "base64"), "float")
    pooling = fields.one_of(body, "pooling", POOLINGS, "") if "pooling" in body else None
    return AskedVectors(body["model"], prompts, encoding == "base64", dimensions, pooling)


async def answer(models: Models, request: Request, raw: bytes) -> Response:
    """The answer to a request: a vector of length 1 for each text."""
    import numpy as np

    asked = parsed(raw)
    served = await models.get(asked.model)
    model = served.model
    bounds.check_size(model, asked.prompts, {}, "input")
    settings: dict[str, Any] = {} if asked.pooling is None else {"pooling": asked.pooling}
    data, count = [], 0
    for index, prompt in enumerate(asked.prompts):
        with refusals("input"):
            async with served.beside:  # a text at a time: others go between
                if await request.is_disconnected():
                    raise RequestError("the client went away", status=499)
                ids = await run_in_threadpool(model.token_ids, prompt)
                vector = (await run_in_threadpool(model.embed, [ids], **settings))[0]
        count += len(ids)
        if asked.dimensions is not None:
            if asked.dimensions > vector.size:
                raise RequestError(f"dimensions is {asked.dimensions}, {vector.size} at most", "dimensions")
            vector = unit(vector[: asked.dimensions])
        numbers = vector.astype(np.float32)
        embedding = base64.b64encode(numbers.tobytes()).decode() if asked.base64 else numbers.tolist()
        data.append({"object": "embedding", "index": index, "embedding": embedding})
    usage = {"prompt_tokens": count, "total_tokens": count}
    return JSONResponse({"object": "list", "data": data, "model": model.name, "usage": usage})
