// A card of rio-cardsim by its name. What names are is tested with their parser, in
// tests/unit/fpga/name.
#include "fpga/cardsim/card_spec.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace rio::cardsim {
namespace {

TEST(CardSpec, Plain) {
  CardSpec spec;
  ASSERT_EQ(parse_card_spec("plain:bar=/dev/shm/bar,ram=/dev/shm/ram", &spec), 0);
  EXPECT_STREQ(kind_name(spec.way), "plain");
  EXPECT_EQ(std::get<name::Plain>(spec.way).bar, "/dev/shm/bar");
  EXPECT_EQ(std::get<name::Plain>(spec.way).guest.ram, "/dev/shm/ram");
  EXPECT_EQ(spec.name, "/dev/shm/bar");
  EXPECT_EQ(spec.at, "");
  EXPECT_EQ(spec.model.queue_pairs, 1u);
  EXPECT_FALSE(spec.model.exact);
  EXPECT_TRUE(spec.model.quirk_last_at_256);
  EXPECT_EQ(spec.model.dedicated_size_log2, 8u);
}

TEST(CardSpec, Doorbell) {
  CardSpec spec;
  ASSERT_EQ(parse_card_spec("doorbell:socket=s,ram=r,vectors=64,name=left,at=host,"
                            "qps=31,exact=1,quirks=0,faults=18446744073709551615:0.25,pcie=7",
                            &spec),
            0);
  EXPECT_STREQ(kind_name(spec.way), "doorbell");
  EXPECT_EQ(spec.name, "left");
  EXPECT_EQ(spec.at, "host");
  EXPECT_EQ(spec.model.vectors, 64u);
  EXPECT_EQ(spec.model.queue_pairs, 31u);
  EXPECT_TRUE(spec.model.exact);
  EXPECT_FALSE(spec.model.quirk_last_at_256);
  EXPECT_FALSE(spec.model.quirk_last_full_256);
  EXPECT_EQ(spec.model.shared_addr_log2, 3u);
  EXPECT_EQ(spec.model.dedicated_addr_log2, 3u);
  EXPECT_EQ(spec.model.dedicated_size_log2, 3u);
  EXPECT_EQ(spec.model.faults.seed, UINT64_MAX);
  EXPECT_EQ(spec.model.faults.rate, 0.25);
  EXPECT_EQ(spec.model.pcie_seed, 7u);
  ASSERT_EQ(parse_card_spec("doorbell:socket=s,ram=r", &spec), 0);
  EXPECT_EQ(spec.name, "s");
  EXPECT_EQ(spec.model.vectors, 2u);
}

TEST(CardSpec, Listen) {
  CardSpec spec;
  ASSERT_EQ(parse_card_spec("listen:socket=s", &spec), 0);
  EXPECT_STREQ(kind_name(spec.way), "listen");
  EXPECT_EQ(spec.name, "s");
  EXPECT_EQ(spec.model.vectors, model::Config{}.vectors);
}

TEST(CardSpec, WrongOnesAreToldOnStderr) {
  for (const char* const wrong : {"", "emu:loop", "plain:bar=b", "listen:socket=s,qps=0"}) {
    CardSpec spec;
    spec.name = "untouched";
    testing::internal::CaptureStderr();
    EXPECT_EQ(parse_card_spec(wrong, &spec), -EINVAL) << wrong;
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("--card " + std::string(wrong) + ": "), std::string::npos) << said;
    EXPECT_EQ(spec.name, "untouched") << wrong;
  }
}

}  // namespace
}  // namespace rio::cardsim
