/// @file
/// A DMA device: one DMA queue of a card, and the channels on it.
#pragma once

#include <rte_dmadev.h>

#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "pmd/card/eal_card.hpp"
#include "pmd/card/turn.hpp"
#include "pmd/dma/channel.hpp"
#include "pmd/dma/rte_dma_rio.h"

namespace rio::pmd {

/// Functions are control path, under control_lock(), unless they are hot: those belong to one
/// thread at a time, which takes the device's turn for each. They return 0 or -errno; the cause is
/// logged.
class DmaDevice final : public CardUser {
 public:
  static constexpr uint16_t kChannelsMax = 64;
  static constexpr uint16_t kSlotsMax = 32768;

  /// @param qp of the card; -1: any. @return -ENOTSUP: the card has no DMA queues.
  [[nodiscard]] static int create(const std::string& name, std::shared_ptr<EalCard> card, int qp,
                                  std::unique_ptr<DmaDevice>* out);
  ~DmaDevice();

  [[nodiscard]] int configure(uint16_t channels);
  [[nodiscard]] int setup(uint16_t channel, const rte_dma_vchan_conf& conf);
  [[nodiscard]] int start();
  /// Operations under way have failed.
  void stop();
  [[nodiscard]] int open_window(const rte_dma_rio_window& window, uint32_t* index);
  [[nodiscard]] int close_window(uint32_t index);
  [[nodiscard]] uint32_t dest_id();
  void dump(std::FILE* file);

  /// Hot. The caller of a hot function has it, but for channel().
  [[nodiscard]] Turn& turn() { return turn_; }
  /// Hot. A channel that was set up.
  [[nodiscard]] DmaChannel& channel(uint16_t number) { return *channels_[number]; }
  /// Hot. Post what waits in a channel.
  void post(DmaChannel& channel) {
    if (pair_ != nullptr) [[likely]] {
      channel.post(pair_->dma());
    }
  }
  /// Hot. See what has ended, and post what waits in a channel.
  void work(DmaChannel& channel);

  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] int hold() override;
  void let_go() override { turn_.give(); }
  void before_reset() override;
  [[nodiscard]] int after_reset() override;
  [[nodiscard]] bool started() const { return started_; }
  [[nodiscard]] bool hears_itself() const { return hears_itself_; }
  [[nodiscard]] bool lost() const { return started_ && pair_ == nullptr; }
  [[nodiscard]] uint16_t channels() const { return static_cast<uint16_t>(channels_.size()); }
  [[nodiscard]] bool has_channel(uint16_t number) const {
    return number < channels_.size() && channels_[number] != nullptr;
  }
  [[nodiscard]] int numa_node() { return card_->bus().numa_node(); }

 private:
  DmaDevice(std::string name, std::shared_ptr<EalCard> card);
  [[nodiscard]] int open();
  [[nodiscard]] int reopen();
  [[nodiscard]] int open_to_self();
  [[nodiscard]] int open_windows();
  void close(Status status);
  [[nodiscard]] int find_out();
  [[nodiscard]] bool reaches_itself(const DmaMemory& memory);
  [[nodiscard]] int way_of(const rte_dma_vchan_conf& conf, DmaWay* way);
  [[nodiscard]] int node_of(const rte_dma_port_param& port, DmaWay* way);
  uint16_t reap(Status flushed = Status::kFlushed);
  void look_for_trouble();
  void lose(Status status);

  std::string name_;
  std::shared_ptr<EalCard> card_;
  uint32_t qp_ = 0;
  uint16_t key_;  // of the window onto all of our memory, for ourselves only
  bool hears_itself_ = false;
  bool started_ = false;
  Turn turn_;
  uint32_t empty_looks_ = 0;  // in a row, while requests are out
  std::unique_ptr<QueuePair> pair_;
  std::vector<std::unique_ptr<DmaChannel>> channels_;
  std::array<Window, regs::kWindowsPerQp> windows_{};  // of the user, by their indices
  uint32_t windows_open_ = 0;                          // a bit for each
};

/// Device of a number. Null: none, or of another driver.
[[nodiscard]] DmaDevice* find_dma_device(int16_t dev_id);

}  // namespace rio::pmd
