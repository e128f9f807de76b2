"""Windows over a sequence: how much padding they need, also where whole numbers are divided as ONNX does it."""

from neural.modules.convolution import same_padding


class TowardsZero(int):
    """A size in an ONNX graph: -7 // 2 is -3."""

    def __neg__(self):
        return TowardsZero(-int(self))

    def __floordiv__(self, other):
        return TowardsZero(int(int(self) / other))


def test_padding_is_the_same_where_division_rounds_towards_zero():
    for size in range(1, 12):
        for window, stride in ((3, 2), (5, 3), (2, 3), (1, 4)):
            assert same_padding([TowardsZero(size)], [window], [stride]) == same_padding([size], [window], [stride])
            assert (size + sum(same_padding([size], [window], [stride])) - window) // stride + 1 == -(-size // stride)
