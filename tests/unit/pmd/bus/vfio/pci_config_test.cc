#include "pmd/bus/vfio/pci_config.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <random>

#include "pmd/bus/vfio/inspect.hpp"
#include "tests/support/seed.hpp"
#include "tests/unit/pmd/bus/vfio/fake_system.hpp"

namespace rio::pmd::vfio {
namespace {

constexpr const char* kAddress = "0000:03:00.0";

void put16(std::string& bytes, size_t at, unsigned value) {
  bytes[at] = static_cast<char>(value & 0xFF);
  bytes[at + 1] = static_cast<char>(value >> 8);
}

void put32(std::string& bytes, size_t at, uint32_t value) {
  put16(bytes, at, value & 0xFFFF);
  put16(bytes, at + 2, value >> 16);
}

/// An endpoint with the PCI Express capability at 0x40 and AER at 0x100. PCI Express Base 7.5.3.
std::string endpoint() {
  std::string bytes(4096, '\0');
  put16(bytes, 0x00, 0x10EE);
  put16(bytes, 0x02, 0x7210);
  put16(bytes, 0x04, 0x0006);
  put16(bytes, 0x06, 0x0010);
  put16(bytes, 0x34, 0x40);
  put16(bytes, 0x40, 0x0010);
  put16(bytes, 0x42, 0x0002);
  put32(bytes, 0x44, 0x10000002);  // FLR, 512 bytes
  put16(bytes, 0x48, 0x2030);      // 512 to read, 256 to write, relaxed ordering
  put32(bytes, 0x4C, 0x00000083);  // 8 GT/s x8
  put16(bytes, 0x50, 0x0002);      // L1
  put16(bytes, 0x52, 0x0042);      // 5 GT/s x4
  put32(bytes, 0x100, 0x00010001);
  put32(bytes, 0x104, 0x00104000);
  put32(bytes, 0x110, 0x00000001);
  return bytes;
}

class PciConfigTest : public testing::Test {
 public:
  PciConfigTest() { tree.add_device(kAddress, 0x10EE, 0x7210, "vfio-pci", 7); }
  PciConfig read(const std::string& bytes) {
    FakeTree::write(tree.device(kAddress) + "/config", bytes);
    PciConfig config;
    EXPECT_EQ(read_config(tree.paths, kAddress, &config), 0);
    return config;
  }
  FakeTree tree;
};

TEST_F(PciConfigTest, RegistersOfACardAreDecoded) {
  const PciConfig config = read(endpoint());
  EXPECT_FALSE(config.gone);
  EXPECT_TRUE(config.whole);
  EXPECT_TRUE(config.express);
  EXPECT_TRUE(config.memory_on());
  EXPECT_TRUE(config.master_on());
  EXPECT_EQ(config.mps_bytes(), 256u);
  EXPECT_EQ(config.mps_max_bytes(), 512u);
  EXPECT_EQ(config.mrrs_bytes(), 512u);
  EXPECT_TRUE(config.relaxed_ordering());
  EXPECT_TRUE(config.can_flr());
  EXPECT_STREQ(link_speed_name(config.speed()), "5 GT/s");
  EXPECT_STREQ(link_speed_name(config.speed_max()), "8 GT/s");
  EXPECT_EQ(config.width(), 4u);
  EXPECT_EQ(config.width_max(), 8u);
  EXPECT_EQ(config.aspm(), 2u);
  EXPECT_TRUE(config.aer);
  EXPECT_EQ(config.aer_uncorrectable, 0x00104000u);
}

TEST_F(PciConfigTest, AllOnesIsGone) {
  const PciConfig config = read(std::string(4096, '\xff'));
  EXPECT_TRUE(config.gone);
  EXPECT_FALSE(config.express);
  EXPECT_FALSE(config.memory_on());
}

TEST_F(PciConfigTest, HeaderOnlyIsReported) {
  const PciConfig config = read(endpoint().substr(0, 64));
  EXPECT_FALSE(config.whole);
  EXPECT_FALSE(config.express);
  EXPECT_TRUE(config.master_on());
}

TEST_F(PciConfigTest, DevicesMayLackPciExpressOrAer) {
  std::string bytes = endpoint();
  put32(bytes, 0x100, 0);
  EXPECT_FALSE(read(bytes).aer);
  put16(bytes, 0x34, 0);
  const PciConfig config = read(bytes);
  EXPECT_TRUE(config.whole);
  EXPECT_FALSE(config.express);
}

TEST_F(PciConfigTest, AStructureBeyondTheSpaceIsIgnored) {
  std::string bytes = endpoint();
  put16(bytes, 0x34, 0xFC);
  put16(bytes, 0xFC, 0x0010);
  EXPECT_FALSE(read(bytes).express);
}

TEST_F(PciConfigTest, AnyBytesAreSafe) {
  const unsigned seed = rio::test::first_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 300; ++i) {
    std::string bytes = endpoint();
    for (int n = 0; n < 40; ++n) {
      // Mostly where capabilities and their links are.
      bytes[random() % (n % 4 == 0 ? 4096 : 0x120)] = static_cast<char>(random());
    }
    bytes.resize(i % 5 == 0 ? random() % 4096 : 4096);
    FakeTree::write(tree.device(kAddress) + "/config", bytes);
    PciConfig config;
    EXPECT_EQ(read_config(tree.paths, kAddress, &config), 0);
    EXPECT_LE(config.width(), 63u);
  }
}

TEST_F(PciConfigTest, ErrorsAreReported) {
  PciConfig config;
  testing::internal::CaptureStderr();
  EXPECT_EQ(read_config(tree.paths, "0000:09:00.0", &config), -ENODEV);
  EXPECT_EQ(read_config(tree.paths, "nonsense", &config), -EINVAL);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("0000:09:00.0"), std::string::npos);
  EXPECT_NE(text.find("nonsense"), std::string::npos);
}

