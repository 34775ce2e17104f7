#include "lib/msg/port.hpp"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "pmd/bus/log.hpp"

namespace rio::msg {
namespace {

constexpr uint32_t kBuffersMin = 64;
constexpr uint32_t kBuffersMax = 16384;
constexpr uint32_t kShareMin = 4;
constexpr uint32_t kShareMax = 1024;
constexpr uint32_t kRingLog2 = 9;
constexpr uint32_t kControlBuffers = 32;  // never part of a share

}  // namespace

int Port::open(const PortConfig& config, std::unique_ptr<Port>* out) {
  if (config.buffers < kBuffersMin || config.buffers > kBuffersMax || config.share < kShareMin ||
      config.share > kShareMax) {
    pmd::log_error("port on %s: buffers are %u to %u and a share %u to %u of them, not %u and %u",
                   config.card.c_str(), kBuffersMin, kBuffersMax, kShareMin, kShareMax,
                   config.buffers, config.share);
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
  EndpointConfig config;
  config.queue_pair = config_.queue_pair;
  config.dest_id = config_.dest_id;
  config.queues.tx_log2 = kRingLog2;
  config.queues.shared_log2 = kRingLog2;
  if (const int rc = Endpoint::open(config_.card, config, &endpoint_); rc != 0) {
    return rc;
  }
  tx_ = &endpoint_->tx();
  shared_ = &endpoint_->shared();
  dest_id_ = config_.dest_id;
  if (getrandom(&key_seed_, sizeof(key_seed_), 0) != sizeof(key_seed_)) {
    return -EIO;
  }
  return start_buffers();
}

int Port::start_buffers() {
  int rc = make_area(config_.buffers, &buffers_);
  rc = rc != 0 ? rc : make_area(kSlots, &slots_);
  if (rc != 0) {
    return rc;
  }
  free_slots_.reset(new (std::nothrow) uint32_t[kSlots]);
  sent_.reset(new (std::nothrow) Sent[kSlots]);
  spare_.reset(new (std::nothrow) uint8_t*[config_.buffers]);
  if (free_slots_ == nullptr || sent_ == nullptr || spare_ == nullptr) {
    return -ENOMEM;
  }
  for (uint32_t i = 0; i < kSlots; ++i) {
    free_slots_[free_slot_count_++] = i;
  }
  again_.reserve(kSlots);
  buffer_iova_minus_va_ = buffers_.base_iova - reinterpret_cast<uintptr_t>(buffers_.base_va);
  unshared_ = config_.buffers - kControlBuffers;
  for (uint32_t i = 0; i < config_.buffers; ++i) {
    repost(buffers_.va(i));
  }
  refill();
  return 0;
}

int Port::make_area(uint32_t count, Area* out) {
  pmd::DmaMemory memory;
  const uint32_t align = std::max(endpoint_->caps().shared_addr_align, 64u);
  if (Area::kStrideBytes % align != 0) {
    pmd::log_error("%s wants shared buffers at multiples of %u; at most %u is supported",
                   endpoint_->name().c_str(), align, regs::kSegmentBytesMax);
    return -ENOTSUP;
  }
  const int rc = endpoint_->alloc(uint64_t{count} * Area::kStrideBytes, align, &memory);
  *out = {static_cast<uint8_t*>(memory.va), memory.iova};
  return rc;
}

Port::~Port() {
  if (endpoint_ != nullptr) {
    static_cast<void>(endpoint_->close());
  }
}

Link* Port::link(uint32_t dest_id) {
  const auto known = index_of_.find(dest_id);
  if (known != index_of_.end()) {
    return links_[known->second].get();
  }
  const auto index = static_cast<uint32_t>(links_.size());
  if (index >= kLinksMax) {
    return nullptr;
  }
  links_.push_back(std::make_unique<Link>(dest_id, index));
  index_of_.emplace(dest_id, index);
  Link& made = *links_.back();
  made.local_key = new_key(made);
  return &made;
}

uint32_t Port::new_key(const Link& link) {
  // No secret: it only has to differ from the one before, of this process or of the one that had
  // the destID earlier. (splitmix64)
  key_seed_ += 0x9E3779B97F4A7C15u;
  uint64_t mixed = (key_seed_ ^ key_seed_ >> 30) * 0xBF58476D1CE4E5B9u;
  mixed ^= mixed >> 27;
  const auto nonce = static_cast<uint32_t>(mixed >> 33) & 0xFFFFu;
  const uint32_t before = link.local_key >> 16;
  return (nonce == before || nonce == 0 ? (before + 1) | 1u : nonce) << 16 | link.index();
}

uint32_t Port::progress() {
  pmd::RxMessage messages[kBurst];
  const uint32_t n = shared_->burst(messages, kBurst);
  posted_ -= n;
  for (uint32_t i = 0; i < n; ++i) {
    take(messages[i]);
  }
  if (posted_ + kBurst <= kPosted) {
    refill();
  }
  if (--until_time_ == 0) [[unlikely]] {
    until_time_ = kBurst;
    reap();
    look_at_time();
  }
  if (!talkers_.empty()) [[unlikely]] {
    speak();
  }
  return n;
}

}  // namespace rio::msg
