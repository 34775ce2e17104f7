#include "apps/tool/words.hpp"

#include <algorithm>
#include <cctype>

namespace rio::tool {

size_t typing_distance(const std::string& a, const std::string& b) {
  // Rows of the table of distances between beginnings of the words.
  std::vector<size_t> before(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> now(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) {
    last[j] = j;
  }
  for (size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      now[j] = std::min({change, last[j] + 1, now[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        now[j] = std::min(now[j], before[j - 2] + 1);
      }
    }
    before.swap(last);
    last.swap(now);
  }
  return last[b.size()];
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
  std::string word;
  const size_t open = type_name.find('{');
  const std::string text = open == std::string::npos ? type_name : type_name.substr(open);
  const bool list = open != std::string::npos || text.find('|') != std::string::npos;
  const auto add = [&] {
    const bool name = std::any_of(word.begin(), word.end(), [](unsigned char c) {
      return std::islower(c) != 0 || std::isdigit(c) != 0;
    });
    if (list && name) {
      values.push_back(word);
    }
    word.clear();
  };
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.') {
      word += c;
    } else {
      add();
      if (c == '}') {
        break;
      }
    }
  }
  add();
  return values;
}

}  // namespace rio::tool
