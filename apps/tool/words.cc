#include "apps/tool/words.hpp"

#include <algorithm>
#include <cctype>
#include <functional>
#include <sstream>

namespace rio::tool {

size_t typing_distance(const std::string& a, const std::string& b) {
  // Distances between beginnings of the words.
  std::vector<std::vector<size_t>> table(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        table[i][j] = i + j;
        continue;
      }
      const size_t change = table[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      table[i][j] = std::min({change, table[i - 1][j] + 1, table[i][j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        table[i][j] = std::min(table[i][j], table[i - 2][j - 2] + 1);
      }
    }
  }
  return table[a.size()][b.size()];
}

std::string nearest_word(const std::string& word, const std::vector<std::string>& words) {
  std::string best;
  size_t least = word.size();
  for (const std::string& one : words) {
    const size_t distance = typing_distance(word, one);
    if (distance < least && distance * 2 <= std::max(word.size(), one.size())) {
      least = distance;
      best = one;
    }
  }
  return best;
}

std::vector<std::string> fixed_values(const std::string& type_name) {
  std::vector<std::string> values;
  const size_t open = type_name.find('{');
  if (open == std::string::npos && type_name.find('|') == std::string::npos) {
    return values;
  }
  std::string list = open == std::string::npos
                         ? type_name
                         : type_name.substr(open, type_name.find('}', open) - open);
  const auto is_of_word = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  };
  std::replace_if(list.begin(), list.end(), std::not_fn(is_of_word), ' ');
  std::istringstream words(list);
  for (std::string word; words >> word;) {
    if (std::any_of(word.begin(), word.end(),
                    [](unsigned char c) { return std::islower(c) != 0 || std::isdigit(c) != 0; })) {
      values.push_back(word);
    }
  }
  return values;
}

}  // namespace rio::tool
