#include "tests/soak/rma_storm.hpp"

#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_rma.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/random.hpp"
#include "lib/ofi/address_vector.hpp"
#include "lib/ofi/completion_queue.hpp"
#include "lib/ofi/fi_endpoint.hpp"

namespace rio::test {
namespace {

constexpr uint64_t kKey = 0xC0FFEE;
constexpr uint64_t kUsNs = 1000;
constexpr uint32_t kSmallBytes = 200;
constexpr uint32_t kMiddleBytes = 4000;
constexpr uint64_t kCardMost = 64 << 10;  // longer accesses go by messages
constexpr uint32_t kLateTimeouts = 200;   // in which a write that is late would arrive
constexpr uint8_t kUnused = 0xA5;         // what a program writes to a buffer that is its own again

struct InfoDeleter {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};

}  // namespace

RmaStorm::RmaStorm(const StormPlan& plan) : Storm(plan) {
  if (hosts_ == nullptr) {
    return;
  }
  int rc = 0;
  for (uint32_t host = 0; host < kHosts && rc == 0; ++host) {
    rc = open(host);
  }
  for (uint32_t host = 0; host < kHosts && rc == 0; ++host) {
    rc = insert_peer(host);
  }
  if (rc != 0) {
    result_.log = "cannot open: " + std::to_string(rc) + "\n";
    ++result_.failed;
  }
}

RmaStorm::~RmaStorm() {
  for (End& end : ends_) {
    end.region.reset();
  }
  for (End& end : ends_) {
    end.ep.reset();
  }
  for (End& end : ends_) {
    end.queue.reset();
    end.av.reset();
    end.domain.reset();
  }
}

int RmaStorm::open(uint32_t host) {
  End& end = ends_[host];
  msg::PortConfig config;
  config.response_timeout_us = plan_.timeout_us;
  config.connect_ms = 10'000;
  std::unique_ptr<msg::MessagePort> port;
  if (const int rc = hosts_->open(host, config, &port); rc != 0) {
    return rc;
  }
  end.port = port.get();
  const std::unique_ptr<fi_info, InfoDeleter> info(fi_allocinfo());
  info->caps = FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  info->domain_attr->name = strdup("virtual");
  info->domain_attr->data_progress = FI_PROGRESS_MANUAL;
  info->ep_attr->type = FI_EP_RDM;
  ofi::Params params;
  params.rma_border = kCardMost;
  fid_domain* domain = nullptr;
  if (const int rc =
          ofi::Domain::open_on(std::move(port), &end.fabric, *info, params, &domain, nullptr);
      rc != 0) {
    return rc;
  }
  end.domain.reset(domain);
  return open_endpoint(end, *info);
}

int RmaStorm::open_endpoint(End& end, fi_info& info) {
  fi_av_attr av_attr{};
  fid_av* av = nullptr;
  int rc = ofi::open_address_vector(end.domain.get(), &av_attr, &av, nullptr);
  end.av.reset(av);
  fi_cq_attr queue_attr{};
  queue_attr.format = FI_CQ_FORMAT_TAGGED;
  queue_attr.wait_obj = FI_WAIT_NONE;
  fid_cq* queue = nullptr;
  rc = rc != 0 ? rc : ofi::open_completion_queue(end.domain.get(), &queue_attr, &queue, nullptr);
  end.queue.reset(queue);
  fid_ep* ep = nullptr;
  rc = rc != 0 ? rc : ofi::FiEndpoint::open(end.domain.get(), &info, &ep, nullptr);
  end.ep.reset(ep);
  rc = rc != 0 ? rc : fi_ep_bind(ep, &av->fid, 0);
  rc = rc != 0 ? rc : fi_ep_bind(ep, &queue->fid, FI_TRANSMIT | FI_RECV);
  rc = rc != 0 ? rc : fi_enable(ep);
  end.memory.resize(kSlots * kSlotBytes + sizeof(uint64_t));
  fid_mr* region = nullptr;
  rc = rc != 0 ? rc
               : fi_mr_reg(end.domain.get(), end.memory.data(), end.memory.size(),
                           FI_REMOTE_READ | FI_REMOTE_WRITE, 0, kKey, 0, &region, nullptr);
  end.region.reset(region);
  for (size_t i = 0; i < kSlots; ++i) {
    end.accesses[i].local.resize(kSlotBytes);
    end.accesses[i].expected.resize(kSlotBytes);
  }
  return rc;
}

int RmaStorm::insert_peer(uint32_t host) {
  std::array<uint8_t, sizeof(ofi::Name)> name{};
  size_t bytes = name.size();
  const int rc = fi_getname(&ends_[1 - host].ep->fid, name.data(), &bytes);
  if (rc != 0) {
    return rc;
  }
  End& end = ends_[host];
  return fi_av_insert(end.av.get(), name.data(), 1, &end.peer, 0, nullptr) == 1 ? 0 : -FI_EINVAL;
}

uint64_t RmaStorm::counter_of_peer(uint32_t host) const {
  uint64_t value = 0;
  std::memcpy(&value, slot_of_peer(host, kSlots), sizeof(value));
  return value;
}

/// Most accesses are small; some are long, some so long that they go by messages.
void RmaStorm::draw_bytes(Access& access) {
  const uint64_t kind = below(16);
  access.length = 1 + static_cast<uint32_t>(below(kind < 9    ? kSmallBytes
                                                  : kind < 13 ? kMiddleBytes
                                                              : kSlotBytes));
  access.offset = static_cast<uint32_t>(below(kSlotBytes - access.length + 1));
  if (access.verb == Verb::kRead) {
    std::fill_n(access.local.begin(), access.length, kUnused);
    return;
  }
  uint64_t drawn = random_();
  for (size_t at = 0; at < access.length; at += sizeof(drawn)) {
    drawn = base::mix64(drawn += base::kRandomStep);
    std::memcpy(access.local.data() + at, &drawn, std::min(sizeof(drawn), access.length - at));
  }
  std::copy_n(access.local.begin(), access.length, access.expected.begin() + access.offset);
}

/// @return as the call of libfabric.
ssize_t RmaStorm::begin(uint32_t host, size_t index) {
  End& end = ends_[host];
  Access& access = end.accesses[index];
  if (index >= kSlots) {
    access.verb = below(2) == 0 ? Verb::kFetchAdd : Verb::kAdd;
    access.added_before = end.adds_done;
    ++end.adds_begun;
    const uint64_t at = kSlots * kSlotBytes;
    return access.verb == Verb::kAdd
               ? fi_atomic(end.ep.get(), &access.one, 1, nullptr, end.peer, at, kKey, FI_UINT64,
                           FI_SUM, &access)
               : fi_fetch_atomic(end.ep.get(), &access.one, 1, nullptr, &access.fetched, nullptr,
                                 end.peer, at, kKey, FI_UINT64, FI_SUM, &access);
  }
  check_slot(host, index);  // no write that was late has come since the last access
  access.verb = below(2) == 0 ? Verb::kRead : Verb::kWrite;
  draw_bytes(access);
  const iovec local = {access.local.data(), access.length};
  const fi_rma_iov remote = {index * kSlotBytes + access.offset, access.length, kKey};
  const fi_msg_rma call = {&local, nullptr, 1, end.peer, &remote, 1, &access, 0};
  return access.verb == Verb::kRead
             ? fi_readmsg(end.ep.get(), &call, FI_COMPLETION)
             : fi_writemsg(end.ep.get(), &call, FI_COMPLETION | FI_DELIVERY_COMPLETE);
}

uint32_t RmaStorm::begin_accesses(uint32_t host) {
  End& end = ends_[host];
  const uint64_t now_ns = hosts_->now_ns();
  uint32_t count = 0;
  const size_t first = below(end.accesses.size());
  for (size_t i = 0; i < end.accesses.size(); ++i) {
    const size_t index = (first + i) % end.accesses.size();
    Access& access = end.accesses[index];
    if (!access.is_free || now_ns < end.next_ns || is_last_ ||
        (end.begun >= plan_.items && has_all_cuts())) {
      continue;
    }
    access.is_free = false;
    access.begun_ns = now_ns;
    ++end.begun;
    result_.failed += begin(host, index) != 0 ? 1 : 0;
    end.next_ns = draw_next_ns();
    ++count;
  }
  return count;
}

/// The peer's slot contains the bytes that were written there, and no others.
void RmaStorm::check_slot(uint32_t host, size_t index) {
  std::vector<uint8_t>& expected = ends_[host].accesses[index].expected;
  const uint8_t* const found = slot_of_peer(host, index);
  if (!std::equal(expected.begin(), expected.end(), found)) {
    ++result_.torn;
    expected.assign(found, found + kSlotBytes);  // each fault is counted once
  }
}

/// Each addition finds those that were done before it, and none that has not begun.
void RmaStorm::check_add(uint32_t host, const Access& access) {
  End& end = ends_[host];
  ++end.adds_done;
  if (access.verb != Verb::kFetchAdd) {
    return;
  }
  const uint64_t value = access.fetched;
  end.fetched.resize(std::max<size_t>(end.fetched.size(), end.adds_begun));
  result_.lost += value < access.added_before ? 1 : 0;
  if (value >= end.adds_begun) {
    ++result_.wrong;
  } else {
    result_.lost += end.fetched[value] ? 1 : 0;
    end.fetched[value] = true;
  }
}

void RmaStorm::end_access(uint32_t host, Access& access) {
  End& end = ends_[host];
  if (access.is_free) {
    ++result_.wrong;
    return;
  }
  const uint64_t now_ns = hosts_->now_ns();
  result_.done(now_ns, end.last_ns, access.begun_ns);
  end.last_ns = now_ns;
  access.is_free = true;
  ++end.done;
  if (access.verb == Verb::kFetchAdd || access.verb == Verb::kAdd) {
    check_add(host, access);
    return;
  }
  if (access.verb == Verb::kRead) {
    const bool is_whole = std::equal(access.local.begin(), access.local.begin() + access.length,
                                     access.expected.begin() + access.offset);
    result_.torn += is_whole ? 0 : 1;
  }
  check_slot(host, static_cast<size_t>(&access - end.accesses.data()));
  std::fill_n(access.local.begin(), access.length, kUnused);
}

uint32_t RmaStorm::turn(uint32_t host) {
  End& end = ends_[host];
  cuts_->switch_links(host, *end.port);
  uint32_t count = 0;
  fi_cq_tagged_entry entry{};
  ssize_t rc = 0;
  while ((rc = fi_cq_read(end.queue.get(), &entry, 1)) == 1) {
    ++count;
    end_access(host, *static_cast<Access*>(entry.op_context));
  }
  result_.failed += rc != -FI_EAGAIN ? 1 : 0;
  const uint64_t before = std::exchange(end.activity, end.port->activity());
  count += end.activity != before ? 1 : 0;
  return count + begin_accesses(host);
}

bool RmaStorm::is_over() const {
  return has_all_cuts() && std::all_of(ends_.begin(), ends_.end(), [&](const End& end) {
           return end.begun >= plan_.items && end.done == end.begun;
         });
}

void RmaStorm::check_all() {
  for (uint32_t host = 0; host < kHosts; ++host) {
    const End& end = ends_[host];
    for (size_t i = 0; i < kSlots; ++i) {
      check_slot(host, i);
    }
    const uint64_t value = counter_of_peer(host);
    result_.lost += end.adds_done > value ? end.adds_done - value : 0;
    result_.wrong += value > end.adds_done ? value - end.adds_done : 0;
  }
}

StormResult RmaStorm::run() {
  if (result_.failed != 0) {
    return result_;
  }
  const auto step = [this](uint32_t host) { return turn(host); };
  Storm::run([this](uint32_t host) -> const msg::MessagePort& { return *ends_[host].port; }, step,
             [this] { return is_over(); });
  if (result_.is_over) {
    is_last_ = true;
    static_cast<void>(hosts_->run(
        step, [] { return false; }, kLateTimeouts * plan_.timeout_us * kUsNs));
    check_all();
  }
  for (const End& end : ends_) {
    result_.items += end.done;
    result_.lost += end.begun - end.done;
    for (msg::Rail* const rail : end.port->rails()) {
      result_.by_card += rail->endpoint.dma().stats().messages;
    }
  }
  return result_;
}

}  // namespace rio::test
