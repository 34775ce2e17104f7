/// @file
/// The steps that tag_count and tag_bench repeat: a fixed number of entries waits; in each step the
/// oldest one goes and a new one comes.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/tag/matcher.hpp"

namespace rio::bench {

struct TagCase {
  const char* name;
  bool one_key = false;     // all receives and messages have the same key
  bool any_source = false;  // receives match any source
  uint64_t ignore = 0;      // bits that the receives ignore
  bool unexpected = false;  // messages wait, and receives come
  bool cancel = false;      // receives are cancelled instead of matched
};

inline constexpr TagCase kTagCases[] = {
    {.name = "exact"},
    {.name = "same", .one_key = true},
    {.name = "any", .any_source = true},
    {.name = "masked", .one_key = true, .ignore = 0xFFFFFFFF},
    {.name = "cancel", .cancel = true},
    {.name = "unexpected", .unexpected = true},
    {.name = "unexpected_any", .any_source = true, .unexpected = true},
};

class TagTraffic {
 public:
  /// Entries with different keys, unless the case says otherwise. @param count at least 1.
  TagTraffic(const TagCase& kind, uint64_t count);
  /// Removes one entry and adds one. It ends the program if a result is not as expected.
  void step();

 private:
  [[nodiscard]] uint64_t bits(uint64_t number) const;
  [[nodiscard]] uint32_t source(uint64_t number) const;
  void fill(tag::Receive& receive, uint64_t number) const;
  void put(uint64_t slot, uint64_t number);
  void get(uint64_t slot, uint64_t number);

  TagCase kind_;
  tag::Matcher matcher_;
  std::vector<tag::Receive> receives_;
  std::vector<tag::Message> messages_;
  uint64_t oldest_ = 0;  // number of the oldest entry
  uint64_t slot_ = 0;    // index of the oldest entry
};

}  // namespace rio::bench
