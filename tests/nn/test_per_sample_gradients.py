"""Per-sample gradients by `torch.func` through every mechanism, position and kernel."""

import pytest
import torch
from torch.func import functional_call, grad, vmap

import neural
from neural.nn.attention import registry as mechanisms
from neural.nn.positions import registry as positions

PROGRAM = """network Small {{
  input: (9, 8)
  layers:
    TransformerEncoder(num_heads=2, d_model=8, dff=16, {arguments})
    GlobalAveragePooling1D()
    Output(3, activation="softmax")
  loss: "sparse_categorical_crossentropy"
}}
"""
ARGUMENTS = [
    *(f'attention="{name}"' for name in mechanisms.names()),
    *(f'positional="{name}"' for name in positions.names()),
    "qk_norm=true",
    'activation="squared_relu"',
]


# torch loops over the examples if an operator, such as fused attention, has no batching rule.
@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
@pytest.mark.parametrize("arguments", ARGUMENTS)
def test_vmapped_gradients_equal_one_backward_pass_per_example(arguments):
    torch.manual_seed(0)
    model = neural.parse(PROGRAM.format(arguments=arguments)).build()
    params = {name: param.detach() for name, param in model.named_parameters()}
    x, y = torch.randn(4, 9, 8), torch.tensor([0, 2, 1, 2])

    def loss(params, example, label):
        scores = functional_call(model, params, (example.unsqueeze(0),))
        return torch.nn.functional.nll_loss(scores.log(), label.unsqueeze(0))

    per_sample = vmap(grad(loss), in_dims=(None, 0, 0))(params, x, y)
    for example in range(len(x)):
        model.zero_grad()
        torch.nn.functional.nll_loss(
            model(x[example : example + 1]).log(), y[example : example + 1]
        ).backward()
        for name, param in model.named_parameters():
            expected = torch.zeros_like(param) if param.grad is None else param.grad
            torch.testing.assert_close(per_sample[name][example], expected, rtol=1e-4, atol=1e-6)
