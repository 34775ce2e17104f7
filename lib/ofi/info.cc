#include "lib/ofi/info.hpp"

#include <cstring>
#include <memory>
#include <string>

#include "lib/ofi/fid.hpp"
#include "lib/ofi/name.hpp"
#include "lib/ofi/releases.hpp"

namespace rio::ofi {
namespace {

/// Whether `wanted` asks for nothing beyond `offered`.
[[nodiscard]] constexpr bool within(uint64_t wanted, uint64_t offered) {
  return (wanted & ~offered) == 0;
}

[[nodiscard]] bool fits(const fi_tx_attr& tx) {
  return within(tx.caps, kCaps) && within(tx.op_flags, kTxFlags) && within(tx.msg_order, kOrder) &&
         tx.comp_order == 0 && tx.inject_size <= kInjectBytes && tx.size <= kContextSize &&
         tx.iov_limit <= kIovMax && tx.rma_iov_limit <= 1;
}

[[nodiscard]] bool fits(const fi_rx_attr& rx) {
  return within(rx.caps, kCaps) && within(rx.op_flags, kRxFlags) && within(rx.msg_order, kOrder) &&
         rx.comp_order == 0 && rx.size <= kContextSize && rx.iov_limit <= kIovMax;
}

[[nodiscard]] bool fits(const fi_ep_attr& ep) {
  return (ep.type == FI_EP_UNSPEC || ep.type == FI_EP_RDM) &&
         (ep.protocol == FI_PROTO_UNSPEC || ep.protocol == kProtocolOfProvider) &&
         ep.max_msg_size <= tag::kLengthMax && ep.msg_prefix_size == 0 && ep.tx_ctx_cnt <= 1 &&
         ep.rx_ctx_cnt <= 1 && ep.auth_key_size == 0;
}

[[nodiscard]] bool fits(const fi_domain_attr& domain, const std::string& name) {
  return (domain.name == nullptr || name == domain.name) &&
         domain.cq_data_size <= sizeof(uint64_t) && domain.max_ep_tx_ctx <= 1 &&
         domain.max_ep_rx_ctx <= 1 && domain.max_ep_stx_ctx == 0 && domain.max_ep_srx_ctx == 0;
}

[[nodiscard]] bool fits(const fi_info& hints, const std::string& name) {
  const uint64_t secondary = FI_LOCAL_COMM | FI_REMOTE_COMM;
  return within(hints.caps, kCaps | secondary) && hints.addr_format == FI_FORMAT_UNSPEC &&
         (hints.tx_attr == nullptr || fits(*hints.tx_attr)) &&
         (hints.rx_attr == nullptr || fits(*hints.rx_attr)) &&
         (hints.ep_attr == nullptr || fits(*hints.ep_attr)) &&
         (hints.domain_attr == nullptr || fits(*hints.domain_attr, name)) &&
         (hints.fabric_attr == nullptr || hints.fabric_attr->name == nullptr ||
          name == hints.fabric_attr->name);
}

struct Freed {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using InfoPtr = std::unique_ptr<fi_info, Freed>;

void describe(fi_tx_attr& tx, const fi_info* hints, uint64_t caps) {
  const fi_tx_attr* const asked = hints == nullptr ? nullptr : hints->tx_attr;
  tx.caps = asked != nullptr && asked->caps != 0 ? asked->caps : caps & kTxCaps;
  tx.op_flags = asked != nullptr ? asked->op_flags : 0;
  tx.msg_order = kOrder;
  tx.inject_size = kInjectBytes;
  tx.size = kContextSize;
  tx.iov_limit = kIovMax;
  tx.rma_iov_limit = 1;
}

void describe(fi_rx_attr& rx, const fi_info* hints, uint64_t caps) {
  const fi_rx_attr* const asked = hints == nullptr ? nullptr : hints->rx_attr;
  rx.caps = asked != nullptr && asked->caps != 0 ? asked->caps : caps & kRxCaps;
  rx.op_flags = asked != nullptr ? asked->op_flags : 0;
  rx.msg_order = kOrder;
  rx.size = kContextSize;
  rx.iov_limit = kIovMax;
}

void describe(fi_ep_attr& ep) {
  ep.type = FI_EP_RDM;
  ep.protocol = kProtocolOfProvider;
  ep.protocol_version = 1;
  ep.max_msg_size = tag::kLengthMax;
  ep.mem_tag_format = ~uint64_t{0};
  ep.tx_ctx_cnt = 1;
  ep.rx_ctx_cnt = 1;
}

/// Mode bits that the user can do with are cleared, since none is needed here: peers name offsets
/// in a region and the user's keys, also those of users who do not look at what came back. The two
/// old modes are never cleared; FI_MR_BASIC means addresses and keys of the provider's.
[[nodiscard]] int mr_mode_of(const fi_domain_attr* asked) {
  if (asked == nullptr || asked->mr_mode == kMrBasic || asked->mr_mode == kMrScalable) {
    return asked == nullptr ? 0 : asked->mr_mode;
  }
  return 0;
}

void describe(fi_domain_attr& domain, const fi_info* hints, const std::string& name) {
  const fi_domain_attr* const asked = hints == nullptr ? nullptr : hints->domain_attr;
  const bool given = asked != nullptr && asked->threading != FI_THREAD_UNSPEC;
  domain.name = strdup(name.c_str());
  domain.threading = given ? asked->threading : FI_THREAD_SAFE;
  domain.control_progress = FI_PROGRESS_AUTO;  // nothing of it is left to be done
  if (asked != nullptr && asked->control_progress != FI_PROGRESS_UNSPEC) {
    domain.control_progress = asked->control_progress;
  }
  const bool alone = asked != nullptr && asked->data_progress == FI_PROGRESS_AUTO;
  domain.data_progress = alone ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
  domain.resource_mgmt = FI_RM_ENABLED;
  domain.av_type =
      asked != nullptr && asked->av_type != FI_AV_UNSPEC ? asked->av_type : FI_AV_TABLE;
  domain.mr_mode = mr_mode_of(asked);
  domain.mr_key_size = sizeof(uint64_t);
  domain.mr_iov_limit = 1;
  domain.mr_cnt = 1u << 20;
  domain.cq_data_size = sizeof(uint64_t);
  domain.cq_cnt = 256;
  domain.ep_cnt = kEndpoints;
  domain.tx_ctx_cnt = kEndpoints;
  domain.rx_ctx_cnt = kEndpoints;
  domain.max_ep_tx_ctx = 1;
  domain.max_ep_rx_ctx = 1;
  domain.cntr_cnt = 256;
  domain.caps = FI_LOCAL_COMM | FI_REMOTE_COMM;
}

[[nodiscard]] int describe(fi_info& info, const fi_info* hints, const std::string& name,
                           uint32_t version) {
  info.caps = hints != nullptr && hints->caps != 0 ? hints->caps : kCaps;
  // Whoever asks for something and not for a direction wants all.
  if ((info.caps & (FI_MSG | FI_TAGGED)) != 0 && (info.caps & kMessageWays) == 0) {
    info.caps |= kMessageWays;
  }
  if ((info.caps & (FI_RMA | FI_ATOMIC)) != 0 && (info.caps & kRemoteWays) == 0) {
    info.caps |= kRemoteWays;
  }
  info.caps |= FI_LOCAL_COMM | FI_REMOTE_COMM;
  info.addr_format = FI_FORMAT_UNSPEC;
  describe(*info.tx_attr, hints, info.caps);
  describe(*info.rx_attr, hints, info.caps);
  describe(*info.ep_attr);
  describe(*info.domain_attr, hints, name);
  info.fabric_attr->name = strdup(name.c_str());
  info.fabric_attr->prov_version = kProviderVersion;
  info.fabric_attr->api_version = version;
  return info.domain_attr->name != nullptr && info.fabric_attr->name != nullptr ? 0 : -FI_ENOMEM;
}

}  // namespace

int get_info(uint32_t version, const char*, const char*, uint64_t, const fi_info* hints,
             fi_info** out) {
  return no_throw([&] {
    Params params;
    if (read_params(&params) != 0) {
      return -FI_EINVAL;
    }
    if (hints != nullptr && !fits(*hints, params.card)) {
      return -FI_ENODATA;
    }
    InfoPtr info(fi_dupinfo(nullptr));
    if (info == nullptr) {
      return -FI_ENOMEM;
    }
    const int rc = describe(*info, hints, params.card, version);
    if (rc == 0) {
      *out = info.release();
    }
    return rc;
  });
}

}  // namespace rio::ofi
