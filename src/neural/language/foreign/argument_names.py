"""What Keras, PyTorch and Hugging Face call arguments of layers, losses and optimizers.

Only data, as in names.py. Every word is renamed (`ARGUMENTS`), or left out for a reason
(`IGNORED_ARGUMENTS`).
"""

from __future__ import annotations

COPIES = "* N"
"""Stands in `ARGUMENTS` for "so many copies": `num_layers=6` is `* 6` after the layer."""

_ARGUMENTS_BY_TARGET = {
    ("d_model", "output_dim", "units"): "dim hidden_size embed_dim embedding_dim emb_dim "
    "embedding_size n_embd model_dim d_embed width embed_size emb_size n_embed hidden_features",
    ("output_dim",): "d_model",
    ("d_model", "dff", "units", "output_dim"): "hidden_dim hidden_units n_hidden hidden",
    ("units", "filters", "output_dim"): "size out out_features out_dim n_units output_size "
    "num_units neurons num_classes num_labels n_classes classes out_size nb_classes n_out "
    "n_labels num_outputs",
    ("units",): "vocab_size vocabulary_size",
    ("filters", "d_model", "output_dim"): "units",
    ("filters", "units"): "out_channels channels features num_filters n_filters nb_filter "
    "num_channels out_chans",
    ("num_heads",): "heads nhead n_heads n_head num_attention_heads attention_heads n_heads "
    "nheads head num_head encoder_attention_heads decoder_attention_heads",
    ("dff",): "dim_feedforward intermediate_size intermediate_dim ffn_dim mlp_dim n_inner "
    "feedforward_dim d_ff d_inner ff_size ffn_size mlp_size inner_dim hidden_size_ff "
    "encoder_ffn_dim decoder_ffn_dim ffn_hidden_size ff_hidden feedforward_size",
    ("dropout_rate",): "p prob rate drop dropout dropout_prob dropout_p hidden_dropout_prob "
    "resid_pdrop hidden_dropout drop_rate classifier_dropout residual_dropout seq_classif_dropout "
    "classifier_dropout_prob head_dropout",
    ("dropout_rate", ""): "attention_probs_dropout_prob attn_pdrop embd_pdrop "
    "attention_dropout attn_dropout activation_dropout attn_drop proj_drop summary_first_dropout "
    "relu_dropout embedding_dropout ffn_dropout dropout_attn attention_dropout_prob",
    ("activation",): "hidden_act activation_function act act_fn activation_fn nonlinearity "
    "hidden_activation Activation dense_act_fn feed_forward_proj",
    ("input_dim",): "vocab_size num_embeddings vocab num_tokens n_vocab max_features n_tokens "
    "num_words vocabulary_size vocab_dim",
    ("pad_id",): "padding_idx pad_token_id pad_idx padding_id pad_token mask_id",
    ("kernel_size", "pool_size"): "kernel filter_size kernel_sizes window_size",
    ("kernel_size",): "filter_length",
    ("pool_size",): "kernel_size pool pool_length",
    ("strides",): "stride subsample",
    ("epsilon",): "eps layer_norm_eps rms_norm_eps norm_eps layer_norm_epsilon adam_epsilon "
    "variance_epsilon",
    ("num_kv_heads",): "num_key_value_heads n_kv_heads kv_heads n_kv_head num_kv_head n_kv",
    ("target_shape",): "shape new_shape unflattened_size dims",
    ("tied",): "tie_weights tied_weights tie_word_embeddings weight_tying tie_embeddings",
    ("max_len",): "max_length max_position_embeddings maxlen sequence_length max_seq_len n_ctx "
    "n_positions block_size max_sequence_length max_positions seq_len length max_seq_length",
    ("positional",): "position_embedding_type pos_encoding positional_encoding pos_embedding "
    "position_embedding pos_emb position_encoding",
    ("encoding_type",): "position_embedding_type embedding_type encoding type kind",
    ("attention",): "attention_type attn attn_type",
    ("normalization",): "norm_type norm_layer normalization_type",
    ("learning_rate",): "eta step_size learning_rate_init",
    ("clipnorm",): "max_grad_norm clip_norm grad_clip max_norm gradient_clip_val clip_grad_norm "
    "global_clipnorm gradient_clip_norm",
    ("beta_1",): "beta1 adam_beta1",
    ("beta_2",): "beta2 adam_beta2",
    ("bias",): "add_bias has_bias use_bias attention_bias qkv_bias mlp_bias bias_attr attn_bias "
    "use_biases",
    ("rotary_base",): "rope_theta rotary_emb_base",
    ("qk_norm",): "qk_normalization qk_layernorm use_qk_norm",
    ("stddev",): "std sigma",
    (COPIES,): "num_layers layers n_layers n_layer num_hidden_layers depth num_blocks n_blocks "
    "repeat num_encoder_layers num_decoder_layers copies blocks num_repeats encoder_layers "
    "decoder_layers num_transformer_layers",
}
"""Names here, in the order of preference → names in other libraries."""

