// Any bytes as a Cut: one that is accepted must be a cut of the requested length.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "pmd/mem/cut.hpp"

using namespace rio::pmd::mem;

namespace {

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

}  // namespace

/// The length that the bytes claim, so that many inputs pass the last check.
uint64_t spoken_length(const uint8_t* cut, uint32_t message_max) {
  const auto u16 = [cut](size_t at) { return uint64_t{cut[at]} | uint64_t{cut[at + 1]} << 8; };
  const uint64_t messages = u16(8) | u16(10) << 16;
  return u16(2) + (messages > 0 ? (messages - 1) * message_max : 0) + u16(4) + u16(6);
}

// Input: length of the transfer (u64, 0: as the bytes say), longest message (u8), then the bytes to
// decode.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  uint64_t len_bytes = 0;
  if (size < sizeof(len_bytes) + 1) {
    return 0;
  }
  std::memcpy(&len_bytes, data, sizeof(len_bytes));
  AlignRules rules;
  rules.message_max = 256 + 256 * (data[sizeof(len_bytes)] % 17);  // the 17th is refused
  data += sizeof(len_bytes) + 1;
  size -= sizeof(len_bytes) + 1;
  if (len_bytes == 0 && size == kCutWireBytes) {
    len_bytes = spoken_length(data, rules.message_max);
  }
  Cut cut;
  if (decode_cut({data, size}, len_bytes, rules, &cut) != 0) {
    return 0;
  }
  require(cut_bytes(cut, rules) <= len_bytes);
  len_bytes = cut_bytes(cut, rules);
  uint8_t again[kCutWireBytes];
  encode_cut(cut, again);
  require(size == sizeof(again) && std::memcmp(again, data, size) == 0);
  const uint64_t messages = cut_messages(cut);
  uint64_t at = 0;
  for (uint64_t i = 0; i < messages && i < 1000; ++i) {
    const CutMessage part = cut_message(cut, rules, i);
    require(part.offset_bytes == at && part.len_bytes >= 1 && part.len_bytes <= part.wire_bytes &&
            part.wire_bytes <= rules.message_max);
    at += part.len_bytes;
  }
  require(messages > 1000 || at == len_bytes);
  const CutMessage last = cut_message(cut, rules, messages - 1);
  require(last.offset_bytes + last.len_bytes == len_bytes);
  return 0;
}
