data_public = \
	data/batches/batches.h \
	data/dataset/dataset.h \
	data/tokenizer/tokenizer.h \
	$(nil)

data_sources = \
	data/internal.h \
	data/batches/batches.c \
	data/batches/pair_batch.c \
	data/dataset/corpus_check.c \
	data/dataset/dataset.c \
	data/dataset/labelled_text.c \
	data/dataset/examples.c \
	data/dataset/examples.h \
	data/dataset/read_text.c \
	data/dataset/squad.c \
	data/dataset/table.c \
	data/dataset/tagged_words.c \
	data/dataset/token_file.c \
	data/dataset/token_file.h \
	data/score/bleu.c \
	data/score/score.h \
	data/score/spans.c \
	data/score/squad_score.c \
	data/tokenizer/added_tokens.c \
	data/tokenizer/basic_tokenizer.c \
	data/tokenizer/bpe.c \
	data/tokenizer/characters.c \
	data/tokenizer/extend.c \
	data/tokenizer/files.c \
	data/tokenizer/huggingface.c \
	data/tokenizer/huggingface_write.c \
	data/tokenizer/kind.h \
	data/tokenizer/llama2c.c \
	data/tokenizer/merges.c \
	data/tokenizer/merges.h \
	data/tokenizer/normalize.c \
	data/tokenizer/sentencepiece.c \
	data/tokenizer/sentencepiece.h \
	data/tokenizer/sentencepiece_model.c \
	data/tokenizer/sentencepiece_train.c \
	data/tokenizer/split.c \
	data/tokenizer/text_file.c \
	data/tokenizer/text_file.h \
	data/tokenizer/tokenizer.c \
	data/tokenizer/unigram.c \
	data/tokenizer/wordpiece.c \
	$(nil)
