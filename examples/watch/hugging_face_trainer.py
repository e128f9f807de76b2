"""The Trainer of Hugging Face with `NeuralCallback`; its checkpoints are watched afterwards.

    python examples/watch/hugging_face_trainer.py [STEPS]
    neural report trainer                                  every snapshot of the training
    neural watch trained/checkpoint-* --input "red cat blue dog red" -o checkpoints.html

Nothing is downloaded: the tokenizer and the model are small, and trained here. Needs `pip install
transformers accelerate`.
"""

import random
import sys

import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from neural.callbacks.huggingface import NeuralCallback

NOUNS = ["cat", "dog", "bird", "fish"]
COLOURS = ["red", "blue", "green", "white"]

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 200
transformers.set_seed(0)
texts = []
for _ in range(2000):  # every text gives each noun a colour of its own
    pairs = list(zip(random.sample(COLOURS, 4), NOUNS, strict=True))
    texts.append(" ".join(word for pair in random.choices(pairs, k=12) for word in pair))

words = Tokenizer(models.WordLevel(unk_token="[UNK]"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
words.train_from_iterator(texts, trainers.WordLevelTrainer(special_tokens=["[UNK]", "[PAD]"]))
tokenizer = transformers.PreTrainedTokenizerFast(
    tokenizer_object=words, unk_token="[UNK]", pad_token="[PAD]"
)
sizes = {"n_positions": 32, "n_embd": 32, "n_layer": 2, "n_head": 2}
special = {"bos_token_id": None, "eos_token_id": None}
config = transformers.GPT2Config(vocab_size=len(tokenizer), **sizes, **special)

probe = tokenizer(texts[:8], return_tensors="pt")
callback = NeuralCallback(dict(probe), every=10, run="runs/trainer", tokenizer=tokenizer)
trainer = transformers.Trainer(
    model=transformers.GPT2LMHeadModel(config),
    args=transformers.TrainingArguments(
        output_dir="trained",
        max_steps=steps,
        per_device_train_batch_size=32,
        learning_rate=5e-3,
        logging_steps=10,
        save_steps=50,
        report_to=[],
        use_cpu=True,
    ),
    train_dataset=[tokenizer(text) for text in texts],
    data_collator=transformers.DataCollatorForLanguageModeling(tokenizer, mlm=False),
    processing_class=tokenizer,  # saved with every checkpoint, so that `neural watch` has it
    callbacks=[callback],
)
trainer.train()
print(f"the run is {callback.path.name}")
