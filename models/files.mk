models_public = \
	models/bert.h \
	models/generate/beam.h \
	models/generate/decode.h \
	models/glm.h \
	models/gpt.h \
	models/llama.h \
	models/model.h \
	models/modernbert.h \
	models/roberta.h \
	models/t5.h \
	models/transformer.h \
	$(nil)

models_sources = \
	models/bert.c \
	models/generate/beam.c \
	models/generate/decode.c \
	models/glm.c \
	models/gpt.c \
	models/gradcheck.c \
	models/heads.c \
	models/heads.h \
	models/internal.h \
	models/llama.c \
	models/model.c \
	models/modernbert.c \
	models/roberta.c \
	models/size.c \
	models/t5.c \
	models/transformer.c \
	models/vocabulary.c \
	$(nil)
