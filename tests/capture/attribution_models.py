"""Small models for tests of attribution: own networks and Hugging Face models, random weights."""

import torch
import transformers

import neural
from tests.capture.hf_models import MODELS

VOCABULARY, LENGTH = 11, 9
PAD = 1


def build_own(options="", *, layers=2, output="", positional=""):
    """A decoder of `neural` that reads tokens."""
    torch.manual_seed(0)
    return (
        neural.parse(
            f"""network Small {{
  input: ({LENGTH},)
  layers:
    Embedding(input_dim={VOCABULARY}, output_dim=12)
    TransformerDecoder(num_heads=3, d_model=12, dff=17, {options}) * {layers}
    Output({VOCABULARY}, activation="softmax"{output})
  loss: "sparse_categorical_crossentropy"
}}"""
        )
        .build()
        .eval()
    )


def build_classifier(options=""):
    """An encoder of `neural` with a mean over time."""
    torch.manual_seed(0)
    return (
        neural.parse(
            f"""network Kinds {{
  input: ({LENGTH},)
  layers:
    Embedding(input_dim={VOCABULARY}, output_dim=12)
    TransformerEncoder(num_heads=3, d_model=12, dff=17, {options}) * 2
    GlobalAveragePooling1D()
    Output(5, activation="softmax")
  loss: "sparse_categorical_crossentropy"
}}"""
        )
        .build()
        .eval()
    )


def build_hugging_face(name, implementation="eager"):
    """A model of tests/capture/hf_models.py in evaluation mode."""
    torch.manual_seed(0)
    return MODELS[name].build(implementation).eval()


def build_sequence_classifier(name):
    """BERT, RoBERTa, GPT-2 or Llama with three classes."""
    settings = {"vocab_size": 37, "pad_token_id": PAD, "num_labels": 3}
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    classes = {
        "BERT": (transformers.BertConfig, transformers.BertForSequenceClassification),
        "RoBERTa": (transformers.RobertaConfig, transformers.RobertaForSequenceClassification),
        "GPT-2": (transformers.GPT2Config, transformers.GPT2ForSequenceClassification),
        "Llama": (transformers.LlamaConfig, transformers.LlamaForSequenceClassification),
    }
    config_class, model_class = classes[name]
    torch.manual_seed(0)
    return model_class(config_class(**settings, **sizes, intermediate_size=24)).eval()


def draw_ids(batch=3, length=LENGTH, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(3, VOCABULARY, (batch, length), generator=generator)


def read_logits(model, ids):
    """Logits by the model's own code."""
    with torch.no_grad():
        return model.logits(ids) if hasattr(model, "network") else model(input_ids=ids).logits
