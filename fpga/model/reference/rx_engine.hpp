/// @file
/// The receive side of the message controller: segments land, messages complete.
#pragma once

#include <array>
#include <map>
#include <tuple>
#include <vector>

#include "fpga/model/core/core.hpp"
#include "fpga/model/core/responder.hpp"

namespace rio::model {

class RxEngine {
 public:
  RxEngine(Core& core, Responder& responder);

  /// Fast mode: see whether single messages may go the shortest way, and which. @return false: they
  /// may not. Holds until the end of the step, or as long as what it has looked at is as it was.
  [[nodiscard]] bool aim();
  /// Take the plain message that is next, by that way, and answer it; in rx_single.hpp.
  /// @param word load_frame_word() of it. @return false: nothing was done; express() or
  /// on_message() has to look at it.
  [[nodiscard]] bool take_single(const Inbound& in, uint64_t word);
  /// Fast mode: take a run of plain messages that begins with `first`, in rx_express.cc.
  /// @param bytes_to_end from there to the end of the ring's memory. @param tag of the ring's lap.
  /// @return bytes taken; 0: on_message() has to look at the first.
  [[nodiscard]] uint32_t express(const InFrame& first, uint32_t bytes_to_end, uint32_t tag);
  /// A run of messages whose bytes are to be pulled, in rx_pull.cc: together with those that come
  /// next, by end_runs(). Until then the frame stays in the ring, though it may be popped.
  /// @param puller null: none, the answer is ERROR. @return false: no more now, come again.
  [[nodiscard]] bool on_pull(Puller* puller, const InFrame& frame);
  /// Whether there are runs that wait for end_runs().
  [[nodiscard]] bool pulling() const { return !runs_.empty(); }
  /// Whether `frame` must come after them.
  [[nodiscard]] bool ends_runs(const InFrame& frame);
  /// Pull what on_pull() took, and answer.
  void end_runs(Puller* puller);
  /// A message, segment or doorbell. @return false: no room for the answer, come again.
  [[nodiscard]] bool on_message(const InFrame& frame);
  [[nodiscard]] bool on_segment(const InFrame& frame);
  [[nodiscard]] bool on_doorbell(const InFrame& frame);
  /// Nothing will come any more from `source`: its partial messages end.
  void lose(uint32_t source);
  /// Receive time-outs.
  void check_timers();
  /// Drop the partial messages of a ring that is being stopped, flush what is posted.
  void stop(Pair& pair, uint32_t ring);
  /// The card was reset: partial messages are gone, nobody is told.
  void forget();

 private:
  /// Of express(). @tparam full the card writes all of a last segment's 256 bytes.
  template <bool full>
  [[nodiscard]] uint32_t run(Pair& pair, const InFrame& first, uint32_t bytes_to_end, uint32_t tag);
  /// A message of several segments that is being put together.
  struct Context {
    uint32_t source;
    uint32_t dest_id;
    uint8_t place;  ///< mailbox and letter
    uint8_t segments;
    uint8_t ring;  ///< shared or dedicated
    bool broken;   ///< its buffer is gone: later segments are answered ERROR
    uint16_t ssize;
    uint16_t last_len;
    uint16_t missing;  ///< segments still to come, a bit each
    Pair* pair;
    uint32_t index;   ///< of the entry
    uint32_t cookie;  ///< dedicated
    uint32_t size;    ///< dedicated: of the entry
    uint32_t arrival;
    uint64_t addr;
    uint64_t message;  ///< Frame::address of its segments
    uint64_t since_ns;
  };

  static constexpr uint32_t kRunsMax = 8;
  /// Messages that are pulled at once. More would save little of the system call, and what has come
  /// would wait for the rest before anybody can answer it.
  static constexpr uint32_t kPullsMax = kPullPartsMax;
  /// Room for their answers, counted in answers without data, and for those to what comes between.
  static constexpr uint32_t kAnswersMax = kRunsMax + 24;

