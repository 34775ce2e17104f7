#include "pmd/bus/vfio/pci_scan.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>

#include "tests/unit/pmd/bus/vfio/fake_system.hpp"

namespace rio::pmd::vfio {
namespace {

TEST(PciAddress, AcceptsTheUsualForms) {
  name::PciAddress address;
  EXPECT_EQ(parse_address("0000:03:00.0", &address), 0);
  EXPECT_EQ(address.text(), "0000:03:00.0");
  EXPECT_EQ(parse_address("3:1f.7", &address), 0);
  EXPECT_EQ(address.text(), "0000:03:1f.7");
  EXPECT_EQ(parse_address("10001:03:00.0", &address), 0);
  EXPECT_EQ(address.text(), "10001:03:00.0");
  for (const char* bad : {"", "03:00", "0000:03:00.8", "0000:03:20.0", "0000:03:00.0x", "xyz",
                          " 03:00.0", "0000:03:00.0 ", "-1:00.0", "0x3:00.0"}) {
    EXPECT_EQ(parse_address(bad, &address), -EINVAL) << bad;
  }
}

TEST(FindCards, ReturnsTheSystemsDescription) {
  FakeTree tree;
  tree.add_device("0000:04:00.0", 0x10EE, 0x7210, "", -1, 0, -1);
  tree.add_device("0000:03:00.0", 0x10EE, 0x7210, "vfio-pci", 7);
  tree.add_device("0000:05:00.0", 0x8086, 0x1533, "igb", 8);
  FakeKernel kernel(tree.paths);
  std::vector<PciCard> cards;
  ASSERT_EQ(find_cards(tree.paths, &cards, kernel), 0);
  ASSERT_EQ(cards.size(), 2u);
  EXPECT_EQ(cards[0].address, "0000:03:00.0");
  EXPECT_EQ(cards[0].vendor, 0x10EE);
  EXPECT_EQ(cards[0].device, 0x7210);
  EXPECT_EQ(cards[0].driver, "vfio-pci");
  EXPECT_EQ(cards[0].iommu_group, 7);
  EXPECT_EQ(cards[0].numa_node, 1);
  EXPECT_EQ(cards[0].bar, 0);
  EXPECT_EQ(cards[0].bar_bytes[0], kBarBytes);
  EXPECT_EQ(cards[0].bar_bytes[2], 0u);
  EXPECT_EQ(cards[1].driver, "");
  EXPECT_EQ(cards[1].iommu_group, -1);
  EXPECT_EQ(cards[1].numa_node, -1);
}

// The chip's vendor and device belong to other designs, too. Their BARs are not read.
TEST(FindCards, TellsCardsFromOtherDesignsByTheSubsystem) {
  FakeTree tree;
  const char* const addresses[] = {"0000:03:00.0", "0000:04:00.0", "0000:05:00.0"};
  for (const char* const address : addresses) {
    tree.add_device(address, 0x10EE, 0x7210, "", -1);
  }
  tree.set_ids(addresses[1], "subsystem_", 0x10EE, 0x0007);
  tree.set_ids(addresses[2], "subsystem_", 0x1234, 0x5249);
  FakeKernel kernel(tree.paths);
  std::vector<PciCard> cards;
  ASSERT_EQ(find_cards(tree.paths, &cards, kernel), 0);
  ASSERT_EQ(cards.size(), 1u);
  EXPECT_EQ(cards[0].address, addresses[0]);
  PciCard card;
  EXPECT_EQ(find_card(tree.paths, addresses[1], &card), 0) << "by its address any can be opened";
  EXPECT_EQ(card.subsystem, 0x0007);
}

TEST(FindCards, FindsIvshmemOnlyWithTheMagic) {
  FakeTree tree;
  tree.add_device("0000:00:04.0", 0x1AF4, 0x1110, "uio_pci_generic", -1, 2);
  tree.add_device("0000:00:05.0", 0x1AF4, 0x1110, "", -1, 2);
  tree.set_word("0000:00:05.0", 2, 0x12345678);
  FakeKernel kernel(tree.paths);
  std::vector<PciCard> cards;
  ASSERT_EQ(find_cards(tree.paths, &cards, kernel), 0);
  ASSERT_EQ(cards.size(), 1u);
  EXPECT_EQ(cards[0].address, "0000:00:04.0");
  EXPECT_EQ(cards[0].bar, 2);
}

TEST(FindCards, SleepingIvshmemIsReadThroughVfio) {
  FakeTree tree;
  tree.add_device("0000:00:04.0", 0x1AF4, 0x1110, "vfio-pci", 7, 2);
  tree.set_word("0000:00:04.0", 2, 0xFFFFFFFF);
  FakeKernel kernel(tree.paths);
  kernel.bar_index = 2;
  std::vector<PciCard> cards;
  ASSERT_EQ(find_cards(tree.paths, &cards, kernel), 0);
  EXPECT_EQ(cards.size(), 1u);
  EXPECT_TRUE(kernel.opened.empty());
  kernel.set_magic(1);
  ASSERT_EQ(find_cards(tree.paths, &cards, kernel), 0);
  EXPECT_TRUE(cards.empty());
}

TEST(FindCards, FindingNoneIsNotAnError) {
  FakeTree tree;
  FakeKernel kernel(tree.paths);
  std::vector<PciCard> cards(1);
  ASSERT_EQ(find_cards(tree.paths, &cards, kernel), 0);
  EXPECT_TRUE(cards.empty());
}

TEST(FindCards, BrokenTreesAreErrorsAndNoExits) {
  FakeTree tree;
  tree.add_device("0000:03:00.0", 0x10EE, 0x7210, "vfio-pci", 7);
  FakeKernel kernel(tree.paths);
  std::vector<PciCard> cards;
  std::filesystem::remove(tree.device("0000:03:00.0") + "/vendor");
  testing::internal::CaptureStderr();
  EXPECT_EQ(find_cards(tree.paths, &cards, kernel), -EIO);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("libpci"), std::string::npos);
  std::filesystem::remove_all(tree.paths.sysfs);
  testing::internal::CaptureStderr();
  EXPECT_EQ(find_cards(tree.paths, &cards, kernel), -ENODEV);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("sysfs"), std::string::npos);
}

TEST(FindCard, NamesTheExistingCards) {
  FakeTree tree;
  tree.add_device("0000:03:00.0", 0x10EE, 0x7210, "vfio-pci", 7);
  PciCard card;
  EXPECT_EQ(find_card(tree.paths, "03:00.0", &card), 0);
  EXPECT_EQ(card.address, "0000:03:00.0");
  testing::internal::CaptureStderr();
  EXPECT_EQ(find_card(tree.paths, "03:00.1", &card), -ENODEV);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("0000:03:00.1"), std::string::npos);
  EXPECT_NE(text.find("cards of this kind: 0000:03:00.0"), std::string::npos);
  EXPECT_NE(text.find("rescan"), std::string::npos);
}

}  // namespace
}  // namespace rio::pmd::vfio
