"""A network as a graph of torch operations for any batch size and length, by `torch.export`.

Both .pt2 and ONNX files are made from this graph. Two kinds of modules are replaced first:
attention mechanisms (neural/nn/attention), which choose other algorithms for long sequences, and
recurrent layers, which torch.export would unroll for one length. An ExportBundle is a trained model
with its inputs (neural.workflows.export_bundle). Axes: B batch, T time, E input width, U output
width.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from neural.nn.attention.self import fused_attention
from neural.nn.bilstm import BiLSTM
from neural.nn.kernel_dispatch import no_kernels
from neural.nn.lazy_torch import Module, lazy_import, suppress_export_logs, torch
from neural.nn.mask import Mask
from neural.nn.mechanism import Mechanism
from neural.nn.multi_head_attention import MultiHeadAttentionModule
from neural.nn.recurrent import RecurrentModule
from neural.workflows.export_bundle import ExportBundle, ExportError

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor, nn

torch_export = lazy_import("torch.export")
scan_module = lazy_import("torch._higher_order_ops.scan")


def trace_network(bundle: ExportBundle) -> Any:
    """The `torch.export.ExportedProgram` of a network; free axes of its inputs stay dynamic."""
    torch.compiler.reset()  # otherwise sizes of earlier traces become conditions of this one
    dynamic_shapes = [
        {0: torch_export.Dim.AUTO, **_dynamic_axes(spec.shape)} for spec in bundle.inputs
    ]
    try:
        with torch.no_grad(), no_kernels(), suppress_export_logs():
            program = torch_export.export(
                ExportModule(bundle),
                bundle.create_batch(*bundle.trial_sizes[0]),
                dynamic_shapes={"inputs": tuple(dynamic_shapes)},
                strict=False,
            )
    except Exception as error:  # torch raises many classes, all of them about the network
        reason = str(error).strip().partition("\n")[0]
        raise ExportError(
            f"torch.export cannot trace {bundle.name}: {reason}. "
            "`neural compile` writes it as Python instead"
        ) from error
    for node in program.graph.nodes:  # traces contain paths of source files on this machine
        node.meta.pop("stack_trace", None)
    return program


def _dynamic_axes(shape: tuple[int | None, ...]) -> dict[int, Any]:
    """The axes of unknown size (None). `shape` has no batch axis, so axes are counted from 1."""
    return {axis: torch_export.Dim.AUTO for axis, size in enumerate(shape, 1) if size is None}


class ExportModule(Module):
    """The model to trace: takes the inputs of the bundle by position."""

    def __init__(self, bundle: ExportBundle) -> None:
        super().__init__()
        self.model: Any = prepare_for_tracing(bundle.model)
        self.return_logits = bundle.return_logits

    def forward(self, *inputs: Tensor) -> Tensor:
        """Logits if the bundle has `return_logits`, else predictions."""
        output: Tensor = (self.model.logits if self.return_logits else self.model)(*inputs)
        return output


def prepare_for_tracing(model: nn.Module) -> nn.Module:
    """A copy in evaluation mode, whose operations do not depend on the length; same outputs."""
    model = copy.deepcopy(model)
    for module in list(model.modules()):
        if isinstance(module, MultiHeadAttentionModule):
            # This is no subclass of Mechanism, but the module calls only `attend`.
            mechanism: Any = LengthIndependentMechanism(module.mechanism)
            module.mechanism = mechanism
        for name, child in module.named_children():
            if isinstance(child, RecurrentModule | BiLSTM):
                setattr(module, name, ScannedRecurrence(child))
    return model.eval()


class LengthIndependentMechanism:
    """Wraps an attention mechanism; its `attend` runs the same operations for every length."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism

    def attend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Mask,
        dropout: float = 0.0,
        extra: Tensor | None = None,
    ) -> Tensor:
        """torch's fused attention if the weights are a masked softmax, else `weights @ v`.

        Inference only: `dropout` is ignored. `extra` is an additional input of some mechanisms.
        """
        softmax_mask = self.mechanism.softmax_mask(q, k, mask, extra)
        if softmax_mask is None:
            return self.mechanism.weights(q, k, mask, extra) @ v
        # Contiguous, because the memory layout of the result differs between torch's fused kernels.
        return fused_attention(q, k, v, softmax_mask, 0.0).contiguous()


