"""Faults of networks, training and tracking: each a small change of the source, and the tests that must notice it."""

from tests.faults.fault import Fault

LAYERS = "tests/contract/test_layers.py::"
MECHANISMS = "tests/contract/test_mechanisms.py::"
POSITIONS = "tests/contract/test_positions.py::"
BLOCK = "tests/nn/test_transformer_block.py::"
BUILD = "tests/nn/test_build.py::"
PARITY = "tests/nn/test_parity.py::"
RULINGS = "tests/nn/test_rulings.py::"
SEMANTICS = "tests/nn/test_semantics.py::"
MEASURES = "tests/contract/test_measures.py::"
STATISTICS = "tests/capture/test_statistics.py::"
TRAINING = "tests/training/"


FAULTS = (
    Fault(
        "a boundary counts whole instead of half",
        "nn/attention/boundary_aware.py:BoundaryAware.softmax_mask",
        "extra[:, None, :] / 2",
        "extra[:, None, :]",
        (MECHANISMS + "test_attend_equals_weights_times_v_in_values_and_gradients",),
    ),
    Fault(
        "documents see each other",
        "nn/mask.py:Mask.to_keep_mask",
        """\
if self.segments is not None:
    rules.append((self.segments[:, keys - queries:, None] == self.segments[:, None, :]).unsqueeze(1))""",
        """\
if False:
    rules.append((self.segments[:, keys - queries:, None] == self.segments[:, None, :]).unsqueeze(1))""",
        (MECHANISMS + "test_rows_sum_to_one_and_masked_keys_get_zero",),
    ),
    Fault(
        "a decoder looks ahead",
        "nn/multi_head_attention.py:MultiHeadAttentionModule.forward",
        "Mask(causal=self.causal, keys=mask)",
        "Mask(causal=False, keys=mask)",
        (SEMANTICS + "test_a_decoder_never_looks_ahead",),
    ),
    Fault(
        "the causal mask is off by one",
        "nn/mask.py:Mask.to_keep_mask",
        "ahead <= 0",
        "ahead <= 1",
        (MECHANISMS + "test_rows_sum_to_one_and_masked_keys_get_zero",),
    ),
    Fault(
        "queries stand at the first keys",
        "nn/mask.py:Mask.to_keep_mask",
        "torch.arange(keys - queries, keys, device=device)",
        "torch.arange(queries, device=device)",
        (MECHANISMS + "test_the_last_queries_can_be_computed_alone",),
    ),
    Fault(
        "the padding mask is on the queries",
        "nn/mask.py:Mask.to_keep_mask",
        "as_bool(self.keys)[:, None, None, :]",
        "as_bool(self.keys)[:, None, :, None]",
        (LAYERS + "test_values_in_the_padding_do_not_change_the_output[MultiHeadAttention]",),
    ),
    Fault(
        "padding counts in the mean",
        "nn/layers/global_average_pooling1d.py:MeanOverTime.forward",
        "x.masked_fill(~kept, 0)",
        "x",
        (LAYERS + "test_values_in_the_padding_do_not_change_the_output[GlobalAveragePooling1D]",),
    ),
    Fault(
        "the mean divides by the padded length",
        "nn/layers/global_average_pooling1d.py:MeanOverTime.forward",
        "kept.sum(dim=1).clamp(min=1)",
        "x.shape[1]",
        (RULINGS + "test_the_mean_over_time_honours_the_mask",),
    ),
    Fault(
        "the padding id is like any other",
        "nn/layers/embedding.py:EmbeddingModule.mask",
        "ids != self.pad_id",
        "ids == ids",
        (SEMANTICS + "test_the_padding_id_gives_the_mask",),
    ),
    Fault(
        "the window is off by one",
        "nn/mask.py:Mask.to_keep_mask",
        "ahead.abs() <= self.reach",
        "ahead.abs() < self.reach",
        (MECHANISMS + "test_every_instruction_set_gives_the_definition",),
    ),
    Fault(
        "a row with nothing to look at looks at everything",
        "nn/attention/self.py:masked_softmax",
        "scores.masked_fill(~kept, lowest).softmax(dim=-1).masked_fill(~kept, 0)",
        "scores.masked_fill(~kept, lowest).softmax(dim=-1)",
        (MECHANISMS + "test_a_fully_masked_row_is_zero_not_nan",),
    ),
    Fault(
        "the scale is missing",
        "nn/attention/self.py:dot_product_scores",
        "q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5",
        "q @ k.transpose(-1, -2)",
        (MECHANISMS + "test_attend_equals_weights_times_v_in_values_and_gradients",),
    ),
    Fault(
        "the bias is forgotten in the definition",
        "nn/attention/self.py:dot_product_scores",
        "found if added is None else found + added",
        "found",
        (MECHANISMS + "test_attend_equals_weights_times_v_in_values_and_gradients",),
    ),
    Fault(
        "keys and values are exchanged",
        "nn/multi_head_attention.py:MultiHeadAttentionModule.forward",
        "(self.split(self.query(x)), self.split(self.key(source)), self.split(self.value(source)))",
        "(self.split(self.query(x)), self.split(self.value(source)), self.split(self.key(source)))",
        (PARITY + "test_the_encoder_equals_torchs_encoder",),
    ),
    Fault(
        "heads are put together in the wrong order",
        "nn/multi_head_attention.py:MultiHeadAttentionModule.forward",
        "mixed.transpose(1, 2).flatten(2)",
        "mixed.reshape(mixed.shape[0], mixed.shape[2], -1)",
        (
            PARITY + "test_the_encoder_equals_torchs_encoder",
            SEMANTICS + "test_a_decoder_never_looks_ahead",
        ),
    ),
    Fault(
        "attention drops while predicting",
        "nn/multi_head_attention.py:MultiHeadAttentionModule.forward",
        "self.dropout if self.training else 0.0",
        "self.dropout",
        (SEMANTICS + "test_dropout_is_active_in_training_only",),
    ),
    Fault(
        "sinusoidal positions are not added",
        "nn/positions/sinusoidal.py:SinusoidalPositions.forward",
        "waves(x.shape[1], x.shape[2], x.device).to(x.dtype)",
        "0 * waves(x.shape[1], x.shape[2], x.device).to(x.dtype)",
        (
            POSITIONS
            + "test_positions_break_permutation_equivariance_and_none_keeps_it[sinusoidal]",
        ),
    ),
    Fault(
        "rotation turns one half too little",
        "nn/positions/rotary.py:RotaryPositions.rotate",
        "left * sin + right * cos",
        "right * cos",
        (POSITIONS + "test_scores_depend_only_on_the_distance",),
    ),
    Fault(
        "the residual is dropped",
        "nn/transformer_block.py:ResidualNorm.forward",
        "x + self.dropout(self.sublayer(apply_norm(self.norm, x), *beside))",
        "self.sublayer(apply_norm(self.norm, x), *beside)",
        (RULINGS + "test_norms_are_before_the_sublayers_by_default_and_none_at_the_end",),
    ),
    Fault(
        "pre-norm and post-norm are exchanged",
        "nn/transformer_block.py:ResidualNorm.forward",
        """\
if self.pre:
    return x + self.dropout(self.sublayer(apply_norm(self.norm, x), *beside))""",
        """\
if not self.pre:
    return x + self.dropout(self.sublayer(apply_norm(self.norm, x), *beside))""",
        (PARITY + "test_the_encoder_equals_torchs_encoder",),
    ),
    Fault(
        "a norm forgets its epsilon",
        "nn/layers/layer_normalization.py:LayerNormalization.build",
        "nn.LayerNorm(width(x), eps=self.epsilon, bias=self.bias)",
        "nn.LayerNorm(width(x), eps=1e-05, bias=self.bias)",
        (RULINGS + "test_epsilon_is_passed_to_the_norm",),
    ),
    Fault(
        "a recurrence reads the padding",
        "nn/recurrent.py:RecurrentModule.run_steps",
        """\
if mask is None:
    steps, last = self.cell(x)
else:
    order = (~mask).long().argsort(dim=1, stable=True)
    lengths = mask.sum(dim=1).clamp(min=1).cpu()
    front = x.gather(1, order.unsqueeze(-1).expand_as(x))
    packed = nn.utils.rnn.pack_padded_sequence(front, lengths, batch_first=True, enforce_sorted=False)
    steps, last = self.cell(packed)
    steps = nn.utils.rnn.pad_packed_sequence(steps, batch_first=True, total_length=x.shape[1])[0]
    back = order.argsort(dim=1).unsqueeze(-1).expand_as(steps)
    steps = steps.gather(1, back).masked_fill(~mask.unsqueeze(-1), 0)""",
        """\
if True:
    steps, last = self.cell(x)
else:
    order = (~mask).long().argsort(dim=1, stable=True)
    lengths = mask.sum(dim=1).clamp(min=1).cpu()
    front = x.gather(1, order.unsqueeze(-1).expand_as(x))
    packed = nn.utils.rnn.pack_padded_sequence(front, lengths, batch_first=True, enforce_sorted=False)
    steps, last = self.cell(packed)
    steps = nn.utils.rnn.pad_packed_sequence(steps, batch_first=True, total_length=x.shape[1])[0]
    back = order.argsort(dim=1).unsqueeze(-1).expand_as(steps)
    steps = steps.gather(1, back).masked_fill(~mask.unsqueeze(-1), 0)""",
        (LAYERS + "test_values_in_the_padding_do_not_change_the_output[LSTM]",),
    ),
    Fault(
        "copies share their weights",
        "nn/build.py:build_layer_modules",
        "made.append(layer.build(x))",
        "made.append(made[0] if made else layer.build(x))",
        (SEMANTICS + "test_copies_share_no_weights",),
    ),
    Fault(
        "softmax is applied twice",
        "nn/build.py:build_layer_modules",
        "network.head != 'linear'",
        "False",
        (RULINGS + "test_softmax_is_applied_once",),
    ),
    Fault(
        "memory comes from before the encoder",
        "nn/build.py:EncoderDecoder.logits_with_mask",
        "self.through(read, *self.through(stem, source, as_bool(mask)))",
        "self.through(stem, source, as_bool(mask))",
        (BUILD + "test_memory_is_the_output_of_the_last_encoder_block",),
    ),
    Fault(
        "cross-attention takes the mechanism of the target",
        "nn/layers/transformer_decoder.py:TransformerDecoder.build",
        "Heads(features, self.num_heads, features // self.num_heads, self.cross_attention, key_value_heads=self.num_kv_heads, memory_width=width(self.memory), dropout=self.dropout_rate, bias=self.bias, qk_norm=self.qk_norm)",
        "Heads(features, self.num_heads, features // self.num_heads, self.attention, key_value_heads=self.num_kv_heads, memory_width=width(self.memory), dropout=self.dropout_rate, bias=self.bias, qk_norm=self.qk_norm)",
        (
            "tests/nn/layers/test_transformer_decoder.py::"
            "test_step_by_step_decoding_equals_teacher_forcing[causal]",
        ),
    ),
    Fault(
        "the padding mask ends at a convolution",
        "nn/build.py:NetworkModule.run_layers",
        "mask = module.output_mask(mask, x)",
        "mask = None",
        ("tests/nn/test_convolution.py::test_layers_behind_windows_over_time_do_not_see_padding",),
    ),
    Fault(
        "definitions of two modules share a name",
        "nn/source_export/bundle.py:SourceBundle.choose_names",
        "name in taken or is_captured or iskeyword(name)",
        "is_captured or iskeyword(name)",
        ("tests/nn/source_export/test_bundle.py::test_names_of_a_user_do_not_collide_with_ours",),
    ),
    Fault(
        "an alias is caught by a local variable",
        "nn/source_export/bundle.py:SourceBundle.choose_names",
        "name in taken or is_captured or iskeyword(name)",
        "name in taken or iskeyword(name)",
        (
            "tests/nn/source_export/test_bundle.py::test_an_alias_is_not_shadowed_by_a_local_variable",
        ),
    ),
    Fault(
        "labels of a language model are not shifted",
        "exports/huggingface.py:_loss_lines",
        "['logits, labels = logits[:, :-1], labels[:, 1:]']",
        "['pass']",
        (
            "tests/exports/test_huggingface.py::"
            "test_labels_give_the_loss_that_the_network_was_trained_with[writer]",
        ),
    ),
    Fault(
        "a shape formula is off by one",
        "nn/convolution.py:count_windows",
        "(dim - window) // stride + 1",
        "(dim - window) // stride",
        (LAYERS + "test_the_predicted_shape_is_the_real_one[Conv1D]",),
    ),
    Fault(
        "a parameter formula forgets biases",
        "nn/multi_head_attention.py:multi_head_cost",
        "2 * shared * (source + bias)",
        "2 * shared * source",
        (LAYERS + "test_the_predicted_parameters_are_the_real_ones",),
    ),
    Fault(
        "multiply-adds are counted once for two products",
        "nn/attention/self.py:Self.cost",
        "2 * heads",
        "heads",
        (LAYERS + "test_the_predicted_multiply_adds_are_the_counted_ones",),
    ),
    Fault(
        "activations of the feed-forward part are forgotten",
        "nn/transformer_block.py:TransformerBlock._feed_forward_cost",
        "time * (between + features)",
        "0",
        (LAYERS + "test_the_predicted_activations_are_close_to_the_saved_ones",),
    ),
    Fault(
        "a declaration imports torch",
        "nn/layers/dense.py:",
        "from __future__ import annotations",
        """\
from __future__ import annotations
import torch""",
        ("tests/contract/test_entries.py::test_every_declaration_is_read_without_torch",),
    ),
    Fault(
        "label smoothing is ignored",
        "nn/losses/sparse_categorical_crossentropy.py:SparseCategoricalCrossentropy.compute",
        "functional.cross_entropy(flat, target.reshape(-1).long(), label_smoothing=self.label_smoothing)",
        "functional.cross_entropy(flat, target.reshape(-1).long())",
        (BUILD + "test_the_fused_loss_equals_the_two_step_loss_for_class_indices",),
    ),
    Fault(
        "tall matrices come back lying",
        "optim/batched_muon.py:orthogonalize",
        "return x.mT if tall else x",
        "return x",
        ("tests/optim/test_batched_muon.py::test_the_kernel_equals_the_batched_step",),
    ),
    Fault(
        "a process takes the first welcome it finds",
        "training/rendezvous.py:enter_rendezvous",
        "store.check([welcome]) and store.get(welcome).decode() == word",
        "store.check([welcome])",
        (TRAINING + "test_rendezvous.py::test_every_attempt_has_one_new_session",),
    ),
    Fault(
        "a tied head has weights of its own",
        "nn/layers/output.py:TiedOutputModule.forward",
        "functional.linear(x, table, self.bias)",
        "functional.linear(x, table.detach(), self.bias)",
        ("tests/nn/layers/test_output.py::test_the_table_has_gradients_from_input_and_output",),
    ),
    Fault(
        "blocks begin as if each were alone",
        "nn/initializers.py:init_block",
        "2 * blocks",
        "2",
        (
            "tests/nn/test_initializers.py::test_gpt2_residual_outputs_are_scaled_by_the_number_of_blocks",
        ),
    ),
    Fault(
        "queries and values of nanoGPT are exchanged",
        "nn/nanogpt.py:",
        "('attention.sublayer.query', 'attention.sublayer.key', 'attention.sublayer.value')",
        "('attention.sublayer.value', 'attention.sublayer.key', 'attention.sublayer.query')",
        ("tests/nn/test_nanogpt.py::test_the_same_weights_give_the_same_scores",),
    ),
    Fault(
        "exponential decay has stairs",
        "optim/schedules/exponential_decay.py:ExponentialDecay.learning_rate_at",
        "step / self.decay_steps",
        "step // self.decay_steps",
        ("tests/optim/test_schedules.py",),
    ),
    Fault(
        "Muon moves the tables",
        "optim/optimizers/muon.py:Muon.build",
        "one.ndim == 2 and TABLE not in name.split('.')",
        "one.ndim == 2",
        ("tests/optim/test_optimizers.py",),
    ),
    Fault(
        "entropy is over the log of all keys",
        "capture/measures/relative_entropy.py:RelativeEntropy.from_statistics",
        "statistics['visible']",
        "statistics['visible'] * 0 + statistics['visible'].amax()",
        (STATISTICS + "test_a_uniform_causal_head_has_a_relative_entropy_of_one",),
    ),
    Fault(
        "rows that do not count count as zero",
        "capture/statistics.py:aggregate_rows",
        "stacked.nanmean",
        "stacked.nan_to_num().mean",
        (STATISTICS + "test_padded_queries_are_not_rows",),
    ),
    Fault(
        "diversity runs along the wrong axis",
        "capture/measures/head_diversity.py:HeadDiversity.reference",
        "entropy_nats(weights.mean(dim=1))",
        "entropy_nats(weights.mean(dim=2)).mean(dim=1, keepdim=True)",
        (MEASURES + "test_the_pass_over_rows_equals_the_reference",),
    ),
    Fault(
        "dropout gets into the statistics",
        "capture/tracker.py:preserve_model_state",
        "model.eval()",
        "pass",
        (TRAINING + "test_engine.py::test_snapshots_are_taken_without_dropout",),
    ),
    Fault(
        "a snapshot uses up random numbers",
        "capture/tracker.py:preserve_model_state",
        """\
with torch.random.fork_rng(devices=devices), torch.no_grad():
    model.eval()
    yield""",
        """\
with torch.no_grad():
    torch.rand(1)
    yield""",
        (TRAINING + "test_engine.py::test_a_snapshot_preserves_training_mode_and_random_state",),
    ),
    Fault(
        "a resumed optimizer has forgotten everything",
        "training/state.py:TrainingState.load_checkpoint",
        "self.optimizing.load(tensors, facts['optimizers'])",
        "pass",
        (TRAINING + "test_resume.py::test_a_stopped_run_resumes_bit_for_bit",),
    ),
    Fault(
        "dropout follows the process, not the seed",
        "training/engine.py:_TrainingLoop.accumulate_gradients",
        "seed_generators(seed_of(self.settings.seed, number), self.device)",
        "pass",
        (TRAINING + "test_resume.py::test_a_stopped_run_resumes_bit_for_bit",),
    ),
    Fault(
        "batches are added up, not averaged",
        "training/loss_module.py:compute_shares",
        "processes * weight / totals[name]",
        "float(processes)",
        (TRAINING + "test_engine.py::test_a_step_averages_the_gradients_of_all_its_batches",),
    ),
    Fault(
        "padding counts as a target",
        "tasks/supervised/task.py:Supervised.loss_weights",
        "(y != IGNORED) & mask",
        "y != IGNORED",
        ("tests/tasks/supervised/test_task.py::test_loss_weights_do_not_count_padding",),
    ),
    Fault(
        "both rates of Muon are one",
        "optim/optimizers/muon.py:Muon.with_learning_rate",
        "other * (rate / self.peak)",
        "other",
        (
            "tests/optim/test_optimizer_factory.py::test_another_learning_rate_scales_both_learning_rates_of_muon",
        ),
    ),
    Fault(
        "a checkpoint's checksum is not verified",
        "runs/checkpoint.py:read_checkpoint",
        "digest != document['tensors']['sha256']",
        "False",
        (TRAINING + "test_resume.py::test_a_damaged_checkpoint_is_skipped_for_the_one_before",),
    ),
    Fault(
        "rows of the lost steps stay",
        "training/engine.py:_TrainingLoop.__init__",
        "run.delete_after(self.state.step)",
        "pass",
        (TRAINING + "test_resume.py::test_a_damaged_checkpoint_is_skipped_for_the_one_before",),
    ),
)