  /// Where the segments of a message come from and go to.
  using Lane = std::tuple<uint32_t, uint32_t, uint8_t>;  // source, destID, place

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
    Ring* ring;              ///< dedicated; where `context` is null
    const Context* context;  ///< of a single message; null: entries of `ring` from `index` on
    uint32_t index;
    uint32_t count;
    uint32_t len_bytes;  ///< of each
    uint32_t* cookies;   ///< of the entries
  };

  /// The shortest way: what aim() has found.
  struct SingleLane {
    Pair* pair = nullptr;
    Ring* ring = nullptr;
    uint64_t mailboxes = 0;  ///< that lead there, a bit each
    uint64_t begin = 0;      ///< of the host's memory
    uint64_t last = 0;       ///< offset of the last place for the longest payload
    uint8_t* va = nullptr;
    uint64_t time = 0;  ///< ticks, in the upper half
    uint32_t dest_id = 0;
  };

  [[nodiscard]] Pair* plain_target(const InFrame& frame);
  [[nodiscard]] Pair* target(const InFrame& frame);
  [[nodiscard]] int dedicated_ring(const Pair& pair, const InFrame& frame) const;
  /// First segment of a message, or a whole one: where does it go? ERROR and RETRY are for the
  /// sender; with DONE a buffer is taken.
  [[nodiscard]] Answer admit(const InFrame& frame, Pair* pair, uint32_t whole_bytes, Context* out);
  [[nodiscard]] Answer admit_dedicated(const InFrame& frame, Pair& pair, uint32_t ring,
                                       uint32_t whole_bytes, Context* out);
  void land(const Context& context, const InFrame& frame, uint32_t segment, uint32_t offset,
            const uint8_t* bytes, uint32_t len);
  void land_whole(const Context& context, const InFrame& frame);
  void complete(const Context& context, uint32_t bytes, regs::Status status);
  [[nodiscard]] Context* find(const InFrame& frame);
  [[nodiscard]] Answer take_segment(Context& context, const InFrame& frame);
  void drop(Context& context, regs::Status status);
  void give_up(size_t i);
  void remember(const Context& context);
  [[nodiscard]] bool given_up(const InFrame& frame);
  [[nodiscard]] bool sane_whole(const Frame& frame) const;
  void take_run(const InFrame& frame, Puller& puller, Run& run);
  [[nodiscard]] uint32_t take_entries(const InFrame& frame, uint32_t parts, Pair& pair, Run& run);
  void place_pull(const InFrame& frame, Puller& puller, Run& run, const Context& context);
  void add_pull(const Pull& pull, const PullPiece& piece);
  [[nodiscard]] uint32_t take_alike(const InFrame& frame, uint32_t number, uint32_t most,
                                    const PullPiece& first, const Pull& pull) const;
  void end_pull(const Pull& pull, uint32_t came);
  void complete_entries(const Pull& pull, uint32_t begin, uint32_t end, uint32_t bytes,
                        regs::Status status);
  void end_pulls(Puller& puller);
  [[nodiscard]] bool well_formed(const InFrame& frame) const;
  void count(Answer answer);

  Core& core_;
  Responder& responder_;
  SingleLane lane_;
  std::vector<Context> contexts_;
  /// Of each lane: the message (Frame::address) that was given up last without its sender's being
  /// told, as long as that is the last of which anything came.
  std::map<Lane, uint64_t> given_up_;
  std::vector<Run> runs_;      // that are to be pulled, all of one sender
  InFrame pulling_{};          // the first of their frames
  uint32_t run_messages_ = 0;  // that they tell of
  uint32_t pull_count_ = 0;    // that have their place
  uint32_t run_cookies_ = 0;   // of those in use
  std::array<Pull, kPullsMax> pulls_;
  std::array<PullPiece, kPullsMax> pieces_;  // of the same
  std::array<Context, kPullsMax> placed_;    // of those pulls that have one
  std::array<uint32_t, kPullsMax> cookies_;
};

}  // namespace rio::model
