"""Keys and values stored as E4M3 with a checkpoint's scales, for make_quant.py: the reference of
`--kv-dtype fp8`, written from the spec. A scale is a layer's, or a list has one for each head. A key k of a layer is stored as e4m3(sat(k / k_scale)), to
nearest even and saturated at 448, and read as that times k_scale; values alike. A cache of
transformers does it to what attention gets, so that its own forward gives the logits."""
import torch
from transformers import DynamicCache

LARGEST = 448.0
# Sums of 64 terms in another order move a key by a few 1e-7 of the largest; one that near to the middle of two
# codes could go either way.
NEAR = 1e-6


def factor(scale):
    """Of keys [batch, heads, tokens, dim]."""
    s = torch.tensor(scale, dtype=torch.float32)
    return s.reshape(1, -1, 1, 1) if s.ndim else s


def to_codes(x, scale):
    return (x / factor(scale)).clamp(-LARGEST, LARGEST)


def step_of(y):
    """Distance of the E4M3 numbers around y."""
    e = torch.floor(torch.log2(y.abs().clamp(min=2.0 ** -6)))
    return 2.0 ** (e - 3)


class Fp8Cache(DynamicCache):
    """Refuses inputs whose rounding is too close to call."""

    def __init__(self, scales):
        super().__init__()
        self.scales = scales

    def rounded(self, x, scale):
        y = to_codes(x, scale)
        step = step_of(y)
        from_middle = (((y.abs() / step) % 1.0) - 0.5).abs() * step
        if (from_middle < NEAR * y.abs().max()).any():
            raise TooClose
        return y.to(torch.float8_e4m3fn).to(torch.float32) * factor(scale)

    def update(self, keys, values, layer, *args, **more):
        k, v = self.scales
        return super().update(self.rounded(keys, k), self.rounded(values, v), layer, *args, **more)


class TooClose(Exception):
    pass
