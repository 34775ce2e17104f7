#include "apps/tool/nearest.hpp"

#include <algorithm>

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

}  // namespace rio::tool
