"""What Keras, PyTorch and Hugging Face call layers and activations.

Only data: the files beside it apply it to the syntax tree of a program. argument_names.py and
training_names.py have the names of arguments, losses, optimizers and sections. Names that are the same
here (Keras' `Dense`) are not listed. docs/coming-from.md shows examples.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ForeignLayer:
    """A layer of another library, as a layer of this one."""

    name: str
    """Its name here; empty if there is no such layer and the line is left out."""
    order: tuple[str, ...] = ()
    """Names of its positional arguments in the other library."""
    added: dict[str, object] = field(default_factory=dict)
    """Arguments that it has here, unless the program gives them."""
    required: int = 0
    """How many of `order` the other library needs. With fewer, the first one, a size of the input,
    was left out."""
    note: str = ""
    """What is different here, if the meaning changes; why the line is left out without a name."""
    is_optional: bool = False
    """As a part of a compound: left out unless the program gives what it needs."""


@dataclass(frozen=True, slots=True)
class CompoundLayer:
    """A layer of another library that is several layers here; each takes the arguments it knows."""

    parts: tuple[ForeignLayer, ...]
    order: tuple[str, ...] = ()
    """Names of the positional arguments in the other library."""


# --- layers ---------------------------------------------------------------------------------------

_RECURRENT = ("input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout")
_CONVOLUTION = ("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation")
_KERAS_CONVOLUTION = ("filters", "kernel_size", "strides", "padding")
_POOLING = ("kernel_size", "stride", "padding")
_KERAS_POOLING = ("pool_size", "strides", "padding")
_ENCODER_LAYER = ("d_model", "nhead", "dim_feedforward", "dropout", "activation")
_NORM = ("normalized_shape", "eps")
_FEATURE_NORM = ("num_features", "eps", "momentum")
_HEAD = ("num_labels",)
_NO_AUGMENTATION = "a program has no augmentation of data"
_DROPS_VALUES = "it drops single values, not whole channels"
_GATED = "the nearest recurrent layer; it has gates"
_LLAMA: dict[str, object] = {"normalization": "rms", "positional": "rotary", "bias": False}
_LEARNED: dict[str, object] = {"encoding_type": "learned"}
_POST_NORM: dict[str, object] = {"norm": "post"}
_BERT: dict[str, object] = {"norm": "post", "activation": "gelu"}
_PRETRAINED = "`neural import` reads trained weights; a program begins with new ones"


def _name_all(names: str, layer: ForeignLayer) -> dict[str, ForeignLayer]:
    """The same layer under several names."""
    return dict.fromkeys(names.split(), layer)


LAYERS: dict[str, ForeignLayer] = {
    "Linear": ForeignLayer("Dense", ("in_features", "out_features", "bias"), required=2),
    "LazyLinear": ForeignLayer("Dense", ("out_features", "bias")),
    **_name_all("FullyConnected FC DenseLayer", ForeignLayer("Dense", ("units",))),
    "Conv1d": ForeignLayer("Conv1D", _CONVOLUTION, required=3),
    "Conv2d": ForeignLayer("Conv2D", _CONVOLUTION, required=3),
    "LazyConv1d": ForeignLayer("Conv1D", _CONVOLUTION[1:]),
    "LazyConv2d": ForeignLayer("Conv2D", _CONVOLUTION[1:]),
    "Convolution1D": ForeignLayer("Conv1D", _KERAS_CONVOLUTION),
    "Convolution2D": ForeignLayer("Conv2D", _KERAS_CONVOLUTION),
    "MaxPool1d": ForeignLayer("MaxPooling1D", _POOLING),
    "MaxPool2d": ForeignLayer("MaxPooling2D", _POOLING),
    "MaxPool1D": ForeignLayer("MaxPooling1D", _KERAS_POOLING),
    "MaxPool2D": ForeignLayer("MaxPooling2D", _KERAS_POOLING),
    **_name_all(
        "GlobalAvgPool1D GlobalAveragePool1D GlobalAvgPooling1D GlobalAveragePooling MeanPooling "
        "MeanPool GlobalAvgPool AveragePool AvgPooling",
        ForeignLayer("GlobalAveragePooling1D"),
    ),
    **_name_all(
        "BertPooler Pooler ClsPooling CLSPooling FirstTokenPooling",
        ForeignLayer(
            "GlobalAveragePooling1D", note="it is the mean of all positions, not the first one"
        ),
    ),
    "AdaptiveAvgPool1d": ForeignLayer("GlobalAveragePooling1D", ("output_size",)),
    **_name_all("BatchNorm SyncBatchNorm", ForeignLayer("BatchNormalization", _FEATURE_NORM)),
    **_name_all(
        "BatchNorm1d BatchNorm2d LazyBatchNorm1d LazyBatchNorm2d",
        ForeignLayer("BatchNormalization", _FEATURE_NORM),
    ),
    **_name_all("LayerNorm BertLayerNorm", ForeignLayer("LayerNormalization", _NORM)),
    **_name_all(
        "RMSNorm LlamaRMSNorm MistralRMSNorm Qwen2RMSNorm GemmaRMSNorm T5LayerNorm",
        ForeignLayer("RMSNormalization", _NORM),
    ),
    "Embed": ForeignLayer("Embedding", ("num_embeddings", "embedding_dim")),
    **_name_all(
        "TokenEmbedding WordEmbedding WordEmbeddings ReversibleEmbedding",
        ForeignLayer("Embedding", ("vocab_size", "hidden_size")),
    ),
    **_name_all(
        "MultiheadAttention MHA SelfAttention MultiHeadSelfAttention BertAttention "
        "BertSelfAttention ViTAttention ViTSelfAttention",
        ForeignLayer("MultiHeadAttention", ("embed_dim", "num_heads", "dropout")),
    ),
    **_name_all(
        "CausalSelfAttention GPT2Attention LlamaAttention",
        ForeignLayer("MultiHeadAttention", ("embed_dim", "num_heads"), {"attention": "causal"}),
    ),
    "TransformerEncoderLayer": ForeignLayer("TransformerEncoder", _ENCODER_LAYER, _POST_NORM),
    "TransformerDecoderLayer": ForeignLayer("TransformerDecoder", _ENCODER_LAYER, _POST_NORM),
    **_name_all(
        "TransformerBlock TransformerLayer EncoderBlock TransformerEncoderBlock",
        ForeignLayer("TransformerEncoder", ("embed_dim", "num_heads", "ff_dim", "rate")),
    ),
    **_name_all(
        "DecoderBlock TransformerDecoderBlock Block",
        ForeignLayer("TransformerDecoder", ("embed_dim", "num_heads", "ff_dim", "rate")),
    ),
    "EncoderLayer": ForeignLayer("TransformerEncoder", ("d_model", "num_heads", "dff")),
    "DecoderLayer": ForeignLayer("TransformerDecoder", ("d_model", "num_heads", "dff")),
    **_name_all(
        "BertLayer BertEncoder BertBlock RobertaLayer RobertaEncoder DistilBertLayer ElectraLayer "
        "AlbertLayer DebertaLayer",
        ForeignLayer("TransformerEncoder", added=_BERT),
    ),
    **_name_all(
        "ViTLayer ViTEncoder DeiTLayer T5Block FNetEncoder", ForeignLayer("TransformerEncoder")
    ),
    **_name_all(
        "GPT2Block GPTBlock GPT2Layer GPTNeoBlock GPTNeoXLayer OPTDecoderLayer BloomBlock "
        "GPT2DecoderLayer",
        ForeignLayer("TransformerDecoder"),
    ),
    **_name_all(
        "LlamaDecoderLayer LlamaBlock LlamaLayer MistralDecoderLayer Qwen2DecoderLayer "
        "GemmaDecoderLayer",
        ForeignLayer("TransformerDecoder", added=_LLAMA),
    ),
    **_name_all(
        "PositionEmbedding PositionalEmbedding PositionEmbeddings LearnedPositionalEmbedding",
        ForeignLayer("PositionalEncoding", ("sequence_length", "hidden_size"), _LEARNED),
    ),
    **_name_all(
        "SinePositionEncoding SinusoidalPositionalEmbedding SinusoidalEncoding PositionEncoding",
        ForeignLayer("PositionalEncoding", ("hidden_size", "max_len")),
    ),
    **_name_all(
        "ClassificationHead BertClassificationHead RobertaClassificationHead ClassifierHead "
        "SequenceClassificationHead Classifier TokenClassificationHead RegressionHead OutputLayer",
        ForeignLayer("Output", _HEAD),
    ),
    **_name_all("LMHead LanguageModelHead LMPredictionHead lm_head", ForeignLayer("Output", _HEAD)),
    **_name_all("Unflatten View", ForeignLayer("Reshape", ("dim", "unflattened_size"))),
    **_name_all("Dropout1d Dropout1D", ForeignLayer("Dropout", ("p",), note=_DROPS_VALUES)),
    **_name_all("Dropout2d Dropout2D", ForeignLayer("Dropout", ("p",), note=_DROPS_VALUES)),
    **_name_all(
        "SpatialDropout1D SpatialDropout2D", ForeignLayer("Dropout", ("rate",), note=_DROPS_VALUES)
    ),
    **_name_all(
        "AlphaDropout GaussianDropout StableDropout",
        ForeignLayer("Dropout", ("rate",), note="it sets values to 0"),
    ),
    "SimpleRNN": ForeignLayer("GRU", ("units",), note=_GATED),
    "RNN": ForeignLayer("GRU", _RECURRENT, note=_GATED),
    **_name_all("CuDNNLSTM LSTMCell", ForeignLayer("LSTM", ("units",))),
    **_name_all("CuDNNGRU GRUCell", ForeignLayer("GRU", ("units",))),
    "Identity": ForeignLayer("", note="it does nothing"),
    "Masking": ForeignLayer("", note="`Embedding(…, pad_id=0)` hides padding"),
    "ActivityRegularization": ForeignLayer("", note="use `weight_decay` of the optimizer"),
    **_name_all(
        "RandomFlip RandomRotation RandomZoom RandomCrop RandomContrast RandomTranslation",
        ForeignLayer("", note=_NO_AUGMENTATION),
    ),
}
"""Layers of other libraries that have another name here."""
_AVERAGE_POOLING = "use `MaxPooling`, or `GlobalAveragePooling1D` over the whole sequence"
_NORMS = "use `BatchNormalization`, `LayerNormalization` or `RMSNormalization`"
_BRANCH = "a program is a sequence of layers; `Residual(…)` adds its input to its output"
_AXES = "`Reshape` gives the axes other sizes, but does not swap them"
MISSING_LAYERS: dict[str, str] = {
    name: help_text
    for help_text, names in {
        _AVERAGE_POOLING: "AveragePooling1D AveragePooling2D AvgPool1d AvgPool2d AvgPool1D AvgPool2D "
        "AveragePooling3D AvgPool3d",
        _NORMS: "GroupNorm GroupNormalization InstanceNorm1d InstanceNorm2d LocalResponseNorm "
        "UnitNormalization SpectralNormalization Normalization",
        _BRANCH: "Add Concatenate Average Multiply Subtract Maximum Dot Bilinear Merge Lambda",
        _AXES: "Permute Transpose Rearrange Squeeze RepeatVector",
        "use `Conv2D` or `Conv1D`": "Conv3D Conv3d SeparableConv1D SeparableConv2D DepthwiseConv1D "
        "DepthwiseConv2D Conv1DTranspose Conv2DTranspose ConvTranspose1d ConvTranspose2d "
        "ConvLSTM2D",
        "no layer makes a sequence or an image larger": "UpSampling1D UpSampling2D Upsample "
        "ZeroPadding1D ZeroPadding2D Cropping1D Cropping2D PixelShuffle",
        "scale the data before training": "Rescaling Resizing CenterCrop Discretization",
        "the data are encoded before training": "TextVectorization StringLookup CategoryEncoding "
        "Hashing EmbeddingBag",
        _PRETRAINED: "from_pretrained",
        '`positional="rotary"` is an argument of the transformer block': "RotaryEmbedding "
        "LlamaRotaryEmbedding RotaryPositionalEmbedding",
    }.items()
    for name in names.split()
}
"""Layers without a counterpart → what to use instead. They get no fix: another network would result."""

_EMBEDDING = ForeignLayer("Embedding")
_LEARNED_POSITIONS = ForeignLayer("PositionalEncoding", added=_LEARNED)
_OPTIONAL_DROPOUT = ForeignLayer("Dropout", is_optional=True)
_OPTIONAL_NORM = ForeignLayer("LayerNormalization", is_optional=True)
_TOKEN_ORDER = ("vocab_size", "sequence_length", "embedding_dim")
_ENCODER_MODEL = CompoundLayer(
    (_EMBEDDING, _LEARNED_POSITIONS, ForeignLayer("TransformerEncoder", added=_BERT)),
    ("vocab_size",),
)
_DECODER_MODEL = CompoundLayer(
    (_EMBEDDING, _LEARNED_POSITIONS, ForeignLayer("TransformerDecoder")), ("vocab_size",)
)
_LLAMA_MODEL = CompoundLayer(
    (_EMBEDDING, ForeignLayer("TransformerDecoder", added=_LLAMA), ForeignLayer("RMSNormalization"))
)
COMPOUNDS: dict[str, CompoundLayer] = {
    "TokenAndPositionEmbedding": CompoundLayer((_EMBEDDING, _LEARNED_POSITIONS), _TOKEN_ORDER),
    "TokenPositionEmbedding": CompoundLayer((_EMBEDDING, _LEARNED_POSITIONS), _TOKEN_ORDER),
    **dict.fromkeys(
        [
            "BertEmbeddings",
            "BertEmbedding",
            "RobertaEmbeddings",
            "DistilBertEmbeddings",
            "GPT2Embeddings",
            "ElectraEmbeddings",
            "GPTEmbeddings",
        ],
        CompoundLayer((_EMBEDDING, _LEARNED_POSITIONS, _OPTIONAL_DROPOUT), ("vocab_size",)),
    ),
    **dict.fromkeys(["BertModel", "RobertaModel", "DistilBertModel", "BertConfig"], _ENCODER_MODEL),
    **dict.fromkeys(["GPT2Model", "GPT2LMHeadModel", "GPT2Config", "GPTConfig"], _DECODER_MODEL),
    **dict.fromkeys(
        ["LlamaModel", "LlamaForCausalLM", "LlamaConfig", "MistralModel"], _LLAMA_MODEL
    ),
}
"""Layers of other libraries that are several layers here."""

POOLINGS: dict[str, str] = {
    **dict.fromkeys(
        [
            "GlobalMaxPooling1D",
            "GlobalMaxPool1D",
            "GlobalMaxPooling",
            "GlobalMaxPool1d",
            "AdaptiveMaxPool1d",
            "MaxPoolingOverTime",
        ],
        "max1",
    ),
    **dict.fromkeys(["GlobalMaxPooling2D", "GlobalMaxPool2D", "AdaptiveMaxPool2d"], "max2"),
    **dict.fromkeys(
        [
            "GlobalAveragePooling2D",
            "GlobalAvgPool2D",
            "GlobalAveragePool2D",
            "AdaptiveAvgPool2d",
            "GlobalAvgPooling2D",
        ],
        "mean2",
    ),
}
"""Pooling over all positions that needs the shape here: kind of pooling and number of axes."""

PATCHES = ("PatchEmbedding", "PatchEmbed", "PatchEmbeddings", "ViTPatchEmbeddings", "ViTEmbeddings")
"""Layers that cut an image into patches: a convolution and a `Reshape` here."""

TORCH_ORDER: dict[str, tuple[str, ...]] = {
    "LSTM": (*_RECURRENT, "bidirectional"),
    "GRU": (*_RECURRENT, "bidirectional"),
    "Embedding": ("num_embeddings", "embedding_dim", "padding_idx"),
    "Dropout": ("p", "inplace"),
    "Flatten": ("start_dim", "end_dim"),
}
"""Positional arguments of the classes of `torch.nn` that have the same name here."""
TORCH_REQUIRED = {"LSTM": 2, "GRU": 2}
"""How many of them PyTorch needs; see `ForeignLayer.required`."""
TORCH_MARKS = frozenset({"input_size", "hidden_size", "num_layers", "batch_first", "proj_size"})
"""Arguments that only recurrent layers of PyTorch have: they return all positions."""
RECURRENT_LAYERS = ("LSTM", "GRU")
"""Layers that return only the last position in Keras, and all of them here."""

SEQUENCES = ("Sequential", "ModuleList", "model.add", "add", "TimeDistributed")
"""Calls around layers that stand for these layers."""
INPUT_LAYERS = ("Input", "InputLayer")
"""Layers that say the shape of the input."""
STACKS = ("TransformerEncoder", "TransformerDecoder")
"""PyTorch's `TransformerEncoder(layer, num_layers)`: copies of its first argument."""

