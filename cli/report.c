/* wengert report: a trained model on one page for a browser.
 *
 *     checkpoint  ->  cards, curves, configuration, tree, histograms of weights
 *     --corpus    ->  histograms of the gradients of a batch
 *     --text      ->  attention of every layer and head, and the model's continuation
 *
 * The page is written to a temporary file and renamed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/draw.h"
#include "cli/output.h"
#include "cli/decoding.h"
#include "nn/internal.h"

typedef struct arguments {
    const char *run, *out, *text, *corpus;
} arguments;

static const wg_setting options[] = {
    {"run", WG_SETTING_TEXT, WG__AT(run), .word = true, .missing = "missing RUN.h5",
     .argument = "RUN.h5"},
    {"out", WG_SETTING_TEXT, WG__AT(out), .letter = 'o', .missing = "missing -o FILE",
     .argument = "FILE", .help = "The page to write: .html"},
    {"text", WG_SETTING_TEXT, WG__AT(text), .argument = "TEXT",
     .help = "Show the attention to this text, layer by layer, and fill or continue it"},
    {"corpus", WG_SETTING_TEXT, WG__AT(corpus), .argument = "FILE",
     .help = "Show the gradients of a batch of this text or file of tokens (pretrained models)"},
};

static const char style[] =
    ":root{color-scheme:light dark;--ink:#1c2127;--soft:#5b6570;--line:#d8dde3;--paper:#fff;"
    "--card:#f6f8fa;--c0:#0b6bb8;--c1:#c8500a;--c2:#0a7f5a;--c3:#a8497f;--c4:#6a51a3;--c5:#666}"
    "@media(prefers-color-scheme:dark){:root{--ink:#e4e8ec;--soft:#98a2ad;--line:#323a43;"
    "--paper:#14181c;--card:#1c2228;--c0:#5db2f2;--c1:#f0905a;--c2:#45c79a;--c3:#e089bb;"
    "--c4:#a995e0;--c5:#9aa3ad}.map img{filter:invert(1) hue-rotate(180deg)}}"
    "body{margin:0 auto;max-width:1040px;padding:24px;background:var(--paper);color:var(--ink);"
    "font:15px/1.5 system-ui,sans-serif}h1{font-size:26px;margin:0 0 4px}"
    "h2{font-size:19px;margin:36px 0 4px;border-bottom:1px solid var(--line);padding-bottom:4px}"
    "p.note{color:var(--soft);margin:4px 0 12px}"
    ".cards{display:flex;flex-wrap:wrap;gap:12px;margin:16px 0}"
    ".card{background:var(--card);border:1px solid var(--line);border-radius:8px;"
    "padding:10px 16px;min-width:96px}.card b{display:block;font-size:20px}"
    ".card span{color:var(--soft);font-size:13px}"
    ".tables{display:grid;grid-template-columns:repeat(auto-fit,minmax(320px,1fr));gap:24px;"
    "align-items:start}table{border-collapse:collapse;width:100%;font-size:14px}"
    "caption{text-align:left;font-weight:600;padding:4px 0}"
    "td{border-bottom:1px solid var(--line);padding:3px 8px 3px 0;vertical-align:top;"
    "overflow-wrap:anywhere}td+td{text-align:right}"
    "svg{max-width:100%;height:auto;display:block}svg text{fill:var(--soft);font-size:12px}"
    ".grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(180px,1fr));gap:14px}"
    ".cell{background:var(--card);border:1px solid var(--line);border-radius:6px;padding:8px;"
    "font-size:12px;overflow-wrap:anywhere}.cell em{color:var(--soft);font-style:normal}"
    ".tree{font:13px/1.6 ui-monospace,monospace}.tree details{margin-left:18px}"
    ".tree .leaf{margin-left:33px}.row{display:inline-grid;width:calc(100% - 20px);"
    "grid-template-columns:minmax(0,1fr) 76px 84px 110px;gap:10px}.leaf .row{width:calc(100% - "
    "5px)}.row i{font-style:normal;text-align:right;color:var(--soft)}"
    ".bar{background:var(--line);height:7px;margin-top:8px;border-radius:4px}"
    ".bar u{display:block;height:7px;background:var(--c0);border-radius:4px}"
    ".heads{display:flex;flex-wrap:wrap;gap:10px;margin:6px 0 16px}.map{text-align:center;"
    "font-size:12px;color:var(--soft)}.map img{width:132px;height:132px;image-rendering:pixelated;"
    "border:1px solid var(--line);display:block;object-fit:fill}"
    ".sample{background:var(--card);border:1px solid var(--line);border-left:4px solid var(--c0);"
    "border-radius:6px;padding:10px 14px;margin:10px 0;white-space:pre-wrap;overflow-wrap:anywhere}"
    ".tokens{color:var(--soft);font-size:13px;overflow-wrap:anywhere}.tokens b{font-weight:500;"
    "color:var(--ink);background:var(--card);border:1px solid var(--line);border-radius:4px;"
    "padding:0 4px;margin:0 2px 4px 0;display:inline-block}";

/* A text between two pieces of markup. */
static void write_text(FILE *page, const char *before, const char *text, const char *after) {
    fputs(before, page);
    wg__draw_text(page, text);
    fputs(after, page);
}

