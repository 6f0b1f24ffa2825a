/* Texts that functions of the library give to their callers. */
#include "io/text.h"

#include "tensor/internal.h"

void wg_text_free(char *text) {
    wg__free(text);
}
