# Written by tools/name_stubs.py from what the modules say they give.
from pygpukit.llm.template import CHATML_TEMPLATE as CHATML_TEMPLATE
from pygpukit.llm.template import LLAMA2_TEMPLATE as LLAMA2_TEMPLATE
from pygpukit.llm.template import LLAMA3_TEMPLATE as LLAMA3_TEMPLATE
from pygpukit.llm.template import MISTRAL_TEMPLATE as MISTRAL_TEMPLATE
from pygpukit.llm.template import QWEN_TEMPLATE as QWEN_TEMPLATE
from pygpukit.llm.template import TEMPLATES as TEMPLATES
from pygpukit.llm.template import ChatMessage as ChatMessage
from pygpukit.llm.template import ChatTemplate as ChatTemplate
from pygpukit.llm.template import apply_chat_template as apply_chat_template
from pygpukit.llm.template import create_chat_prompt as create_chat_prompt
from pygpukit.llm.template import format_chat_messages as format_chat_messages
from pygpukit.llm.tokenizer import TextStream as TextStream
from pygpukit.llm.tokenizer import Tokenizer as Tokenizer
from pygpukit.models.safetensors import Dtype as Dtype
from pygpukit.models.safetensors import SafeTensorsFile as SafeTensorsFile
from pygpukit.models.safetensors import ShardedSafeTensorsFile as ShardedSafeTensorsFile
from pygpukit.models.safetensors import TensorInfo as TensorInfo
from pygpukit.models.safetensors import load_safetensors as load_safetensors

__all__: list[str]
_HOME_OF: dict[str, str]
