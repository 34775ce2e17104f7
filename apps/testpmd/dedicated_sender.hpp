/// @file
/// Sending end of a lane: cuts each transfer as the receiver did, and sends it in place where it
/// can.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/testpmd/dedicated_path.hpp"
#include "apps/testpmd/link_pause.hpp"
#include "apps/testpmd/mode.hpp"
#include "pmd/mem/alignment_plan.hpp"
#include "pmd/mem/bounce_pool.hpp"

namespace rio::testpmd {

/// Part of a stream, which shares the transmit queue among its lanes; hot.
class DedicatedSender {
 public:
  /// A cookie is lane * this + slot.
  static constexpr uint32_t kCookieSlots = 32;

  /// After the receiver of the lane was made. @param lanes_of_port share --count.
  /// @param index number of the lane among those of the port; cookies begin with it.
  /// @return 0, or -errno with the remedy in `error`.
  [[nodiscard]] static int create(const RunSetup& setup, DedicatedPath& lane,
                                  uint32_t lanes_of_port, uint32_t index, Stream& owner,
                                  std::unique_ptr<DedicatedSender>* out, std::string* error);
  ~DedicatedSender();
  DedicatedSender(const DedicatedSender&) = delete;
  DedicatedSender& operator=(const DedicatedSender&) = delete;

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
  struct Slot {
    pmd::mem::Plan plan;
    uint32_t left = 0;  // messages that are not complete
    uint64_t start_tsc = 0;
  };

  DedicatedSender(const RunSetup& setup, DedicatedPath& lane, uint32_t lanes_of_port,
                  uint32_t index, Stream& owner);
  [[nodiscard]] int allocate(uint32_t cookie, std::string* error);
  [[nodiscard]] int plan_slot(uint32_t index, uint32_t cookie, std::string* error);
  void begin(uint32_t index) noexcept;
  void confirm() noexcept;
  void mend() noexcept;

  DedicatedPath& lane_;
  pmd::TxQueue& queue_;
  Verifier& verifier_;
  Stream& owner_;
  uint32_t size_bytes_;
  uint32_t burst_;
  uint64_t left_;  // transfers of --count
  LaneBuffers buffers_;
  std::unique_ptr<pmd::mem::BouncePool> bounce_;
  std::vector<Slot> slots_;
  // Of all slots in turn, messages_each_ for each.
  std::vector<pmd::TxMessage> messages_;
  std::vector<uint32_t> bounces_;
  uint32_t messages_each_ = 0;
  uint32_t at_ = 0;         // in messages_: the next to send
  uint32_t unsent_ = 0;     // messages of transfers that are begun
  uint64_t begun_ = 0;      // transfers that have their bytes and their number
  uint64_t confirmed_ = 0;  // transfers whose messages were all delivered
  uint32_t in_flight_ = 0;
  LinkPause pause_;
};

}  // namespace rio::testpmd
