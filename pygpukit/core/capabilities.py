"""DeviceCapabilities and KernelType: what a device, or an architecture by its number, can do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

# The first SM versions that have them.
TENSOR_CORES, BFLOAT16, ASYNC_COPY = 70, 80, 80


@dataclass(frozen=True)
class KernelType:
    """A way to multiply matrices, by what of the device it uses. The members are class attributes."""

    _name: str
    _min_sm_version: int = 0

    FP32_FMA: ClassVar[KernelType]
    TF32_MMA: ClassVar[KernelType]
    FP16_MMA: ClassVar[KernelType]
    BF16_MMA: ClassVar[KernelType]
    L2_NAIVE: ClassVar[KernelType]
    TILED_SMEM: ClassVar[KernelType]

    def name(self) -> str:
        """Such as "TF32_MMA"."""
        return self._name

    def uses_tensor_cores(self) -> bool:
        return self._min_sm_version > 0

    def min_sm_version(self) -> int:
        """The first SM version that has the instructions; 0 where every one has."""
        return self._min_sm_version

    def __repr__(self) -> str:
        return f"KernelType.{self._name}"


for _kind, _first in (
    ("FP32_FMA", 0),
    ("TF32_MMA", BFLOAT16),
    ("FP16_MMA", TENSOR_CORES),
    ("BF16_MMA", BFLOAT16),
    ("L2_NAIVE", 0),
    ("TILED_SMEM", 0),
):
    setattr(KernelType, _kind, KernelType(_kind, _first))


@dataclass(frozen=True)
class DeviceCapabilities:
    """Features of a device: gp.get_device_capabilities(). By an SM number alone: what every device of it can.

    sm_version is 90 for SM 9.0, and so is compute_capability. Sizes are in bytes; shared_mem_per_block is what a kernel
    may have unless it asks for more. What only a device can tell is 0 for a number alone.
    """

    sm_version: int = 86
    device_id: int = 0
    name: str = ""
    has_tensor_cores: bool | None = None  # None: as the number says
    total_memory: int = 0
    l2_cache_size: int = 0
    shared_mem_per_block: int = 48 << 10
    max_threads_per_block: int = 1024
    sm_count: int = 0
    warp_size: int = 32

    def __post_init__(self) -> None:
        if not 10 <= self.sm_version < 1000:
            raise ValueError(f"sm_version={self.sm_version}; give ten times the version, 90 for SM 9.0")
        if not self.name:
            object.__setattr__(self, "name", f"SM {self.compute_major}.{self.compute_minor}")

    @staticmethod
    def ampere() -> DeviceCapabilities:
        """Of SM 8.0."""
        return DeviceCapabilities(80)

    @staticmethod
    def ada() -> DeviceCapabilities:
        """Of SM 8.9."""
        return DeviceCapabilities(89)

    @staticmethod
    def hopper() -> DeviceCapabilities:
        """Of SM 9.0."""
        return DeviceCapabilities(90)

    @property
    def compute_capability(self) -> int:
        return self.sm_version

    @property
    def compute_major(self) -> int:
        return self.sm_version // 10

    @property
    def compute_minor(self) -> int:
        return self.sm_version % 10

    @property
    def tensorcore(self) -> bool:
        return self.sm_version >= TENSOR_CORES if self.has_tensor_cores is None else self.has_tensor_cores

    @property
    def tensorcore_fp16(self) -> bool:
        return self.tensorcore

    @property
    def tensorcore_bf16(self) -> bool:
        return self.tensorcore and self.sm_version >= BFLOAT16

    @property
    def async_copy(self) -> bool:
        """Copies to shared memory that do not pass through registers. The simulated device does them at once."""
        return self.sm_version >= ASYNC_COPY

    def is_ampere_or_newer(self) -> bool:
        return self.sm_version >= ASYNC_COPY

    def supports_kernel(self, kernel_type: KernelType) -> bool:
        """True where kernels of the type run here."""
        return self.sm_version >= kernel_type.min_sm_version() and (
            self.tensorcore or not kernel_type.uses_tensor_cores()
        )

    def best_matmul_kernel(
        self, use_tf32: bool = False, dtype_is_fp32: bool = True, large_matrix: bool = True
    ) -> KernelType:
        """The type that suits a matrix product. float32 stays float32 unless use_tf32 says otherwise."""
        kernel = KernelType.TF32_MMA if dtype_is_fp32 else KernelType.FP16_MMA
        if (use_tf32 or not dtype_is_fp32) and self.supports_kernel(kernel):
            return kernel
        if not large_matrix:
            return KernelType.L2_NAIVE
        return KernelType.FP32_FMA if self.is_ampere_or_newer() else KernelType.TILED_SMEM