/* A heading and a line below it (NULL: none). */
static void write_section(FILE *page, const char *title, const char *note) {
    write_text(page, "<h2>", title, "</h2>\n");
    if (note)
        write_text(page, "<p class=\"note\">", note, "</p>\n");
}

/* A table of the members of an object; nothing for NULL. */
static void write_table(FILE *page, const char *caption, const json_t *object) {
    const char *key;
    json_t *value;
    if (json_object_size(object) == 0)
        return;
    write_text(page, "<table><caption>", caption, "</caption>\n");
    json_object_foreach((json_t *)object, key, value) {
        char *text = json_is_string(value)
                         ? NULL
                         : json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
        write_text(page, "<tr><td>", key, "</td><td>");
        write_text(page, "",
                   text                    ? text
                   : json_is_string(value) ? json_string_value(value)
                                           : "",
                   "</td></tr>\n");
        free(text);
    }
    fputs("</table>\n", page);
}

typedef struct report {
    const arguments *arguments;
    FILE *page;
    wg__trained trained;
    wg__run_history history; /* its training may be empty */
    json_t *settings;        /* of the run; NULL: there are none */
} report;

static int open_report(report *r) {
    const char *path = r->arguments->run;
    const wg_objective *objective = wg_objective_of(path);
    if (!objective || wg__trained_load(&r->trained, objective, path) < 0)
        return -1;
    wg_module_train(r->trained.model.module, false);
    if (wg__run_history_read(&r->history, path) < 0)
        return -1;
    wg_checkpoint *file = wg_checkpoint_open(path);
    char *note = file && wg_checkpoint_has(file, "/train/note")
                     ? wg_checkpoint_get_text(file, "/train/note")
                     : NULL;
    r->settings = note ? json_loads(note, 0, NULL) : NULL;
    wg_text_free(note);
    wg_checkpoint_close(file);
    return wg_error_pending() ? -1 : 0;
}

static void card(FILE *page, const char *value, const char *name) {
    write_text(page, "<div class=\"card\"><b>", value, "</b><span>");
    write_text(page, "", name, "</span></div>\n");
}

static void write_head(const report *r) {
    const wg_model *model = &r->trained.model;
    const wg_model_costs costs = wg_model_costs_of(model);
    const wg_history *training = &r->history.training, *evaluation = &r->history.evaluation;
    const double *steps = wg_history_column(training, "step");
    char text[64], title[80], name[64];
    write_text(r->page, "<p class=\"note\">", model->type->title, "; ");
    write_text(r->page, "", r->trained.objective->title, "</p>\n<div class=\"cards\">\n");
    card(r->page, wg__count((double)costs.parameters).text, "parameters");
    card(r->page, wg__bytes((double)costs.weight_bytes).text, "of weights in f32");
    snprintf(text, sizeof text, "%sFLOP", wg__count(costs.token_flops).text);
    card(r->page, text, "a token, forward");
    card(r->page, wg__count((double)wg_tokenizer_size(r->trained.tokenizer)).text,
         "tokens in the vocabulary");
    if (steps && training->row_count > 0) {
        snprintf(text, sizeof text, "%.0f", steps[training->row_count - 1]);
        card(r->page, text, "steps");
    }
    /* The last value of each metric of an evaluation that ends a training. */
    for (int i = 0; evaluation->row_count > 0 && i < evaluation->column_count; i++) {
        const char *metric = evaluation->names[i];
        const double last = evaluation->columns[i][evaluation->row_count - 1];
        if (strcmp(metric, "step") == 0 || strcmp(metric, "count") == 0 || !isfinite(last))
            continue;
        snprintf(text, sizeof text, "%.4g", last);
        snprintf(title, sizeof title, "%s, held out", wg__metric_title(metric, name, sizeof name));
        card(r->page, text, title);
    }
    fputs("</div>\n", r->page);
}

