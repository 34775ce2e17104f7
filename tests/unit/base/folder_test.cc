#include "base/folder.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temp_dir.hpp"

namespace rio::base {
namespace {

TEST(Folder, NamesAreSorted) {
  const test::TempDir dir;
  for (const char* const name : {"b", "a", ".hidden", "c"}) {
    std::ofstream(dir.at(name)) << name;
  }
  EXPECT_EQ(names_in(dir.at("")), (std::vector<std::string>{".hidden", "a", "b", "c"}));
}

TEST(Folder, WithoutAFolderThereAreNoNames) {
  const test::TempDir dir;
  std::ofstream(dir.at("file")) << "text";
  EXPECT_TRUE(names_in(dir.at("gone")).empty());
  EXPECT_TRUE(names_in(dir.at("file")).empty());
}

}  // namespace
}  // namespace rio::base
