"""/v1/audio: what is said in a sound file, and texts as speech, by the models of recognition and synthesis."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from pygpukit.core.errors import InvalidSpecError
from pygpukit.llm.serving import fields
from pygpukit.llm.serving.errors import RequestError, shown
from pygpukit.llm.serving.models import Models
from pygpukit.llm.serving.refusals import refusals
from pygpukit.ops.audio.files import read, write

if TYPE_CHECKING:
    from pygpukit.asr.results import TranscriptionResult
    from pygpukit.ops.audio.buffer import AudioBuffer

LARGEST_SOUND = 25 << 20  # bytes of a request with a sound
MAX_SAMPLES = 1 << 28  # of a sound, of all its channels: 93 minutes of 48 kHz stereo, 4.6 hours of 16 kHz
MAX_CHARACTERS = 4096  # of a text that is spoken
_SPOKEN = {"model", "input", "voice", "response_format", "speed"}
_FILES = {"wav": ("audio/wav", "PCM_16"), "flac": ("audio/flac", "PCM_16"), "mp3": ("audio/mpeg", "MPEG_LAYER_III")}
_HEARD = {"model", "language", "prompt", "response_format", "temperature", "timestamp_granularities[]", "stream"}
# The fields of a request by what the model calls them.
_HEARD_AS = {
    "path": "file",
    "audio": "file",
    "sample_rate": "file",
    "initial_prompt": "prompt",
    "word_timestamps": "timestamp_granularities[]",
}
_FORMATS = ("json", "text", "verbose_json", "srt", "vtt")


async def transcription(models: Models, request: Request) -> Response:
    """The answer to a request of /v1/audio/transcriptions. Raises RequestError."""
    form, sound = await _form(request)
    kind = fields.one_of(form, "response_format", _FORMATS, "json")
    if form.get("stream", "false") not in ("false", False):
        raise RequestError("stream is not there yet for transcriptions; leave it out", "stream")
    settings: dict[str, Any] = {"word_timestamps": form.get("timestamp_granularities[]") == "word"}
    if "language" in form:
        settings["language"] = fields.text(form, "language", 8)
    if "prompt" in form:
        settings["initial_prompt"] = fields.text(form, "prompt", MAX_CHARACTERS)
    if "temperature" in form:
        try:
            settings["temperature"] = fields.finite(form["temperature"])
        except ValueError:
            raise RequestError(
                f"temperature is {shown(form['temperature'])}, must be a number", "temperature"
            ) from None
    served = await models.sound(fields.text(form, "model", 256), "asr")
    with refusals("prompt", **_HEARD_AS), tempfile.TemporaryDirectory(prefix="pygpukit-") as folder:
        path = Path(folder) / "sound"
        path.write_bytes(sound)
        async with served.beside:
            samples = await run_in_threadpool(_decoded, path)
            heard = await run_in_threadpool(served.model.transcribe, samples, **settings)
    if kind == "text":
        return PlainTextResponse(heard.text + "\n")
    if kind in ("srt", "vtt"):
        return PlainTextResponse(_subtitles(heard, kind))
    return JSONResponse({"text": heard.text} if kind == "json" else _verbose(heard))


async def speech(models: Models, raw: bytes) -> Response:
    """The answer to a request of /v1/audio/speech. Raises RequestError."""
    import numpy as np

    body = fields.parsed(raw, _SPOKEN, {"instructions": ("",), "stream_format": ("audio",)})
    text = fields.text(body, "input", MAX_CHARACTERS)
    if not text.strip():
        raise RequestError("input is empty: there is nothing to speak", "input")
    kind = fields.one_of(body, "response_format", ("pcm", *_FILES), "mp3")
    speed = fields.number(body, "speed")
    settings: dict[str, Any] = {} if speed is None else {"speed": float(speed)}
    if body.get("voice") not in (None, ""):
        settings["voice"] = fields.text(body, "voice", 256)
    served = await models.sound(body["model"], "tts")
    with refusals("input", text="input"), tempfile.TemporaryDirectory(prefix="pygpukit-") as folder:
        async with served.beside:
            spoken = await run_in_threadpool(served.model.synthesize, text, **settings)
        if kind == "pcm":
            samples = np.clip(np.rint(spoken.to_numpy() * 32767), -32768, 32767).astype("<i2")
            return Response(samples.tobytes(), media_type="audio/pcm")
        media, subtype = _FILES[kind]
        path = Path(folder) / f"speech.{kind}"
        await run_in_threadpool(write, path, spoken.audio, subtype)
        return Response(path.read_bytes(), media_type=media)


def _decoded(path: Path) -> AudioBuffer:
    """The sound of an upload. Raises RequestError, which does not tell where that was put."""
    try:
        return read(path, max_samples=MAX_SAMPLES)
    except InvalidSpecError as error:
        raise RequestError(str(error).replace(repr(str(path)), "the file"), "file") from None


async def _form(request: Request) -> tuple[dict[str, Any], bytes]:
    """The fields of a form, and its file."""
    size = 0

    async def receive() -> Any:
        nonlocal size
        message = await request.receive()
        size += len(message.get("body", b""))
        if size > LARGEST_SOUND:
            raise RequestError(f"the request is larger than {LARGEST_SOUND >> 20} MiB", status=413)
        return message

    try:
        async with Request(request.scope, receive).form(max_files=1, max_fields=16, max_part_size=1 << 16) as form:
            texts = {name: value for name, value in form.multi_items() if isinstance(value, str)}
            upload = form.get("file")
            if not isinstance(upload, UploadFile):
                raise RequestError("file must be a sound file, in a form of the type multipart/form-data", "file")
            sound = await upload.read()
    except HTTPException as error:
        raise RequestError(f"the form cannot be read: {error.detail}") from None
    for name in texts:
        if name not in _HEARD:
            raise RequestError(
                f"there is no field {shown(name)}; there are file, {', '.join(sorted(_HEARD))}", name[:64]
            )
    return {name: value for name, value in texts.items() if value}, sound


def _verbose(heard: TranscriptionResult) -> dict[str, Any]:
    def words() -> list[Mapping[str, Any]]:
        return [{"word": word.text.strip(), "start": word.start, "end": word.end} for word in heard.words]

    segments = [
        {
            "id": number,
            "start": segment.start,
            "end": segment.end,
            "text": segment.text,
            "tokens": segment.tokens,
            "temperature": segment.temperature,
            "avg_logprob": segment.average_logprob,
            "compression_ratio": segment.compression,
            "no_speech_prob": segment.no_speech,
        }
        for number, segment in enumerate(heard.segments)
    ]
    known = {"task": "transcribe", "language": heard.language, "duration": heard.duration, "text": heard.text}
    return known | {"segments": segments} | ({"words": words()} if heard.words else {})


def _subtitles(heard: TranscriptionResult, kind: str) -> str:
    """The segments as SubRip or WebVTT."""
    mark = "," if kind == "srt" else "."

    def time(seconds: float) -> str:
        ms = round(seconds * 1000)
        return f"{ms // 3600000:02}:{ms // 60000 % 60:02}:{ms // 1000 % 60:02}{mark}{ms % 1000:03}"

    blocks = [] if kind == "srt" else ["WEBVTT"]
    for number, segment in enumerate(heard.segments, 1):
        text = segment.text.strip().replace("-->", "->")
        begin = f"{number}\n" if kind == "srt" else ""
        blocks.append(f"{begin}{time(segment.start)} --> {time(segment.end)}\n{text}")
    return "\n\n".join(blocks) + "\n"
