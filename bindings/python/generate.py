#!/usr/bin/python3
"""Writes _api.py and _ops.py of the Python module from the library's public headers.

    public headers --cc -E--> declarations --+--> _api.py   structs, enumerations, prototypes for ctypes
      '---- contracts (comments) ------------'--> _ops.py   a Python function for each op

    python3 bindings/python/generate.py FOLDER

It needs a C preprocessor ($CC or cc) and Python alone; make runs it. The signature of an op follows
from its prototype by the rules of `Parameters` below; DEFAULTS says the rest.
"""
import collections
import ctypes
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

sys.dont_write_bytecode = True

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
HEAD = "# Written by generate.py from the public headers. Do not edit.\n"

# What the public headers include of the C library, as much as their declarations need.
STUBS = {
    "stdbool.h": "typedef _Bool bool;\n",
    "stddef.h": "typedef unsigned long size_t;\n#define NULL ((void *)0)\n",
    "stdint.h": "typedef signed char int8_t; typedef unsigned char uint8_t;\n"
                "typedef int int32_t; typedef unsigned int uint32_t; typedef short int16_t;\n"
                "typedef unsigned short uint16_t; typedef long int64_t;\n"
                "typedef unsigned long uint64_t;\n",
    "stdio.h": "typedef struct FILE FILE;\n",
    "signal.h": "typedef int sig_atomic_t;\n",
}

SIMPLE = {
    "int": "c_int", "unsigned int": "c_uint", "unsigned": "c_uint", "unsigned char": "c_ubyte", "long": "c_long",
    "char": "c_char", "float": "c_float", "double": "c_double", "bool": "c_bool",
    "_Bool": "c_bool", "size_t": "c_size_t", "int8_t": "c_int8", "uint8_t": "c_uint8",
    "int16_t": "c_int16", "uint16_t": "c_uint16", "int32_t": "c_int32", "uint32_t": "c_uint32",
    "int64_t": "c_int64", "uint64_t": "c_uint64", "sig_atomic_t": "c_int",
}


# ---- The headers ----

def preprocessed():
    with tempfile.TemporaryDirectory() as stubs:
        for name, text in STUBS.items():
            (pathlib.Path(stubs) / name).write_text(text)
        command = os.environ.get("CC", "cc").split() + [
            "-E", "-P", "-nostdinc", "-U__GNUC__", "-I", stubs, str(SOURCE / "wengert.h")]
        run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        sys.exit("generate.py: %s failed:\n%s" % (command[0], run.stderr))
    return run.stdout


def public_headers():
    """In the order in which wengert.h includes them."""
    text = (SOURCE / "wengert.h").read_text(encoding="utf-8")
    return re.findall(r'#include "(.*)"', text)


def contracts():
    """The comment before, or behind, each prototype, by the name of the function."""
    docs = {}
    for header in public_headers() + ["base/api.h"]:
        text = (SOURCE / header).read_text(encoding="utf-8")
        comment, since = "", 0
        for match in re.finditer(r"/\*(.*?)\*/|(?:WG_API|static inline) [^;]*?\b(wg_\w+)\([^;]*;(?: *\})?", text, re.S):
            if match.group(2):
                behind = re.match(r"[ \t]*/\*(.*?)\*/", text[match.end():], re.S)
                near = "\n\n" not in text[since:match.start()] or not comment
                docs[match.group(2)] = plain(behind.group(1) if behind else comment if near else "")
                since = match.end()
            elif re.match(r"[ \t]*\n", text[text.rfind("\n", 0, match.start()):match.start() + 1]) or \
                    text[text.rfind("\n", 0, match.start()) + 1:match.start()].strip() == "":
                comment, since = match.group(1), match.end()
    return docs


