/// @file
/// Receives long messages from another process: copies them once, directly from the sender's
/// memory, as many at a time as possible.
#pragma once

#include <array>
#include <vector>

#include "fpga/model/reference/rx_engine.hpp"

namespace rio::model {

class RxPull {
 public:
  RxPull(Core& core, Responder& responder, Admission& admission, RxEngine& rx);

  /// Take a kPull frame. Its bytes are pulled later, in end_runs(), together with those of the next
  /// frames; until then the frame must not be overwritten, but may be popped. @param puller null:
  /// the answer is ERROR. @return false: no more now; leave the frame in the ring.
  [[nodiscard]] bool on_pull(Puller* puller, const InFrame& frame);
  /// Whether runs wait for end_runs().
  [[nodiscard]] bool pulling() const { return !runs_.empty(); }
  /// Whether end_runs() must be called before `frame` is handled.
  [[nodiscard]] bool ends_runs(const InFrame& frame);
  /// Pull the bytes of all taken frames, and answer them.
  void end_runs(Puller* puller);

 private:
  static constexpr uint32_t kRunsMax = 8;
  /// Most messages pulled in one system call. More would save little, and would delay the answers
  /// to the first ones.
  static constexpr uint32_t kPullsMax = kPullPartsMax;
  /// Room needed for their answers and for those to frames in between, counted in answers without
  /// data.
  static constexpr uint32_t kAnswersMax = kRunsMax + 24;

  /// A kPull frame and its answer.
  struct Run {
    const uint8_t* at;  ///< address in the ring
    uint8_t place;
    uint16_t taken;
    Answer answer;  ///< answer to the first message that was not taken
  };
  /// Adjoining messages of one run that have their destinations and are to be pulled.
  struct Pull {
    Run* run;
    Ring* ring;  ///< dedicated ring, if `landing` is null
    const Landing*
        landing;  ///< destination of a single message; null: entries of `ring` from `index` on
    uint32_t index;
    uint32_t count;
    uint32_t len_bytes;  ///< length of each message
    uint32_t* cookies;   ///< cookies of the entries
  };

  void take_run(const InFrame& frame, uint32_t parts, Puller& puller, Run& run);
  [[nodiscard]] uint32_t take_entries(const InFrame& frame, uint32_t parts, Pair& pair, Run& run);
  void place(const InFrame& frame, Puller& puller, Run& run, const Landing& landing);
  void add(const Pull& pull, const PullPiece& piece);
  [[nodiscard]] uint32_t take_alike(const InFrame& frame, uint32_t number, uint32_t most,
                                    const PullPiece& first, const Pull& pull) const;
  void end_pull(const Pull& pull, uint32_t came);
  void complete_entries(const Pull& pull, uint32_t begin, uint32_t end, uint32_t bytes,
                        regs::Status status);
  void end_pulls(Puller& puller);

  Core& core_;
  Responder& responder_;
  Admission& admission_;
  RxEngine& rx_;
  std::vector<Run> runs_;      // runs to be pulled, all from one sender
  InFrame pulling_{};          // the first frame of these runs
  uint32_t run_messages_ = 0;  // messages that these runs announce
  uint32_t pull_count_ = 0;    // entries of pulls_ and pieces_ in use
  uint32_t run_cookies_ = 0;   // entries of cookies_ in use
  std::array<Pull, kPullsMax> pulls_;
  std::array<PullPiece, kPullsMax> pieces_;  // source and destination of each pull
  std::array<Landing, kPullsMax> placed_;    // Landing of pulls that have one
  std::array<uint32_t, kPullsMax> cookies_;
};

}  // namespace rio::model
