/// @file
/// The engine of a queue pair, with its ring and its slots. Private to barrier_rings.cc.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "fpga/model/barrier/engine.hpp"
#include "fpga/model/core/barrier_rings.hpp"

namespace rio::model {

class BarrierRings::Seat final : public barrier::Ends {
 public:
  Seat(BarrierRings& owner, Pair& pair)
      : owner_(owner),
        core_(owner.core_),
        pair_(pair),
        engine_(timing(), *this, owner.room_),
        before_(counts_of(engine_)) {}

  void open();
  /// End all barriers. @param is_told whether their completions are written.
  void close(bool is_told);
  void work();
  /// @param pledges whether the frame is a kPledge.
  [[nodiscard]] barrier::Answer receive(const InFrame& frame, bool pledges);
  void pledge_answered(const InFrame& frame);
  void answered(uint32_t tag, barrier::Answer answer) {
    engine_.answered(answer == barrier::Answer::kRetry ? now() : barrier::BarrierEngine::kUnknownNs,
                     tag, answer);
  }
  /// BarrierRings::start() of this pair.
  [[nodiscard]] bool start();
  /// BarrierRings::expect_start() of this pair.
  void expect_start() { turn_ = 0; }
  [[nodiscard]] bool waits() const { return !waiting_.empty(); }
  /// The ring is being stopped: end all barriers, and complete the descriptors that are posted and
  /// not fetched.
  void stop();
  /// Show the counters since the last reset in the pair's BAR.
  void tell_counters(bool all);
  void clear_counters();

  [[nodiscard]] bool is_open() const { return open_; }
  [[nodiscard]] bool is_busy() const { return engine_.barriers() != 0; }
  [[nodiscard]] bool needs_time() const { return engine_.needs_time(); }
  [[nodiscard]] bool has_posted() const;

  void send(const barrier::Request& request) override;
  [[nodiscard]] bool send_pledge(const barrier::Request& request) override;
  void end(const barrier::Ended& ended) override;
  void report_foreign(uint32_t source, const barrier::Notice& notice) override;
  [[nodiscard]] bool is_silent(uint32_t dest_id, uint64_t since_ns) override;

 private:
  using Counts = std::array<uint32_t, sizeof(barrier::Counters) / sizeof(uint32_t)>;

  [[nodiscard]] static Counts counts_of(const barrier::BarrierEngine& engine) {
    return std::bit_cast<Counts>(engine.counters());
  }
  /// The card's clock. Core::now_ns may be older; a time-out that began with it would end too
  /// early.
  [[nodiscard]] uint64_t now() const { return core_.clock->now_ns(); }
  [[nodiscard]] Ring& ring() const { return pair_.rings[kBarrierRing]; }
  [[nodiscard]] barrier::Timing timing() const;
  [[nodiscard]] bool answers_first();
  void send_waiting();
  void flush_posted();
  [[nodiscard]] bool has_room();
  void fetch();
  void look_at_slots(uint32_t slots);
  [[nodiscard]] bool has_go(uint32_t slot) const;
  [[nodiscard]] regs::BarrierDesc take_slot(uint32_t slot);

  BarrierRings& owner_;
  Core& core_;
  Pair& pair_;
  barrier::BarrierEngine engine_;
  Counts before_;      // counters at the last reset
  Counts told_{};      // counters as the BAR shows them
  bool open_ = false;  // the ring runs
  /// From the start of the ring to its stop, also after an error: what is posted waits for the
  /// stop.
  bool posts_ = false;
  bool muted_ = false;  // no completions are written
  uint32_t turn_ = 0;
  uint32_t taken_ = 0;       // descriptors from the ring and from slots; wraps
  uint32_t deferred_ = 0;    // calls in a row in which time-outs have waited for answers
  uint32_t used_slots_ = 0;  // slots used since the start, one bit each
  uint32_t busy_slots_ = 0;  // slots whose last descriptor has not completed
  std::array<uint32_t, regs::kBarrierSlots> go_{};
  std::vector<barrier::Request> waiting_;  // for room, a transaction or the link
};

}  // namespace rio::model
