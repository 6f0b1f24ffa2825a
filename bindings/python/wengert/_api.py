# Written by generate.py from the public headers: make -C build update-python. Do not edit.

"""Structs, enumerations and prototypes of libwengert, for ctypes."""

from ctypes import (CFUNCTYPE, Structure, c_bool, c_char, c_char_p, c_double,
                    c_int, c_int32, c_int64, c_size_t, c_uint, c_uint32,
                    c_uint64, c_void_p)

VERSION = "0.1.0"

# ---- Enumerations ----

wg_dtype = {
    "WG_F32": 0,
    "WG_F64": 1,
    "WG_BF16": 2,
    "WG_I32": 3,
    "WG_I64": 4,
    "WG_U8": 5,
    "WG_BOOL": 6,
    "WG_DTYPE_COUNT": 7,
}

wg_error_code = {
    "WG_ERROR_NONE": 0,
    "WG_ERROR_SHAPE": 1,
    "WG_ERROR_DTYPE": 2,
    "WG_ERROR_INDEX": 3,
    "WG_ERROR_ARGUMENT": 4,
    "WG_ERROR_MEMORY": 5,
    "WG_ERROR_GRADIENT": 6,
    "WG_ERROR_NOT_FOUND": 7,
    "WG_ERROR_IO": 8,
    "WG_ERROR_FORMAT": 9,
    "WG_ERROR_STATE": 10,
    "WG_ERROR_ANOMALY": 11,
}

wg_group_element = {
    "WG_GROUP_F32": 0,
    "WG_GROUP_F64": 1,
    "WG_GROUP_I64": 2,
}

wg_undefined = {
    "WG_AT_ZERO": 1,
    "WG_AT_TIES": 2,
    "WG_AT_LARGE": 4,
}

wg_quantization = {
    "WG_QUANTIZATION_BF16": 0,
    "WG_QUANTIZATION_Q8_0": 1,
    "WG_QUANTIZATION_Q4_0": 2,
    "WG_QUANTIZATION_Q8_0X16": 3,
    "WG_QUANTIZATION_Q4_0X16": 4,
    "WG_QUANTIZATION_COUNT": 5,
}

wg_pad_mode = {
    "WG_PAD_CONSTANT": 0,
    "WG_PAD_REFLECT": 1,
    "WG_PAD_REPLICATE": 2,
    "WG_PAD_CIRCULAR": 3,
}

wg_quantile_interpolation = {
    "WG_QUANTILE_LINEAR": 0,
    "WG_QUANTILE_LOWER": 1,
    "WG_QUANTILE_HIGHER": 2,
    "WG_QUANTILE_MIDPOINT": 3,
    "WG_QUANTILE_NEAREST": 4,
}

wg_segment_reduction = {
    "WG_SEGMENT_SUM": 0,
    "WG_SEGMENT_MEAN": 1,
    "WG_SEGMENT_MAX": 2,
    "WG_SEGMENT_MIN": 3,
}

wg_matrix_norm_order = {
    "WG_MATRIX_NORM_FRO": 0,
    "WG_MATRIX_NORM_NUC": 1,
    "WG_MATRIX_NORM_2": 2,
    "WG_MATRIX_NORM_MINUS_2": 3,
    "WG_MATRIX_NORM_1": 4,
    "WG_MATRIX_NORM_MINUS_1": 5,
    "WG_MATRIX_NORM_INF": 6,
    "WG_MATRIX_NORM_MINUS_INF": 7,
}

wg_fft_norm = {
    "WG_FFT_BACKWARD": 0,
    "WG_FFT_ORTHO": 1,
    "WG_FFT_FORWARD": 2,
}

wg_interpolation = {
    "WG_INTERPOLATE_NEAREST": 0,
    "WG_INTERPOLATE_LINEAR": 1,
}

wg_rotary_pairing = {
    "WG_ROTARY_HALVES": 0,
    "WG_ROTARY_ADJACENT": 1,
}

wg_reduction = {
    "WG_REDUCTION_MEAN": 0,
    "WG_REDUCTION_SUM": 1,
    "WG_REDUCTION_NONE": 2,
}

wg_profile_kind = {
    "WG_PROFILE_FORWARD": 0,
    "WG_PROFILE_BACKWARD": 1,
    "WG_PROFILE_REGION": 2,
}

constants = {
    "WG_PROFILE_SHAPES": 96,
    "WG_LOSS_PARTS": 2,
    "WG_EVALUATES_BY_DOCUMENT": 1,
    "WG_EVALUATES_PREDICTIONS": 2,
    "WG_EVALUATES_TRANSLATIONS": 4,
    "WG_FILLS_BY_RANK": 1,
    "WG_FILLS_BY_BEAM": 2,
    "WG_FILLS_BY_DRAWING": 4,
}

wg_init_kind = {
    "WG_INIT_DEFAULT": 0,
    "WG_INIT_ZEROS": 1,
    "WG_INIT_ONES": 2,
    "WG_INIT_UNIFORM": 3,
    "WG_INIT_NORMAL": 4,
    "WG_INIT_TRUNCATED_NORMAL": 5,
    "WG_INIT_XAVIER_UNIFORM": 6,
    "WG_INIT_XAVIER_NORMAL": 7,
    "WG_INIT_KAIMING_UNIFORM": 8,
    "WG_INIT_KAIMING_NORMAL": 9,
}

wg_slot_kind = {
    "WG_SLOT_PARAMETER": 0,
    "WG_SLOT_BUFFER": 1,
}

wg_diagnosis = {
    "WG_DIAGNOSIS_NONE": 0,
    "WG_DIAGNOSIS_FAILED": 1,
    "WG_DIAGNOSIS_BACKWARD_FAILED": 2,
    "WG_DIAGNOSIS_NOTHING_COMPARED": 3,
    "WG_DIAGNOSIS_ALL_ZERO": 4,
    "WG_DIAGNOSIS_NOT_ZERO": 5,
    "WG_DIAGNOSIS_FACTOR": 6,
    "WG_DIAGNOSIS_SMALL_FACTOR": 7,
    "WG_DIAGNOSIS_SIGN": 8,
    "WG_DIAGNOSIS_TRANSPOSED": 9,
    "WG_DIAGNOSIS_UNSUMMED": 10,
    "WG_DIAGNOSIS_EXCHANGED": 11,
    "WG_DIAGNOSIS_MISSING": 12,
    "WG_DIAGNOSIS_DETACHED": 13,
    "WG_DIAGNOSIS_ZERO": 14,
    "WG_DIAGNOSIS_CONSTANT": 15,
    "WG_DIAGNOSIS_IGNORES_COTANGENT": 16,
    "WG_DIAGNOSIS_IGNORES_INPUTS": 17,
    "WG_DIAGNOSIS_NOT_FINITE": 18,
    "WG_DIAGNOSIS_LOCAL": 19,
    "WG_DIAGNOSIS_WRONG": 20,
    "WG_DIAGNOSIS_KINK": 21,
    "WG_DIAGNOSIS_JUMP": 22,
    "WG_DIAGNOSIS_STALE": 23,
    "WG_DIAGNOSIS_REMEMBERED": 24,
    "WG_DIAGNOSIS_INPUT_MODIFIED": 25,
    "WG_DIAGNOSIS_COTANGENT_MODIFIED": 26,
    "WG_DIAGNOSIS_NONDETERMINISTIC": 27,
    "WG_DIAGNOSIS_THREADS": 28,
    "WG_DIAGNOSIS_WRONG_DTYPE": 29,
    "WG_DIAGNOSIS_WRONG_SHAPE": 30,
    "WG_DIAGNOSIS_WANTS_IGNORED": 31,
    "WG_DIAGNOSIS_ACCUMULATION": 32,
    "WG_DIAGNOSIS_COTANGENTS": 33,
    "WG_DIAGNOSIS_LAYOUT": 34,
    "WG_DIAGNOSIS_RECORDED": 35,
    "WG_DIAGNOSIS_CUT": 36,
    "WG_DIAGNOSIS_FORWARD_MODE": 37,
    "WG_DIAGNOSIS_JVP": 38,
    "WG_DIAGNOSIS_DECOMPOSITION": 39,
    "WG_DIAGNOSIS_F32": 40,
    "WG_DIAGNOSIS_AT_ZERO": 41,
    "WG_DIAGNOSIS_AT_NEGATIVE_ZERO": 42,
    "WG_DIAGNOSIS_AT_TIES": 43,
    "WG_DIAGNOSIS_AT_TINY": 44,
    "WG_DIAGNOSIS_AT_LARGE": 45,
    "WG_DIAGNOSIS_TAIL": 46,
    "WG_DIAGNOSIS_LONG": 47,
    "WG_DIAGNOSIS_ALIVE": 48,
}

wg_activation = {
    "WG_ACTIVATION_GELU": 0,
    "WG_ACTIVATION_GELU_TANH": 1,
    "WG_ACTIVATION_RELU": 2,
    "WG_ACTIVATION_TANH": 3,
    "WG_ACTIVATION_SIGMOID": 4,
    "WG_ACTIVATION_SILU": 5,
    "WG_ACTIVATION_MISH": 6,
    "WG_ACTIVATION_LEAKY_RELU": 7,
    "WG_ACTIVATION_ELU": 8,
    "WG_ACTIVATION_SOFTPLUS": 9,
    "WG_ACTIVATION_LOG_SIGMOID": 10,
    "WG_ACTIVATION_HARDSIGMOID": 11,
    "WG_ACTIVATION_HARDSWISH": 12,
}

wg_gate = {
    "WG_GATE_SWIGLU": 0,
    "WG_GATE_GLU": 1,
    "WG_GATE_REGLU": 2,
    "WG_GATE_GEGLU": 3,
    "WG_GATE_GEGLU_TANH": 4,
    "WG_GATE_BILINEAR": 5,
}

wg_schedule_kind = {
    "WG_SCHEDULE_LINEAR": 0,
    "WG_SCHEDULE_CONSTANT": 1,
    "WG_SCHEDULE_COSINE": 2,
    "WG_SCHEDULE_WSD": 3,
    "WG_SCHEDULE_NOAM": 4,
    "WG_SCHEDULE_INVERSE_SQRT": 5,
    "WG_SCHEDULE_OWN": 6,
}

wg_setting_kind = {
    "WG_SETTING_INTEGER": 0,
    "WG_SETTING_NUMBER": 1,
    "WG_SETTING_FLAG": 2,
    "WG_SETTING_CHOICE": 3,
    "WG_SETTING_TOKEN": 4,
    "WG_SETTING_TEXT": 5,
    "WG_SETTING_FILE": 6,
    "WG_SETTING_FILES": 7,
    "WG_SETTING_NUMBERS": 8,
    "WG_SETTING_PAIRS": 9,
    "WG_SETTING_ONLY": 10,
}

wg_weights_type = {
    "WG_WEIGHTS_KEEP": 0,
    "WG_WEIGHTS_F32": 1,
    "WG_WEIGHTS_F16": 2,
    "WG_WEIGHTS_BF16": 3,
    "WG_WEIGHTS_Q8_0": 4,
}

wg_special_token = {
    "WG_TOKEN_PAD": 0,
    "WG_TOKEN_UNKNOWN": 1,
    "WG_TOKEN_CLASS": 2,
    "WG_TOKEN_SEPARATOR": 3,
    "WG_TOKEN_MASK": 4,
    "WG_TOKEN_BEGIN": 5,
    "WG_TOKEN_END": 6,
    "WG_TOKEN_SPECIAL_COUNT": 7,
}

wg_corpus_fault = {
    "WG_CORPUS_INVALID": 0,
    "WG_CORPUS_BOM": 1,
    "WG_CORPUS_CRLF": 2,
    "WG_CORPUS_NUL": 3,
    "WG_CORPUS_REPLACEMENT": 4,
    "WG_CORPUS_CONTROL": 5,
    "WG_CORPUS_FAULT_COUNT": 6,
}

wg_dataset_kind = {
    "WG_TEXT_SENTENCES": 0,
    "WG_TEXT_STREAM": 1,
    "WG_TEXT_PAIRS": 2,
}

wg_sentence_format = {
    "WG_SENTENCES_DETECT": 0,
    "WG_SENTENCES_PLAIN": 1,
    "WG_SENTENCES_BY_LINE": 2,
}

wg_side = {
    "WG_SOURCE": 0,
    "WG_TARGET": 1,
}

wg_model_shape = {
    "WG_ENCODER": 1,
    "WG_DECODER": 2,
    "WG_PREFIX_DECODER": 4,
    "WG_ENCODER_DECODER": 8,
}

wg_generation_end = {
    "WG_END_STOP": 0,
    "WG_END_LENGTH": 1,
    "WG_END_POSITIONS": 2,
    "WG_END_CANCELLED": 3,
}

wg_pooling = {
    "WG_POOLING_CLS": 0,
    "WG_POOLING_MEAN": 1,
}

wg_t5_feed_forward = {
    "WG_T5_RELU": 0,
    "WG_T5_GATED_GELU": 1,
}

wg__history_join = {
    "WG__HISTORY_MEAN": 0,
    "WG__HISTORY_LATER": 1,
}

wg_train_outcome = {
    "WG_TRAIN_FINISHED": 0,
    "WG_TRAIN_INTERRUPTED": 1,
    "WG_TRAIN_OUT_OF_PATIENCE": 2,
}

wg_text_pooling = {
    "WG_POOL_MEAN": 0,
    "WG_POOL_TOKEN": 1,
}

wg_mask_unit = {
    "WG_MASK_TOKENS": 0,
    "WG_MASK_WORDS": 1,
    "WG_MASK_SPANS": 2,
}


# ---- Structs and callbacks ----


class wg_alloc_stats(Structure):
    _fields_ = [
        ("live_blocks", c_int64),
        ("live_bytes", c_int64),
        ("peak_bytes", c_int64),
        ("cached_bytes", c_int64),
        ("system_allocations", c_int64),
    ]


class wg_generator(Structure):
    _fields_ = [
        ("seed", c_uint64),
        ("offset", c_uint64),
    ]


class wg_error(Structure):
    _fields_ = [
        ("code", c_int),
        ("where", c_char * 64),
        ("message", c_char * 1024),
    ]

wg_error_handler = CFUNCTYPE(None, c_void_p, c_void_p)


class wg_error_place(Structure):
    _fields_ = [
        ("write", CFUNCTYPE(None, c_void_p, c_char_p, c_size_t)),
        ("of", c_void_p),
        ("outer", c_void_p),
    ]


class wg_spec(Structure):
    _fields_ = [
        ("dtype", c_int),
        ("ndim", c_int),
        ("shape", c_int64 * 8),
    ]


class wg_scope(Structure):
    _fields_ = [
        ("outer", c_void_p),
        ("first", c_void_p),
    ]


class wg_kernels(Structure):
    _fields_ = [
        ("vectors", c_char_p),
        ("bf16", c_char_p),
        ("blocks", c_char_p),
        ("blis", c_char_p),
        ("blis_family", c_char_p),
        ("tiles", c_char_p),
        ("lapack", c_char_p),
        ("lapack_file", c_char_p),
        ("lapack_at_once", c_bool),
    ]


class wg_call(Structure):
    _fields_ = [
        ("op", c_void_p),
        ("options", c_void_p),
        ("input_count", c_int),
        ("inputs", c_void_p),
        ("input_specs", c_void_p),
        ("output_count", c_int),
        ("output_specs", wg_spec * 4),
        ("outputs", c_void_p * 4),
        ("saved", c_void_p * 4),
        ("wants", c_uint32),
        ("create_graph", c_bool),
        ("last_use", c_bool),
    ]


class wg_sample(Structure):
    _fields_ = [
        ("input_count", c_int),
        ("inputs", c_void_p * 8),
        ("options", c_void_p),
    ]


class wg_op(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("doc", c_char_p),
        ("min_inputs", c_int),
        ("max_inputs", c_int),
        ("output_count", c_int),
        ("options_size", c_size_t),
        ("saves_inputs", c_uint32),
        ("saves_outputs", c_uint32),
        ("saves_rounded", c_uint32),
        ("reads_rounded", c_uint32),
        ("differentiable", c_uint32),
        ("no_gradient", c_char_p),
        ("zero_gradient", c_char_p),
        ("undefined_at", c_uint),
        ("undefined_reason", c_char_p),
        ("f32_approximates", c_bool),
        ("kinks", CFUNCTYPE(c_int, c_void_p, c_void_p)),
        ("is_view", c_bool),
        ("places_outputs", c_bool),
        ("accumulates", c_uint32),
        ("infer", CFUNCTYPE(c_int, c_void_p)),
        ("forward", CFUNCTYPE(c_int, c_void_p)),
        ("vjp", CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p)),
        ("jvp", CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p)),
        ("batch", CFUNCTYPE(c_int, c_void_p, c_uint32, c_int64)),
        ("decompose", CFUNCTYPE(c_int, c_void_p)),
        ("sample", CFUNCTYPE(c_int, c_int, c_void_p, c_void_p)),
        ("bench", CFUNCTYPE(c_int, c_void_p, c_void_p)),
        ("flops", CFUNCTYPE(c_double, c_void_p)),
    ]


