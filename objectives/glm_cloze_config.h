/* The configuration of a GLM that tells labels, without a model of it. */
#ifndef WG_OBJECTIVES_GLM_CLOZE_CONFIG_H
#define WG_OBJECTIVES_GLM_CLOZE_CONFIG_H

#include "objectives/glm_cloze.h"

/* The configuration as JSON text, with the "cloze" of the JSON text it was read from, if that has
 * one. The caller frees it with wg_text_free. NULL with [FORMAT, MEMORY] */
char *wg__glm_config_keep_cloze(const wg_glm_config *config, const char *json);

#endif
