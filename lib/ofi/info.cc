#include "lib/ofi/info.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ofi/fid.hpp"
#include "lib/ofi/name.hpp"
#include "lib/ofi/resolve.hpp"

namespace rio::ofi {
namespace {

constexpr uint64_t kDomainCaps = FI_LOCAL_COMM | FI_REMOTE_COMM;

/// Whether `wanted` asks for nothing beyond `offered`.
[[nodiscard]] constexpr bool within(uint64_t wanted, uint64_t offered) {
  return (wanted & ~offered) == 0;
}

/// Whether the attributes of one direction fit. @param flags the operation flags that it has.
template <class Attr>
[[nodiscard]] bool fits(const Attr& attr, uint64_t flags) {
  return within(attr.caps, kCaps) && within(attr.op_flags, flags) &&
         within(attr.msg_order, kOrder) && attr.comp_order == 0 && attr.size <= kContextSize &&
         attr.iov_limit <= kIovMax;
}
[[nodiscard]] bool fits(const fi_tx_attr& tx) {
  return fits(tx, kTxFlags) && tx.inject_size <= kInjectBytes && tx.rma_iov_limit <= 1;
}

[[nodiscard]] bool fits(const fi_ep_attr& ep) {
  return (ep.type == FI_EP_UNSPEC || ep.type == FI_EP_RDM) &&
         (ep.protocol == FI_PROTO_UNSPEC || ep.protocol == kProtocolOfProvider) &&
         ep.max_msg_size <= tag::kLengthMax && ep.msg_prefix_size == 0 &&
         ep.max_order_raw_size == 0 && ep.max_order_war_size == 0 && ep.max_order_waw_size == 0 &&
         ep.tx_ctx_cnt <= 1 && ep.rx_ctx_cnt <= 1 && ep.auth_key_size == 0;
}

/// Whether this API version has mode bits in addition to the two old modes.
[[nodiscard]] constexpr bool has_mode_bits(uint32_t version) {
  return FI_VERSION_GE(version, FI_VERSION(1, 5));
}

/// An old mode must stand alone. Mode bits tell what the user supports, and none is needed here.
[[nodiscard]] bool fits_mr_mode(int mode, uint32_t version) {
  const bool is_old = (mode & (kMrBasic | kMrScalable)) != 0;
  return mode == 0 || mode == kMrBasic || mode == kMrScalable ||
         (has_mode_bits(version) && !is_old);
}

[[nodiscard]] bool fits(const fi_domain_attr& domain, const std::string& name, uint32_t version) {
  constexpr int kControlUnified = 3;  // FI_PROGRESS_CONTROL_UNIFIED of later releases
  return (domain.name == nullptr || name == domain.name) &&
         domain.threading <= FI_THREAD_ENDPOINT &&
         static_cast<int>(domain.control_progress) <= kControlUnified &&
         domain.data_progress <= FI_PROGRESS_MANUAL && domain.resource_mgmt <= FI_RM_ENABLED &&
         domain.av_type <= FI_AV_TABLE && fits_mr_mode(domain.mr_mode, version) &&
         domain.mr_key_size <= sizeof(uint64_t) && domain.mr_iov_limit <= 1 &&
         domain.cq_data_size <= sizeof(uint64_t) && domain.ep_cnt <= kEndpoints &&
         domain.tx_ctx_cnt <= kEndpoints && domain.rx_ctx_cnt <= kEndpoints &&
         domain.max_ep_tx_ctx <= 1 && domain.max_ep_rx_ctx <= 1 && domain.max_ep_stx_ctx == 0 &&
         domain.max_ep_srx_ctx == 0 && within(domain.caps, kDomainCaps);
}

[[nodiscard]] bool fits(const fi_info& hints, const std::string& name, uint32_t version) {
  return within(hints.caps, kCaps) &&
         (hints.addr_format == FI_FORMAT_UNSPEC || is_socket_format(hints.addr_format)) &&
         (hints.tx_attr == nullptr || fits(*hints.tx_attr)) &&
         (hints.rx_attr == nullptr || fits(*hints.rx_attr, kRxFlags)) &&
         (hints.ep_attr == nullptr || fits(*hints.ep_attr)) &&
         (hints.domain_attr == nullptr || fits(*hints.domain_attr, name, version)) &&
         (hints.fabric_attr == nullptr || hints.fabric_attr->name == nullptr ||
          name == hints.fabric_attr->name);
}

/// Describe one direction. @param asked may be null. @param caps its capabilities, if none is asked
/// for.
template <class Attr>
void describe(Attr& attr, const Attr* asked, uint64_t caps) {
  attr.caps = asked != nullptr && asked->caps != 0 ? asked->caps : caps;
  attr.op_flags = asked != nullptr ? asked->op_flags : 0;
  attr.msg_order = kOrder;
  attr.size = kContextSize;
  attr.iov_limit = kIovMax;
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

/// Mode bits of the user are cleared, since none is needed here: peers name offsets in a region and
/// the user's keys, even if the user ignores what is returned. The two old modes stay; FI_MR_BASIC
/// means the provider's addresses and keys.
[[nodiscard]] int mr_mode_of(int mode, uint32_t version) {
  if (mode == kMrBasic || mode == kMrScalable) {
    return mode;
  }
  return has_mode_bits(version) ? 0 : kMrScalable;  // FI_MR_UNSPEC: the provider chooses
}

void describe(fi_domain_attr& domain, const fi_domain_attr& asked, const std::string& name,
              uint32_t version) {
  domain.name = strdup(name.c_str());
  domain.threading = asked.threading != FI_THREAD_UNSPEC ? asked.threading : FI_THREAD_SAFE;
  domain.control_progress = asked.control_progress != FI_PROGRESS_UNSPEC
                                ? asked.control_progress
                                : FI_PROGRESS_AUTO;  // no call leaves control work behind
  const bool alone = asked.data_progress == FI_PROGRESS_AUTO;
  domain.data_progress = alone ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
  domain.resource_mgmt = FI_RM_ENABLED;
  domain.av_type = asked.av_type;  // both types work equally well
  domain.mr_mode = mr_mode_of(asked.mr_mode, version);
  domain.mr_key_size = sizeof(uint64_t);
  domain.mr_iov_limit = 1;
  // Regions, queues and counters are limited by memory only.
  domain.mr_cnt = std::max<size_t>(1u << 20, asked.mr_cnt);
  domain.cq_data_size = sizeof(uint64_t);
  domain.cq_cnt = std::max<size_t>(256, asked.cq_cnt);
  domain.ep_cnt = kEndpoints;
  domain.tx_ctx_cnt = kEndpoints;
  domain.rx_ctx_cnt = kEndpoints;
  domain.max_ep_tx_ctx = 1;
  domain.max_ep_rx_ctx = 1;
  domain.cntr_cnt = std::max<size_t>(256, asked.cntr_cnt);
  domain.caps = kDomainCaps;
}

[[nodiscard]] int describe(fi_info& info, const fi_info& hints, const std::string& name,
                           uint32_t version) {
  info.caps = hints.caps != 0 ? hints.caps : kCaps;
  // A caller that asks for a capability and for no direction wants all.
  if ((info.caps & (FI_MSG | FI_TAGGED)) != 0 && (info.caps & kMessageWays) == 0) {
    info.caps |= kMessageWays;
  }
  if ((info.caps & (FI_RMA | FI_ATOMIC)) != 0 && (info.caps & kRemoteWays) == 0) {
    info.caps |= kRemoteWays;
  }
  info.caps |= FI_LOCAL_COMM | FI_REMOTE_COMM;
  info.addr_format = is_socket_format(hints.addr_format) ? FI_SOCKADDR_IN : FI_FORMAT_UNSPEC;
  describe(*info.tx_attr, hints.tx_attr, info.caps & kTxCaps);
  info.tx_attr->inject_size = kInjectBytes;
  info.tx_attr->rma_iov_limit = 1;
  describe(*info.rx_attr, hints.rx_attr, info.caps & kRxCaps);
  describe(*info.ep_attr);
  describe(*info.domain_attr, hints.domain_attr != nullptr ? *hints.domain_attr : fi_domain_attr{},
           name, version);
  info.fabric_attr->name = strdup(name.c_str());
  info.fabric_attr->prov_version = kProviderVersion;
  info.fabric_attr->api_version = version;
  return info.domain_attr->name != nullptr && info.fabric_attr->name != nullptr ? 0 : -FI_ENOMEM;
}

/// The bytes of an address, in the requested format.
using Address = std::vector<uint8_t>;

template <class T>
[[nodiscard]] Address bytes_of(const T& address) {
  const auto* const at = reinterpret_cast<const uint8_t*>(&address);
  return {at, at + sizeof(address)};
}

/// The place that fi_getinfo() was asked to resolve, and hints that take its place.
struct Question {
  const char* node;
  const char* service;
  uint64_t flags;
  const fi_info& hints;
  uint16_t fabric;  ///< mark of this fabric's name

  [[nodiscard]] bool has_place() const { return node != nullptr || service != nullptr; }
  [[nodiscard]] bool is_source() const { return (flags & FI_SOURCE) != 0; }
  /// Whether the user wants this provider and no other: only then are errors logged.
  [[nodiscard]] bool is_for_us() const {
    const fi_fabric_attr* const wanted = hints.fabric_attr;
    return wanted != nullptr && wanted->prov_name != nullptr &&
           std::string_view(wanted->prov_name) == provider().name;
  }
  [[nodiscard]] bool has_sockets() const { return is_socket_format(hints.addr_format); }
  [[nodiscard]] int resolve_place(Address* out) const {
    const NodeService place = {node, service, (flags & FI_NUMERICHOST) != 0};
    Name name{};
    sockaddr_in socket{};
    const int rc = has_sockets() ? resolve_socket(place, fabric, is_for_us(), &socket)
                                 : resolve(place, fabric, is_for_us(), &name);
    *out = has_sockets() ? bytes_of(socket) : bytes_of(name);
    return rc;
  }
  /// Check an address of foreign bytes from the hints. @return 0; -FI_ENODATA: not an address of
  /// ours.
  [[nodiscard]] int check_address(const void* address, size_t bytes, Address* out) const {
    Name name{};
    sockaddr_in socket{};
    const bool is_ours = has_sockets()
                             ? bytes == sizeof(socket) && read_socket(address, &socket) == 0 &&
                                   is_own(socket.sin_addr)
                             : bytes == sizeof(name) && read_address(address, fabric, &name) == 0;
    *out = has_sockets() ? bytes_of(socket) : bytes_of(name);
    return is_ours ? 0 : -FI_ENODATA;
  }
};

[[nodiscard]] int source_of(const Question& asked, Address* out) {
  if (asked.is_source()) {
    return asked.resolve_place(out);
  }
  if (asked.hints.src_addr != nullptr) {
    return asked.check_address(asked.hints.src_addr, asked.hints.src_addrlen, out);
  }
  *out = asked.has_sockets() ? bytes_of(make_socket(own_ipv4(), 0))
                             : bytes_of(name_of_service(asked.fabric, 0, false));
  return 0;
}

/// Find the address to return. @param out left empty if none is asked for.
[[nodiscard]] int destination_of(const Question& asked, Address* out) {
  if (asked.has_place() && !asked.is_source()) {
    return asked.resolve_place(out);
  }
  return asked.hints.dest_addr == nullptr
             ? 0
             : asked.check_address(asked.hints.dest_addr, asked.hints.dest_addrlen, out);
}

/// Copy an address to memory that fi_freeinfo() frees. @param address empty: there is none. @return
/// false: no memory.
[[nodiscard]] bool put(const Address& address, void** out, size_t* bytes) {
  if (address.empty()) {
    return true;
  }
  *out = std::malloc(address.size());
  if (*out != nullptr) {
    std::memcpy(*out, address.data(), address.size());
    *bytes = address.size();
  }
  return *out != nullptr;
}

[[nodiscard]] int fill_addresses(const Question& asked, fi_info& info) {
  if (asked.is_source() && !asked.has_place()) {
    return -FI_EINVAL;
  }
  Address source;
  Address destination;
  int rc = source_of(asked, &source);
  rc = rc == 0 ? destination_of(asked, &destination) : rc;
  const bool fits = rc != 0 || (put(source, &info.src_addr, &info.src_addrlen) &&
                                put(destination, &info.dest_addr, &info.dest_addrlen));
  return fits ? rc : -FI_ENOMEM;
}

}  // namespace

int get_info(uint32_t version, const char* node, const char* service, uint64_t flags,
             const fi_info* hints, fi_info** out) {
  return no_throw([&] {
    Params params;
    if (read_params(&params) != 0) {
      return -FI_EINVAL;
    }
    // A caller that lists providers gives no hints to check.
    const bool is_listed = (flags & FI_PROV_ATTR_ONLY) != 0;
    const fi_info wanted = hints != nullptr && !is_listed ? *hints : fi_info{};
    if (!fits(wanted, params.card, version)) {
      return -FI_ENODATA;
    }
    std::unique_ptr<fi_info, void (*)(fi_info*)> info(fi_dupinfo(nullptr), &fi_freeinfo);
    if (info == nullptr) {
      return -FI_ENOMEM;
    }
    int rc = describe(*info, wanted, params.card, version);
    if (rc == 0 && !is_listed) {
      rc = fill_addresses({node, service, flags, wanted, fabric_mark(fabric_of(params.card))},
                          *info);
    }
    if (rc == 0) {
      *out = info.release();
    }
    return rc;
  });
}

}  // namespace rio::ofi
