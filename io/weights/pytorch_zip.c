/* torch.save's zip: its directory, and the storages of its tensors. See pytorch_zip.h. */
#include "io/weights/pytorch_zip.h"

#include <stdlib.h>
#include <string.h>

#include "tensor/internal.h"

enum {
    END_SIZE = 22,     /* of the record that ends a zip, without its comment */
    LOCATOR_SIZE = 20, /* of zip64's, before it */
    END_64_SIZE = 56,  /* of zip64's own end record */
    CENTRAL_SIZE = 46, /* of an entry in the directory, without its texts */
    LOCAL_SIZE = 30,   /* of the header before its bytes */
    MOST_ENTRIES = 1000000,
    MOST_PICKLE = 1 << 25
};

#define SIGNATURE_END 0x06054b50u
#define SIGNATURE_LOCATOR 0x07064b50u
#define SIGNATURE_END_64 0x06064b50u
#define SIGNATURE_CENTRAL 0x02014b50u
#define SIGNATURE_LOCAL 0x04034b50u

/* ---- The directory ---- */

typedef struct directory {
    uint64_t entries, size, offset;
} directory;

static int bad(const wg_weights *file, const char *what) {
    return wg__weights_fail(file, "is no zip of torch.save, or damaged or cut short: %s", what);
}

/* torch.save puts no comment at the end, so the record is the last thing in the file. */
static int find_directory(const wg_weights *file, const wg__input *input, directory *found) {
    uint8_t end[END_SIZE], locator[LOCATOR_SIZE], end_64[END_64_SIZE];
    const int64_t at = input->size - END_SIZE;
    if (at < 0)
        return bad(file, "it is too short");
    if (wg__input_read(input, at, end, END_SIZE) < 0)
        return -1;
    if (wg__le32(end) != SIGNATURE_END || wg__le16(end + 20) != 0)
        return bad(file, "there is no directory at its end");
    if (wg__le16(end + 4) != 0 && wg__le16(end + 4) != UINT16_MAX)
        return bad(file, "it is one of several parts");
    *found = (directory){wg__le16(end + 10), wg__le32(end + 12), wg__le32(end + 16)};
    if (found->entries != UINT16_MAX && found->size != UINT32_MAX && found->offset != UINT32_MAX)
        return 0;
    if (at < LOCATOR_SIZE || wg__input_read(input, at - LOCATOR_SIZE, locator, LOCATOR_SIZE) < 0)
        return -1;
    if (wg__le32(locator) != SIGNATURE_LOCATOR)
        return 0; /* these are its numbers */
    const uint64_t where = wg__le64(locator + 8);
    if (where > (uint64_t)input->size)
        return bad(file, "the directory is beyond the end");
    if (wg__input_read(input, (int64_t)where, end_64, END_64_SIZE) < 0)
        return -1;
    if (wg__le32(end_64) != SIGNATURE_END_64)
        return bad(file, "there is no zip64 directory where it is said to be");
    *found = (directory){wg__le64(end_64 + 32), wg__le64(end_64 + 40), wg__le64(end_64 + 48)};
    return 0;
}

/* Sizes that do not fit 32 bits stand in an extra field, those that need it in this order. */
static int read_extra(const uint8_t *extra, int64_t count, uint64_t *size, uint64_t *packed,
                      uint64_t *offset) {
    uint64_t *const places[] = {size, packed, offset};
    for (int64_t at = 0; at + 4 <= count;) {
        const int id = wg__le16(extra + at), length = wg__le16(extra + at + 2);
        at += 4;
        if (length > count - at)
            return -1;
        int64_t used = 0;
        for (int i = 0; id == 1 && i < 3; i++)
            if (*places[i] == UINT32_MAX) {
                if (used + 8 > length)
                    return -1;
                *places[i] = wg__le64(extra + at + used);
                used += 8;
            }
        at += length;
    }
    return 0;
}

/* The bytes follow a second header, whose texts may be of other lengths. */
static int place_entry(const wg_weights *file, const wg__input *input, uint64_t local,
                       wg__zip_entry *entry) {
    uint8_t header[LOCAL_SIZE];
    if (local > (uint64_t)input->size)
        return bad(file, "an entry is beyond the end");
    if (wg__input_read(input, (int64_t)local, header, LOCAL_SIZE) < 0)
        return -1;
    if (wg__le32(header) != SIGNATURE_LOCAL)
        return bad(file, "an entry is not where the directory says");
    entry->offset = (int64_t)local + LOCAL_SIZE + wg__le16(header + 26) + wg__le16(header + 28);
    if (entry->offset > input->size || entry->size > input->size - entry->offset)
        return bad(file, "an entry's bytes are beyond the end");
    return 0;
}

/* Reads one entry of the directory, of which `room` bytes are left; returns what it takes, or -1.
 */
