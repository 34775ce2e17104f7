#include "lib/ofi/arithmetic.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace rio::ofi {
namespace {

template <class Number>
[[nodiscard]] Number load(const uint8_t* from) {
  Number value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

/// Integer addition and multiplication that wrap around.
template <class Number>
[[nodiscard]] Number arithmetic(fi_op op, Number old, Number operand) {
  if constexpr (std::is_integral_v<Number>) {
    using Unsigned = std::make_unsigned_t<Number>;
    const uint64_t a = static_cast<Unsigned>(old);
    const uint64_t b = static_cast<Unsigned>(operand);
    return static_cast<Number>(op == FI_SUM ? a + b : a * b);
  } else {
    return op == FI_SUM ? old + operand : old * operand;
  }
}

template <class Number>
[[nodiscard]] Number bits(fi_op op, Number old, Number operand) {
  if constexpr (std::is_integral_v<Number>) {
    switch (op) {
      case FI_BOR:
        return static_cast<Number>(old | operand);
      case FI_BAND:
        return static_cast<Number>(old & operand);
      default:
        return static_cast<Number>(old ^ operand);
    }
  }
  return old;
}

template <class Number>
[[nodiscard]] Number updated(fi_op op, Number old, Number operand) {
  switch (op) {
    case FI_MIN:
      return std::min(old, operand);
    case FI_MAX:
      return std::max(old, operand);
    case FI_SUM:
    case FI_PROD:
      return arithmetic(op, old, operand);
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
      return bits(op, old, operand);
  }
}

/// Compares the user's operand with the target, in that order: "swap if compare LE target".
template <class Number>
[[nodiscard]] bool swaps(fi_op op, Number compare, Number old) {
  switch (op) {
    case FI_CSWAP:
      return compare == old;
    case FI_CSWAP_NE:
      return compare != old;
    case FI_CSWAP_LE:
      return compare <= old;
    case FI_CSWAP_LT:
      return compare < old;
    case FI_CSWAP_GE:
      return compare >= old;
    default:
      return compare > old;
  }
}

template <class Number>
[[nodiscard]] Number compared(fi_op op, Number old, Number operand, Number compare) {
  if (op == FI_MSWAP) {
    if constexpr (std::is_integral_v<Number>) {
      return static_cast<Number>((operand & compare) | (old & ~compare));
    }
  }
  return swaps(op, compare, old) ? operand : old;
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
  switch (type) {
    case FI_INT8:
      visit(int8_t{});
      return true;
    case FI_UINT8:
      visit(uint8_t{});
      return true;
    case FI_INT16:
      visit(int16_t{});
      return true;
    case FI_UINT16:
      visit(uint16_t{});
      return true;
    case FI_INT32:
      visit(int32_t{});
      return true;
    case FI_UINT32:
      visit(uint32_t{});
      return true;
    case FI_INT64:
      visit(int64_t{});
      return true;
    case FI_UINT64:
      visit(uint64_t{});
      return true;
    case FI_FLOAT:
      visit(float{});
      return true;
    case FI_DOUBLE:
      visit(double{});
      return true;
    default:
      return false;
  }
}

}  // namespace

size_t size_of(fi_datatype type) {
  size_t bytes = 0;
  static_cast<void>(with(type, [&](auto number) { bytes = sizeof(number); }));
  return bytes;
}

bool is_atomic(Atomic kind, fi_datatype type, fi_op op) {
  const bool whole = type != FI_FLOAT && type != FI_DOUBLE;
  const bool wants_whole = (op >= FI_BOR && op <= FI_BXOR && op != FI_LXOR) || op == FI_MSWAP;
  if (size_of(type) == 0 || (wants_whole && !whole)) {
    return false;
  }
  if (kind == Atomic::kCompare) {
    return op >= FI_CSWAP && op <= FI_MSWAP;
  }
  return op >= FI_MIN && op <= FI_ATOMIC_WRITE && (op != FI_ATOMIC_READ || kind == Atomic::kFetch);
}

void apply(fi_datatype type, fi_op op, uint8_t* at, const uint8_t* operands, const uint8_t* compare,
           uint8_t* old, size_t count) {
  static_cast<void>(with(type, [&](auto number) {
    apply_each<decltype(number)>(op, at, operands, compare, old, count);
  }));
}

}  // namespace rio::ofi
