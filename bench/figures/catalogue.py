"""All figures by name."""

from . import contests, convolutions, copies, drawn, operators, products, prompts, requests, shapes, tenants
from .picture import Figure

FIGURES: dict[str, Figure] = {
    figure.name: figure
    for module in (operators, shapes, products, prompts, convolutions, drawn, contests, requests, copies, tenants)
    for figure in module.FIGURES
}