WRAPPED_ARGUMENTS = (None, "layer", "layers", "encoder_layer", "decoder_layer")
"""Names of the arguments that are layers in a call around them; None has no name."""

# --- activations ----------------------------------------------------------------------------------

ACTIVATION_LAYERS = {"Activation": "", "LogSoftmax": "softmax"}
"""Layers that are an activation of the layer before; the empty name is the first argument.

`ReLU()` and other activations that have the same name here are found without this table.
"""
ACTIVATIONS = {
    "gelunew": "gelu",
    "gelufast": "gelu",
    "gelupython": "gelu",
    "gelupytorchtanh": "gelu",
    "gelutanh": "gelu",
    "geluaccurate": "gelu",
    "logsoftmax": "softmax",
    "identity": "linear",
    "none": "linear",
    "relu2": "squared_relu",
}
"""Activations without case and underscores → the name here."""
NEAREST_ACTIVATIONS = {
    "relu6": "relu",
    "thresholdedrelu": "relu",
    "prelu": "leaky_relu",
    "rrelu": "leaky_relu",
    "hardtanh": "tanh",
    "softsign": "tanh",
    "hardswish": "silu",
    "hardsilu": "silu",
    "mish": "silu",
    "swiglu": "silu",
    "geglu": "gelu",
    "quickgelu": "gelu",
    "gelu10": "gelu",
    "hardsigmoid": "sigmoid",
    "celu": "elu",
    "exponential": "softplus",
}
"""Activations that do not exist here → the nearest one, which is not the same function."""
PASSED_LAYERS = {
    "Dropout": "",
    "MaxPooling1D": "",
    "MaxPooling2D": "",
    "Flatten": "",
    "Reshape": "",
    "BatchNormalization": "it comes before the normalization then",
    "LayerNormalization": "it comes before the normalization then",
    "RMSNormalization": "it comes before the normalization then",
}
"""Layers between a layer and its activation → what changes if the activation moves before them."""