static void write_node(FILE *page, const json_t *node, double whole, int depth) {
    const json_t *children = json_object_get(node, "children"),
                 *shape = json_object_get(node, "shape"), *last = json_object_get(node, "last");
    const double bytes = wg__json_number_at(node, "bytes"),
                 times = last ? wg__json_number_at(node, "alike") : 1;
    const bool is_leaf = json_array_size(children) == 0;
    fputs(is_leaf     ? "<div class=\"leaf\">"
          : depth < 2 ? "<details open><summary>"
                      : "<details><summary>",
          page);
    fputs("<span class=\"row\"><span>", page);
    wg__draw_text(page, json_string_value(json_object_get(node, "name")));
    if (last)
        fprintf(page, " to %s, each", json_string_value(last));
    if (shape) {
        fprintf(page, " <span style=\"color:var(--soft)\">%s ",
                json_string_value(json_object_get(node, "dtype")));
        wg__shape_write(page, shape);
        fputs("</span>", page);
    }
    fprintf(page,
            "</span><i>%s</i><i>%s</i><span class=\"bar\"><u style=\"width:%.2f%%\"></u></span>"
            "</span>",
            wg__count(wg__json_number_at(node, "numbers")).text, wg__bytes(bytes).text,
            whole > 0 ? 100 * bytes * times / whole : 0);
    fputs(is_leaf ? "</div>\n" : "</summary>\n", page);
    for (size_t i = 0; i < json_array_size(children); i++)
        write_node(page, json_array_get(children, i), whole, depth + 1);
    if (!is_leaf)
        fputs("</details>\n", page);
}

static void write_tree(const report *r, const wg_state_dict *state) {
    json_t *rows = json_array();
    for (int64_t i = 0; i < state->count; i++) {
        const wg_tensor *x = state->entries[i].slot->tensor;
        if (state->entries[i].slot->tied)
            continue;
        const wg_dtype dtype = wg_tensor_dtype(x);
        json_array_append_new(rows,
                              wg__tensor_row(state->entries[i].path, wg_dtype_name(dtype),
                                             wg_tensor_ndim(x), wg_tensor_shape(x),
                                             wg_tensor_count(x) * (int64_t)wg_dtype_size(dtype)));
    }
    json_t *tree = wg__weights_tree(rows);
    write_section(r->page, "Parameters",
                  "Numbers, bytes and share of all bytes. Layers that are alike are shown once.");
    const json_t *children = json_object_get(tree, "children");
    fputs("<div class=\"tree\">\n", r->page);
    for (size_t i = 0; i < json_array_size(children); i++)
        write_node(r->page, json_array_get(children, i), wg__json_number_at(tree, "bytes"), 0);
    fputs("</div>\n", r->page);
    json_decref(tree);
    json_decref(rows);
}

/* Histograms of the matrices, or of their gradients. Vectors are left out: their few numbers say
 * little, and there are many. */