def plain(comment):
    """A contract as the text of a docstring: Python's names, and the errors in words."""
    lines = [re.sub(r"^[ \t]*\* ?", "", line) for line in comment.strip().split("\n")]
    text = "\n".join(line.rstrip() for line in lines).strip()
    text = re.sub(r"\s*\[scope\]", "", text)
    text = re.sub(r"\s*\[(?:scope; )?([^\[\]]*[A-Z]{4}[^\[\]]*)\]", errors, text)
    text = text.replace("\\", "\\\\").replace('"""', "'''")
    return re.sub(r"\bwg_(\w+?)(?:_op)?\b(?!\*)", r"\1", text)


def errors(match):
    return "\n\nErrors: %s." % " ".join(match.group(1).split())


# ---- Declarations: C as the public headers have it ----

Name = collections.namedtuple("Name", "name")  # wg_tensor, unsigned int
Pointer = collections.namedtuple("Pointer", "to const")
Array = collections.namedtuple("Array", "of size")
Function = collections.namedtuple("Function", "result parameters")  # without void and "..."
Struct = collections.namedtuple("Struct", "name members")  # members are None where it is only named
Enum = collections.namedtuple("Enum", "name values")
Declared = collections.namedtuple("Declared", "name type storage")

BASIC = set("void _Bool char short int long float double signed unsigned".split())
STORAGE = set("typedef extern static inline register _Noreturn".split())
QUALIFIERS = set("const volatile restrict".split())


class Reader:
    def __init__(self, text):
        self.tokens = re.findall(r"[A-Za-z_]\w*|\d\w*|\"(?:[^\"\\]|\\.)*\"|'(?:\\.|[^'])+'|\.\.\.|<<|>>|[^\s\w]",
                                 text) + [""]
        self.at, self.constants = 0, {}

    def next(self):
        return self.tokens[self.at]

    def take(self, token=None):
        if token is not None and self.next() != token:
            sys.exit("generate.py: %r where %r is expected, behind: %s" % (
                self.next(), token, " ".join(self.tokens[max(self.at - 20, 0):self.at])))
        self.at += 1
        return self.tokens[self.at - 1]

    def accept(self, token):
        if self.next() != token:
            return False
        self.at += 1
        return True

    def skip(self, opening, closing):
        """Skips text in brackets."""
        self.take(opening)
        depth = 1
        while depth:
            token = self.take()
            depth += (token == opening) - (token == closing)

    def declarations(self):
        while self.next():
            yield from self.declaration()

    def declaration(self):
        """Those up to a semicolon; of a function with its body, which is passed over."""
        storage, kind = self.specifiers()
        if self.accept(";"):
            yield Declared("", kind, storage)
            return
        while True:
            name, type_ = self.declarator(kind)
            yield Declared(name, type_, storage)
            if self.next() == "{":
                self.skip("{", "}")
                return
            if not self.accept(","):
                self.take(";")
                return

    def specifiers(self):
        storage, words, kind = set(), [], None
        while True:
            token = self.next()
            if token in STORAGE:
                storage.add(self.take())
            elif token in QUALIFIERS:
                self.take()
            elif token == "struct":
                kind = self.struct()
            elif token == "enum":
                kind = self.enum()
            elif token in BASIC or re.match("[A-Za-z_]", token) and not words and not kind:
                words.append(self.take())
            else:
                return storage, kind or Name(" ".join(words))

    def declarator(self, kind):
        """The name, or "", and the type."""
        while self.accept("*"):
            const = False
            while self.next() in QUALIFIERS:
                const = self.take() == "const" or const
            kind = Pointer(kind, const)
        if self.next() == "(" and self.tokens[self.at + 1] == "*":  # a pointer to a function
            inner = self.at + 1
            self.skip("(", ")")
            kind, end = self.suffixes(kind), self.at
            self.at = inner
            name, kind = self.declarator(kind)
            self.take(")")
            self.at = end
            return name, kind
        name = self.take() if re.match("[A-Za-z_]", self.next()) else ""
        return name, self.suffixes(kind)

    def suffixes(self, kind):
        if self.accept("["):
            size = None if self.next() == "]" else self.constant()
            self.take("]")
            return Array(self.suffixes(kind), size)
        if not self.accept("("):
            return kind
        parameters = []
        while not self.accept(")"):
            if not self.accept("..."):
                storage, base = self.specifiers()
                parameters.append(Declared(*self.declarator(base), storage))
            if self.next() != ")":
                self.take(",")
        if len(parameters) == 1 and parameters[0].type == Name("void"):
            parameters = []
        return Function(kind, parameters)

    def struct(self):
        self.take("struct")
        name = self.take() if self.next() != "{" else None
        members = None
        if self.accept("{"):
            members = []
            while not self.accept("}"):
                members += self.declaration()
        return Struct(name, members)

    def enum(self):
        self.take("enum")
        name, values, following = self.take() if self.next() != "{" else None, {}, 0
        if self.accept("{"):
            while not self.accept("}"):
                constant = self.take()
                if self.accept("="):
                    following = self.constant()
                values[constant] = self.constants[constant] = following
                following += 1
                self.accept(",")
        return Enum(name, values)

    def constant(self):
        """The value of an expression of integers."""
        words, depth = [], 0
        while depth or self.next() not in (",", "]", "}", ")"):
            token = self.take()
            depth += (token == "(") - (token == ")")
            words.append("//" if token == "/" else re.sub(r"(?<=\d)[uUlL]+$", "", token))
        return eval(" ".join(words), {"__builtins__": {}}, self.constants)


