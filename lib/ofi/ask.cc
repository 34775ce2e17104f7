#include "lib/ofi/ask.hpp"

#include <cerrno>
#include <cstring>

namespace rio::ofi {
namespace {

[[nodiscard]] bool is_sane(const AskHeader& ask, size_t rest_bytes) {
  const bool follows = (ask.flags & AskHeader::kFollows) != 0;
  if ((ask.flags & ~(AskHeader::kFollows | AskHeader::kImmediate)) != 0 ||
      ask.bytes > tag::kLengthMax) {
    return false;
  }
  switch (ask.verb) {
    case Verb::kWrite:
      return rest_bytes == (follows ? 0 : ask.bytes);
    case Verb::kRead:
      return rest_bytes == 0 && ask.flags == 0;
    default:
      break;
  }
  const auto type = static_cast<fi_datatype>(ask.type);
  const auto op = static_cast<fi_op>(ask.op);
  if (ask.verb > Verb::kCompare || !is_atomic(ask.verb) || follows ||
      !is_atomic(atomic_of(ask.verb), type, op) || ask.bytes > kAtomicBytesMax ||
      ask.bytes % size_of(type) != 0) {
    return false;
  }
  const uint64_t values = (has_operands(op) ? 1u : 0u) + (ask.verb == Verb::kCompare ? 1u : 0u);
  return rest_bytes == values * ask.bytes;
}

}  // namespace

int read_ask(std::span<const uint8_t> bytes, AskHeader* out, std::span<const uint8_t>* rest) {
  AskHeader ask;
  if (bytes.size() < sizeof(ask)) {
    return -EPROTO;
  }
  std::memcpy(&ask, bytes.data(), sizeof(ask));
  if (!is_sane(ask, bytes.size() - sizeof(ask))) {
    return -EPROTO;
  }
  *out = ask;
  *rest = bytes.subspan(sizeof(ask));
  return 0;
}

}  // namespace rio::ofi
