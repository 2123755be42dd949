"""Sounds in a notebook: a player, and a picture for pages that have no kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit.core.extras import install_command
from pygpukit.ops.audio import picture

if TYPE_CHECKING:
    from pygpukit.ops.audio.buffer import AudioBuffer


def mimebundle(sound: AudioBuffer) -> Any:
    """Text, picture and player of an AudioBuffer by MIME type; a sound has one player, however often it is shown."""
    text = {"text/plain": repr(sound)}
    try:
        from pygpukit.jupyter.widgets.player import PlayerWidget
    except ImportError:
        return {**text, "text/html": picture.html(sound, f"A player for it needs anywidget: {install_command('lab')}")}
    player = sound.__dict__.get("_player")
    if player is None:
        player = sound.__dict__["_player"] = PlayerWidget(sound)
    data, metadata = player._repr_mimebundle_() or ({}, {})
    return {**data, **text}, metadata
