"""Reads a GGUF file by its published description, with nothing but the struct module, and holds it
against llama2.c's version 0 file of the same LLaMA: every f32 tensor bit for bit.

    python3 tests/cli/gguf_check.py MODEL.gguf MODEL.bin [TOKENIZER.bin]
"""
import struct
import sys

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


class Reader:
    def __init__(self, path):
        self.data, self.at = open(path, "rb").read(), 0

    def take(self, code):
        value = struct.unpack_from("<" + code, self.data, self.at)[0]
        self.at += struct.calcsize("<" + code)
        return value

    def text(self):
        count = self.take("Q")
        self.at += count
        return self.data[self.at - count:self.at].decode("utf-8")

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            kind, count = self.take("I"), self.take("Q")
            return [self.value(kind) for _ in range(count)]
        return self.take(SCALARS[kind])


def read_gguf(path):
    r = Reader(path)
    assert r.data[:4] == b"GGUF"
    r.at = 4
    assert r.take("I") == 3
    tensors, keys = r.take("Q"), r.take("Q")
    metadata = {}
    for _ in range(keys):
        key = r.text()
        assert key not in metadata
        metadata[key] = r.value(r.take("I"))
    infos = {}
    for _ in range(tensors):
        name = r.text()
        sizes = [r.take("Q") for _ in range(r.take("I"))]
        infos[name] = (sizes, r.take("I"), r.take("Q"))
    start = -(-r.at // 32) * 32
    return metadata, infos, r.data, start


def main():
    metadata, infos, data, start = read_gguf(sys.argv[1])
    model = open(sys.argv[2], "rb").read()
    dim, hidden, layers, heads, kv_heads, vocab, positions = struct.unpack_from("<7i", model)
    want = {"general.architecture": "llama", "llama.embedding_length": dim,
            "llama.feed_forward_length": hidden, "llama.block_count": layers,
            "llama.attention.head_count": heads, "llama.attention.head_count_kv": kv_heads,
            "llama.context_length": positions, "llama.rope.dimension_count": dim // heads,
            "llama.rope.freq_base": 10000.0,
            "llama.attention.layer_norm_rms_epsilon": struct.unpack("f", struct.pack("f", 1e-5))[0],
            "general.file_type": 0, "tokenizer.ggml.bos_token_id": 1,
            "tokenizer.ggml.eos_token_id": 2}
    for key, value in want.items():
        assert metadata[key] == value, (key, metadata[key], value)
    keys, at, seen = dim * kv_heads // heads, 28, set()
    parts = [("token_embd", None, [dim, abs(vocab)]), ("attn_norm", layers, [dim]),
             ("attn_q", layers, [dim, dim]), ("attn_k", layers, [dim, keys]),
             ("attn_v", layers, [dim, keys]), ("attn_output", layers, [dim, dim]),
             ("ffn_norm", layers, [dim]), ("ffn_gate", layers, [dim, hidden]),
             ("ffn_down", layers, [hidden, dim]), ("ffn_up", layers, [dim, hidden]),
             ("output_norm", None, [dim])]
    for part, count, sizes in parts:
        for i in range(count or 1):
            name = ("blk.%d.%s.weight" % (i, part)) if count else part + ".weight"
            size = 4
            for n in sizes:
                size *= n
            assert infos[name][:2] == (sizes, 0), (name, infos[name])
            offset = infos[name][2]
            assert offset % 32 == 0
            found = data[start + offset:start + offset + size]
            assert len(found) == size and found == model[at:at + size], name
            at += size
            seen.add(name)
    assert seen == set(infos), set(infos) - seen
    print("%d tensors, %d bytes: bit-equal; %d keys right" % (len(seen), at - 28, len(want)))
    if len(sys.argv) > 3:
        check_tokenizer(metadata, open(sys.argv[3], "rb").read())


def check_tokenizer(metadata, data):
    tokens, scores = metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.scores"]
    types = metadata["tokenizer.ggml.token_type"]
    assert metadata["tokenizer.ggml.model"] == "llama"
    assert types == [2, 3, 3] + [6] * 256 + [1] * (len(tokens) - 259)
    at, i = 4, 0
    while at < len(data):
        score, length = struct.unpack_from("<fi", data, at)
        text = data[at + 8:at + 8 + length].decode("utf-8").strip("\n" if i < 3 else "")
        if i >= 259:
            text = text.replace(" ", "\u2581")
        assert tokens[i] == text and scores[i] == score, (i, tokens[i], text)
        at += 8 + length
        i += 1
    assert i == len(tokens)
    print("%d tokens with scores and types: equal" % i)


main()
