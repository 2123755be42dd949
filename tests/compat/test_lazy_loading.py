"""The documented lazy loader: bits, budget and order of what gives way, and the strategies by layer."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from memory.test_transfer_engine import blocked  # noqa: F401 - a fixture
from models.test_safetensors import entry, raw
from safetensors.numpy import save_file

import pygpukit as gp
from pygpukit.core.errors import DriverError, InvalidSpecError, ModelFileError, OutOfMemoryError
from pygpukit.llm import AutoLRU, LayerStreamingContext, LazyModelLoader, SimpleStreaming, SlidingWindow, TensorState

pytestmark = pytest.mark.usefixtures("backend_name")

LAYERS, SIZES = 7, {"attn": (5, 33), "mlp": (130, 3), "norm": (9,)}
LAYER_BYTES = 4 * sum(int(np.prod(shape)) for shape in SIZES.values())
PREFIXES = [f"model.layers.{number}." for number in range(12)]


@pytest.fixture
def tensors() -> dict[str, np.ndarray]:
    rng = np.random.default_rng()
    layers = {
        f"{PREFIXES[number]}{name}.weight": rng.standard_normal(shape).astype(np.float32)
        for number in range(LAYERS)
        for name, shape in SIZES.items()
    }
    return {"embed": rng.standard_normal((11, 3)).astype(np.float32), **layers}


@pytest.fixture
def file(tensors: dict[str, np.ndarray], tmp_path: Path) -> Path:
    save_file(tensors, tmp_path / "m.safetensors")
    return tmp_path / "m.safetensors"


def opened(file: Path, budget: int, evicts: bool = True) -> LazyModelLoader:
    loader = LazyModelLoader(budget, evicts)
    loader.load_file(file)
    return loader


def test_tensors_come_to_the_device_when_they_are_asked_for(file: Path, tensors: dict[str, np.ndarray]) -> None:
    loader = opened(file, 1 << 20)
    assert (len(loader), loader.num_files, loader.num_loaded(), loader.loaded_size) == (1 + 3 * LAYERS, 1, 0, 0)
    assert set(loader.tensor_names) == set(tensors) and "embed" in loader and "other" not in loader
    assert loader.total_size == sum(array.nbytes for array in tensors.values())
    for name, values in tensors.items():
        assert loader.state(name) is TensorState.OnDisk and loader.tensor_data_ptr(name) == (0, values.nbytes)
        info = loader.get(name)
        assert info is not None and (info.name, tuple(info.shape), info.size_bytes) == (
            name,
            values.shape,
            values.nbytes,
        )
        address, size = loader.tensor_data_ptr(name)
        array = loader.array(name)
        assert (address, size) == (array.device_ptr, values.nbytes) and loader.state(name) is TensorState.OnGpu
        np.testing.assert_array_equal(array.to_numpy(), values)
        assert array.name == f"m/{name}"
    assert loader.loaded_size == loader.total_size and loader.num_loaded() == len(loader)
    assert f"tensors={len(loader)} of {len(loader)} loaded" in repr(loader)
    assert loader.get("other") is None
    for call in (
        loader.array,
        loader.state,
        loader.tensor_data_ptr,
        lambda name: loader.unload_tensors(["embed", name]),
    ):
        with pytest.raises(KeyError, match="no tensor 'other'"):
            call("other")
    assert loader.state("embed") is TensorState.OnGpu


@pytest.mark.parametrize(
    ("kind", "dtype", "size"), [("BF16", "bfloat16", 2), ("F8_E4M3", "float8_e4m3", 1), ("I64", "int64", 8)]
)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 5), (7, 13)])
def test_every_type_and_shape_keeps_its_bits(
    tmp_path: Path, kind: str, dtype: str, size: int, shape: tuple[int, ...]
) -> None:
    data = np.random.default_rng().bytes(size * int(np.prod(shape)))
    path = tmp_path / "m.safetensors"
    path.write_bytes(raw({"pad": entry("U8", [1], 0, 1), "a": entry(kind, [*shape], 1, 1 + len(data))}, b"!" + data))
    array = opened(path, 1 << 20).array("a")
    assert (array.dtype.name, tuple(array.shape)) == (dtype, shape)
    assert array.to_numpy().tobytes() == data


def test_what_was_not_used_for_longest_gives_way(file: Path, tensors: dict[str, np.ndarray]) -> None:
    """Beside a model of the cache: a list of names in the order of their use."""
    rng, names, budget = np.random.default_rng(), list(tensors), 3 * LAYER_BYTES
    loader, expected, evictions = opened(file, budget), list[str](), 0
    gone: set[str] = set()
    for _ in range(300):
        name = names[rng.integers(len(names))]
        if rng.random() < 0.1:
            assert loader.unload_tensors([name, name]) == ((1, tensors[name].nbytes) if name in expected else (0, 0))
            expected = [other for other in expected if other != name]
            continue
        np.testing.assert_array_equal(loader.array(name).to_numpy(), tensors[name])
        expected = [other for other in expected if other != name] + [name]
        gone.discard(name)
        while sum(tensors[other].nbytes for other in expected) > budget:
            gone.add(expected.pop(0))
            evictions += 1
        assert loader.loaded_tensors() == expected
        assert loader.loaded_size == sum(tensors[other].nbytes for other in expected) <= budget
        assert {other for other in names if loader.state(other) is TensorState.Evicted} == gone
    stats = loader.pool_stats
    assert (stats.quota, stats.used, stats.available) == (budget, loader.loaded_size, budget - loader.loaded_size)
    assert (stats.eviction_count, stats.active_blocks, stats.total_blocks) == (evictions, len(expected), len(expected))
    assert stats.allocation_count == stats.reuse_count + stats.cudamalloc_count and stats.reuse_count > 0
    assert stats.utilization == 100 * stats.used / budget and evictions > 0


def test_the_device_has_no_more_than_the_budget(tmp_path: Path) -> None:
    size = 1 << 20
    save_file(
        {f"t{number}": np.full(size // 4, number, np.float32) for number in range(12)}, tmp_path / "m.safetensors"
    )
    loader = opened(tmp_path / "m.safetensors", 3 * size)
    gp.gc()
    before = gp.memory.stats()["used"]
    for number in range(12):
        assert loader.get(f"t{number}") is not None
        assert gp.memory.stats()["used"] - before <= 3 * size
    assert loader.unload_model() == 3 * size and loader.loaded_size == 0


def test_without_eviction_what_does_not_fit_is_refused(file: Path, tensors: dict[str, np.ndarray]) -> None:
    loader = opened(file, 2 * LAYER_BYTES, evicts=False)
    for name in loader.get_layer_tensors(PREFIXES[0]) + loader.get_layer_tensors(PREFIXES[1]):
        loader.get(name)
    with pytest.raises(OutOfMemoryError, match=r"enable_eviction=False keeps \d+ bytes.*unload others") as refused:
        loader.get("embed")
    assert (refused.value.requested, refused.value.free) == (tensors["embed"].nbytes, 0)
    loader.unload_layer(PREFIXES[0])
    np.testing.assert_array_equal(loader.array("embed").to_numpy(), tensors["embed"])


def test_a_tensor_larger_than_the_budget_is_refused_before_others_give_way(file: Path) -> None:
    loader = opened(file, 500)
    assert loader.get("embed") is not None
    with pytest.raises(OutOfMemoryError, match=r"'model.layers.0.attn.weight' has 660 bytes, memory_budget=500"):
        loader.get("model.layers.0.attn.weight")
    assert loader.loaded_tensors() == ["embed"]


@pytest.mark.parametrize("budget", ["much", -1, 1.5, True])
def test_a_budget_that_is_no_size_is_refused(budget: Any) -> None:
    with pytest.raises(InvalidSpecError, match="memory_budget") as refused:
        LazyModelLoader(budget)
    assert refused.value.field == "memory_budget"


def test_an_array_that_somebody_keeps_stays_valid(file: Path, tensors: dict[str, np.ndarray]) -> None:
    loader = opened(file, LAYER_BYTES)
    kept = {name: loader.array(name) for name in tensors}
    assert loader.clear() > 0 and len(loader) == loader.num_files == 0
    for name, array in kept.items():
        np.testing.assert_array_equal(array.to_numpy(), tensors[name])


def test_layers_by_their_prefix(file: Path) -> None:
    loader = opened(file, 1 << 20)
    names = loader.get_layer_tensors(PREFIXES[1])
    assert len(names) == 3 and loader.get_layer_tensors(PREFIXES[10]) == []
    assert loader.layer_state(PREFIXES[1]) == (3, 0, LAYER_BYTES, 0) and not loader.is_layer_loaded(PREFIXES[1])
    first = loader.get(names[0])
    assert first is not None
    assert loader.layer_state(PREFIXES[1]) == (3, 1, LAYER_BYTES, first.size_bytes)
    for name in names:
        loader.get(name)
    assert loader.is_layer_loaded(PREFIXES[1]) and not loader.is_layer_loaded(PREFIXES[10])
    assert loader.layer_size(PREFIXES[1]) == LAYER_BYTES and loader.layer_size(PREFIXES[10]) == 0
    assert loader.unload_layer(PREFIXES[1]) == (3, LAYER_BYTES) and loader.unload_layer(PREFIXES[1]) == (0, 0)
    assert loader.state(names[0]) is TensorState.OnDisk


def test_several_files_are_one_model(tmp_path: Path) -> None:
    for name in ("a", "b"):
        save_file({name: np.full(3, ord(name), np.float32)}, tmp_path / f"{name}.safetensors")
    loader = opened(tmp_path / "a.safetensors", 100)
    loader.load_file(tmp_path / "b.safetensors")
    assert (loader.tensor_names, loader.num_files) == (["a", "b"], 2)
    assert loader.array("b").to_numpy().tolist() == [98.0] * 3
    with pytest.raises(ModelFileError, match=r"the tensor 'a' is in .*a\.safetensors, too; clear"):
        loader.load_file(tmp_path / "a.safetensors")
    (tmp_path / "c.safetensors").write_bytes(b"1234567")
    with pytest.raises(ModelFileError, match=r"c\.safetensors"):
        loader.load_file(tmp_path / "c.safetensors")
    assert loader.num_files == 2
    loader.clear()
    loader.load_file(tmp_path / "a.safetensors")
    assert loader.tensor_names == ["a"]


def test_a_copy_that_is_under_way_is_told_as_loading(
    file: Path,
    tensors: dict[str, np.ndarray],
    blocked: gp.Stream,  # noqa: F811
) -> None:
    loader = opened(file, 1 << 20)
    with blocked:  # whose work comes before the copy
        loader.get("embed")
    assert loader.state("embed") is TensorState.Loading and loader.loaded_tensors() == ["embed"]


def test_a_copy_that_failed_is_told_once_and_tried_again(
    file: Path, tensors: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failed:
        state = "Failed"

        def wait(self) -> None:
            raise DriverError("the device is on fire")

    loader = opened(file, LAYER_BYTES)
    with monkeypatch.context() as patch:
        patch.setattr(loader._residents._engine, "to_device", lambda array, source: Failed())
        loader.get("embed")
    assert loader.state("embed") is TensorState.OnDisk
    with pytest.raises(DriverError, match="on fire"):
        loader.array("embed")
    assert loader.loaded_size == 0
    np.testing.assert_array_equal(loader.array("embed").to_numpy(), tensors["embed"])


def test_threads_share_a_loader(file: Path, tensors: dict[str, np.ndarray]) -> None:
    loader, problems = opened(file, 2 * LAYER_BYTES), list[str]()

    def read(seed: int) -> None:
        rng, names = np.random.default_rng(seed), list(tensors)
        for _ in range(40):
            name = names[rng.integers(len(names))]
            if not np.array_equal(loader.array(name).to_numpy(), tensors[name]):
                problems.append(name)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems and loader.loaded_size <= 2 * LAYER_BYTES


def layers_of(loader: LazyModelLoader) -> list[int]:
    return [number for number in range(LAYERS) if loader.is_layer_loaded(PREFIXES[number])]


def passed(context: LayerStreamingContext, tensors: dict[str, np.ndarray]) -> list[list[int]]:
    """The layers on the device as each is prepared, whose values are the file's."""
    seen = []
    with context:
        for number in range(LAYERS):
            context.prepare(number)
            assert context.current_layer == number
            seen.append(layers_of(context.loader))
            for name in context.loader.get_layer_tensors(context.layer_prefix(number)):
                np.testing.assert_array_equal(context.loader.array(name).to_numpy(), tensors[name])
    assert context.current_layer is None
    return seen


