"""A small focus model and a batch for it, always the same."""

import torch

from neural.language.check import check
from neural.optim.catalogue import CATALOGUE
from neural.tasks.focus.estimators.exact import Exact
from neural.tasks.focus.model import FocusModel, write_default_program
from neural.tasks.focus.paradigms.hard import Hard
from neural.tasks.focus.segment_batch import SegmentBatch

B, M, D, C = 5, 7, 3, 4  # all different, so that a swapped axis fails


def create_network(name, outputs):
    (gradient_list,) = check(write_default_program(name, (D,), outputs, None), CATALOGUE).networks
    return gradient_list


def create_model(seed=0):
    torch.manual_seed(seed)
    return FocusModel(
        create_network("Focus", 1), create_network("Classifier", C), with_inference_network=True
    ).double()


def create_batch(
    focus_model=None,
    estimator=None,
    samples=M,
    mask=None,
    background=0.0,
    batch_size=B,
    segments=M,
    copies=1,
):
    focus_model = focus_model or create_model()
    random = torch.Generator().manual_seed(1)
    x = torch.randn(batch_size, segments, D, generator=random, dtype=torch.float64)
    y = torch.randint(C, (batch_size,), generator=random)
    x, y = x.repeat(copies, 1, 1), y.repeat(copies)
    return SegmentBatch(
        focus_model,
        x,
        y,
        mask,
        estimator=estimator or Exact(),
        samples=samples,
        background_weight=background,
    )


def focus_and_probs_by_hand(batch):
    """Focus, and probability of the label, of every segment, computed in loops: (B, m) each."""
    focus_model = batch.model
    scores = torch.stack(
        [torch.stack([focus_model.focus.logits(x[None])[0, 0] for x in row]) for row in batch.x]
    )
    focus = scores.exp() / scores.exp().sum(dim=1, keepdim=True)
    rows = zip(batch.x, batch.y, strict=True)
    p = [
        torch.stack([focus_model.classifier.logits(x[None])[0].softmax(-1)[y] for x in row])
        for row, y in rows
    ]
    return focus, torch.stack(p)


def gradients(focus_model, loss):
    """Gradients of all parameters as one vector."""
    parameters = list(focus_model.parameters())
    gradient_list = torch.autograd.grad(
        loss, parameters, allow_unused=True, retain_graph=True, materialize_grads=True
    )
    return torch.cat([batch.flatten() for batch in gradient_list])


def has_mean_gradient(paradigm, expected, groups=30, **batch_settings):
    """Whether the mean gradient over many samples equals `expected` within 5 standard errors."""
    focus_model, gradient_list = create_model(), []
    torch.manual_seed(0)
    for _ in range(groups):
        batch = create_batch(focus_model, batch_size=2, segments=4, copies=200, **batch_settings)
        gradient_list.append(gradients(focus_model, paradigm.loss(batch).mean()))
    samples = torch.stack(gradient_list)
    error = samples.std(dim=0) / groups**0.5
    return bool(((samples.mean(dim=0) - expected).abs() < 5 * error + 1e-9).all())


def hard_gradient():
    """Gradient of the exact hard loss for the same examples."""
    focus_model = create_model()
    batch = create_batch(focus_model, batch_size=2, segments=4)
    return gradients(focus_model, Hard().loss(batch).mean())
