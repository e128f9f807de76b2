"""What Keras, PyTorch and Hugging Face call losses, optimizers, schedules and options of training.

Only data, as in names.py. Every word is renamed, moved to where it belongs, or left out for a
reason. A schedule is a learning rate that changes during training.
"""

from __future__ import annotations

# --- losses ---------------------------------------------------------------------------------------

CROSS_ENTROPIES = frozenset(
    {"crossentropyloss", "crossentropy", "ce", "celoss", "nllloss", "nll", "softmaxcrossentropy"}
    | {"logloss", "xent", "negativeloglikelihood", "softmaxcrossentropywithlogits", "logits"}
    | {"maskedlm", "mlm", "tokenclassification", "sequenceclassification", "classification"}
    | {"singlelabelclassification", "labelsmoother", "nextsentenceprediction", "logistic"}
)
"""Losses, without case and underscores, whose name here depends on the last layer."""
_LOSS_NAMES = {
    "binary_crossentropy": "bce bceloss bcewithlogitsloss binarycrossentropywithlogits "
    "bcewithlogits binarycrossentropyloss sigmoidcrossentropy"
    " multilabelsoftmarginloss multilabelclassification softmarginloss binarycrossentropywithlogitsloss",
    "mse": "mseloss meansquarederror l2 l2loss squarederror regression squaredloss quadratic",
    "mae": "l1 l1loss maeloss meanabsoluteerror absoluteerror",
    "sparse_categorical_crossentropy": "sparsecrossentropy causallm causallmloss languagemodeling "
    "lmloss sparsecategoricalcrossentropywithlogits forcausallmloss sparsecategoricalcrossentropyloss",
    "categorical_crossentropy": "categoricalcrossentropyloss",
}
LOSSES = {name: loss for loss, names in _LOSS_NAMES.items() for name in names.split()}
"""Losses of other libraries, without case and underscores → the name here."""
NEAREST_LOSSES = {
    "huber": "mae",
    "huberloss": "mae",
    "smoothl1loss": "mae",
    "smoothl1": "mae",
    "logcosh": "mae",
    "meanabsolutepercentageerror": "mae",
    "mape": "mae",
    "meansquaredlogarithmicerror": "mse",
    "msle": "mse",
    "rmse": "mse",
    "rootmeansquarederror": "mse",
    "kldivergence": "categorical_crossentropy",
    "kullbackleiblerdivergence": "categorical_crossentropy",
    "kldivloss": "categorical_crossentropy",
    "binaryfocalcrossentropy": "binary_crossentropy",
    "sigmoidfocalloss": "binary_crossentropy",
    "categoricalfocalcrossentropy": "categorical_crossentropy",
    "focalloss": "sparse_categorical_crossentropy",
}
"""Losses that do not exist here → the nearest one."""

# --- optimizers -----------------------------------------------------------------------------------

OPTIMIZERS: dict[str, str] = {
    **dict.fromkeys(
        [
            "adamwtorch",
            "adamwhf",
            "adamwtorchfused",
            "adamwtorchxla",
            "adamwapexfused",
            "adamwanyprecision",
            "fusedadamw",
            "adamwbnb8bit",
            "adamw8bit",
            "pagedadamw",
            "pagedadamw32bit",
            "pagedadamw8bit",
            "adamweightdecay",
            "bertadam",
            "adamwscheduled",
        ],
        "AdamW",
    ),
    **dict.fromkeys(["adamoptimizer", "fusedadam", "adam8bit", "sparseadam"], "Adam"),
    **dict.fromkeys(["momentum", "nesterov", "gradientdescent", "sgdoptimizer"], "SGD"),
}
"""Optimizers without case and underscores → the name here."""
NEAREST_OPTIMIZERS: dict[str, str] = {
    **dict.fromkeys(
        [
            "rmsprop",
            "adagrad",
            "adadelta",
            "adamax",
            "nadam",
            "radam",
            "ftrl",
            "rprop",
            "adabelief",
        ],
        "Adam",
    ),
    **dict.fromkeys(
        ["adafactor", "lamb", "lion", "novograd", "sophia", "adamwmini", "shampoo", "soap"], "AdamW"
    ),
    **dict.fromkeys(["asgd", "lars"], "SGD"),
}
"""Optimizers that do not exist here → the nearest one."""