static int write_histograms(const report *r, const wg_state_dict *state, bool gradients) {
    fputs("<div class=\"grid\">\n", r->page);
    for (int64_t i = 0; i < state->count; i++) {
        const wg_slot *slot = state->entries[i].slot;
        wg_scope scope;
        wg_scope_begin(&scope);
        wg_tensor *x = gradients ? wg_gradient(slot->tensor) : slot->tensor;
        const bool shown =
            x && !slot->tied && slot->kind == WG_SLOT_PARAMETER && wg_tensor_ndim(x) >= 2;
        float *values = shown ? wg__cli_calloc((size_t)wg_tensor_count(x), sizeof *values) : NULL;
        if (values && wg_to_array(wg_cast(x, WG_F32), values) == 0)
            wg__draw_histogram(r->page, state->entries[i].path, wg_tensor_count(x), values,
                               gradients);
        free(values);
        wg_scope_end(&scope, NULL);
    }
    fputs("</div>\n", r->page);
    return wg_error_pending() ? -1 : 0;
}

static int write_gradients(const report *r, const wg_state_dict *state) {
    enum { BATCH = 8 };
    const wg__trained *t = &r->trained;
    const char *corpus = r->arguments->corpus;
    if (t->objective->finetunes || t->objective->data.text == WG_TEXT_PAIRS)
        return wg_fail(WG_ERROR_ARGUMENT, "report",
                       "--corpus is for pretrained models that read plain text, and %s does not",
                       t->objective->name);
    wg_dataset *text = wg_dataset_load(1, &corpus, t->tokenizer,
                                       &(wg_dataset_options){.kind = t->objective->data.text});
    if (!text)
        return -1;
    const wg_training_setup setup = {.model = &t->model,
                                     .tokenizer = t->tokenizer,
                                     .training = text,
                                     .held_out = text,
                                     .batch = BATCH};
    wg_training *training = wg_training_new(t->objective, &setup);
    int status = training ? 0 : -1;
    if (status == 0) {
        wg_metrics metrics = {0};
        wg_scope scope;
        wg_scope_begin(&scope);
        wg_module_train(t->model.module, true);
        const wg_task task = wg_training_task(training);
        wg_tensor *loss = task.loss(task.context, &metrics);
        status = loss ? wg_backward(wg_sum(loss, 0, NULL, false), NULL) : -1;
        wg_module_train(t->model.module, false);
        wg_scope_end(&scope, NULL);
    }
    if (status == 0) {
        write_section(r->page, "Gradients",
                      "Of the loss of a batch of eight sequences of the corpus.");
        status = write_histograms(r, state, true);
    }
    wg_training_free(training);
    wg_dataset_free(text);
    return status;
}

/* The heads of a layer as pictures of their weights (H, Tq, Tk). */
static void watch_attention(const char *path, const wg_tensor *weights, void *context) {
    enum { MOST = 256 };
    const report *r = context;
    const int64_t heads = wg_tensor_size(weights, 1), queries = wg_tensor_size(weights, 2),
                  keys = wg_tensor_size(weights, 3);
    float *values = wg__cli_calloc((size_t)wg_tensor_count(weights), sizeof *values);
    if (queries <= MOST && keys <= MOST && wg_to_array(weights, values) == 0) {
        write_text(r->page, "<div><code>", path, "</code><div class=\"heads\">\n");
        for (int64_t h = 0; h < heads; h++) {
            fputs("<div class=\"map\"><img alt=\"\" src=\"data:image/bmp;base64,", r->page);
            wg__draw_bitmap(r->page, queries, keys, values + h * queries * keys);
            fprintf(r->page, "\">head %lld</div>\n", (long long)h);
        }
        fputs("</div></div>\n", r->page);
    }
    free(values);
}

