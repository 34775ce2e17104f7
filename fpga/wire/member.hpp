/// @file
/// A wire between processes, for the bus with the card on it and for each kind of such wires.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fpga/model/frame_ring.hpp"
#include "fpga/model/wire.hpp"
#include "fpga/wire/member_thread.hpp"
#include "fpga/wire/troubles.hpp"

namespace rio::wire {

/// Whether two ranges of destIDs have one in common.
[[nodiscard]] constexpr bool ids_meet(uint32_t first, uint32_t ids, uint32_t other_first,
                                      uint32_t other_ids) {
  return first - other_first < other_ids || other_first - first < ids;
}

/// A partner, as all wires know it; a wire's own object for a partner derives from it.
struct Partner {
  uint32_t first_id = 0;  ///< its first destID
  uint32_t ids = 0;
  bool leaving = false;     ///< it is gone; its remaining frames are still taken
  uint32_t last_steps = 0;  ///< steps that are left for that
};

/// A member of a fabric of processes, whose partners come and go. It has one thread, which sleeps
/// while the owner polls. The wire reports which partner has come, leaves or is gone; this class
/// gives the card the way to each destID, tells it of changes, and carries frames from the card to
/// itself. Used by the thread that steps the card, unless a function says "any thread".
class Member : public model::Wire {
 public:
  [[nodiscard]] model::Outbound* route(uint32_t dest_id) final;
  [[nodiscard]] bool next_change(model::PartnerChange* out) final;
  void set_unpolled_work(bool has) final { thread_.set_regular(has); }
  /// The last value of set_unpolled_work(): whether the function is called every few milliseconds.
  /// Any thread.
  [[nodiscard]] bool has_unpolled_work() const { return thread_.is_regular(); }

  /// First destID of the card, and how many it has.
  [[nodiscard]] virtual uint32_t first_id() const = 0;
  [[nodiscard]] virtual uint32_t ids() const = 0;
  /// Set the function that the member's thread calls. Null: once this returns, it calls none. Any
  /// thread.
  void set_poke(MemberThread::Poke poke, void* ctx) { thread_.set_poke(poke, ctx); }
  /// Let the thread call the function. Any thread.
  void poke_soon() { thread_.poke_soon(); }

  /// Tell the wire that its owner stops polling, or polls again. Then check once more for frames
  /// that arrived before this returned. Call it between two steps of the card, or by the thread
  /// that steps it.
  void set_asleep(bool asleep);
  /// The last value of set_asleep(). Any thread.
  [[nodiscard]] bool asleep() const { return asleep_.load(std::memory_order_acquire); }
  /// Whether the owner has not polled for a while, so that the thread has to. Any thread.
  [[nodiscard]] virtual bool unattended() const { return false; }

  /// Get a failure that the user has to know, once, with its remedy. Any thread. @return false:
  /// there is none, or it was reported before.
  [[nodiscard]] bool next_trouble(std::string* text) { return troubles_.next(text); }
  /// Why messages to a destID cannot leave this process, -errno: a resource or permission that it
  /// lacks. 0: this process is not the cause. Any thread.
  [[nodiscard]] int why_unreachable(uint32_t dest_id) { return troubles_.why_unreachable(dest_id); }

  /// Where others find this member, in the form that reach() takes; empty: by its destID alone.
  [[nodiscard]] virtual std::string address() const { return {}; }
  /// The destID by which frames go to the member at an address, which need not be there yet. Any
  /// thread. @param address foreign. @return 0; -EINVAL: not an address of this fabric; -ENOSPC:
  /// too many; -ENOTSUP: members have no addresses here.
  [[nodiscard]] virtual int reach(const std::string& address, uint32_t* dest_id) {
    static_cast<void>(address);
    static_cast<void>(dest_id);
    return -ENOTSUP;
  }

 protected:
  Member() = default;

