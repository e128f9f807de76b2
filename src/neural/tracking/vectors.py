"""What the compiled loops are made of, in vector instructions: products of a few rows with a few keys, exp and log.

Written as instructions for the compiler where numba would not find them by itself. exp and log are polynomials on the
bits of a 32-bit float, because a call would keep a loop from being turned into vectors. Whoever changes this file
touches kernels.py too: numba keeps compiled loops on disk until their own file changes.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

f4 = np.float32
LOG2 = f4(math.log(2))
LEAST = f4(-87)
"""exp of less is not a normal 32-bit float; `exp` gives that of this."""
ROWS, PANEL = 4, 24
"""Rows and keys of one product: 4 × 3 vectors of 8 sums, 3 of keys and one of a query fill the 16 vector registers."""
BITS, FLOAT, VECTOR = ir.IntType(32), ir.FloatType(), ir.VectorType(ir.FloatType(), 8)

inlined = numba.njit(fastmath=True, forceinline=True)


@intrinsic
def score_panel(context: Any, q: Any, row: Any, panels: Any, panel: Any, bias: Any, out: Any, column: Any) -> Any:
    """out[:4, column : column + 24] = bias + q[row : row + 4] @ panels[panel]; all sums stay in registers."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _, row, _, panel, _, _, column = args
        q, panels, bias, out = (context.make_array(signature.args[i])(context, builder, args[i]) for i in (0, 2, 4, 5))
        width, stride = (cgutils.unpack_tuple(builder, one.shape)[1] for one in (panels, out))

        def place(array: Any, *offsets: Any) -> Any:
            at = array.data
            for offset in offsets:
                at = builder.gep(at, [offset])
            return at

        def vectors(at: Any) -> list[Any]:
            starts = [builder.gep(at, [context.get_constant(types.intp, 8 * part)]) for part in range(PANEL // 8)]
            return [builder.bitcast(one, VECTOR.as_pointer()) for one in starts]

        index = [context.get_constant(types.intp, i) for i in range(ROWS)]
        first = builder.mul(panel, context.get_constant(types.intp, PANEL))
        sums = [[cgutils.alloca_once(builder, VECTOR) for _ in range(PANEL // 8)] for _ in index]
        for part, start in enumerate(vectors(place(bias, first))):
            value = builder.load(start, align=4)
            for own in sums:
                builder.store(value, own[part])
        keys = place(panels, builder.mul(first, width))
        queries = [place(q, builder.mul(builder.add(row, i), width)) for i in index]
        with cgutils.for_range(builder, width) as loop:
            step = builder.mul(loop.index, context.get_constant(types.intp, PANEL))
            loaded = [builder.load(one, align=4) for one in vectors(builder.gep(keys, [step]))]
            for query, own in zip(queries, sums, strict=True):
                single = builder.load(builder.gep(query, [loop.index]))
                lone = builder.insert_element(ir.Constant(VECTOR, ir.Undefined), single, BITS(0))
                spread = builder.shuffle_vector(lone, lone, ir.Constant(ir.VectorType(BITS, 8), [0] * 8))
                for total, key in zip(own, loaded, strict=True):
                    more = builder.fmul(spread, key, flags=("fast",))
                    builder.store(builder.fadd(builder.load(total), more, flags=("fast",)), total)
        for i, own in zip(index, sums, strict=True):
            for total, at in zip(own, vectors(place(out, builder.mul(i, stride), column)), strict=True):
                builder.store(builder.load(total), at, align=4)
        return context.get_dummy_value()

    return types.void(q, types.intp, panels, types.intp, bias, out, types.intp), build


@intrinsic
def _power_of_two(context: Any, n: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bits = builder.shl(builder.add(builder.fptosi(args[0], BITS), BITS(127)), BITS(23))
        return builder.bitcast(bits, FLOAT)

    return types.float32(types.float32), build


def _exponent_bits(builder: Any, x: Any) -> Any:
    # counted so that the mantissa lies between √½ and √2
    return builder.ashr(builder.sub(builder.bitcast(x, BITS), BITS(0x3F3504F3)), BITS(23))


@intrinsic
def _exponent(context: Any, x: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.sitofp(_exponent_bits(builder, args[0]), FLOAT)

    return types.float32(types.float32), build


@intrinsic
def _mantissa(context: Any, x: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        shifted = builder.shl(_exponent_bits(builder, args[0]), BITS(23))
        return builder.bitcast(builder.sub(builder.bitcast(args[0], BITS), shifted), FLOAT)

    return types.float32(types.float32), build


@inlined
def exp(x):  # noqa: ANN001, ANN201 (numba reads no annotations)
    """Of a number not above 0; to the last digit or two."""
    x = max(x, LEAST)
    n = np.floor(x * f4(1.4426950408889634) + f4(0.5))
    r = (x - n * f4(0.693359375)) + n * f4(2.12194440e-4)   # log 2 in two pieces: no digits are lost
    p = ((((f4(1 / 720) * r + f4(1 / 120)) * r + f4(1 / 24)) * r + f4(1 / 6)) * r + f4(0.5)) * r * r + r + f4(1)
    return p * _power_of_two(n)  # type: ignore[missing-argument]  # an intrinsic gets its context by itself


@inlined
def log(x):  # noqa: ANN001, ANN201
    """Of a normal number above 0; to the last digit or two."""
    r = _mantissa(x) - f4(1)  # type: ignore[missing-argument]
    p = ((f4(7.0376836292e-2) * r - f4(1.1514610310e-1)) * r + f4(1.1676998740e-1)) * r - f4(1.2420140846e-1)
    p = ((p * r + f4(1.4249322787e-1)) * r - f4(1.6668057665e-1)) * r + f4(2.0000714765e-1)
    p = (p * r - f4(2.4999993993e-1)) * r + f4(3.3333331174e-1)
    return r + r * r * (p * r - f4(0.5)) + _exponent(x) * LOG2  # type: ignore[missing-argument]