static int write_attention(const report *r) {
    const wg_model *model = &r->trained.model;
    const wg_tokenizer *tokenizer = r->trained.tokenizer;
    const wg_text_source source = {.text = r->arguments->text};
    const bool encodes = model->type->shape == WG_ENCODER;
    if (!(model->type->shape & (WG_ENCODER | WG_DECODER)) || r->trained.objective->head) {
        write_section(r->page, "Attention", "It is shown of encoders and decoders without a head.");
        return 0;
    }
    write_section(r->page, "Attention",
                  "Each row is a token that looks, each column one that it looks at, from the "
                  "first at the top left; the stronger the colour, the more. The tokens in order:");
    /* wg_embed_texts puts special tokens around the text. */
    const int32_t before =
                      wg_tokenizer_special(tokenizer, encodes ? WG_TOKEN_CLASS : WG_TOKEN_BEGIN),
                  behind = encodes ? wg_tokenizer_special(tokenizer, WG_TOKEN_SEPARATOR) : -1;
    wg_token_list list = {0};
    if (wg_tokenizer_encode(tokenizer, source.text, -1, NULL, &list) < 0)
        return -1;
    fputs("<p class=\"tokens\">", r->page);
    for (int64_t i = -1; i <= list.count; i++) {
        const int32_t id = i < 0 ? before : i < list.count ? list.ids[i] : behind;
        const char *token = id < 0 ? NULL : wg_tokenizer_token(tokenizer, id);
        if (id >= 0)
            write_text(r->page, "<b>", token ? token : "?", "</b>");
    }
    fputs("</p>\n", r->page);
    wg_token_list_free(&list);
    float *vector = wg__cli_calloc((size_t)wg_model_sizes_of(model).width, sizeof *vector);
    wg__watch_attention(watch_attention, (void *)r);
    const int status = wg_embed_texts(model, tokenizer, NULL, 1, &source, vector);
    wg__watch_attention(NULL, NULL);
    free(vector);
    return status;
}

static int write_fill(const report *r) {
    const wg__trained *t = &r->trained;
    const char *given = r->arguments->text;
    char *text = NULL;
    size_t length = strlen(given);
    if (strstr(given, "[MASK]") || strstr(given, "[gMASK]") || strstr(given, "[sMASK]")) {
        text = strdup(given);
    } else { /* the last word becomes a blank */
        while (length > 0 && strchr(" .!?\n", given[length - 1]))
            length--;
        size_t begin = length;
        while (begin > 0 && given[begin - 1] != ' ')
            begin--;
        if (asprintf(&text, "%.*s[MASK]%s", (int)begin, given, given + length) < 0)
            text = NULL;
    }
    wg_filled filled = {0};
    const wg_use_options how = {.generation.max_tokens = 32};
    const int status =
        text ? t->objective->use.fill(&t->model, t->tokenizer, &how, text, &filled)
             : wg_fail(WG_ERROR_MEMORY, "report", "no memory for a text with a blank");
    if (status == 0) {
        write_section(r->page, "Filled blanks", NULL);
        write_text(r->page, "<div class=\"sample\">", text, "\n\n");
        for (int64_t i = 0; i < filled.blank_count; i++) {
            const wg_filled_blank *blank = &filled.blanks[i];
            if (blank->text)
                write_text(r->page, "", blank->text, "\n");
            for (int64_t k = 0; k < blank->candidate_count; k++) {
                wg__draw_text(r->page, blank->candidates[k].text);
                fprintf(r->page, "  %.1f %%\n", 100 * blank->candidates[k].probability);
            }
        }
        write_text(r->page, "", filled.text ? filled.text : "", "</div>\n");
    }
    wg_filled_clear(&filled);
    free(text);
    return status;
}

/* Texts that the model writes behind the prompt (NULL: from nothing), or fills. */
static int write_samples(const report *r) {
    enum { SAMPLES = 3, MOST_TOKENS = 80 };
    const wg__trained *t = &r->trained;
    const wg_objective *objective = t->objective;
    const char *prompt = r->arguments->text;
    if (objective->use.fill && prompt)
        return write_fill(r);
    if (!objective->use.generate || !objective->use.prompt)
        return 0;
    write_section(r->page, "Samples",
                  "Drawn at temperature 0.8, each with another seed; the prompt is bold.");
    int status = 0;
    for (uint64_t seed = 1; status == 0 && seed <= SAMPLES; seed++) {
        wg_generation text = {0};
        wg_prompt_room room = {0};
        wg_use_options how = {.draws = true,
                              .generator = {.seed = seed},
                              .generation = {.sampling = {.temperature = 0.8}}};
        status = objective->use.prompt(&t->model, t->tokenizer, prompt, &text, &room);
        how.generation.max_tokens = wg__smaller(room.most_written, MOST_TOKENS);
        const int64_t read = text.tokens.count;
        if (status == 0 && how.generation.max_tokens > 0)
            status = objective->use.generate(&t->model, t->tokenizer, &how, &text);
        char *written = status < 0
                            ? NULL
                            : wg_tokenizer_decode(t->tokenizer, text.tokens.ids + read,
                                                  text.tokens.count - read,
                                                  &(wg_decode_options){.skip_special = true});
        if (written) {
            write_text(r->page, "<div class=\"sample\"><b>", prompt ? prompt : "", "</b>");
            write_text(r->page, "", written, "</div>\n");
        }
        status = written ? 0 : -1;
        wg_text_free(written);
        wg_token_list_free(&text.tokens);
    }
    return status;
}

