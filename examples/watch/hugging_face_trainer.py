"""The Trainer of Hugging Face with `NeuralCallback`; its checkpoints are watched afterwards.

    python examples/watch/hugging_face_trainer.py [--steps 200]
    neural report trainer                                  every snapshot of the training
    neural watch trained/checkpoint-* --input "red cat blue dog red" -o checkpoints.html

Nothing is downloaded: the tokenizer and the model are small, and trained here. Needs `pip install
transformers accelerate`.
"""

import argparse
import random

from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import (
    DataCollatorForLanguageModeling,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    set_seed,
)

from neural.callbacks.huggingface import NeuralCallback

NOUNS, COLOURS = "cat dog bird fish".split(), "red blue green white".split()

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=200)
steps = parser.parse_args().steps
set_seed(0)
texts = []
for _ in range(2000):  # every text gives each noun a colour of its own
    pairs = list(zip(random.sample(COLOURS, 4), NOUNS, strict=True))
    texts.append(" ".join(word for pair in random.choices(pairs, k=12) for word in pair))

words = Tokenizer(models.WordLevel(unk_token="[UNK]"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
words.train_from_iterator(texts, trainers.WordLevelTrainer(special_tokens=["[UNK]", "[PAD]"]))
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]", pad_token="[PAD]")
config = GPT2Config(vocab_size=len(tokenizer), n_positions=32, n_embd=32, n_layer=2, n_head=2)

probe = tokenizer(texts[:8], return_tensors="pt")
callback = NeuralCallback(dict(probe), every=10, run="runs/trainer", tokenizer=tokenizer)
trainer = Trainer(
    model=GPT2LMHeadModel(config),
    args=TrainingArguments(
        output_dir="trained",
        max_steps=steps,
        per_device_train_batch_size=32,
        learning_rate=5e-3,
        logging_steps=10,
        save_steps=50,
        report_to=[],
    ),
    train_dataset=[tokenizer(text) for text in texts],
    data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False),
    processing_class=tokenizer,  # saved with every checkpoint, so that `neural watch` has it
    callbacks=[callback],
)
trainer.train()
print(f"the run is {callback.path.name}")