class ScannedRecurrence(Module):
    """A recurrent layer as a `scan` over time, traceable for any length. Inference only.

    Has the weights and outputs of the `RecurrentModule` or `BiLSTM` it replaces. At padding,
    wherever in the sequence, the state does not change.
    """

    def __init__(self, recurrent: RecurrentModule | BiLSTM) -> None:
        super().__init__()
        self.cell: Any = recurrent.cell  # the nn.LSTM or nn.GRU
        self.return_sequences = getattr(recurrent, "return_sequences", True)

    def forward(
        self, x: Float[Tensor, "B T E"], mask: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B *T U"]:
        """The state after each step, zeros at padding; or the last state of each direction."""
        last_states: list[Tensor] = []
        for layer in range(self.cell.num_layers):
            suffixes = ("", "_reverse") if self.cell.bidirectional else ("",)
            directions = [
                self.scan_direction(x, mask, f"l{layer}{suffix}", reverse=bool(suffix))
                for suffix in suffixes
            ]
            x = torch.cat([states for states, _ in directions], dim=-1)
            last_states = [last_state for _, last_state in directions]
        if not self.return_sequences:
            return torch.cat(last_states, dim=-1)
        return x if mask is None else x.masked_fill(~mask.unsqueeze(-1), 0)

    def scan_direction(
        self,
        x: Float[Tensor, "B T E"],
        mask: Bool[Tensor, "B T"] | None,
        suffix: str,
        *,
        reverse: bool,
    ) -> tuple[Float[Tensor, "B T U"], Float[Tensor, "B U"]]:
        """One layer in one direction: the state after each step, and the last one.

        `suffix` is the end of torch's parameter names: `l0`, `l0_reverse`, …
        """
        weight_ih, weight_hh, bias_ih, bias_hh = (
            getattr(self.cell, f"{name}_{suffix}")
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        is_real = x.new_ones(x.shape[:2], dtype=torch.bool) if mask is None else mask
        # `scan` runs along axis 0, so time comes first.
        gates = (x @ weight_ih.T + bias_ih).transpose(0, 1)
        is_real = is_real.transpose(0, 1).unsqueeze(-1)
        if reverse:
            gates, is_real = gates.flip(0), is_real.flip(0)
        is_lstm = self.cell.mode == "LSTM"
        step = lstm_step if is_lstm else gru_step

        def advance(
            state: tuple[Tensor, ...], inputs: tuple[Tensor, Tensor]
        ) -> tuple[tuple[Tensor, ...], Tensor]:
            """One time step: the new state, and the output."""
            input_gates, is_real = inputs
            new_state = step(state, input_gates, state[0] @ weight_hh.T + bias_hh)
            new_state = tuple(
                torch.where(is_real, new, old) for new, old in zip(new_state, state, strict=True)
            )
            return new_state, new_state[0].clone()

        zeros = x.new_zeros(x.shape[0], weight_hh.shape[1])
        initial_state = (zeros, zeros.clone()) if is_lstm else (zeros,)
        last_state, states = scan_module.scan(advance, initial_state, (gates, is_real), dim=0)
        return (states.flip(0) if reverse else states).transpose(0, 1), last_state[0]


def lstm_step(
    state: tuple[Tensor, ...], input_gates: Tensor, state_gates: Tensor
) -> tuple[Tensor, ...]:
    """LSTM cell (Hochreiter and Schmidhuber, 1997), gates in torch's order.

    `state` is (hidden, cell); the gates, before activation, are those of the input and of `hidden`.
    """
    input_gate, forget_gate, candidate, output_gate = (input_gates + state_gates).chunk(4, dim=-1)
    cell = forget_gate.sigmoid() * state[1] + input_gate.sigmoid() * candidate.tanh()
    return output_gate.sigmoid() * cell.tanh(), cell


def gru_step(
    state: tuple[Tensor, ...], input_gates: Tensor, state_gates: Tensor
) -> tuple[Tensor, ...]:
    """GRU cell (Cho et al., 2014), gates in torch's order; arguments as in `lstm_step`."""
    input_reset, input_update, input_candidate = input_gates.chunk(3, dim=-1)
    state_reset, state_update, state_candidate = state_gates.chunk(3, dim=-1)
    reset = (input_reset + state_reset).sigmoid()
    update = (input_update + state_update).sigmoid()
    candidate = (input_candidate + reset * state_candidate).tanh()
    return ((1 - update) * candidate + update * state[0],)
