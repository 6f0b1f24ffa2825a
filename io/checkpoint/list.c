/* What a checkpoint holds: the names of its datasets. */
#include "io/checkpoint/file.h"

#include <stdio.h>
#include <string.h>

#include "tensor/internal.h"

void wg__name_list_free(wg__name_list *list) {
    for (int64_t i = 0; i < list->count; i++)
        wg__free(list->names[i]);
    wg__free(list->names);
    *list = (wg__name_list){0};
}

static int append_name(wg__name_list *list, const char *group, const char *name) {
    if (list->count == list->capacity) {
        int64_t capacity = 2 * list->capacity + 64;
        char **larger = wg__alloc((size_t)capacity * sizeof *larger);
        if (!larger)
            return -1;
        if (list->count)
            memcpy(larger, list->names, (size_t)list->count * sizeof *larger);
        wg__free(list->names);
        list->names = larger;
        list->capacity = capacity;
    }
    size_t size = strlen(group) + strlen(name) + 2;
    char *path = wg__alloc(size);
    if (!path)
        return -1;
    snprintf(path, size, "%s/%s", strcmp(group, "/") == 0 ? "" : group, name);
    list->names[list->count++] = path;
    return 0;
}

typedef struct visit {
    const char *group;
    wg__name_list *list;
} visit;

/* Links to other files and to nowhere are no datasets. */
static herr_t visit_link(hid_t group, const char *name, const H5L_info_t *link, void *context) {
    const visit *visit = context;
    if (link->type != H5L_TYPE_HARD)
        return 0;
    hid_t object = H5Oopen(group, name, H5P_DEFAULT);
    if (object < 0)
        return -1;
    bool is_dataset = H5Iget_type(object) == H5I_DATASET;
    H5Oclose(object);
    return is_dataset ? append_name(visit->list, visit->group, name) : 0;
}

int wg__checkpoint_list(wg_checkpoint *file, const char *group, wg__name_list *list) {
    *list = (wg__name_list){0};
    visit visit = {group, list};
    hid_t id = H5Gopen2(file->file, group, H5P_DEFAULT);
    if (id < 0)
        return wg__checkpoint_fail(file, group, "checkpoint_list");
    int status = 0;
    if (H5Lvisit(id, H5_INDEX_NAME, H5_ITER_INC, visit_link, &visit) < 0)
        status = wg_error_pending() ? -1 : wg__checkpoint_fail(file, group, "checkpoint_list");
    H5Gclose(id);
    if (status < 0)
        wg__name_list_free(list);
    return status;
}

int wg_checkpoint_each(wg_checkpoint *file, wg_checkpoint_visitor visit, void *context) {
    wg__name_list list;
    if (!file || wg_error_pending() || wg__checkpoint_list(file, "/", &list) < 0)
        return -1;
    int status = 0;
    for (int64_t i = 0; i < list.count && status >= 0; i++) {
        wg_spec spec;
        status = wg__checkpoint_spec(file, list.names[i], &spec);
        if (status == 0)
            status = visit(list.names[i], &spec, context);
    }
    wg__name_list_free(&list);
    return status < 0 ? status : 0;
}
