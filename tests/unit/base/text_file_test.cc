#include "base/text_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <thread>

namespace rio::base {
namespace {

constexpr size_t kMax = 100000;

class TextFile : public testing::Test {
 protected:
  ~TextFile() override { unlink(path_.c_str()); }
  int read(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    return read_text_file(path_, kMax, &text_, &error_);
  }
  const std::string path_ = testing::TempDir() + "text-file-" + std::to_string(getpid());
  std::string text_ = "as before";
  std::string error_;
};

TEST_F(TextFile, IsReadWholeWithoutItsByteOrderMark) {
  for (const std::string& text : {std::string(), std::string("one\ntwo"), std::string(kMax, 'x')}) {
    EXPECT_EQ(read(text), 0) << error_;
    EXPECT_TRUE(text_ == text);
  }
  EXPECT_EQ(read("\xEF\xBB\xBFone"), 0) << error_;
  EXPECT_EQ(text_, "one");
  EXPECT_EQ(read("\xEF\xBB"), 0) << error_;  // no mark
  EXPECT_EQ(text_, "\xEF\xBB");
}

TEST_F(TextFile, AnErrorNamesTheFileAndTheCause) {
  const auto expect = [&](int rc, int expected, const std::string& path, const char* word) {
    EXPECT_EQ(rc, expected) << error_;
    EXPECT_EQ(error_.find(path), 0u) << error_;
    EXPECT_NE(error_.find(word), std::string::npos) << error_;
    EXPECT_EQ(text_, "as before");
  };
  expect(read_text_file("/tmp", kMax, &text_, &error_), -EISDIR, "/tmp", "is a folder");
  expect(read_text_file(path_ + "-not", kMax, &text_, &error_), -ENOENT, path_ + "-not",
         "No such file");
  expect(read(std::string(kMax + 1, 'x')), -EFBIG, path_, "100000 bytes");
  expect(read(std::string("\xFF\xFEo\0n\0", 6)), -EILSEQ, path_, "UTF-8");
  expect(read(std::string("o\0n\0", 4)), -EILSEQ, path_, "UTF-8");
  expect(read("\xFE\xFF"), -EILSEQ, path_, "UTF-8");
}

TEST_F(TextFile, MayBeAPipe) {
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  std::thread writer([&] {
    EXPECT_EQ(write(fds[1], "one", 3), 3);
    EXPECT_EQ(write(fds[1], "two", 3), 3);
    close(fds[1]);
  });
  EXPECT_EQ(read_text_file("/dev/fd/" + std::to_string(fds[0]), kMax, &text_, &error_), 0)
      << error_;
  writer.join();
  close(fds[0]);
  EXPECT_EQ(text_, "onetwo");
}

TEST(Trimmed, LosesTheBlanksAroundIt) {
  EXPECT_EQ(trimmed(" \t one  two\r\n"), "one  two");
  EXPECT_EQ(trimmed("one"), "one");
  EXPECT_EQ(trimmed(" \n "), "");
  EXPECT_EQ(trimmed(""), "");
}

}  // namespace
}  // namespace rio::base