class wg_conv_options(Structure):
    _fields_ = [
        ("stride", c_int64 * 3),
        ("padding", c_int64 * 3),
        ("dilation", c_int64 * 3),
        ("output_padding", c_int64 * 3),
        ("groups", c_int64),
        ("same_padding", c_bool),
    ]


class wg_pool_options(Structure):
    _fields_ = [
        ("kernel", c_int64 * 3),
        ("stride", c_int64 * 3),
        ("padding", c_int64 * 3),
        ("dilation", c_int64 * 3),
        ("ceil_mode", c_bool),
        ("exclude_padding", c_bool),
        ("divisor_override", c_int64),
    ]


class wg_attention_options(Structure):
    _fields_ = [
        ("scale", c_double),
        ("causal", c_bool),
        ("dropout", c_double),
        ("seed", c_uint64),
        ("offset", c_uint64),
        ("window", c_int64),
    ]


class wg_cross_entropy_options(Structure):
    _fields_ = [
        ("reduction", c_int),
        ("label_smoothing", c_double),
        ("weight", c_void_p),
        ("correct", c_void_p),
    ]


class wg_profile_row(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("kind", c_int),
        ("calls", c_int64),
        ("seconds", c_double),
        ("flops", c_double),
        ("bytes", c_double),
    ]


class wg_profile_event(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("kind", c_int),
        ("thread", c_int),
        ("start", c_double),
        ("seconds", c_double),
        ("flops", c_double),
        ("shapes", c_char * 96),
    ]

wg_gradient_hook = CFUNCTYPE(c_void_p, c_void_p, c_void_p)

wg_post_accumulate_grad_hook = CFUNCTYPE(c_int, c_void_p, c_void_p)


class wg_backward_options(Structure):
    _fields_ = [
        ("cotangent", c_void_p),
        ("retain_graph", c_bool),
        ("create_graph", c_bool),
    ]

wg_function = CFUNCTYPE(c_int, c_int, c_void_p, c_int, c_void_p, c_void_p)


class wg_transform_options(Structure):
    _fields_ = [
        ("create_graph", c_bool),
    ]


class wg_initializer(Structure):
    _fields_ = [
        ("kind", c_int),
        ("scale", c_double),
    ]


class wg_slot(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("tensor", c_void_p),
        ("kind", c_int),
        ("tied", c_bool),
        ("no_decay", c_bool),
        ("init", wg_initializer),
        ("next", c_void_p),
    ]


class wg_module(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("parent", c_void_p),
        ("first_child", c_void_p),
        ("last_child", c_void_p),
        ("next_sibling", c_void_p),
        ("first_slot", c_void_p),
        ("last_slot", c_void_p),
        ("destroy", CFUNCTYPE(None, c_void_p)),
        ("quantize", CFUNCTYPE(c_int, c_void_p, c_int)),
        ("evaluating", c_bool),
        ("checkpoints_activations", c_bool),
        ("generator", wg_generator),
    ]


class wg_state_entry(Structure):
    _fields_ = [
        ("path", c_char_p),
        ("slot", c_void_p),
    ]


class wg_state_dict(Structure):
    _fields_ = [
        ("count", c_int64),
        ("entries", c_void_p),
    ]


class wg_gradcheck_options(Structure):
    _fields_ = [
        ("f32", c_bool),
        ("eps", c_double),
        ("atol", c_double),
        ("rtol", c_double),
        ("order", c_int),
        ("forward", c_bool),
        ("fast", c_bool),
        ("no_variants", c_bool),
        ("seed", c_uint64),
        ("zero_gradient", c_char_p),
        ("parameter_count", c_int),
        ("parameters", c_void_p),
        ("parameter_names", c_void_p),
    ]


class wg_gradcheck_report(Structure):
    _fields_ = [
        ("passed", c_bool),
        ("diagnosis", c_int),
        ("function", c_char_p),
        ("seed", c_uint64),
        ("samples", c_int),
        ("variants", c_int),
        ("refused", c_int),
        ("order", c_int),
        ("forward", c_bool),
        ("compared", c_int64),
        ("kinks", c_int64),
        ("largest_error", c_double),
        ("largest_absolute_error", c_double),
        ("sample", c_int),
        ("variant", c_char * 128),
        ("at_order", c_int),
        ("input", c_int),
        ("name", c_char * 160),
        ("ndim", c_int),
        ("coordinate", c_int64 * 8),
        ("output", c_int),
        ("output_ndim", c_int),
        ("output_coordinate", c_int64 * 8),
        ("numeric", c_double),
        ("analytic", c_double),
        ("absolute_error", c_double),
        ("relative_error", c_double),
        ("factor", c_double),
        ("axis", c_int),
        ("message", c_char * 1024),
    ]


class wg_module_sample(Structure):
    _fields_ = [
        ("module", c_void_p),
        ("forward", wg_function),
        ("context", c_void_p),
        ("input_count", c_int),
        ("inputs", c_void_p * 8),
        ("output_count", c_int),
    ]


class wg_module_example(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("sample", CFUNCTYPE(c_int, c_int, c_void_p, c_void_p)),
    ]


class wg_module_library(Structure):
    _fields_ = [
        ("example_size", c_size_t),
        ("sample_size", c_size_t),
        ("module_size", c_size_t),
        ("examples", c_void_p),
    ]


class wg_activation_checkpoint_options(Structure):
    _fields_ = [
        ("generator_count", c_int),
        ("generators", c_void_p),
        ("context_size", c_size_t),
    ]


class wg_linear(Structure):
    _fields_ = [
        ("module", wg_module),
        ("weight", c_void_p),
        ("bias", c_void_p),
        ("transposed", c_bool),
        ("quantized", c_bool),
        ("quantization", c_int),
        ("adapter", type("adapter", (Structure,), {"_fields_": [("a", c_void_p), ("b", c_void_p), ("scale", c_double), ("dropout", c_double)]})),
    ]


class wg_linear_options(Structure):
    _fields_ = [
        ("no_bias", c_bool),
        ("transposed", c_bool),
        ("init", wg_initializer),
        ("tied_weight", c_void_p),
        ("tied_bias", c_void_p),
    ]


class wg_embedding(Structure):
    _fields_ = [
        ("module", wg_module),
        ("weight", c_void_p),
        ("padding_index", c_int64),
        ("quantizes", c_bool),
        ("quantization", c_int),
        ("head", c_void_p),
    ]


class wg_embedding_options(Structure):
    _fields_ = [
        ("has_padding", c_bool),
        ("padding_index", c_int64),
        ("init", wg_initializer),
    ]


class wg_feed_forward(Structure):
    _fields_ = [
        ("module", wg_module),
        ("up", c_void_p),
        ("down", c_void_p),
        ("activation", c_int),
        ("dropout", c_double),
    ]


class wg_feed_forward_options(Structure):
    _fields_ = [
        ("activation", c_int),
        ("dropout", c_double),
        ("no_bias", c_bool),
        ("transposed", c_bool),
        ("init", wg_initializer),
        ("down_init", wg_initializer),
        ("up_name", c_char_p),
        ("down_name", c_char_p),
    ]


class wg_gated_feed_forward(Structure):
    _fields_ = [
        ("module", wg_module),
        ("gate", c_void_p),
        ("up", c_void_p),
        ("down", c_void_p),
        ("joint", c_void_p),
        ("kind", c_int),
        ("dropout", c_double),
    ]


class wg_gated_feed_forward_options(Structure):
    _fields_ = [
        ("kind", c_int),
        ("dropout", c_double),
        ("bias", c_bool),
        ("joint", c_bool),
        ("init", wg_initializer),
        ("down_init", wg_initializer),
        ("gate_name", c_char_p),
        ("up_name", c_char_p),
        ("down_name", c_char_p),
        ("joint_name", c_char_p),
    ]


class wg_layer_norm(Structure):
    _fields_ = [
        ("module", wg_module),
        ("weight", c_void_p),
        ("bias", c_void_p),
        ("eps", c_double),
    ]


class wg_layer_norm_options(Structure):
    _fields_ = [
        ("eps", c_double),
        ("no_bias", c_bool),
    ]


class wg_rms_norm(Structure):
    _fields_ = [
        ("module", wg_module),
        ("weight", c_void_p),
        ("eps", c_double),
        ("eps_outside", c_bool),
    ]


class wg_rms_norm_options(Structure):
    _fields_ = [
        ("eps", c_double),
        ("eps_outside", c_bool),
    ]


class wg_add_norm(Structure):
    _fields_ = [
        ("module", wg_module),
        ("norm", c_void_p),
        ("dropout", c_double),
        ("pre", c_bool),
    ]


class wg_add_norm_options(Structure):
    _fields_ = [
        ("pre", c_bool),
        ("dropout", c_double),
        ("eps", c_double),
        ("norm_name", c_char_p),
    ]


class wg_batch_norm(Structure):
    _fields_ = [
        ("module", wg_module),
        ("weight", c_void_p),
        ("bias", c_void_p),
        ("running_mean", c_void_p),
        ("running_var", c_void_p),
        ("num_batches_tracked", c_void_p),
        ("channels", c_int64),
        ("eps", c_double),
        ("momentum", c_double),
        ("cumulative", c_bool),
    ]


class wg_batch_norm_options(Structure):
    _fields_ = [
        ("eps", c_double),
        ("momentum", c_double),
        ("cumulative", c_bool),
        ("no_affine", c_bool),
        ("no_running", c_bool),
    ]


class wg_group_norm(Structure):
    _fields_ = [
        ("module", wg_module),
        ("weight", c_void_p),
        ("bias", c_void_p),
        ("groups", c_int64),
        ("channels", c_int64),
        ("eps", c_double),
    ]


class wg_group_norm_options(Structure):
    _fields_ = [
        ("eps", c_double),
        ("no_affine", c_bool),
    ]


class wg_conv(Structure):
    _fields_ = [
        ("module", wg_module),
        ("weight", c_void_p),
        ("bias", c_void_p),
        ("rank", c_int),
        ("transposed", c_bool),
        ("options", wg_conv_options),
        ("padding_mode", c_int),
    ]


class wg_conv_layer_options(Structure):
    _fields_ = [
        ("conv", wg_conv_options),
        ("padding_mode", c_int),
        ("no_bias", c_bool),
        ("init", wg_initializer),
    ]


class wg_recurrent_options(Structure):
    _fields_ = [
        ("layers", c_int64),
        ("bidirectional", c_bool),
        ("no_bias", c_bool),
        ("batch_first", c_bool),
        ("dropout", c_double),
    ]


class wg_recurrent_weights(Structure):
    _fields_ = [
        ("weight_ih", c_void_p),
        ("weight_hh", c_void_p),
        ("bias_ih", c_void_p),
        ("bias_hh", c_void_p),
    ]


class wg_recurrent(Structure):
    _fields_ = [
        ("module", wg_module),
        ("in", c_int64),
        ("hidden", c_int64),
        ("options", wg_recurrent_options),
        ("weights", c_void_p),
    ]


class wg_min_gru(Structure):
    _fields_ = [
        ("module", wg_module),
        ("linear_z", c_void_p),
        ("linear_h", c_void_p),
    ]


class wg_mamba_options(Structure):
    _fields_ = [
        ("state", c_int64),
        ("kernel", c_int64),
        ("expand", c_int64),
        ("rank", c_int64),
    ]


class wg_mamba(Structure):
    _fields_ = [
        ("module", wg_module),
        ("in_proj", c_void_p),
        ("x_proj", c_void_p),
        ("dt_proj", c_void_p),
        ("out_proj", c_void_p),
        ("conv1d", c_void_p),
        ("a_log", c_void_p),
        ("d", c_void_p),
        ("options", wg_mamba_options),
    ]


class wg_mamba_state(Structure):
    _fields_ = [
        ("conv", c_void_p),
        ("h", c_void_p),
    ]


class wg_kv_cache(Structure):
    _fields_ = [
        ("key", c_void_p),
        ("value", c_void_p),
        ("length", c_int64),
        ("capacity", c_int64),
    ]


class wg_multi_head_attention(Structure):
    _fields_ = [
        ("module", wg_module),
        ("query", c_void_p),
        ("key", c_void_p),
        ("value", c_void_p),
        ("output", c_void_p),
        ("joint", c_void_p),
        ("value_inner", c_void_p),
        ("heads", c_int64),
        ("key_value_heads", c_int64),
        ("head_width", c_int64),
        ("scale", c_double),
        ("dropout", c_double),
        ("causal", c_bool),
        ("pairing", c_int),
    ]


class wg_multi_head_attention_options(Structure):
    _fields_ = [
        ("key_value_heads", c_int64),
        ("head_width", c_int64),
        ("scale", c_double),
        ("dropout", c_double),
        ("causal", c_bool),
        ("no_bias", c_bool),
        ("memory_width", c_int64),
        ("value_rank", c_int64),
        ("joint", c_bool),
        ("transposed", c_bool),
        ("pairing", c_int),
        ("init", wg_initializer),
        ("output_init", wg_initializer),
        ("query_name", c_char_p),
        ("key_name", c_char_p),
        ("value_name", c_char_p),
        ("output_name", c_char_p),
        ("joint_name", c_char_p),
        ("value_inner_name", c_char_p),
    ]


class wg_attention_inputs(Structure):
    _fields_ = [
        ("memory", c_void_p),
        ("mask", c_void_p),
        ("bias", c_void_p),
        ("cos", c_void_p),
        ("sin", c_void_p),
        ("causal", c_bool),
        ("window", c_int64),
        ("cache", c_void_p),
        ("weights", c_void_p),
        ("output_positions", c_void_p),
    ]

wg_attention_watcher = CFUNCTYPE(None, c_char_p, c_void_p, c_void_p)


class wg_rotary_options(Structure):
    _fields_ = [
        ("base", c_double),
        ("factor", c_double),
        ("low_frequency_factor", c_double),
        ("high_frequency_factor", c_double),
        ("original_positions", c_int64),
    ]


class wg_sinusoidal_options(Structure):
    _fields_ = [
        ("base", c_double),
    ]


class wg_relative_position(Structure):
    _fields_ = [
        ("module", wg_module),
        ("weight", c_void_p),
        ("max_distance", c_int64),
        ("bidirectional", c_bool),
    ]


class wg_relative_position_options(Structure):
    _fields_ = [
        ("buckets", c_int64),
        ("max_distance", c_int64),
        ("bidirectional", c_bool),
        ("init", wg_initializer),
    ]


class wg_block_position(Structure):
    _fields_ = [
        ("module", wg_module),
        ("positions", c_void_p),
        ("block_positions", c_void_p),
    ]


class wg_block_position_options(Structure):
    _fields_ = [
        ("init", wg_initializer),
    ]


class wg_lora_options(Structure):
    _fields_ = [
        ("rank", c_int64),
        ("alpha", c_double),
        ("dropout", c_double),
        ("target_count", c_int),
        ("targets", c_void_p),
        ("whole_count", c_int),
        ("whole", c_void_p),
        ("spared_count", c_int),
        ("spared", c_void_p),
    ]


class wg_stack_inputs(Structure):
    _fields_ = [
        ("self", wg_attention_inputs),
        ("memory", wg_attention_inputs),
        ("self_caches", c_void_p),
        ("memory_caches", c_void_p),
        ("dropout", c_double),
    ]

wg_stack_layer = CFUNCTYPE(c_void_p, c_void_p, c_int64, c_void_p, c_void_p)


class wg_adamw_options(Structure):
    _fields_ = [
        ("beta1", c_double),
        ("beta2", c_double),
        ("eps", c_double),
        ("weight_decay", c_double),
    ]


class wg_sgd_options(Structure):
    _fields_ = [
        ("momentum", c_double),
        ("weight_decay", c_double),
        ("nesterov", c_bool),
    ]