  /// Called when asleep() has changed.
  virtual void on_asleep(bool asleep) = 0;
  /// Begin to look for the partner with a destID. The wire reports the result by open() or
  /// absent(). @return false: the wire cannot look for it now.
  [[nodiscard]] virtual bool find_member(uint32_t dest_id) = 0;
  /// Append the rings of all partners.
  virtual void add_inbound(std::vector<model::Inbound>* list) = 0;
  /// List the rings of all partners again. Call it when add_inbound() has another result.
  void list_inbound();

  /// Note that a partner has come: frames to its destIDs go by `way` from now on.
  void open(const Partner& partner, const model::Outbound& way);
  /// Note that a partner is gone: nothing is sent to it any more; its remaining frames are still
  /// taken.
  void leave(Partner& partner);
  /// Whether a leaving partner's frames need not be waited for any more. Call it once a step.
  /// @param taken whether all that are here were taken.
  [[nodiscard]] static bool is_over(Partner& partner, bool taken) {
    return taken || partner.last_steps-- == 0;
  }
  /// Note that all frames of this partner were taken.
  void close(Partner& partner);
  /// Note which of the wanted destIDs have no partner.
  void absent(const std::function<bool(uint32_t dest_id)>& is_absent);
  /// Note up to which time frames sent to a partner can have been answered: see model::Outbound.
  void set_answerable(const Partner& partner, uint64_t ns);

  std::atomic<bool> asleep_{false};
  MemberThread thread_;  // its body is the wire's, which ends it before the rest goes
  Troubles troubles_{&thread_};

 private:
  struct Way {
    enum State : uint8_t { kUnknown, kLooking, kUp, kLeaving };

    model::Outbound out;
    State state = kUnknown;
    uint32_t times = 0;      // how often a partner came under this destID
    uint64_t looked_ns = 0;  // when it was last looked for; 0: never
  };

  [[nodiscard]] Way& way(uint32_t dest_id);
  /// Calls `act` with each destID of a partner, and its way.
  template <class Act>
  void for_each_way(const Partner& partner, Act&& act) {
    for (uint32_t id = partner.first_id; id - partner.first_id < partner.ids; ++id) {
      act(id, way(id));
    }
  }
  [[nodiscard]] model::Outbound closed(bool watched) {
    return {&closed_, &closed_, true, watched, 0};
  }

  model::FrameRingShared nothing_;
  model::FrameWriter closed_{&nothing_, nullptr, 0};
  std::unordered_map<uint32_t, std::unique_ptr<Way>> ways_;  // by destID
  std::deque<model::PartnerChange> changes_;
  std::vector<model::Inbound> inbounds_;
  std::unique_ptr<model::RingBox> self_requests_;  // null until the card sends to itself
  std::unique_ptr<model::RingBox> self_responses_;
};

/// Finds the time up to which a partner has taken all frames sent to it, and could have answered.
class TakenMark {
 public:
  /// Call it now and then. @param now_ns, response_ns of Wire::check_partners(). @param begin
  /// sets the mark: later frames are behind it. @param taken returns whether the partner has taken
  /// everything before the mark. @return that time; 0: no news.
  template <class Begin, class Taken>
  [[nodiscard]] uint64_t look(uint64_t now_ns, uint64_t response_ns, Begin&& begin, Taken&& taken) {
    if (mark_ns_ == 0) {
      begin();
      mark_ns_ = now_ns - 1;  // frames behind the mark may carry the time of this call
      taken_ns_ = 0;
    } else if (taken_ns_ == 0) {
      taken_ns_ = taken() ? now_ns : 0;
    } else if (now_ns - taken_ns_ > response_ns) {
      return std::exchange(mark_ns_, 0);
    }
    return 0;
  }

 private:
  uint64_t mark_ns_ = 0;   // all frames sent up to it are before the mark; 0: there is no mark
  uint64_t taken_ns_ = 0;  // when the partner was found to have taken them
};

}  // namespace rio::wire
