// The card's master: large data has windows of its own, beside those of short messages.
#include "fpga/model/core/host_port.hpp"

#include <gtest/gtest.h>

namespace rio::model {
namespace {

class Counted final : public DmaTable {
 public:
  bool find(uint64_t iova, HostWindow* out) override {
    ++finds;
    return DmaTable::find(iova, out);
  }
  uint32_t finds = 0;
};

TEST(HostPort, LargeDataLeavesTheWindowsOfShortMessages) {
  constexpr uint64_t kBytes = 4096;
  constexpr uint64_t kSlots = 0x10000;
  constexpr uint64_t kFrom = 0x20000;
  constexpr uint64_t kTo = 0x30000;
  static uint8_t bytes[3][kBytes];
  Counted memory;
  uint32_t i = 0;
  for (const uint64_t iova : {kSlots, kFrom, kTo}) {
    ASSERT_EQ(memory.add({iova, kBytes, bytes[i++]}), 0);
  }
  HostPort port(&memory, Config{});
  EXPECT_TRUE(port.begin_step());
  const auto use_all = [&] {
    EXPECT_EQ(port.readable(kSlots, 64), bytes[0]);
    EXPECT_EQ(port.writable(kSlots, 64), bytes[0]);
    EXPECT_EQ(port.large(kFrom, kBytes, false), bytes[1]);
    EXPECT_EQ(port.large(kTo, kBytes, true), bytes[2]);
  };
  use_all();
  EXPECT_EQ(memory.finds, 4u);
  use_all();
  EXPECT_EQ(memory.finds, 4u);
  EXPECT_TRUE(port.large_write_window().holds(kTo, kBytes));
  EXPECT_EQ(port.large(kTo, kBytes + 1, true), nullptr);
}

}  // namespace
}  // namespace rio::model