class wg_adafactor_options(Structure):
    _fields_ = [
        ("eps1", c_double),
        ("eps2", c_double),
        ("clip_threshold", c_double),
        ("decay_rate", c_double),
        ("weight_decay", c_double),
        ("absolute_rate", c_bool),
    ]


class wg_lion_options(Structure):
    _fields_ = [
        ("beta1", c_double),
        ("beta2", c_double),
        ("weight_decay", c_double),
    ]


class wg_muon_options(Structure):
    _fields_ = [
        ("momentum", c_double),
        ("weight_decay", c_double),
        ("match_adamw", c_bool),
        ("adamw_names", c_void_p),
        ("adamw", wg_adamw_options),
        ("adamw_rate", c_double),
    ]


class wg_optimizer_choice(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("weight_decay", c_double),
        ("momentum", c_double),
        ("beta1", c_double),
        ("beta2", c_double),
        ("eps", c_double),
    ]


class wg_parameter_step(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("parameter", c_void_p),
        ("gradient", c_void_p),
        ("states", c_void_p),
        ("learning_rate", c_double),
        ("weight_decay", c_double),
        ("step", c_int64),
    ]


class wg_update_rule(Structure):
    _fields_ = [
        ("states", c_char_p * 4),
        ("step", CFUNCTYPE(c_int, c_void_p, c_void_p)),
        ("weight_decay", c_double),
    ]


class wg_parameter_group(Structure):
    _fields_ = [
        ("names", c_char_p),
        ("rate", c_double),
        ("weight_decay", c_double),
        ("no_decay", c_bool),
    ]


class wg_schedule(Structure):
    _fields_ = [
        ("kind", c_int),
        ("peak", c_double),
        ("final", c_double),
        ("warmup_steps", c_int64),
        ("total_steps", c_int64),
        ("decay_steps", c_int64),
        ("width", c_int64),
        ("rate", CFUNCTYPE(c_double, c_void_p, c_int64)),
        ("context", c_void_p),
    ]

wg_checkpoint_visitor = CFUNCTYPE(c_int, c_char_p, c_void_p, c_void_p)


class wg_setting_list(Structure):
    _fields_ = [
        ("count", c_int64),
        ("items", c_void_p),
    ]


class wg_setting_numbers(Structure):
    _fields_ = [
        ("count", c_int64),
        ("items", c_void_p),
    ]


class wg_setting(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("kind", c_int),
        ("offset", c_size_t),
        ("low", c_double),
        ("high", c_double),
        ("above", c_bool),
        ("below", c_bool),
        ("fixed", c_bool),
        ("unless_zero", c_bool),
        ("list", c_bool),
        ("standard", c_char_p),
        ("derived", c_char_p),
        ("choice", CFUNCTYPE(c_char_p, c_int)),
        ("aliases", c_void_p),
        ("excludes", c_char_p),
        ("heading", c_char_p),
        ("argument", c_char_p),
        ("help", c_char_p),
    ]


class wg_setting_table(Structure):
    _fields_ = [
        ("where", c_char_p),
        ("size", c_size_t),
        ("count", c_int),
        ("rows", c_void_p),
    ]


class wg_left_out(Structure):
    _fields_ = [
        ("missing_count", c_int64),
        ("unexpected_count", c_int64),
        ("misshapen_count", c_int64),
        ("missing", c_void_p),
        ("unexpected", c_void_p),
        ("misshapen", c_void_p),
    ]


class wg_weights_info(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("spec", wg_spec),
    ]


class wg_weights_options(Structure):
    _fields_ = [
        ("type", c_int),
        ("config", c_char_p),
        ("tokenizer", c_char_p),
        ("generation", c_char_p),
        ("version", c_int),
        ("shard_bytes", c_int64),
    ]


class wg_data_position(Structure):
    _fields_ = [
        ("seed", c_uint64),
        ("epoch", c_int64),
        ("next", c_int64),
    ]


class wg_example(Structure):
    _fields_ = [
        ("index", c_int64),
        ("place", c_int64),
        ("generator", wg_generator),
    ]


class wg_epoch(Structure):
    _fields_ = [
        ("position", wg_data_position),
        ("generator", wg_generator),
        ("examples", c_int64),
        ("source_ends", c_void_p),
    ]


class wg_batch_source(Structure):
    _fields_ = [
        ("context", c_void_p),
        ("build", CFUNCTYPE(c_int, c_void_p, c_int64, c_void_p, c_void_p)),
        ("plan", CFUNCTYPE(c_int, c_void_p, c_void_p)),
        ("take", CFUNCTYPE(None, c_void_p, c_int64, c_void_p)),
        ("free", CFUNCTYPE(None, c_void_p)),
    ]


class wg_batches_options(Structure):
    _fields_ = [
        ("batch", c_int64),
        ("examples", c_int64),
        ("seed", c_uint64),
        ("sources", c_int64),
        ("weights", c_void_p),
        ("source_ends", c_void_p),
        ("shuffle_from_last", c_bool),
    ]


class wg_token_list(Structure):
    _fields_ = [
        ("ids", c_void_p),
        ("count", c_int64),
        ("capacity", c_int64),
    ]


class wg_encode_options(Structure):
    _fields_ = [
        ("special_tokens", c_bool),
    ]


class wg_decode_options(Structure):
    _fields_ = [
        ("skip_special", c_bool),
        ("plain", c_bool),
    ]


class wg_vocabulary_extension(Structure):
    _fields_ = [
        ("tokenizer", c_void_p),
        ("count", c_int64),
        ("starts", c_void_p),
        ("pieces", c_void_p),
    ]


class wg_token_pair(Structure):
    _fields_ = [
        ("first", c_void_p),
        ("second", c_void_p),
        ("first_count", c_int64),
        ("second_count", c_int64),
    ]


class wg_pair_batch(Structure):
    _fields_ = [
        ("input_ids", c_void_p),
        ("token_type_ids", c_void_p),
        ("attention_mask", c_void_p),
        ("tokens", c_int64),
    ]


class wg_pair_frame(Structure):
    _fields_ = [
        ("pad_id", c_int32),
        ("class_id", c_int32),
        ("separator_id", c_int32),
        ("doubled", c_int),
        ("sequence", c_int64),
    ]


class wg_bpe_options(Structure):
    _fields_ = [
        ("pattern", c_char_p),
        ("prefix_space", c_bool),
        ("whole_words", c_bool),
    ]


class wg_bpe_training(Structure):
    _fields_ = [
        ("vocabulary_size", c_int64),
        ("min_frequency", c_int64),
        ("options", wg_bpe_options),
    ]


class wg_char_training(Structure):
    _fields_ = [
        ("unknown", c_bool),
    ]


class wg_corpus_finding(Structure):
    _fields_ = [
        ("count", c_int64),
        ("file", c_int),
        ("line", c_int64),
    ]


class wg_corpus_lengths(Structure):
    _fields_ = [
        ("count", c_int64),
        ("median", c_int64),
        ("most", c_int64),
        ("longest", c_int64),
        ("file", c_int),
        ("line", c_int64),
    ]


class wg_corpus_report(Structure):
    _fields_ = [
        ("bytes", c_int64),
        ("characters", c_int64),
        ("lines", wg_corpus_lengths),
        ("documents", wg_corpus_lengths),
        ("repeated_lines", wg_corpus_finding),
        ("repeated_documents", wg_corpus_finding),
        ("repeated_characters", c_int64),
        ("faults", wg_corpus_finding * 6),
        ("held_out_lines", c_int64),
        ("held_out_characters", c_int64),
        ("overlap", wg_corpus_finding),
        ("overlap_characters", c_int64),
        ("words", c_int64),
        ("tokens", c_int64),
        ("unknown", c_int64),
    ]


class wg_corpus_check_options(Structure):
    _fields_ = [
        ("held_out", c_char_p),
        ("tokenizer", c_void_p),
    ]


class wg_token_storage(Structure):
    _fields_ = [
        ("path", c_char_p),
        ("note", CFUNCTYPE(None, c_void_p, c_char_p)),
        ("context", c_void_p),
    ]


class wg_dataset_options(Structure):
    _fields_ = [
        ("kind", c_int),
        ("format", c_int),
        ("begin", c_double),
        ("end", c_double),
        ("storage", c_void_p),
    ]


class wg_sentencepiece_training(Structure):
    _fields_ = [
        ("unigram", c_bool),
        ("vocabulary_size", c_int64),
        ("min_frequency", c_int64),
        ("alphabet_limit", c_int64),
        ("byte_fallback", c_bool),
    ]


class wg_wordpiece_options(Structure):
    _fields_ = [
        ("cased", c_bool),
        ("max_word_characters", c_int),
        ("huggingface", c_bool),
    ]


class wg_wordpiece_report(Structure):
    _fields_ = [
        ("tokens", c_int64),
        ("unknown", c_int64),
        ("alphabet", c_int64),
        ("wanted_alphabet", c_int64),
        ("wanted_vocabulary", c_int64),
    ]


class wg_wordpiece_training(Structure):
    _fields_ = [
        ("vocabulary_size", c_int64),
        ("min_frequency", c_int64),
        ("alphabet_limit", c_int64),
        ("options", wg_wordpiece_options),
        ("report", c_void_p),
    ]


class wg_model_inputs(Structure):
    _fields_ = [
        ("ids", c_void_p),
        ("embeddings", c_void_p),
        ("keep", c_void_p),
        ("token_type_ids", c_void_p),
        ("position_ids", c_void_p),
        ("block_position_ids", c_void_p),
        ("part_a", c_void_p),
        ("mask", c_void_p),
        ("memory", c_void_p),
        ("memory_keep", c_void_p),
        ("caches", c_void_p),
        ("memory_caches", c_void_p),
        ("previous_ids", c_void_p),
        ("causal", c_bool),
        ("output_positions", c_void_p),
    ]


class wg_model_sizes(Structure):
    _fields_ = [
        ("vocabulary", c_int64),
        ("source_vocabulary", c_int64),
        ("positions", c_int64),
        ("width", c_int64),
        ("layers", c_int64),
        ("encoder_layers", c_int64),
        ("cache_width", c_int64),
        ("start_id", c_int64),
        ("end_id", c_int64),
        ("pad_id", c_int64),
        ("segments", c_int64),
        ("head_dropout", c_double),
        ("pools_first", c_bool),
        ("head_init", wg_initializer),
    ]


class wg_model_fit(Structure):
    _fields_ = [
        ("tokenizer", c_void_p),
        ("sequence", c_int64),
        ("file", c_void_p),
        ("learnt", c_int64),
    ]


class wg_model_preset(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("config", c_void_p),
        ("training", c_char_p),
        ("bench", type("bench", (Structure,), {"_fields_": [("batch", c_int64), ("sequence", c_int64), ("vocabulary", c_int64)]})),
    ]


class wg_model_copy(Structure):
    _fields_ = [
        ("end", c_char_p),
        ("of", c_char_p),
    ]


class wg_model_names(Structure):
    _fields_ = [
        ("architecture", c_char_p),
        ("classifier", c_char_p),
        ("answerer", c_char_p),
        ("word_classifier", c_char_p),
        ("pooled_head", c_char_p),
        ("answers", c_char_p),
        ("marker", c_char_p),
        ("prefix", c_char_p),
        ("heads", c_char_p * 4),
        ("outer", c_char_p),
        ("ignored", c_char_p * 5),
        ("copies", wg_model_copy * 3),
        ("optional", c_char_p * 5),
        ("kept", c_char_p * 2),
        ("adapted", c_char_p * 3),
    ]


class wg_model_type(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("model_type", c_char_p),
        ("published", c_char_p),
        ("aliases", c_char_p * 3),
        ("title", c_char_p),
        ("shape", c_int),
        ("settings", wg_setting_table),
        ("ignored", c_void_p),
        ("presets", c_void_p),
        ("bench_preset", c_char_p),
        ("training", c_char_p),
        ("smallest", c_char_p),
        ("objectives", c_char_p),
        ("read_more", CFUNCTYPE(c_int, c_void_p, c_void_p)),
        ("write_more", CFUNCTYPE(c_int, c_void_p, c_void_p)),
        ("check", CFUNCTYPE(c_int, c_void_p)),
        ("fitted", c_void_p),
        ("fit", CFUNCTYPE(c_int, c_void_p, c_void_p)),
        ("resize", CFUNCTYPE(None, c_void_p, c_int64, c_int64)),
        ("sizes", CFUNCTYPE(wg_model_sizes, c_void_p)),
        ("config", CFUNCTYPE(c_void_p, c_void_p)),
        ("names", wg_model_names),
        ("create", CFUNCTYPE(c_void_p, c_void_p, c_uint64)),
        ("encode", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p)),
        ("forward", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("logits", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("loss", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)),
        ("token_bytes", CFUNCTYPE(c_double, c_void_p)),
        ("encoder_name", c_char_p),
        ("encoder_new", CFUNCTYPE(c_void_p, c_void_p, c_char_p, c_void_p, c_bool)),
        ("encoder_forward", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("takes_causal", c_bool),
        ("encoder_pool", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p)),
        ("encoder_states", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("encoder", CFUNCTYPE(c_void_p, c_void_p)),
        ("next_sentence", CFUNCTYPE(c_void_p, c_void_p)),
    ]


class wg_model(Structure):
    _fields_ = [
        ("type", c_void_p),
        ("module", c_void_p),
        ("config", c_void_p),
    ]


class wg_model_costs(Structure):
    _fields_ = [
        ("type", c_void_p),
        ("parameters", c_int64),
        ("weight_bytes", c_int64),
        ("positions", c_int64),
        ("token_flops", c_double),
        ("position_flops", c_double),
    ]


class wg_beam_model(Structure):
    _fields_ = [
        ("context", c_void_p),
        ("vocabulary", c_int64),
        ("step", CFUNCTYPE(c_int, c_void_p, c_int64, c_void_p, c_void_p)),
        ("reorder", CFUNCTYPE(c_int, c_void_p, c_int64, c_void_p)),
    ]


class wg_beam_rules(Structure):
    _fields_ = [
        ("context", c_void_p),
        ("restrict_rows", CFUNCTYPE(None, c_void_p, c_int64, c_void_p, c_void_p)),
        ("reorder", CFUNCTYPE(None, c_void_p, c_int64, c_void_p)),
    ]


class wg_beam_options(Structure):
    _fields_ = [
        ("beam", c_int64),
        ("alpha", c_double),
        ("max_length", c_int64),
        ("start_id", c_int32),
        ("end_id", c_int32),
        ("rules", c_void_p),
    ]


class wg_beam_result(Structure):
    _fields_ = [
        ("tokens", wg_token_list),
        ("log_probability", c_double),
        ("score", c_double),
        ("ended", c_bool),
    ]


class wg_bert_config(Structure):
    _fields_ = [
        ("vocab_size", c_int64),
        ("hidden_size", c_int64),
        ("num_hidden_layers", c_int64),
        ("num_attention_heads", c_int64),
        ("intermediate_size", c_int64),
        ("hidden_act", c_int),
        ("hidden_dropout_prob", c_double),
        ("attention_probs_dropout_prob", c_double),
        ("max_position_embeddings", c_int64),
        ("type_vocab_size", c_int64),
        ("initializer_range", c_double),
        ("layer_norm_eps", c_double),
        ("pad_token_id", c_int64),
    ]


class wg_bert_layer(Structure):
    _fields_ = [
        ("module", wg_module),
        ("attention", c_void_p),
        ("attention_norm", c_void_p),
        ("feed_forward", c_void_p),
        ("output_norm", c_void_p),
    ]


class wg_bert(Structure):
    _fields_ = [
        ("module", wg_module),
        ("config", wg_bert_config),
        ("first_position", c_int64),
        ("word_embeddings", c_void_p),
        ("position_embeddings", c_void_p),
        ("token_type_embeddings", c_void_p),
        ("embedding_norm", c_void_p),
        ("layers", c_void_p),
        ("pooler", c_void_p),
    ]


class wg_bert_options(Structure):
    _fields_ = [
        ("no_pooler", c_bool),
        ("first_position", c_int64),
    ]


class wg_bert_predictions(Structure):
    _fields_ = [
        ("module", wg_module),
        ("activation", c_int),
        ("dense", c_void_p),
        ("norm", c_void_p),
        ("decoder", c_void_p),
    ]


class wg_bert_for_pretraining(Structure):
    _fields_ = [
        ("module", wg_module),
        ("bert", c_void_p),
        ("predictions", c_void_p),
        ("next_sentence", c_void_p),
    ]


class wg_convert_options(Structure):
    _fields_ = [
        ("config", c_char_p),
        ("tokenizer", c_char_p),
        ("prefix", c_char_p),
        ("adapter", c_char_p),
        ("adapter_only", c_bool),
        ("type", c_int),
        ("version", c_int),
        ("shard_bytes", c_int64),
        ("note", CFUNCTYPE(None, c_char_p, c_void_p)),
        ("context", c_void_p),
    ]


class wg_convert_summary(Structure):
    _fields_ = [
        ("type", c_char_p),
        ("from", c_char_p),
        ("to", c_char_p),
        ("tensors", c_int64),
        ("numbers", c_int64),
        ("tokenizer", c_bool),
    ]


class wg_sampling(Structure):
    _fields_ = [
        ("temperature", c_double),
        ("top_k", c_int64),
        ("top_p", c_double),
        ("min_p", c_double),
        ("repetition_penalty", c_double),
    ]


class wg_generation(Structure):
    _fields_ = [
        ("tokens", wg_token_list),
        ("generator", wg_generator),
        ("generated", c_int64),
        ("end", c_int),
    ]


class wg_generated_token(Structure):
    _fields_ = [
        ("text", c_int64),
        ("id", c_int32),
        ("logits", c_void_p),
    ]


class wg_generation_options(Structure):
    _fields_ = [
        ("sampling", wg_sampling),
        ("max_tokens", c_int64),
        ("vocabulary", c_int64),
        ("stop_ids", c_void_p),
        ("stop_count", c_int),
        ("listener", CFUNCTYPE(None, c_void_p, c_void_p)),
        ("listener_context", c_void_p),
        ("stop", c_void_p),
    ]


class wg_new_tokens(Structure):
    _fields_ = [
        ("ids", c_void_p),
        ("position_ids", c_void_p),
        ("keep", c_void_p),
    ]


class wg_language_model(Structure):
    _fields_ = [
        ("context", c_void_p),
        ("module", c_void_p),
        ("vocabulary", c_int64),
        ("positions", c_int64),
        ("takes_padding", c_bool),
        ("begin", CFUNCTYPE(c_void_p, c_void_p, c_int64, c_int64)),
        ("read", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p)),
        ("reorder", CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p)),
        ("end", CFUNCTYPE(None, c_void_p, c_void_p)),
    ]


