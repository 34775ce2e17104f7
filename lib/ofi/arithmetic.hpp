/// @file
/// What atomic operations do to a number.
#pragma once

#include <rdma/fi_atomic.h>

#include <cstddef>
#include <cstdint>

namespace rio::ofi {

/// Forms of an atomic operation: its operands, and its result.
enum class Atomic : uint8_t {
  kUpdate,   ///< operands; nothing goes back
  kFetch,    ///< operands, if the operation has any; the old values
  kCompare,  ///< operands and what they are compared with; the old values
};

/// @return bytes; 0: no type that there is here.
[[nodiscard]] size_t size_of(fi_datatype type);
/// Any values. Whether there is such an operation.
[[nodiscard]] bool is_atomic(Atomic kind, fi_datatype type, fi_op op);
/// Whether it comes with operands.
[[nodiscard]] constexpr bool has_operands(fi_op op) {
  return op != FI_ATOMIC_READ;
}

/// One after another. @param at, operands, compare, old `count` of that type each, at any address,
/// none overlapping; compare only with kCompare; old null: not wanted. @pre is_atomic().
void apply(fi_datatype type, fi_op op, uint8_t* at, const uint8_t* operands, const uint8_t* compare,
           uint8_t* old, size_t count);

}  // namespace rio::ofi
