/// @file
/// Words of a command line. Pure functions, any thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace rio::tool {

/// How many letters must be changed, added, left out or swapped with the next to turn one word into
/// the other.
[[nodiscard]] size_t typing_distance(const std::string& a, const std::string& b);

/// The word nearest to `word`, the first of those alike; empty if none is near: fewer than half of
/// the letters would stay.
[[nodiscard]] std::string nearest_word(const std::string& word,
                                       const std::vector<std::string>& words);

/// Values of an option whose type or check names them: "COUNT|show" gives show, "{a,b}" gives a and
/// b; words in capitals stand for anything and give nothing.
[[nodiscard]] std::vector<std::string> fixed_values(const std::string& type_name);

}  // namespace rio::tool
