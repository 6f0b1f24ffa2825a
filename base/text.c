/* Texts that functions of the library give to their callers. */
#include "base/text.h"

#include "base/internal.h"

void wg_text_free(char *text) {
    wg__free(text);
}
