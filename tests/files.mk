# The tests: one program a folder, the support that they share, and the scripts.

# Tests begin in this order: the three that take longest come first, so that the others fill the time
# beside them.
unit_tests = \
	tests/test_tensor \
	tests/test_ops \
	tests/test_data \
	tests/test_autograd \
	tests/test_base \
	tests/test_bench \
	tests/test_formats \
	tests/test_gradcheck \
	tests/test_io \
	tests/test_models \
	tests/test_nn \
	tests/test_objectives \
	tests/test_optim \
	tests/test_train \
	$(nil)

tests_test_autograd_SOURCES = \
	tests/autograd/activation_checkpointing.c \
	tests/autograd/anomaly.c \
	tests/autograd/autograd.c \
	tests/autograd/backward_limits.c \
	tests/autograd/functional.c \
	tests/autograd/hooks.c \
	tests/autograd/leaves.c \
	tests/autograd/leaves.h \
	tests/autograd/post_hooks.c \
	tests/autograd/transforms.c \
	tests/autograd/vmap.c \
	$(nil)

tests_test_base_SOURCES = \
	tests/base/alloc.c \
	tests/base/group.c \
	tests/base/parallel.c \
	tests/base/suggest.c \
	tests/base/system.c \
	$(nil)

tests_test_bench_SOURCES = \
	tests/bench/steps.c \
	bench/workload.c \
	$(nil)

tests_test_data_SOURCES = \
	tests/data/bleu.c \
	tests/data/bpe.c \
	tests/data/characters.c \
	tests/data/corpus.c \
	tests/data/correlation.c \
	tests/data/corpus_check.c \
	tests/data/extend.c \
	tests/data/huggingface.c \
	tests/data/labelled_text.c \
	tests/data/llama2c.c \
	tests/data/locale.c \
	tests/data/long_text.c \
	tests/data/mixture.c \
	tests/data/sentence_pairs.c \
	tests/data/sentencepiece.c \
	tests/data/sentencepiece_train.c \
	tests/data/spans.c \
	tests/data/squad.c \
	tests/data/tagged_words.c \
	tests/data/tensor_batches.c \
	tests/data/token_file.c \
	tests/data/tokenizer_reference.c \
	tests/data/wordpiece.c \
	tests/data/wordpiece_train.c \
	$(nil)

tests_test_formats_SOURCES = \
	tests/formats/convert.c \
	tests/formats/fuzz_seeds.c \
	tests/formats/gguf.c \
	tests/formats/shards.c \
	tests/formats/stories.c \
	tests/formats/tied.c \
	tests/formats/weights.c \
	$(nil)

tests_test_gradcheck_SOURCES = \
	tests/gradcheck/broken.c \
	tests/gradcheck/gradcheck.c \
	tests/gradcheck/kinds.c \
	tests/gradcheck/module.c \
	tests/gradcheck/sound.c \
	tests/gradcheck/sound.h \
	$(nil)

tests_test_io_SOURCES = \
	tests/io/adapter.c \
	tests/io/checkpoint.c \
	tests/io/checkpoint_damage.c \
	tests/io/checkpoint_files.c \
	tests/io/config.c \
	tests/io/event_file.c \
	tests/io/log.c \
	tests/io/storage_dtype.c \
	tests/io/toy.c \
	tests/io/toy.h \
	$(nil)

tests_test_models_SOURCES = \
	tests/models/beam.c \
	tests/models/bert.c \
	tests/models/bert_heads.c \
	tests/models/configurations.c \
	tests/models/decode.c \
	tests/models/extremes.c \
	tests/models/glm.c \
	tests/models/gradients.c \
	tests/models/language_model.c \
	tests/models/modernbert.c \
	tests/models/published_configs.c \
	tests/models/pytorch.c \
	tests/models/roberta.c \
	tests/models/sampling.c \
	tests/models/sizes.c \
	tests/models/stack.c \
	tests/models/transformer.c \
	tests/models/vocabulary.c \
	$(nil)

tests_test_nn_SOURCES = \
	tests/nn/attention_forms.c \
	tests/nn/batch_norm.c \
	tests/nn/decoder_layers.c \
	tests/nn/init.c \
	tests/nn/layer_case.c \
	tests/nn/layer_case.h \
	tests/nn/layer_forms.c \
	tests/nn/layers.c \
	tests/nn/lora.c \
	tests/nn/module.c \
	tests/nn/recurrent.c \
	tests/nn/sinusoidal.c \
	$(nil)

tests_test_objectives_SOURCES = \
	tests/objectives/mlm.c \
	tests/objectives/blank_infilling.c \
	tests/objectives/cloze.c \
	tests/objectives/blank_fill.c \
	tests/objectives/causal_lm.c \
	tests/objectives/score.c \
	tests/objectives/contrastive.c \
	tests/objectives/embed.c \
	tests/objectives/span_corruption.c \
	tests/objectives/batch_positions.c \
	tests/objectives/blank_batch.c \
	tests/objectives/cloze_batch.c \
	tests/objectives/masked_batch.c \
	tests/objectives/span_batch.c \
	tests/objectives/translation_batch.c \
	tests/objectives/every_objective.c \
	tests/objectives/task_run.c \
	tests/objectives/task_run.h \
	tests/objectives/translation.c \
	$(nil)

