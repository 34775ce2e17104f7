/// @file
/// A machine with a card that works, behind a fake VFIO: the model is behind the BAR, and reaches
/// what VFIO has mapped, until the kernel closes the device.
#pragma once

#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/thread.hpp"
#include "fpga/model/card.hpp"
#include "fpga/model/host_memory.hpp"
#include "pmd/bus/vfio/vfio_bus.hpp"
#include "tests/unit/pmd/bus/vfio/fake_system.hpp"

namespace rio::test {

/// One card, wired to itself, at kAddress. A thread steps it.
class VfioMachine {
 public:
  static constexpr const char* kAddress = "0000:03:00.0";

  explicit VfioMachine(uint32_t queue_pairs = 1) {
    using pmd::vfio::FakeKernel;
    tree_.add_device(kAddress, 0x10EE, 0x7210, "vfio-pci", 7);
    kernel_.set_magic(0);
    model::Config config;
    config.queue_pairs = queue_pairs;
    kernel_.bar_len = model::Card::bar_bytes(config.queue_pairs);
    model::Ends ends;
    ends.bar = kernel_.bar();
    ends.memory = &memory_;
    ends.clock = &clock_;
    ends.irqs = &irqs_;
    ends.wire = model::make_loop_wire();
    if (kernel_.bar_len > pmd::vfio::kBarBytes ||
        model::Card::create(config, std::move(ends), &card_) != 0) {
      std::abort();
    }
    kernel_.on_map = [this](uint64_t iova, uint64_t va, uint64_t len_bytes) {
      const std::lock_guard lock(mutex_);
      const int rc = va != 0 ? memory_.add({iova, len_bytes, reinterpret_cast<uint8_t*>(va)})
                             : memory_.remove(iova);
      if (rc != 0) {
        std::abort();
      }
    };
    kernel_.on_close = [this](int fd) {
      const std::lock_guard lock(mutex_);
      open_ = open_ && fd != FakeKernel::kDevice;
    };
    const int rc = base::start_thread(
        "card",
        [this](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            {
              const std::lock_guard lock(mutex_);
              for (int i = 0; i < 64 && open_; ++i) {
                card_->step();
              }
            }
            std::this_thread::yield();
          }
        },
        &stepper_);
    if (rc != 0) {
      std::abort();
    }
  }

  /// Open the card. @return as open_vfio_bus().
  [[nodiscard]] int open(std::unique_ptr<pmd::Bus>* out, const name::Pci& card = {kAddress}) {
    {
      const std::lock_guard lock(mutex_);
      open_ = true;
    }
    return pmd::vfio::open_vfio_bus(card, tree_.paths, out, kernel_);
  }
  /// The card does nothing any more.
  void halt() {
    const std::lock_guard lock(mutex_);
    open_ = false;
  }
  /// Whether the kernel has the card back: neither its device nor its group is open. Any thread.
  [[nodiscard]] bool is_released() {
    using pmd::vfio::FakeKernel;
    return !kernel_.is_open(FakeKernel::kDevice) && !kernel_.is_open(FakeKernel::kGroup);
  }
  [[nodiscard]] pmd::vfio::FakeKernel& kernel() { return kernel_; }

 private:
  /// Interrupts go nowhere.
  struct Irqs final : model::IrqSink {
    void raise(uint32_t) override {}
  };

  pmd::vfio::FakeTree tree_;
  pmd::vfio::FakeKernel kernel_{tree_.paths};
  model::HostClock clock_;
  Irqs irqs_;
  model::DmaTable memory_;
  std::unique_ptr<model::Card> card_;
  std::mutex mutex_;  // the card makes no step while the kernel changes what follows
  bool open_ = true;  // the kernel ends it with the device's file
  std::jthread stepper_;
};

}  // namespace rio::test
