#include "lib/ofi/ask.hpp"

#include <cerrno>
#include <cstring>

#include <rdma/fabric.h>

namespace rio::ofi {
namespace {

[[nodiscard]] bool is_sane(const AskHeader& ask, size_t rest_bytes) {
  const bool follows = (ask.flags & AskHeader::kFollows) != 0;
  const bool fences = (ask.flags & AskHeader::kFences) != 0;
  constexpr uint8_t kFlags = AskHeader::kFollows | AskHeader::kImmediate | AskHeader::kFences;
  if ((ask.flags & ~kFlags) != 0 || ask.bytes > tag::kLengthMax ||
      (fences && (ask.verb != Verb::kWrite || ask.type >= msg::kRailsMax))) {
    return false;
  }
  switch (ask.verb) {
    case Verb::kWrite:
      return rest_bytes == (follows ? 0 : ask.bytes);
    case Verb::kRead:
      return rest_bytes == 0 && ask.flags == 0;
    case Verb::kWindow:
      return rest_bytes == 0 && ask.flags == 0 && ask.bytes == 0 &&
             owner_rail(ask.address) < msg::kRailsMax && asking_rail(ask.address) < msg::kRailsMax;
    default:
      break;
  }
  const auto type = static_cast<fi_datatype>(ask.type);
  const auto op = static_cast<fi_op>(ask.op);
  if (follows || !is_atomic(ask.verb, type, op) || ask.bytes > kAtomicBytesMax ||
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

bool is_window(const WindowReply& reply) {
  constexpr uint64_t kAddrEnd = 1ull << 48;
  const uint64_t begin = reply.rio_addr & (kAddrEnd - 1);
  return begin != 0 && reply.bytes != 0 && reply.bytes <= kAddrEnd - begin &&
         reply.first + (reply.bytes - 1) >= reply.first && reply.rights != 0 &&
         (reply.rights & ~uint64_t{FI_REMOTE_READ | FI_REMOTE_WRITE}) == 0;
}

}  // namespace rio::ofi