tests_test_ops_SOURCES = \
	tests/ops/attention.c \
	tests/ops/attention_step.c \
	tests/ops/conv.c \
	tests/ops/distributions.c \
	tests/ops/dropout.c \
	tests/ops/einsum.c \
	tests/ops/errors.c \
	tests/ops/extremes.c \
	tests/ops/fft.c \
	tests/ops/gradients.c \
	tests/ops/linalg_threads.c \
	tests/ops/linear_loss.c \
	tests/ops/loss.c \
	tests/ops/matmul.c \
	tests/ops/matrices.c \
	tests/ops/mixed_precision.c \
	tests/ops/norm.c \
	tests/ops/quantized.c \
	tests/ops/reduce.c \
	tests/ops/reference.c \
	tests/ops/reference_ops.def \
	tests/ops/registry.c \
	tests/ops/softmax.c \
	tests/ops/sort.c \
	tests/ops/views.c \
	$(nil)

tests_test_optim_SOURCES = \
	tests/optim/average.c \
	tests/optim/groups.c \
	tests/optim/leaves.c \
	tests/optim/leaves.h \
	tests/optim/optimizer.c \
	tests/optim/optimizers.c \
	tests/optim/schedule.c \
	tests/optim/step_in_backward.c \
	tests/optim/zero.c \
	$(nil)

tests_test_tensor_SOURCES = \
	tests/tensor/bf16_product.c \
	tests/tensor/blocks.c \
	tests/tensor/gemm_bf16.c \
	tests/tensor/gemm_large.c \
	tests/tensor/layouts.h \
	tests/tensor/lifetimes.c \
	tests/tensor/npy.c \
	tests/tensor/overlap.c \
	tests/tensor/print.c \
	tests/tensor/profile.c \
	tests/tensor/random.c \
	tests/tensor/sample.c \
	tests/tensor/simd_functions.c \
	tests/tensor/simd_products.c \
	tests/tensor/simd_rows.c \
	tests/tensor/simd_tables.h \
	tests/tensor/tensor.c \
	$(nil)

tests_test_train_SOURCES = \
	tests/train/divergence.c \
	tests/train/history.c \
	tests/train/own_parts.c \
	tests/train/ranks.c \
	tests/train/regression.c \
	tests/train/regression.h \
	tests/train/trainer.c \
	tests/train/trainer_ends.c \
	tests/train/trainer_options.c \
	tests/train/trainer_threads.c \
	$(nil)

testing_sources = \
	tests/fuzz/data.c \
	tests/fuzz/weights.c \
	tests/fuzz/weights.h \
	tests/support/damage.c \
	tests/support/damage.h \
	tests/support/fused.c \
	tests/support/fused.h \
	tests/support/model_fixture.c \
	tests/support/model_fixture.h \
	tests/support/testing.c \
	tests/support/tensors.h \
	tests/support/testing.h \
	tests/support/tiles.h \
	tests/support/word_corpus.c \
	tests/support/word_corpus.h \
	$(nil)

# Scripts that run the command and other programs.
command_tests = \
	tests/cli/bench.sh \
	tests/cli/cli.sh \
	tests/cli/completion.sh \
	tests/cli/contrastive.sh \
	tests/cli/convert.sh \
	tests/cli/corpus.sh \
	tests/cli/deterministic.sh \
	tests/cli/doctor.sh \
	tests/cli/dry_run.sh \
	tests/cli/embed.sh \
	tests/cli/corpus_check.sh \
	tests/cli/finetune.sh \
	tests/cli/foreign.sh \
	tests/cli/generate.sh \
	tests/cli/glm.sh \
	tests/cli/gradcheck.sh \
	tests/cli/info.sh \
	tests/cli/lora.sh \
	tests/cli/pairs.sh \
	tests/cli/mlm.sh \
	tests/cli/objectives.sh \
	tests/cli/plan.sh \
	tests/cli/plot.sh \
	tests/cli/ranks.sh \
	tests/cli/ranks_kills.sh \
	tests/cli/ranks_accumulate.sh \
	tests/cli/ranks_use.sh \
	tests/cli/report.sh \
	tests/cli/resources.sh \
	tests/cli/score.sh \
	tests/cli/suggest.sh \
	tests/cli/suite.sh \
	tests/cli/t5.sh \
	tests/cli/tasks.sh \
	tests/cli/tokenizer.sh \
	tests/cli/translate.sh \
	tests/cli/verbs.sh \
	tests/cli/watch.sh \
	tests/cli/zero.sh \
	tests/examples.sh \
	tests/fuzz/seeds.sh \
	$(nil)

# Scripts that check the tree and its documentation.
tree_tests = \
	tests/cli/man.sh \
	tests/custom_op.sh \
	tests/dist.sh \
	tests/docs.sh \
	tests/floors.sh \
	tests/floors_selftest.sh \
	tests/headers.sh \
	tests/install.sh \
	tests/names.sh \
	tests/ops_table.sh \
	tests/python.sh \
	tests/questions.sh \
	tests/quickstart.sh \
	tests/site.sh \
	tests/sizes.sh \
	tests/symbols.sh \
	tests/tutorials.sh \
	tests/typed_array.sh \
	$(nil)

# What the scripts and the maintainers use beside them; distributed.
script_support = \
	tests/analyzer.txt \
	tests/blas_alternatives.sh \
	tests/cli/gguf_check.py \
	tests/cli/models.sh \
	tests/cli/mpirun.sh \
	tests/cli/reversed_pairs.sh \
	tests/cli/setup.sh \
	tests/cli/tap.sh \
	tests/declared.awk \
	tests/elsewhere.sh \
	tests/faults/faults.sh \
	tests/faults/preload.c \
	tests/fuzz/config.c \
	tests/fuzz/run.sh \
	tests/fuzz/seeds.py \
	tests/install/CMakeLists.txt \
	tests/install/consumer.c \
	tests/install/consumer.cc \
	tests/lint.h \
	tests/soak.sh \
	tests/targets.sh \
	tests/tsan.supp \
	$(nil)