def test_simple_streaming_has_one_layer_at_a_time(file: Path, tensors: dict[str, np.ndarray]) -> None:
    loader = opened(file, LAYER_BYTES)
    assert passed(gp.llm.create_streaming_context(loader, "simple", LAYERS), tensors) == [[n] for n in range(LAYERS)]
    assert loader.num_loaded() == 0 and loader.pool_stats.eviction_count == 0


@pytest.mark.parametrize(("size", "ahead"), [(4, 1), (3, 2), (2, 5), (1, 1), (9, 0)])
def test_a_sliding_window_has_those_ahead_and_those_before(
    file: Path, tensors: dict[str, np.ndarray], size: int, ahead: int
) -> None:
    loader, reached = opened(file, size * LAYER_BYTES + 200), min(ahead, size - 1)
    loader.get("embed")
    context = LayerStreamingContext(loader, SlidingWindow(size, ahead), LAYERS)
    expected = [
        [other for other in range(LAYERS) if number + reached - size < other <= number + reached]
        for number in range(LAYERS)
    ]
    for _ in range(2):  # the second pass begins with the last layers on the device
        assert passed(context, tensors) == expected
    assert loader.state("embed") is TensorState.OnGpu and loader.pool_stats.eviction_count == 0
    with context:
        context.prepare(5)
        context.prepare(1)
        assert layers_of(loader) == expected[1][-reached - 1 :] or size > 1 + reached


