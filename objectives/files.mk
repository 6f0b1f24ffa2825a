objectives_public = \
	objectives/blank_infilling.h \
	objectives/causal_lm.h \
	objectives/classification.h \
	objectives/cloze.h \
	objectives/masked_lm.h \
	objectives/objective.h \
	objectives/question_answering.h \
	objectives/span_corruption.h \
	objectives/translation.h \
	$(nil)

objectives_sources = \
	objectives/blank_batches.c \
	objectives/blank_batches.h \
	objectives/blank_infilling.c \
	objectives/causal_lm.c \
	objectives/classification.c \
	objectives/cloze.c \
	objectives/internal.h \
	objectives/labelling.c \
	objectives/labelling.h \
	objectives/masked_lm.c \
	objectives/objective.c \
	objectives/question_answering.c \
	objectives/span_corruption.c \
	objectives/translation.c \
	$(nil)
