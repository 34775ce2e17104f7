#include "pmd/raw/device.hpp"

#include <bus_pci_driver.h>
#include <rte_eal.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "pmd/bus/eal/eal_memory.hpp"
#include "pmd/bus/eal/eal_pci_bus.hpp"
#include "pmd/bus/log.hpp"
#include "pmd/raw/control_thread.hpp"

namespace rio::pmd {

std::recursive_mutex& control_lock() {
  // Never destroyed: telemetry's thread outlives static objects.
  static auto* lock = new std::recursive_mutex;
  return *lock;
}

RawDevice::RawDevice(std::string name) : name_(std::move(name)) {}

int RawDevice::create_emulated(const std::string& name, const RawArgs& args,
                               std::unique_ptr<RawDevice>* out) {
  std::unique_ptr<RawDevice> device(new RawDevice(name));
  const int rc = device->make_emulated(args);
  if (rc == 0) {
    *out = std::move(device);
  }
  return rc;
}

int RawDevice::attach_emulated(const std::string& name, std::unique_ptr<RawDevice>* out) {
  std::unique_ptr<RawDevice> device(new RawDevice(name));
  const int rc = device->join_emulated();
  if (rc == 0) {
    *out = std::move(device);
  }
  return rc;
}

int RawDevice::create_pci(rte_pci_device* pci, unsigned bar_index, const RawArgs& args,
                          std::unique_ptr<RawDevice>* out) {
  std::unique_ptr<RawDevice> device(new RawDevice(pci->name));
  const int rc = device->make_pci(pci, bar_index, args);
  if (rc == 0) {
    *out = std::move(device);
  }
  return rc;
}

int RawDevice::make_emulated(const RawArgs& args) {
  args_ = args;
  wire_ = args.emu.wire;
  const uint32_t number = SharedCard::next_card_number();
  shared_.set_card_number(number);
  if (const int rc = EalMemory::create(SharedCard::zone_tag(number, own_token()), &memory_);
      rc != 0) {
    return rc;
  }
  std::unique_ptr<EmuBus> bus;
  // A thread of the card must not inherit the lcore's CPU from the caller.
  const int made =
      run_in_control_thread([&] { return EmuBus::create(args.emu, memory_.get(), &bus); });
  if (made != 0) {
    return made;
  }
  emu_ = bus.get();
  emu_bar_ = bus->bar_memory();
  bus_ = std::move(bus);
  if (const int rc = open_card(args.emu.queue_pairs); rc != 0) {
    return rc;
  }
  return shared_.create(name_, queue_pairs(), args.emu.stepping == Stepping::kThread, emu_bar_,
                        wire_);
}

int RawDevice::join_emulated() {
  primary_ = false;
  if (const int rc = shared_.attach(name_); rc != 0) {
    return rc;
  }
  const SharedCardLayout& layout = shared_.layout();
  if (layout.stepping_thread == 0) {
    log_warning(
        "%s: the card works only while the primary process polls it: give the primary "
        "stepping=thread",
        name_.c_str());
  }
  if (const int rc = EalMemory::create(shared_.zone_tag(own_token()), &memory_); rc != 0) {
    return rc;
  }
  const DmaMemory bar{.va = reinterpret_cast<void*>(layout.bar_va),
                      .iova = layout.bar_iova,
                      .len_bytes = layout.bar_len_bytes};
  std::unique_ptr<EmuBus> bus;
  if (const int rc = EmuBus::attach(bar, memory_.get(), name_, &bus); rc != 0) {
    return rc;
  }
  emu_ = bus.get();
  bus_ = std::move(bus);
  wire_ = layout.wire;
  queues_.resize(layout.queue_pairs);
  return Card::attach(*bus_, &card_);
}

int RawDevice::make_pci(rte_pci_device* device, unsigned bar_index, const RawArgs& args) {
  args_ = args;
  primary_ = rte_eal_process_type() == RTE_PROC_PRIMARY;
  if (primary_) {
    shared_.set_card_number(SharedCard::next_card_number());
  } else if (const int rc = shared_.attach(name_); rc != 0) {
    return rc;
  }
  std::unique_ptr<EalPciBus> bus;
  if (const int rc = EalPciBus::create(device, bar_index, shared_.zone_tag(own_token()), &bus);
      rc != 0) {
    return rc;
  }
  bus_ = std::move(bus);
  Mmio bar = bus_->bar();
  const uint32_t magic = bar.read32(regs::id::magic());
  if (magic != regs::kMagic) {
    if (device->id.vendor_id == regs::kPciIvshmemVendor) {
      return 1;
    }
    log_error("%s: BAR%u holds 0x%08x where a card holds 0x%08x: %s", name_.c_str(), bar_index,
              magic, regs::kMagic,
              magic == regs::kAllOnes ? "the card does not answer, reset or replug it"
                                      : "other gateware, or a wrong byte order");
    return -ENODEV;
  }
  if (!primary_) {
    queues_.resize(shared_.layout().queue_pairs);
    return Card::attach(*bus_, &card_);
  }
  const uint32_t count = regs::id::CapQueues::qps.get(bar.read32(regs::id::cap_queues()));
  if (count == 0 || count > regs::kMaxQps) {
    log_error("%s: the card says that it has %u queue pairs; 1 to %u are possible", name_.c_str(),
              count, regs::kMaxQps);
    return -EPROTO;
  }
  if (const int rc = open_card(count); rc != 0) {
    return rc;
  }
  return shared_.create(name_, queue_pairs(), true, {}, "");
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
  const bool keep = memory_ != nullptr && primary_ && shared_.valid() && shared_.others_alive();
  if (shared_.valid()) {
    shared_.detach();
  }
  if (keep) {
    // Other processes still read the BAR: it stays, and says that the card is gone.
    log_warning("%s: closed while other processes use it; they see a card that is gone",
                name_.c_str());
    memory_->leave_to_others();
  }
  bus_.reset();
  if (keep) {
    Mmio(emu_bar_.va, emu_bar_.len_bytes).write32(regs::id::magic(), regs::kAllOnes);
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
  return memory_ == nullptr ? -ENOTSUP : memory_->map_at(va, iova, len_bytes);
}

int RawDevice::dma_unmap(void* va, size_t len_bytes) {
  return memory_ == nullptr ? -ENOTSUP : memory_->unmap(va, len_bytes);
}

}  // namespace rio::pmd