def type_name(kind):
    """The plain C type behind declarators: ("wg_tensor", number of pointers) or a function type."""
    pointers = 0
    while isinstance(kind, (Pointer, Array)):
        pointers += 1
        kind = kind.to if isinstance(kind, Pointer) else kind.of
    return (kind if isinstance(kind, Function) else kind.name), pointers


class Headers:
    def __init__(self):
        self.structs, self.enums, self.functions, self.callbacks = {}, {}, {}, {}
        self.aliases, self.order, self.elementwise = {}, [], {}
        for name, kind, storage in Reader(preprocessed()).declarations():
            if "typedef" in storage:
                self.typedef(name, kind)
            elif isinstance(kind, Function) and re.match("wg_(?!_)", name) and "static" not in storage:
                self.functions[name] = kind
            elif isinstance(kind, Function) and name.upper() in self.enums.get("wg_elementwise_op", {}):
                self.elementwise[name] = kind  # inline, upon wg_elementwise
            elif isinstance(kind, Struct):
                self.struct(kind.name, kind)
            elif isinstance(kind, Enum):
                self.enums.setdefault("constants", {}).update(kind.values)

    def typedef(self, name, kind):
        if isinstance(kind, Struct):
            self.struct(name, kind)
        elif isinstance(kind, Enum):
            self.enums[name] = kind.values
        elif isinstance(kind, Name):
            self.aliases[name] = kind.name.split()[-1]
        else:
            function, _ = type_name(kind)
            if isinstance(function, Function):
                self.callbacks[name] = function
                self.order.append(name)

    def struct(self, name, kind):
        if kind.members and name not in self.structs:
            self.structs[name] = kind.members
            self.order.append(name)

    # ---- As ctypes ----

    def simple(self, name):
        if name in SIMPLE:
            return SIMPLE[name]
        if name in self.aliases:
            return self.simple(self.aliases[name])
        return "c_int" if name in self.enums else None

    def parameters(self, function):
        return [self.ctype(p.type) for p in function.parameters]

    def prototype(self, function):
        return "CFUNCTYPE(%s)" % ", ".join([self.ctype(function.result)] + self.parameters(function))

    def ctype(self, kind, name=""):
        """The ctypes expression of a parameter, a result or a member."""
        if isinstance(kind, Array):
            return "%s * %d" % (self.ctype(kind.of), kind.size)
        if isinstance(kind, Struct) and kind.name is None:
            return 'type("%s", (Structure,), {"_fields_": [%s]})' % (name, ", ".join(
                '("%s", %s)' % (m.name, self.ctype(m.type)) for m in kind.members))
        name, pointers = type_name(kind)
        if not isinstance(name, str):
            return self.prototype(name)
        if name in self.callbacks and not pointers:
            return name
        if pointers == 1 and name == "char":
            return "c_char_p"
        if pointers:
            return "c_void_p"
        if name == "void":
            return "None"
        if name in self.aliases and not self.simple(name):
            return self.aliases[name]
        return self.simple(name) or name