static int64_t read_entry(const wg_weights *file, const wg__input *input, const uint8_t *bytes,
                          int64_t room, wg__zip_entry *entry) {
    if (room < CENTRAL_SIZE || wg__le32(bytes) != SIGNATURE_CENTRAL)
        return bad(file, "the directory has another form");
    const int64_t name = wg__le16(bytes + 28), extra = wg__le16(bytes + 30),
                  length = CENTRAL_SIZE + name + extra + wg__le16(bytes + 32);
    if (length > room)
        return bad(file, "the directory ends in the middle of an entry");
    if (wg__le16(bytes + 8) & 1 || wg__le16(bytes + 10) != 0)
        return bad(file, "an entry is compressed or encrypted; torch.save stores them as they are");
    uint64_t packed = wg__le32(bytes + 20), size = wg__le32(bytes + 24),
             local = wg__le32(bytes + 42);
    const char *text = (const char *)bytes + CENTRAL_SIZE;
    if (read_extra(bytes + CENTRAL_SIZE + name, extra, &size, &packed, &local) < 0 ||
        packed != size || size > INT64_MAX || memchr(text, '\0', (size_t)name))
        return bad(file, "an entry's sizes or name make no sense");
    entry->name = wg__calloc((size_t)name + 1, 1);
    if (!entry->name)
        return -1;
    memcpy(entry->name, text, (size_t)name);
    entry->size = (int64_t)size;
    return place_entry(file, input, local, entry) < 0 ? -1 : length;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(((const wg__zip_entry *)a)->name, ((const wg__zip_entry *)b)->name);
}

static int compare_offsets(const void *a, const void *b) {
    const int64_t x = ((const wg__zip_entry *)a)->offset, y = ((const wg__zip_entry *)b)->offset;
    return (x > y) - (x < y);
}

static int check_entries(const wg_weights *file, wg__zip *zip) {
    const size_t count = (size_t)zip->count;
    qsort(zip->entries, count, sizeof *zip->entries, compare_offsets);
    for (size_t i = 1; i < count; i++)
        if (zip->entries[i].offset < zip->entries[i - 1].offset + zip->entries[i - 1].size)
            return bad(file, "two entries share bytes");
    qsort(zip->entries, count, sizeof *zip->entries, compare_names);
    for (size_t i = 1; i < count; i++)
        if (compare_names(&zip->entries[i - 1], &zip->entries[i]) == 0)
            return bad(file, "two entries have one name");
    return 0;
}

static int read_entries(const wg_weights *file, const wg__input *input, const uint8_t *bytes,
                        int64_t size, uint64_t count, wg__zip *zip) {
    zip->entries = wg__calloc((size_t)count + 1, sizeof *zip->entries);
    if (!zip->entries)
        return -1;
    for (int64_t at = 0; zip->count < (int64_t)count;) {
        const int64_t length =
            read_entry(file, input, bytes + at, size - at, &zip->entries[zip->count]);
        zip->count += zip->entries[zip->count].name != NULL;
        if (length < 0)
            return -1;
        at += length;
    }
    return check_entries(file, zip);
}

int wg__zip_read(const wg_weights *file, int index, wg__zip *zip) {
    const wg__input *input = &file->files[index];
    directory found = {0};
    *zip = (wg__zip){0};
    if (find_directory(file, input, &found) < 0)
        return wg_error_pending() ? -1 : bad(file, "it is too short");
    const uint64_t size = (uint64_t)input->size;
    if (found.offset > size || found.size > size - found.offset || found.entries > MOST_ENTRIES ||
        found.entries > found.size / CENTRAL_SIZE)
        return bad(file, "the directory does not fit the file");
    uint8_t *bytes = wg__alloc((size_t)found.size + 1);
    int status =
        bytes ? wg__input_read(input, (int64_t)found.offset, bytes, (int64_t)found.size) : -1;
    if (status == 0)
        status = read_entries(file, input, bytes, (int64_t)found.size, found.entries, zip);
    wg__free(bytes);
    return status;
}

void wg__zip_free(wg__zip *zip) {
    for (int64_t i = 0; zip->entries && i < zip->count; i++)
        wg__free(zip->entries[i].name);
    wg__free(zip->entries);
    *zip = (wg__zip){0};
}

const wg__zip_entry *wg__zip_find(const wg__zip *zip, const char *name) {
    const wg__zip_entry key = {.name = (char *)name};
    return zip->count ? bsearch(&key, zip->entries, (size_t)zip->count, sizeof key, compare_names)
                      : NULL;
}

/* ---- The tensors ---- */

typedef struct reading {
    wg_weights *file;
    int index;
    const wg__zip *zip;
    int folder; /* the length of NAME, with its slash */
    const char *pickle_name;
} reading;

static bool is_row_major(const wg__pickled_tensor *tensor) {
    int64_t step = 1;
    for (int i = tensor->ndim - 1; i >= 0; i--) {
        if (tensor->shape[i] != 1 && tensor->strides[i] != step)
            return false;
        step *= tensor->shape[i];
    }
    return true;
}

