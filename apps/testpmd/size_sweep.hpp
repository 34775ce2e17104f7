/// @file
/// Sizes to run: one, or `first,last,step,ADD|MUL` as dpdk-test-dma-perf has it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rio::testpmd {

/// Parse a size or a sweep. @param text foreign. @param max_bytes largest size allowed, at least 1.
/// @param sizes ascending, at least one, each 1 to max_bytes.
/// @param error what is wrong and what would be right. @return 0 or -EINVAL.
[[nodiscard]] int parse_sizes(std::string_view text, uint32_t max_bytes,
                              std::vector<uint32_t>* sizes, std::string* error);

/// Parse an unsigned number: decimal, or hexadecimal with 0x; K and M multiply by 2^10 and 2^20.
/// @param max largest value allowed. @return false for anything else.
[[nodiscard]] bool parse_number(std::string_view text, uint64_t max, uint64_t* out);

}  // namespace rio::testpmd
