#include "pmd/mem/cut.hpp"

#include <bit>
#include <cerrno>

namespace rio::pmd::mem {
namespace {

constexpr uint64_t kTransferMax = uint64_t{1} << 39;  // 2^31 messages of 256 bytes: fits Cut
constexpr uint32_t kWordBytes = 8;  // messages are padded to doublewords; RIO Part 2 §3.3.2
constexpr uint8_t kCutVersion = 1;

bool power_of_two_within(uint32_t value, uint32_t max) {
  return std::has_single_bit(value) && value <= max;
}

uint32_t round_up(uint32_t value, uint32_t unit) {
  return (value + unit - 1) / unit * unit;
}

int check_length(uint64_t len_bytes, const AlignRules& rules) {
  if (check_rules(rules) != 0 || len_bytes == 0) {
    return -EINVAL;
  }
  return len_bytes > kTransferMax ? -EFBIG : 0;
}

void put16(uint8_t* to, uint32_t value) {
  to[0] = static_cast<uint8_t>(value);
  to[1] = static_cast<uint8_t>(value >> 8);
}

uint32_t get16(const uint8_t* from) {
  return from[0] | uint32_t{from[1]} << 8;
}

}  // namespace

int check_rules(const AlignRules& rules) {
  const bool ok = power_of_two_within(rules.tx_addr, kMessagePage) &&
                  power_of_two_within(rules.dedicated_addr, kMessagePage) &&
                  power_of_two_within(rules.dedicated_size, kLandingBytes) &&
                  rules.message_max >= kLandingBytes && rules.message_max <= kMessagePage &&
                  rules.message_max % kLandingBytes == 0;
  return ok ? 0 : -EINVAL;
}

CutMessage cut_message(const Cut& cut, const AlignRules& rules, uint64_t index) {
  uint64_t middle = index;
  if (cut.head_bytes != 0) {
    if (index == 0) {
      return {0, cut.head_bytes, round_up(cut.head_bytes, kLandingBytes)};
    }
    --middle;
  }
  const uint64_t offset = cut.head_bytes + middle * rules.message_max;
  if (middle + 1 < cut.middle_messages) {
    return {offset, rules.message_max, rules.message_max};
  }
  if (middle + 1 == cut.middle_messages) {
    return {offset, cut.last_middle_bytes, cut.last_middle_bytes};
  }
  return {cut_bytes(cut, rules) - cut.tail_bytes, cut.tail_bytes,
          round_up(cut.tail_bytes, kLandingBytes)};
}

int make_cut(uint32_t offset_bytes, uint64_t len_bytes, const AlignRules& rules, Cut* out) {
  if (const int rc = check_length(len_bytes, rules); rc != 0) {
    return rc;
  }
  if (offset_bytes >= kMessagePage) {
    return -EINVAL;
  }
  // Entries of less than a doubleword cannot be matched: the card pads what it sends.
  const uint32_t size = rules.dedicated_size < kWordBytes ? kWordBytes : rules.dedicated_size;
  const uint32_t head =
      (rules.dedicated_addr - offset_bytes % rules.dedicated_addr) % rules.dedicated_addr;
  if (head >= rules.message_max) {  // only if messages are shorter than the alignment
    return make_bounced_cut(len_bytes, rules, out);
  }
  if (len_bytes < uint64_t{head} + size) {
    return make_bounced_cut(len_bytes, rules, out);
  }
  const uint64_t rest = len_bytes - head;
  const uint64_t middle = rest / size * size;
  Cut cut;
  cut.head_bytes = head;
  cut.middle_messages = static_cast<uint32_t>((middle + rules.message_max - 1) / rules.message_max);
  cut.last_middle_bytes =
      static_cast<uint32_t>(middle - uint64_t{cut.middle_messages - 1} * rules.message_max);
  cut.tail_bytes = static_cast<uint32_t>(rest - middle);
  *out = cut;
  return 0;
}

int make_bounced_cut(uint64_t len_bytes, const AlignRules& rules, Cut* out) {
  if (const int rc = check_length(len_bytes, rules); rc != 0) {
    return rc;
  }
  Cut cut;
  cut.middle_messages = static_cast<uint32_t>(len_bytes / rules.message_max);
  cut.last_middle_bytes = cut.middle_messages > 0 ? rules.message_max : 0;
  cut.tail_bytes = static_cast<uint32_t>(len_bytes % rules.message_max);
  *out = cut;
  return 0;
}

int check_cut(const Cut& cut, uint64_t len_bytes, const AlignRules& rules) {
  if (cut.head_bytes >= rules.message_max || cut.tail_bytes >= rules.message_max) {
    return -EPROTO;
  }
  if (cut.middle_messages == 0
          ? cut.last_middle_bytes != 0
          : cut.last_middle_bytes == 0 || cut.last_middle_bytes > rules.message_max ||
                cut.last_middle_bytes % kWordBytes != 0) {
    return -EPROTO;
  }
  return len_bytes != 0 && cut_bytes(cut, rules) == len_bytes ? 0 : -EPROTO;
}

void encode_cut(const Cut& cut, std::span<uint8_t, kCutWireBytes> out) {
  out[0] = kCutVersion;
  out[1] = 0;
  put16(&out[2], cut.head_bytes);
  put16(&out[4], cut.last_middle_bytes);
  put16(&out[6], cut.tail_bytes);
  put16(&out[8], cut.middle_messages);
  put16(&out[10], cut.middle_messages >> 16);
}

int decode_cut(std::span<const uint8_t> bytes, uint64_t len_max, const AlignRules& rules,
               Cut* out) {
  if (check_rules(rules) != 0) {
    return -EINVAL;
  }
  if (bytes.size() != kCutWireBytes || bytes[0] != kCutVersion || bytes[1] != 0) {
    return -EPROTO;
  }
  Cut cut;
  cut.head_bytes = get16(&bytes[2]);
  cut.last_middle_bytes = get16(&bytes[4]);
  cut.tail_bytes = get16(&bytes[6]);
  cut.middle_messages = get16(&bytes[8]) | get16(&bytes[10]) << 16;
  const uint64_t len_bytes = cut_bytes(cut, rules);
  if (len_bytes > len_max || check_cut(cut, len_bytes, rules) != 0) {
    return -EPROTO;
  }
  *out = cut;
  return 0;
}

}  // namespace rio::pmd::mem
