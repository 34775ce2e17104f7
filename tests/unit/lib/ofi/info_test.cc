// Answers of fi_getinfo().
#include <cstdlib>
#include <functional>
#include <utility>

#include "lib/ofi/provider.hpp"
#include "tests/unit/lib/ofi/node.hpp"

namespace rio::test {
namespace {

using ofi::kMrBasic;
using ofi::kMrScalable;

class OfiInfo : public OfiTest {
 protected:
  OfiInfo() : wanted_(hints(0)) {}

  Info wanted_;
};

TEST_F(OfiInfo, ACallerWithoutWishesGetsEverything) {
  const Info info = get_info(wanted_);
  ASSERT_NE(info, nullptr);
  EXPECT_STREQ(info->fabric_attr->prov_name, "rio");
  const uint64_t all = FI_MSG | FI_TAGGED | FI_SEND | FI_RECV | FI_DIRECTED_RECV | FI_SOURCE |
                       FI_LOCAL_COMM | FI_REMOTE_COMM;
  EXPECT_EQ(info->caps & all, all);
  EXPECT_EQ(info->mode, 0u);
  EXPECT_EQ(info->ep_attr->type, FI_EP_RDM);
  EXPECT_EQ(info->domain_attr->av_type, FI_AV_UNSPEC) << "both types are equally good";
  EXPECT_GE(info->tx_attr->inject_size, 64u);
  EXPECT_EQ(info->next, nullptr);
}

TEST_F(OfiInfo, AnMpiLibraryGetsWhatItAsksFor) {
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

/// Changes to acceptable hints that make them unacceptable.
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
                    [](Change asked) { asked.addr_format = FI_SOCKADDR_IN6; },
                    [](Change asked) { asked.domain_attr->caps = FI_SHARED_AV; },
                    [](Change asked) { asked.domain_attr->mr_key_size = 16; },
                    [](Change asked) { asked.domain_attr->mr_iov_limit = 4; },
                    [](Change asked) { asked.domain_attr->mr_mode = kMrBasic | FI_MR_VIRT_ADDR; },
                    [](Change asked) { asked.domain_attr->mr_mode = kMrBasic | kMrScalable; },
                    [](Change asked) { asked.domain_attr->ep_cnt = 1u << 20; },
                    [](Change asked) { asked.domain_attr->threading = fi_threading(7); },
                    [](Change asked) { asked.domain_attr->data_progress = fi_progress(3); },
                    [](Change asked) { asked.domain_attr->av_type = fi_av_type(3); },
                    [](Change asked) { asked.ep_attr->rx_ctx_cnt = SIZE_MAX; },
                    [](Change asked) { asked.ep_attr->max_order_raw_size = 1; }));

/// Accepted hints of all API versions, and the information that is returned.
struct Taken {
  const char* name;
  uint32_t version;
  void (*change)(fi_info& asked);
  bool (*is_right)(const fi_info& given);
};

class OfiTaken : public OfiInfo, public testing::WithParamInterface<Taken> {};

TEST_P(OfiTaken, IsAnsweredAsTheManPageSays) {
  GetParam().change(*wanted_);
  fi_info* got = nullptr;
  ASSERT_EQ(fi_getinfo(GetParam().version, nullptr, nullptr, 0, wanted_.get(), &got), 0);
  const Info info(got);
  EXPECT_TRUE(GetParam().is_right(*info)) << fi_tostr(got, FI_TYPE_INFO);
  EXPECT_EQ(info->mode, 0u);
  EXPECT_EQ(info->fabric_attr->api_version, GetParam().version);
}

using Given = const fi_info&;
constexpr uint32_t kOld = FI_VERSION(1, 0);
constexpr uint32_t kLastOld = FI_VERSION(1, 4);
constexpr uint32_t kFirstNew = FI_VERSION(1, 5);
constexpr uint32_t kNew = FI_VERSION(1, 17);
INSTANTIATE_TEST_SUITE_P(
    All, OfiTaken,
    testing::Values(
        Taken{"UnspecOld", kOld, [](Change asked) { asked.domain_attr->mr_mode = 0; },
              [](Given given) { return given.domain_attr->mr_mode == kMrScalable; }},
        Taken{"UnspecLastOld", kLastOld, [](Change asked) { asked.domain_attr->mr_mode = 0; },
              [](Given given) { return given.domain_attr->mr_mode == kMrScalable; }},
        Taken{"NoneFirstNew", kFirstNew, [](Change asked) { asked.domain_attr->mr_mode = 0; },
              [](Given given) { return given.domain_attr->mr_mode == 0; }},
        Taken{"BasicOld", kOld, [](Change asked) { asked.domain_attr->mr_mode = kMrBasic; },
              [](Given given) { return given.domain_attr->mr_mode == kMrBasic; }},
        Taken{"ScalableOld", kOld, [](Change asked) { asked.domain_attr->mr_mode = kMrScalable; },
              [](Given given) { return given.domain_attr->mr_mode == kMrScalable; }},
        Taken{"BasicNew", kNew, [](Change asked) { asked.domain_attr->mr_mode = kMrBasic; },
              [](Given given) { return given.domain_attr->mr_mode == kMrBasic; }},
        Taken{"ScalableNew", kNew, [](Change asked) { asked.domain_attr->mr_mode = kMrScalable; },
              [](Given given) { return given.domain_attr->mr_mode == kMrScalable; }},
        Taken{"BitsNew", kNew,
              [](Change asked) {
                asked.domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_RAW | FI_MR_VIRT_ADDR |
                                             FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
              },
              [](Given given) {
                return (given.domain_attr->mr_mode & (FI_MR_LOCAL | FI_MR_RAW | FI_MR_ENDPOINT)) ==
                       0;
              }},
        Taken{"ModesOfAllKinds", kNew,
              [](Change asked) {
                asked.mode = ~uint64_t{0};
                asked.tx_attr->mode = ~uint64_t{0};
                asked.rx_attr->mode = ~uint64_t{0};
                asked.domain_attr->mode = ~uint64_t{0};
              },
              [](Given given) { return given.tx_attr->mode == 0 && given.domain_attr->mode == 0; }},
        Taken{"NoAttributes", kOld,
              [](Change asked) {
                std::free(std::exchange(asked.tx_attr, nullptr));
                std::free(std::exchange(asked.rx_attr, nullptr));
                std::free(std::exchange(asked.ep_attr, nullptr));
                std::free(std::exchange(asked.domain_attr, nullptr));
              },
              [](Given given) { return given.ep_attr->type == FI_EP_RDM; }},
        Taken{"NoEndpointType", kNew, [](Change asked) { asked.ep_attr->type = FI_EP_UNSPEC; },
              [](Given given) { return given.ep_attr->type == FI_EP_RDM; }},
        Taken{"DisabledManagement", kNew,
              [](Change asked) { asked.domain_attr->resource_mgmt = FI_RM_DISABLED; },
              [](Given given) { return given.domain_attr->resource_mgmt == FI_RM_ENABLED; }},
        Taken{"EndpointThreads", kNew,
              [](Change asked) { asked.domain_attr->threading = FI_THREAD_ENDPOINT; },
              [](Given given) { return given.domain_attr->threading == FI_THREAD_ENDPOINT; }},
        Taken{"ManyQueues", kNew, [](Change asked) { asked.domain_attr->cq_cnt = 5000; },
              [](Given given) { return given.domain_attr->cq_cnt >= 5000; }},
        Taken{"LocalOnly", kNew, [](Change asked) { asked.domain_attr->caps = FI_LOCAL_COMM; },
              [](Given given) { return (given.domain_attr->caps & FI_LOCAL_COMM) != 0; }},
        Taken{"AutoProgress", kNew,
              [](Change asked) { asked.domain_attr->data_progress = FI_PROGRESS_AUTO; },
              [](Given given) { return given.domain_attr->data_progress == FI_PROGRESS_AUTO; }},
        Taken{"AttributesThatCameBack", kNew,
              [](Change asked) {
                const Info first = get_info(hints(0));
                *asked.tx_attr = *first->tx_attr;
                *asked.rx_attr = *first->rx_attr;
                asked.caps = first->caps;
              },
              [](Given given) { return given.tx_attr->size != 0; }}),
    [](const testing::TestParamInfo<Taken>& test) { return std::string(test.param.name); });

TEST_F(OfiInfo, AnswersWithoutHints) {
  for (const uint32_t version : {kOld, kLastOld, kNew}) {
    for (const uint64_t flags : {uint64_t{0}, uint64_t{FI_PROV_ATTR_ONLY}}) {
      fi_info* got = nullptr;
      ASSERT_EQ(fi_getinfo(version, nullptr, nullptr, flags, nullptr, &got), 0);
      const Info info(got);
      const fi_info* at = got;
      while (at != nullptr && std::string(at->fabric_attr->prov_name) != "rio") {
        at = at->next;
      }
      EXPECT_NE(at, nullptr) << version << ' ' << flags;
    }
  }
}

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

/// 64 KiB, above the profile's value: a message up to that size is copied, and completes without a
/// receive.
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

TEST_F(OfiBorder, AcceptsASuffix) {
  std::vector<uint8_t> bytes(65536);
  int context = 0;
  ASSERT_EQ(fi_tsend(a_.ep(), bytes.data(), bytes.size(), nullptr, to_b_, 1, &context), 0);
  expect_sent(&context);
}

}  // namespace
}  // namespace rio::test
