#include "fpga/cardsim/monitor.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "tests/support/temp_dir.hpp"
#include "tests/unit/fpga/cardsim/fake_monitor.hpp"

namespace rio::cardsim {
namespace {

TEST(Monitor, WordsAreParsed) {
  uint64_t word = 1;
  EXPECT_TRUE(
      word_after("(qemu) xp /1gx 0xfed90020\x1B[K\r\n00000000fed90020: 0x000000000abc0000\r\n",
                 "fed90020:", &word));
  EXPECT_EQ(word, 0xABC0000u);
  EXPECT_TRUE(word_after("fed90020: 0xffffffffffffffff", "fed90020:", &word));
  EXPECT_EQ(word, UINT64_MAX);
  word = 7;
  for (const char* wrong : {"", "xp /1gx 0xfed90020", "fed90020:", "fed90020: ", "fed90020: 0x",
                            "fed90020: 12", "fed90020: Cannot access memory", "fed90020: 0x12 0x13",
                            "fed90020: 0x10000000000000000", "fed90020:\r\n 0x12"}) {
    EXPECT_FALSE(word_after(wrong, "fed90020:", &word)) << wrong;
  }
  EXPECT_EQ(word, 7u);
}

TEST(Monitor, AsksAndNoticesTheEnd) {
  test::TempDir dir;
  const auto monitor = monitor_at(dir.at("mon"));
  EXPECT_EQ(monitor_at(dir.at("mon")), monitor);
  EXPECT_NE(monitor_at(dir.at("other")), monitor);
  uint64_t word = 0;
  EXPECT_EQ(monitor->read_word(0xFED90020, 8, &word), -ENOTCONN);
  EXPECT_FALSE(monitor->here());
  EXPECT_FALSE(monitor->gone());
  test::FakeMonitor qemu(dir.at("mon"));
  qemu.set("fed90020", "0x0000000001234000");
  qemu.set("fed9001c", "Cannot access memory");
  int rc = -ENOTCONN;
  for (int i = 0; i < 1000 && rc == -ENOTCONN; ++i) {
    rc = monitor->read_word(0xFED90020, 8, &word);
    usleep(1000);
  }
  EXPECT_EQ(rc, 0);
  EXPECT_EQ(word, 0x1234000u);
  EXPECT_TRUE(monitor->here());
  EXPECT_EQ(monitor->read_word(0xFED9001C, 4, &word), -EPROTO);
  qemu.hang_up();
  for (int i = 0; i < 1000 && !monitor->gone(); ++i) {
    monitor->serve();
    usleep(1000);
  }
  EXPECT_TRUE(monitor->gone());
  EXPECT_EQ(monitor->read_word(0xFED90020, 8, &word), -ENOTCONN);
}

TEST(Monitor, SilenceTimesOut) {
  test::TempDir dir;
  test::FakeMonitor qemu(dir.at("mon"));
  qemu.be_silent();
  Monitor monitor(dir.at("mon"), std::chrono::milliseconds(10));
  uint64_t word = 7;
  EXPECT_EQ(monitor.read_word(0xFED90020, 8, &word), -ETIMEDOUT);
  EXPECT_EQ(word, 7u);
  EXPECT_TRUE(monitor.here());
  EXPECT_FALSE(monitor.gone());
}

}  // namespace
}  // namespace rio::cardsim
