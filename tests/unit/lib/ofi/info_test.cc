// What fi_getinfo() says to those who ask.
#include <functional>

#include "tests/unit/lib/ofi/node.hpp"

namespace rio::test {
namespace {

class OfiInfo : public OfiTest {
 protected:
  OfiInfo() : wanted_(hints(0)) {}

  Info wanted_;
};

TEST_F(OfiInfo, WhoAsksForNothingGetsAll) {
  const Info info = get_info(wanted_);
  ASSERT_NE(info, nullptr);
  EXPECT_STREQ(info->fabric_attr->prov_name, "rio");
  const uint64_t all = FI_MSG | FI_TAGGED | FI_SEND | FI_RECV | FI_DIRECTED_RECV | FI_SOURCE |
                       FI_LOCAL_COMM | FI_REMOTE_COMM;
  EXPECT_EQ(info->caps & all, all);
  EXPECT_EQ(info->mode, 0u);
  EXPECT_EQ(info->ep_attr->type, FI_EP_RDM);
  EXPECT_GE(info->tx_attr->inject_size, 64u);
  EXPECT_EQ(info->next, nullptr);
}

TEST_F(OfiInfo, WhatAnMpiLibraryAsksForIsGiven) {
  wanted_->caps = FI_TAGGED | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV;
  wanted_->mode = FI_CONTEXT;
  wanted_->tx_attr->op_flags = FI_COMPLETION;
  wanted_->tx_attr->msg_order = FI_ORDER_SAS;
  wanted_->rx_attr->msg_order = FI_ORDER_SAS;
  wanted_->rx_attr->op_flags = FI_COMPLETION;
  wanted_->domain_attr->threading = FI_THREAD_DOMAIN;
  wanted_->domain_attr->control_progress = FI_PROGRESS_MANUAL;
  wanted_->domain_attr->resource_mgmt = FI_RM_ENABLED;
  wanted_->domain_attr->av_type = FI_AV_MAP;
  const Info info = get_info(wanted_);
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(info->mode, 0u);
  EXPECT_EQ(info->caps & wanted_->caps, wanted_->caps);
  EXPECT_EQ(info->tx_attr->op_flags, FI_COMPLETION);
  EXPECT_EQ(info->rx_attr->op_flags, FI_COMPLETION);
  EXPECT_EQ(info->tx_attr->msg_order & FI_ORDER_SAS, FI_ORDER_SAS);
  EXPECT_EQ(info->domain_attr->threading, FI_THREAD_DOMAIN);
  EXPECT_EQ(info->domain_attr->control_progress, FI_PROGRESS_MANUAL);
  EXPECT_EQ(info->domain_attr->av_type, FI_AV_MAP);
  EXPECT_GE(info->domain_attr->cq_data_size, 4u);
  EXPECT_EQ(info->ep_attr->mem_tag_format, ~uint64_t{0});
}

/// What is refused: changes of hints that would be taken.
class OfiRefused : public OfiInfo, public testing::WithParamInterface<void (*)(fi_info&)> {};

TEST_P(OfiRefused, IsNotOffered) {
  EXPECT_NE(get_info(wanted_), nullptr);
  GetParam()(*wanted_);
  EXPECT_EQ(get_info(wanted_), nullptr);
}

using Change = fi_info&;
INSTANTIATE_TEST_SUITE_P(
    All, OfiRefused,
    testing::Values([](Change asked) { asked.caps = FI_MULTICAST; },
                    [](Change asked) { asked.ep_attr->type = FI_EP_MSG; },
                    [](Change asked) { asked.ep_attr->type = FI_EP_DGRAM; },
                    [](Change asked) { asked.ep_attr->protocol = FI_PROTO_RXM; },
                    [](Change asked) { asked.ep_attr->tx_ctx_cnt = 2; },
                    [](Change asked) { asked.ep_attr->msg_prefix_size = 8; },
                    [](Change asked) { asked.ep_attr->max_msg_size = SIZE_MAX; },
                    [](Change asked) { asked.tx_attr->inject_size = 1u << 20; },
                    [](Change asked) { asked.tx_attr->iov_limit = 100; },
                    [](Change asked) { asked.rx_attr->iov_limit = 100; },
                    [](Change asked) { asked.tx_attr->comp_order = FI_ORDER_STRICT; },
                    [](Change asked) { asked.domain_attr->cq_data_size = 16; },
                    [](Change asked) { asked.domain_attr->name = strdup("shm:another"); },
                    [](Change asked) { asked.fabric_attr->name = strdup("shm:another"); },
                    [](Change asked) { asked.addr_format = FI_SOCKADDR_IN; }));

/// Parameters that make no sense.
class OfiParams : public OfiInfo,
                  public testing::WithParamInterface<std::pair<const char*, const char*>> {
 protected:
  ~OfiParams() override { unsetenv(GetParam().first); }
};

TEST_P(OfiParams, AreRefused) {
  setenv(GetParam().first, GetParam().second, 1);
  EXPECT_EQ(get_info(wanted_), nullptr);
}

INSTANTIATE_TEST_SUITE_P(
    All, OfiParams,
    testing::Values(std::pair{"FI_RIO_DESTID", "-1"}, std::pair{"FI_RIO_DESTID", "16777216"},
                    std::pair{"FI_RIO_DESTID", "one"}, std::pair{"FI_RIO_QUEUE_PAIR", "64"},
                    std::pair{"FI_RIO_QUEUE_PAIR", "1e0"}, std::pair{"FI_RIO_BORDER", "1e6"},
                    std::pair{"FI_RIO_BORDER", "abc"}, std::pair{"FI_RIO_BORDER", "-1"},
                    std::pair{"FI_RIO_BORDER", "64KB"}, std::pair{"FI_RIO_RMA_BORDER", "64 K"},
                    std::pair{"FI_RIO_RMA_BORDER", "18446744073709551616"},
                    std::pair{"FI_RIO_FABRIC", "besides-a-card"}));

/// 64 KiB, where a profile says less: what is not longer is copied, and needs no receive to be
/// done.
class OfiBorder : public OfiPair {
 protected:
  static constexpr auto kVariable = "FI_RIO_BORDER";

  struct Set {
    Set() { setenv(kVariable, "64KiB", 1); }
  };
  OfiBorder() : OfiBorder(Set{}) {}
  ~OfiBorder() override { unsetenv(kVariable); }

 private:
  explicit OfiBorder(const Set&) {}
};

TEST_F(OfiBorder, HasASuffix) {
  std::vector<uint8_t> bytes(65536);
  int context = 0;
  ASSERT_EQ(fi_tsend(a_.ep(), bytes.data(), bytes.size(), nullptr, to_b_, 1, &context), 0);
  expect_sent(&context);
}

}  // namespace
}  // namespace rio::test
