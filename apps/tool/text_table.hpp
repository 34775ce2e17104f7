/// @file
/// Rows of text in aligned columns.
#pragma once

#include <string>
#include <vector>

namespace rio::tool {

/// Columns are as wide as their widest cell, two blanks apart; no blanks at the end of a line.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> heads) : rows_{std::move(heads)} {}
  /// @param cells as many as there are heads, or fewer.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  [[nodiscard]] bool empty() const { return rows_.size() == 1; }
  [[nodiscard]] std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace rio::tool
