"""Tiny Hugging Face models with random weights, one for each kind of attention.

    model = MODELS["gpt_oss"].build("eager")
    MODELS["gpt_oss"].family      "decoder"

No downloads: every model is built from a configuration.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn

Family = Literal["decoder", "encoder", "encoder-decoder", "vision", "audio", "latents"]
VOCABULARY = 37
LENGTH = 10
"""Tokens of an example before any is generated."""
DIM, LAYERS, HEADS = 32, 2, 4
WIDTHS = {
    "vocab_size": VOCABULARY,
    "hidden_size": DIM,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": 40,
}
IDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
GROUPED = {**WIDTHS, **IDS, "num_key_value_heads": 2, "max_position_embeddings": 64}
PLAIN = {**GROUPED, "num_key_value_heads": HEADS}
BERT = {**WIDTHS, "pad_token_id": 0, "max_position_embeddings": 128}
SEQ2SEQ = {
    "vocab_size": VOCABULARY,
    "d_model": DIM,
    "encoder_layers": LAYERS,
    "decoder_layers": LAYERS,
    "encoder_attention_heads": HEADS,
    "decoder_attention_heads": HEADS,
    "encoder_ffn_dim": 37,
    "decoder_ffn_dim": 37,
    "max_position_embeddings": 64,
    "decoder_start_token_id": 2,
    **IDS,
}
T5 = {
    "vocab_size": VOCABULARY,
    "d_model": DIM,
    "d_kv": 8,
    "d_ff": 40,
    "num_layers": LAYERS,
    "num_heads": HEADS,
    "decoder_start_token_id": 0,
    "pad_token_id": 0,
    "eos_token_id": 1,
}
IMAGE = {
    "image_size": 12,
    "patch_size": 4,
    "num_channels": 3,
    "hidden_size": DIM,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": 40,
}
SPEECH = {
    "hidden_size": DIM,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": 40,
    "conv_dim": (16, 16),
    "conv_stride": (4, 4),
    "conv_kernel": (8, 4),
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 4,
    "num_conv_pos_embedding_groups": 2,
    "vocab_size": VOCABULARY,
}


@dataclass(frozen=True)
class TinyModel:
    """One architecture: how to make it, and what attention to expect."""

    name: str
    family: Family
    attention: str
    """What is special about its attention, for the table."""
    config: str
    """Class of its configuration."""
    model: str
    settings: dict[str, Any] | Callable[[], dict[str, Any]]
    length: int = LENGTH
    caches: bool = True
    """Whether it generates with a cache of Hugging Face."""
    pads: bool = True
    """Whether it takes an attention mask."""
    steps: tuple[int, ...] = (1, 2)
    """Tokens of each pass after the text, where it generates."""
    inputs: Callable[[], dict[str, Any]] | None = None
    """Inputs that are no texts."""

    def build(self, implementation: str) -> nn.Module:
        """The model in evaluation mode; the same weights for every implementation of attention."""
        import transformers

        settings = self.settings() if callable(self.settings) else self.settings
        config = getattr(transformers, self.config)(**settings)
        torch.manual_seed(0)
        kind = getattr(transformers, self.model)
        config._experts_implementation = "eager"  # the grouped kernel knows no double precision
        model = kind._from_config(config, attn_implementation=implementation).eval()
        randomise(model)
        return model


def randomise(model: nn.Module) -> None:
    """Draw weights that give sharp attention; after initialisation it is almost uniform."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            drawn = torch.randn(parameter.shape, generator=generator)
            if "sink" in name:
                parameter.copy_(drawn + 1)
            elif parameter.ndim > 1:
                parameter.copy_(drawn / parameter[0].numel() ** 0.5)
            elif "norm" not in name.lower() and "ln_" not in name.lower():
                parameter.copy_(parameter + 0.1 * drawn)


def _model(
    name: str,
    family: Family,
    attention: str,
    stem: str,
    head: str,
    settings: dict[str, Any],
    **more: Any,
) -> TinyModel:
    return TinyModel(name, family, attention, f"{stem}Config", f"{stem}{head}", settings, **more)


