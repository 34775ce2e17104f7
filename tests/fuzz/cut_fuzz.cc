// Foreign bytes as a Cut: what passes must be a cut of the length that was asked for.
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

// Input: length of the transfer (u64), alignment (u8), then the bytes to decode.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  uint64_t len_bytes = 0;
  if (size < sizeof(len_bytes) + 1) {
    return 0;
  }
  std::memcpy(&len_bytes, data, sizeof(len_bytes));
  AlignRules rules;
  rules.message_max = 256 + 256 * (data[sizeof(len_bytes)] % 17);  // 17th: outside, refused
  data += sizeof(len_bytes) + 1;
  size -= sizeof(len_bytes) + 1;
  Cut cut;
  if (decode_cut({data, size}, len_bytes, rules, &cut) != 0) {
    return 0;
  }
  require(cut_bytes(cut, rules) == len_bytes);
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
