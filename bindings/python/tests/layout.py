"""Prints a C program that compiles if the structs of _api.py lie in memory as the headers say."""
import ctypes

from wengert import _api

print('#include <stddef.h>\n#include "wengert.h"')
for name, struct in sorted(vars(_api).items()):
    if isinstance(struct, type) and issubclass(struct, ctypes.Structure) and name.startswith("wg_"):
        print('_Static_assert(sizeof(struct %s) == %d, "%s");' % (name, ctypes.sizeof(struct), name))
        for field, _ in struct._fields_:
            print('_Static_assert(offsetof(struct %s, %s) == %d, "%s.%s");' % (
                name, field, getattr(struct, field).offset, name, field))
for name, values in sorted(vars(_api).items()):
    if isinstance(values, dict) and name not in ("FUNCTIONS", "ELEMENTWISE") and not name.startswith("__"):
        for constant, value in values.items():
            print('_Static_assert(%s == %d, "%s");' % (constant, value, constant))
