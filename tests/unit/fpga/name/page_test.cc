// docs/cards.md agrees with the parser: it lists each kind of card, and each key with its kinds,
// values and default.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "fpga/name/keys.hpp"

namespace rio::name {
namespace {

/// The rows of the page's tables whose first column is a word in code spelling.
std::vector<std::string> rows_of_page() {
  std::ifstream page(CARDS_PAGE);
  std::vector<std::string> rows;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("| `")) {
      rows.push_back(line);
    }
  }
  return rows;
}

TEST(CardsPage, HasEachKind) {
  const std::vector<std::string> rows = rows_of_page();
  ASSERT_FALSE(rows.empty()) << CARDS_PAGE;
  for (const KindRow& row : kinds()) {
    const std::string begin = "| `" + std::string(row.prefix.empty() ? "0000:" : row.prefix);
    EXPECT_TRUE(std::ranges::any_of(rows, [&](const std::string& one) {
      return one.starts_with(begin);
    })) << begin;
  }
}

TEST(CardsPage, HasEachKeyAndNoOther) {
  std::vector<std::string> rows = rows_of_page();
  for (const Key& key : keys()) {
    const std::string in_dpdk = key.dpdk == 0 ? "–" : list_kinds(key.dpdk);
    const std::string begin = "| `" + std::string(key.key) + "` | " + list_kinds(key.kinds) +
                              " | " + in_dpdk + " | " + key.allowed + " | " +
                              (key.fallback == nullptr ? "must be given" : key.fallback) + " | ";
    const auto found =
        std::ranges::find_if(rows, [&](const std::string& one) { return one.starts_with(begin); });
    EXPECT_NE(found, rows.end()) << "the page lacks: " << begin;
    if (found != rows.end()) {
      rows.erase(found);
    }
  }
  for (const std::string& row :
       rows) {  // the other rows have fewer columns: the kinds, and DPDK's own keys
    EXPECT_LT(std::ranges::count(row, '|'), 7) << "not the parser's: " << row;
  }
}

}  // namespace
}  // namespace rio::name
