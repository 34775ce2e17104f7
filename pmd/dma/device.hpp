/// @file
/// A DMA device: one DMA queue of a card, and the channels on it.
#pragma once

#include <rte_dmadev_pmd.h>

#include <array>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pmd/card/eal_card.hpp"
#include "pmd/card/turn.hpp"
#include "pmd/dma/channel.hpp"
#include "pmd/dma/rte_dma_rio.h"

namespace rio::pmd {

/// A DMA device. Functions are control path, under control_lock(), unless they are marked hot:
/// those are for one thread at a time, which takes the device's turn for each call. They return 0
/// or -errno; the cause is logged.
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
  /// Stop the device. Operations under way fail.
  void stop();
  [[nodiscard]] int open_window(const rte_dma_rio_window& window, uint32_t* index);
  [[nodiscard]] int close_window(uint32_t index);
  [[nodiscard]] uint32_t dest_id();
  void dump(std::FILE* file);

  /// Hot. The turn that a caller of hot functions holds, except for channel().
  [[nodiscard]] Turn& turn() { return turn_; }
  /// Hot. A channel that was set up.
  [[nodiscard]] DmaChannel& channel(uint16_t number) { return *channels_[number]; }
  /// Hot. Post the requests that wait in a channel.
  void post(DmaChannel& channel) {
    if (pair_ != nullptr) [[likely]] {
      channel.post(pair_->dma());
    }
  }
  /// Hot. Fetch completions, and post the requests that wait in a channel.
  void work(DmaChannel& channel);

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
  [[nodiscard]] int open_to_self(uint64_t iova, uint64_t size_bytes);
  [[nodiscard]] int reopen();
  void close(Status status);
  [[nodiscard]] int find_out();
  [[nodiscard]] bool reaches_itself(const DmaMemory& memory);
  [[nodiscard]] int way_of(const rte_dma_vchan_conf& conf, DmaWay* way);
  [[nodiscard]] int node_of(const rte_dma_port_param& port, DmaWay* way);
  uint16_t reap(Status flushed = Status::kFlushed);
  void look_for_trouble();

  uint32_t qp_ = 0;
  uint16_t key_;  // of windows for our own queue pair only
  bool hears_itself_ = false;
  bool started_ = false;
  Turn turn_;
  uint32_t empty_looks_ = 0;  // consecutive empty fetches while requests are out
  std::unique_ptr<QueuePair> pair_;
  std::vector<std::unique_ptr<DmaChannel>> channels_;
  std::array<std::optional<Window>, regs::kWindowsPerQp> windows_;  // of the user, by index
};

/// Find a device by its number. @return null: no such device, or another driver's.
[[nodiscard]] DmaDevice* find_dma_device(int16_t dev_id);

/// The driver's control functions for dmadev; constant.
extern const rte_dma_dev_ops kDmaOps;
/// Set the hot functions of a device.
void set_hot_functions(DmaDevice& device, rte_dma_fp_object* functions);

}  // namespace rio::pmd
