"""Configuration fields that the reference of each architecture reads, by their use here.

The references are the configuration classes of transformers.
"""

from __future__ import annotations

from dataclasses import replace

from pygpukit.models.fields import FieldTable


def names(text: str) -> frozenset[str]:
    """The fields of a text."""
    return frozenset(text.split())


# They name the model, or are of its training, its saving or how answers are sampled.
_HARMLESS = names(
    "model_type architectures transformers_version torch_dtype dtype use_cache bos_token_id eos_token_id pad_token_id "
    "unk_token_id sep_token_id cls_token_id mask_token_id decoder_start_token_id initializer_range "
    "attention_dropout hidden_dropout dropout attn_pdrop embd_pdrop resid_pdrop pretraining_tp auto_map "
    "attn_implementation output_attentions output_hidden_states return_dict return_dict_in_generate "
    "use_return_dict torchscript id2label label2id num_labels problem_type task_specific_params tokenizer_class "
    "use_bfloat16 chunk_size_feed_forward finetuning_task prefix max_length min_length do_sample early_stopping "
    "num_beams num_beam_groups num_return_sequences diversity_penalty temperature top_k top_p typical_p "
    "repetition_penalty length_penalty no_repeat_ngram_size encoder_no_repeat_ngram_size bad_words_ids "
    "suppress_tokens begin_suppress_tokens forced_bos_token_id forced_eos_token_id remove_invalid_values "
    "exponential_decay_length_penalty output_scores tf_legacy_loss cache_implementation is_llama_config "
    "gradient_checkpointing use_flash_attn unsloth_version unsloth_fixed model_max_length "
    "transformers.js_config quantization_config original_max_position_embeddings is_decoder "
    "_name_or_path _attn_implementation_autoset _attn_implementation _flash_attn_2_enabled _commit_hash "
    "_experts_implementation experts_implementation language license "
    "base_model_tp_plan base_model_pp_plan cross_attention_hidden_size tie_encoder_decoder"
)
_NEUTRAL = {
    "is_encoder_decoder": (False,),
    "add_cross_attention": (False,),
    "pruned_heads": ({},),
    "partial_rotary_factor": (1,),
    "rotary_pct": (1,),
    "rotary_dim": (),
    "rope_interleaved": (False,),
    "use_rope": (True,),
    "no_rope_layers": ([],),
    "no_rope_layer_interval": (),
    "alibi": (False,),
    "use_alibi": (False,),
    "attention_multiplier": (),
    "attention_scale": (),
    "query_pre_attn_scalar": (),
    "attention_value_scale": (1,),
    "embedding_multiplier": (1,),
    "embedding_scale": (1,),
    "scale_emb": (1,),
    "scale_embedding": (False,),
    "scale_depth": (),
    "dim_model_base": (),
    "residual_multiplier": (1,),
    "residual_scale": (1,),
    "logit_scale": (1,),
    "logits_scaling": (1,),
    "lm_head_multiplier": (1,),
    "final_logit_softcapping": (),
    "attn_logit_softcapping": (),
    "logits_soft_cap": (),
    "clip_qkv": (),
    "qk_layernorm": (False,),
    "use_qk_norm": (False,),
    "qk_norm": (False,),
    "use_parallel_residual": (False,),
    "parallel_attn": (False,),
    "lm_head_bias": (False,),
    "head_bias": (False,),
    "attention_chunk_size": (),
    "attn_temperature_tuning": (False, 0),
    "attention_sinks": (False,),
    "num_experts": (0,),
    "num_local_experts": (0,),
    "n_routed_experts": (0,),
    "moe_num_experts": (0,),
    "num_nextn_predict_layers": (0,),
    "cross_layer_kv_share": (False,),
    "sparse_attention": (False,),
    "local_attention": (False,),
}
_LLAMA = names(
    "vocab_size hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads head_dim "
    "hidden_act max_position_embeddings rms_norm_eps rope_theta rope_scaling rope_parameters tie_word_embeddings "
    "attention_bias mlp_bias sliding_window layer_types"
)

LLAMA_FIELDS = FieldTable(_LLAMA, _NEUTRAL, _HARMLESS, {"rms_norm_eps": 1e-6, "tie_word_embeddings": False})
# Mistral's classes have no biases: nobody reads these two, whatever they say.
MISTRAL_FIELDS = replace(
    LLAMA_FIELDS,
    read=_LLAMA - {"attention_bias", "mlp_bias"},
    neutral={**_NEUTRAL, "attention_bias": (False,), "mlp_bias": (False,)},
    defaults={**LLAMA_FIELDS.defaults, "num_key_value_heads": 8, "sliding_window": 4096},
)
# Biases of Qwen2's query, key and value are always there.
QWEN2_FIELDS = replace(
    LLAMA_FIELDS,
    read=_LLAMA - {"attention_bias", "mlp_bias"} | {"use_sliding_window", "max_window_layers"},
    neutral={**_NEUTRAL, "mlp_bias": (False,)},
    harmless=_HARMLESS | {"attention_bias"},
    defaults={
        **LLAMA_FIELDS.defaults,
        "num_key_value_heads": 32,
        "use_sliding_window": False,
        "sliding_window": 4096,
        "max_window_layers": 28,
    },
)
QWEN3_FIELDS = replace(
    QWEN2_FIELDS,
    read=QWEN2_FIELDS.read | {"attention_bias"},
    harmless=_HARMLESS,
    defaults={**QWEN2_FIELDS.defaults, "head_dim": 128},
)
GPT2_FIELDS = FieldTable(
    names(
        "vocab_size n_positions n_embd n_layer n_head n_inner activation_function layer_norm_epsilon "
        "scale_attn_weights scale_attn_by_inverse_layer_idx tie_word_embeddings hidden_size num_hidden_layers "
        "num_attention_heads max_position_embeddings"
    ),
    _NEUTRAL,
    _HARMLESS
    | {"n_ctx", "reorder_and_upcast_attn", "summary_type", "summary_use_proj", "summary_activation"}
    | {"summary_proj_to_labels", "summary_first_dropout"},
    {"tie_word_embeddings": True, "layer_norm_epsilon": 1e-5},
)
