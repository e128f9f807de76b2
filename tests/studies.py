"""A study small enough for tests: a real text, a real network of two layers, trials of a second or two."""

from pathlib import Path

from click.testing import CliRunner

from neural.cli.main import main
from neural.training.runner import Ended, Runner

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
PROGRAM = """network Small {
  input: (16,)
  layers:
    Embedding(input_dim=18, output_dim=16)
    TransformerDecoder(num_heads=2, d_model=16, dff=31) * 2
    Output(18, activation="softmax")
  loss: "sparse_categorical_crossentropy"
  optimizer: AdamW(learning_rate=0.01)
  train { steps: 12 batch_size: 4 }
}
"""
EXPERIMENT = """task: language_model
network: small.neural
tracking: {maps_every: 0, probe_size: 2}
"""
STUDY = """experiment: small.yaml
data: [numbers.txt]
seeds: [0, 1]
every: 2
generation: {number: 3, length: 60}
retries: 0
"""


def write_study(folder: Path, text: str = STUDY) -> Path:
    """A study's file in `folder`, with the experiment, its program and the text beside it."""
    numbers = [WORDS[number * number % 12] for number in range(400)]
    (folder / "numbers.txt").write_text(" ".join(WORDS) + "\n" + " ".join(numbers))
    (folder / "small.neural").write_text(PROGRAM)
    (folder / "small.yaml").write_text(EXPERIMENT)
    path = folder / "evolve.yaml"
    path.write_text(text)
    return path


class Inside(Runner):
    """Trains in this very process, one trial after the other: nothing waits for another import of torch."""

    threads = 1

    def __init__(self, failing: tuple[str, ...] = (), until: int | None = None) -> None:
        super().__init__(1)
        self.failing, self.until = failing, until
        self.started: list[str] = []
        self.over: list = []

    @property
    def room(self) -> bool:
        return not self.over

    def start(self, job) -> None:
        if self.until is not None and len(self.started) == self.until:
            raise KeyboardInterrupt
        self.started.append(job.name)
        if job.name in self.failing:
            self.over.append((job, Ended("failed", "killed by SIGKILL")))
            return
        old = job.run()
        words = ["--resume", str(old)] if old is not None else [*job.arguments, "--runs", str(job.folder)]
        done = CliRunner().invoke(main, ["train", *words, "--quiet"])
        self.over.append((job, Ended("finished") if done.exit_code == 0 else Ended("refused", done.output)))

    def ended(self) -> list:
        over, self.over = self.over, []
        return over

    def stop(self) -> None:
        pass

    def __exit__(self, *_) -> None:
        pass