def write_api(headers):
    out = [HEAD, '"""Structs, enumerations and prototypes of libwengert, for ctypes."""\n',
           "@imports@\n"]
    version = re.search(r'WG_VERSION "(.*)"', (SOURCE / "base/api.h").read_text(encoding="utf-8")).group(1)
    out.append('VERSION = "%s"\n' % version)
    out.append("# ---- Enumerations ----\n")
    for name, values in headers.enums.items():
        out.append("%s = {" % name)
        out += ['    "%s": %d,' % item for item in values.items()]
        out.append("}\n")
    out.append("\n# ---- Structs and callbacks ----\n")
    opaque_members = ("wg_op_library",)
    for name in headers.order:
        if name in headers.callbacks:
            out.append("%s = %s\n" % (name, headers.prototype(headers.callbacks[name])))
        elif name not in opaque_members:
            out.append("\nclass %s(Structure):" % name)
            out.append("    _fields_ = [")
            out += ['        ("%s", %s),' % (m.name, headers.ctype(m.type, m.name))
                    for m in headers.structs[name]]
            out.append("    ]\n")
    out.append("\n# ---- Prototypes: result and parameters ----\n\nFUNCTIONS = {")
    for name, function in sorted(headers.functions.items()):
        out.append('    "%s": (%s, [%s]),' % (name, headers.ctype(function.result),
                                              ", ".join(headers.parameters(function))))
    out.append("}\n\n# Inline functions: the operation of wg_elementwise, and how many operands it has.\nELEMENTWISE = {")
    for name, function in sorted(headers.elementwise.items()):
        out.append('    "%s": ["%s", %d],' % (name, name.upper(), len(function.parameters)))
    out.append("}\n")
    text = "\n".join(out)
    used = sorted(set(re.findall(r"\b(?:c_[a-z0-9_]+|CFUNCTYPE|Structure)\b", text)) & set(dir(ctypes)))
    return text.replace("@imports@", textwrap.fill("from ctypes import (%s)" % ", ".join(used), 79,
                                                   subsequent_indent=" " * 20))


# ---- Ops: Python functions from prototypes ----

# Of these headers, but for what only C needs or what _tensor.py and _families.py write by hand.
OP_HEADERS = ["tensor/tensor.h", "tensor/ops.h"]
BY_HAND = set("""wg_alias wg_arange wg_empty wg_from_array wg_from_blob wg_scalar wg_keep wg_select
    wg_scope_end wg_scope_escape wg__quantized_linears wg_index wg_index_put wg_einsum
    wg_conv_op wg_conv_transpose_op wg_max_pool wg_avg_pool wg_adaptive_max_pool wg_adaptive_avg_pool
    wg_fft wg_ifft wg_rfft wg_irfft""".split())

