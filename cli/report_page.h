/* Parts of the page of `wengert report`: HTML and SVG that need no network, no fonts and no
 * scripts, in colours that follow the reader's light or dark mode. */
#ifndef WG_CLI_REPORT_PAGE_H
#define WG_CLI_REPORT_PAGE_H

#include <jansson.h>

#include "cli/curves.h"
#include "cli/weights_tree.h"

/* Opens and closes the page. */
void wg__page_begin(FILE *page, const char *title);
void wg__page_end(FILE *page);

/* Writes text with <, >, & and " as HTML has them. */
void wg__page_text(FILE *page, const char *text);

/* A heading with an anchor and a line below it (NULL: none). */
void wg__page_section(FILE *page, const char *title, const char *note);

/* A curve of each metric of that kind, of training and of evaluations. */
void wg__page_curves(FILE *page, const wg__run_history *run, wg__panel_kind kind);

/* A table of the members of an object; nothing for NULL. */
void wg__page_table(FILE *page, const char *caption, const json_t *object);

/* The tree of wg__weights_tree, with a bar for each share of the bytes. */
void wg__page_tree(FILE *page, const json_t *root);

/* Small histograms beside each other: begin, one each, end. `note` is a line below the name. */
void wg__page_grid_begin(FILE *page);
void wg__page_histogram(FILE *page, const char *name, int64_t count, const float *values,
                        bool is_gradient);
void wg__page_grid_end(FILE *page);

/* The heads of a layer of attention as pictures: weights (H, Tq, Tk), row-major. */
void wg__page_attention(FILE *page, const char *name, int64_t heads, int64_t queries, int64_t keys,
                        const float *weights);

#endif
