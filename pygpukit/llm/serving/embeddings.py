"""/v1/embeddings: vectors of texts."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from pygpukit.llm.encoders.encoder import TextEncoder
from pygpukit.llm.encoders.pooling import MODES
from pygpukit.llm.scoring import unit
from pygpukit.llm.serving import bounds, fields
from pygpukit.llm.serving.errors import RequestError
from pygpukit.llm.serving.messages import prompts_of
from pygpukit.llm.serving.models import Models
from pygpukit.llm.serving.refusals import refusals

if TYPE_CHECKING:
    import numpy as np

MAX_INPUTS = 512  # of one request
_TOGETHER = 32  # texts that an encoder takes between those of other requests; a model that writes takes one
_KNOWN = {"model", "input", "encoding_format", "dimensions", "pooling", "truncate", "user"}


@dataclass(frozen=True)
class AskedVectors:
    """A request that was understood. Beyond the protocol: pooling, None as the model has it; truncate: whether what
    does not fit is left out."""

    model: str
    prompts: tuple[Any, ...]
    base64: bool
    dimensions: int | None
    pooling: str | None
    truncate: bool


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
    pooling = fields.one_of(body, "pooling", MODES, "") if "pooling" in body else None
    return AskedVectors(
        body["model"], prompts, encoding == "base64", dimensions, pooling, fields.boolean(body, "truncate")
    )


async def answer(models: Models, request: Request, raw: bytes) -> Response:
    """The answer to a request: a vector for each text, of a model that writes of length 1."""
    asked = parsed(raw)
    loaded = await models.embedder(asked.model)
    model = loaded.model
    width = model.dimensions if isinstance(model, TextEncoder) else model.config.hidden_size
    if asked.dimensions is not None and asked.dimensions > width:
        raise RequestError(f"dimensions is {asked.dimensions}, {width} at most", "dimensions")
    settings: dict[str, Any] = {} if asked.pooling is None else {"pooling": asked.pooling}
    cuts: dict[str, Any] = {}
    if isinstance(model, TextEncoder):
        cuts = {"truncate": asked.truncate}
    elif asked.truncate:
        raise RequestError(f"truncate is of encoders; {model.name} takes texts that fit its context", "truncate")
    if not asked.truncate:
        bounds.check_size(model, asked.prompts, {}, "input")
    data, count = [], 0
    together = _TOGETHER if isinstance(model, TextEncoder) else 1
    for start in range(0, len(asked.prompts), together):
        texts = asked.prompts[start : start + together]
        with refusals("input"):
            async with loaded.beside:
                if await request.is_disconnected():
                    raise RequestError("the client went away", status=499)
                encoded = [await run_in_threadpool(model.token_ids, text, **cuts) for text in texts]
                vectors = await run_in_threadpool(model.embed, encoded, **settings)
        for index, (ids, vector) in enumerate(zip(encoded, vectors, strict=True), start):
            count += len(ids)
            data.append({"object": "embedding", "index": index, "embedding": _written(vector, asked)})
    usage = {"prompt_tokens": count, "total_tokens": count}
    return JSONResponse({"object": "list", "data": data, "model": model.name, "usage": usage})


def _written(vector: np.ndarray[Any, Any], asked: AskedVectors) -> str | list[float]:
    """A vector as the protocol has it, shortened where that was asked for."""
    import numpy as np

    if asked.dimensions is not None:
        vector = unit(vector[: asked.dimensions])
    numbers = vector.astype(np.float32)
    return base64.b64encode(numbers.tobytes()).decode() if asked.base64 else numbers.tolist()