# Defaults, of one op or ("*") of all. PyTorch's or NumPy's, where they have one.
DEFAULTS = {
    "*": {"keepdim": "False", "reduction": '"mean"', "ignore_index": "-100", "bias": "None",
          "linear_bias": "None", "weights": "None", "min_length": "0", "generator": "None",
          "descending": "False", "largest": "True", "right": "False", "correction": "1",
          "align_corners": "False", "log_target": "False", "replacement": "False"},
    "wg_leaky_relu": {"slope": "0.01"}, "wg_elu": {"alpha": "1.0"},
    "wg_softplus": {"beta": "1.0", "threshold": "20.0"},
    "wg_clamp": {"low": "-_inf", "high": "_inf"},
    "wg_nan_to_num": {"nan": "0.0", "posinf": "_largest", "neginf": "-_largest"},
    "wg_addcmul": {"value": "1.0"}, "wg_addcdiv": {"value": "1.0"},
    "wg_addmm": {"beta": "1.0", "alpha": "1.0"},
    "wg_flatten": {"first_axis": "0", "last_axis": "-1"},
    "wg_slice": {"start": "0", "stop": "END", "step": "1"},
    "wg_diagonal": {"offset": "0", "axis_a": "0", "axis_b": "1"},
    "wg_diag_embed": {"offset": "0", "axis_a": "-2", "axis_b": "-1"},
    "wg_tril": {"diagonal": "0"}, "wg_triu": {"diagonal": "0"}, "wg_tri": {"diagonal": "0"},
    "wg_pad": {"mode": '"constant"', "value": "0.0"}, "wg_interpolate": {"mode": '"nearest"'},
    "wg_norm": {"p": "2.0"}, "wg_softmax": {"axis": "-1"}, "wg_log_softmax": {"axis": "-1"},
    "wg_layer_norm_op": {"weight": "None", "bias": "None", "eps": "1e-5"},
    "wg_batch_norm_op": {"weight": "None", "bias": "None", "eps": "1e-5"},
    "wg_normalize_channels": {"weight": "None", "bias": "None", "eps": "1e-5"},
    "wg_rms_norm_op": {"weight": "None", "eps": "1e-6", "eps_outside": "False"},
    "wg_embedding_op": {"padding_index": "-1"}, "wg_cosine_similarity": {"axis": "1", "eps": "1e-8"},
    "wg_sort": {"axis": "-1"}, "wg_argsort": {"axis": "-1"}, "wg_topk": {"axis": "-1"},
    "wg_linear_scan": {"initial": "None"},
    "wg_quantile": {"axis": "-1", "interpolation": '"linear"'},
    "wg_nanquantile": {"axis": "-1", "interpolation": '"linear"'},
    "wg_histc": {"bins": "100", "low": "0.0", "high": "0.0"}, "wg_histogram": {"density": "False"},
    "wg_segment_reduce": {"empty": "0.0"}, "wg_unsorted_segment_reduce": {"empty": "0.0"},
    "wg_cdist": {"p": "2.0"},
    "wg_fft_conv1d": {"padding": "0"}, 
    "wg_median": {"axis": "-1"}, "wg_smooth_l1_loss": {"beta": "1.0"},
    "wg_bce_with_logits": {"weight": "None", "pos_weight": "None"},
    "wg_attention": {"mask": "None"}, "wg_rotary": {"pairing": '"halves"'},
    "wg_roll": {"axes": "None"}, "wg_cat": {"axis": "0"}, "wg_stack": {"axis": "0"},
    "wg_normal": {"mean": "0.0", "std": "1.0"}, "wg_logspace": {"base": "10.0"},
    "wg_solve": {"from_right": "False"}, "wg_qr": {"complete": "False"}, "wg_pinv": {"rtol": "0.0"},
    "wg_solve_triangular": {"unit": "False", "from_right": "False"},
    "wg_cholesky": {"upper": "False"}, "wg_svd": {"full_matrices": "False"},
    "wg_matrix_norm": {"order": '"fro"'},
    "wg_trunc_normal": {"mean": "0.0", "std": "1.0", "low": "-2.0", "high": "2.0"},
}
RENAMED = {"from": "source", "to": "destination", "axis_count": None, "index": "index"}
COUNTS = ("count", "ndim", "axis_count")
PAIRS = ("wg_pad",)  # the list holds two numbers for each one that is counted


