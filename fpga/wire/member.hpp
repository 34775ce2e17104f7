/// @file
/// A wire between processes, as the bus with the card on it sees it.
#pragma once

#include <cerrno>
#include <cstdint>
#include <string>

#include "fpga/model/wire.hpp"

namespace rio::wire {

/// A member of a fabric of processes. It has one thread, which sleeps while the owner polls.
class Member : public model::Wire {
 public:
  /// By the member's thread: the card should be stepped. @return whether to be called again soon,
  /// even if nothing comes.
  using Poke = bool (*)(void* ctx);

  /// The first destID of the card, and how many it has.
  [[nodiscard]] virtual uint32_t first_id() const = 0;
  [[nodiscard]] virtual uint32_t ids() const = 0;
  /// Set the function that the member's thread calls. Null: it calls none from now on. Any thread.
  virtual void set_poke(Poke poke, void* ctx) = 0;
  /// Let the thread call it. Any thread.
  virtual void poke_soon() = 0;

  /// Tell the wire that its owner stops polling, or polls again. Look once more at frames that came
  /// before this returns. Call it with the card between two steps, or by the thread that steps it.
  virtual void set_asleep(bool asleep) = 0;
  /// Any thread.
  [[nodiscard]] virtual bool asleep() const = 0;
  /// Whether the owner has not polled for a while, so that the thread has to. Any thread.
  [[nodiscard]] virtual bool unattended() const { return false; }

  /// A failure that the user has to know, once, with its remedy. Any thread.
  /// @return false: nothing, or told before.
  [[nodiscard]] virtual bool next_trouble(std::string* text) = 0;

  /// Why messages to a destID cannot leave this process, -errno: the resource or permission that
  /// this process lacks. 0: this process is not the cause. Any thread.
  [[nodiscard]] virtual int why_unreachable(uint32_t dest_id) {
    static_cast<void>(dest_id);
    return 0;
  }

  /// Where others find this member, as reach() takes it; empty: by its destID alone.
  [[nodiscard]] virtual std::string address() const { return {}; }
  /// The destID by which frames go to the member at an address. It need not be there yet. Any
  /// thread. @param address foreign. @return 0; -EINVAL: no address of this fabric; -ENOSPC: too
  /// many; -ENOTSUP: members have no addresses here.
  [[nodiscard]] virtual int reach(const std::string& address, uint32_t* dest_id) {
    static_cast<void>(address);
    static_cast<void>(dest_id);
    return -ENOTSUP;
  }
};

}  // namespace rio::wire