class wg_glm_config(Structure):
    _fields_ = [
        ("vocab_size", c_int64),
        ("hidden_size", c_int64),
        ("num_layers", c_int64),
        ("num_attention_heads", c_int64),
        ("max_sequence_length", c_int64),
        ("embedding_dropout_prob", c_double),
        ("attention_dropout_prob", c_double),
        ("output_dropout_prob", c_double),
        ("layernorm_epsilon", c_double),
        ("initializer_range", c_double),
    ]


class wg_glm_layer(Structure):
    _fields_ = [
        ("module", wg_module),
        ("attention_norm", c_void_p),
        ("mlp_norm", c_void_p),
        ("attention", c_void_p),
        ("mlp", c_void_p),
    ]


class wg_glm(Structure):
    _fields_ = [
        ("module", wg_module),
        ("config", wg_glm_config),
        ("words", c_void_p),
        ("positions", c_void_p),
        ("layers", c_void_p),
        ("norm", c_void_p),
    ]


class wg_gpt_config(Structure):
    _fields_ = [
        ("vocab_size", c_int64),
        ("n_positions", c_int64),
        ("n_embd", c_int64),
        ("n_layer", c_int64),
        ("n_head", c_int64),
        ("n_inner", c_int64),
        ("activation_function", c_int),
        ("embd_pdrop", c_double),
        ("attn_pdrop", c_double),
        ("resid_pdrop", c_double),
        ("layer_norm_epsilon", c_double),
        ("initializer_range", c_double),
        ("bos_token_id", c_int64),
        ("eos_token_id", c_int64),
    ]


class wg_gpt_layer(Structure):
    _fields_ = [
        ("module", wg_module),
        ("attention_norm", c_void_p),
        ("net_norm", c_void_p),
        ("attention", c_void_p),
        ("net", c_void_p),
    ]


class wg_gpt(Structure):
    _fields_ = [
        ("module", wg_module),
        ("config", wg_gpt_config),
        ("words", c_void_p),
        ("positions", c_void_p),
        ("layers", c_void_p),
        ("norm", c_void_p),
    ]


class wg_llama_config(Structure):
    _fields_ = [
        ("vocab_size", c_int64),
        ("hidden_size", c_int64),
        ("intermediate_size", c_int64),
        ("num_hidden_layers", c_int64),
        ("num_attention_heads", c_int64),
        ("num_key_value_heads", c_int64),
        ("hidden_act", c_int),
        ("max_position_embeddings", c_int64),
        ("rms_norm_eps", c_double),
        ("rope_theta", c_double),
        ("rope_scaling", wg_rotary_options),
        ("initializer_range", c_double),
        ("tie_word_embeddings", c_bool),
        ("bos_token_id", c_int64),
        ("eos_token_id", c_int64),
        ("bigram_vocab_size", c_int64),
    ]


class wg_llama_layer(Structure):
    _fields_ = [
        ("module", wg_module),
        ("input_norm", c_void_p),
        ("attention_output_norm", c_void_p),
        ("attention", c_void_p),
        ("feed_forward", c_void_p),
    ]


class wg_llama(Structure):
    _fields_ = [
        ("module", wg_module),
        ("config", wg_llama_config),
        ("embedding", c_void_p),
        ("bigrams", c_void_p),
        ("layers", c_void_p),
        ("norm", c_void_p),
        ("head", c_void_p),
        ("cos", c_void_p),
        ("sin", c_void_p),
    ]


class wg_modernbert_config(Structure):
    _fields_ = [
        ("vocab_size", c_int64),
        ("hidden_size", c_int64),
        ("intermediate_size", c_int64),
        ("num_hidden_layers", c_int64),
        ("num_attention_heads", c_int64),
        ("hidden_activation", c_int),
        ("max_position_embeddings", c_int64),
        ("initializer_range", c_double),
        ("norm_eps", c_double),
        ("norm_bias", c_bool),
        ("global_rope_theta", c_double),
        ("local_rope_theta", c_double),
        ("local_attention", c_int64),
        ("global_attn_every_n_layers", c_int64),
        ("attention_bias", c_bool),
        ("mlp_bias", c_bool),
        ("decoder_bias", c_bool),
        ("classifier_bias", c_bool),
        ("attention_dropout", c_double),
        ("embedding_dropout", c_double),
        ("mlp_dropout", c_double),
        ("classifier_dropout", c_double),
        ("classifier_activation", c_int),
        ("classifier_pooling", c_int),
        ("pad_token_id", c_int64),
        ("bos_token_id", c_int64),
        ("eos_token_id", c_int64),
        ("cls_token_id", c_int64),
        ("sep_token_id", c_int64),
        ("bigram_vocab_size", c_int64),
    ]


class wg_modernbert_layer(Structure):
    _fields_ = [
        ("module", wg_module),
        ("attention_norm", c_void_p),
        ("attention", c_void_p),
        ("feed_forward_norm", c_void_p),
        ("feed_forward", c_void_p),
        ("dropout", c_double),
        ("local", c_bool),
    ]


class wg_modernbert(Structure):
    _fields_ = [
        ("module", wg_module),
        ("config", wg_modernbert_config),
        ("embedding", c_void_p),
        ("bigrams", c_void_p),
        ("embedding_norm", c_void_p),
        ("layers", c_void_p),
        ("final_norm", c_void_p),
        ("head", c_void_p),
        ("head_norm", c_void_p),
        ("cos", c_void_p * 2),
        ("sin", c_void_p * 2),
    ]


class wg_modernbert_for_masked_lm(Structure):
    _fields_ = [
        ("module", wg_module),
        ("encoder", c_void_p),
        ("decoder", c_void_p),
    ]


class wg_roberta_config(Structure):
    _fields_ = [
        ("bert", wg_bert_config),
        ("bos_token_id", c_int64),
        ("eos_token_id", c_int64),
    ]


class wg_roberta(Structure):
    _fields_ = [
        ("module", wg_module),
        ("config", wg_roberta_config),
        ("bert", c_void_p),
        ("dense", c_void_p),
    ]


class wg_roberta_for_masked_lm(Structure):
    _fields_ = [
        ("module", wg_module),
        ("encoder", c_void_p),
        ("head", c_void_p),
    ]


class wg_t5_config(Structure):
    _fields_ = [
        ("vocab_size", c_int64),
        ("d_model", c_int64),
        ("d_kv", c_int64),
        ("d_ff", c_int64),
        ("num_layers", c_int64),
        ("num_decoder_layers", c_int64),
        ("num_heads", c_int64),
        ("relative_attention_num_buckets", c_int64),
        ("relative_attention_max_distance", c_int64),
        ("dropout_rate", c_double),
        ("layer_norm_epsilon", c_double),
        ("initializer_factor", c_double),
        ("feed_forward_proj", c_int),
        ("tie_word_embeddings", c_bool),
        ("pad_token_id", c_int64),
        ("eos_token_id", c_int64),
        ("decoder_start_token_id", c_int64),
    ]


class wg_t5_block(Structure):
    _fields_ = [
        ("module", wg_module),
        ("attention_norm", c_void_p),
        ("memory_norm", c_void_p),
        ("net_norm", c_void_p),
        ("attention", c_void_p),
        ("memory_attention", c_void_p),
        ("net", c_void_p),
        ("gated_net", c_void_p),
    ]


class wg_t5_stack(Structure):
    _fields_ = [
        ("module", wg_module),
        ("count", c_int64),
        ("blocks", c_void_p),
        ("positions", c_void_p),
        ("norm", c_void_p),
    ]


class wg_t5(Structure):
    _fields_ = [
        ("module", wg_module),
        ("config", wg_t5_config),
        ("words", c_void_p),
        ("encoder", c_void_p),
        ("decoder", c_void_p),
        ("head", c_void_p),
    ]


class wg_transformer_config(Structure):
    _fields_ = [
        ("vocab_size", c_int64),
        ("decoder_vocab_size", c_int64),
        ("share_encoder_decoder_embeddings", c_bool),
        ("d_model", c_int64),
        ("encoder_layers", c_int64),
        ("decoder_layers", c_int64),
        ("encoder_attention_heads", c_int64),
        ("decoder_attention_heads", c_int64),
        ("encoder_ffn_dim", c_int64),
        ("decoder_ffn_dim", c_int64),
        ("activation_function", c_int),
        ("normalize_before", c_bool),
        ("scale_embedding", c_bool),
        ("static_position_embeddings", c_bool),
        ("dropout", c_double),
        ("attention_dropout", c_double),
        ("activation_dropout", c_double),
        ("label_smoothing", c_double),
        ("max_position_embeddings", c_int64),
        ("pad_token_id", c_int64),
        ("eos_token_id", c_int64),
        ("decoder_start_token_id", c_int64),
    ]


class wg_transformer_layer(Structure):
    _fields_ = [
        ("module", wg_module),
        ("self_attention", c_void_p),
        ("memory_attention", c_void_p),
        ("self_norm", c_void_p),
        ("memory_norm", c_void_p),
        ("net_norm", c_void_p),
        ("net", c_void_p),
    ]


class wg_transformer_stack(Structure):
    _fields_ = [
        ("words", c_void_p),
        ("positions", c_void_p),
        ("layer_count", c_int64),
        ("layers", c_void_p),
        ("norm", c_void_p),
    ]


class wg_transformer(Structure):
    _fields_ = [
        ("module", wg_module),
        ("config", wg_transformer_config),
        ("encoder", wg_transformer_stack),
        ("decoder", wg_transformer_stack),
        ("output", c_void_p),
    ]


class wg_metric(Structure):
    _fields_ = [
        ("name", c_char * 32),
        ("sum", c_double),
        ("weight", c_double),
    ]


class wg_metrics(Structure):
    _fields_ = [
        ("count", c_int),
        ("metrics", wg_metric * 16),
        ("tokens", c_int64),
    ]


class wg_history(Structure):
    _fields_ = [
        ("column_count", c_int),
        ("names", c_char * 32 * 24),
        ("columns", c_void_p * 24),
        ("row_count", c_int64),
        ("capacity", c_int64),
    ]


class wg_loss_part(Structure):
    _fields_ = [
        ("count", c_double),
        ("share", c_double),
    ]


class wg_task(Structure):
    _fields_ = [
        ("context", c_void_p),
        ("module", c_void_p),
        ("loss", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("weigh", CFUNCTYPE(c_int, c_void_p, c_void_p)),
        ("begin_step", CFUNCTYPE(None, c_void_p)),
        ("evaluate", CFUNCTYPE(c_int, c_void_p, c_void_p)),
        ("shares_evaluation", c_bool),
        ("save", CFUNCTYPE(c_int, c_void_p, c_void_p)),
        ("restore", CFUNCTYPE(c_int, c_void_p, c_void_p)),
        ("batches", c_void_p),
        ("agree", CFUNCTYPE(c_int, c_void_p, c_void_p)),
    ]


class wg_train_report(Structure):
    _fields_ = [
        ("step", c_int64),
        ("total", c_int64),
        ("loss", c_double),
        ("learning_rate", c_double),
        ("gradient_norm", c_double),
        ("tokens_per_second", c_double),
        ("seconds_left", c_double),
        ("metrics", c_void_p),
        ("evaluation", c_void_p),
        ("saved", c_bool),
    ]

wg_train_listener = CFUNCTYPE(None, c_void_p, c_void_p)


class wg_trainer_options(Structure):
    _fields_ = [
        ("steps", c_int64),
        ("schedule", wg_schedule),
        ("clip", c_double),
        ("accumulate", c_int64),
        ("accumulate_ramp", c_int64),
        ("average_decay", c_double),
        ("evaluate_every", c_int64),
        ("patience", c_int64),
        ("path", c_char_p),
        ("best_path", c_char_p),
        ("keep_every", c_int64),
        ("keep_stem", c_char_p),
        ("save_every", c_int64),
        ("save_seconds", c_double),
        ("note", c_char_p),
        ("log_path", c_char_p),
        ("listener", wg_train_listener),
        ("listener_context", c_void_p),
        ("stop", c_void_p),
        ("group", c_void_p),
        ("zero", c_int),
        ("bf16_gradients", c_bool),
        ("step_in_backward", c_bool),
        ("matmul_dtype", c_int),
    ]


class wg_evaluation_options(Structure):
    _fields_ = [
        ("by_document", c_bool),
        ("predictions", c_char_p),
        ("batch", c_int64),
        ("lowercase", c_bool),
        ("bleu_tokens", c_int),
        ("beam", wg_beam_options),
    ]


class wg_training_setup(Structure):
    _fields_ = [
        ("model", c_void_p),
        ("tokenizer", c_void_p),
        ("training", c_void_p),
        ("held_out", c_void_p),
        ("training_path", c_char_p),
        ("held_out_path", c_char_p),
        ("checkpoint", c_char_p),
        ("options", c_void_p),
        ("batch", c_int64),
        ("sequence", c_int64),
        ("seed", c_uint64),
        ("evaluation_batches", c_int64),
        ("evaluation", c_void_p),
        ("group", c_void_p),
    ]


class wg_training(Structure):
    _fields_ = [
        ("objective", c_void_p),
        ("setup", wg_training_setup),
        ("model", wg_model),
        ("batches", c_void_p),
        ("fingerprint", c_int64),
        ("examples", c_int64),
        ("step_examples", c_int64),
        ("run_examples", c_int64),
        ("ramp_examples", c_int64),
        ("context", c_void_p),
        ("standard_options", c_void_p),
    ]


class wg_use_options(Structure):
    _fields_ = [
        ("top", c_int64),
        ("beam", c_int64),
        ("draws", c_bool),
        ("generation", wg_generation_options),
        ("generator", wg_generator),
    ]


class wg_prompt_room(Structure):
    _fields_ = [
        ("positions", c_int64),
        ("most_read", c_int64),
        ("most_written", c_int64),
    ]


class wg_translation_use(Structure):
    _fields_ = [
        ("batch", c_int64),
        ("beam", wg_beam_options),
        ("first_number", c_int64),
        ("group", c_void_p),
    ]


class wg_candidate(Structure):
    _fields_ = [
        ("text", c_char_p),
        ("probability", c_double),
    ]


class wg_filled_blank(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("text", c_char_p),
        ("tokens", c_int64),
        ("end", c_int),
        ("candidate_count", c_int64),
        ("candidates", c_void_p),
    ]


class wg_filled(Structure):
    _fields_ = [
        ("text", c_char_p),
        ("blank_count", c_int64),
        ("blanks", c_void_p),
    ]


class wg_text_source(Structure):
    _fields_ = [
        ("text", c_char_p),
        ("file", c_char_p),
        ("line", c_int64),
    ]


class wg_score(Structure):
    _fields_ = [
        ("log_probability", c_double),
        ("tokens", c_int64),
    ]


class wg_score_options(Structure):
    _fields_ = [
        ("within_words", c_bool),
        ("causal", c_bool),
        ("batch_tokens", c_int64),
        ("listener", CFUNCTYPE(None, c_int64, c_int64, c_void_p)),
        ("context", c_void_p),
        ("stop", c_void_p),
        ("group", c_void_p),
    ]


class wg_text_batch(Structure):
    _fields_ = [
        ("count", c_int64),
        ("length", c_int64),
        ("ids", c_void_p),
    ]


class wg_embed_options(Structure):
    _fields_ = [
        ("pooling", c_int),
        ("not_normalized", c_bool),
        ("batch_tokens", c_int64),
        ("stop", c_void_p),
        ("group", c_void_p),
    ]


class wg_metric_row(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("weight", c_char_p),
        ("of", c_char_p),
        ("optional", c_bool),
        ("value", CFUNCTYPE(c_double, c_void_p)),
        ("text", CFUNCTYPE(c_char_p, c_void_p)),
    ]


class wg_objective(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("title", c_char_p),
        ("shapes", c_int),
        ("finetunes", c_bool),
        ("marks", c_char_p * 2),
        ("text", c_int),
        ("settings", wg_setting_table),
        ("training", c_char_p),
        ("usual_batch", c_int64),
        ("usual_sequence", c_int64),
        ("sizes", CFUNCTYPE(None, c_void_p)),
        ("cuts_sequences", c_bool),
        ("evaluation", c_uint),
        ("adapt", CFUNCTYPE(c_int, c_void_p, CFUNCTYPE(None, c_char_p, c_void_p), c_void_p, c_void_p, c_void_p)),
        ("load", CFUNCTYPE(c_int, c_char_p, c_void_p, c_void_p)),
        ("batches", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_int64, c_int64, c_uint64)),
        ("batch_size", c_size_t),
        ("batch_tokens", c_size_t),
        ("begin", CFUNCTYPE(c_int, c_void_p)),
        ("end", CFUNCTYPE(None, c_void_p)),
        ("loss", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("weigh", CFUNCTYPE(c_int, c_void_p, c_void_p)),
        ("evaluate", CFUNCTYPE(c_int, c_void_p, c_int64, c_void_p)),
        ("config", CFUNCTYPE(c_char_p, c_void_p)),
        ("describe", CFUNCTYPE(None, c_void_p, c_void_p)),
        ("metrics", c_void_p),
        ("headline", c_char_p),
        ("print", CFUNCTYPE(None, c_void_p, c_void_p)),
        ("show_batch", CFUNCTYPE(c_int, c_void_p, c_void_p)),
        ("fills", c_uint),
        ("fill", CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_char_p, c_void_p)),
        ("prompt", CFUNCTYPE(c_int, c_void_p, c_void_p, c_char_p, c_void_p, c_void_p)),
        ("generate", CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_void_p)),
        ("translate", CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int64, c_void_p, c_void_p)),
        ("score_frame", c_int64),
        ("scores_within_words", c_bool),
        ("scores_causally", c_bool),
        ("score", CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)),
    ]


