/// @file
/// Sending end of a lane: cuts each transfer as the receiver did, and sends it in place where it
/// can.
#pragma once

#include <string>
#include <vector>

#include "apps/testpmd/dedicated_path.hpp"

namespace rio::testpmd {

/// Part of a stream, which shares the transmit queue among its lanes; hot.
class DedicatedSender : private DedicatedEnd {
 public:
  /// A cookie is lane * this + slot.
  static constexpr uint32_t kCookieSlots = 32;

  /// After the receiver of the lane was started. @param lanes_of_port share --count.
  /// @param index number of the lane among those of the port; cookies begin with it.
  DedicatedSender(const RunSetup& setup, DedicatedPath& lane, uint32_t lanes_of_port,
                  uint32_t index, Stream& owner);
  /// Before turn(). @return 0, or -errno with the remedy in `error`.
  [[nodiscard]] int start(std::string* error);

  /// Send up to a burst. @return messages.
  uint32_t turn(bool may_send) noexcept;
  /// A message of the lane has completed. @param slot as its cookie says.
  void done(uint32_t slot, const pmd::TxDone& done) noexcept;
  [[nodiscard]] bool quiet() const noexcept {
    return in_flight_ == 0 && confirmed_ == begun_ &&
           lane_.state.load(std::memory_order_acquire) == DedicatedPath::State::kRunning;
  }
  [[nodiscard]] bool finished() const noexcept { return left_ == 0; }

 private:
  void begin(uint32_t index) noexcept;
  void confirm() noexcept;
  void mend() noexcept;

  pmd::TxQueue& queue_;
  const uint32_t index_;
  const uint32_t burst_;
  uint64_t left_;                         // transfers of --count
  std::vector<pmd::TxMessage> messages_;  // of all slots in turn, messages_each_ for each
  uint32_t at_ = 0;                       // in messages_: the next to send
  uint32_t unsent_ = 0;                   // messages of transfers that are begun
  uint64_t begun_ = 0;                    // transfers that have their bytes and their number
  uint64_t confirmed_ = 0;                // transfers whose messages were all delivered
  uint32_t in_flight_ = 0;
  LinkPause pause_;
};

}  // namespace rio::testpmd
