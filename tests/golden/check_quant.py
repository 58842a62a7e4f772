"""The reference of make_quant.py against the packages that own a layout: what their decoders make
of the packed tensors must be the same float32 numbers, bit for bit.

compressed-tensors reads its own packings, torch the 8-bit floats, gguf the 4-bit floats after their
halves are put in GGUF's order, bitsandbytes its own (where it is installed). AWQ, GPTQ, ModelOpt's
int4 and the padded packing of old compressed-tensors have no decoder that runs on a CPU: they
rest on the worked vectors of tests/quant/test_vectors.c.
"""
import gguf
import numpy as np
import torch
from compressed_tensors.compressors.nvfp4.helpers import pack_fp4_to_uint8, unpack_fp4_from_uint8
from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32, unpack_from_int32
from compressed_tensors.quantization import QuantizationArgs
from compressed_tensors.quantization.lifecycle.forward import dequantize

try:
    import bitsandbytes.functional as bnb
except ImportError:
    bnb = None


def tensor(part):
    dtype, array = part
    t = torch.from_numpy(np.ascontiguousarray(array).copy())
    if dtype == "BF16":
        return (t.view(torch.uint16).to(torch.int32) << 16).view(torch.float32)
    if dtype == "F8_E4M3":
        return t.view(torch.float8_e4m3fn)
    if dtype == "I32":
        return t.view(torch.int32)
    return t.float() if dtype == "F16" else t


def equal(name, is_, want):
    is_, want = is_.numpy().astype(np.float32), np.asarray(want, np.float32)
    assert is_.shape == want.shape and np.array_equal(is_.view(np.uint32), want.view(np.uint32)), name


def weights_of(config, **more):
    return QuantizationArgs(**{**config["config_groups"]["group_0"]["weights"], **more})


def check_pack(name, config, parts, values):
    if "weight_g_idx" in parts or config["version"] < "0.17":
        return None  # no longer read by the package
    args = weights_of(config)
    shape, s = torch.Size(values.shape), tensor(parts["weight_scale"])
    q = unpack_from_int32(tensor(parts["weight_packed"]), args.num_bits, shape)
    assert torch.equal(pack_to_int32(q, args.num_bits), tensor(parts["weight_packed"])), name
    z = None
    if "weight_zero_point" in parts:
        z = unpack_from_int32(tensor(parts["weight_zero_point"]), args.num_bits,
                              torch.Size([values.shape[0], s.shape[1]]), packed_dim=0)
    equal(name, dequantize(q, s, z, args), values)
    return "compressed-tensors"


def gguf_order(codes, n):
    """Pairs j and j + n/2 of @n codes in one byte."""
    c = codes.reshape(-1, n)
    return c[:, :n // 2] | c[:, n // 2:] << 4


def check_fp4(name, config, parts, values):
    packed = tensor(parts["weight_packed"])
    n, k = values.shape
    q = unpack_fp4_from_uint8(packed, n, k, torch.float32)
    assert torch.equal(pack_fp4_to_uint8(q), packed), name
    codes = np.stack([parts["weight_packed"][1] & 15, parts["weight_packed"][1] >> 4], -1).reshape(n, k)
    if "weight_global_scale" in parts:
        s, g = tensor(parts["weight_scale"]).float(), tensor(parts["weight_global_scale"])
        equal(name, dequantize(q, s, None, weights_of(config), torch.float32, g), values)
        if k % 64 == 0:  # without the global scale, as GGUF's blocks hold it
            raw = np.concatenate([parts["weight_scale"][1].reshape(-1, 4),
                                  gguf_order(codes, 16).reshape(-1, 32)], -1)
            ours = q.numpy() * np.repeat(s.numpy(), 16, 1)
            theirs = gguf.quants.dequantize(raw.reshape(n, -1), gguf.GGMLQuantizationType.NVFP4)
            assert np.array_equal(theirs, ours), name
    else:
        raw = np.concatenate([parts["weight_scale"][1].reshape(-1, 1), gguf_order(codes, 32)], -1)
        theirs = gguf.quants.dequantize(raw.reshape(n, -1), gguf.GGMLQuantizationType.MXFP4)
        assert np.array_equal(theirs, values), name
    return "compressed-tensors, gguf"


def check_float8(name, config, parts, values):
    w = tensor(parts["weight"]).float()
    scale = next(parts[p] for p in ("weight_scale_inv", "weight_scale") if p in parts)
    if scale[0] in ("U8", "F8_E8M0"):
        s = torch.from_numpy(scale[1].copy()).view(torch.float8_e8m0fnu).float()
    else:
        s = tensor(scale).float()
    s = s.reshape(s.shape[0], s.shape[2]) if s.ndim == 4 else s
    bn, bk = config.get("weight_block_size") or (128, 128)
    if s.ndim < 2:
        s = s.reshape(-1, 1)
    if s.shape[1] == values.shape[1] // 32 and scale[0] == "U8":
        bn, bk = 1, 32
    elif s.shape[1] == 1:
        bn, bk = -(-values.shape[0] // s.shape[0]), values.shape[1]
    full = s.repeat_interleave(bn, 0)[:values.shape[0]].repeat_interleave(bk, 1)[:, :values.shape[1]]
    equal(name, w * full, values)
    return "torch"


def check_int8(name, config, parts, values):
    if "config_groups" not in config:
        return None
    z = tensor(parts["weight_zero_point"]) if "weight_zero_point" in parts else None
    equal(name, dequantize(tensor(parts["weight"]), tensor(parts["weight_scale"]), z, weights_of(config)),
          values)
    return "compressed-tensors"


def check_bnb(name, parts, values):
    if not bnb:
        return "NOT CHECKED: bitsandbytes is not installed"
    if "SCB" in parts:
        is_ = bnb.int8_vectorwise_dequant(tensor(parts["weight"]), tensor(parts["SCB"])).numpy()
        assert np.allclose(is_, values, rtol=2 ** -22, atol=0), name  # the products in another order
        return "bitsandbytes"
    inner = {k[len("weight."):]: tensor(v) for k, v in parts.items() if k != "weight"}
    state = bnb.QuantState.from_dict(inner, device=torch.device("cpu"))
    equal(name, bnb.dequantize_4bit(tensor(parts["weight"]), state).reshape(values.shape), values)
    return "bitsandbytes"


def check(name, config, parts, values):
    """Returns: who agreed, or None where there is nobody to ask."""
    if "SCB" in parts or "weight.absmax" in parts:
        return check_bnb(name, parts, values)
    if "weight_packed" in parts:
        return (check_pack if parts["weight_packed"][0] == "I32" else check_fp4)(name, config, parts, values)
    if "weight" in parts and parts["weight"][0] == "F8_E4M3":
        return check_float8(name, config, parts, values)
    if "weight" in parts and parts["weight"][0] == "I8" and "weight_scale" in parts:
        return check_int8(name, config, parts, values)
    return None