def test_auto_lru_keeps_what_there_is_room_for(file: Path, tensors: dict[str, np.ndarray]) -> None:
    loader = opened(file, 3 * LAYER_BYTES)
    seen = passed(LayerStreamingContext(loader, AutoLRU(), LAYERS), tensors)
    assert seen == [list(range(max(number - 2, 0), number + 1)) for number in range(LAYERS)]
    assert layers_of(loader) == [4, 5, 6] and loader.pool_stats.eviction_count == 3 * (LAYERS - 3)
    passed(gp.llm.create_streaming_context(loader, "auto", LAYERS, unload_on_end=True), tensors)
    assert loader.num_loaded() == 0


def test_what_the_budget_does_not_hold_is_refused_before_anything_moves(file: Path) -> None:
    loader = opened(file, 2 * LAYER_BYTES)
    loader.get("embed")
    with LayerStreamingContext(loader, SlidingWindow(3, 2), LAYERS) as context:
        with pytest.raises(OutOfMemoryError, match="smaller window_size") as refused:
            context.prepare(0)
        assert refused.value.requested == 3 * LAYER_BYTES and loader.loaded_tensors() == ["embed"]
    for strategy in (SimpleStreaming(), AutoLRU()):
        with LayerStreamingContext(opened(file, LAYER_BYTES - 1), strategy, LAYERS) as context:
            with pytest.raises(OutOfMemoryError, match=r"model.layers.0. take \d+ bytes"):
                context.prepare(0)
            assert context.loader.num_loaded() == 0


