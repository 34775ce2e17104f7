/// @file
/// What tag_count and tag_bench repeat: so many entries wait all the time; the oldest goes, a new
/// one comes.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/tag/matcher.hpp"

namespace rio::bench {

struct TagCase {
  const char* name;
  bool one_key = false;     // all receives and messages have the same key
  bool any_source = false;  // receives are of any source
  uint64_t ignore = 0;      // of the receives
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
  /// Entries of different keys, but where the case says otherwise. @param count at least 1.
  TagTraffic(const TagCase& kind, uint64_t count);
  /// One entry goes, one comes. It ends the program if anything is not as expected.
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
  uint64_t oldest_ = 0;  // number of the entry
  uint64_t slot_ = 0;    // where it is
};

}  // namespace rio::bench
