/// @file
/// Receives runs of messages from another process: copies long ones once, directly from the
/// sender's memory, as many at a time as possible, and shorter ones from the frame, or from memory
/// of the sender's that is mapped here.
#pragma once

#include <array>
#include <vector>

#include "fpga/model/fast/rx_several.hpp"
#include "fpga/model/reference/rx_engine.hpp"

namespace rio::model {

class RxPull {
 public:
  RxPull(Core& core, Responder& responder, Admission& admission, RxEngine& rx, RxSeveral& several);

  /// Whether frames that the reader holds must be pulled and answered before `frame` is handled.
  [[nodiscard]] bool ends_runs(FrameReader& reader, const InFrame& frame);
  /// Pull the bytes of the kPull frames that the reader holds, as many as in one go, and answer
  /// them. A long frame is taken in several calls. @param in if it has no puller, the answer is
  /// ERROR.
  void pull(const Inbound& in, FrameReader& reader);
  /// Take a kPull frame whose bytes are in it or in a window, and answer it. Only if the reader
  /// holds none. @param windows of the sender; null: none. @return false: no room for the answer;
  /// leave the frame in the ring.
  [[nodiscard]] bool take_with_bytes(Windows* windows, const InFrame& frame);

 private:
  /// Most messages pulled in one system call. More would save little, and would delay the answers
  /// to the first ones.
  static constexpr uint32_t kPullsMax = kPullPartsMax;
  /// Messages of a pull to which no further run is added: the call costs little beside the copy,
  /// and the sender of the first run waits for the answer.
  static constexpr uint32_t kPullsEnough = 16;
  /// Room needed for their answers and for those to frames in between, counted in answers without
  /// data.
  static constexpr uint32_t kAnswersMax = FrameReader::kHeldMax + 24;

  /// A kPull frame, or a part of one, and its answer.
  struct Run {
    const uint8_t* at;  ///< address in the ring
    uint8_t place;
    uint16_t taken;
    Answer answer;   ///< answer to the first message that was not taken
    uint32_t first;  ///< number of its first message in the frame
    uint32_t end;    ///< number of the message behind the last one
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

  [[nodiscard]] size_t take_held(Puller* puller, std::span<FrameReader::Held> held);
  void take_run(const InFrame& frame, Puller& puller, Run& run);
  void answer_runs();
  [[nodiscard]] uint32_t land_with_bytes(const InFrame& frame, const Run& run);
  [[nodiscard]] uint32_t take_entries(const InFrame& frame, Pair& pair, Run& run);
  void place(const InFrame& frame, Puller& puller, Run& run, const Landing& landing);
  void add(const Pull& pull, const PullPiece& piece);
  [[nodiscard]] uint32_t take_alike(const InFrame& frame, uint32_t number, uint32_t most,
                                    const PullPiece& first, uint64_t addr, const Pull& pull) const;
  void end_pull(const Pull& pull, uint32_t came);
  void complete_entries(const Pull& pull, uint32_t begin, uint32_t end, uint32_t bytes,
                        regs::Status status);
  void end_pulls(Puller& puller);

  Core& core_;
  Responder& responder_;
  Admission& admission_;
  RxEngine& rx_;
  RxSeveral& several_;
  std::vector<Run> runs_;       // runs to be pulled, all from one sender
  Windows* windows_ = nullptr;  // of the sender of the frames that are being taken
  InFrame pulling_{};           // the first frame of these runs
  uint32_t pull_count_ = 0;     // entries of pulls_ and pieces_ in use
  uint32_t run_cookies_ = 0;    // entries of cookies_ in use
  std::array<Pull, kPullsMax> pulls_;
  std::array<PullPiece, kPullsMax> pieces_;  // source and destination of each pull
  std::array<Landing, kPullsMax> placed_;    // Landing of pulls that have one
  std::array<uint32_t, kPullsMax> cookies_;
};

}  // namespace rio::model
