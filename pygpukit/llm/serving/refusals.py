"""Refusals of a model, as errors of the protocol."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from pygpukit.core.errors import InvalidSpecError, ModelFileError, TaskRejectedError
from pygpukit.llm.serving import bounds
from pygpukit.llm.serving.errors import RequestError

# Settings that requests call otherwise.
_FIELDS = {"variables": "chat_template_kwargs", "max_new_tokens": "max_tokens"}


@contextlib.contextmanager
def refusals(prompt: str, **called: str) -> Iterator[None]:
    """Turns a refusal into a RequestError that names the field of the request. prompt: the field of the prompt. called:
    what this request calls further settings."""
    names = {**_FIELDS, "prompt": prompt, **called}
    try:
        yield
    except InvalidSpecError as error:
        raise RequestError(str(error), names.get(error.field, error.field) or None) from None
    except TaskRejectedError as error:
        raise RequestError(str(error), status=429, retry_s=bounds.RETRY_S) from None
    except (ModelFileError, ValueError) as error:
        raise RequestError(str(error)) from None
