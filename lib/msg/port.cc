#include "lib/msg/port.hpp"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "base/log.hpp"
#include "base/trouble.hpp"
#include "lib/msg/clock.hpp"
#include "lib/msg/context.hpp"
#include "lib/msg/receiver.hpp"
#include "lib/msg/registrations.hpp"
#include "lib/msg/sender.hpp"

namespace rio::msg {
namespace {

constexpr uint32_t kBuffersMin = 64;
constexpr uint32_t kBuffersMax = 16384;
constexpr uint32_t kShareMin = 4;
constexpr uint32_t kShareMax = 1024;
constexpr uint32_t kTimeoutUsMax = 60'000'000;
constexpr uint32_t kRetryLimit = 250;  // cards count up to 255
constexpr uint32_t kRetryDelayUs = 16;
constexpr uint32_t kControlBuffers = 32;  // never part of a share

}  // namespace

Port::Port(const PortConfig& config) : config_(config) {}

int Port::open(const PortConfig& config, std::unique_ptr<Port>* out) {
  if (config.buffers < kBuffersMin || config.buffers > kBuffersMax || config.share < kShareMin ||
      config.share > kShareMax || config.response_timeout_us == 0 ||
      config.response_timeout_us > kTimeoutUsMax) {
    base::log_error(
        "port on %s: buffers are %u to %u and a share %u to %u of them, not %u and %u; a "
        "response time-out is 1 to %u us, not %u",
        config.card.c_str(), kBuffersMin, kBuffersMax, kShareMin, kShareMax, config.buffers,
        config.share, kTimeoutUsMax, config.response_timeout_us);
    return -EINVAL;
  }
  std::unique_ptr<Port> port(new (std::nothrow) Port(config));
  if (port == nullptr) {
    return -ENOMEM;
  }
  if (const int rc = port->start(); rc != 0) {
    return rc;
  }
  *out = std::move(port);
  return 0;
}

int Port::start() {
  if (const int rc = load_profile(config_.profile, &profile_); rc != 0) {
    return rc;
  }
  EndpointConfig config;
  config.queue_pair = config_.queue_pair;
  config.dest_id = config_.dest_id;
  config.card.response_timeout_us = config_.response_timeout_us;
  config.card.receive_timeout_us = 2 * config_.response_timeout_us;
  // A peer that has no buffer is tried for some milliseconds, then send_again() does: for ever, a
  // message would keep its place in the ring, and all places behind it.
  config.card.retry_limit = kRetryLimit;
  config.card.retry_delay_us = kRetryDelayUs;
  config.irq_rings = config_.sleeps ? irq_rings() : 0;
  config.queues.tx_log2 = kRingLog2;
  config.queues.shared_log2 = kRingLog2;
  if (const int rc = Endpoint::open(config_.card, config, &endpoint_); rc != 0) {
    return rc;
  }
  tx_ = &endpoint_->tx();
  shared_ = &endpoint_->shared();
  events_ = &endpoint_->events();
  if ((endpoint_->queues().rings() & pmd::ring_bit(regs::Ring::kDma)) != 0) {
    dma_ = std::make_unique<Dma>(*endpoint_);
  }
  dest_id_ = endpoint_->dest_id();
  while (instance_ == 0) {
    if (getrandom(&key_seed_, sizeof(key_seed_), 0) != sizeof(key_seed_) ||
        getrandom(&instance_, sizeof(instance_), 0) != sizeof(instance_)) {
      const base::Trouble trouble = base::failed("getrandom");
      if (trouble.rc == -EINTR) {
        continue;
      }
      base::log_error("port on %s: %s", config_.card.c_str(), base::why(trouble).c_str());
      return trouble.rc;
    }
  }
  return start_buffers();
}

int Port::start_buffers() {
  pmd::DmaMemory buffers;
  pmd::DmaMemory slots;
  int rc = make_area(config_.buffers, &buffers);
  rc = rc != 0 ? rc : make_area(1u << kRingLog2, &slots);
  rc = rc != 0 ? rc : tx_->use_slots(static_cast<uint8_t*>(slots.va), slots.iova, kStrideBytes);
  if (rc != 0) {
    return rc;
  }
  budget_end_ = tx_->next_index();
  spare_.reset(new (std::nothrow) uint8_t*[config_.buffers]);
  if (spare_ == nullptr) {
    return -ENOMEM;
  }
  auto* const base = static_cast<uint8_t*>(buffers.va);
  buffer_iova_minus_va_ = buffers.iova - reinterpret_cast<uintptr_t>(base);
  for (uint32_t i = 0; i < config_.buffers; ++i) {
    repost(base + uint64_t{i} * kStrideBytes);
  }
  shares_ = SharePool(config_.buffers - kControlBuffers);
  refill();
  return 0;
}

int Port::make_area(uint32_t count, pmd::DmaMemory* out) {
  const pmd::Caps& caps = endpoint_->caps();
  const uint32_t align = std::max({caps.shared_addr_align, caps.tx_addr_align, 64u});
  if (kStrideBytes % align != 0) {
    base::log_error("%s wants buffers at multiples of %u; at most %u is supported",
                    endpoint_->name().c_str(), align, regs::kSegmentBytesMax);
    return -ENOTSUP;
  }
  return endpoint_->alloc(uint64_t{count} * kStrideBytes, align, out);
}

Port::~Port() {
  if (endpoint_ != nullptr) {
    static_cast<void>(endpoint_->close());
  }
}

Link* Port::known_link(uint32_t dest_id) const {
  const auto known = index_of_.find(dest_id);
  return known == index_of_.end() ? nullptr : links_[known->second].get();
}

Link* Port::link(uint32_t dest_id) {
  if (Link* const known = known_link(dest_id); known != nullptr) {
    return known;
  }
  const auto index = static_cast<uint32_t>(links_.size());
  if (index >= kLinksMax) {
    return nullptr;
  }
  links_.push_back(std::make_unique<Link>(dest_id, index));
  index_of_.emplace(dest_id, index);
  renew(*links_.back());
  return links_.back().get();
}

/// Those that send without a look have to look.
void Port::tell_senders(const Link& link) const {
  for (uint64_t left = link.routes.routed; left != 0; left &= left - 1) {
    const Context* const context = contexts_[static_cast<uint32_t>(__builtin_ctzll(left))];
    if (context != nullptr && context->on_session_end_) {
      context->on_session_end_();
    }
  }
}

/// The card is gone. What it had to read or write it never will: large data ends, too.
void Port::end_all_sessions() {
  if (sender_ != nullptr) {
    sender().card_gone();
  }
  if (dma_ != nullptr) {
    dma_->card_gone();
  }
  for (const std::unique_ptr<Link>& link : links_) {
    if (link->state == LinkState::kUp) {
      end_session(*link, error_);
    }
  }
}

/// What the peer has to name from now on.
void Port::renew(Link& link) {
  // No secret: it only has to differ from what went before, of this process or of the one that had
  // the destID earlier; the number does so, too. (splitmix64)
  key_seed_ += 0x9E3779B97F4A7C15u;
  uint64_t mixed = (key_seed_ ^ key_seed_ >> 30) * 0xBF58476D1CE4E5B9u;
  mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EBu;
  mixed ^= mixed >> 31;
  const auto nonce = static_cast<uint32_t>(mixed >> 48);
  const uint32_t before = link.keys.local >> 16;
  link.keys.local = (nonce == before || nonce == 0 ? (before + 1) | 1u : nonce) << 16 | link.index();
  link.keys.first_in = config_.first_number != 0 ? config_.first_number : static_cast<uint32_t>(mixed);
  link.expect(link.keys.first_in);
}

int Port::flush(uint32_t timeout_ms) {
  if (!endpoint_->is_ours()) {
    return 0;  // entries in flight are the parent's
  }
  const uint64_t end = now_ns() + uint64_t{timeout_ms} * 1'000'000;
  while (tx_->outstanding() != 0 || restarting_ || !again_.empty() || !parked_.empty() ||
         !talkers_.empty()) {
    look_at_card();
    if (error_ != 0 || now_ns() > end) {
      return error_ != 0 ? error_ : -ETIMEDOUT;
    }
    reap();
    progress();
  }
  return 0;
}

}  // namespace rio::msg
