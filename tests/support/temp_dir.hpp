/// @file
/// A folder that is removed with its test.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace rio::test {

class TempDir {
 public:
  TempDir() {
    char name[] = "/tmp/cardsim-XXXXXX";
    const char* const made = mkdtemp(name);
    EXPECT_NE(made, nullptr);
    path_ = made == nullptr ? "" : made;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  [[nodiscard]] std::string at(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace rio::test
