/* From a number of rows to the copy of a function for so many: the cases of a switch. */
#ifndef WG_TENSOR_SIMD_CASES_H
#define WG_TENSOR_SIMD_CASES_H

#include "tensor/simd/names.h"

/* OF(rows) for 1 to `most` rows, which is 1, 4, 6 or 12. */
#define WG__CASES(most, OF) WG__JOIN(WG__CASES_, most)(OF)

#define WG__CASE(rows, OF)                                                                         \
    case rows:                                                                                     \
        OF(rows);                                                                                  \
        return;

#define WG__CASES_1(OF) WG__CASE(1, OF)
#define WG__CASES_4(OF) WG__CASES_1(OF) WG__CASE(2, OF) WG__CASE(3, OF) WG__CASE(4, OF)
#define WG__CASES_6(OF) WG__CASES_4(OF) WG__CASE(5, OF) WG__CASE(6, OF)
#define WG__CASES_12(OF)                                                                           \
    WG__CASES_6(OF)                                                                                \
    WG__CASE(7, OF)                                                                                \
    WG__CASE(8, OF) WG__CASE(9, OF) WG__CASE(10, OF) WG__CASE(11, OF) WG__CASE(12, OF)

#endif