# --- sections -------------------------------------------------------------------------------------

_SECTION_NAMES = {
    "loss": "criterion objective loss_fn loss_function loss_func",
    "optimizer": "optim optimiser opt optimizers",
    "input": "input_shape input_size input_dim inputs shape",
    "layers": "layer blocks architecture model body",
    "train": "training trainer fit training_arguments hyperparameters training_args "
    "TrainingArguments Trainer hparams train_config",
}
SECTIONS = {name: section for section, names in _SECTION_NAMES.items() for name in names.split()}
"""Sections under the names that other libraries give them."""
SETUP_CALLS = (
    "compile",
    "fit",
    "train",
    "TrainingArguments",
    "Trainer",
    "Seq2SeqTrainingArguments",
)
"""Calls whose arguments are sections and keys of `train` here, such as `model.fit(epochs=5)`."""
OPTIMIZER_NAME_KEYS = ("name", "type", "class_name", "optim", "kind")
"""Keys of a block `optimizer { … }` or `scheduler { … }` that say which one is meant."""

TRAIN_KEYS: dict[str, str] = {
    name: key
    for key, names in {
        "epochs": "num_train_epochs num_epochs n_epochs max_epochs epoch nb_epoch total_epochs",
        "batch_size": "per_device_train_batch_size train_batch_size per_gpu_train_batch_size bs "
        "batch batch_sz",
        "steps": "max_steps num_steps max_iters iterations num_training_steps n_steps total_steps "
        "train_steps num_train_steps training_steps",
        "clip_norm": "max_grad_norm grad_clip clipnorm gradient_clip_val clip_grad_norm max_norm "
        "gradient_clipping clip_gradients global_clipnorm grad_norm_clip clip_grad grad_clip_norm "
        "gradient_clip gradient_clip_norm",
        "mixed_precision": "fp16 bf16 amp use_amp tf16 half precision dtype torch_dtype",
        "early_stopping_patience": "patience early_stopping es_patience",
        "validation_split": "val_split validation_fraction test_size val_size eval_split "
        "validation_size",
        "gradient_accumulation_steps": "gradient_accumulation accumulate_grad_batches "
        "grad_accum_steps accumulation_steps grad_accum grad_accumulation_steps accum_steps",
        "gradient_checkpointing": "activation_checkpointing",
        "seed": "random_seed random_state manual_seed data_seed",
        "data": "dataset dataset_name train_file data_path data_file file train_data data_dir "
        "train_dataset dataset_path data_root",
        "device": "accelerator device_type",
    }.items()
    for name in names.split()
}
"""Key of another library → key of `train { … }`."""
OPTIMIZER_KEYS = frozenset(
    {"learning_rate", "lr", "weight_decay", "momentum", "betas", "nesterov", "adam_epsilon"}
    | {"adam_beta1", "adam_beta2", "base_lr", "max_lr", "wd", "beta1", "beta2", "eps"}
    | {"peak_lr", "initial_lr", "peak_learning_rate", "init_lr", "learning_rate_init"}
)
"""Keys that belong to the optimizer, also where they stand beside it."""
SCHEDULE_KEYS: dict[str, str] = {
    **dict.fromkeys(
        [
            "lr_scheduler_type",
            "scheduler",
            "lr_scheduler",
            "lr_schedule",
            "schedule",
            "scheduler_type",
            "learning_rate_schedule",
            "learning_rate_scheduler",
            "lr_decay_style",
        ],
        "schedule",
    ),
    **dict.fromkeys(
        [
            "warmup_steps",
            "num_warmup_steps",
            "warmup",
            "warmup_iters",
            "n_warmup_steps",
            "lr_warmup_steps",
        ],
        "warmup_steps",
    ),
    **dict.fromkeys(["warmup_ratio", "warmup_proportion", "warmup_fraction"], "warmup_ratio"),
    **dict.fromkeys(
        ["min_lr", "eta_min", "end_learning_rate", "lr_end", "min_learning_rate"], "min_rate"
    ),
    **dict.fromkeys(["decay_steps", "lr_decay_iters", "lr_decay_steps"], "total_steps"),
}
"""Keys that belong to the learning rate of the optimizer → what they say about its schedule."""
HUGGING_FACE_KEYS = frozenset(
    {"num_train_epochs", "per_device_train_batch_size", "max_grad_norm", "lr_scheduler_type"}
    | {"warmup_ratio", "evaluation_strategy", "eval_strategy", "output_dir", "weight_decay"}
    | {"adam_beta1", "adam_beta2", "adam_epsilon", "per_device_eval_batch_size", "logging_steps"}
)
"""Keys after which the optimizer is AdamW if none is given, as in Hugging Face's Trainer."""

