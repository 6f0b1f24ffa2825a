/* Configurations by tables: see config_fields.h. */
#include "models/config_fields.h"

#include "io/config_json.h"

#include "models/config_rules.h"
#include "nn/feed_forward.h"
#include "nn/internal.h"

/* A member, by the types that it may have. */
typedef union member {
    void *any;
    int64_t *integer;
    double *number;
    bool *flag;
    wg_activation *activation;
    wg_gate *gate;
} member;

static member member_of(const void *config, const wg__config_field *field) {
    return (member){.any = (char *)(uintptr_t)config + field->offset};
}

/* ---- Reading ---- */

static int require(const wg__config_form *form, wg_config *json) {
    enum { MOST = 32 };
    const char *needed[MOST];
    int count = 0;
    for (int i = 0; i < form->field_count && count < MOST; i++)
        if (form->fields[i].kind == WG__NEEDED_SIZE)
            needed[count++] = form->fields[i].key;
    return wg_config_require(json, count, needed);
}

static int read_activation(wg_config *json, const char *key, wg_activation *value) {
    const char *name = wg_activation_name(*value);
    return wg_config_text(json, key, &name) < 0 ? -1 : wg__activation_parse(name, value);
}

static int read_gate(wg_config *json, const char *key, wg_gate *value) {
    const char *name = wg__gate_name(*value);
    return wg_config_text(json, key, &name) < 0 ? -1 : wg__gate_parse(name, value);
}

static int read_field(wg_config *json, const wg__config_field *field, void *config) {
    const member m = member_of(config, field);
    switch (field->kind) {
    case WG__NEEDED_SIZE:
    case WG__SIZE:
    case WG__INTEGER:
    case WG__TOKEN:
    case WG__MAYBE_TOKEN:
        return wg_config_integer(json, field->key, m.integer);
    case WG__MAYBE_TOKENS:
        return wg__config_first_integer(json, field->key, m.integer);
    case WG__PROBABILITY:
    case WG__POSITIVE:
        return wg_config_number(json, field->key, m.number);
    case WG__FLAG:
        return wg_config_boolean(json, field->key, m.flag);
    case WG__ACTIVATION:
        return read_activation(json, field->key, m.activation);
    case WG__GATE:
        return read_gate(json, field->key, m.gate);
    }
    return -1;
}

static int read_all(const wg__config_form *form, wg_config *json, void *config) {
    if (require(form, json) < 0)
        return -1;
    for (int i = 0; i < form->field_count; i++)
        if (read_field(json, &form->fields[i], config) < 0)
            return -1;
    if (form->read_rest && form->read_rest(json, config) < 0)
        return -1;
    return wg_config_check(json, form->ignored_count, form->ignored);
}

int wg__config_read(const wg__config_form *form, const char *json, void *config) {
    wg_config *object = wg_config_parse(json, "config.json");
    const int status = object ? read_all(form, object, config) : -1;
    wg_config_free(object);
    return status;
}

/* ---- Writing ---- */

static int write_field(wg_config *json, const wg__config_field *field, const void *config) {
    const member m = member_of(config, field);
    switch (field->kind) {
    case WG__NEEDED_SIZE:
    case WG__SIZE:
    case WG__INTEGER:
    case WG__TOKEN:
    case WG__MAYBE_TOKEN:
    case WG__MAYBE_TOKENS:
        return wg_config_set_integer(json, field->key, *m.integer);
    case WG__PROBABILITY:
    case WG__POSITIVE:
        return wg_config_set_number(json, field->key, *m.number);
    case WG__FLAG:
        return wg_config_set_boolean(json, field->key, *m.flag);
    case WG__ACTIVATION:
        return wg_config_set_text(json, field->key, wg_activation_name(*m.activation));
    case WG__GATE:
        return wg_config_set_text(json, field->key, wg__gate_name(*m.gate));
    }
    return -1;
}

char *wg__config_write(const wg__config_form *form, const void *config) {
    wg_config *json = wg_config_new();
    int status = wg_config_set_text(json, "model_type", form->model_type);
    for (int i = 0; i < form->field_count && status == 0; i++)
        status = write_field(json, &form->fields[i], config);
    if (status == 0 && form->write_rest)
        status = form->write_rest(json, config);
    char *text = status < 0 ? NULL : wg_config_to_json(json);
    wg_config_free(json);
    return text;
}

/* ---- Rules ---- */

static int check_field(const char *where, const wg__config_field *field, const void *config,
                       int64_t vocab_size) {
    const member m = member_of(config, field);
    switch (field->kind) {
    case WG__NEEDED_SIZE:
    case WG__SIZE:
        return wg__config_check_size(where, field->key, *m.integer);
    case WG__TOKEN:
        return wg__config_check_token(where, field->key, *m.integer, vocab_size);
    case WG__MAYBE_TOKEN:
    case WG__MAYBE_TOKENS:
        return wg__config_check_maybe_token(where, field->key, *m.integer, vocab_size);
    case WG__PROBABILITY:
        return wg__config_check_probability(where, field->key, *m.number);
    case WG__POSITIVE:
        return wg__config_check_positive(where, field->key, *m.number);
    case WG__ACTIVATION:
        return wg_activation_name(*m.activation)
                   ? 0
                   : wg__config_refuse(where, field->key, *m.activation, "one of wg_activation");
    case WG__GATE:
        return wg__gate_name(*m.gate)
                   ? 0
                   : wg__config_refuse(where, field->key, *m.gate, "one of wg_gate");
    case WG__INTEGER:
    case WG__FLAG:
        return 0;
    }
    return -1;
}

int wg__config_check_fields(const wg__config_form *form, const void *config, int64_t vocab_size) {
    for (int i = 0; i < form->field_count; i++)
        if (check_field(form->where, &form->fields[i], config, vocab_size) < 0)
            return -1;
    return 0;
}