class Parameters:
    """The Python side of a prototype:

        wg_tensor *x                              a Tensor, or what tensor() makes one of
        int count, const int64_t *list ...        a tuple of ints (or one); of axes None means all
        int count, wg_tensor *const *tensors      a sequence of Tensors
        wg_X_options *options                     keyword arguments
        wg_dtype, enumerations                    texts: "f32", "mean"
        wg_dtype first, wg_generator              moved to the end: dtype="f32", generator=None
        wg_tensor **values                        a result, one of a tuple
        wg_tensor **indices of a Tensor's op      a result if return_indices
    """

    def __init__(self, headers, name, function):
        self.headers, self.name, self.function = headers, name, function
        self.signature, self.last, self.before, self.call, self.after = [], [], [], [], []
        self.outputs, self.output_count, self.has_options = [], None, False
        nodes = function.parameters
        self.gives_tensor = type_name(function.result) == ("wg_tensor", 1)
        i = 0
        while i < len(nodes):
            i += self.take(nodes, i)

    def default(self, name):
        return DEFAULTS.get(self.name, {}).get(name, DEFAULTS["*"].get(name))

    def add(self, name, default=None, last=False):
        default = default if default is not None else self.default(name)
        item = name if default is None else "%s=%s" % (name, default)
        (self.last if last else self.signature).append(item)
        return name

    def take(self, nodes, i):
        node = nodes[i]
        name, (kind, pointers) = node.name, type_name(node.type)
        name = RENAMED.get(name, name) or name
        following = nodes[i + 1:i + 4]
        if kind == "int" and node.name in COUNTS and not pointers and any(
                is_list(n) for n in following[:1]):
            return self.lists(nodes, i)
        if kind == "wg_tensor" and pointers == 1:
            self.add(name)
            optional = self.default(name) == "None"
            self.call.append(("_maybe(%s)" if optional else "_tensor(%s)") % name)
        elif kind == "wg_tensor" and pointers == 2:
            self.output(name)
        elif kind == "wg_dtype" and not pointers:
            first = i == 0 or (i == 1 and type_name(nodes[0].type)[0] == "wg_generator")
            self.add("dtype", '"f32"' if first else None, last=first)
            self.call.append("_dtype(dtype)")
        elif kind == "wg_generator":
            self.add("generator", last=True)
            self.call.append("_generator(generator)")
        elif kind.endswith("_options"):
            self.has_options = True
            self.call.append("_options(_api.%s, options)" % kind)
        elif kind in self.headers.enums:
            self.add(name)
            self.call.append('_enum(_api.%s, %s)' % (kind, name))
        else:
            self.add(name)
            self.call.append(name)
            if kind == "int" and name == "count":
                self.output_count = "count"
        return 1

    def lists(self, nodes, i):
        """A count and the lists that it counts; parts that are results are one of them."""
        taken, count = 1, "_count"
        for node in nodes[i + 1:]:
            if not is_list(node) and not (self.name == "wg_chunk"):
                break
            if type_name(node.type) == ("wg_tensor", 2) and not node.type.to.const:
                break
            name = RENAMED.get(node.name, node.name) or node.name
            if type_name(node.type)[0] == "wg_tensor":
                self.add(name)
                self.before.append("%s = _tensors(%s)" % (name, name))
                size = "len(%s)" % name
            elif nodes[i].name == "axis_count" and node.name == "axes":
                name = "axis"
                self.add(name, "None")
                self.before.append("axis = _axes(axis)")
                size = "len(axis) if axis is not None else 0"
            elif self.name in PAIRS:
                self.add(name)
                self.before.append("%s = _pairs(%s)" % (name, name))
                size = "len(%s) // 2" % name
            else:
                self.add(name)
                self.before.append("%s = _integers(%s)" % (name, name))
                size = "len(%s)" % name
            if taken == 1:
                self.before.append("%s = %s" % (count, size))
                self.call.append(count)
            elif name != "axes" or self.name != "wg_roll":
                self.before.append("_same_length(%s, %s)" % (count, name))
            self.call.append(name)
            self.output_count = count
            taken += 1
        if taken == 1:  # a count of results alone
            self.add(nodes[i].name)
            self.call.append(nodes[i].name)
            self.output_count = nodes[i].name
        return taken

    def output(self, name):
        self.outputs.append(name)
        if name in ("parts", "outputs"):
            self.before.append("_%s = (_c_void_p * (%s or 1))()" % (name, self.output_count))
            self.call.append("_%s" % name)
        else:
            self.before.append("_%s = _c_void_p()" % name)
            self.call.append("_byref(_%s)" % name)
            if self.gives_tensor:
                self.last.append("return_%s=False" % name)

    def text(self, doc):
        name = python_name(self.name)
        required = [s for s in self.signature if "=" not in s]
        with_default = [s for s in self.signature if "=" in s]
        if [s for s in self.signature[:len(required)] if "=" in s]:
            self.signature = required + with_default  # what is required comes first
        self.last.sort(key=lambda item: item.startswith("generator"))  # the dtype comes first
        signature = self.signature + self.last + (["**options"] if self.has_options else [])
        lines = ["def %s(%s):" % (name, ", ".join(signature))]
        lines += ['    """%s"""' % doc.replace("\n", "\n    ").replace("\n    \n", "\n\n")]
        lines += ["    " + line for line in self.before]
        call = ", ".join(["_lib.%s" % self.name] + self.call)
        if self.gives_tensor and self.outputs:
            lines.append("    return _with_extra(return_%s, _%s, %s)" % (
                self.outputs[0], self.outputs[0], call))
        elif self.gives_tensor:
            lines.append("    return _one(%s)" % call)
        elif self.outputs and self.outputs[0] in ("parts", "outputs"):
            lines.append("    return _many(_%s, %s, %s)" % (self.outputs[0], self.output_count,
                                                             call))
        elif self.outputs:
            lines.append("    return _several((%s,), %s)" % (
                ", ".join("_" + o for o in self.outputs), call))
        else:
            function, arguments = call.split(", ", 1)
            lines.append("    _check(%s(%s))" % (function, arguments))
        return "\n".join(lines) + "\n"


