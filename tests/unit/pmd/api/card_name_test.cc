// Opening cards by name. tests/unit/fpga/name tests the parser of names.
#include "pmd/api/card_name.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "tests/unit/pmd/api/log_lines.hpp"

namespace rio {
namespace {

TEST(CardName, WrongOnesAreLogged) {
  for (const char* const wrong : {"", "eth0", "emu:loop,qps=32", "listen:socket=/tmp/a"}) {
    test::LogLines log;
    name::CardName name;
    name.label = "untouched";
    EXPECT_EQ(parse_card_name(wrong, &name), -EINVAL) << wrong;
    EXPECT_EQ(name.label, "untouched") << wrong;
    EXPECT_TRUE(log.had("card \"" + std::string(wrong) + "\": ")) << log.last();
    std::unique_ptr<pmd::Bus> bus;
    EXPECT_EQ(open_bus(wrong, &bus), -EINVAL) << wrong;
    EXPECT_EQ(bus, nullptr);
  }
}

TEST(CardName, EachKindOpensItsBus) {
  std::unique_ptr<pmd::Bus> bus;
  ASSERT_EQ(open_bus("emu:loop,qps=2", &bus), 0);
  EXPECT_EQ(bus->name(), "emu:loop/0");
  EXPECT_NE(bus->poll_hook(0).fn, nullptr);
  EXPECT_EQ(bus->emulation().set_faults(1, 1.5), -EINVAL);
  EXPECT_EQ(bus->emulation().set_faults(1, 0.0), 0);
  EXPECT_EQ(bus->emulation().dest_id(), 0u) << "the driver's to give";
  test::LogLines log;
  EXPECT_EQ(open_bus("emu:fabric,topology=/nonexistent/f.json,at=a", &bus), -ENOENT);
  EXPECT_TRUE(log.had("/nonexistent/f.json")) << log.last();
  EXPECT_EQ(open_bus("sim:/nonexistent/socket,wait=0", &bus), -ENOENT);
  EXPECT_TRUE(log.had("sim:/nonexistent/socket")) << log.last();
  EXPECT_LT(open_bus("relay:no-relay-of-this-test", &bus), 0);
  EXPECT_TRUE(log.had("no-relay-of-this-test")) << log.last();
  EXPECT_LT(open_bus("udp:x,id=1,members=/nonexistent/members", &bus), 0);
  EXPECT_TRUE(log.had("/nonexistent/members")) << log.last();
}

TEST(CardName, AMissingPciCardIsReported) {
  test::LogLines log;
  std::unique_ptr<pmd::Bus> bus;
  EXPECT_LT(open_bus("ffff:ff:1f.7", &bus), 0);
  EXPECT_EQ(bus, nullptr);
  EXPECT_FALSE(log.had("nothing of the kind"));
  EXPECT_FALSE(log.last().empty());
}

}  // namespace
}  // namespace rio