def decoder(
    name: str,
    attention: str,
    stem: str,
    settings: dict[str, Any],
    head: str = "ForCausalLM",
    **more: Any,
) -> TinyModel:
    return _model(name, "decoder", attention, stem, head, settings, **more)


def encoder(
    name: str, attention: str, stem: str, settings: dict[str, Any], **more: Any
) -> TinyModel:
    return _model(name, "encoder", attention, stem, "Model", settings, caches=False, **more)


def random_tensor(*shape: int, seed: int = 3) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def pixels() -> dict[str, Any]:
    return {"pixel_values": random_tensor(2, 3, 12, 12)}


def big_pixels() -> dict[str, Any]:
    return {"pixel_values": random_tensor(2, 3, 32, 32)}


def detection() -> dict[str, Any]:
    """Settings of a detector with a small backbone of its own."""
    from transformers import ResNetConfig

    stages = ["stage2", "stage3", "stage4"]
    backbone = ResNetConfig(
        embedding_size=8, hidden_sizes=[8] * 4, depths=[1] * 4, out_features=stages
    )
    return {
        "use_timm_backbone": False,
        "backbone_config": backbone,
        "backbone": None,
        "use_pretrained_backbone": False,
        "d_model": DIM,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "encoder_attention_heads": HEADS,
        "decoder_attention_heads": HEADS,
        "encoder_ffn_dim": 40,
        "decoder_ffn_dim": 40,
        "num_queries": 5,
    }


def vision(
    name: str, attention: str, stem: str, settings: dict[str, Any], head: str = "Model", **more: Any
) -> TinyModel:
    more = {"inputs": pixels} | more
    return _model(name, "vision", attention, stem, head, settings, caches=False, pads=False, **more)


def speech() -> dict[str, Any]:
    return {"input_values": random_tensor(2, 320)}


def sounds(
    name: str, attention: str, stem: str, settings: dict[str, Any], **more: Any
) -> TinyModel:
    more = {"inputs": speech} | more
    return _model(
        name, "audio", attention, stem, "Model", settings, caches=False, pads=False, **more
    )


MOE = {"num_local_experts": 4, "num_experts_per_tok": 2}
GPT2 = {
    "vocab_size": VOCABULARY,
    "n_embd": DIM,
    "n_layer": LAYERS,
    "n_head": HEADS,
    "n_positions": 64,
    **IDS,
}
SLIDING = {"sliding_window": 4, "layer_types": ["sliding_attention", "full_attention"]}
MLA = {
    **PLAIN,
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 6,
    "first_k_dense_replace": 2,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "n_group": 2,
    "topk_group": 1,
    "moe_intermediate_size": 16,
}

