objectives_public = \
	objectives/causal_lm.h \
	objectives/objective.h \
	$(nil)

objectives_sources = \
	objectives/blank_batches.c \
	objectives/blank_infilling.c \
	objectives/blank_infilling.h \
	objectives/causal_lm.c \
	objectives/cloze.c \
	objectives/cloze.h \
	objectives/contrastive.c \
	objectives/head.c \
	objectives/head.h \
	objectives/internal.h \
	objectives/masked_lm.c \
	objectives/masked_lm.h \
	objectives/masked_packed.c \
	objectives/masked_pairs.c \
	objectives/objective.c \
	objectives/question_answering.c \
	objectives/text_batches.c \
	objectives/span_corruption.c \
	objectives/span_corruption.h \
	objectives/token_labels.c \
	objectives/translation.c \
	objectives/translation_batches.c \
	objectives/translation.h \
	$(nil)