class wg_mlm_options(Structure):
    _fields_ = [
        ("masked_share", c_double),
        ("final_masked_share", c_double),
        ("unit", c_int),
        ("span_mean", c_double),
        ("causal_share", c_double),
    ]


class wg_blank_infilling_options(Structure):
    _fields_ = [
        ("masked_share", c_double),
        ("span_mean", c_double),
        ("sentence_share", c_double),
        ("document_share", c_double),
    ]


class wg_labelled_text_options(Structure):
    _fields_ = [
        ("text_column", c_char_p),
        ("text_pair_column", c_char_p),
        ("label_column", c_char_p),
    ]


class wg_contrastive_options(Structure):
    _fields_ = [
        ("temperature", c_double),
        ("dropout", c_double),
        ("pooling", c_int),
    ]


class wg_token_labels_options(Structure):
    _fields_ = [
        ("token_column", c_char_p),
        ("tag_column", c_char_p),
    ]


class wg_cloze_options(Structure):
    _fields_ = [
        ("pattern", c_char_p),
        ("verbalizer", wg_setting_list),
    ]


class wg_causal_batch(Structure):
    _fields_ = [
        ("ids", c_void_p),
        ("labels", c_void_p),
        ("tokens", c_int64),
    ]


class wg_token_window(Structure):
    _fields_ = [
        ("start", c_int64),
        ("end", c_int64),
    ]


class wg_causal_batch_options(Structure):
    _fields_ = [
        ("batch", c_int64),
        ("sequence", c_int64),
        ("seed", c_uint64),
    ]


# ---- Prototypes: result and parameters ----

