/// @file
/// The barrier engine of a queue pair as a state machine without I/O or clock. [S1]
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "fpga/model/barrier/early_store.hpp"
#include "fpga/model/barrier/loaded_plan.hpp"
#include "fpga/model/barrier/plan.hpp"

namespace rio::model::barrier {

/// The answer to a notification: a peer's to ours, or ours to a peer's. kNone: nothing is to be
/// sent, since a pledge of ours has answered it.
enum class Answer : uint8_t { kDone, kRetry, kError, kNone };

/// A notification to send, with the tag that its answer names.
struct Request {
  uint32_t dest_id;
  uint32_t prio;
  Notice notice;
  uint32_t tag;    ///< for BarrierEngine::answered()
  uint32_t epoch;  ///< of which `notice` has the low bits
};

/// How a barrier has ended. regs: barrier_cpl
struct Ended {
  uint32_t cookie;
  uint32_t index;  ///< of post()
  regs::Status status;
  Place where = 0;  ///< at which peer it failed
  uint32_t resent = 0;
  uint32_t retries = 0;  ///< RETRY answers
};

/// The actions that the engine asks of its owner. The engine's functions call them; they must not
/// call the engine.
class Ends {
 public:
  virtual void send(const Request& request) = 0;
  /// Send a pledge. The way must deliver all that is sent, in order, and the owner must not refuse
  /// the peer's pledge afterwards. @return false: not at once, or not by such a way; then send() is
  /// called.
  [[nodiscard]] virtual bool send_pledge(const Request& /*request*/) { return false; }
  virtual void end(const Ended& ended) = 0;
  /// A notification came from a source that the descriptor does not await.
  virtual void report_foreign(uint32_t source, const Notice& notice) = 0;
  /// Whether a peer's silence since `since_ns` means that the request, or its answer, is lost.
  /// False: the peer's machine has not let it run meanwhile, so the engine asks again later.
  [[nodiscard]] virtual bool is_silent(uint32_t /*dest_id*/, uint64_t /*since_ns*/) { return true; }

 protected:
  ~Ends() = default;
};

/// Counters of the block, free-running. regs: barrier
struct Counters {
  uint32_t sent = 0;
  uint32_t received = 0;
  uint32_t early = 0;
  uint32_t nacks_given = 0;
  uint32_t nacks_taken = 0;
  uint32_t resent = 0;
  uint32_t stale = 0;
  uint32_t foreign = 0;
  uint32_t cancelled = 0;
};

/// Settings that do not change while a barrier runs.
struct Timing {
  uint64_t response_timeout_ns;
  uint64_t retry_ns;      ///< before a notification that was answered RETRY is sent again
  uint32_t resend_limit;  ///< after response time-outs. regs: barrier.RESEND_LIMIT
  uint32_t own_id;        ///< spreads the retries of members
};

/// Takes descriptors ([S1]'s OF), sends the notifications of a round once all that is awaited in
/// earlier rounds has arrived (TE), takes the notifications of peers (SE), and keeps those that
/// arrive before their descriptor. Group and epoch name a barrier; each group has one at a time.
/// One thread. Times are in ns of any clock that does not go back.
class BarrierEngine {
 public:
  /// For post(), receive(), and answered() unless the answer is kRetry: the caller has not looked
  /// at its clock. Time-outs of what is sent then begin with the next advance(), which is due.
  static constexpr uint64_t kUnknownNs = ~uint64_t{0};

  /// @param ends, room outlive the engine.
  BarrierEngine(const Timing& timing, Ends& ends, EarlyRoom& room);
  BarrierEngine(const BarrierEngine&) = delete;
  BarrierEngine& operator=(const BarrierEngine&) = delete;
  ~BarrierEngine();