def test_the_layer_ends_where_a_pass_breaks_off(file: Path) -> None:
    loader = opened(file, 1 << 20)
    context = LayerStreamingContext(loader, SimpleStreaming(), LAYERS)
    with pytest.raises(KeyboardInterrupt), context:
        context.prepare(2)
        raise KeyboardInterrupt
    assert loader.num_loaded() == 0 and context.current_layer is None


def test_a_strategy_of_ones_own_is_told_of_each_layer(file: Path) -> None:
    said: list[tuple[str, int]] = []

    class Own(gp.llm.LoadingStrategy):
        def on_start(self, loader: LazyModelLoader, num_layers: int) -> None:
            said.append(("begin", num_layers))

        def on_layer_start(self, loader: LazyModelLoader, layer_idx: int, num_layers: int) -> None:
            said.append(("start", layer_idx))

        def on_layer_end(self, loader: LazyModelLoader, layer_idx: int, num_layers: int) -> None:
            said.append(("end", layer_idx))

        def on_end(self, loader: LazyModelLoader, num_layers: int) -> None:
            said.append(("stop", num_layers))

    with LayerStreamingContext(opened(file, 0), Own(), 3, "h.{}.") as context:
        context.prepare(2)
        context.prepare(0)
        assert context.layer_prefix(2) == "h.2."
    assert said == [("begin", 3), ("start", 2), ("end", 2), ("start", 0), ("end", 0), ("stop", 3)]