FUNCTIONS = {
    "wg_abs": (c_void_p, [c_void_p]),
    "wg_acos": (c_void_p, [c_void_p]),
    "wg_acosh": (c_void_p, [c_void_p]),
    "wg_activate": (c_void_p, [c_int, c_void_p]),
    "wg_activation_checkpoint": (c_int, [wg_function, c_void_p, c_int, c_void_p, c_int, c_void_p, c_void_p]),
    "wg_activation_name": (c_char_p, [c_int]),
    "wg_adafactor_new": (c_void_p, [c_void_p]),
    "wg_adam_new": (c_void_p, [c_void_p]),
    "wg_adamw_new": (c_void_p, [c_void_p]),
    "wg_adaptive_avg_pool1d": (c_void_p, [c_void_p, c_void_p]),
    "wg_adaptive_avg_pool2d": (c_void_p, [c_void_p, c_void_p]),
    "wg_adaptive_avg_pool3d": (c_void_p, [c_void_p, c_void_p]),
    "wg_adaptive_max_pool1d": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "wg_adaptive_max_pool2d": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "wg_adaptive_max_pool3d": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "wg_add": (c_void_p, [c_void_p, c_void_p]),
    "wg_add_": (c_int, [c_void_p, c_void_p, c_double]),
    "wg_add_norm_after": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "wg_add_norm_before": (c_void_p, [c_void_p, c_void_p]),
    "wg_add_norm_new": (c_void_p, [c_void_p, c_char_p, c_int64, c_void_p]),
    "wg_add_scalar": (c_void_p, [c_void_p, c_double]),
    "wg_addcdiv": (c_void_p, [c_void_p, c_void_p, c_void_p, c_double]),
    "wg_addcmul": (c_void_p, [c_void_p, c_void_p, c_void_p, c_double]),
    "wg_addmm": (c_void_p, [c_void_p, c_void_p, c_void_p, c_double, c_double]),
    "wg_affine": (c_void_p, [c_void_p, c_double, c_double]),
    "wg_alias": (c_void_p, [c_void_p]),
    "wg_all": (c_void_p, [c_void_p, c_int, c_void_p, c_bool]),
    "wg_alloc_get_stats": (wg_alloc_stats, []),
    "wg_alloc_reset_peak": (None, []),
    "wg_alloc_trim": (None, []),
    "wg_any": (c_void_p, [c_void_p, c_int, c_void_p, c_bool]),
    "wg_apply": (c_int, [c_void_p, c_int, c_void_p, c_void_p, c_void_p]),
    "wg_apply_one": (c_void_p, [c_void_p, c_int, c_void_p, c_void_p]),
    "wg_arange": (c_void_p, [c_int, c_double, c_double, c_double]),
    "wg_argmax": (c_void_p, [c_void_p, c_int, c_bool]),
    "wg_argmin": (c_void_p, [c_void_p, c_int, c_bool]),
    "wg_argsort": (c_void_p, [c_void_p, c_int, c_bool]),
    "wg_asin": (c_void_p, [c_void_p]),
    "wg_asinh": (c_void_p, [c_void_p]),
    "wg_at": (c_double, [c_void_p, c_void_p]),
    "wg_atan": (c_void_p, [c_void_p]),
    "wg_atan2": (c_void_p, [c_void_p, c_void_p]),
    "wg_atanh": (c_void_p, [c_void_p]),
    "wg_attention": (c_void_p, [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p]),
    "wg_average_add": (c_int, [c_void_p, c_void_p]),
    "wg_average_free": (None, [c_void_p]),
    "wg_average_new": (c_void_p, [c_double]),
    "wg_average_swap": (None, [c_void_p]),
    "wg_average_update": (None, [c_void_p]),
    "wg_avg_pool1d": (c_void_p, [c_void_p, c_void_p]),
    "wg_avg_pool2d": (c_void_p, [c_void_p, c_void_p]),
    "wg_avg_pool3d": (c_void_p, [c_void_p, c_void_p]),
    "wg_backward": (c_int, [c_void_p, c_void_p]),
    "wg_batch_aligned": (c_int, [c_void_p, c_uint32, c_int64]),
    "wg_batch_norm_forward": (c_void_p, [c_void_p, c_void_p]),
    "wg_batch_norm_new": (c_void_p, [c_void_p, c_char_p, c_int64, c_void_p]),
    "wg_batch_norm_op": (c_int, [c_void_p, c_void_p, c_void_p, c_double, c_void_p, c_void_p, c_void_p]),
    "wg_batches_examples": (c_int64, [c_void_p]),
    "wg_batches_free": (None, [c_void_p]),
    "wg_batches_new": (c_void_p, [c_void_p, c_void_p]),
    "wg_batches_next": (c_int, [c_void_p, c_void_p]),
    "wg_batches_next_of_epoch": (c_int, [c_void_p, c_void_p]),
    "wg_batches_position": (wg_data_position, [c_void_p]),
    "wg_batches_restore": (c_int, [c_void_p, c_void_p, c_int64]),
    "wg_batches_save": (c_int, [c_void_p, c_void_p, c_int64]),
    "wg_batches_seek": (c_int, [c_void_p, c_void_p]),
    "wg_batches_skip": (c_int, [c_void_p]),
    "wg_bce_with_logits": (c_void_p, [c_void_p, c_void_p, c_void_p, c_void_p, c_int]),
    "wg_beam_search": (c_int, [c_void_p, c_int64, c_void_p, c_void_p, c_void_p]),
    "wg_bernoulli": (c_void_p, [c_void_p, c_void_p]),
    "wg_bernoulli_entropy": (c_void_p, [c_void_p]),
    "wg_bernoulli_kl": (c_void_p, [c_void_p, c_void_p]),
    "wg_bernoulli_log_prob": (c_void_p, [c_void_p, c_void_p]),
    "wg_bert_for_pretraining_new": (c_void_p, [c_void_p, c_uint64]),
    "wg_beta_entropy": (c_void_p, [c_void_p, c_void_p]),
    "wg_beta_kl": (c_void_p, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "wg_beta_log_prob": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "wg_beta_sample": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "wg_bigram_rows": (c_void_p, [c_void_p, c_void_p, c_void_p, c_int64]),
    "wg_bincount": (c_void_p, [c_void_p, c_void_p, c_int64]),
    "wg_bleu_tokens_find": (c_int, [c_char_p]),
    "wg_block_position_forward": (c_void_p, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "wg_block_position_new": (c_void_p, [c_void_p, c_char_p, c_int64, c_int64, c_void_p]),
    "wg_bpe_train": (c_void_p, [c_char_p, c_int64, c_void_p]),
    "wg_bpe_train_files": (c_void_p, [c_int, c_void_p, c_void_p]),
    "wg_byte_new": (c_void_p, []),
    "wg_cast": (c_void_p, [c_void_p, c_int]),
    "wg_cat": (c_void_p, [c_int, c_void_p, c_int]),
    "wg_categorical_entropy": (c_void_p, [c_void_p]),
    "wg_categorical_kl": (c_void_p, [c_void_p, c_void_p]),
    "wg_categorical_log_prob": (c_void_p, [c_void_p, c_void_p]),
    "wg_categorical_sample": (c_void_p, [c_void_p, c_void_p]),
    "wg_causal_batches_new": (c_void_p, [c_void_p, c_void_p]),
    "wg_cbrt": (c_void_p, [c_void_p]),
    "wg_cdist": (c_void_p, [c_void_p, c_void_p, c_double]),
    "wg_ceil": (c_void_p, [c_void_p]),
    "wg_char_train": (c_void_p, [c_char_p, c_int64, c_void_p]),
    "wg_char_train_files": (c_void_p, [c_int, c_void_p, c_void_p]),
    "wg_checkpoint_abort": (None, [c_void_p]),
    "wg_checkpoint_average": (c_int, [c_int, c_void_p, c_char_p, c_void_p]),
    "wg_checkpoint_average_files": (c_int, [c_int, c_void_p, c_char_p]),
    "wg_checkpoint_close": (None, [c_void_p]),
    "wg_checkpoint_commit": (c_int, [c_void_p]),
    "wg_checkpoint_create": (c_void_p, [c_char_p]),
    "wg_checkpoint_each": (c_int, [c_void_p, wg_checkpoint_visitor, c_void_p]),
    "wg_checkpoint_get_integer": (c_int, [c_void_p, c_char_p, c_void_p]),
    "wg_checkpoint_get_module": (c_int, [c_void_p, c_char_p, c_void_p]),
    "wg_checkpoint_get_number": (c_int, [c_void_p, c_char_p, c_void_p]),
    "wg_checkpoint_get_optimizer": (c_int, [c_void_p, c_void_p]),
    "wg_checkpoint_get_tensor": (c_void_p, [c_void_p, c_char_p]),
    "wg_checkpoint_get_text": (c_char_p, [c_void_p, c_char_p]),
    "wg_checkpoint_has": (c_bool, [c_void_p, c_char_p]),
    "wg_checkpoint_library": (c_char_p, []),
    "wg_checkpoint_open": (c_void_p, [c_char_p]),
    "wg_checkpoint_put_integer": (c_int, [c_void_p, c_char_p, c_int64]),
    "wg_checkpoint_put_module": (c_int, [c_void_p, c_char_p, c_void_p]),
    "wg_checkpoint_put_number": (c_int, [c_void_p, c_char_p, c_double]),
    "wg_checkpoint_put_optimizer": (c_int, [c_void_p, c_void_p]),
    "wg_checkpoint_put_tensor": (c_int, [c_void_p, c_char_p, c_void_p]),
    "wg_checkpoint_put_text": (c_int, [c_void_p, c_char_p, c_char_p]),
    "wg_cholesky": (c_void_p, [c_void_p, c_bool]),
    "wg_chunk": (c_int, [c_void_p, c_int, c_int, c_void_p]),
    "wg_clamp": (c_void_p, [c_void_p, c_double, c_double]),
    "wg_clone": (c_void_p, [c_void_p]),
    "wg_commit": (c_char_p, []),
    "wg_config_boolean": (c_int, [c_void_p, c_char_p, c_void_p]),
    "wg_config_check": (c_int, [c_void_p, c_int, c_void_p]),
    "wg_config_free": (None, [c_void_p]),
    "wg_config_has": (c_bool, [c_void_p, c_char_p]),
    "wg_config_integer": (c_int, [c_void_p, c_char_p, c_void_p]),
    "wg_config_load": (c_void_p, [c_char_p]),
    "wg_config_new": (c_void_p, []),
    "wg_config_number": (c_int, [c_void_p, c_char_p, c_void_p]),
    "wg_config_parse": (c_void_p, [c_char_p, c_char_p]),
    "wg_config_require": (c_int, [c_void_p, c_int, c_void_p]),
    "wg_config_set_boolean": (c_int, [c_void_p, c_char_p, c_bool]),
    "wg_config_set_integer": (c_int, [c_void_p, c_char_p, c_int64]),
    "wg_config_set_number": (c_int, [c_void_p, c_char_p, c_double]),
    "wg_config_set_text": (c_int, [c_void_p, c_char_p, c_char_p]),
    "wg_config_text": (c_int, [c_void_p, c_char_p, c_void_p]),
    "wg_config_to_json": (c_char_p, [c_void_p]),
    "wg_contiguous": (c_void_p, [c_void_p]),
    "wg_conv1d": (c_void_p, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "wg_conv1d_new": (c_void_p, [c_void_p, c_char_p, c_int64, c_int64, c_void_p, c_void_p]),
    "wg_conv2d": (c_void_p, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "wg_conv2d_new": (c_void_p, [c_void_p, c_char_p, c_int64, c_int64, c_void_p, c_void_p]),
    "wg_conv3d": (c_void_p, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "wg_conv3d_new": (c_void_p, [c_void_p, c_char_p, c_int64, c_int64, c_void_p, c_void_p]),
    "wg_conv_forward": (c_void_p, [c_void_p, c_void_p]),
    "wg_conv_transpose1d": (c_void_p, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "wg_conv_transpose1d_new": (c_void_p, [c_void_p, c_char_p, c_int64, c_int64, c_void_p, c_void_p]),
    "wg_conv_transpose2d": (c_void_p, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "wg_conv_transpose2d_new": (c_void_p, [c_void_p, c_char_p, c_int64, c_int64, c_void_p, c_void_p]),
    "wg_conv_transpose3d": (c_void_p, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "wg_conv_transpose3d_new": (c_void_p, [c_void_p, c_char_p, c_int64, c_int64, c_void_p, c_void_p]),
    "wg_convert": (c_int, [c_char_p, c_char_p, c_void_p, c_void_p]),
    "wg_copy_": (c_int, [c_void_p, c_void_p]),
    "wg_corpus_check": (c_int, [c_int, c_void_p, c_void_p, c_void_p]),
    "wg_cos": (c_void_p, [c_void_p]),
    "wg_cosh": (c_void_p, [c_void_p]),
    "wg_cosine_similarity": (c_void_p, [c_void_p, c_void_p, c_int, c_double]),
    "wg_count_nonzero": (c_void_p, [c_void_p, c_int, c_void_p, c_bool]),
    "wg_cross_entropy": (c_void_p, [c_void_p, c_void_p, c_int64, c_void_p]),
    "wg_cummax": (c_int, [c_void_p, c_int, c_void_p, c_void_p]),
    "wg_cummin": (c_int, [c_void_p, c_int, c_void_p, c_void_p]),
    "wg_cumprod": (c_void_p, [c_void_p, c_int]),
    "wg_cumsum": (c_void_p, [c_void_p, c_int]),
    "wg_dataset_bytes": (c_int64, [c_void_p]),
    "wg_dataset_count": (c_int64, [c_void_p, c_int64]),
    "wg_dataset_document_start": (c_int64, [c_void_p, c_int64]),
    "wg_dataset_documents": (c_int64, [c_void_p]),
    "wg_dataset_fingerprint": (c_int64, [c_void_p]),
    "wg_dataset_free": (None, [c_void_p]),
    "wg_dataset_from_text": (c_void_p, [c_char_p, c_int64, c_char_p, c_void_p, c_void_p]),
    "wg_dataset_is_token_file": (c_bool, [c_char_p]),
    "wg_dataset_load": (c_void_p, [c_int, c_void_p, c_void_p, c_void_p]),
    "wg_dataset_load_split": (c_int, [c_int, c_void_p, c_void_p, c_double, c_void_p, c_void_p, c_void_p]),
    "wg_dataset_pair_text": (c_char_p, [c_void_p, c_int, c_int64]),
    "wg_dataset_read": (c_int, [c_void_p, c_int64, c_int64, c_void_p]),
    "wg_dataset_sentence_start": (c_int64, [c_void_p, c_int64]),
    "wg_dataset_sentences": (c_int64, [c_void_p]),
    "wg_dataset_source_end": (c_int64, [c_void_p, c_int64]),
    "wg_dataset_sources": (c_int64, [c_void_p]),
    "wg_dataset_split": (c_int, [c_void_p, c_double, c_void_p, c_void_p]),
    "wg_dataset_tokens": (c_int64, [c_void_p]),
    "wg_dataset_unigram_loss": (c_double, [c_void_p, c_void_p, c_void_p]),
    "wg_dataset_vocabulary": (c_int64, [c_void_p]),
    "wg_dataset_weigh": (c_int, [c_void_p, c_int, c_void_p]),
    "wg_dataset_weights": (c_void_p, [c_void_p]),
    "wg_decode_stream_end": (c_char_p, [c_void_p, c_void_p]),
    "wg_decode_stream_free": (None, [c_void_p]),
    "wg_decode_stream_new": (c_void_p, [c_void_p, c_void_p]),
    "wg_decode_stream_next": (c_char_p, [c_void_p, c_int32, c_void_p]),
    "wg_default_generator": (c_void_p, []),
    "wg_dequantize": (c_void_p, [c_void_p, c_int]),
    "wg_det": (c_void_p, [c_void_p]),
    "wg_detach": (c_void_p, [c_void_p]),
    "wg_diag_embed": (c_void_p, [c_void_p, c_int64, c_int, c_int]),
    "wg_diagnosis_name": (c_char_p, [c_int]),
    "wg_diagnosis_words": (c_char_p, [c_int]),
    "wg_diagonal": (c_void_p, [c_void_p, c_int64, c_int, c_int]),
    "wg_digamma": (c_void_p, [c_void_p]),
    "wg_dirichlet_entropy": (c_void_p, [c_void_p]),
    "wg_dirichlet_kl": (c_void_p, [c_void_p, c_void_p]),
    "wg_dirichlet_log_prob": (c_void_p, [c_void_p, c_void_p]),
    "wg_dirichlet_sample": (c_void_p, [c_void_p, c_void_p]),
    "wg_div": (c_void_p, [c_void_p, c_void_p]),
    "wg_dot": (c_void_p, [c_void_p, c_void_p]),
    "wg_dropout": (c_void_p, [c_void_p, c_void_p, c_double]),
    "wg_dropout_op": (c_void_p, [c_void_p, c_double, c_uint64, c_uint64]),
    "wg_dtype_is_float": (c_bool, [c_int]),
    "wg_dtype_name": (c_char_p, [c_int]),
    "wg_dtype_size": (c_size_t, [c_int]),
    "wg_eigh": (c_int, [c_void_p, c_void_p, c_void_p]),
    "wg_eigvalsh": (c_void_p, [c_void_p]),
    "wg_einsum": (c_void_p, [c_char_p, c_int, c_void_p]),
    "wg_elu": (c_void_p, [c_void_p, c_double]),
    "wg_embed_texts": (c_int, [c_void_p, c_void_p, c_void_p, c_int64, c_void_p, c_void_p]),
    "wg_embedding_forward": (c_void_p, [c_void_p, c_void_p]),
    "wg_embedding_logits": (c_void_p, [c_void_p, c_void_p]),
    "wg_embedding_loss": (c_void_p, [c_void_p, c_void_p, c_void_p, c_int64, c_void_p]),
    "wg_embedding_new": (c_void_p, [c_void_p, c_char_p, c_int64, c_int64, c_void_p]),
    "wg_embedding_op": (c_void_p, [c_void_p, c_void_p, c_int64]),
    "wg_empty": (c_void_p, [c_int, c_int, c_void_p]),
    "wg_empty_like": (c_void_p, [c_void_p]),
    "wg_eq": (c_void_p, [c_void_p, c_void_p]),
    "wg_erf": (c_void_p, [c_void_p]),
    "wg_erfc": (c_void_p, [c_void_p]),
    "wg_error_clear": (None, []),
    "wg_error_enter": (None, [c_void_p]),
    "wg_error_leave": (None, [c_void_p]),
    "wg_error_name": (c_char_p, [c_int]),
    "wg_error_pending": (c_void_p, []),
    "wg_error_set_handler": (None, [wg_error_handler, c_void_p]),
    "wg_event_file_close": (None, [c_void_p]),
    "wg_event_file_end": (c_int, [c_void_p, c_int64, c_double]),
    "wg_event_file_open": (c_void_p, [c_char_p, c_double]),
    "wg_event_file_path": (c_char_p, [c_void_p]),
    "wg_event_file_scalar": (c_int, [c_void_p, c_char_p, c_double]),
    "wg_event_file_text": (c_int, [c_void_p, c_char_p, c_char_p]),
    "wg_exp": (c_void_p, [c_void_p]),
    "wg_exp2": (c_void_p, [c_void_p]),
    "wg_expand": (c_void_p, [c_void_p, c_int, c_void_p]),
    "wg_expm1": (c_void_p, [c_void_p]),
    "wg_exponential_entropy": (c_void_p, [c_void_p]),
    "wg_exponential_kl": (c_void_p, [c_void_p, c_void_p]),
    "wg_exponential_log_prob": (c_void_p, [c_void_p, c_void_p]),
    "wg_exponential_sample": (c_void_p, [c_void_p, c_void_p]),
    "wg_eye": (c_void_p, [c_int, c_int64, c_int64]),
    "wg_fail": (c_int, [c_int, c_char_p, c_char_p]),
    "wg_feed_forward_forward": (c_void_p, [c_void_p, c_void_p]),
    "wg_feed_forward_new": (c_void_p, [c_void_p, c_char_p, c_int64, c_int64, c_void_p]),
    "wg_fft": (c_void_p, [c_void_p, c_int64, c_int, c_int]),
    "wg_fft2": (c_void_p, [c_void_p, c_int64, c_int64, c_int, c_int, c_int]),
    "wg_fft_conv1d": (c_void_p, [c_void_p, c_void_p, c_void_p, c_int64]),
    "wg_fill_": (c_int, [c_void_p, c_double]),
    "wg_filled_clear": (None, [c_void_p]),
    "wg_flatten": (c_void_p, [c_void_p, c_int, c_int]),
    "wg_flip": (c_void_p, [c_void_p, c_int, c_void_p]),
    "wg_floor": (c_void_p, [c_void_p]),
    "wg_fmod": (c_void_p, [c_void_p, c_void_p]),
    "wg_format": (c_int64, [c_char_p, c_size_t, c_void_p]),
    "wg_from_array": (c_void_p, [c_int, c_int, c_void_p, c_void_p]),
    "wg_from_blob": (c_void_p, [c_int, c_int, c_void_p, c_void_p, c_void_p, CFUNCTYPE(None, c_void_p), c_void_p]),
    "wg_full": (c_void_p, [c_int, c_int, c_void_p, c_double]),
    "wg_full_like": (c_void_p, [c_void_p, c_double]),
    "wg_gamma_entropy": (c_void_p, [c_void_p, c_void_p]),
    "wg_gamma_kl": (c_void_p, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "wg_gamma_log_prob": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "wg_gamma_sample": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "wg_gated_feed_forward_forward": (c_void_p, [c_void_p, c_void_p]),
    "wg_gated_feed_forward_new": (c_void_p, [c_void_p, c_char_p, c_int64, c_int64, c_void_p]),
    "wg_gather": (c_void_p, [c_void_p, c_int, c_void_p]),
    "wg_ge": (c_void_p, [c_void_p, c_void_p]),
    "wg_geglu": (c_void_p, [c_void_p, c_void_p]),
    "wg_gelu": (c_void_p, [c_void_p]),
    "wg_gelu_tanh": (c_void_p, [c_void_p]),
    "wg_generate": (c_int, [c_void_p, c_int64, c_void_p, c_void_p]),
    "wg_glm_new": (c_void_p, [c_void_p, c_uint64]),
    "wg_glu": (c_void_p, [c_void_p, c_void_p]),
    "wg_gpt_new": (c_void_p, [c_void_p, c_uint64]),
    "wg_grad": (c_int, [c_int, c_void_p, c_void_p, c_int, c_void_p, c_void_p, c_void_p]),
    "wg_grad_enabled": (c_bool, []),
    "wg_gradcheck": (c_int, [wg_function, c_void_p, c_int, c_void_p, c_int, c_void_p, c_void_p]),
    "wg_gradcheck_example": (c_int, [c_void_p, c_void_p, c_void_p]),
    "wg_gradcheck_layer_at": (c_void_p, [c_int]),
    "wg_gradcheck_library_open": (c_int, [c_char_p, c_void_p, c_void_p]),
    "wg_gradcheck_model": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "wg_gradcheck_module": (c_int, [c_void_p, wg_function, c_void_p, c_int, c_void_p, c_int, c_void_p, c_void_p]),
    "wg_gradcheck_op": (c_int, [c_void_p, c_void_p, c_void_p]),
    "wg_gradient": (c_void_p, [c_void_p]),
    "wg_group_abort": (None, [c_void_p, c_char_p]),
    "wg_group_agree": (c_int, [c_void_p, c_char_p, c_char_p]),
    "wg_group_barrier": (c_int, [c_void_p]),
    "wg_group_broadcast": (c_int, [c_void_p, c_int, c_size_t, c_void_p]),
    "wg_group_check": (c_int, [c_void_p, c_int]),
    "wg_group_collect": (c_int, [c_void_p, c_int64, c_size_t, c_void_p, c_void_p]),
    "wg_group_collect_texts": (c_int, [c_void_p, c_int64, c_void_p, c_void_p]),
    "wg_group_join": (c_void_p, []),
    "wg_group_leave": (None, [c_void_p]),
    "wg_group_max": (c_int, [c_void_p, c_int, c_int64, c_void_p]),
    "wg_group_name": (c_char_p, [c_void_p]),
    "wg_group_norm_forward": (c_void_p, [c_void_p, c_void_p]),
    "wg_group_norm_new": (c_void_p, [c_void_p, c_char_p, c_int64, c_int64, c_void_p]),
    "wg_group_rank": (c_int, [c_void_p]),
    "wg_group_set_timeout": (None, [c_void_p, c_double]),
    "wg_group_size": (c_int, [c_void_p]),
    "wg_group_sum": (c_int, [c_void_p, c_int, c_int64, c_void_p]),
    "wg_group_threads": (c_int, [c_void_p]),
    "wg_grouped_mm": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "wg_gru_forward": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "wg_gru_new": (c_void_p, [c_void_p, c_char_p, c_int64, c_int64, c_void_p]),
    "wg_gru_op": (c_void_p, [c_void_p, c_void_p, c_void_p, c_void_p, c_bool]),
    "wg_gt": (c_void_p, [c_void_p, c_void_p]),
    "wg_hardsigmoid": (c_void_p, [c_void_p]),
    "wg_hardswish": (c_void_p, [c_void_p]),
    "wg_hessian": (c_int, [wg_function, c_void_p, c_int, c_void_p, c_void_p, c_void_p]),
    "wg_histc": (c_void_p, [c_void_p, c_int64, c_double, c_double]),
    "wg_histogram": (c_void_p, [c_void_p, c_void_p, c_void_p, c_bool]),
    "wg_history_clear": (None, [c_void_p]),
    "wg_history_column": (c_void_p, [c_void_p, c_char_p]),
    "wg_history_get": (c_int, [c_void_p, c_void_p, c_char_p]),
    "wg_hvp": (c_int, [wg_function, c_void_p, c_int, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p]),
    "wg_hypot": (c_void_p, [c_void_p, c_void_p]),
    "wg_ifft": (c_void_p, [c_void_p, c_int64, c_int, c_int]),
    "wg_ifft2": (c_void_p, [c_void_p, c_int64, c_int64, c_int, c_int, c_int]),
    "wg_index": (c_void_p, [c_void_p, c_int, c_void_p]),
    "wg_index_put": (c_void_p, [c_void_p, c_int, c_void_p, c_void_p, c_bool]),
    "wg_index_select": (c_void_p, [c_void_p, c_int, c_void_p]),
    "wg_initialize": (c_int, [c_void_p, c_void_p, c_void_p]),
    "wg_interpolate": (c_void_p, [c_void_p, c_int, c_void_p, c_int, c_bool]),
    "wg_inv": (c_void_p, [c_void_p]),
    "wg_irfft": (c_void_p, [c_void_p, c_int64, c_int, c_int]),
    "wg_irfft2": (c_void_p, [c_void_p, c_int64, c_int64, c_int, c_int, c_int]),
    "wg_is_deterministic": (c_bool, []),
    "wg_isfinite": (c_void_p, [c_void_p]),
    "wg_isinf": (c_void_p, [c_void_p]),
    "wg_isnan": (c_void_p, [c_void_p]),
    "wg_item": (c_double, [c_void_p]),
    "wg_jacobian": (c_int, [wg_function, c_void_p, c_int, c_void_p, c_int, c_void_p, c_void_p]),
    "wg_jvp": (c_int, [wg_function, c_void_p, c_int, c_void_p, c_void_p, c_int, c_void_p, c_void_p]),
    "wg_jvp_linear": (c_int, [c_void_p, c_void_p, c_void_p]),
    "wg_keep": (c_void_p, [c_void_p]),
    "wg_kernels_in_use": (wg_kernels, []),
    "wg_kl_div": (c_void_p, [c_void_p, c_void_p, c_bool, c_int]),
    "wg_kv_cache_clear": (None, [c_void_p]),
    "wg_kv_cache_init": (None, [c_void_p, c_int64]),
    "wg_l1_loss": (c_void_p, [c_void_p, c_void_p, c_int]),
    "wg_language_model_generate": (c_int, [c_void_p, c_int64, c_void_p, c_void_p]),
    "wg_laplace_entropy": (c_void_p, [c_void_p]),
    "wg_laplace_kl": (c_void_p, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "wg_laplace_log_prob": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "wg_laplace_sample": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "wg_layer_norm_forward": (c_void_p, [c_void_p, c_void_p]),
    "wg_layer_norm_new": (c_void_p, [c_void_p, c_char_p, c_int64, c_void_p]),
    "wg_layer_norm_op": (c_void_p, [c_void_p, c_void_p, c_void_p, c_double]),
    "wg_le": (c_void_p, [c_void_p, c_void_p]),
    "wg_leaky_relu": (c_void_p, [c_void_p, c_double]),
    "wg_left_out_free": (None, [c_void_p]),
    "wg_lerp": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "wg_lgamma": (c_void_p, [c_void_p]),
    "wg_linear_cross_entropy": (c_void_p, [c_void_p, c_void_p, c_void_p, c_void_p, c_int64, c_void_p]),
    "wg_linear_forward": (c_void_p, [c_void_p, c_void_p]),
    "wg_linear_loss": (c_void_p, [c_void_p, c_void_p, c_void_p, c_int64, c_void_p]),
    "wg_linear_new": (c_void_p, [c_void_p, c_char_p, c_int64, c_int64, c_void_p]),
    "wg_linear_op": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "wg_linear_scan": (c_void_p, [c_void_p, c_void_p, c_int, c_void_p]),
    "wg_linspace": (c_void_p, [c_int, c_double, c_double, c_int64]),
    "wg_lion_new": (c_void_p, [c_void_p]),
    "wg_llama_new": (c_void_p, [c_void_p, c_uint64]),
    "wg_log": (c_void_p, [c_void_p]),
    "wg_log10": (c_void_p, [c_void_p]),
    "wg_log1p": (c_void_p, [c_void_p]),
    "wg_log2": (c_void_p, [c_void_p]),
    "wg_log_sigmoid": (c_void_p, [c_void_p]),
    "wg_log_softmax": (c_void_p, [c_void_p, c_int]),
    "wg_logaddexp": (c_void_p, [c_void_p, c_void_p]),
    "wg_logcumsumexp": (c_void_p, [c_void_p, c_int]),
    "wg_logical_and": (c_void_p, [c_void_p, c_void_p]),
    "wg_logical_not": (c_void_p, [c_void_p]),
    "wg_logical_or": (c_void_p, [c_void_p, c_void_p]),
    "wg_logical_xor": (c_void_p, [c_void_p, c_void_p]),
    "wg_logspace": (c_void_p, [c_int, c_double, c_double, c_int64, c_double]),
    "wg_logsumexp": (c_void_p, [c_void_p, c_int, c_void_p, c_bool]),
    "wg_lora_attach": (c_int64, [c_void_p, c_void_p]),
    "wg_lora_attach_config": (c_int64, [c_void_p, c_char_p, c_char_p]),
    "wg_lora_config": (c_char_p, [c_void_p]),
    "wg_lora_count": (c_int64, [c_void_p]),
    "wg_lora_export": (c_int, [c_char_p, c_char_p, c_char_p]),
    "wg_lora_load": (c_int64, [c_void_p, c_char_p, c_char_p]),
    "wg_lora_merge": (c_int64, [c_void_p]),
    "wg_lora_save": (c_int, [c_void_p, c_char_p, c_char_p]),
    "wg_lstm_forward": (c_void_p, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "wg_lstm_new": (c_void_p, [c_void_p, c_char_p, c_int64, c_int64, c_void_p]),
    "wg_lstm_op": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p, c_bool, c_void_p, c_void_p]),
    "wg_lstsq": (c_void_p, [c_void_p, c_void_p]),
    "wg_lt": (c_void_p, [c_void_p, c_void_p]),
    "wg_mamba_forward": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "wg_mamba_new": (c_void_p, [c_void_p, c_char_p, c_int64, c_void_p]),
    "wg_manual_seed": (None, [c_uint64]),
    "wg_masked_fill": (c_void_p, [c_void_p, c_void_p, c_double]),
    "wg_masked_scatter": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "wg_masked_select": (c_void_p, [c_void_p, c_void_p]),
    "wg_matmul": (c_void_p, [c_void_p, c_void_p]),
    "wg_matmul_dtype": (c_int, []),
    "wg_matrix_exp": (c_void_p, [c_void_p]),
    "wg_matrix_norm": (c_void_p, [c_void_p, c_int, c_bool]),
    "wg_matrix_power": (c_void_p, [c_void_p, c_int64]),
    "wg_max": (c_void_p, [c_void_p, c_int, c_void_p, c_bool]),
    "wg_max_pool1d": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "wg_max_pool2d": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "wg_max_pool3d": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "wg_maximum": (c_void_p, [c_void_p, c_void_p]),
    "wg_mean": (c_void_p, [c_void_p, c_int, c_void_p, c_bool]),
    "wg_median": (c_void_p, [c_void_p, c_int, c_bool]),
    "wg_memory_available": (c_int64, []),
    "wg_meshgrid": (c_int, [c_int, c_void_p, c_void_p]),
    "wg_metric_value": (c_double, [c_void_p]),
    "wg_metrics_add": (c_int, [c_void_p, c_char_p, c_double, c_double]),
    "wg_metrics_get": (c_double, [c_void_p, c_char_p]),
    "wg_metrics_weight": (c_double, [c_void_p, c_char_p]),
    "wg_min": (c_void_p, [c_void_p, c_int, c_void_p, c_bool]),
    "wg_min_gru_forward": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "wg_min_gru_new": (c_void_p, [c_void_p, c_char_p, c_int64, c_int64, c_bool]),
    "wg_minimum": (c_void_p, [c_void_p, c_void_p]),
    "wg_mish": (c_void_p, [c_void_p]),
    "wg_model_attach_lora": (c_int64, [c_void_p, c_void_p]),
    "wg_model_config_check": (c_int, [c_void_p, c_void_p]),
    "wg_model_config_from_json": (c_int, [c_void_p, c_char_p, c_void_p]),
    "wg_model_config_json": (c_char_p, [c_void_p]),
    "wg_model_config_open": (c_int, [c_void_p, c_void_p, c_void_p]),
    "wg_model_config_to_json": (c_char_p, [c_void_p, c_void_p]),
    "wg_model_costs_of": (wg_model_costs, [c_void_p]),
    "wg_model_costs_of_config": (c_int, [c_char_p, c_void_p]),
    "wg_model_encode": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "wg_model_extend_vocabulary": (c_int, [c_void_p, c_void_p, c_void_p]),
    "wg_model_forward": (c_void_p, [c_void_p, c_void_p]),
    "wg_model_free": (None, [c_void_p]),
    "wg_model_from_config": (c_int, [c_void_p, c_void_p, c_uint64, c_void_p]),
    "wg_model_from_json": (c_int, [c_char_p, c_uint64, c_void_p]),
    "wg_model_load": (c_int, [c_char_p, c_void_p, c_void_p]),
    "wg_model_logits": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "wg_model_loss": (c_void_p, [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p]),
    "wg_model_new": (c_int, [c_void_p, c_char_p, c_uint64, c_void_p]),
    "wg_model_preset_config": (c_int, [c_void_p, c_char_p, c_void_p]),
    "wg_model_preset_find": (c_void_p, [c_void_p, c_char_p]),
    "wg_model_preset_name": (c_char_p, [c_int]),
    "wg_model_search": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p]),
    "wg_model_shift_right": (c_void_p, [c_void_p, c_void_p]),
    "wg_model_sizes_of": (wg_model_sizes, [c_void_p]),
    "wg_model_type_at": (c_void_p, [c_int]),
    "wg_model_type_find": (c_void_p, [c_char_p]),
    "wg_model_type_of": (c_void_p, [c_char_p]),
    "wg_modernbert_for_masked_lm_new": (c_void_p, [c_void_p, c_uint64]),
    "wg_module_add": (c_void_p, [c_void_p, c_char_p, c_void_p]),
    "wg_module_buffer": (c_void_p, [c_void_p, c_char_p, c_void_p]),
    "wg_module_checkpoint_activations": (None, [c_void_p, c_bool]),
    "wg_module_enter": (None, [c_void_p, c_void_p]),
    "wg_module_find": (c_void_p, [c_void_p, c_char_p]),
    "wg_module_finish": (c_void_p, [c_void_p]),
    "wg_module_free": (None, [c_void_p]),
    "wg_module_generator": (c_void_p, [c_void_p]),
    "wg_module_is_training": (c_bool, [c_void_p]),
    "wg_module_leave": (c_void_p, [c_void_p, c_void_p]),
    "wg_module_new": (c_void_p, [c_void_p, c_char_p, c_size_t]),
    "wg_module_no_decay": (None, [c_void_p, c_char_p]),
    "wg_module_parameter": (c_void_p, [c_void_p, c_char_p, c_int, c_void_p]),
    "wg_module_parameter_count": (c_int64, [c_void_p]),
    "wg_module_quantize": (c_int, [c_void_p, c_int]),
    "wg_module_requires_grad": (c_int, [c_void_p, c_bool]),
    "wg_module_state": (c_void_p, [c_void_p]),
    "wg_module_tie": (c_void_p, [c_void_p, c_char_p, c_void_p]),
    "wg_module_to": (c_int, [c_void_p, c_int]),
    "wg_module_train": (None, [c_void_p, c_bool]),
    "wg_movedim": (c_void_p, [c_void_p, c_int, c_void_p, c_void_p]),
    "wg_mse_loss": (c_void_p, [c_void_p, c_void_p, c_int]),
    "wg_mul": (c_void_p, [c_void_p, c_void_p]),
    "wg_mul_scalar": (c_void_p, [c_void_p, c_double]),
    "wg_multi_head_attention_forward": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "wg_multi_head_attention_new": (c_void_p, [c_void_p, c_char_p, c_int64, c_int64, c_void_p]),
    "wg_multinomial": (c_void_p, [c_void_p, c_void_p, c_int64, c_bool]),
    "wg_multivariate_normal_entropy": (c_void_p, [c_void_p]),
    "wg_multivariate_normal_kl": (c_void_p, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "wg_multivariate_normal_log_prob": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "wg_multivariate_normal_sample": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "wg_muon_new": (c_void_p, [c_void_p]),
    "wg_nan_to_num": (c_void_p, [c_void_p, c_double, c_double, c_double]),
    "wg_nanquantile": (c_void_p, [c_void_p, c_void_p, c_int, c_bool, c_int]),
    "wg_narrow": (c_void_p, [c_void_p, c_int, c_int64, c_int64]),
    "wg_ne": (c_void_p, [c_void_p, c_void_p]),
    "wg_neg": (c_void_p, [c_void_p]),
    "wg_nll_loss": (c_void_p, [c_void_p, c_void_p, c_int64, c_void_p]),
    "wg_nonzero": (c_void_p, [c_void_p]),
    "wg_norm": (c_void_p, [c_void_p, c_double, c_int, c_void_p, c_bool]),
    "wg_normal": (c_void_p, [c_void_p, c_int, c_int, c_void_p, c_double, c_double]),
    "wg_normal_entropy": (c_void_p, [c_void_p]),
    "wg_normal_kl": (c_void_p, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "wg_normal_log_prob": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "wg_normal_sample": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "wg_normalize_channels": (c_void_p, [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_double]),
    "wg_npy_load": (c_void_p, [c_char_p]),
    "wg_npy_save": (c_int, [c_void_p, c_char_p]),
    "wg_objective_at": (c_void_p, [c_int]),
    "wg_objective_find": (c_void_p, [c_char_p]),
    "wg_objective_of": (c_void_p, [c_char_p]),
    "wg_one_hot": (c_void_p, [c_void_p, c_int64]),
    "wg_ones": (c_void_p, [c_int, c_int, c_void_p]),
    "wg_ones_like": (c_void_p, [c_void_p]),
    "wg_op_at": (c_void_p, [c_int]),
    "wg_op_count": (c_int, []),
    "wg_op_find": (c_void_p, [c_char_p]),
    "wg_op_is_composite": (c_bool, [c_void_p]),
    "wg_op_library_open": (c_void_p, [c_char_p]),
    "wg_optimizer_add": (c_int, [c_void_p, c_char_p, c_void_p, c_bool]),
    "wg_optimizer_add_group": (c_int, [c_void_p, c_void_p]),
    "wg_optimizer_add_module": (c_int, [c_void_p, c_void_p]),
    "wg_optimizer_clip": (c_int, [c_void_p, c_double, c_void_p]),
    "wg_optimizer_free": (None, [c_void_p]),
    "wg_optimizer_from_rule": (c_void_p, [c_void_p, c_void_p]),
    "wg_optimizer_layer_decay": (c_int, [c_void_p, c_char_p, c_int64, c_char_p, c_double]),
    "wg_optimizer_name": (c_char_p, [c_int]),
    "wg_optimizer_new": (c_void_p, [c_void_p]),
    "wg_optimizer_step": (c_int, [c_void_p, c_double]),
    "wg_optimizer_step_begin": (c_int, [c_void_p, c_double, c_void_p]),
    "wg_optimizer_step_end": (c_int, [c_void_p]),
    "wg_optimizer_steps": (c_int64, [c_void_p]),
    "wg_optimizer_zero_grad": (None, [c_void_p]),
    "wg_outer": (c_void_p, [c_void_p, c_void_p]),
    "wg_pad": (c_void_p, [c_void_p, c_int, c_void_p, c_int, c_double]),
    "wg_padding_mask": (c_void_p, [c_void_p]),
    "wg_pair_batch_make": (c_int, [c_void_p, c_int64, c_void_p, c_void_p]),
    "wg_pair_fingerprint": (c_uint64, [c_uint64, c_void_p]),
    "wg_pair_frame_of": (c_int, [c_void_p, c_int64, c_void_p]),
    "wg_permute": (c_void_p, [c_void_p, c_int, c_void_p]),
    "wg_pinv": (c_void_p, [c_void_p, c_double]),
    "wg_polygamma": (c_void_p, [c_int, c_void_p]),
    "wg_pow": (c_void_p, [c_void_p, c_void_p]),
    "wg_pow_scalar": (c_void_p, [c_void_p, c_double]),
    "wg_prefix_mask": (c_void_p, [c_void_p, c_int64, c_int64]),
    "wg_print": (c_int, [c_void_p, c_void_p]),
    "wg_prod": (c_void_p, [c_void_p, c_int, c_void_p, c_bool]),
    "wg_product_flops": (c_double, []),
    "wg_profile_begin": (c_int, [c_bool]),
    "wg_profile_end": (None, []),
    "wg_profile_events": (c_int64, [c_void_p]),
    "wg_profile_free": (None, []),
    "wg_profile_kind_name": (c_char_p, [c_int]),
    "wg_profile_row_at": (c_void_p, [c_int]),
    "wg_profile_rows": (c_int, []),
    "wg_profile_seconds": (c_double, []),
    "wg_qr": (c_int, [c_void_p, c_bool, c_void_p, c_void_p]),
    "wg_quantile": (c_void_p, [c_void_p, c_void_p, c_int, c_bool, c_int]),
    "wg_quantization_find": (c_int, [c_char_p]),
    "wg_quantization_name": (c_char_p, [c_int]),
    "wg_quantize": (c_void_p, [c_void_p, c_int]),
    "wg_quantized_linear": (c_void_p, [c_void_p, c_void_p, c_int, c_void_p]),
    "wg_quantized_linears": (c_void_p, [c_void_p, c_int, c_void_p, c_int, c_void_p]),
    "wg_rand": (c_void_p, [c_void_p, c_int, c_int, c_void_p]),
    "wg_rand_like": (c_void_p, [c_void_p, c_void_p]),
    "wg_randint": (c_void_p, [c_void_p, c_int64, c_int64, c_int, c_void_p]),
    "wg_randn": (c_void_p, [c_void_p, c_int, c_int, c_void_p]),
    "wg_randn_like": (c_void_p, [c_void_p, c_void_p]),
    "wg_random_below": (c_uint64, [c_void_p, c_uint64]),
    "wg_random_normal": (c_double, [c_void_p]),
    "wg_random_uniform": (c_double, [c_void_p]),
    "wg_randperm": (c_void_p, [c_void_p, c_int64]),
    "wg_reciprocal": (c_void_p, [c_void_p]),
    "wg_register_hook": (c_int, [c_void_p, wg_gradient_hook, c_void_p]),
    "wg_register_post_accumulate_grad_hook": (c_int, [c_void_p, wg_post_accumulate_grad_hook, c_void_p]),
    "wg_reglu": (c_void_p, [c_void_p, c_void_p]),
    "wg_relative_position_forward": (c_void_p, [c_void_p, c_int64, c_int64, c_int64]),
    "wg_relative_position_new": (c_void_p, [c_void_p, c_char_p, c_int64, c_void_p]),
    "wg_release": (None, [c_void_p]),
    "wg_relu": (c_void_p, [c_void_p]),
    "wg_remainder": (c_void_p, [c_void_p, c_void_p]),
    "wg_remove_hook": (c_int, [c_void_p, c_int]),
    "wg_repeat_interleave": (c_void_p, [c_void_p, c_int64, c_int]),
    "wg_requires_grad": (c_bool, [c_void_p]),
    "wg_reshape": (c_void_p, [c_void_p, c_int, c_void_p]),
    "wg_retain_grad": (c_int, [c_void_p]),
    "wg_rfft": (c_void_p, [c_void_p, c_int64, c_int, c_int]),
    "wg_rfft2": (c_void_p, [c_void_p, c_int64, c_int64, c_int, c_int, c_int]),
    "wg_rms_norm_forward": (c_void_p, [c_void_p, c_void_p]),
    "wg_rms_norm_new": (c_void_p, [c_void_p, c_char_p, c_int64, c_void_p]),
    "wg_rms_norm_op": (c_void_p, [c_void_p, c_void_p, c_double, c_bool]),
    "wg_roberta_for_masked_lm_new": (c_void_p, [c_void_p, c_uint64]),
    "wg_roll": (c_void_p, [c_void_p, c_int, c_void_p, c_void_p]),
    "wg_rotary": (c_void_p, [c_void_p, c_void_p, c_void_p, c_int]),
    "wg_rotary_tables": (c_int, [c_int64, c_int64, c_int64, c_void_p, c_void_p, c_void_p]),
    "wg_round": (c_void_p, [c_void_p]),
    "wg_rsqrt": (c_void_p, [c_void_p]),
    "wg_sample_token": (c_int32, [c_void_p, c_int64, c_void_p, c_int64, c_void_p, c_void_p]),
    "wg_sampling_probabilities": (c_int, [c_void_p, c_int64, c_void_p, c_int64, c_void_p, c_void_p]),
    "wg_sampling_validate": (c_int, [c_void_p]),
    "wg_scalar": (c_void_p, [c_int, c_double]),
    "wg_scale_": (c_int, [c_void_p, c_double]),
    "wg_scatter": (c_void_p, [c_void_p, c_int, c_void_p, c_void_p]),
    "wg_scatter_add": (c_void_p, [c_void_p, c_int, c_void_p, c_void_p]),
    "wg_schedule_find": (c_int, [c_char_p]),
    "wg_schedule_name": (c_char_p, [c_int]),
    "wg_schedule_rate": (c_double, [c_void_p, c_int64]),
    "wg_scope_begin": (None, [c_void_p]),
    "wg_scope_clear_root": (c_int64, []),
    "wg_scope_end": (c_void_p, [c_void_p, c_void_p]),
    "wg_scope_escape": (c_void_p, [c_void_p]),
    "wg_score_texts": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p, c_int64, c_void_p, c_void_p]),
    "wg_searchsorted": (c_void_p, [c_void_p, c_void_p, c_bool]),
    "wg_segment_reduce": (c_void_p, [c_void_p, c_void_p, c_int, c_double]),
    "wg_select": (c_void_p, [c_void_p, c_int, c_int64]),
    "wg_selective_scan": (c_void_p, [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p]),
    "wg_sentencepiece_save": (c_int, [c_void_p, c_char_p]),
    "wg_sentencepiece_train": (c_void_p, [c_char_p, c_int64, c_void_p]),
    "wg_sentencepiece_train_files": (c_void_p, [c_int, c_void_p, c_void_p]),
    "wg_set_anomaly_mode": (c_bool, [c_bool]),
    "wg_set_deterministic": (c_int, [c_bool]),
    "wg_set_grad_enabled": (c_bool, [c_bool]),
    "wg_set_lifetime_checks": (c_bool, [c_bool]),
    "wg_set_matmul_dtype": (c_int, [c_int]),
    "wg_set_meta_init": (c_bool, [c_bool]),
    "wg_set_requires_grad": (c_int, [c_void_p, c_bool]),
    "wg_set_threads": (c_int, [c_int]),
    "wg_sgd_new": (c_void_p, [c_void_p]),
    "wg_sigmoid": (c_void_p, [c_void_p]),
    "wg_sign": (c_void_p, [c_void_p]),
    "wg_silu": (c_void_p, [c_void_p]),
    "wg_sin": (c_void_p, [c_void_p]),
    "wg_sinh": (c_void_p, [c_void_p]),
    "wg_sinusoidal_table": (c_void_p, [c_int, c_int64, c_int64, c_int64, c_void_p]),
    "wg_slice": (c_void_p, [c_void_p, c_int, c_int64, c_int64, c_int64]),
    "wg_slogdet": (c_int, [c_void_p, c_void_p, c_void_p]),
    "wg_smooth_l1_loss": (c_void_p, [c_void_p, c_void_p, c_double, c_int]),
    "wg_softmax": (c_void_p, [c_void_p, c_int]),
    "wg_softplus": (c_void_p, [c_void_p, c_double, c_double]),
    "wg_solve": (c_void_p, [c_void_p, c_void_p, c_bool]),
    "wg_solve_triangular": (c_void_p, [c_void_p, c_void_p, c_bool, c_bool, c_bool]),
    "wg_sort": (c_int, [c_void_p, c_int, c_bool, c_void_p, c_void_p]),
    "wg_spec_text": (c_char_p, [c_char_p, c_size_t, c_void_p]),
    "wg_split": (c_int, [c_void_p, c_int, c_int, c_void_p, c_void_p]),
    "wg_sqrt": (c_void_p, [c_void_p]),
    "wg_square": (c_void_p, [c_void_p]),
    "wg_squeeze": (c_void_p, [c_void_p, c_int]),
    "wg_stack": (c_void_p, [c_int, c_void_p, c_int]),
    "wg_stack_forward": (c_void_p, [c_void_p, c_int64, wg_stack_layer, c_void_p, c_void_p, c_void_p]),
    "wg_stack_output_rows": (c_void_p, [c_void_p, c_void_p]),
    "wg_state_dict_free": (None, [c_void_p]),
    "wg_std": (c_void_p, [c_void_p, c_int, c_void_p, c_double, c_bool]),
    "wg_student_t_entropy": (c_void_p, [c_void_p, c_void_p]),
    "wg_student_t_log_prob": (c_void_p, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "wg_student_t_sample": (c_void_p, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "wg_sub": (c_void_p, [c_void_p, c_void_p]),
    "wg_suggestion": (c_char_p, [c_char_p, c_size_t, c_char_p, CFUNCTYPE(c_char_p, c_void_p, c_int), c_void_p]),
    "wg_sum": (c_void_p, [c_void_p, c_int, c_void_p, c_bool]),
    "wg_sum_to": (c_void_p, [c_void_p, c_int, c_void_p]),
    "wg_svd": (c_int, [c_void_p, c_bool, c_void_p, c_void_p, c_void_p]),
    "wg_svdvals": (c_void_p, [c_void_p]),
    "wg_swiglu": (c_void_p, [c_void_p, c_void_p]),
    "wg_t5_new": (c_void_p, [c_void_p, c_uint64]),
    "wg_take": (c_void_p, [c_void_p, c_void_p]),
    "wg_take_along_axis": (c_void_p, [c_void_p, c_int, c_void_p]),
    "wg_tan": (c_void_p, [c_void_p]),
    "wg_tanh": (c_void_p, [c_void_p]),
    "wg_tensor_batches_new": (c_void_p, [c_int, c_void_p, c_void_p]),
    "wg_tensor_count": (c_int64, [c_void_p]),
    "wg_tensor_data": (c_void_p, [c_void_p]),
    "wg_tensor_dtype": (c_int, [c_void_p]),
    "wg_tensor_is_contiguous": (c_bool, [c_void_p]),
    "wg_tensor_ndim": (c_int, [c_void_p]),
    "wg_tensor_shape": (c_void_p, [c_void_p]),
    "wg_tensor_size": (c_int64, [c_void_p, c_int]),
    "wg_tensor_strides": (c_void_p, [c_void_p]),
    "wg_tensor_touch": (None, [c_void_p]),
    "wg_tensordot": (c_void_p, [c_void_p, c_void_p, c_int, c_void_p, c_void_p]),
    "wg_tensors_alive": (c_int64, []),
    "wg_tensors_fingerprint": (c_int64, [c_int, c_void_p]),
    "wg_text_free": (None, [c_char_p]),
    "wg_text_new": (c_char_p, [c_char_p]),
    "wg_threads": (c_int, []),
    "wg_tile": (c_void_p, [c_void_p, c_int, c_void_p]),
    "wg_to_array": (c_int, [c_void_p, c_void_p]),
    "wg_token_list_append": (c_int, [c_void_p, c_int32]),
    "wg_token_list_free": (None, [c_void_p]),
    "wg_token_pair_cut": (wg_token_pair, [c_void_p, c_int64]),
    "wg_tokenizer_decode": (c_char_p, [c_void_p, c_void_p, c_int64, c_void_p]),
    "wg_tokenizer_encode": (c_int, [c_void_p, c_char_p, c_int64, c_void_p, c_void_p]),
    "wg_tokenizer_export": (c_int, [c_void_p, c_char_p, c_void_p]),
    "wg_tokenizer_extend": (c_int, [c_void_p, c_int, c_void_p, c_int64, c_void_p]),
    "wg_tokenizer_free": (None, [c_void_p]),
    "wg_tokenizer_from_json": (c_void_p, [c_char_p]),
    "wg_tokenizer_id": (c_int32, [c_void_p, c_char_p]),
    "wg_tokenizer_kind": (c_char_p, [c_void_p]),
    "wg_tokenizer_load": (c_void_p, [c_char_p]),
    "wg_tokenizer_save": (c_int, [c_void_p, c_char_p]),
    "wg_tokenizer_size": (c_int64, [c_void_p]),
    "wg_tokenizer_special": (c_int32, [c_void_p, c_int]),
    "wg_tokenizer_to_json": (c_char_p, [c_void_p]),
    "wg_tokenizer_token": (c_char_p, [c_void_p, c_int32]),
    "wg_topk": (c_int, [c_void_p, c_int64, c_int, c_bool, c_void_p, c_void_p]),
    "wg_trace_write": (c_int, [c_char_p]),
    "wg_trainer_batches": (c_int64, [c_int64, c_int64, c_int64]),
    "wg_trainer_best": (c_bool, [c_void_p, c_void_p, c_void_p]),
    "wg_trainer_evaluations": (c_void_p, [c_void_p]),
    "wg_trainer_free": (None, [c_void_p]),
    "wg_trainer_history": (c_void_p, [c_void_p]),
    "wg_trainer_memory": (None, [c_void_p, c_void_p, c_void_p]),
    "wg_trainer_new": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "wg_trainer_resume": (c_int, [c_void_p, c_char_p]),
    "wg_trainer_run": (c_int, [c_void_p]),
    "wg_trainer_save": (c_int, [c_void_p, c_char_p]),
    "wg_trainer_steps": (c_int64, [c_void_p]),
    "wg_trainer_swap_average": (None, [c_void_p]),
    "wg_trainer_weight_bytes": (c_int64, [c_void_p]),
    "wg_training_evaluate": (c_int, [c_void_p, c_void_p]),
    "wg_training_free": (None, [c_void_p]),
    "wg_training_new": (c_void_p, [c_void_p, c_void_p]),
    "wg_training_task": (wg_task, [c_void_p]),
    "wg_transformer_new": (c_void_p, [c_void_p, c_uint64]),
    "wg_transpose": (c_void_p, [c_void_p, c_int, c_int]),
    "wg_tri": (c_void_p, [c_int, c_int64, c_int64, c_int64]),
    "wg_tril": (c_void_p, [c_void_p, c_int64]),
    "wg_triu": (c_void_p, [c_void_p, c_int64]),
    "wg_trunc": (c_void_p, [c_void_p]),
    "wg_trunc_normal": (c_void_p, [c_void_p, c_int, c_int, c_void_p, c_double, c_double, c_double, c_double]),
    "wg_unflatten": (c_void_p, [c_void_p, c_int, c_int, c_void_p]),
    "wg_unfold": (c_void_p, [c_void_p, c_int, c_int64, c_int64]),
    "wg_uniform_entropy": (c_void_p, [c_void_p, c_void_p]),
    "wg_uniform_kl": (c_void_p, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "wg_uniform_log_prob": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "wg_uniform_sample": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "wg_unique": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "wg_unsorted_segment_reduce": (c_void_p, [c_void_p, c_void_p, c_int64, c_int, c_double]),
    "wg_unsqueeze": (c_void_p, [c_void_p, c_int]),
    "wg_var": (c_void_p, [c_void_p, c_int, c_void_p, c_double, c_bool]),
    "wg_version": (c_char_p, []),
    "wg_vjp": (c_int, [wg_function, c_void_p, c_int, c_void_p, c_int, c_void_p, c_void_p, c_void_p, c_void_p]),
    "wg_vmap": (c_int, [wg_function, c_void_p, c_int, c_void_p, c_void_p, c_int, c_void_p]),
    "wg_vocabulary_extension_clear": (None, [c_void_p]),
    "wg_watch_attention": (None, [wg_attention_watcher, c_void_p]),
    "wg_weights_abort": (None, [c_void_p]),
    "wg_weights_close": (None, [c_void_p]),
    "wg_weights_commit": (c_int, [c_void_p]),
    "wg_weights_config": (c_char_p, [c_void_p]),
    "wg_weights_count": (c_int64, [c_void_p]),
    "wg_weights_create": (c_void_p, [c_char_p, c_char_p, c_void_p, c_int64, c_void_p]),
    "wg_weights_file_bytes": (c_int64, [c_void_p]),
    "wg_weights_find": (c_int64, [c_void_p, c_char_p]),
    "wg_weights_find_config": (c_char_p, [c_void_p, c_char_p]),
    "wg_weights_find_tokenizer": (c_void_p, [c_void_p, c_char_p]),
    "wg_weights_format": (c_char_p, [c_void_p]),
    "wg_weights_get_module": (c_int, [c_void_p, c_void_p]),
    "wg_weights_get_module_partial": (c_int64, [c_void_p, c_char_p, c_void_p, c_void_p]),
    "wg_weights_metadata": (c_char_p, [c_void_p]),
    "wg_weights_name": (c_char_p, [c_void_p, c_int64]),
    "wg_weights_open": (c_void_p, [c_char_p]),
    "wg_weights_put": (c_int, [c_void_p, c_int64, c_void_p]),
    "wg_weights_read": (c_void_p, [c_void_p, c_int64]),
    "wg_weights_spec": (c_void_p, [c_void_p, c_int64]),
    "wg_weights_stored": (c_char_p, [c_void_p, c_int64]),
    "wg_weights_stored_bytes": (c_int64, [c_void_p, c_int64]),
    "wg_weights_tokenizer": (c_char_p, [c_void_p]),
    "wg_where": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "wg_wordpiece_load": (c_void_p, [c_char_p, c_void_p]),
    "wg_wordpiece_new": (c_void_p, [c_int64, c_void_p, c_void_p]),
    "wg_wordpiece_save": (c_int, [c_void_p, c_char_p]),
    "wg_wordpiece_train": (c_void_p, [c_char_p, c_int64, c_void_p]),
    "wg_wordpiece_train_files": (c_void_p, [c_int, c_void_p, c_void_p]),
    "wg_xlogy": (c_void_p, [c_void_p, c_void_p]),
    "wg_zero_grad": (None, [c_void_p]),
    "wg_zeros": (c_void_p, [c_int, c_int, c_void_p]),
    "wg_zeros_like": (c_void_p, [c_void_p]),
}
