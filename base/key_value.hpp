/// @file
/// Lists of options in one text: "key=value,key=value".
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rio::base {

/// One item of a list. It points into the text that was split.
struct KeyValue {
  std::string_view key;                   ///< never empty
  std::optional<std::string_view> value;  ///< behind the first '='; none: the item has no '='
  size_t at = 0;                          ///< where the key begins in the text, from 0
};

/// Split "a,b=c,d=e" at its commas, and each item at its first '='. Empty items are skipped. Blanks
/// are not trimmed, and a comma cannot be quoted. Any thread, control path only.
/// @param text outlives `*out`.
/// @param out in the order of the text; set only on success.
/// @param error one line with the item, its place and the remedy, without the name of what the list
/// belongs to; set only on failure.
/// @return 0; -EINVAL: an item has no key ("=c"), or a key is there twice.
[[nodiscard]] int split_key_values(std::string_view text, std::vector<KeyValue>* out,
                                   std::string* error);

}  // namespace rio::base
