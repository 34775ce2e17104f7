/// @file
/// The card of docs/card.md in C++.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "fpga/model/config.hpp"
#include "fpga/model/ends.hpp"

namespace rio::model {

/// An emulated card. It has no thread: it works only in calls of step().
class Card {
 public:
  /// Size of BAR0 in bytes, a power of two. @param queue_pairs 1 to 31.
  [[nodiscard]] static size_t bar_bytes(uint32_t queue_pairs);
  /// @return -EINVAL: the configuration is outside of what config.hpp allows.
  [[nodiscard]] static int create(const Config& config, Ends ends, std::unique_ptr<Card>* out);
  ~Card();
  Card(const Card&) = delete;
  Card& operator=(const Card&) = delete;

  /// Let the card work: take what is on the wire, send what is posted. Any thread; when another
  /// one is inside, returns at once. Bounded.
  void step();
  /// step() for a host that waits for messages. In fast mode, with nothing else under way, it takes
  /// only plain messages; each few calls it does all that step() does. It takes answers to the
  /// card's own messages then, or when a posted message waits for them: reading them earlier would
  /// take their cache line away from the core that is about to write the next.
  void step_to_receive();
  /// step() for a host that has just posted messages: if a single plain message is to be sent, it
  /// sends that; each few calls it does all that step() does.
  void step_to_send() noexcept;

  /// As `times` calls of step(), but waits until a thread that is inside has left. Any thread,
  /// bounded.
  void step_surely(uint32_t times);

  /// Waits for the end of a step and keeps others out while `fn(arg)` runs. Any thread, bounded.
  void with_lock(void (*fn)(void* arg), void* arg);

  // Things that happen to a card. Any thread.
  /// The link goes down or comes back.
  void set_link(bool up);
  /// The card loses its state, as by a function-level reset behind the driver's back.
  void lose_state();
  /// The card falls off the bus: the BAR reads all ones, nothing moves any more.
  void vanish();
  /// A ring is not looked at any more, or again.
  void hold_ring(uint32_t queue_pair, uint32_t ring, bool held);
  /// Other faults from now on.
  void set_faults(const FaultConfig& faults);

  /// By the thread that steps the card; says under way while another one is inside.
  [[nodiscard]] Activity activity();
  /// Counters as they are now; the BAR's copy is a few steps late.
  [[nodiscard]] PortCounts counters();
  /// How often a kind of fault was drawn.
  [[nodiscard]] uint64_t faults_drawn(Fault fault);
  /// Accesses to memory that was not mapped.
  [[nodiscard]] uint64_t refused_accesses();

 private:
  struct Impl;
  explicit Card(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rio::model
