"""The page `/`: a small chat in one file, which loads nothing and shows what is said as text."""

from __future__ import annotations

import secrets
from pathlib import Path

from starlette.responses import HTMLResponse, Response

_FILE = Path(__file__).with_name("page.html")


def page() -> Response:
    """The page, whose own script and style alone may run, and which asks this server alone."""
    nonce = secrets.token_urlsafe(16)
    policy = (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    headers = {"content-security-policy": policy, "x-content-type-options": "nosniff", "referrer-policy": "no-referrer"}
    return HTMLResponse(_FILE.read_text(encoding="utf-8").replace("NONCE", nonce), headers=headers)