TEST(PciConfigNames, Errors) {
  EXPECT_EQ(uncorrectable_names(0x00104000), "CmpltTO, UnsupReq");
  EXPECT_EQ(uncorrectable_names(0x00000010), "DLP");
  EXPECT_EQ(uncorrectable_names(0x80040000), "MalfTLP, 0x80000000");
  EXPECT_EQ(uncorrectable_names(0), "");
  EXPECT_STREQ(link_speed_name(0), "?");
  EXPECT_STREQ(link_speed_name(15), "?");
}

class CardIdTest : public testing::Test {
 public:
  void add(const char* driver) {
    tree.add_device(kAddress, 0x10EE, 0x7210, driver, 7);
    std::vector<PciCard> cards;
    ASSERT_EQ(find_cards(tree.paths, &cards, kernel), 0);
    card = cards.at(0);
  }
  /// 0xFFFFFFFF in the BAR; memory decoding of the command register as asked for.
  void make_silent(const char* power, bool decoding) {
    tree.set_word(kAddress, 0, 0xFFFFFFFF);
    FakeTree::write(tree.device(kAddress) + "/power_state", std::string(power) + "\n");
    std::string bytes = endpoint();
    put16(bytes, 0x04, decoding ? 0x0006 : 0x0000);
    FakeTree::write(tree.device(kAddress) + "/config", bytes);
  }
  FakeTree tree;
  FakeKernel kernel{tree.paths};
  PciCard card;
  CardId id;
};

TEST_F(CardIdTest, IsReadThroughSysfs) {
  add("uio_pci_generic");
  ASSERT_EQ(read_card_id(tree.paths, card, &id, kernel), 0);
  EXPECT_TRUE(id.is_card());
  EXPECT_FALSE(id.all_ones());
  EXPECT_TRUE(kernel.calls.empty());
}

TEST_F(CardIdTest, ASleepingCardIsWokenThroughVfio) {
  add("vfio-pci");
  for (const auto& [power, decoding] : {std::pair{"D3hot", true}, {"D0", false}}) {
    make_silent(power, decoding);
    kernel.calls.clear();
    ASSERT_EQ(read_card_id(tree.paths, card, &id, kernel), 0);
    EXPECT_TRUE(id.is_card()) << power;
    EXPECT_FALSE(kernel.calls.empty()) << power;
    EXPECT_TRUE(kernel.opened.empty()) << power;
  }
}

TEST_F(CardIdTest, ADeadCardIsNotTakenForASleepingOne) {
  add("vfio-pci");
  make_silent("D0", true);
  ASSERT_EQ(read_card_id(tree.paths, card, &id, kernel), 0);
  EXPECT_TRUE(id.all_ones());
  EXPECT_TRUE(kernel.calls.empty());
}

TEST_F(CardIdTest, SmallBarsAndLackOfRightsAreErrors) {
  add("uio_pci_generic");
  kernel.open_errors[tree.device(kAddress) + "/resource0"] = -EACCES;
  EXPECT_EQ(read_card_id(tree.paths, card, &id, kernel), -EACCES);
  card.bar_bytes[0] = 16;
  EXPECT_EQ(read_card_id(tree.paths, card, &id, kernel), -ENXIO);
}

TEST_F(CardIdTest, ACardInUseIsReported) {
  add("vfio-pci");
  make_silent("D3hot", true);
  kernel.open_errors[tree.paths.dev + "/vfio/7"] = -EBUSY;
  testing::internal::CaptureStderr();
  EXPECT_EQ(read_card_id(tree.paths, card, &id, kernel), -EAGAIN);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("in use"), std::string::npos);
}

}  // namespace
}  // namespace rio::pmd::vfio
