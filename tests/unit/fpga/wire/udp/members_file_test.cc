#include "fpga/wire/udp/seat.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>

namespace rio::wire::udp {
namespace {

class UdpMembersFile : public testing::Test {
 protected:
  ~UdpMembersFile() override { unlink(path_.c_str()); }
  int read(const std::string& text) {
    std::ofstream(path_) << text;
    return read_members(path_, &members_, &error_);
  }
  const std::string path_ = testing::TempDir() + "members-" + std::to_string(getpid());
  std::vector<Place> members_;
  std::string error_;
};

TEST_F(UdpMembersFile, IsParsed) {
  ASSERT_EQ(read("# who\n1 10.0.0.1:7000 # the first\n\n  7\t[::1]:7001\n"), 0) << error_;
  ASSERT_EQ(members_.size(), 2u);
  EXPECT_EQ(members_[0].id, 1u);
  EXPECT_EQ(members_[0].address.text(), "10.0.0.1:7000");
  EXPECT_EQ(members_[1].id, 7u);
  EXPECT_EQ(members_[1].address.text(), "[::1]:7001");
}

TEST_F(UdpMembersFile, MayBeginWithAByteOrderMark) {
  ASSERT_EQ(read("\xEF\xBB\xBF"
                 "1 10.0.0.1:7000\r\n2 10.0.0.2:7000\r\n"),
            0)
      << error_;
  ASSERT_EQ(members_.size(), 2u);
  EXPECT_EQ(members_[0].id, 1u);
}

TEST_F(UdpMembersFile, AFolderIsReported) {
  EXPECT_EQ(read_members(testing::TempDir(), &members_, &error_), -EISDIR);
  EXPECT_NE(error_.find("is a folder"), std::string::npos) << error_;
}

TEST_F(UdpMembersFile, NamesTheWrongLine) {
  for (const char* wrong : {"0 10.0.0.1:1", "x 10.0.0.1:1", "1", "1 10.0.0.1", "1 10.0.0.1:1 more",
                            "4294967295 10.0.0.1:1", "1 10.0.0.1:99999"}) {
    EXPECT_EQ(read("5 10.0.0.5:5\n" + std::string(wrong) + "\n"), -EINVAL) << wrong;
    EXPECT_NE(error_.find("line 2"), std::string::npos) << error_;
  }
}

TEST_F(UdpMembersFile, NoMemberIsListedTwice) {
  EXPECT_EQ(read("1 10.0.0.1:1\n1 10.0.0.1:2\n"), -EINVAL);
  EXPECT_NE(error_.find("destID 1 is listed twice"), std::string::npos) << error_;
  EXPECT_EQ(read("1 10.0.0.1:1\n2 10.0.0.1:1\n"), -EINVAL);
  EXPECT_NE(error_.find("10.0.0.1:1 is listed twice"), std::string::npos) << error_;
}

TEST_F(UdpMembersFile, AMissingFileIsReported) {
  EXPECT_EQ(read_members(path_ + "-not", &members_, &error_), -ENOENT);
  EXPECT_NE(error_.find(path_ + "-not"), std::string::npos) << error_;
}

}  // namespace
}  // namespace rio::wire::udp
