"""A small focus model and a batch for it, the same every time."""

import torch

from neural.language.check import check
from neural.standard import CATALOGUE
from neural.tasks.focusing.estimators.exact import Exact
from neural.tasks.focusing.networks import FocusModel, default_program
from neural.tasks.focusing.paradigms.hard import Hard
from neural.tasks.focusing.segments import Segments

B, M, D, C = 5, 7, 3, 4   # all different: a swapped axis cannot pass by luck


def network(name, outputs):
    (found,) = check(default_program(name, (D,), outputs, None), CATALOGUE).networks
    return found


def model(seed=0):
    torch.manual_seed(seed)
    return FocusModel(network("Focus", 1), network("Classifier", C), informed=True).double()


def given(made=None, estimator=None, samples=M, mask=None, background=0.0, batch=B, segments=M, copies=1):
    made = made or model()
    random = torch.Generator().manual_seed(1)
    x = torch.randn(batch, segments, D, generator=random, dtype=torch.float64)
    y = torch.randint(C, (batch,), generator=random)
    x, y = x.repeat(copies, 1, 1), y.repeat(copies)
    return Segments(made, x, y, mask, estimator=estimator or Exact(), samples=samples, background=background)


def by_hand(one):
    """Focus and probabilities of the true class of every segment, in loops: (B, m) each."""
    made = one.model
    scores = torch.stack([torch.stack([made.focus.scores(x[None])[0, 0] for x in row]) for row in one.x])
    focus = scores.exp() / scores.exp().sum(dim=1, keepdim=True)
    rows = zip(one.x, one.y, strict=True)
    p = [torch.stack([made.classifier.scores(x[None])[0].softmax(-1)[y] for x in row]) for row, y in rows]
    return focus, torch.stack(p)


def gradients(made, loss):
    """Of everything that is learned, as one vector."""
    parameters = list(made.parameters())
    found = torch.autograd.grad(loss, parameters, allow_unused=True, retain_graph=True, materialize_grads=True)
    return torch.cat([one.flatten() for one in found])


def same_on_average(paradigm, wanted, groups=30, **more):
    """Whether the mean gradient over many draws is the wanted one, within five standard errors."""
    made, found = model(), []
    torch.manual_seed(0)
    for _ in range(groups):
        one = given(made, batch=2, segments=4, copies=200, **more)
        found.append(gradients(made, paradigm.loss(one).mean()))
    drawn = torch.stack(found)
    error = drawn.std(dim=0) / groups**0.5
    return bool(((drawn.mean(dim=0) - wanted).abs() < 5 * error + 1e-9).all())


def hard_gradient():
    """Of the exact hard loss, for the same examples."""
    made = model()
    one = given(made, batch=2, segments=4)
    return gradients(made, Hard().loss(one).mean())
