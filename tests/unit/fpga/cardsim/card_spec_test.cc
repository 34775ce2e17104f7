#include "fpga/cardsim/card_spec.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace rio::cardsim {
namespace {

TEST(CardSpec, PlainIsParsed) {
  CardSpec spec;
  ASSERT_EQ(parse_card_spec("plain:bar=/dev/shm/bar,ram=/dev/shm/ram", &spec), 0);
  EXPECT_EQ(spec.kind, Kind::kPlain);
  EXPECT_EQ(spec.bar, "/dev/shm/bar");
  EXPECT_EQ(spec.ram, "/dev/shm/ram");
  EXPECT_EQ(spec.name, "/dev/shm/bar");
  EXPECT_EQ(spec.monitor, "");
  EXPECT_EQ(spec.bdf, 0x20);
  EXPECT_EQ(spec.model.queue_pairs, 1u);
  EXPECT_FALSE(spec.model.exact);
  EXPECT_TRUE(spec.model.quirk_last_at_256);
  EXPECT_EQ(spec.model.dedicated_size_log2, 8u);
  EXPECT_STREQ(kind_name(spec.kind), "plain");
}

TEST(CardSpec, DoorbellIsParsed) {
  CardSpec spec;
  ASSERT_EQ(parse_card_spec("doorbell:socket=s,ram=r,monitor=m,vectors=64,devfn=1f.7,name=left,"
                            "qps=31,exact=1,quirks=0,faults=18446744073709551615:0.25,pcie=7",
                            &spec),
            0);
  EXPECT_EQ(spec.kind, Kind::kDoorbell);
  EXPECT_EQ(spec.socket, "s");
  EXPECT_EQ(spec.monitor, "m");
  EXPECT_EQ(spec.vectors, 64u);
  EXPECT_EQ(spec.bdf, 0xFF);
  EXPECT_EQ(spec.name, "left");
  EXPECT_EQ(spec.model.queue_pairs, 31u);
  EXPECT_TRUE(spec.model.exact);
  EXPECT_FALSE(spec.model.quirk_last_at_256);
  EXPECT_FALSE(spec.model.quirk_last_full_256);
  EXPECT_EQ(spec.model.dedicated_size_log2, 3u);
  EXPECT_EQ(spec.model.faults.seed, UINT64_MAX);
  EXPECT_EQ(spec.model.faults.rate, 0.25);
  EXPECT_EQ(spec.model.pcie_seed, 7u);
  ASSERT_EQ(parse_card_spec("doorbell:socket=s,ram=r,devfn=a3:04.1", &spec), 0);
  EXPECT_EQ(spec.bdf, 0xA321);
}

TEST(CardSpec, ListenIsParsed) {
  CardSpec spec;
  ASSERT_EQ(parse_card_spec("listen:socket=" + std::string(107, 'p'), &spec), 0);
  EXPECT_EQ(spec.kind, Kind::kListen);
  EXPECT_EQ(spec.name, std::string(107, 'p'));
}

// Each wrong description is refused, changes no output, and is reported with the allowed values.
TEST(CardSpec, WrongOnesAreRefused) {
  const std::string long_path(108, 'p');
  const struct {
    std::string spec;
    const char* said;
  } wrong[] = {
      {"", "write plain:, doorbell: or listen:"},
      {"plain", "write plain:, doorbell: or listen:"},
      {"plane:bar=b,ram=r", "write plain:, doorbell: or listen:"},
      {"plain:", "no key ''"},
      {"plain:bar=b", "ram= is missing"},
      {"plain:ram=r", "bar= is missing"},
      {"plain:bar=b,ram=r,", "no key ''"},
      {"plain:bar=b,ram=r,bar=c", "bar is given twice"},
      {"plain:bar=b,ram=r,vectors=2", "no key 'vectors' for such a card; those allowed: bar, ram"},
      {"plain:bar=,ram=r", "bar=; write bar="},
      {"plain:bar,ram=r", "bar=; write bar="},
      {"plain:bar=b,ram=r,qps=0", "1 to 31"},
      {"plain:bar=b,ram=r,qps=32", "1 to 31"},
      {"plain:bar=b,ram=r,qps=-1", "1 to 31"},
      {"plain:bar=b,ram=r,qps=1x", "1 to 31"},
      {"plain:bar=b,ram=r,exact=2", "exact=2; write exact="},
      {"plain:bar=b,ram=r,faults=1", "SEED:RATE"},
      {"plain:bar=b,ram=r,faults=1:1.5", "0.0 to 1.0"},
      {"plain:bar=b,ram=r,faults=1:nan", "0.0 to 1.0"},
      {"plain:bar=b,ram=r,pcie=-1", "64-bit seed"},
      {"plain:bar=b,ram=r,devfn=4", "DEVICE.FUNCTION"},
      {"plain:bar=b,ram=r,devfn=20.0", "DEVICE.FUNCTION"},
      {"plain:bar=b,ram=r,devfn=04.8", "DEVICE.FUNCTION"},
      {"plain:bar=b,ram=r,devfn=100:04.0", "DEVICE.FUNCTION"},
      {"doorbell:ram=r", "socket= is missing"},
      {"doorbell:socket=s,ram=r,vectors=0", "1 to 64"},
      {"doorbell:socket=s,ram=r,vectors=65", "1 to 64"},
      {"listen:socket=" + long_path, "at most 107"},
      {"listen:socket=s,ram=r", "no key 'ram'"},
      {"doorbell:socket=s,ram=r,monitor=" + long_path, "monitor socket"},
  };
  for (const auto& one : wrong) {
    CardSpec spec;
    spec.name = "untouched";
    testing::internal::CaptureStderr();
    EXPECT_EQ(parse_card_spec(one.spec, &spec), -EINVAL) << one.spec;
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find(one.said), std::string::npos) << one.spec << ": " << said;
    EXPECT_EQ(spec.name, "untouched") << one.spec;
  }
}

TEST(CardSpec, HelpNamesEachKey) {
  const std::string help = card_spec_help();
  for (const char* key : {"bar=", "socket=", "ram=", "monitor=", "devfn=", "vectors=", "name=",
                          "qps=", "exact=", "quirks=", "faults=", "pcie="}) {
    EXPECT_NE(help.find(key), std::string::npos) << key;
  }
}

}  // namespace
}  // namespace rio::cardsim