MODELS: dict[str, TinyModel] = {
    model.name: model
    for model in (
        # decoders
        decoder("gpt2", "plain", "GPT2", GPT2, head="LMHeadModel"),
        decoder(
            "gpt_neo",
            "local layers",
            "GPTNeo",
            {
                "vocab_size": VOCABULARY,
                "hidden_size": DIM,
                "num_layers": 2,
                "num_heads": HEADS,
                "intermediate_size": 40,
                "attention_types": [[["global", "local"], 1]],
                "window_size": 4,
                "max_position_embeddings": 64,
                **IDS,
            },
        ),
        decoder("gptj", "rotary", "GPTJ", {**GPT2, "rotary_dim": 4}),
        decoder("gpt_neox", "rotary, parallel", "GPTNeoX", PLAIN),
        decoder("gpt_bigcode", "one key head", "GPTBigCode", {**GPT2, "multi_query": True}),
        decoder(
            "opt",
            "learned positions by the mask",
            "OPT",
            {
                **PLAIN,
                "ffn_dim": 37,
                "word_embed_proj_dim": DIM,
            },
        ),
        decoder(
            "bloom",
            "ALiBi",
            "Bloom",
            {
                "vocab_size": VOCABULARY,
                "hidden_size": DIM,
                "n_layer": LAYERS,
                "n_head": HEADS,
                **IDS,
            },
        ),
        decoder(
            "mpt",
            "ALiBi",
            "Mpt",
            {
                "vocab_size": VOCABULARY,
                "d_model": DIM,
                "n_layers": LAYERS,
                "n_heads": HEADS,
                "max_seq_len": 64,
                **IDS,
            },
        ),
        decoder(
            "falcon",
            "one key head",
            "Falcon",
            {
                "vocab_size": VOCABULARY,
                "hidden_size": DIM,
                "num_hidden_layers": LAYERS,
                "num_attention_heads": HEADS,
                **IDS,
            },
        ),
        decoder("codegen", "rotary", "CodeGen", {**GPT2, "rotary_dim": 4, "n_ctx": 64}),
        decoder(
            "ctrl",
            "sinusoidal",
            "CTRL",
            {
                "vocab_size": VOCABULARY,
                "n_embd": DIM,
                "n_layer": LAYERS,
                "n_head": HEADS,
                "dff": 37,
                "n_positions": 64,
            },
            head="LMHeadModel",
        ),
        decoder("openai-gpt", "plain", "OpenAIGPT", GPT2, head="LMHeadModel", caches=False),
        decoder(
            "xglm",
            "sinusoidal",
            "XGLM",
            {
                "vocab_size": VOCABULARY,
                "d_model": DIM,
                "num_layers": LAYERS,
                "attention_heads": HEADS,
                "ffn_dim": 37,
                "max_position_embeddings": 64,
                **IDS,
            },
        ),
        decoder("biogpt", "learned", "BioGpt", PLAIN),
        decoder("llama", "grouped heads", "Llama", GROUPED),
        decoder("mistral", "sliding window", "Mistral", {**GROUPED, "sliding_window": 4}),
        decoder("mixtral", "mixture of experts", "Mixtral", {**GROUPED, **MOE}),
        decoder("qwen2", "grouped heads", "Qwen2", GROUPED),
        decoder("qwen3", "normed queries and keys", "Qwen3", {**GROUPED, "head_dim": 8}),
        decoder(
            "qwen3_moe",
            "mixture of experts",
            "Qwen3Moe",
            {
                **GROUPED,
                "head_dim": 8,
                "num_experts": 4,
                "num_experts_per_tok": 2,
                "moe_intermediate_size": 16,
            },
        ),
        decoder("gemma", "wide heads", "Gemma", {**GROUPED, "head_dim": 12}),
        decoder(
            "gemma2",
            "soft cap, sliding window",
            "Gemma2",
            {
                **GROUPED,
                **SLIDING,
                "head_dim": 8,
                "query_pre_attn_scalar": 8,
                "attn_logit_softcapping": 2.0,
            },
        ),
        TinyModel(
            "gemma3",
            "decoder",
            "sliding window",
            "Gemma3TextConfig",
            "Gemma3ForCausalLM",
            {
                **GROUPED,
                **SLIDING,
                "head_dim": 8,
                "query_pre_attn_scalar": 8,
            },
        ),
        decoder("phi", "partial rotary", "Phi", PLAIN),
        decoder("phi3", "fused projections", "Phi3", GROUPED),
        decoder("stablelm", "partial rotary", "StableLm", GROUPED),
        decoder("cohere", "parallel", "Cohere", GROUPED),
        decoder("cohere2", "sliding window", "Cohere2", {**GROUPED, **SLIDING}),
        decoder("olmo2", "normed queries and keys", "Olmo2", GROUPED),
        decoder("granite", "own scale", "Granite", {**GROUPED, "attention_multiplier": 0.3}),
        decoder("starcoder2", "sliding window", "Starcoder2", {**GROUPED, "sliding_window": 4}),
        decoder(
            "deepseek_v2",
            "latent keys",
            "DeepseekV2",
            {
                **MLA,
                "topk_method": "greedy",
                "n_group": 1,
                "n_shared_experts": 1,
            },
        ),
        decoder(
            "deepseek_v3",
            "latent keys, narrow values",
            "DeepseekV3",
            {**MLA, "n_shared_experts": 1},
        ),
        decoder(
            "gpt_oss",
            "learned sinks, sliding window",
            "GptOss",
            {**GROUPED, **SLIDING, **MOE, "head_dim": 8},
        ),
        decoder(
            "mimo_v2_flash",
            "learned sinks, sliding window",
            "MiMoV2Flash",
            {
                **GROUPED,
                **SLIDING,
                "head_dim": 8,
                "v_head_dim": 6,
                "n_routed_experts": 4,
                "num_experts_per_tok": 2,
                "moe_intermediate_size": 16,
            },
        ),
        decoder(
            "deepseek_v4",
            "learned sinks, compressed keys",
            "DeepseekV4",
            {
                **GROUPED,
                "num_hidden_layers": 3,
                "head_dim": 8,
                "sliding_window": 4,
                "num_local_experts": 4,
                "num_experts_per_tok": 2,
                "n_routed_experts": 4,
                "moe_intermediate_size": 16,
                "q_lora_rank": 16,
                "o_lora_rank": 8,
                "o_groups": 2,
                "index_n_heads": 2,
                "index_head_dim": 8,
                "index_topk": 4,
                "layer_types": [
                    "sliding_attention",
                    "compressed_sparse_attention",
                    "heavily_compressed_attention",
                ],
                "compress_rates": {
                    "compressed_sparse_attention": 4,
                    "heavily_compressed_attention": 4,
                },
            },
            caches=False,
        ),
        decoder("granite_swa", "sink outside the softmax", "GraniteSWA", {**GROUPED, **SLIDING}),
        decoder("diffllama", "differential", "DiffLlama", {**GROUPED, "attention_dropout": 0.0}),
        decoder("persimmon", "partial rotary", "Persimmon", PLAIN),
        decoder("nemotron", "partial rotary", "Nemotron", GROUPED),
        decoder(
            "smollm3",
            "layers without positions",
            "SmolLM3",
            {**GROUPED, "no_rope_layer_interval": 2},
        ),
        decoder(
            "exaone4",
            "sliding window",
            "Exaone4",
            {**GROUPED, **SLIDING, "sliding_window_pattern": 2},
        ),
        decoder("glm4", "partial rotary", "Glm4", {**GROUPED, "head_dim": 8}),
        TinyModel(
            "llama4",
            "decoder",
            "chunked attention",
            "Llama4TextConfig",
            "Llama4ForCausalLM",
            {
                **GROUPED,
                "head_dim": 8,
                "attention_chunk_size": 4,
                "num_local_experts": 2,
                "intermediate_size_mlp": 16,
                "interleave_moe_layer_step": 2,
                "layer_types": ["chunked_attention", "full_attention"],
            },
        ),
        TinyModel(
            "gemma3n",
            "decoder",
            "layers that share keys",
            "Gemma3nTextConfig",
            "Gemma3nForCausalLM",
            {
                **GROUPED,
                "head_dim": 8,
                "sliding_window": 4,
                "layer_types": ["sliding_attention", "full_attention"] * 2,
                "num_hidden_layers": 4,
                "num_kv_shared_layers": 2,
                "vocab_size_per_layer_input": VOCABULARY,
                "hidden_size_per_layer_input": 8,
                "altup_num_inputs": 2,
                "laurel_rank": 4,
                "intermediate_size": [40] * 4,
                "activation_sparsity_pattern": [0.0] * 4,
            },
        ),
        decoder(
            "qwen3_next",
            "gated delta layers",
            "Qwen3Next",
            {
                **GROUPED,
                "head_dim": 8,
                "layer_types": ["linear_attention", "full_attention"],
                "linear_num_value_heads": 4,
                "linear_num_key_heads": 2,
                "linear_key_head_dim": 8,
                "linear_value_head_dim": 8,
                "num_experts": 4,
                "num_experts_per_tok": 2,
                "moe_intermediate_size": 16,
                "shared_expert_intermediate_size": 16,
                "decoder_sparse_step": 1,
            },
        ),
        decoder(
            "jamba",
            "Mamba layers",
            "Jamba",
            {
                **GROUPED,
                "attn_layer_period": 2,
                "attn_layer_offset": 1,
                "num_experts": 2,
                "mamba_d_state": 4,
                "mamba_dt_rank": 4,
                "use_mamba_kernels": False,
            },
        ),
        decoder(
            "recurrent_gemma",
            "recurrent layers, local attention",
            "RecurrentGemma",
            {
                **GROUPED,
                "head_dim": 8,
                "lru_width": DIM,
                "attention_window_size": 4,
                "block_types": ["recurrent", "attention"],
            },
            steps=(1, 1),
        ),
        decoder(
            "mamba",
            "no attention",
            "Mamba",
            {
                "vocab_size": VOCABULARY,
                "hidden_size": DIM,
                "num_hidden_layers": LAYERS,
                "state_size": 4,
                **IDS,
            },
            caches=False,
            pads=False,
        ),
        decoder(
            "rwkv",
            "no softmax",
            "Rwkv",
            {
                "vocab_size": VOCABULARY,
                "hidden_size": DIM,
                "num_hidden_layers": LAYERS,
                "context_length": 64,
                **IDS,
            },
            caches=False,
            pads=False,
        ),
        decoder(
            "xlnet",
            "relative shift",
            "XLNet",
            {
                "vocab_size": VOCABULARY,
                "d_model": DIM,
                "n_layer": LAYERS,
                "n_head": HEADS,
                "d_inner": 37,
                **IDS,
            },
            head="LMHeadModel",
            caches=False,
        ),
        decoder(
            "reformer",
            "hashed chunks",
            "Reformer",
            {
                "vocab_size": VOCABULARY,
                "hidden_size": DIM,
                "num_attention_heads": HEADS,
                "attention_head_size": 8,
                "attn_layers": ["local", "lsh"],
                "local_attn_chunk_length": 4,
                "lsh_attn_chunk_length": 4,
                "num_buckets": 4,
                "feed_forward_size": 37,
                "axial_pos_embds": False,
                "max_position_embeddings": 64,
                "is_decoder": True,
                **IDS,
            },
            head="ModelWithLMHead",
            caches=False,
            length=12,
        ),
        # encoders
        encoder("bert", "plain", "Bert", BERT),
        encoder("roberta", "positions by padding", "Roberta", {**BERT, "pad_token_id": 1}),
        encoder(
            "distilbert",
            "plain",
            "DistilBert",
            {
                "vocab_size": VOCABULARY,
                "dim": DIM,
                "n_layers": LAYERS,
                "n_heads": HEADS,
                "hidden_dim": 37,
            },
        ),
        encoder("albert", "one layer, run twice", "Albert", {**BERT, "embedding_size": 16}),
        encoder("electra", "plain", "Electra", {**BERT, "embedding_size": 16}),
        encoder(
            "deberta",
            "disentangled",
            "Deberta",
            {**BERT, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
        ),
        encoder(
            "deberta_v2",
            "disentangled",
            "DebertaV2",
            {
                **BERT,
                "relative_attention": True,
                "pos_att_type": ["c2p", "p2c"],
                "position_buckets": 8,
            },
        ),
        encoder("mpnet", "relative bias", "MPNet", BERT),
        encoder("roformer", "rotary", "RoFormer", BERT),
        encoder("rembert", "plain", "RemBert", {**BERT, "input_embedding_size": 16}),
        encoder(
            "esm",
            "rotary",
            "Esm",
            {**BERT, "position_embedding_type": "rotary", "mask_token_id": 5},
        ),
        encoder(
            "convbert",
            "convolution beside",
            "ConvBert",
            {**BERT, "embedding_size": DIM, "head_ratio": 2},
        ),
        encoder(
            "modernbert",
            "sliding window",
            "ModernBert",
            {
                **BERT,
                "global_attn_every_n_layers": 2,
                "local_attention": 4,
                "cls_token_id": 1,
                "sep_token_id": 2,
                **IDS,
            },
        ),
        encoder(
            "mobilebert",
            "bottlenecks",
            "MobileBert",
            {**BERT, "embedding_size": 16, "true_hidden_size": 16, "intra_bottleneck_size": 16},
        ),
        encoder("squeezebert", "convolutions", "SqueezeBert", {**BERT, "embedding_size": DIM}),
        encoder("ibert", "softmax as a module", "IBert", {**BERT, "pad_token_id": 1}),
        encoder(
            "xlm",
            "plain",
            "XLM",
            {
                "vocab_size": VOCABULARY,
                "emb_dim": DIM,
                "n_layers": LAYERS,
                "n_heads": HEADS,
                "n_langs": 1,
                "max_position_embeddings": 64,
                "pad_index": 0,
            },
        ),
        encoder(
            "funnel",
            "pooled queries",
            "Funnel",
            {
                "vocab_size": VOCABULARY,
                "block_sizes": [1, 1],
                "num_decoder_layers": 1,
                "d_model": DIM,
                "n_head": HEADS,
                "d_head": 8,
                "d_inner": 37,
            },
        ),
        encoder(
            "longformer", "sliding chunks", "Longformer", {**BERT, "attention_window": 4}, length=12
        ),
        encoder(
            "big_bird",
            "blocks",
            "BigBird",
            {
                **BERT,
                "attention_type": "block_sparse",
                "block_size": 4,
                "num_random_blocks": 1,
            },
            length=48,
        ),
        encoder("big_bird_full", "plain", "BigBird", {**BERT, "attention_type": "original_full"}),
        encoder(
            "nystromformer",
            "landmarks",
            "Nystromformer",
            {
                **BERT,
                "num_landmarks": 4,
                "segment_means_seq_len": 12,
                "conv_kernel_size": 3,
            },
            length=12,
        ),
        encoder(
            "canine",
            "downsampled characters",
            "Canine",
            {
                "hidden_size": DIM,
                "num_hidden_layers": LAYERS,
                "num_attention_heads": HEADS,
                "intermediate_size": 40,
                "num_hash_buckets": 64,
                "downsampling_rate": 4,
                "local_transformer_stride": 8,
                "max_position_embeddings": 64,
            },
            length=16,
        ),
        encoder("tapas", "masks of −10,000", "Tapas", BERT),
        encoder(
            "markuplm",
            "masks of −10,000",
            "MarkupLM",
            {
                **BERT,
                "max_xpath_tag_unit_embeddings": 10,
                "max_xpath_subs_unit_embeddings": 10,
                "tag_pad_id": 8,
                "subs_pad_id": 9,
            },
        ),
        encoder(
            "openai_privacy_filter",
            "learned sinks, both directions",
            "OpenAIPrivacyFilter",
            {
                **GROUPED,
                **MOE,
                "head_dim": 8,
                "sliding_window": 2,
            },
        ),
        encoder("fnet", "no attention", "FNet", BERT, pads=False),
        # encoders and decoders
        _model("t5", "encoder-decoder", "relative bias", "T5", "ForConditionalGeneration", T5),
        _model(
            "umt5",
            "encoder-decoder",
            "relative bias in every layer",
            "UMT5",
            "ForConditionalGeneration",
            T5,
        ),
        _model(
            "switch_transformers",
            "encoder-decoder",
            "mixture of experts",
            "SwitchTransformers",
            "ForConditionalGeneration",
            {
                **T5,
                "num_experts": 2,
                "num_sparse_encoder_layers": 1,
                "num_sparse_decoder_layers": 1,
                "num_decoder_layers": LAYERS,
            },
            caches=False,
        ),
        _model(
            "longt5_local",
            "encoder-decoder",
            "local blocks",
            "LongT5",
            "ForConditionalGeneration",
            {**T5, "encoder_attention_type": "local", "local_radius": 3},
        ),
        _model(
            "longt5_global",
            "encoder-decoder",
            "local blocks, summaries",
            "LongT5",
            "ForConditionalGeneration",
            {
                **T5,
                "encoder_attention_type": "transient-global",
                "local_radius": 3,
                "global_block_size": 4,
            },
        ),
        _model("bart", "encoder-decoder", "plain", "Bart", "ForConditionalGeneration", SEQ2SEQ),
        _model(
            "pegasus",
            "encoder-decoder",
            "sinusoidal",
            "Pegasus",
            "ForConditionalGeneration",
            SEQ2SEQ,
        ),
        _model("marian", "encoder-decoder", "sinusoidal", "Marian", "MTModel", {**SEQ2SEQ}),
        _model(
            "m2m_100",
            "encoder-decoder",
            "sinusoidal",
            "M2M100",
            "ForConditionalGeneration",
            SEQ2SEQ,
        ),
        _model(
            "blenderbot",
            "encoder-decoder",
            "plain",
            "Blenderbot",
            "ForConditionalGeneration",
            SEQ2SEQ,
        ),
        _model(
            "mvp",
            "encoder-decoder",
            "heads in the batch's axis",
            "Mvp",
            "ForConditionalGeneration",
            SEQ2SEQ,
        ),
        _model(
            "pegasus_x",
            "encoder-decoder",
            "local blocks, global tokens",
            "PegasusX",
            "ForConditionalGeneration",
            {
                **SEQ2SEQ,
                "num_global_tokens": 2,
                "block_size": 4,
            },
        ),
        _model(
            "led",
            "encoder-decoder",
            "sliding chunks",
            "LED",
            "ForConditionalGeneration",
            {
                **{
                    key: value for key, value in SEQ2SEQ.items() if key != "max_position_embeddings"
                },
                "attention_window": 4,
                "max_encoder_position_embeddings": 64,
                "max_decoder_position_embeddings": 64,
            },
            length=12,
        ),
        _model(
            "bigbird_pegasus",
            "encoder-decoder",
            "blocks",
            "BigBirdPegasus",
            "ForConditionalGeneration",
            {
                **SEQ2SEQ,
                "attention_type": "block_sparse",
                "block_size": 4,
                "num_random_blocks": 1,
            },
            length=48,
        ),
        _model(
            "prophetnet",
            "encoder-decoder",
            "several predictions",
            "ProphetNet",
            "ForConditionalGeneration",
            {
                "vocab_size": VOCABULARY,
                "hidden_size": DIM,
                "num_encoder_layers": LAYERS,
                "num_decoder_layers": LAYERS,
                "num_encoder_attention_heads": HEADS,
                "num_decoder_attention_heads": HEADS,
                "encoder_ffn_dim": 37,
                "decoder_ffn_dim": 37,
                "max_position_embeddings": 64,
                "decoder_start_token_id": 1,
                **IDS,
            },
            steps=(1, 1),
        ),
        # pictures
        vision("vit", "plain", "ViT", IMAGE),
        vision("deit", "plain", "DeiT", IMAGE),
        vision("dinov2", "plain", "Dinov2", {**IMAGE, "mlp_ratio": 2}),
        vision("beit", "relative bias", "Beit", {**IMAGE, "use_relative_position_bias": True}),
        vision("clip", "plain", "CLIPVision", {**IMAGE}),
        vision("siglip", "pooling query", "SiglipVision", {**IMAGE}),
        vision(
            "swin",
            "windows, shifted",
            "Swin",
            {
                "image_size": 32,
                "patch_size": 4,
                "embed_dim": 16,
                "depths": [2, 1],
                "num_heads": [2, 4],
                "window_size": 2,
            },
            inputs=big_pixels,
        ),
        vision(
            "swinv2",
            "windows, shifted",
            "Swinv2",
            {
                "image_size": 32,
                "patch_size": 4,
                "embed_dim": 16,
                "depths": [2, 1],
                "num_heads": [2, 4],
                "window_size": 2,
            },
            inputs=big_pixels,
        ),
        vision(
            "segformer",
            "reduced keys",
            "Segformer",
            {
                "num_encoder_blocks": 2,
                "depths": [1, 1],
                "sr_ratios": [2, 1],
                "hidden_sizes": [16, 32],
                "patch_sizes": [7, 3],
                "strides": [4, 2],
                "num_attention_heads": [2, 4],
                "mlp_ratios": [2, 2],
            },
            inputs=big_pixels,
        ),
        vision(
            "pvt",
            "reduced keys",
            "Pvt",
            {
                "image_size": 32,
                "num_encoder_blocks": 2,
                "depths": [1, 1],
                "sequence_reduction_ratios": [2, 1],
                "hidden_sizes": [16, 32],
                "patch_sizes": [4, 2],
                "strides": [4, 2],
                "num_attention_heads": [2, 4],
                "mlp_ratios": [2, 2],
            },
            inputs=big_pixels,
        ),
        vision(
            "mobilevitv2",
            "separable",
            "MobileViTV2",
            {
                "image_size": 64,
                "width_multiplier": 0.25,
                "n_attn_blocks": [1, 1, 1],
            },
            inputs=lambda: {"pixel_values": random_tensor(2, 3, 64, 64)},
        ),
        vision(
            "deformable_detr",
            "sampled points",
            "DeformableDetr",
            detection,
            inputs=lambda: {
                "pixel_values": random_tensor(2, 3, 64, 64),
                "pixel_mask": torch.ones(2, 64, 64, dtype=torch.long),
            },
        ),
        vision(
            "hiera",
            "mask units",
            "Hiera",
            {
                "image_size": [32, 32],
                "embed_dim": 16,
                "depths": [1, 1],
                "num_heads": [2, 4],
                "patch_size": [7, 7],
                "patch_stride": [4, 4],
                "patch_padding": [3, 3],
                "masked_unit_size": [2, 2],
                "masked_unit_attention": [True, False],
                "query_stride": [2, 2],
                "num_query_pool": 1,
            },
            inputs=big_pixels,
        ),
        # sounds
        sounds("wav2vec2", "plain", "Wav2Vec2", SPEECH),
        sounds("hubert", "plain", "Hubert", SPEECH),
        sounds(
            "wavlm",
            "gated relative bias",
            "WavLM",
            {**SPEECH, "num_buckets": 8, "max_bucket_distance": 16},
        ),
        _model(
            "whisper",
            "encoder-decoder",
            "sounds and text",
            "Whisper",
            "ForConditionalGeneration",
            {
                **SEQ2SEQ,
                "max_source_positions": 12,
                "max_target_positions": 64,
                "num_mel_bins": 8,
            },
            inputs=lambda: {"input_features": random_tensor(2, 8, 24)},
        ),
        # numbers and latents
        TinyModel(
            "patchtst",
            "latents",
            "patches of series",
            "PatchTSTConfig",
            "PatchTSTModel",
            {
                "context_length": 32,
                "patch_length": 4,
                "patch_stride": 4,
                "num_input_channels": 2,
                "d_model": DIM,
                "num_attention_heads": HEADS,
                "num_hidden_layers": LAYERS,
                "ffn_dim": 40,
            },
            caches=False,
            pads=False,
            inputs=lambda: {"past_values": random_tensor(2, 32, 2)},
        ),
        TinyModel(
            "informer",
            "latents",
            "sampled queries",
            "InformerConfig",
            "InformerModel",
            {
                "prediction_length": 4,
                "context_length": 10,
                "d_model": DIM,
                "lags_sequence": [1, 2],
                "encoder_layers": 1,
                "decoder_layers": 1,
                "encoder_attention_heads": HEADS,
                "decoder_attention_heads": HEADS,
                "num_time_features": 1,
                "encoder_ffn_dim": 40,
                "decoder_ffn_dim": 40,
                "sampling_factor": 1,
            },
            caches=False,
            pads=False,
            inputs=lambda: {
                "past_values": random_tensor(2, 12),
                "past_time_features": random_tensor(2, 12, 1),
                "past_observed_mask": torch.ones(2, 12),
                "future_values": random_tensor(2, 4),
                "future_time_features": random_tensor(2, 4, 1),
            },
        ),
        _model(
            "perceiver",
            "latents",
            "latent queries",
            "Perceiver",
            "Model",
            {
                "num_latents": 6,
                "d_latents": DIM,
                "d_model": DIM,
                "num_blocks": 1,
                "num_self_attends_per_block": LAYERS,
                "num_self_attention_heads": HEADS,
                "num_cross_attention_heads": HEADS,
            },
            caches=False,
            pads=False,
            inputs=lambda: {"inputs": random_tensor(2, 9, DIM)},
        ),
        _model(
            "blip_2_qformer",
            "latents",
            "queries over pictures",
            "Blip2QFormer",
            "Model",
            {
                **WIDTHS,
                "encoder_hidden_size": 16,
                "cross_attention_frequency": 2,
                "max_position_embeddings": 64,
            },
            caches=False,
            pads=False,
            inputs=lambda: {
                "query_embeds": random_tensor(2, 6, DIM),
                "encoder_hidden_states": random_tensor(2, 6, 16, seed=4),
            },
        ),
    )
}
