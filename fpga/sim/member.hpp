/// @file
/// A card's wire to other processes, as the bus uses it: who polls may sleep, and is woken.
#pragma once

#include <cstdint>

namespace rio::sim {

class Member {
 public:
  /// @return whether to be called again soon, even if nobody rings.
  using Poke = bool (*)(void* ctx);

  virtual ~Member() = default;
  /// The first destID of the card, and how many it has.
  [[nodiscard]] virtual uint32_t first_id() const = 0;
  [[nodiscard]] virtual uint32_t ids() const = 0;
  /// `poke` is called by the wire's thread when the card should be stepped; null: by nobody any
  /// more, from now on. Any thread.
  virtual void set_poke(Poke poke, void* ctx) = 0;
  /// Let the thread call it. Any thread.
  virtual void poke_soon() = 0;
  /// Partners whose long messages have to be copied twice, since the system forbids to read their
  /// memory. Any thread.
  [[nodiscard]] virtual uint32_t copied_twice() const = 0;
  /// -errno of what this process had too little of when it last tried to connect; 0: nothing. Any
  /// thread.
  [[nodiscard]] virtual int lacking() const = 0;
  /// Nobody looks at what comes, or somebody does again: partners ring for what they send, and
  /// Poke is called. What came before this returns has to be looked at once more. With the card
  /// between two steps, or by who steps it.
  virtual void set_asleep(bool asleep) = 0;
  /// Any thread.
  [[nodiscard]] virtual bool asleep() const = 0;
};

}  // namespace rio::sim
