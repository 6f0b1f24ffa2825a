models_public = \
	models/bert.h \
	models/bert_heads.h \
	models/generate/beam.h \
	models/generate/decode.h \
	models/generate/sampling.h \
	models/glm.h \
	models/gpt.h \
	models/language_model.h \
	models/llama.h \
	models/t5.h \
	models/transformer.h \
	$(nil)

models_sources = \
	models/bert.c \
	models/bert_config.c \
	models/bert_heads.c \
	models/bert_heads_config.c \
	models/bert_heads_config.h \
	models/bert_heads_load.c \
	models/config_fields.c \
	models/config_fields.h \
	models/config_rules.c \
	models/config_rules.h \
	models/decoder.c \
	models/decoder.h \
	models/generate/beam.c \
	models/generate/decode.c \
	models/generate/sampling.c \
	models/generate/seq2seq.c \
	models/generate/seq2seq.h \
	models/glm.c \
	objectives/glm_cloze_config.h \
	models/glm_config.c \
	models/gpt.c \
	models/gpt_config.c \
	models/language_model.c \
	models/language_model_load.c \
	models/llama.c \
	models/llama_config.c \
	models/load.c \
	models/load.h \
	models/t5.c \
	models/t5_config.c \
	models/transformer.c \
	models/transformer_config.c \
	models/transformer_load.c \
	$(nil)
