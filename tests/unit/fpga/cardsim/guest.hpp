/// @file
/// A fake QEMU guest: RAM in a file, a driver in it, and cards of rio-cardsim served by a thread.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fpga/cardsim/service.hpp"
#include "pmd/bus/bus.hpp"
#include "tests/unit/fpga/cardsim/ram_file.hpp"

namespace rio::test {

/// Cards of rio-cardsim in this process, with their loop in a thread.
class Served {
 public:
  explicit Served(const std::vector<std::string>& specs, bool stay = false) {
    const auto cable = specs.size() > 1 ? model::make_cable() : nullptr;
    for (size_t i = 0; i < specs.size(); ++i) {
      cardsim::CardSpec spec;
      EXPECT_EQ(cardsim::parse_card_spec(specs[i], &spec), 0);
      std::unique_ptr<cardsim::SimCard> card;
      EXPECT_EQ(cardsim::SimCard::create(
                    spec,
                    [cable, i] {
                      return cable == nullptr ? model::make_loop_wire()
                                              : cable->plug(static_cast<int>(i));
                    },
                    &card),
                0);
      cards_.push_back(std::move(card));
    }
    service_ = std::make_unique<cardsim::Service>(cards_, requests, [] {});
    thread_ = std::thread([this, stay] {
      const char* why = nullptr;
      rc_ = service_->run(0, stay, &why);
    });
  }
  ~Served() { end(); }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  /// Stops the loop; then the test may look at the cards. @return result of Service::run().
  int end() {
    requests.stop = true;
    return wait();
  }
  /// Waits for the loop to end by itself.
  int wait() {
    if (thread_.joinable()) {
      thread_.join();
    }
    return rc_;
  }
  /// A card. After end() or wait().
  cardsim::SimCard& card(size_t i = 0) { return *cards_[i]; }
  const std::vector<std::unique_ptr<cardsim::SimCard>>& cards() { return cards_; }

  cardsim::Requests requests;

 private:
  std::vector<std::unique_ptr<cardsim::SimCard>> cards_;
  std::unique_ptr<cardsim::Service> service_;
  int rc_ = -1;
  std::thread thread_;
};

/// A guest's bus: the BAR is a file, memory is cut from the RAM.
class GuestBus final : public pmd::Bus {
 public:
  /// @param iova_add bus address minus offset in the RAM; the test maps the pages in between.
  GuestBus(const std::string& bar_path, RamFile* ram, uint64_t first_offset, uint64_t iova_add)
      : bar_(std::make_unique<RamFile>(bar_path, kBarBytes)),
        ram_(ram),
        next_(first_offset),
        iova_add_(iova_add) {}

  pmd::Mmio bar() override { return {bar_->at(0), kBarBytes}; }
  int dma_alloc(size_t len_bytes, size_t align_bytes, pmd::DmaMemory* out) override {
    const uint64_t align = std::max<uint64_t>(align_bytes, 4096);
    next_ = (next_ + align - 1) & ~(align - 1);
    *out = {ram_->at(next_), next_ + iova_add_, len_bytes};
    next_ += (len_bytes + 4095) & ~4095ul;
    std::memset(out->va, 0, len_bytes);
    return 0;
  }
  void dma_free(const pmd::DmaMemory& /*memory*/) override {}
  const std::string& name() const override { return name_; }

  static constexpr size_t kBarBytes = 128 << 10;

 private:
  std::unique_ptr<RamFile> bar_;
  RamFile* ram_;
  uint64_t next_;
  uint64_t iova_add_;
  std::string name_ = "guest";
};

}  // namespace rio::test
