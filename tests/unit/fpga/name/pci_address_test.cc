#include "fpga/name/pci_address.hpp"

#include <gtest/gtest.h>

namespace rio::name {
namespace {

TEST(PciAddress, WholeOrInPart) {
  PciAddress address;
  ASSERT_TRUE(read_pci_address("10001:a3:1f.7", &address));
  EXPECT_EQ(address.domain, 0x10001u);
  EXPECT_EQ(address.bus, 0xa3);
  EXPECT_EQ(address.device, 0x1f);
  EXPECT_EQ(address.function, 7);
  EXPECT_EQ(address.text(), "10001:a3:1f.7");
  ASSERT_TRUE(read_pci_address("3:1f.7", &address));
  EXPECT_EQ(address.text(), "0000:03:1f.7");
  ASSERT_TRUE(read_pci_address("4.1", &address));
  EXPECT_EQ(address.text(), "0000:00:04.1");
}

TEST(PciAddress, Wrong) {
  PciAddress address;
  address.bus = 9;
  for (const char* const wrong : {"",
                                  ".",
                                  ":",
                                  "::.",
                                  "4",
                                  "4.",
                                  ".1",
                                  ":4.1",
                                  "0:4",
                                  "20.0",
                                  "04.8",
                                  "100:04.0",
                                  "3:004.0",
                                  "3:4.00",
                                  "0000:03:00",
                                  "0:0:0:0.0",
                                  "123456789:0:0.0",
                                  "-1:0.0",
                                  "0x3:0.0",
                                  " 3:0.0",
                                  "3:0.0 ",
                                  "g:0.0"}) {
    EXPECT_FALSE(read_pci_address(wrong, &address)) << wrong;
    EXPECT_EQ(address.text(), "0000:09:00.0") << wrong;
  }
}

}  // namespace
}  // namespace rio::name