_LOGS = "progress is always shown and recorded"
_CHECKPOINTS = "checkpoints are written in any case"
_EVALUATION = "the validation data are measured during training in any case"
_RUN_FOLDER = "`neural train` chooses the folder of a run"
_IGNORED_KEYS_BY_REASON = {
    _LOGS: "verbose logging_steps logging_strategy logging_dir logging_first_step log_every "
    "log_interval report_to run_name log_level disable_tqdm progress_bar log_every_n_steps "
    "print_every logger wandb tensorboard use_wandb project wandb_project steps_per_execution "
    "enable_progress_bar log_steps",
    _EVALUATION: "evaluation_strategy eval_strategy eval_steps eval_interval eval_iters do_eval "
    "per_device_eval_batch_size eval_batch_size val_batch_size validation_data validation_steps "
    "validation_freq eval_every do_train do_predict metric_for_best_model greater_is_better "
    "val_check_interval check_val_every_n_epoch test_batch_size eval_accumulation_steps "
    "monitor min_delta mode restore_best_weights "
    "compute_metrics eval_dataset val_interval validation_batch_size predict_with_generate eval_delay",
    _CHECKPOINTS: "save_steps save_strategy save_total_limit load_best_model_at_end save_every "
    "checkpoint_dir resume_from_checkpoint save_interval save_best_only ckpt_path save_safetensors "
    "checkpoint_path enable_checkpointing checkpoint save_freq save_model checkpoint_every",
    _RUN_FOLDER: "output_dir out_dir save_dir overwrite_output_dir log_dir default_root_dir",
    "the task measures what fits it": "metrics metric weighted_metrics label_names",
    "checkpoints and early stopping are options of training": "callbacks",
    "the training data are always shuffled": "shuffle",
    "data are loaded without such options": "num_workers pin_memory dataloader_num_workers "
    "dataloader_pin_memory drop_last dataloader_drop_last prefetch workers use_multiprocessing "
    "max_queue_size persistent_workers group_by_length remove_unused_columns data_collator collate_fn "
    "buffer_size cache tokenizer processing_class max_length max_seq_length",
    "not available: classes and examples count alike": "class_weight sample_weight",
    "an epoch is always all data": "steps_per_epoch initial_epoch limit_train_batches",
    "it does not change the result": "run_eagerly jit_compile torch_compile compile cudnn_benchmark "
    "deterministic fp16_opt_level fp16_full_eval half_precision_backend tf32 benchmark "
    "auto_scale_loss ddp_backend ddp_find_unused_parameters fsdp deepspeed local_rank "
    "num_nodes devices strategy gpus n_gpu use_cpu no_cuda use_cuda cuda use_mps_device "
    "auto_find_batch_size optim_args torchdynamo full_determinism bf16_full_eval",
    "weights of others are not loaded by a program: `neural import` does that": "pretrained "
    "model_name_or_path model_name pretrained_model_name_or_path checkpoint_name from_pretrained "
    "pretrained_model base_model hub_model_id push_to_hub hub_strategy hub_token weights "
    "pretrained_weights backbone",
    "not available as a key: the loss has `label_smoothing`": "label_smoothing_factor "
    "label_smoothing",
    "it says nothing about the network": "name description version author framework model_type "
    "task library project_name tags",
}
IGNORED_SECTIONS = {
    name: reason for reason, names in _IGNORED_KEYS_BY_REASON.items() for name in names.split()
}
"""Sections and keys of `train` that have no counterpart → why they can be left out."""

# --- schedules ------------------------------------------------------------------------------------

