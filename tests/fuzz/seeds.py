"""Makes tests/fuzz/seeds/: small good files of each format, from which the fuzzers begin.

    /usr/bin/python3 tests/fuzz/seeds.py        (PyTorch 1.13)
"""
import collections
import json
import pathlib
import struct
import zipfile

import numpy as np
import torch

HERE = pathlib.Path(__file__).parent / "seeds"


def safetensors(name, header, count):
    text = json.dumps(header).encode()
    (HERE / "safetensors" / name).write_bytes(struct.pack("<Q", len(text)) + text + bytes(count))


def tensor(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


safetensors("small", {"__metadata__": {"format": "pt"}, "wte.weight": tensor("F32", [2, 2], 0, 16),
                      "b": tensor("BF16", [3], 16, 22), "c": tensor("BOOL", [], 22, 23),
                      "d": tensor("I64", [1, 0], 23, 23), "e": tensor("F16", [1], 23, 25)}, 25)
safetensors("empty", {}, 0)

SIZES = (4, 2, 1, 2, 1)  # dim, hidden, layers, heads, kv heads; 3 tokens, 2 positions
NUMBERS = 3 * 4 + 4 + 16 + 8 + 8 + 16 + 4 + 8 * 3 + 4
(HERE / "llama2c" / "v0").write_bytes(struct.pack("<7i", *SIZES, 3, 2) + bytes(4 * (NUMBERS + 4)))
(HERE / "llama2c" / "v0-own-head").write_bytes(
    struct.pack("<7i", *SIZES, -3, 2) + bytes(4 * (NUMBERS + 4 + 12)))
(HERE / "llama2c" / "v1").write_bytes(
    (struct.pack("<Ii7iB", 0x616B3432, 1, *SIZES, 3, 2, 1)).ljust(256, b"\0") + bytes(4 * NUMBERS))


def text(s):
    return struct.pack("<Q", len(s.encode())) + s.encode()


def gguf(name, pairs, tensors):
    out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs))
    for key, kind, value in pairs:
        out += text(key) + struct.pack("<I", kind) + value
    offset, data = 0, b""
    for key, shape, kind, size in tensors:
        out += text(key) + struct.pack("<I", len(shape)) + struct.pack("<%dQ" % len(shape), *shape)
        out += struct.pack("<IQ", kind, offset)
        data += bytes(-(-size // 32) * 32)
        offset = len(data)
    (HERE / "gguf" / name).write_bytes(out + bytes(-len(out) % 32) + data)


u32 = lambda x: struct.pack("<I", x)
pairs = [("general.architecture", 8, text("llama")), ("llama.context_length", 4, u32(2)),
         ("llama.embedding_length", 4, u32(4)), ("llama.block_count", 4, u32(1)),
         ("llama.feed_forward_length", 4, u32(2)), ("llama.attention.head_count", 4, u32(2)),
         ("llama.attention.head_count_kv", 4, u32(1)), ("llama.rope.freq_base", 6, struct.pack("<f", 1e4)),
         ("llama.rope.dimension_count", 4, u32(2)),
         ("llama.attention.layer_norm_rms_epsilon", 6, struct.pack("<f", 1e-5))]
tensors = [("token_embd.weight", (4, 3), 0, 48), ("output_norm.weight", (4,), 0, 16),
           ("blk.0.attn_norm.weight", (4,), 0, 16), ("blk.0.attn_q.weight", (4, 4), 1, 32),
           ("blk.0.attn_k.weight", (4, 2), 30, 16), ("blk.0.ffn_gate.weight", (4, 2), 0, 32)]
gguf("llama", pairs, tensors)
# Found by a fuzzer: rows to put into another order, a trillion of them, of no number each.
gguf("empty_rows", pairs, tensors[:1] + [("blk.0.attn_q.weight", (0, 2 ** 40), 0, 0)])
bytes_of = ["<0x%02X>" % i for i in range(256)]
tokens = ["<unk>", "<s>", "</s>"] + bytes_of + ["\u2581a", "[PAD260]"]
lists = [("tokenizer.ggml.model", 8, text("llama")),
         ("tokenizer.ggml.tokens", 9, struct.pack("<IQ", 8, 261) + b"".join(map(text, tokens))),
         ("tokenizer.ggml.scores", 9, struct.pack("<IQ", 6, 261) + bytes(4 * 261)),
         ("tokenizer.ggml.token_type", 9, struct.pack("<IQ261i", 5, 261, 2, 3, 3, *[6] * 256, 1, 5))]
gguf("tokenizer", pairs + lists, [("token_embd.weight", (4, 261), 0, 4176)] + tensors[1:])
gguf("blocks", [("general.alignment", 4, u32(32)), ("x", 9, struct.pack("<IQ2d", 12, 2, 1, 2)),
                ("y", 7, b"\1"), ("z", 10, bytes(8))],
     [("q8", (32, 2), 8, 68), ("q4", (64,), 2, 36), ("i", (3,), 26, 12), ("scalar", (), 0, 4)])

state = collections.OrderedDict(a=torch.ones(2, 3), b=torch.nn.Parameter(torch.ones(3, 2).t().half()))
state["c"] = torch.tensor(True)
state["e"] = torch.arange(6).view(2, 3)[:, 1:]
state["d"] = {"f": torch.ones(1).bfloat16(), "lr": 0.5, "steps": [1, -70000, 2 ** 40], "n": None}
state._metadata = {"": {"version": 1}}
torch.save(state, HERE / "pytorch" / "state.pt")
torch.save({}, HERE / "pytorch" / "empty.pt")


class Hostile:
    def __reduce__(self):
        import os
        return os.system, ("true",)


torch.save({"x": Hostile()}, HERE / "pytorch" / "hostile.pt")


def nested(name, opening, closing, count=3000):
    """A pickle whose value holds itself so many deep, in a zip as torch.save writes it."""
    pickle = b"\x80\x02}X\x01\x00\x00\x00x" + opening * count + b"N" + closing * count + b"s."
    with zipfile.ZipFile(HERE / "pytorch" / name, "w") as file:
        for member, data in ("archive/data.pkl", pickle), ("archive/version", b"3\n"):
            file.writestr(zipfile.ZipInfo(member), data)


nested("dicts-in-dicts.pt", b"}X\x01\x00\x00\x00x", b"s")
nested("lists-in-lists.pt", b"]", b"a")

(HERE / "index" / "two-shards").write_text(json.dumps({
    "metadata": {"total_size": 12},
    "weight_map": {"a": "x-00001-of-00002.safetensors", "b": "x-00002-of-00002.safetensors"}}))
(HERE / "index" / "outside").write_text(json.dumps({"weight_map": {"a": "../x.safetensors"}}))

QUESTIONS = {"version": "1.1", "data": [{"title": "T", "paragraphs": [{
    "context": "A man plays the flute. The dog runs.",
    "qas": [{"id": "1", "question": "Who plays?", "answers": [
        {"text": "A man", "answer_start": 0}, {"text": "man", "answer_start": 2}]},
            {"id": "2", "question": "What runs?", "answers": [
                {"text": "The dog", "answer_start": 23}]}]}]}]}
DATA = {
    "sentences": "sThe dog runs.\nA man plays.\n\nThe fox.\nIt is quick.\n\nA.\n\nB.\n\nC.\n\nD.\n",
    "stream": "tThe dog runs.\n<|endoftext|>\nA man plays the flute.\n",
    "pairs": "pA dog.\nA man.\n\0Ein Hund.\nEin Mann.\n",
    "table": "lsentence\tlabel\nthe dog runs\t1\na man\t0\n",
    "columns": "lA plane.\tA bird.\tyes\nThe dog.\tA fox.\tno\n",
    "labels": 'm{"text": "the dog", "label": ["a", "b"]}\n{"text": "a man", "label": []}\n',
    "numbers": 'r{"sentence1": "A", "sentence2": "B", "score": 1.25}\n',
    "lines": "xA plane.\tA bird.\nA dog.\tA fox.\n",
    "questions": "q" + json.dumps(QUESTIONS),
    "words": "wA O\nman B-PER\n\nThe O\n",
    "conllu": "u# text = A man\n1\tA\ta\tDET\t_\t_\t2\tdet\t_\t_\n2-3\tman\t_\t_\t_\t_\t_\t_\t_\t_\n"
              "2\tman\tman\tNOUN\t_\t_\t0\troot\t_\t_\n\n",
    "corpus": "cThe dog runs.\nThe dog runs.\n\nA\u00e9 man \u4e2d\u6587\u3002\n",
}
for name, text in DATA.items():
    (HERE / "data" / name).write_bytes(text.encode())
for name, array in {"matrix": np.arange(6, dtype=np.float32).reshape(2, 3),
                    "fortran": np.asfortranarray(np.arange(4.0).reshape(2, 2)),
                    "scalar": np.array(3), "bools": np.array([True, False])}.items():
    with open(HERE / "data" / ("array-" + name), "wb") as file:
        file.write(b"n")
        np.save(file, array)