  /// Change the settings. Called while no barrier runs.
  void set_timing(const Timing& timing) { timing_ = timing; }
  /// A descriptor was fetched: join, or cancel, the barrier that it names. A descriptor that breaks
  /// the contract ends at once. @param index comes back in Ended.
  void post(uint64_t now_ns, const regs::BarrierDesc& desc, uint32_t index);
  /// A notification arrived. @param source destID of its sender. @return its answer.
  [[nodiscard]] Answer receive(uint64_t now_ns, uint32_t source, const Notice& notice);
  /// A request was answered. @param tag of the Request; ignored if its barrier has ended.
  void answered(uint64_t now_ns, uint32_t tag, Answer answer);
  /// Before this time, advance() has nothing to do; ~0: until another call.
  [[nodiscard]] uint64_t due_ns() const { return due_ns_; }
  /// A pledge was answered, which needs no answer where the peer pledges as well. @param notice
  /// that was sent. @param epoch of which it has the low bits. Ignored if that barrier has ended.
  void pledge_answered(uint64_t now_ns, uint32_t source, const Notice& notice, uint32_t epoch,
                       Answer answer);
  /// Send again what is due, and end what has waited for too long.
  void advance(uint64_t now_ns);
  /// The ring was stopped, or the queue pair reset: all barriers end as kFlushed, their members are
  /// told, and early notifications are dropped.
  void flush(uint64_t now_ns);
  /// Make room: give up a barrier that has ended, and whose peers that are still being told have
  /// answered RETRY to their cancellation up to the longest delay. @return false: there is none.
  [[nodiscard]] bool give_up_refused();

  /// Whether a request still needs an answer. @param tag of the Request.
  [[nodiscard]] bool is_open(uint32_t tag) const;
  /// Whether advance() will have something to do: a request has no answer yet, or an end is held
  /// back. Barriers that only await notifications need no time.
  [[nodiscard]] bool needs_time() const;
  /// Barriers that have not ended, or whose peers are still being told.
  [[nodiscard]] size_t barriers() const { return barriers_.size(); }
  [[nodiscard]] const Counters& counters() const { return counters_; }
  [[nodiscard]] EarlyStore& early() { return early_; }

 private:
  struct Barrier;
  struct Group;

  [[nodiscard]] Group& group_of(uint32_t number);
  void add_groups(uint32_t count);
  [[nodiscard]] Barrier* active(uint32_t group);
  [[nodiscard]] Barrier* find(uint32_t tag) const;
  Barrier& add(const regs::BarrierDesc& desc, const Plan& plan, uint32_t index);
  void load(const regs::BarrierDesc& desc, const Plan& plan);
  void join(uint64_t now_ns, Barrier& barrier);
  void count_foreign(uint32_t source, const Notice& notice);
  [[nodiscard]] Answer receive_current(uint64_t now_ns, Barrier& barrier, uint32_t source,
                                       const Notice& notice);
  [[nodiscard]] Answer receive_other(const Barrier* current, uint32_t source, const Notice& notice);
  void proceed(uint64_t now_ns, Barrier& barrier);
  void finish(Barrier& barrier);
  void send(uint64_t now_ns, Barrier& barrier, Place place);
  [[nodiscard]] bool may_pledge(const Barrier& barrier, Place place);
  void take_answer(uint64_t now_ns, Barrier& barrier, Place place, Answer answer);
  void settle(uint64_t now_ns, Barrier& barrier, Place place);
  void retry(uint64_t now_ns, Barrier& barrier, Place place);
  void advance_one(uint64_t now_ns, Barrier& barrier);
  void time_out(uint64_t now_ns, Barrier& barrier, Place place);
  void fail(uint64_t now_ns, Barrier& barrier, regs::Status status, Place where);
  void tell_peers(uint64_t now_ns, Barrier& barrier);
  void tell(const Barrier& barrier, regs::Status status, Place where);
  void note_end(uint32_t number, uint32_t epoch);
  void end_unseen(uint32_t group, uint32_t epoch);
  void sweep();
  void look_at(uint64_t due_ns);
  [[nodiscard]] uint64_t plan_look(uint64_t now_ns, uint64_t delay_ns);

  Timing timing_;
  Ends& ends_;
  EarlyStore early_;
  std::vector<std::unique_ptr<Barrier>> barriers_;
  std::unique_ptr<Barrier> spare_;  // of a barrier that is over, for the next one
  std::vector<Group> groups_;
  Counters counters_;
  uint32_t serial_ = 0;  // of the last barrier
  uint64_t due_ns_ = ~uint64_t{0};
};

}  // namespace rio::model::barrier
