/* Texts that functions of the library give to their callers. */
#ifndef WG_IO_TEXT_H
#define WG_IO_TEXT_H

#include "../tensor/api.h"

/* Frees a text that a function of the library gave to its caller; NULL is allowed. */
WG_API void wg_text_free(char *text);

#endif