SECONDARY_ARGUMENTS = frozenset(_ARGUMENTS_BY_TARGET[("dropout_rate", "")].split())
"""Arguments that yield if another one of the same call has the same name here."""


def _invert_arguments() -> dict[str, tuple[str, ...]]:
    """Name in another library → all names here that it may stand for."""
    inverted: dict[str, tuple[str, ...]] = {}
    for targets, names in _ARGUMENTS_BY_TARGET.items():
        for name in names.split():
            inverted[name] = (*inverted.get(name, ()), *filter(None, targets))
    return inverted


ARGUMENTS = _invert_arguments()
"""Argument of another library → names here; the first one that the call takes and does not have."""

VALUES: dict[str, dict[str, str]] = {
    "positional": {
        "rope": "rotary",
        "rotaryembedding": "rotary",
        "absolute": "learned",
        "learnable": "learned",
        "relativekey": "relative",
        "relativekeyquery": "relative",
        "t5": "relative",
        "sine": "sinusoidal",
        "sincos": "sinusoidal",
        "sin": "sinusoidal",
        "fixed": "sinusoidal",
        "nope": "none",
    },
    "attention": {
        "softmax": "self",
        "multihead": "self",
        "full": "self",
        "dotproduct": "self",
        "scaleddotproduct": "self",
        "bidirectional": "self",
        "causalself": "causal",
        "masked": "causal",
        "autoregressive": "causal",
        "slidingwindow": "localized",
        "local": "localized",
        "window": "localized",
        "bahdanau": "additive",
    },
    "normalization": {"rmsnorm": "rms", "layernorm": "layer", "ln": "layer"},
    "norm": {"prenorm": "pre", "preln": "pre", "postnorm": "post", "postln": "post"},
}
"""Values of other libraries, without case, underscores and hyphens, by argument → the value here."""
VALUES["encoding_type"] = VALUES["positional"]

INFERRED_ARGUMENTS = frozenset(
    {"in_features", "in_channels", "input_size", "num_features", "normalized_shape", "embed_dim"}
    | {"hidden_size", "d_model", "dim", "vdim", "kdim", "in_dim", "n_in", "n_embd", "in_chans"}
    | {"embedding_dim", "num_channels", "width", "img_size", "image_size", "input_channels"}
)
"""Sizes of the input. They are not written here, where a layer takes the size that arrives."""
INPUT_ARGUMENTS = ("input_shape", "batch_input_shape", "input_dim", "shape")
"""Arguments of a first layer, and of `Input`, that give the shape of the input."""

