objectives_public = \
	objectives/bert_pretraining.h \
	objectives/blank_infilling.h \
	objectives/classification.h \
	objectives/glm_cloze.h \
	objectives/glm_fill.h \
	objectives/language_modeling.h \
	objectives/question_answering.h \
	objectives/t5_pretraining.h \
	objectives/translation.h \
	objectives/translator.h \
	$(nil)

objectives_sources = \
	objectives/bert_pretraining.c \
	objectives/bert_task.c \
	objectives/bert_task.h \
	objectives/blank_infilling.c \
	objectives/classification.c \
	objectives/classification_bert.c \
	objectives/classification_cloze.c \
	objectives/classification_parts.h \
	objectives/glm_cloze.c \
	objectives/glm_fill.c \
	objectives/glm_task.c \
	objectives/glm_task.h \
	objectives/language_modeling.c \
	objectives/question_answering.c \
	objectives/t5_fill.c \
	objectives/t5_pretraining.c \
	objectives/task_checkpoint.c \
	objectives/task_checkpoint.h \
	objectives/transformer_translate.c \
	objectives/translation.c \
	objectives/translator.c \
	$(nil)
