train_public = \
	train/history.h \
	train/metrics.h \
	train/trainer.h \
	$(nil)

train_sources = \
	train/internal.h \
	train/exchange.c \
	train/history.c \
	train/trainer.c \
	train/trainer_checkpoint.c \
	train/trainer_diagnosis.c \
	train/trainer_group.c \
	$(nil)