_INITIAL_WEIGHTS = "`init` chooses the initial weights, for all of a layer"
_REGULARIZERS = "not available; `weight_decay` of the optimizer keeps weights small"
_CONSTRAINTS = "weights have no constraints here"
_RECURRENT_OPTION = "recurrent layers have no such option"
_FIXED_NORM = "norms have weights and statistics as usual, and always use the last axis"
_NOT_OUTPUTS = "a layer returns only its output; attention is captured without it"
_SAME_RESULT = "it does not change the result"
_LENGTH = "`input:` says the length"
_HEAD_WIDTH = "a head is as wide as `d_model` / `num_heads`"
_ONE_OPTIMIZER = "the optimizer has no such option"
_IGNORED_BY_REASON = {
    "layers have no names": "name id",
    "the batch is always first, and not written": "batch_first batch_size batch_shape time_major",
    _SAME_RESULT: "inplace foreach fused capturable differentiable jit_compile implementation "
    "attn_implementation _attn_implementation use_flash_attention flash_attention use_cache "
    "use_sdpa sparse unroll reset_after chunk_size_feed_forward pretraining_tp no_deprecation_warning "
    "copy autocast flash use_flash_attention_2 use_memory_efficient_attention",
    "numbers are 32-bit; `train { mixed_precision: true }` computes with 16": "dtype torch_dtype "
    "param_dtype fp16 bf16",
    "`train { device: … }` says where to compute": "device",
    "all layers are trained": "trainable freeze requires_grad params",
    _LENGTH: "input_length max_position_embeddings n_positions n_ctx max_len sequence_length "
    "max_seq_len block_size max_length seq_len maxlen max_sequence_length",
    "channels are always last": "data_format",
    "the batch stays, and all other sizes are flattened": "start_dim end_dim",
    "the loss knows the last activation": "from_logits",
    "the loss is always a mean": "reduction size_average reduce",
    "not available, the loss has no such option": "ignore_index weight pos_weight delta ignore_class "
    "beta log_target",
    _INITIAL_WEIGHTS: "kernel_initializer bias_initializer depthwise_initializer "
    "recurrent_initializer embeddings_initializer beta_initializer gamma_initializer "
    "initializer_range initializer init_std unit_forget_bias initializer_factor weight_init "
    "moving_mean_initializer moving_variance_initializer alpha_initializer layer_scale_init_value "
    "kernel_init bias_init init_method xavier embedding_initializer position_initializer",
    _REGULARIZERS: "kernel_regularizer bias_regularizer activity_regularizer "
    "recurrent_regularizer embeddings_regularizer beta_regularizer gamma_regularizer l1 l2",
    _CONSTRAINTS: "kernel_constraint bias_constraint recurrent_constraint embeddings_constraint "
    "beta_constraint gamma_constraint max_norm norm_type scale_grad_by_freq _weight",
    "one value per feature is left": "output_size keepdims",
    _NOT_OUTPUTS: "output_attentions output_hidden_states return_dict return_attention_scores "
    "need_weights average_attn_weights return_state",
    _RECURRENT_OPTION: "recurrent_activation stateful go_backwards zero_output_for_mask proj_size",
    "this layer has no activation to choose": "activation nonlinearity hidden_act "
    "activation_function",
    "not available; a `Dropout` layer behind it comes near": "dropout recurrent_dropout",
    "dropout has no such option": "noise_shape seed",
    "`Dropout(…)` is a layer of its own": "dropout_rate hidden_dropout_prob classifier_dropout "
    "attention_probs_dropout_prob resid_pdrop embd_pdrop attn_pdrop attention_dropout hidden_dropout "
    "classifier_dropout_prob seq_classif_dropout activation_dropout drop_rate dropout_p",
    _FIXED_NORM: "affine track_running_stats elementwise_affine center scale renorm virtual_batch_size "
    "rms_scaling synchronized",
    "layer norms use eps 1e-5 here, RMS norms 1e-6": "layer_norm_eps rms_norm_eps norm_eps "
    "layer_norm_epsilon eps epsilon layernorm_epsilon",
    "not available: this layer always has its bias": "bias use_bias attention_bias qkv_bias "
    "mlp_bias add_bias_kv bias_k bias_v attn_bias",
    _HEAD_WIDTH: "head_dim key_dim d_kv attention_head_size size_per_head kv_channels value_dim "
    "dim_head head_size",
    "a layer has no such option": "add_zero_attn attention_axes output_shape supports_masking "
    "padding_mode ceil_mode return_indices count_include_pad output_padding enable_nested_tensor "
    "mask_check enable_lora lora_rank mask_value max_wavelength merge_mode gating hierarchical "
    "relative_attention_num_buckets relative_attention_max_distance sinusoidal_pos_embds "
    "is_gated_act tie_weights_ patch_size qk_scale is_first norm",
    "a program has one kind of token": "type_vocab_size num_token_types bos_token_id eos_token_id "
    "sep_token_id cls_token_id unk_token_id decoder_start_token_id mask_token_id",
    "it says nothing about the network": "model_type architectures transformers_version "
    "problem_type id2label label2id finetuning_task config is_decoder is_encoder_decoder "
    "add_cross_attention gradient_checkpointing cache_dir revision layer_idx summary_type "
    "summary_activation summary_use_proj summary_proj_to_labels scale_attn_weights "
    "reorder_and_upcast_attn scale_attn_by_inverse_layer_idx",
    "rotary positions have the base 10,000; `positional=rotary(…)` changes it": "rope_theta "
    "rope_scaling rotary_emb_base rotary_dim rotary_pct partial_rotary_factor",
    "not available: all layers are always used": "layerdrop layer_drop drop_path drop_path_rate "
    "stochastic_depth encoder_layerdrop decoder_layerdrop",
    "`neural train` prints its progress": "verbose",
    "the task measures what fits it": "metrics weighted_metrics",
    "checkpoints and early stopping are options of training": "callbacks",
    _ONE_OPTIMIZER: "amsgrad maximize rho alpha centered lambd t0 dampening clipvalue use_ema "
    "ema_momentum ema_overwrite_frequency loss_scale_factor correct_bias initial_accumulator_value "
    "lr_decay momentum_decay decoupled_weight_decay decay scale_parameter relative_step warmup_init "
    "clip_threshold decay_rate beta1 beta_1 beta_2 betas momentum nesterov eps2 schedule_decay "
    "exclude_from_weight_decay weight_decay_rate epsilon1 amsbound final_lr",
}
"""Why an argument can be left out → names. Where it is not only a habit, the reason says what is lost."""
IGNORED_ARGUMENTS = {
    name: reason for reason, names in _IGNORED_BY_REASON.items() for name in names.split()
}
"""Arguments that have no counterpart here → why they can be left out."""
IGNORED_VALUES: dict[str, object] = {
    "dim": -1,
    "axis": -1,
    "dilation": 1,
    "dilation_rate": 1,
    "groups": 1,
    "mlp_ratio": 4,
}
"""Arguments that can be left out if they have this value, the only possible one here."""