/* The elements from the first to the last one, both included; -1 if there are too many. */
static int64_t extent_of(const wg__pickled_tensor *tensor) {
    int64_t last = 0;
    for (int i = 0; i < tensor->ndim; i++) {
        int64_t reach;
        if (tensor->shape[i] == 0)
            return 0;
        if (tensor->strides[i] < 0 ||
            __builtin_mul_overflow(tensor->shape[i] - 1, tensor->strides[i], &reach) ||
            __builtin_add_overflow(last, reach, &last))
            return -1;
    }
    return last < INT64_MAX / 16 ? last + 1 : -1;
}

static int add_tensor(const wg__pickled_tensor *tensor, void *context) {
    const reading *r = context;
    char path[512];
    snprintf(path, sizeof path, "%.*sdata/%s", r->folder, r->pickle_name, tensor->storage.key);
    const wg__zip_entry *data = wg__zip_find(r->zip, path);
    const int64_t size = wg__stored_block_bytes(tensor->storage.stored);
    if (!data)
        return wg__weights_fail(r->file, "%.200s: its storage %.64s is not there", tensor->name,
                                tensor->storage.key);
    if (tensor->storage.elements < 0 || tensor->storage.elements != data->size / size ||
        data->size % size != 0)
        return wg__weights_fail(r->file, "%.200s: its storage has %lld bytes, not %lld numbers",
                                tensor->name, (long long)data->size,
                                (long long)tensor->storage.elements);
    const int64_t extent = extent_of(tensor),
                  dense = wg__stored_bytes(tensor->storage.stored, tensor->ndim, tensor->shape);
    if (dense < 0 || extent < 0 || tensor->offset < 0 ||
        tensor->offset > tensor->storage.elements ||
        extent > tensor->storage.elements - tensor->offset)
        return wg__weights_fail(r->file, "%.200s reaches beyond its storage", tensor->name);
    if (dense / size > tensor->storage.elements)
        return wg__weights_fail(r->file, "%.200s is an expanded view; save it contiguous",
                                tensor->name);
    wg__weights_entry entry = {
        .file = r->index,
        .stored = tensor->storage.stored,
        .spec = {.dtype = wg__stored_dtype(tensor->storage.stored), .ndim = tensor->ndim},
        .offset = data->offset + tensor->offset * size,
        .bytes = extent * size,
        .is_strided = extent > 0 && !is_row_major(tensor),
    };
    memcpy(entry.spec.shape, tensor->shape, sizeof entry.spec.shape);
    memcpy(entry.strides, tensor->strides, sizeof entry.strides);
    return wg__weights_add(r->file, tensor->name, &entry);
}

static bool ends_in(const char *text, const char *end) {
    const size_t length = strlen(text), part = strlen(end);
    return length >= part && strcmp(text + length - part, end) == 0;
}

/* NAME/data.pkl: the folder is called as the file was. */
static const wg__zip_entry *find_pickle(const wg__zip *zip) {
    for (int64_t i = 0; i < zip->count; i++)
        if (ends_in(zip->entries[i].name, "/data.pkl") && strlen(zip->entries[i].name) < 256)
            return &zip->entries[i];
    return NULL;
}

/* Big-endian machines say so in an entry of its own. */
static int check_byte_order(const reading *r) {
    char name[300], order[8] = {0};
    snprintf(name, sizeof name, "%.*sbyteorder", r->folder, r->pickle_name);
    const wg__zip_entry *entry = wg__zip_find(r->zip, name);
    if (!entry)
        return 0;
    if (entry->size > 6 ||
        wg__input_read(&r->file->files[r->index], entry->offset, order, entry->size) < 0 ||
        strcmp(order, "little") != 0)
        return wg_error_pending() ? -1 : wg__weights_fail(r->file, "is not little-endian");
    return 0;
}

static int read_zip(wg_weights *file, int index, const wg__zip *zip) {
    const wg__zip_entry *pickle = find_pickle(zip);
    if (!pickle || pickle->size > MOST_PICKLE)
        return bad(file, "there is no data.pkl in it, or too large a one");
    reading r = {file, index, zip, (int)(strlen(pickle->name) - strlen("data.pkl")), pickle->name};
    if (check_byte_order(&r) < 0)
        return -1;
    uint8_t *bytes = wg__alloc((size_t)pickle->size + 1);
    int status =
        bytes ? wg__input_read(&file->files[index], pickle->offset, bytes, pickle->size) : -1;
    if (status == 0)
        status = wg__pickle_read(file, bytes, pickle->size, add_tensor, &r);
    wg__free(bytes);
    return status;
}

int wg__pytorch_list(wg_weights *file, int index) {
    wg__zip zip;
    int status = wg__zip_read(file, index, &zip);
    if (status == 0)
        status = read_zip(file, index, &zip);
    wg__zip_free(&zip);
    return status;
}

static int open_pytorch(wg_weights *file) {
    return wg__pytorch_list(file, 0);
}

const wg__weights_format wg__weights_pytorch = {.name = "pytorch", .open = open_pytorch};
