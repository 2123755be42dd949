"""Links between devices: the matrix of simulated ones, and what NVML says of real ones."""

from __future__ import annotations

from typing import Any

import pytest
from alone import alone

import pygpukit as gp
from pygpukit.core.nvlink import Wire, wire


def matrix() -> None:
    gp.ones(250, device=2).to(0)
    gp.ones(1000).to(1)
    links = gp.cuda.links()
    assert [(link.device, link.peer) for link in links] == [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]
    assert {link.kind for link in links} == {"simulated", "host"} and len(links) == 6
    first = links[0, 1]
    assert (first.kind, first.access, first.enabled, first.atomics) == ("simulated", True, True, True)
    assert (first.bytes_per_s, first.latency_s) == (390e9, pytest.approx(7e-6))
    assert (first.copies, first.direct_bytes, first.host_bytes) == (1, 4000, 0)
    by_host = links[2, 0]
    assert (by_host.kind, by_host.access, by_host.bytes_per_s) == ("host", False, None)
    assert (by_host.direct_bytes, by_host.host_bytes) == (0, 1000)
    table = [line.split("  ") for line in str(links).splitlines()]
    assert [line[0] for line in table] == ["", "from 0", "from 1", "from 2"] and len(table) == 4
    assert "simulated 390 GB/s, 4e-06 GB moved" in str(links) and "host, 1e-06 GB moved" in repr(links)
    with pytest.raises(KeyError):
        links[1, 1]


@pytest.mark.skipif("gp.backend() != 'sim'", reason="the devices are simulated")
def test_links_of_simulated_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYGPUKIT_SIM", raising=False)
    monkeypatch.setenv("PYGPUKIT_SIM_DEVICES", "3")
    monkeypatch.setenv("PYGPUKIT_SIM_LINK", "390GB/s,7us")
    monkeypatch.setenv("PYGPUKIT_SIM_PEERS", "0-1")
    alone(__file__, "matrix")


class Card:
    """An NVML device whose links lead to the cards of these numbers; "switch" is a switch, None is down."""

    def __init__(self, number: int, links: list[int | str | None], speed: int | None = 26562, pcie: int = 5) -> None:
        self.number, self.links, self.speed, self.pcie = number, links, speed, pcie
        self._handle = self

    def _call(self, name: str, handle: Any, *arguments: Any) -> str:
        assert handle is self
        if name == "nvmlDeviceGetPciInfo_v3":
            arguments[0]._obj.bus = self.number
            return ""
        if name == "nvmlDeviceGetFieldValues":
            field = arguments[1]._obj
            assert field.field == 164
            field.kind, field.value, field.status = 1, self.speed or 0, 0 if self.speed else 3
            return ""
        link = arguments[0].value
        if link >= len(self.links):
            return "Invalid Argument"
        other, out = self.links[link], arguments[1]._obj
        if name == "nvmlDeviceGetNvLinkState":
            out.value = other is not None
        elif name == "nvmlDeviceGetNvLinkRemoteDeviceType":
            out.value = 2 if other == "switch" else 0
        else:
            assert name == "nvmlDeviceGetNvLinkRemotePciInfo_v2"
            out.bus = other
        return ""

    def _uint(self, name: str) -> Any:
        from pygpukit.core.nvml import Reading

        if not self.pcie:
            return Reading(None, "Not Supported")
        return Reading({"nvmlDeviceGetMaxPcieLinkGeneration": self.pcie, "nvmlDeviceGetMaxPcieLinkWidth": 16}[name])


@pytest.mark.parametrize(
    ("card", "expected"),
    [
        (Card(0, [1, 2, 1, None, 1]), Wire("nvlink", 3, 3 * 26562e6)),  # those to the peer that are up
        (Card(0, ["switch"] * 18), Wire("nvswitch", 18, 18 * 26562e6)),
        (Card(0, [1, 1], speed=None), Wire("nvlink", 2, None)),
        (Card(0, [2, None]), Wire("pcie", 16, 16 * 3.938e9)),
        (Card(0, [], pcie=9), Wire("pcie", 16, None)),  # a generation that is not known here
        (Card(0, [], pcie=0), None),
    ],
)
def test_the_wire_is_the_fastest_that_leads_to_the_peer(card: Card, expected: Wire | None) -> None:
    assert wire(card, Card(1, [])) == expected  # type: ignore[arg-type]
