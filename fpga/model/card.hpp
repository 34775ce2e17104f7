/// @file
/// The C++ model of the card that docs/card.md describes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "fpga/model/config.hpp"
#include "fpga/model/ends.hpp"

namespace rio::model {

/// An emulated card. It has no thread of its own: it works only inside step().
class Card {
 public:
  /// Size of BAR0 in bytes, a power of two. @param queue_pairs 1 to 31.
  [[nodiscard]] static size_t bar_bytes(uint32_t queue_pairs);
  /// Create a card. @return 0; -EINVAL: the configuration breaks a rule of config.hpp.
  [[nodiscard]] static int create(const Config& config, Ends ends, std::unique_ptr<Card>* out);
  ~Card();
  Card(const Card&) = delete;
  Card& operator=(const Card&) = delete;

  /// Let the card work: take frames from the wire, send what is posted. Any thread; returns at once
  /// if another thread is inside. Bounded work.
  void step();
  /// step() for a host that waits for messages. In fast mode, if nothing else is under way, it
  /// takes only plain messages; every few calls it does a full step(). Only then, or when a posted
  /// message needs them, it reads answers: reading earlier would steal their cache line from the
  /// core that is about to write the next one.
  void step_to_receive();
  /// step() for a host that has just posted messages. It sends a single plain message directly; in
  /// all other cases, and every few calls, it does a full step().
  void step_to_send() noexcept;
  /// step() for a host that waits for answers to its messages. In an exchange of single messages it
  /// takes these, and looks as step_to_receive() does; every few calls, and in all other cases, it
  /// does a full step().
  void step_to_reap() noexcept;
  /// step() for a host that has just started a barrier. If nothing else is to be done, the card
  /// does no more than send its notifications.
  void step_to_start() noexcept;

  /// Call step() `times` times, after waiting for a thread that is inside to leave. Any thread,
  /// bounded.
  void step_surely(uint32_t times);

  /// Run `fn(arg)` while no thread is inside the card, and what partners read of this process's
  /// memory does not count: memory may go meanwhile. Waits for the end of a step. Any thread,
  /// bounded.
  void with_lock(void (*fn)(void* arg), void* arg);
  /// Run `fn(arg)` while no thread is inside the card. Unlike with_lock(), partners may read this
  /// process's memory meanwhile: all of it must stay. Waits as with_lock(). Any thread, bounded.
  void between_steps(void (*fn)(void* arg), void* arg);
  /// Answer what is not answered, and let no partner read this process's memory any more. Call it
  /// before the card is destroyed, in the process that made it. Waits as with_lock().
  void leave();

  /// Whether long reads and writes of a partner's memory are copied once, between the two
  /// processes. Any thread; waits for the end of a step.
  [[nodiscard]] bool copies_once(uint32_t dest_id);

  // Events that a test can cause. Any thread.
  /// The link goes down or comes back.
  void set_link(bool up);
  /// The card loses its state, as by a function-level reset behind the driver's back.
  void lose_state();
  /// The card falls off the bus: the BAR reads all ones, and nothing moves any more.
  void vanish();
  /// Make the card ignore a ring, or serve it again.
  void hold_ring(uint32_t queue_pair, uint32_t ring, bool held);
  /// Another host has a virtual function: its ends are these from now on, and its queue pairs,
  /// which it keeps, are reset. @param vf below Config::vfs.
  void replug_vf(uint32_t vf, const FunctionEnds& ends);
  /// Replace the fault configuration.
  void set_faults(const FaultConfig& faults);

  /// The work under way. Call it on the thread that steps the card; it reports work under way while
  /// another thread is inside.
  [[nodiscard]] Activity activity();
  /// When the card last looked at its clock, as it does every few steps. Any thread, without the
  /// card's lock.
  [[nodiscard]] uint64_t looked_ns() const;
  /// The current counts. Any thread.
  [[nodiscard]] Statistics statistics();

 private:
  struct Impl;
  explicit Card(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rio::model
