data_public = \
	data/batches/pair_batch.h \
	data/batches/batches.h \
	data/dataset/dataset.h \
	data/tokenizer/bpe.h \
	data/tokenizer/characters.h \
	data/tokenizer/tokenizer.h \
	data/tokenizer/wordpiece.h \
	$(nil)

data_sources = \
	data/batches/batches.c \
	data/batches/builder.h \
	data/batches/pair_batch.c \
	data/dataset/dataset.c \
	data/dataset/labelled_text.c \
	data/dataset/labelled_text.h \
	data/dataset/labels.c \
	data/dataset/labels.h \
	data/dataset/mmap.c \
	data/dataset/mmap.h \
	data/dataset/read_text.c \
	data/dataset/read_text.h \
	data/dataset/squad.c \
	data/dataset/squad.h \
	data/dataset/table.c \
	data/dataset/table.h \
	data/dataset/token_file.c \
	data/dataset/token_file.h \
	data/score/bleu.c \
	data/score/bleu.h \
	data/score/score.h \
	data/score/squad_score.c \
	data/tokenizer/added_tokens.c \
	data/tokenizer/added_tokens.h \
	data/tokenizer/basic_tokenizer.c \
	data/tokenizer/basic_tokenizer.h \
	data/tokenizer/bpe.c \
	data/tokenizer/bpe_kind.h \
	data/tokenizer/characters.c \
	data/tokenizer/files.c \
	data/tokenizer/huggingface.c \
	data/tokenizer/huggingface_write.c \
	data/tokenizer/kind.h \
	data/tokenizer/llama2c.c \
	data/tokenizer/merges.c \
	data/tokenizer/merges.h \
	data/tokenizer/normalize.c \
	data/tokenizer/normalize.h \
	data/tokenizer/sentencepiece.c \
	data/tokenizer/sentencepiece.h \
	data/tokenizer/sentencepiece_model.c \
	data/tokenizer/split.c \
	data/tokenizer/text_file.c \
	data/tokenizer/text_file.h \
	data/tokenizer/tokenizer.c \
	data/tokenizer/wordpiece.c \
	$(nil)
