/// @file
/// Long messages between processes: the receiver copies them once, straight out of the sender's
/// memory, as many at a time as there are.
#pragma once

#include <array>
#include <vector>

#include "fpga/model/fast/rx_whole.hpp"

namespace rio::model {

class RxPull {
 public:
  RxPull(Core& core, Responder& responder, Admission& admission, RxWhole& whole);

  /// A run of messages whose bytes are to be pulled: together with those that come next, by
  /// end_runs(). Until then the frame stays in the ring, though it may be popped.
  /// @param puller null: none, the answer is ERROR. @return false: no more now, come again.
  [[nodiscard]] bool on_pull(Puller* puller, const InFrame& frame);
  /// Whether there are runs that wait for end_runs().
  [[nodiscard]] bool pulling() const { return !runs_.empty(); }
  /// Whether `frame` must come after them.
  [[nodiscard]] bool ends_runs(const InFrame& frame);
  /// Pull what on_pull() took, and answer.
  void end_runs(Puller* puller);

 private:
  static constexpr uint32_t kRunsMax = 8;
  /// Messages that are pulled at once. More would save little of the system call, and what has come
  /// would wait for the rest before it can be answered.
  static constexpr uint32_t kPullsMax = kPullPartsMax;
  /// Room for their answers, counted in answers without data, and for those to what comes between.
  static constexpr uint32_t kAnswersMax = kRunsMax + 24;

  /// A frame of type kPull, and how it is to be answered.
  struct Run {
    const uint8_t* at;  ///< in the ring
    uint8_t place;
    uint16_t taken;
    Answer answer;  ///< to the message behind those taken
  };
  /// Messages of one that have their places, which adjoin, and are to be pulled.
  struct Pull {
    Run* run;
    Ring* ring;              ///< dedicated; where `landing` is null
    const Landing* landing;  ///< of a single message; null: entries of `ring` from `index` on
    uint32_t index;
    uint32_t count;
    uint32_t len_bytes;  ///< of each
    uint32_t* cookies;   ///< of the entries
  };

  void take_run(const InFrame& frame, Puller& puller, Run& run);
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
  RxWhole& whole_;
  std::vector<Run> runs_;      // that are to be pulled, all of one sender
  InFrame pulling_{};          // the first of their frames
  uint32_t run_messages_ = 0;  // that they tell of
  uint32_t pull_count_ = 0;    // that have their place
  uint32_t run_cookies_ = 0;   // of those in use
  std::array<Pull, kPullsMax> pulls_;
  std::array<PullPiece, kPullsMax> pieces_;  // of the same
  std::array<Landing, kPullsMax> placed_;    // of those pulls that have one
  std::array<uint32_t, kPullsMax> cookies_;
};

}  // namespace rio::model