SCHEDULES = {
    name: schedule
    for schedule, names in {
        "CosineDecay": "cosine cosineannealinglr getcosineschedulewithwarmup cosinewithwarmup "
        "cosinedecay cosineannealing cosinelr warmupcosine cosinewarmup linearwarmupcosineannealinglr "
        "cosinewithminlr onecyclelr cosinelrscheduler cosineschedule",
        "LinearDecay": "linear getlinearschedulewithwarmup polynomialdecay polynomiallr polynomial "
        "getpolynomialdecayschedulewithwarmup lineardecay linearwithwarmup warmuplinear linearwarmup "
        "getscheduler",
        "Warmup": "constantwithwarmup getconstantschedulewithwarmup warmup warmupconstant linearlr "
        "constantlr",
        "ExponentialDecay": "exponentiallr exponential exponentialdecay steplr step stepdecay",
        "PiecewiseConstantDecay": "multisteplr multistep piecewise piecewiseconstant "
        "piecewiseconstantdecay",
    }.items()
    for name in names.split()
}
"""Schedules without case and underscores → the name here."""
CHANGED_SCHEDULES = {
    "steplr": "the rate falls smoothly here, not in steps",
    "step": "the rate falls smoothly here, not in steps",
    "onecyclelr": "the rate rises along a line here",
    "linearlr": "the rate rises from 0 here",
    "cosineannealingwarmrestarts": "the rate falls only once here",
    "cosinedecayrestarts": "the rate falls only once here",
    "cosinewithrestarts": "the rate falls only once here",
    "getcosinewithhardrestartsschedulewithwarmup": "the rate falls only once here",
}
"""Schedules whose counterpart is not quite the same → what is different."""
SCHEDULES |= {name: "CosineDecay" for name in CHANGED_SCHEDULES if "restarts" in name}
IGNORED_SCHEDULES = {
    "constant": "a number is a constant rate",
    "getconstantschedule": "a number is a constant rate",
    "none": "a number is a constant rate",
    "reducelronplateau": "an experiment has `scheduler: plateau`",
    "plateau": "an experiment has `scheduler: plateau`",
    "reduceonplateau": "an experiment has `scheduler: plateau`",
    "lambdalr": "a program has no functions",
}
"""Schedules that are left out → why."""
SCHEDULE_ORDERS = {
    "cosineannealinglr": ("optimizer", "T_max", "eta_min"),
    "cosineannealingwarmrestarts": ("optimizer", "T_0", "T_mult", "eta_min"),
    "steplr": ("optimizer", "step_size", "gamma"),
    "multisteplr": ("optimizer", "milestones", "gamma"),
    "exponentiallr": ("optimizer", "gamma"),
    "linearlr": ("optimizer", "start_factor", "end_factor", "total_iters"),
    "onecyclelr": ("optimizer", "max_lr", "total_steps"),
    "polynomiallr": ("optimizer", "total_iters", "power"),
    "getscheduler": ("name", "optimizer", "num_warmup_steps", "num_training_steps"),
    "polynomialdecay": ("initial_learning_rate", "decay_steps", "end_learning_rate", "power"),
    "cosinedecay": ("initial_learning_rate", "decay_steps", "alpha", "warmup_steps"),
    "cosinedecayrestarts": ("initial_learning_rate", "first_decay_steps"),
    "exponentialdecay": ("initial_learning_rate", "decay_steps", "decay_rate"),
    "piecewiseconstantdecay": ("boundaries", "values"),
}
"""Names of the positional arguments of schedules in other libraries; others are below."""
WITH_WARMUP_ORDER = ("optimizer", "num_warmup_steps", "num_training_steps")
"""Positional arguments of Hugging Face's `get_…_schedule_with_warmup`."""
SCHEDULE_ARGUMENTS = {
    name: meaning
    for meaning, names in {
        "rate": "initial_learning_rate learning_rate lr max_lr initial base_lr peak_lr",
        "peak": "warmup_target",
        "decay_steps": "decay_steps T_max t_max T_0 total_iters first_decay_steps step_size "
        "decay_iters",
        "total_steps": "num_training_steps total_steps max_steps max_iters max_epochs t_initial",
        "warmup_steps": "warmup_steps num_warmup_steps warmup warmup_t warmup_epochs warmup_iters",
        "factor": "gamma decay_rate factor",
        "alpha": "alpha",
        "min_rate": "eta_min end_learning_rate lr_end min_lr lr_min",
        "boundaries": "milestones boundaries",
        "values": "values",
    }.items()
    for name in names.split()
}
"""Arguments of schedules in other libraries → what they say."""
