/// @file
/// Atomic operations in the memory of peers, and their arithmetic.
#pragma once

#include <rdma/fi_atomic.h>

#include <cstddef>
#include <cstdint>

namespace rio::ofi {

/// The effect of a request on a peer's memory. Atomic operations have three forms.
enum class Verb : uint8_t {
  kWrite = 1,
  kRead = 2,
  kUpdate = 3,   ///< operands; nothing goes back
  kFetch = 4,    ///< operands, if the operation has any; the old values
  kCompare = 5,  ///< operands and what they are compared with; the old values
  kWindow = 6,   ///< where the card's window onto the region is; answered by a WindowReply
};
[[nodiscard]] constexpr bool is_atomic(Verb verb) {
  return verb >= Verb::kUpdate && verb <= Verb::kCompare;
}

/// Size of a number. @return bytes; 0: the type is not supported.
[[nodiscard]] size_t size_of(fi_datatype type);
/// Whether an operation is supported. All arguments may have any value.
[[nodiscard]] bool is_atomic(Verb verb, fi_datatype type, fi_op op);
/// Whether the operation takes operands.
[[nodiscard]] constexpr bool has_operands(fi_op op) {
  return op != FI_ATOMIC_READ;
}

/// Applies the operation to each number in turn. @param at, operands, compare, old `count` numbers
/// of that type each, at any address, not overlapping; compare only with kCompare; old may be null.
/// @pre is_atomic().
void apply(fi_datatype type, fi_op op, uint8_t* at, const uint8_t* operands, const uint8_t* compare,
           uint8_t* old, size_t count);

}  // namespace rio::ofi
