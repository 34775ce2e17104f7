#include "lib/ofi/arithmetic.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <type_traits>

namespace rio::ofi {
namespace {

template <class Number>
[[nodiscard]] Number load(const uint8_t* from) {
  Number value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

/// Integers wrap around.
template <class Number>
[[nodiscard]] Number updated(fi_op op, Number old, Number operand) {
  switch (op) {
    case FI_MIN:
      return std::min(old, operand);
    case FI_MAX:
      return std::max(old, operand);
    case FI_LOR:
      return static_cast<Number>(old != 0 || operand != 0);
    case FI_LAND:
      return static_cast<Number>(old != 0 && operand != 0);
    case FI_LXOR:
      return static_cast<Number>((old != 0) != (operand != 0));
    case FI_ATOMIC_READ:
      return old;
    case FI_ATOMIC_WRITE:
      return operand;
    default:
      break;
  }
  if constexpr (std::is_integral_v<Number>) {
    using Unsigned = std::make_unsigned_t<Number>;
    const uint64_t a = static_cast<Unsigned>(old);
    const uint64_t b = static_cast<Unsigned>(operand);
    return static_cast<Number>(op == FI_SUM    ? a + b
                               : op == FI_PROD ? a * b
                               : op == FI_BOR  ? a | b
                               : op == FI_BAND ? a & b
                                               : a ^ b);
  } else {
    return op == FI_SUM ? old + operand : old * operand;
  }
}

/// Compares the user's operand with the target, in that order: "swap if compare LE target".
template <class Number>
[[nodiscard]] Number compared(fi_op op, Number old, Number operand, Number compare) {
  if constexpr (std::is_integral_v<Number>) {
    if (op == FI_MSWAP) {
      return static_cast<Number>((operand & compare) | (old & ~compare));
    }
  }
  const bool swaps = op == FI_CSWAP      ? compare == old
                     : op == FI_CSWAP_NE ? compare != old
                     : op == FI_CSWAP_LE ? compare <= old
                     : op == FI_CSWAP_LT ? compare < old
                     : op == FI_CSWAP_GE ? compare >= old
                                         : compare > old;
  return swaps ? operand : old;
}

template <class Number>
void apply_each(fi_op op, uint8_t* at, const uint8_t* operands, const uint8_t* compare,
                uint8_t* old_values, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const size_t offset = i * sizeof(Number);
    const auto old = load<Number>(at + offset);
    const auto operand = has_operands(op) ? load<Number>(operands + offset) : Number{};
    const Number next = compare == nullptr
                            ? updated(op, old, operand)
                            : compared(op, old, operand, load<Number>(compare + offset));
    if (old_values != nullptr) {
      std::memcpy(old_values + offset, &old, sizeof(old));
    }
    std::memcpy(at + offset, &next, sizeof(next));
  }
}

/// Calls `visit` with a number of the given type. @return false: the type is not supported.
template <class Visit>
bool with(fi_datatype type, Visit&& visit) {
  const auto with_each = [&]<class... Number>(std::tuple<Number...>) {
    uint32_t each = FI_INT8;
    return ((each++ == type && (visit(Number{}), true)) || ...);
  };
  // In the order of fi_datatype.
  static_assert(FI_INT8 == 0 && FI_UINT64 == 7 && FI_FLOAT == 8 && FI_DOUBLE == 9);
  return with_each(std::tuple<int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t,
                              uint64_t, float, double>());
}

}  // namespace

size_t size_of(fi_datatype type) {
  size_t bytes = 0;
  static_cast<void>(with(type, [&](auto number) { bytes = sizeof(number); }));
  return bytes;
}

bool is_atomic(Verb verb, fi_datatype type, fi_op op) {
  const bool whole = type != FI_FLOAT && type != FI_DOUBLE;
  const bool wants_whole = (op >= FI_BOR && op <= FI_BXOR && op != FI_LXOR) || op == FI_MSWAP;
  if (!is_atomic(verb) || size_of(type) == 0 || (wants_whole && !whole)) {
    return false;
  }
  if (verb == Verb::kCompare) {
    return op >= FI_CSWAP && op <= FI_MSWAP;
  }
  return op >= FI_MIN && op <= FI_ATOMIC_WRITE && (op != FI_ATOMIC_READ || verb == Verb::kFetch);
}

void apply(fi_datatype type, fi_op op, uint8_t* at, const uint8_t* operands, const uint8_t* compare,
           uint8_t* old, size_t count) {
  static_cast<void>(with(type, [&](auto number) {
    apply_each<decltype(number)>(op, at, operands, compare, old, count);
  }));
}

}  // namespace rio::ofi
