# Written by tools/name_stubs.py from the tables of names in __init__.py.
from pygpukit.llm.tokenizer import TextStream as TextStream
from pygpukit.llm.tokenizer import Tokenizer as Tokenizer
from pygpukit.models.safetensors import Dtype as Dtype
from pygpukit.models.safetensors import SafeTensorsFile as SafeTensorsFile
from pygpukit.models.safetensors import ShardedSafeTensorsFile as ShardedSafeTensorsFile
from pygpukit.models.safetensors import TensorInfo as TensorInfo
from pygpukit.models.safetensors import load_safetensors as load_safetensors

__all__: list[str]
_HOME_OF: dict[str, str]
