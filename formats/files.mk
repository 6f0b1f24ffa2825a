formats_public = \
	formats/convert.h \
	formats/weights_files.h \
	$(nil)

formats_sources = \
	formats/convert.c \
	formats/gguf.c \
	formats/gguf_header.c \
	formats/gguf_tokenizer.c \
	formats/llama2c.c \
	formats/internal.h \
	formats/model_card.c \
	formats/weights_files.c \
	$(nil)