def test_what_fits_no_context_is_refused_by_name(file: Path) -> None:
    loader = opened(file, 1 << 20)
    for arguments, field in (
        ((SimpleStreaming(), 0), "num_layers"),
        ((SimpleStreaming(), 2.5), "num_layers"),
        ((SimpleStreaming("h."), 3, "h."), "prefix_template"),
        ((SimpleStreaming(), 3, "h.{}."), "prefix_template"),
    ):
        with pytest.raises(InvalidSpecError) as refused:
            LayerStreamingContext(loader, *arguments)
        assert refused.value.field == field
    for kwargs in ({"window_size": 0}, {"prefetch_ahead": -1}, {"window_size": 1.5}):
        with pytest.raises(InvalidSpecError, match=next(iter(kwargs))):
            gp.llm.create_streaming_context(loader, "sliding", 3, **kwargs)
    with pytest.raises(InvalidSpecError, match="give 'simple', 'sliding' or 'auto'"):
        gp.llm.create_streaming_context(loader, "fast", 3)
    with pytest.raises(InvalidSpecError, match="window_size: settings of a strategy by name"):
        gp.llm.create_streaming_context(loader, SimpleStreaming(), 3, window_size=3)
    context = gp.llm.create_streaming_context(loader, "LRU", 3, "other.{}.")
    with pytest.raises(InvalidSpecError, match="enter it first"):
        context.prepare(0)
    with context:
        for layer in (3, -1, 0.5):
            with pytest.raises(InvalidSpecError, match="0 to 2"):
                context.prepare(layer)  # type: ignore[arg-type]
        with pytest.raises(InvalidSpecError, match=r"no tensor of the loader begins with 'other.0.'"):
            context.prepare(0)


def test_figures_of_a_context(file: Path) -> None:
    loader = opened(file, 1 << 30)
    with gp.llm.create_streaming_context(loader, "auto", LAYERS) as context:
        context.prepare(0)
        stats = context.memory_stats
    assert (stats["quota_gb"], stats["active_blocks"], stats["eviction_count"]) == (1.0, 3, 0)
    assert stats["used_gb"] == LAYER_BYTES / (1 << 30) == 1.0 - stats["available_gb"]
    assert stats["utilization_pct"] == 100 * stats["used_gb"]
    assert LazyModelLoader(0).pool_stats.utilization == 0.0


def test_states_have_names_by_class_and_member() -> None:
    assert [(state.value, state.name) for state in TensorState] == [
        (0, "OnDisk"),
        (1, "Loading"),
        (2, "OnGpu"),
        (3, "Evicted"),
    ]
    assert TensorState.name(3) == "Evicted"  # type: ignore[operator]
    assert TensorState["OnGpu"] is TensorState(2)
    assert "OnGpu" in repr(TensorState.OnGpu)
