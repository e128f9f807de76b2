"""A study small enough for tests: real text, a network of two layers, trials of a second or two."""

import json
from pathlib import Path

from neural.training.runner import Runner, TrialJob, TrialResult, create_request
from neural.workflows.train_worker import run_request

WORDS = [
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]
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
    """Write a study file with its experiment, program and text into `folder`."""
    numbers = [WORDS[number * number % 12] for number in range(400)]
    (folder / "numbers.txt").write_text(" ".join(WORDS) + "\n" + " ".join(numbers))
    (folder / "small.neural").write_text(PROGRAM)
    (folder / "small.yaml").write_text(EXPERIMENT)
    path = folder / "evolve.yaml"
    path.write_text(text)
    return path


class InProcessRunner(Runner):
    """Trains in this process, one trial after the other, so that torch is not imported again."""

    threads = 1

    def __init__(self, failing: tuple[str, ...] = (), max_trials: int | None = None) -> None:
        super().__init__(1)
        self.failing, self.max_trials = failing, max_trials
        self.started: list[str] = []
        self.finished: list[tuple[TrialJob, TrialResult]] = []

    @property
    def has_capacity(self) -> bool:
        return not self.finished

    def start(self, job: TrialJob) -> None:
        if self.max_trials is not None and len(self.started) == self.max_trials:
            raise KeyboardInterrupt
        self.started.append(job.name)
        if job.name in self.failing:
            self.finished.append((job, TrialResult("failed", "killed by SIGKILL")))
            return
        exit_code = run_request(json.loads(create_request(job)))
        result = TrialResult("finished" if exit_code == 0 else "refused")
        self.finished.append((job, result))

    def poll_finished(self) -> list[tuple[TrialJob, TrialResult]]:
        finished, self.finished = self.finished, []
        return finished

    def stop(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass
