#include "fpga/wire/udp/address.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

namespace rio::wire::udp {
namespace {

TEST(UdpAddress, IsPrintedAsItIsRead) {
  for (const char* text : {"10.0.0.2:7000", "[::1]:1", "[fd00::12]:65535"}) {
    Address at;
    ASSERT_EQ(Address::parse(text, false, &at), 0) << text;
    EXPECT_EQ(at.text(), text);
  }
}

TEST(UdpAddress, OtherTextIsRefused) {
  Address at;
  for (const char* text :
       {"", ":7000", "10.0.0.2", "10.0.0.2:", "10.0.0.2:0", "10.0.0.2:65536", "10.0.0.2:7x",
        "::1:7000", "[::1]", "host.name:7000", "10.0.0:70 ", "[10.0.0.2:7000", "[]:7000"}) {
    EXPECT_EQ(Address::parse(text, false, &at), -EINVAL) << text;
  }
}

TEST(UdpAddress, HasAnOrder) {
  Address a, b, c;
  ASSERT_EQ(Address::parse("10.0.0.2:7000", false, &a), 0);
  ASSERT_EQ(Address::parse("10.0.0.2:7001", false, &b), 0);
  ASSERT_EQ(Address::parse("10.0.1.1:1", false, &c), 0);
  EXPECT_TRUE(a < b && b < c && a < c);
  EXPECT_FALSE(b < a || c < b || a < a);
  EXPECT_TRUE(a == a);
  EXPECT_FALSE(a == b || a == c);
}

TEST(UdpAddress, ThisMachineHasOne) {
  Address at;
  ASSERT_EQ(Address::local("", 0, &at), 0);
  EXPECT_NE(at.family(), AF_UNSPEC);
  ASSERT_EQ(Address::local("127.0.0.1", 77, &at), 0);
  EXPECT_EQ(at.text(), "127.0.0.1:77");
  ASSERT_EQ(Address::local("::1", 77, &at), 0);
  EXPECT_EQ(at.text(), "[::1]:77");
  ASSERT_EQ(Address::local("lo", 77, &at), 0);
  EXPECT_EQ(at.text(), "127.0.0.1:77");
  EXPECT_EQ(Address::local("no-such-interface", 0, &at), -EADDRNOTAVAIL);
}

}  // namespace
}  // namespace rio::wire::udp