static int write_page(const report *r) {
    char name[256], title[300];
    wg_state_dict *state = wg_module_state(r->trained.model.module);
    if (!state)
        return -1;
    snprintf(title, sizeof title, "%s: %s", wg__run_title(r->arguments->run, name, sizeof name),
             r->trained.model.type->name);
    write_text(r->page,
               "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
               "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
               title, "</title>\n<style>");
    fputs(style, r->page);
    write_text(r->page, "</style>\n</head>\n<body>\n<h1>", title, "</h1>\n");
    write_head(r);
    const bool has_curves = wg__has_panel(&r->history, WG__PANEL_LOSSES);
    write_section(r->page, has_curves ? "Loss" : "Training",
                  has_curves ? NULL : "The file has no history of a training.");
    if (has_curves)
        wg__draw_curves(r->page, &r->history, WG__PANEL_LOSSES);
    if (has_curves && wg__has_panel(&r->history, WG__PANEL_ACCURACIES)) {
        write_section(r->page, "Accuracy", NULL);
        wg__draw_curves(r->page, &r->history, WG__PANEL_ACCURACIES);
    }
    bool recording = wg_set_grad_enabled(false);
    int status = write_samples(r);
    if (status == 0 && r->arguments->text)
        status = write_attention(r);
    wg_set_grad_enabled(recording);
    if (status == 0) {
        char *text = wg_model_config_json(&r->trained.model);
        json_t *config = text ? json_loads(text, 0, NULL) : NULL;
        write_section(r->page, "Configuration", NULL);
        fputs("<div class=\"tables\">\n", r->page);
        write_table(r->page, "Model", config);
        write_table(r->page, "Run", r->settings);
        fputs("</div>\n", r->page);
        json_decref(config);
        wg_text_free(text);
        write_tree(r, state);
        write_section(r->page, "Weights",
                      "The matrices; the tails beyond four standard "
                      "deviations are cut off.");
        recording = wg_set_grad_enabled(false);
        status = write_histograms(r, state, false);
        wg_set_grad_enabled(recording);
    }
    if (status == 0 && r->arguments->corpus)
        status = write_gradients(r, state);
    fputs("</body>\n</html>\n", r->page);
    wg_state_dict_free(state);
    return status;
}

int wg__verb_report(int argc, char **argv) {
    static arguments a;
    const wg__usage usage = {
        .parts = {WG__PART(options, a)},
        .lines = "RUN.h5 -o PAGE.html",
        .doc = "Writes one page for a browser about a trained model: its curves, configuration, "
               "parameters as a tree with their sizes, histograms of the weights, generated or "
               "filled texts, and on request gradients and attention. The page needs no network "
               "and no scripts, and follows the light or dark mode of the reader.",
    };
    report r = {.arguments = &a};
    wg__cli_read(&usage, argc, argv);
    int code = wg__cli_check_distinct(a.out, 2, (const char *const[]){a.run, a.corpus});
    if (code == 0 && open_report(&r) < 0)
        code = wg__cli_fail_pending();
    if (code == 0) {
        char *bytes = NULL;
        size_t size;
        r.page = open_memstream(&bytes, &size);
        if (r.page && write_page(&r) < 0)
            code = wg__cli_fail_pending();
        bool whole = !wg__cli_memory_lacked && r.page && !ferror(r.page);
        whole &= r.page && fclose(r.page) == 0;
        if (code == 0 && !whole)
            code = wg__cli_fail("no memory for a page");
        if (code == 0)
            code = wg__cli_write_file(a.out, bytes, size);
        free(bytes);
    }
    wg_history_clear(&r.history.training);
    wg_history_clear(&r.history.evaluation);
    json_decref(r.settings);
    wg__trained_clear(&r.trained);
    return code;
}
