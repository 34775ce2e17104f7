#include "pmd/raw/device.hpp"

#include <rte_eal.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "pmd/bus/log.hpp"

namespace rio::pmd {

std::recursive_mutex& control_lock() {
  // Never destroyed: telemetry's thread outlives static objects.
  static auto* lock = new std::recursive_mutex;
  return *lock;
}

RawDevice::RawDevice(std::string name, RawArgs args, FoundCard found)
    : name_(std::move(name)),
      wire_(std::move(found.wire)),
      args_(std::move(args)),
      primary_(rte_eal_process_type() == RTE_PROC_PRIMARY),
      bus_(std::move(found.bus)),
      shared_(found.shared) {}

int RawDevice::create(const std::string& name, const RawArgs& args, FoundCard found,
                      std::unique_ptr<RawDevice>* out) {
  const DmaMemory bar = found.bar;
  const bool works_alone = found.works_alone;
  std::unique_ptr<RawDevice> device(new RawDevice(name, args, std::move(found)));
  const int rc = device->primary_ ? device->take_over(bar, works_alone) : device->join();
  if (rc == 0) {
    *out = std::move(device);
  }
  return rc;
}

int RawDevice::take_over(const DmaMemory& bar, bool works_alone) {
  const uint32_t count = regs::id::CapQueues::qps.get(bus_->bar().read32(regs::id::cap_queues()));
  if (count == 0 || count > regs::kMaxQps) {
    log_error("%s: the card says that it has %u queue pairs; 1 to %u are possible", name_.c_str(),
              count, regs::kMaxQps);
    return -EPROTO;
  }
  if (const int rc = open_card(count); rc != 0) {
    return rc;
  }
  return shared_.create(name_, queue_pairs(), works_alone, bar, wire_);
}

int RawDevice::join() {
  queues_.resize(shared_.layout().queue_pairs);
  return Card::attach(*bus_, &card_);
}

int RawDevice::open_card(uint32_t count) {
  CardConfig config;
  for (uint32_t i = 0; i < count; ++i) {
    config.dest_ids.push_back(args_.base_dest_id + i);
  }
  config.response_timeout_us = args_.response_timeout_us;
  config.receive_timeout_us = args_.receive_timeout_us;
  config.retry_limit = args_.retry_limit;
  config.retry_delay_us = args_.retry_delay_us;
  if (const int rc = Card::open(*bus_, config, &card_); rc != 0) {
    return rc;
  }
  queues_.resize(count);
  return check_rings();
}

int RawDevice::check_rings() const {
  const Caps& caps = card_->caps();
  const auto check = [&](const char* key, uint32_t log2) {
    if (log2 >= caps.ring_log2_min && log2 <= caps.ring_log2_max) {
      return 0;
    }
    log_error("%s: bad value '%u' for argument '%s': this card takes %u to %u entries",
              name_.c_str(), 1u << log2, key, 1u << caps.ring_log2_min, 1u << caps.ring_log2_max);
    return -EINVAL;
  };
  const std::pair<const char*, uint32_t> rings[] = {{"tx_ring", args_.tx_log2},
                                                    {"rx_ring", args_.shared_log2},
                                                    {"dedicated_ring", args_.dedicated_log2},
                                                    {"doorbell_ring", args_.doorbell_log2},
                                                    {"dma_ring", args_.dma_log2},
                                                    {"event_ring", args_.event_log2}};
  for (const auto& [key, log2] : rings) {
    if (const int rc = check(key, log2); rc != 0) {
      return rc;
    }
  }
  return 0;
}

RawDevice::~RawDevice() {
  stop();
  card_.reset();
  const bool others = primary_ && shared_.valid() && shared_.others_alive();
  if (shared_.valid()) {
    shared_.detach();
  }
  if (others && bus_->leave_to_others()) {
    log_warning("%s: closed while other processes use it; they see a card that is gone",
                name_.c_str());
  }
}

void RawDevice::let_work() {
  constexpr uint32_t kSteps = 64;  // the card looks at its link every few steps
  const PollHook hook = bus_->poll_hook(0);
  for (uint32_t i = 0; i < kSteps; ++i) {
    hook();
  }
}

bool RawDevice::wait_link(uint32_t timeout_ms) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (card_ != nullptr) {
    let_work();
    if (card_->link().up) {
      return true;
    }
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return false;
}

RawDevice* RawDevice::peer() {
  if (wire_.empty() || wire_ == "loop") {
    return this;
  }
  for (const uint16_t id : device_ids()) {
    RawDevice* const other = find_device(id);
    if (other != this && other->wire() == wire_) {
      return other;
    }
  }
  return nullptr;
}

int RawDevice::dma_map(void* va, uint64_t iova, size_t len_bytes) {
  return bus_->dma_map_at(va, iova, len_bytes);
}

int RawDevice::dma_unmap(void* va, size_t len_bytes) {
  return bus_->dma_unmap(va, len_bytes);
}

}  // namespace rio::pmd
