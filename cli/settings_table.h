/* The table of settings, as those who read them know it: the command line (settings.c) and a file
 * (settings_file.c). */
#ifndef WG_CLI_SETTINGS_TABLE_H
#define WG_CLI_SETTINGS_TABLE_H

#include "cli/settings.h"

typedef enum wg__setting_kind {
    WG__SETTING_TEXT,
    WG__SETTING_FILE,
    WG__SETTING_FILES, /* each time it is said, one more */
    WG__SETTING_INTEGER,
    WG__SETTING_NUMBER,
    WG__SETTING_NUMBERS, /* "3,1" */
    WG__SETTING_PAIRS,   /* "yes=great"; each time it is said, one more */
    WG__SETTING_FLAG
} wg__setting_kind;

/* What is kept with the run. Options of verbs and of all runs set them by their keys. */
typedef struct wg__setting {
    int key;
    const char *name;
    wg__setting_kind kind;
    double low, high;
    bool changeable; /* may differ when the run is resumed */
} wg__setting;

/* The setting of that name, or NULL. */
const wg__setting *wg__setting_named(const char *name);

/* The name of what it excludes, or NULL. */
const char *wg__setting_rival(const char *name);

/* A list of files and one more, as a new one. NULL for a name that is not UTF-8. */
json_t *wg__setting_add_file(const json_t *list, const char *path);

#endif