def is_list(node):
    kind, pointers = type_name(node.type)
    return (kind == "int64_t" and pointers == 1) or (kind == "wg_tensor" and pointers == 2)


def python_name(name):
    name = re.sub(r"^wg_", "", re.sub(r"_op$", "", name))
    return {"slice": "slice_", "all": "all", "print": "print_"}.get(name, name)


def op_functions(headers):
    """The functions of the op headers that give tensors, or write one in place."""
    for header in OP_HEADERS:
        text = (SOURCE / header).read_text(encoding="utf-8")
        for name in re.findall(r"(?:WG_API|static inline) [^;(]*?\b(wg_\w+)\(", text):
            function = headers.functions.get(name) or headers.elementwise[name]
            gives = type_name(function.result) == ("wg_tensor", 1) or any(
                type_name(p.type) == ("wg_tensor", 2) and not p.type.to.const
                for p in function.parameters)
            in_place = re.search(r"_$", name)
            if name not in BY_HAND and (gives or in_place):
                yield name, function


def write_ops(headers):
    docs = contracts()
    out = [HEAD, '"""Every op and constructor of tensors, with its contract."""',
           "from . import _api",
           "from ._call import (_axes, _byref, _c_void_p, _check, _dtype, _enum, _generator, _inf, _integers,",
           "                    _largest, _lib, _maybe, _one, _options, _pairs, _many,",
           "                    _same_length, _several, _tensor, _tensors, _with_extra,",
           "                    END)",
           "from ._tensor import select\n"]
    names, methods = [], []
    for name, function in op_functions(headers):
        parameters = Parameters(headers, name, function)
        out.append("\n" + parameters.text(docs.get(name) or name))
        names.append(python_name(name))
        if type_name(function.parameters[0].type) == ("wg_tensor", 1):
            methods.append(python_name(name))
    out.append("\n# Those whose first operand is a tensor: they are methods, too.")
    out.append("METHODS = [")
    out += ["    %s," % name for name in methods]
    out.append("]\n\n__all__ = [")
    out += ['    "%s",' % name for name in names]
    out.append("]\n")
    return "\n".join(out)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: generate.py FOLDER")
    headers = Headers()
    for name, text in (("_api.py", write_api(headers)), ("_ops.py", write_ops(headers))):
        (pathlib.Path(sys.argv[1]) / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
