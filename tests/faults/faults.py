"""Faults of networks, training and tracking: each a small change of the source, and the tests that must notice it."""

from tests.faults.fault import Fault

LAYERS = "tests/contract/test_layers.py::"
MECHANISMS = "tests/contract/test_mechanisms.py::"
POSITIONS = "tests/contract/test_positions.py::"
BLOCK = "tests/modules/test_block.py::"
BUILD = "tests/modules/test_build.py::"
PARITY = "tests/modules/test_parity.py::"
RULINGS = "tests/modules/test_rulings.py::"
SEMANTICS = "tests/modules/test_semantics.py::"
MEASURES = "tests/contract/test_measures.py::"
STATISTICS = "tests/tracking/test_statistics.py::"
TRAINING = "tests/training/"


FAULTS = (
    Fault(
        "the compiled window is off by one", "modules/kernels/localized.py",
        "at + reach + 1)\n            largest", "at + reach)\n            largest",
        (MECHANISMS + "test_the_fast_way_equals_the_definition_in_values_and_gradients",),
    ),
    Fault(
        "the compiled window drops a gradient", "modules/kernels/localized.py",
        "to_k[task, j, d] += change * q[task, i, d]", "to_k[task, j, d] += 0",
        (MECHANISMS + "test_the_fast_way_equals_the_definition_in_values_and_gradients",),
    ),
    Fault(
        "a boundary counts whole instead of half", "modules/attention/boundary_aware.py",
        "half = extra[:, None, :] / 2", "half = extra[:, None, :]",
        (MECHANISMS + "test_the_fast_way_equals_the_definition_in_values_and_gradients",),
    ),
    Fault(
        "documents see each other", "modules/mask.py",
        "if self.segments is not None:\n            rules", "if False:\n            rules",
        (MECHANISMS + "test_rows_sum_to_one_and_masked_keys_get_nothing",),
    ),
    Fault(
        "a decoder looks ahead", "modules/heads.py",
        "Mask(causal=self.causal,", "Mask(causal=False,",
        (SEMANTICS + "test_a_decoder_never_looks_ahead",),
    ),
    Fault(
        "the causal mask is off by one", "modules/mask.py",
        "rules.append(ahead <= 0)", "rules.append(ahead <= 1)",
        (MECHANISMS + "test_rows_sum_to_one_and_masked_keys_get_nothing",),
    ),
    Fault(
        "queries stand at the first keys", "modules/mask.py",
        "torch.arange(keys - queries, keys, device=device)", "torch.arange(queries, device=device)",
        (MECHANISMS + "test_the_queries_at_the_end_can_be_asked_alone",),
    ),
    Fault(
        "the padding mask is on the queries", "modules/mask.py",
        "as_bool(self.keys)[:, None, None, :]", "as_bool(self.keys)[:, None, :, None]",
        (LAYERS + "test_what_stands_in_the_padding_changes_nothing[MultiHeadAttention]",),
    ),
    Fault(
        "padding counts in the mean", "modules/layers/global_average_pooling1d.py",
        "x.masked_fill(~kept, 0).sum(dim=1)", "x.sum(dim=1)",
        (LAYERS + "test_what_stands_in_the_padding_changes_nothing[GlobalAveragePooling1D]",),
    ),
    Fault(
        "the mean divides by the padded length", "modules/layers/global_average_pooling1d.py",
        "kept.sum(dim=1).clamp(min=1)", "x.shape[1]",
        (RULINGS + "test_the_mean_over_time_honours_the_mask",),
    ),
    Fault(
        "the padding id is like any other", "modules/layers/embedding.py",
        "real = ids != self.pad_id", "real = ids == ids",
        (SEMANTICS + "test_the_padding_id_gives_the_mask",),
    ),
    Fault(
        "the window is off by one", "modules/mask.py",
        "ahead.abs() <= self.reach", "ahead.abs() < self.reach",
        (MECHANISMS + "test_the_fast_way_equals_the_definition_in_values_and_gradients",),
    ),
    Fault(
        "a row with nothing to look at looks at everything", "modules/attention/self.py",
        ".softmax(dim=-1).masked_fill(~kept, 0)", ".softmax(dim=-1)",
        (MECHANISMS + "test_a_fully_masked_row_is_zero_not_nan",),
    ),
    Fault(
        "the scale is missing", "modules/attention/self.py",
        " / q.shape[-1] ** 0.5", "",
        (MECHANISMS + "test_the_fast_way_equals_the_definition_in_values_and_gradients",),
    ),
    Fault(
        "the bias is forgotten in the definition", "modules/attention/self.py",
        "return found if added is None else found + added", "return found",
        (MECHANISMS + "test_the_fast_way_equals_the_definition_in_values_and_gradients",),
    ),
    Fault(
        "keys and values are exchanged", "modules/heads.py",
        "self.split(self.key(source)), self.split(self.value(source))",
        "self.split(self.value(source)), self.split(self.key(source))",
        (PARITY + "test_the_encoder_is_torchs_encoder",),
    ),
    Fault(
        "heads are put together in the wrong order", "modules/heads.py",
        "mixed.transpose(1, 2).flatten(2)", "mixed.reshape(mixed.shape[0], mixed.shape[2], -1)",
        (PARITY + "test_the_encoder_is_torchs_encoder", SEMANTICS + "test_a_decoder_never_looks_ahead"),
    ),
    Fault(
        "attention drops while predicting", "modules/heads.py",
        "self.dropout if self.training else 0.0", "self.dropout",
        (SEMANTICS + "test_dropout_works_while_training_and_never_while_predicting",),
    ),
    Fault(
        "sinusoidal positions are not added", "modules/positions/sinusoidal.py",
        "return x + waves", "return x + 0 * waves",
        (POSITIONS + "test_positions_break_permutation_equivariance_and_none_keeps_it[sinusoidal]",),
    ),
    Fault(
        "rotation turns one half too little", "modules/positions/rotary.py",
        "left * sin + right * cos", "right * cos",
        (POSITIONS + "test_scores_depend_on_the_distance_alone",),
    ),
    Fault(
        "the residual is dropped", "modules/block.py",
        "return x + self.dropout(self.part(self.norm(x), *beside))", "return self.part(self.norm(x), *beside)",
        (RULINGS + "test_norms_stand_before_the_parts_by_default_and_none_at_the_end",),
    ),
    Fault(
        "pre-norm and post-norm are exchanged", "modules/block.py",
        "if self.pre:", "if not self.pre:",
        (PARITY + "test_the_encoder_is_torchs_encoder",),
    ),
    Fault(
        "a norm forgets its epsilon", "modules/layers/layer_normalization.py",
        "eps=self.epsilon", "eps=1e-5",
        (RULINGS + "test_an_epsilon_arrives_in_the_norm",),
    ),
    Fault(
        "a recurrence reads the padding", "modules/recurrence.py",
        "if mask is None:", "if True:",
        (LAYERS + "test_what_stands_in_the_padding_changes_nothing[LSTM]",),
    ),
    Fault(
        "copies share their weights", "modules/build.py",
        "made.append(layer.build(x))", "made.append(made[0] if made else layer.build(x))",
        (SEMANTICS + "test_copies_share_no_weights",),
    ),
    Fault(
        "softmax is applied twice", "modules/build.py",
        'network.head != "linear"', "False",
        (RULINGS + "test_softmax_is_applied_once",),
    ),
    Fault(
        "memory comes from before the encoder", "modules/build.py",
        "self.through(read, *self.through(stem, source, as_bool(mask)))", "self.through(stem, source, as_bool(mask))",
        (BUILD + "test_memory_is_the_output_of_the_last_encoder_block",),
    ),
    Fault(
        "cross-attention takes the mechanism of the target", "modules/layers/transformer_decoder.py",
        "features // self.num_heads, self.cross_attention,", "features // self.num_heads, self.attention,",
        ("tests/modules/layers/test_transformer_decoder.py::"
         "test_step_by_step_decoding_equals_teacher_forcing[causal]",),
    ),
    Fault(
        "the padding mask ends at a convolution", "modules/build.py",
        "mask = module.output_mask(mask, x)", "mask = None",
        ("tests/modules/test_convolution.py::test_layers_behind_windows_over_time_do_not_see_padding",),
    ),
    Fault(
        "definitions of two modules share a name", "modules/source/bundle.py",
        "if name in taken or is_captured or iskeyword(name):", "if is_captured or iskeyword(name):",
        ("tests/modules/source/test_bundle.py::test_two_of_our_own_modules_may_use_one_name",),
    ),
    Fault(
        "an alias is caught by a local variable", "modules/source/bundle.py",
        "name in taken or is_captured or", "name in taken or",
        ("tests/modules/source/test_bundle.py::test_an_alias_is_not_caught_by_a_local_variable",),
    ),
    Fault(
        "labels of a language model are not shifted", "exports/_huggingface_code.py",
        "logits, labels = logits[:, :-1], labels[:, 1:]", "pass",
        ("tests/exports/test_huggingface.py::"
         "test_labels_give_the_loss_that_the_network_was_trained_with[writer]",),
    ),
    Fault(
        "a shape formula is off by one", "modules/convolution.py",
        "(dim - window) // stride + 1", "(dim - window) // stride",
        (LAYERS + "test_the_predicted_shape_is_the_real_one[Conv1D]",),
    ),
    Fault(
        "a parameter formula forgets biases", "modules/heads.py",
        "2 * shared * (source + bias)", "2 * shared * source",
        (LAYERS + "test_the_predicted_parameters_are_the_real_ones",),
    ),
    Fault(
        "multiply-adds are counted once for two products", "modules/attention/self.py",
        "multiply_adds=2 * heads", "multiply_adds=heads",
        (LAYERS + "test_the_predicted_multiply_adds_are_the_counted_ones",),
    ),
    Fault(
        "activations of the feed-forward part are forgotten", "modules/block.py",
        "activations=time * (between + features)", "activations=0",
        (LAYERS + "test_the_predicted_activations_are_close_to_the_kept_ones",),
    ),
    Fault(
        "a declaration imports torch", "modules/layers/dense.py",
        "from __future__ import annotations\n", "from __future__ import annotations\n\nimport torch\n",
        ("tests/contract/test_entries.py::test_every_declaration_is_read_without_torch",),
    ),
    Fault(
        "label smoothing is ignored", "modules/losses/sparse_categorical_crossentropy.py",
        ", label_smoothing=self.label_smoothing)", ")",
        (BUILD + "test_the_fused_loss_is_the_two_step_loss_for_class_numbers",),
    ),
    Fault(
        "queries and keys with positions are not normed", "modules/kernels/placed.py",
        "if normed:\n                square = np.float32(0)\n                for",
        "if normed and pairs == 0:\n                square = np.float32(0)\n                for",
        (BLOCK + "test_normed_queries_and_keys_come_before_the_positions",),
    ),
    Fault(
        "the gradient of a norm is its factor alone", "modules/kernels/placed.py",
        "factor * (made[d] - was[d] * share)", "factor * made[d]",
        ("tests/modules/test_heads.py::test_queries_are_placed_alike_in_one_pass_and_in_many",),
    ),
    Fault(
        "tall matrices come back lying", "training/orthogonal.py",
        "return x.mT if tall else x", "return x",
        (TRAINING + "test_orthogonal.py::test_it_steps_as_torch_does",),
    ),
    Fault(
        "a process takes the first welcome it finds", "training/meeting.py",
        "if store.check([welcome]) and store.get(welcome).decode() == word:", "if store.check([welcome]):",
        (TRAINING + "test_meeting.py::test_every_attempt_has_one_new_room",),
    ),
    Fault(
        "a tied head has weights of its own", "modules/layers/output.py",
        "functional.linear(x, table, self.bias)", "functional.linear(x, table.detach(), self.bias)",
        ("tests/modules/layers/test_output.py::test_the_table_learns_from_both_ends",),
    ),
    Fault(
        "blocks begin as if each were alone", "modules/initial.py",
        "(2 * blocks) ** -0.5", "2 ** -0.5",
        ("tests/modules/test_initial.py::test_gpt2_blocks_begin_small_and_the_more_of_them_the_less_each_adds",),
    ),
    Fault(
        "queries and values of nanoGPT are exchanged", "modules/nanogpt.py",
        '("attention.part.query", "attention.part.key", "attention.part.value")',
        '("attention.part.value", "attention.part.key", "attention.part.query")',
        ("tests/modules/test_nanogpt.py::test_the_same_weights_give_the_same_scores",),
    ),
    Fault(
        "exponential decay has stairs", "training/schedules/exponential_decay.py",
        "(step / self.decay_steps)", "(step // self.decay_steps)",
        (TRAINING + "test_schedules.py",),
    ),
    Fault(
        "Muon moves the tables", "training/optimizers/muon.py",
        ' and TABLE not in name.split(".")', "",
        (TRAINING + "test_optimizers.py",),
    ),
    Fault(
        "the previous token is the current one", "tracking/kernels.py",
        "((5, here - 1), (6, here)", "((5, here), (6, here)",
        (MEASURES + "test_the_pass_over_the_rows_finds_what_the_definition_says[none-previous_token_mass]",),
    ),
    Fault(
        "entropy is over the log of all keys", "tracking/measures/relative_entropy.py",
        'found["visible"])\n', 'found["visible"] * 0 + found["visible"].amax())\n',
        (STATISTICS + "test_a_uniform_causal_head_has_a_relative_entropy_of_one",),
    ),
    Fault(
        "rows that do not count count as zero", "tracking/measure.py",
        "rows.nanmean(dim=(0, -1))", "rows.nan_to_num().mean(dim=(0, -1))",
        (STATISTICS + "test_padded_queries_are_not_rows",),
    ),
    Fault(
        "diversity runs along the wrong axis", "tracking/measures/head_diversity.py",
        "nats(weights.mean(dim=1))", "nats(weights.mean(dim=2)).mean(dim=1, keepdim=True)",
        (MEASURES + "test_the_pass_over_the_rows_finds_what_the_definition_says",),
    ),
    Fault(
        "dropout gets into the statistics", "tracking/tracker.py",
        "            model.eval()\n", "",
        (TRAINING + "test_engine.py::test_looks_are_without_dropout",),
    ),
    Fault(
        "a look uses up random numbers", "tracking/tracker.py",
        "with torch.random.fork_rng(devices=devices), torch.no_grad():\n            model.eval()",
        "with torch.no_grad():\n            torch.rand(1)",
        (TRAINING + "test_engine.py::test_a_look_leaves_mode_and_random_numbers_as_they_were",),
    ),
    Fault(
        "a resumed optimizer has forgotten everything", "training/state.py",
        'self.optimizing.load(tensors, facts["optimizers"])', "pass",
        (TRAINING + "test_resume.py::test_a_run_that_was_stopped_goes_on",),
    ),
    Fault(
        "dropout follows the process, not the seed", "training/engine.py",
        "torch.manual_seed(seed_of(self.settings.seed, number))", "pass",
        (TRAINING + "test_resume.py::test_a_run_that_was_stopped_goes_on",),
    ),
    Fault(
        "batches are added up, not averaged", "training/objective.py",
        "processes * weight / totals[name]", "float(processes)",
        (TRAINING + "test_engine.py::test_a_step_learns_from_all_its_batches",),
    ),
    Fault(
        "padding counts as a target", "tasks/supervised.py",
        "(y != IGNORED) & mask", "y != IGNORED",
        ("tests/tasks/test_supervised.py::test_padding_does_not_weigh_in_a_step",),
    ),
    Fault(
        "both rates of Muon are one", "training/optimizers/muon.py",
        "other * (rate / self.peak)", "other",
        (TRAINING + "test_rates.py::test_another_learning_rate_scales_both_rates_of_muon",),
    ),
    Fault(
        "a checkpoint's sum is not looked at", "tracking/checkpoint.py",
        'if digest != document["tensors"]["sha256"]:', "if False:",
        (TRAINING + "test_resume.py::test_the_newest_checkpoint_broken_the_one_before_is_taken",),
    ),
    Fault(
        "rows of the lost steps stay", "training/engine.py",
        "run.forget_after(self.state.step)", "pass",
        (TRAINING + "test_resume.py::test_the_newest_checkpoint_broken_the_one_before_is_taken",),
    ),
)  # fmt: skip
