/* Suggests a name for a misspelt one: "; did you mean 'bert'?". Messages of the library and of the
 * command that refuse a name end with it. */
#ifndef WG_BASE_SUGGEST_H
#define WG_BASE_SUGGEST_H

#include <stddef.h>

#include "base/internal.h"

/* Writes "; did you mean 'NAME'?" to `text`, or "" if no name is near what was typed, and returns
 * `text`. `name` gives the candidates by index, and NULL after the last one; `context` is handed to
 * it. A name is near if it begins with what was typed, or if few letters, a third of those typed or
 * one, are to be inserted, deleted, replaced or exchanged with their neighbour (Damerau 1964). Case
 * does not count, nor '_' for '-'. Of several that are equally near the first is taken. */
WG__COMMAND const char *wg__suggestion(char *text, size_t size, const char *typed,
                                       const char *(*name)(const void *context, int index),
                                       const void *context);

#endif
