/* Texts that functions of the library give to their callers. */
#ifndef WG_BASE_TEXT_H
#define WG_BASE_TEXT_H

#include "api.h"

WG_BEGIN_DECLS

/* Frees a text that a function of the library gave to its caller; NULL is allowed. */
WG_API void wg_text_free(char *text);

WG_END_DECLS

#endif
