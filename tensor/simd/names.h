/* The names of tables, which have the instruction set in them that their file is compiled for. */
#ifndef WG_TENSOR_SIMD_NAMES_H
#define WG_TENSOR_SIMD_NAMES_H

#define WG__JOIN_EXPANDED(a, b) a##b
#define WG__JOIN(a, b) WG__JOIN_EXPANDED(a, b)
#define WG__TEXT_EXPANDED(a) #a
#define WG__TEXT(a) WG__TEXT_EXPANDED(a)

#endif
