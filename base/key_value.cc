#include "base/key_value.hpp"

#include <algorithm>
#include <cerrno>

#include "base/number.hpp"

namespace rio::base {
namespace {

[[nodiscard]] std::string place(size_t at) {
  return "character " + std::to_string(at + 1);
}

[[nodiscard]] KeyValue parse_item(std::string_view item, size_t at) {
  const size_t equals = item.find('=');
  if (equals == std::string_view::npos) {
    return {item, std::nullopt, at};
  }
  return {item.substr(0, equals), item.substr(equals + 1), at};
}

}  // namespace

int split_key_values(std::string_view text, std::vector<KeyValue>* out, std::string* error) {
  std::vector<KeyValue> pairs;
  for (size_t at = 0; at < text.size();) {
    const std::string_view item = text.substr(at, text.find(',', at) - at);
    const KeyValue pair = parse_item(item, at);
    at += item.size() + 1;
    if (item.empty()) {
      continue;
    }
    if (pair.key.empty()) {
      *error = "\"" + printable(item) + "\" at " + place(pair.at) +
               " has no key before '='; write KEY=VALUE";
      return -EINVAL;
    }
    const auto first = std::ranges::find(pairs, pair.key, &KeyValue::key);
    if (first != pairs.end()) {
      *error = printable(pair.key) + " is given twice, at " + place(first->at) + " and at " +
               place(pair.at) + "; leave one out";
      return -EINVAL;
    }
    pairs.push_back(pair);
  }
  *out = std::move(pairs);
  return 0;
}

}  // namespace rio::base
