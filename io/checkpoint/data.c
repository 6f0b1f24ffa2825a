/* Names, types and checksums of the values in a checkpoint: see checkpoint_data.h. */
#include "io/checkpoint/data.h"

#include <string.h>

/* ---- Names ---- */

bool wg__checkpoint_is_path(const char *name) {
    size_t length = strlen(name);
    if (name[0] != '/' || length >= WG__MAX_PATH)
        return false;
    for (const char *part = name; part; part = strchr(part, '/')) {
        part++;
        size_t size = strcspn(part, "/");
        if (size == 0 || strncmp(part, ".", size) == 0)
            return false;
    }
    return true;
}

/* True if each part of the path leads on. */
static bool is_there(const wg_checkpoint *file, const char *name) {
    char prefix[WG__MAX_PATH];
    for (size_t i = 1; wg__checkpoint_is_path(name); i++) {
        if (name[i] != '/' && name[i] != '\0')
            continue;
        memcpy(prefix, name, i);
        prefix[i] = '\0';
        if (H5Lexists(file->file, prefix, H5P_DEFAULT) <= 0)
            return false;
        if (name[i] == '\0')
            return H5Oexists_by_name(file->file, prefix, H5P_DEFAULT) > 0;
    }
    return false;
}

bool wg_checkpoint_has(const wg_checkpoint *file, const char *name) {
    return file && name && is_there(file, name);
}

/* ---- Types ---- */

static hid_t bool_type(void) {
    hid_t type = H5Tenum_create(H5T_STD_I8LE);
    int8_t value = 0;
    H5Tenum_insert(type, "FALSE", &value);
    value = 1;
    H5Tenum_insert(type, "TRUE", &value);
    return type;
}

hid_t wg__hdf5_type_of(wg_dtype dtype, bool on_disk) {
    switch (dtype) {
    case WG_F32:
        return H5Tcopy(on_disk ? H5T_IEEE_F32LE : H5T_NATIVE_FLOAT);
    case WG_F64:
        return H5Tcopy(on_disk ? H5T_IEEE_F64LE : H5T_NATIVE_DOUBLE);
    case WG_BF16:
        return H5Tcopy(on_disk ? H5T_STD_U16LE : H5T_NATIVE_UINT16);
    case WG_I32:
        return H5Tcopy(on_disk ? H5T_STD_I32LE : H5T_NATIVE_INT32);
    case WG_I64:
        return H5Tcopy(on_disk ? H5T_STD_I64LE : H5T_NATIVE_INT64);
    case WG_U8:
        return H5Tcopy(on_disk ? H5T_STD_U8LE : H5T_NATIVE_UINT8);
    case WG_BOOL:
        return bool_type();
    default:
        return -1;
    }
}

hid_t wg__hdf5_text_type(size_t size) {
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, size);
    H5Tset_strpad(type, H5T_STR_NULLPAD);
    H5Tset_cset(type, H5T_CSET_UTF8);
    return type;
}

static bool is_bf16(hid_t dataset) {
    char name[8] = "";
    if (H5Aexists(dataset, "dtype") <= 0)
        return false;
    hid_t attribute = H5Aopen(dataset, "dtype", H5P_DEFAULT), type = H5Aget_type(attribute);
    if (H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0 && H5Tget_size(type) == 4)
        H5Aread(attribute, type, name);
    H5Tclose(type);
    H5Aclose(attribute);
    return strcmp(name, "bf16") == 0;
}

/* The dtype of an integer type, or -1. */
static int integer_dtype(hid_t type, hid_t dataset) {
    bool is_signed = H5Tget_sign(type) == H5T_SGN_2;
    switch (H5Tget_size(type)) {
    case 1:
        return is_signed ? -1 : WG_U8;
    case 2:
        return !is_signed && is_bf16(dataset) ? WG_BF16 : -1;
    case 4:
        return is_signed ? WG_I32 : -1;
    case 8:
        return is_signed ? WG_I64 : -1;
    default:
        return -1;
    }
}

int wg__hdf5_dtype_of(hid_t type, hid_t dataset) {
    switch (H5Tget_class(type)) {
    case H5T_FLOAT:
        return H5Tget_size(type) == 4 ? WG_F32 : H5Tget_size(type) == 8 ? WG_F64 : -1;
    case H5T_INTEGER:
        return integer_dtype(type, dataset);
    case H5T_ENUM:
        return H5Tget_size(type) == 1 && H5Tget_nmembers(type) == 2 ? WG_BOOL : -1;
    case H5T_STRING:
        return H5Tis_variable_str(type) == 0 ? WG_U8 : -1;
    default:
        return -1;
    }
}

/* ---- Checksums ---- */

uint32_t wg__crc32(const char *bytes, size_t count) {
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < count; i++) {
        crc ^= (uint8_t)bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc;
}
